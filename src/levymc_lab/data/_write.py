"""Ratings to text in the official formats, some millions a second."""

import os
from pathlib import Path
from typing import IO

import numpy as np

from ._formats import FORMATS, Format
from ._ratings import Ratings

CHUNK = 2**18
FIRST_TIME = 789_652_009  # of the earliest rating of MovieLens 20M, in seconds since 1970
TIMES = 638_000_000  # seconds in the twenty years after it
PRIME = 179_424_673  # steps through them, so that made times look like times


def write(ratings: Ratings, path: str | os.PathLike[str], format: str = "csv") -> Path:
    """Write ratings as MovieLens publishes them; the timestamps are made.

    Args:
        ratings: with whole numbers from 0 as ids and half stars as levels.
        path: the file; it is replaced in one step when all is written.
        format: `tab` (100K), `dat` (1M, 10M) or `csv` (20M and later).

    Raises:
        ValueError: ids or ratings that the format has no way to write.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> made = levymc_lab.data.synthetic(30, 40, 500)
        >>> file = levymc_lab.data.write(
        ...     made, pathlib.Path(tempfile.mkdtemp()) / "ratings.dat", "dat"
        ... )
        >>> bool((levymc_lab.data.read(file).values == made.values).all())
        True
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(FORMATS)}, got {format!r}.")
    _check(ratings)
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            _write_to(stream, ratings, FORMATS[format])
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _check(ratings: Ratings) -> None:
    for name, ids in (("user_ids", ratings.user_ids), ("item_ids", ratings.item_ids)):
        if ids.dtype.kind not in "iu" or np.any(ids < 0):
            raise ValueError(f"`{name}` must be whole numbers from 0, got {ids[:3]}. Number them.")
    halves = 2 * ratings.levels
    if np.any(halves != np.rint(halves)) or np.any((halves < 1) | (halves > 10)):
        raise ValueError(
            f"`levels` must be half stars from 0.5 to 5, got {ratings.levels}. Scale them."
        )


def _write_to(stream: IO[bytes], ratings: Ratings, kind: Format) -> None:
    if kind.header:
        stream.write(kind.header + b"\n")
    halves = (2 * ratings.levels).astype(np.int64)
    for begin in range(0, ratings.num_ratings, CHUNK):
        rows = slice(begin, begin + CHUNK)
        count = len(ratings.users[rows])
        time = FIRST_TIME + (np.arange(begin, begin + count) * PRIME) % TIMES
        separator = _constant(kind.separator, count)
        fields = [
            *_digits(ratings.user_ids[ratings.users[rows]]),
            separator,
            *_digits(ratings.item_ids[ratings.items[rows]]),
            separator,
            *_stars(halves[ratings.codes[rows]], always_point=bool(kind.header)),
            separator,
            *_digits(time),
            _constant(b"\n", count),
        ]
        text = np.concatenate(fields, axis=1)
        stream.write(text[text != 0].tobytes())


def _constant(text: bytes, count: int) -> np.ndarray:
    return np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text)))


def _digits(numbers: np.ndarray) -> list[np.ndarray]:
    """One column a digit; 0, which is no character, in place of leading zeros."""
    width = len(str(numbers.max()))
    columns = []
    for power in range(width - 1, -1, -1):
        quotients = numbers // 10**power
        digit = (quotients % 10 + ord("0")).astype(np.uint8)
        columns.append((digit * ((quotients > 0) | (power == 0)))[:, None])
    return columns


def _stars(halves: np.ndarray, always_point: bool) -> list[np.ndarray]:
    """`4.0` in CSV; `4` in the other formats, and `3.5` in all."""
    whole = (halves // 2 + ord("0")).astype(np.uint8)
    odd = halves % 2 == 1
    point = (odd | always_point) * np.uint8(ord("."))
    tenth = np.where(odd, ord("5"), ord("0") * always_point).astype(np.uint8)
    return [whole[:, None], point[:, None], tenth[:, None]]
