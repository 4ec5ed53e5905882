"""Fit, telling how it goes; stop whenever asked, and go on from there."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._workdir import (
    ResultsError,
    clocked,
    lock,
    make_folder,
    read_arrays,
    write_arrays,
)

from ._model import SWEEPS, Carry, Sampler, estimate_noise, make_sampler
from ._prepare import Folder, Job, new_manifest
from ._table import Scale, Targets, labels_of, scale_of, targets_of
from ._write import predictions_of, rms, scores, write_factors, write_predictions

CHUNK = 20  # steps a call: Ctrl-C is heard between two calls
CHECKPOINT_SECONDS = 5.0
PROGRESS_SECONDS = 0.2


class Point(NamedTuple):
    """The carry after so many steps; one value, so that an interrupt finds both or neither."""

    carry: Carry
    done: int


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
        if manifest is not None and folder.is_finished(manifest):
            return manifest
        if manifest is None or manifest["status"] == "finished":
            folder.clear()  # a checkpoint without its manifest may be another run's
            manifest = new_manifest(job)
        with clocked(folder.manifest, manifest) as record:
            _complete(job, manifest, record, on_progress)
        folder.checkpoint.unlink(missing_ok=True)
        return manifest


def _complete(
    job: Job, manifest: dict[str, Any], record: Callable[[], None], report: Report
) -> None:
    table, settings = job.table, job.settings
    key_noise, key_chain = jax.random.split(jax.random.key(settings.seed))
    scale = scale_of(table.training, settings.rank)
    if manifest["noise"] is None:
        manifest["noise"] = _noise(job, scale, key_noise, report)
        record()
    noise = manifest["noise"]
    targets = targets_of(table, job.asked)
    sampler = make_sampler(
        table.training, targets, scale, noise, settings, key_chain, job.num_threads
    )
    point = load_point(job.folder, sampler.start())
    point = _advance(job, sampler, point, scale, report)
    manifest |= _write(job, point, targets, scale, noise)


def _noise(job: Job, scale: Scale, key: Array, report: Report) -> float:
    rounds = 0

    def tell() -> None:
        nonlocal rounds
        rounds += 1
        report(Progress("noise", rounds, len(SWEEPS), None))

    report(Progress("noise", 0, len(SWEEPS), None))
    return estimate_noise(job.table.training, scale, job.settings.rank, key, job.num_threads, tell)


def save_point(folder: Folder, point: Point) -> None:
    """Keep where a run is: enough to go on as if nothing had happened."""
    leaves = {str(place): leaf for place, leaf in enumerate(jax.tree.leaves(point.carry))}
    write_arrays(folder.checkpoint, {"done": point.done, **leaves})


def load_point(folder: Folder, start: Carry) -> Point:
    """The point that was saved, or the start if none was."""
    if not folder.checkpoint.exists():
        return Point(start, 0)
    remedy = "Remove it: the same command then starts from the beginning."
    arrays = read_arrays(folder.checkpoint, remedy)
    leaves, structure = jax.tree.flatten(start)
    try:
        found = [_like(leaf, arrays[str(place)]) for place, leaf in enumerate(leaves)]
        return Point(jax.tree.unflatten(structure, found), int(arrays["done"]))
    except (ValueError, KeyError) as error:
        raise ResultsError(f"{folder.checkpoint} is damaged ({error}). {remedy}") from None


def _like(wanted: Array, found: np.ndarray) -> Array:
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        raise ValueError(f"an array of {found.dtype}{found.shape} is out of place")
    return jnp.asarray(found)


def _advance(job: Job, sampler: Sampler, point: Point, scale: Scale, report: Report) -> Point:
    """Make the steps that are left."""
    total, saved, shown = job.settings.steps, time.monotonic(), 0.0
    try:
        while point.done < total:
            count = min(CHUNK, total - point.done)
            moved = jax.block_until_ready(sampler.advance(point.carry, point.done, count))
            point = Point(moved, point.done + count)
            if time.monotonic() - saved >= CHECKPOINT_SECONDS:
                save_point(job.folder, point)
                saved = time.monotonic()
            if time.monotonic() - shown >= PROGRESS_SECONDS or point.done == total:
                report(_progress(job, sampler, point, scale))
                shown = time.monotonic()
    except KeyboardInterrupt:
        save_point(job.folder, point)
        raise
    return point


def _progress(job: Job, sampler: Sampler, point: Point, scale: Scale) -> Progress:
    has_mean = float(point.carry.predicted.total) > 0
    predicted = point.carry.predicted.mean if has_mean else sampler.predict(point.carry)
    ratings = job.table.held_out.values
    errors = scale.center + scale.spread * np.asarray(predicted)[: len(ratings)] - ratings
    phase = "sampling" if has_mean else "burn-in"
    return Progress(phase, point.done, job.settings.steps, rms(errors))


def _write(job: Job, point: Point, targets: Targets, scale: Scale, noise: float) -> dict[str, Any]:
    """The outputs; returns what the manifest tells of them."""
    table, whole = job.table, job.table.whole
    is_new = (targets.users == whole.num_users) | (targets.items == whole.num_items)
    all_pairs = predictions_of(point.carry, is_new, scale, noise)
    if not np.all(np.isfinite(all_pairs)):
        raise ResultsError(
            "The chain left the finite numbers, and there are no predictions. "
            "Give a larger --noise, or --alpha 2."
        )
    held_out = all_pairs.part(slice(targets.num_held_out))
    wanted = held_out if job.asked is None else all_pairs.part(slice(targets.num_held_out, None))
    labels = labels_of(table, job.asked, targets)
    write_predictions(job.folder, labels, wanted)
    write_factors(job.folder, point.carry, table, scale, job.settings.rank)
    return {
        "scores": scores(held_out, table),
        "num_predictions": len(wanted.mean),
        "num_predictions_for_new": sum(basis != "known" for basis in labels.bases),
        "num_draws": int(point.carry.predicted.total),
        "num_divergent_steps": int(point.carry.divergent),
    }
