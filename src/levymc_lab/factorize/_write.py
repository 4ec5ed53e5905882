"""What a person takes away: predictions with intervals, how good they are, and the factors."""

import csv
import io
from statistics import NormalDist
from typing import Any

import numpy as np

from levymc._workdir import ResultsError, atomic_bytes, write_arrays
from levymc.run import Visit

from ._model import Position
from ._prepare import Job
from ._table import LEVEL, Labels, Table, Targets

HEADER = ("user", "item", "mean", "low", "high", "rating", "basis")


def write_outputs(job: Job, targets: Targets, last: Visit, noise: float) -> dict[str, Any]:
    """The files; returns what the manifest tells of them."""
    predictions = _predictions(job, targets, last, noise)
    if not np.all(np.isfinite(predictions)):
        raise ResultsError(
            "The chain left the finite numbers, and there are no predictions. "
            "Give a larger --noise, or --alpha 2."
        )
    labels, count = targets.labels, len(targets.labels.users)
    written = predictions[:, len(targets.users) - count :]
    atomic_bytes(job.folder.predictions, _lines(labels, written))
    write_arrays(job.folder.factors, _factors(job, last.states.position))
    return {
        "scores": _scores(predictions, job.table),
        "num_predictions": count,
        "num_predictions_for_new": sum(basis != "known" for basis in labels.bases),
        "num_draws": len(job.settings.draws),
        "num_divergent_steps": int(last.states.num_divergent),
    }


def _predictions(job: Job, targets: Targets, last: Visit, noise: float) -> np.ndarray:
    """Three rows: the mean, and the ends of an interval for a new rating,

    mean ± z √(variance over draws + variance of new rows + noise²).
    """
    predicted, scale = last.observed["predicted"], job.scale
    variance = predicted["deviation"].astype(np.float64) ** 2
    variance[targets.is_new] += last.observed["unseen"]
    mean = scale.center + scale.spread * predicted["mean"].astype(np.float64)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * np.sqrt(scale.spread**2 * variance + noise**2)
    return np.stack([mean, mean - half, mean + half])


def _scores(predictions: np.ndarray, table: Table) -> dict[str, Any]:
    """Errors and coverage on the held-out ratings, which come first."""
    ratings = table.held_out.values.astype(np.float64)
    mean, low, high = predictions[:, : len(ratings)]
    constant = float(table.training.values.mean(dtype=np.float64))
    return {
        "rmse": rms(mean - ratings),
        "rmse_of_the_mean_rating": rms(constant - ratings),
        "interval_level": LEVEL,
        "interval_coverage": float(np.mean((low <= ratings) & (ratings <= high))),
        "interval_mean_width": float(np.mean(high - low)),
        "num_held_out": len(ratings),
    }


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _lines(labels: Labels, predictions: np.ndarray) -> bytes:
    """A line a pair.

    ``basis`` is `known`, or says what no rating was fitted to: `new user`, `new item`, `new both`.
    Of those the model knows its prior only, and the interval says so.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    numbers = [[f"{value:.6g}" for value in row.tolist()] for row in predictions]
    ratings = ["" if np.isnan(value) else f"{value:g}" for value in labels.ratings]
    columns = (labels.users, labels.items, *numbers, ratings, labels.bases)
    writer.writerows(zip(*columns, strict=True))
    return stream.getvalue().encode()


def _factors(job: Job, position: Position) -> dict[str, np.ndarray]:
    """A draw in units of ratings; the package says what each array is."""
    training, whole, rank = job.table.training, job.table.whole, job.settings.rank
    users, items = position["users"], position["items"]
    root, spread = np.float32(job.scale.spread**0.5), np.float32(job.scale.spread)
    return {
        "center": np.array(job.scale.center),
        "users": root * users[:, :rank],
        "items": root * items[:, :rank],
        "user_biases": spread * users[:, rank],
        "item_biases": spread * items[:, rank + 1],
        "user_ids": whole.user_ids,
        "item_ids": whole.item_ids,
        "user_counts": np.bincount(training.users, minlength=training.num_users),
        "item_counts": np.bincount(training.items, minlength=training.num_items),
    }
