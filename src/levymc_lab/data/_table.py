"""Ratings, and pairs of a user and an item, from a person's own table."""

import math
import os
import re
from array import array
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from ._dataset import DataError
from ._headings import layout, layout_of_pairs
from ._lines import Skips, scan
from ._ratings import Ratings, in_order, repeat_at, repeats, rows_of

LARGEST = float(np.finfo(np.float32).max)
SHOWN = 60  # characters of a field in a message
LONGEST_ID = 200  # an array of text has the width of its longest entry
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # one way to write each, so that none merge
SKIP_ADVICE = "`--skip-bad 10` (skip_bad=10) leaves out up to ten bad rows."
UNBOUNDED = (-math.inf, math.inf)


class Pairs(NamedTuple):
    """Users and items as they are written, one each per pair, in the order of the file."""

    users: list[str]
    items: list[str]


@dataclass(frozen=True)
class _Rows:
    """Users, items and ratings as numbers in the order of their first occurrence, and lines."""

    scale: tuple[float, float]
    users: dict[str, int] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    user: array = field(default_factory=partial(array, "q"))
    item: array = field(default_factory=partial(array, "q"))
    rating: array = field(default_factory=partial(array, "d"))
    line: array = field(default_factory=partial(array, "q"))

    def add(self, line: int, user: str, item: str, rating: str, *time: str) -> None:
        """All of a row or nothing."""
        by, of = _id("user", user, self.users), _id("item", item, self.items)
        value = _rating(rating, self.scale)
        if time:
            _check_time(time[0])
        self.user.append(self.users.setdefault(by, len(self.users)))
        self.item.append(self.items.setdefault(of, len(self.items)))
        self.rating.append(value)
        self.line.append(line)

    def gathered(self) -> Ratings:
        """In the order of the file."""
        user_ids, user_order = _order_of(self.users)
        item_ids, item_order = _order_of(self.items)
        levels, codes = np.unique(np.array(self.rating, np.float32), return_inverse=True)
        return Ratings(
            user_order[np.array(self.user, np.int64)],
            item_order[np.array(self.item, np.int64)],
            codes.astype(np.min_scalar_type(len(levels) - 1)),
            levels,
            user_ids,
            item_ids,
        )


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    delimiter: str | None = None,
    *,
    scale: Sequence[float | int] | None = None,
    skip_bad: int = 0,
    on_bad: Callable[[str], None] | None = None,
) -> Ratings:
    r"""Read a table with a user, an item and a rating in each row.

    Ids may be whole numbers or any text, ratings any numbers; there may be a header and further
    columns; fields may be quoted.  Empty lines are passed over.  The file is read once from its
    beginning to its end: it may be a pipe.

    A first line is a header if its rating is no number and it has a heading among its fields, or a
    word where the next line has a number.  Otherwise it is a row like any other.

    Args:
        path: a text file in UTF-8, or - for the standard input.
        columns: names in the header, or numbers from 0, of user, item and rating and perhaps of the
            time, which is checked and left out.  Without them the header's names decide (user…,
            item… or movie…, rating or score), or else these are the first three columns.
        delimiter: `,`, `;`, a tab or `::`; without it the first line decides.
        scale: the least and the largest rating that there may be; any number if not given.
        skip_bad: leave out up to this many bad rows; of a pair that is rated again, the later.
        on_bad: is given the fault of each row that is left out, as file:line: reason.

    Raises:
        DataError: the first fault that is not left out, as file:line: reason.
        OSError: the file cannot be read.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
        >>> _ = file.write_text("score;user;item\n8.5;ann;tea\n3;bob;tea\n")
        >>> ratings = levymc_lab.data.read_table(file)
        >>> ratings.user_ids.tolist(), ratings.values.tolist()
        (['ann', 'bob'], [8.5, 3.0])
    """
    rows, skips = _Rows(check_scale(scale)), Skips(skip_bad, on_bad, SKIP_ADVICE)
    if not scan(path, delimiter, partial(layout, wanted=columns), rows.add, skips):
        raise DataError(f"{path}: the file is empty. Give one with a rating on each line.")
    if not rows.rating:
        raise DataError(f"{path}: there is no rating in it. Give a file with one on each line.")
    ratings = rows.gathered()
    line_of: Callable[[int], int] = rows.line.__getitem__
    if skip_bad:
        ratings, line_of = _without_repeats(ratings, str(path), line_of, skips)
    return in_order(ratings, str(path), line_of)


