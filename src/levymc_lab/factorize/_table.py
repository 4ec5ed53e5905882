"""The table of ratings: read, checked, and cut into what is fitted and what is held out."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from levymc_lab import data

from ._settings import HELD_OUT

FEWEST_RATINGS = 20
MOST_LEVELS = 256  # of the kernel


class Scale(NamedTuple):
    """A rating is center + spread · (what the model calls a rating)."""

    center: float
    spread: float


class Table(NamedTuple):
    """Ratings of a file, in two parts."""

    whole: data.Ratings
    training: data.Ratings
    held_out: data.Ratings
    digest: str


def load_table(path: Path, seed: int) -> Table:
    """Read ratings, and hold some out.

    Raises:
        DataError: a fault of the file, with its line; ratings that nothing can be learnt from.
    """
    whole = _read(path)
    _check(whole, path)
    training, held_out = data.split(whole, seed, (1 - HELD_OUT, HELD_OUT))
    if np.ptp(training.values) == 0:
        raise data.DataError(f"{path}: all ratings are {training.values[0]:g}: nothing to learn.")
    return Table(whole, training, held_out, _digest(whole))


def scale_of(training: data.Ratings, rank: int) -> Scale:
    """Units in which factors with N(0, 1) entries explain as much variance as the ratings have.

    So that the fit depends on neither the scale of the ratings nor, much, the rank.
    """
    values = training.values.astype(np.float64)
    return Scale(float(values.mean()), float(values.std()) / rank**0.5)


def _read(path: Path) -> data.Ratings:
    if path.is_dir() or path.suffix == ".zip":
        return data.read(path)
    try:
        return data.read(path)  # the formats of MovieLens, some ten times as fast
    except data.DataError:
        return data.read_table(path)


def _check(ratings: data.Ratings, path: Path) -> None:
    if ratings.num_ratings < FEWEST_RATINGS:
        raise data.DataError(
            f"{path}: {ratings.num_ratings} ratings are too few. "
            f"There must be {FEWEST_RATINGS} at least."
        )
    if len(ratings.levels) > MOST_LEVELS:
        raise data.DataError(
            f"{path}: {len(ratings.levels)} different ratings are too many. "
            f"Round them, so that there are at most {MOST_LEVELS}."
        )


def _digest(ratings: data.Ratings) -> str:
    """A checksum of what was read, whatever the format of the file."""
    total = hashlib.sha256()
    for name, array in ratings._asdict().items():
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()
