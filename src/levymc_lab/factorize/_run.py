"""Fit, reporting how it goes; stop whenever asked, and go on from there."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from levymc._workdir import ResultsError, clocked, lock, make_folder
from levymc.run import Visit

from ._model import Position, Predict, chain, of_one_chain
from ._noise import ROUNDS, Noise, estimate_noise
from ._prepare import Job, new_manifest
from ._write import missing_draws, rms, write_draw, write_outputs


class Progress(NamedTuple):
    """How far a run is.

    phase: "noise" while the noise is estimated, "burn-in", then "sampling".
    rmse: on the held-out ratings: of the current draw in the burn-in, then of the mean so far.
    """

    phase: str
    done: int
    total: int
    rmse: float | None


Report = Callable[[Progress], None]


def run(job: Job, on_progress: Report = lambda _: None) -> dict[str, Any]:
    """Fit, or go on with what was interrupted, and write predictions and factors.

    The numbers are the same bit for bit however often the run was stopped, also by kill -9.

    Returns:
        The manifest; `manifest["scores"]` tells how good the predictions are.

    Raises:
        MismatchError: the folder holds another run.
        KeyboardInterrupt: after what was done has been saved.
        ResultsError, OSError: what cannot be read or written.
    """
    folder = job.folder
    make_folder(folder.path)
    with lock(folder.path):
        folder.tidy()
        if job.starts_anew:
            folder.clear()
        manifest = folder.check(job.identity)
        if manifest is None or not folder.is_finished(manifest):
            if manifest is None or manifest["status"] == "finished":
                folder.clear()
                manifest = new_manifest(job)
            with clocked(folder.manifest, manifest) as record, _telling_what_is_safe(job):
                _complete(job, manifest, record, on_progress)
        folder.drop_chain()
        return manifest


@contextmanager
def _telling_what_is_safe(job: Job) -> Iterator[None]:
    """Of a full disk; what the chain's store advises would go on without its draws."""
    try:
        yield
    except OSError as error:
        raise ResultsError(
            f"{error.__cause__ or error}. What was finished is safe in {job.folder.path}; after a "
            "remedy the same command goes on."
        ) from error


def _complete(
    job: Job, manifest: dict[str, Any], record: Callable[[], None], report: Report
) -> None:
    key_noise, key_chain = jax.random.split(jax.random.key(job.settings.seed))
    if manifest["noise"] is None:
        estimate = _noise(job, key_noise, report)
        manifest |= {"noise": estimate.deviation, "noise_error": estimate.error}
        record()
    num_divergent = _watch(job, manifest["noise"], key_chain, report)
    manifest |= write_outputs(job, manifest["noise"], num_divergent)


def _noise(job: Job, key: Array, report: Report) -> Noise:
    estimates: list[Noise] = []
    report(Progress("noise", 0, ROUNDS, None))
    for estimate in estimate_noise(job, key):
        estimates.append(estimate)
        report(Progress("noise", len(estimates), ROUNDS, None))
    return estimates[-1]


def _watch(job: Job, noise: float, key: Array, report: Report) -> int:
    """Make the steps that are left, and keep the draws; how many steps diverged."""
    predict = Predict.of(job)
    try:
        visits = chain(job, predict, noise, key)
    except ResultsError as error:
        remedy = f"Or remove {job.folder.chain}: the same command then begins the chain anew."
        raise ResultsError(f"{error} {remedy}") from error
    predict_now, looks, is_first = jax.jit(predict.mean), set(job.settings.looks), True
    with closing(visits):
        for visit in map(of_one_chain, visits):
            if is_first:
                _check_draws(job, visit.step)
                is_first = False
            if visit.step in job.draws:
                write_draw(job, visit.step, visit.states.position)
            if visit.step in looks:
                report(_progress(job, visit, predict_now))
    return int(visit.states.num_divergent)


def _check_draws(job: Job, step: int) -> None:
    """Refuse to go on with a chain whose earlier draws are gone."""
    missing = missing_draws(job, step)
    if missing:
        raise ResultsError(
            f"{job.folder.draw(missing[0])} is missing: without this draw the fit is not whole. "
            f"Remove {job.folder.chain}: the same command then begins the chain anew."
        )


def _progress(job: Job, visit: Visit, predict_now: Callable[[Position], Array]) -> Progress:
    is_sampling = visit.step >= job.draws[0]
    predicted = (
        visit.observed["predicted"]
        if is_sampling
        else np.asarray(predict_now(visit.states.position))
    )
    phase = "sampling" if is_sampling else "burn-in"
    return Progress(phase, visit.step, job.settings.num_steps, _error(job, predicted))


def _error(job: Job, predicted: np.ndarray) -> float:
    """On the held-out ratings."""
    mean = job.scale.center + job.scale.spread * predicted.astype(np.float64)
    return rms(np.clip(mean, *job.scale.ends) - job.table.held_out.values)