def _without_repeats(
    ratings: Ratings, label: str, line_of: Callable[[int], int], skips: Skips
) -> tuple[Ratings, Callable[[int], int]]:
    """The first row of each pair, and the lines of these."""
    is_kept = np.ones(ratings.num_ratings, bool)
    for later, first in repeats(ratings):
        skips.skip(repeat_at(ratings, later, first, label, line_of))
        is_kept[later] = False
    rows = np.flatnonzero(is_kept)
    return rows_of(ratings, rows), lambda row: line_of(int(rows[row]))


def check_scale(scale: Sequence[float | int] | None) -> tuple[float, float]:
    """The ends of a scale; infinite if none is given.

    Raises:
        DataError: it is none.
    """
    if scale is None:
        return UNBOUNDED
    try:
        low, high = map(float, scale)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise DataError(
            f"`scale` must be the least and the largest rating, got {scale!r}. Such as 1,5."
        )
    return low, high


def read_pairs(path: str | os.PathLike[str], delimiter: str | None = None) -> Pairs:
    r"""Read a table with a user and an item in each row; further columns are passed over.

    Where the first line has headings for them (such as user and item, userId and movieId), these
    decide; other headings are refused where they can be told from a pair.  Without a header, they
    are the first two columns.

    Args:
        path: a text file in UTF-8, or - for the standard input.
        delimiter: `,`, `;`, a tab or `::`; without it the first line decides.

    Raises:
        DataError: the first fault, as file:line: reason.
        OSError: the file cannot be read.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
        >>> _ = file.write_text("item,user\ntea,ann\n")
        >>> levymc_lab.data.read_pairs(file)
        Pairs(users=['ann'], items=['tea'])
    """
    pairs = Pairs([], [])

    def add(line: int, user: str, item: str) -> None:
        by, of = _id("user", user, ()), _id("item", item, ())
        pairs.users.append(by)
        pairs.items.append(of)

    scan(path, delimiter, layout_of_pairs, add)
    if not pairs.users:
        raise DataError(f"{path}: there is no pair of a user and an item in it. Give one a line.")
    return pairs


# Texts and numbers.


def _id(name: str, text: str, known: Container[str]) -> str:
    """An id without spaces around it."""
    if text in known:
        return text
    stripped = text.strip()
    if not stripped:
        raise ValueError(f"there is no {name}. Fill it in, or remove the line.")
    if len(stripped) > LONGEST_ID:
        raise ValueError(f"the {name} has more than {LONGEST_ID} characters. Shorten it.")
    if "\0" in stripped:  # arrays of text end there
        raise ValueError(f"the {name} has a character of code 0 in it. Remove that.")
    return stripped


def _rating(text: str, scale: tuple[float, float]) -> float:
    """A number that is finite in single precision, as Python writes it but for underscores."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST or "_" in text:  # NaN fails every comparison
        raise ValueError(
            f"rating {_short(text)!r} is no finite number. Correct it, or remove the line."
        )
    if not scale[0] <= value <= scale[1]:
        raise ValueError(
            f"rating {_short(text)} lies outside the scale from {scale[0]:g} to {scale[1]:g}. "
            "Correct it, or declare another scale (--scale)."
        )
    return value


def _check_time(text: str) -> None:
    """Refuse what is neither a number nor a date."""
    try:
        is_time = math.isfinite(float(text))
    except ValueError:
        try:
            datetime.fromisoformat(text.strip())
        except ValueError:
            is_time = False
        else:
            is_time = True
    if not is_time:
        raise ValueError(
            f"time {_short(text)!r} is neither a number nor a date such as 2001-12-31. "
            "Correct it, or leave the column out of those named."
        )


def _short(text: str) -> str:
    """What is shown of a field."""
    stripped = text.strip()
    return stripped if len(stripped) <= SHOWN else stripped[:SHOWN] + "…"


def _order_of(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The ids in ascending order, whole numbers where all are, and for each text its place."""
    given = list(texts)
    is_numeric = all(PLAIN_NUMBER.fullmatch(text) for text in given)
    ids = np.array(given, np.int64 if is_numeric else np.str_)
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(ids), np.uint32)
    place[order] = np.arange(len(ids), dtype=np.uint32)
    return ids[order], place
