"""Predictions in the units of ratings, and how good they are where the rating is known."""

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ._sampler import Carry
from ._settings import LEVEL
from ._table import Scale, Table


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
