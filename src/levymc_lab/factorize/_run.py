"""Fit, reporting how it goes; stop whenever asked, and go on from there."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from levymc._workdir import ResultsError, clocked, lock, make_folder
from levymc.run import Visit

from ._model import SWEEPS, Predict, chain, estimate_noise, of_one_chain
from ._prepare import Job, new_manifest
from ._table import targets_of
from ._write import rms, write_outputs


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
                folder.clear()  # a chain without its manifest may be another run's
                manifest = new_manifest(job)
            with clocked(folder.manifest, manifest) as record:
                _complete(job, manifest, record, on_progress)
        folder.drop_chain()
        return manifest


def _complete(
    job: Job, manifest: dict[str, Any], record: Callable[[], None], report: Report
) -> None:
    key_noise, key_chain = jax.random.split(jax.random.key(job.settings.seed))
    if manifest["noise"] is None:
        manifest["noise"] = _noise(job, key_noise, report)
        record()
    predict = Predict(targets_of(job.table, job.asked), job.settings.rank)
    last = _watch(job, predict, manifest["noise"], key_chain, report)
    manifest |= write_outputs(job, predict.targets, last, manifest["noise"])


def _noise(job: Job, key: Array, report: Report) -> float:
    estimates: list[float] = []
    report(Progress("noise", 0, len(SWEEPS), None))
    for estimate in estimate_noise(job, key):
        estimates.append(estimate)
        report(Progress("noise", len(estimates), len(SWEEPS), None))
    return estimates[-1]


def _watch(job: Job, predict: Predict, noise: float, key: Array, report: Report) -> Visit:
    """Make the steps that are left; the last visit to the chain."""
    try:
        visits = chain(job, predict, noise, key)
    except ResultsError as error:
        remedy = f"Or remove {job.folder.chain}: the same command then begins the chain anew."
        raise ResultsError(f"{error} {remedy}") from error
    predict_now = jax.jit(predict.mean)
    with closing(visits):
        for visit in map(of_one_chain, visits):
            is_sampling = visit.step >= job.settings.draws[0]
            predicted = (
                visit.observed["predicted"]["mean"]
                if is_sampling
                else np.asarray(predict_now(visit.states.position))
            )
            phase = "sampling" if is_sampling else "burn-in"
            report(Progress(phase, visit.step, job.settings.steps, _error(job, predicted)))
    return visit


def _error(job: Job, predicted: np.ndarray) -> float:
    """On the held-out ratings, which are the first of those predicted."""
    ratings = job.table.held_out.values
    return rms(job.scale.center + job.scale.spread * predicted[: len(ratings)] - ratings)
