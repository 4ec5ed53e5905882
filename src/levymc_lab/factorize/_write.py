"""What a person takes away: predictions with intervals, how good they are, and the factors."""

import csv
import io
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from levymc._workdir import atomic_bytes, write_arrays

from ._model import Carry
from ._prepare import Folder
from ._table import LEVEL, Labels, Scale, Table

HEADER = ("user", "item", "mean", "low", "high", "rating", "basis")


class Predictions(NamedTuple):
    """Of each pair: the mean, and an interval in which a new rating lies with probability 0.9."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def part(self, rows: slice) -> "Predictions":
        return Predictions(*(column[rows] for column in self))


def predictions_of(carry: Carry, is_new: np.ndarray, scale: Scale, noise: float) -> Predictions:
    r"""mean ± z √(variance over draws + variance of new rows + noise²)."""
    total = float(carry.predicted.total)
    variance = np.asarray(carry.predicted.squares, np.float64) / total
    variance[is_new] += np.asarray(carry.unseen.mean, np.float64)
    mean = scale.center + scale.spread * np.asarray(carry.predicted.mean, np.float64)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * np.sqrt(scale.spread**2 * variance + noise**2)
    return Predictions(mean, mean - half, mean + half)


def scores(held_out: Predictions, table: Table) -> dict[str, Any]:
    """Errors and coverage on the held-out ratings."""
    ratings = table.held_out.values.astype(np.float64)
    constant = float(table.training.values.mean(dtype=np.float64))
    is_inside = (held_out.low <= ratings) & (ratings <= held_out.high)
    return {
        "rmse": rms(held_out.mean - ratings),
        "rmse_of_the_mean_rating": rms(constant - ratings),
        "interval_level": LEVEL,
        "interval_coverage": float(is_inside.mean()),
        "interval_mean_width": float((held_out.high - held_out.low).mean()),
        "num_held_out": len(ratings),
    }


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def write_predictions(folder: Folder, labels: Labels, predictions: Predictions) -> None:
    """A line a pair.

    ``basis`` is `known`, or says what no rating was fitted to: `new user`, `new item`, `new both`.
    Of those the model knows its prior only, and the interval says so.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    numbers = [[f"{value:.6g}" for value in column.tolist()] for column in predictions]
    ratings = ["" if np.isnan(value) else f"{value:g}" for value in labels.ratings]
    columns = (labels.users, labels.items, *numbers, ratings, labels.bases)
    writer.writerows(zip(*columns, strict=True))
    atomic_bytes(folder.predictions, stream.getvalue().encode())


def write_factors(folder: Folder, carry: Carry, table: Table, scale: Scale, rank: int) -> None:
    """The last draw, in units of ratings: Y ≈ center + users itemsᵀ + user_biases + item_biases.

    Not a mean over draws: the posterior does not change if both factors are rotated together, so
    that the mean of a factor over a long chain is zero.
    """
    position, training = carry.state.position, table.training
    users, items = np.asarray(position["users"]), np.asarray(position["items"])
    root = np.float32(scale.spread**0.5)
    arrays: dict[str, np.ndarray] = {
        "center": np.array(scale.center),
        "users": root * users[:, :rank],
        "items": root * items[:, :rank],
        "user_biases": np.float32(scale.spread) * users[:, rank],
        "item_biases": np.float32(scale.spread) * items[:, rank + 1],
        "user_ids": table.whole.user_ids,
        "item_ids": table.whole.item_ids,
        "user_counts": np.bincount(training.users, minlength=training.num_users),
        "item_counts": np.bincount(training.items, minlength=training.num_items),
    }
    write_arrays(folder.factors, arrays)
