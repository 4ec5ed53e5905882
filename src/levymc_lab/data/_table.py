"""Ratings, and pairs of a user and an item, from a person's own table."""

import csv
import math
import operator
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ._dataset import DataError, at_line
from ._ratings import Ratings, in_order

DELIMITERS = ("::", "\t", ";", ",")
SEPARATED = "separated by a comma, a semicolon, a tab or '::'."
USER_NAMES = ("user",)
ITEM_NAMES = ("item", "movie", "film", "product", "book")
RATING_NAMES = ("rating", "score", "stars")
HEADINGS = tuple(  # whole words: `user17` may well be an id
    re.compile(rf"({'|'.join(names)})s?[ _-]?(id|name)?", re.IGNORECASE)
    for names in (USER_NAMES, ITEM_NAMES)
)
LARGEST = float(np.finfo(np.float32).max)
LONGEST_ID = 200  # an array of text has the width of its longest entry
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # one way to write each, so that none merge

# The places of the wanted fields, and whether the first line is a header.
Layout = tuple[tuple[int, ...], bool]


class Pairs(NamedTuple):
    """Users and items as they are written, one each per pair, in the order of the file."""

    users: list[str]
    items: list[str]


class _Rows(NamedTuple):
    """Users, items and ratings as numbers in the order of their first occurrence, and lines."""

    users: dict[str, int]
    items: dict[str, int]
    user: array
    item: array
    rating: array
    line: array

    def add(self, line: int, user: str, item: str, rating: str) -> None:
        self.user.append(_number_of("user", user, self.users))
        self.item.append(_number_of("item", item, self.items))
        self.rating.append(_finite(rating))
        self.line.append(line)


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    delimiter: str | None = None,
) -> Ratings:
    r"""Read a table with a user, an item and a rating in each row.

    Ids may be whole numbers or any text, ratings any numbers; there may be a header and further
    columns; fields may be quoted.  Empty lines are passed over.

    Args:
        path: a text file in UTF-8.
        columns: names in the header, or numbers from 0, of user, item and rating.  Without them
            the header's names decide (user…, item… or movie…, rating or score), or else
            these are the first three columns.
        delimiter: `,`, `;`, a tab or `::`; without it the first line decides.

    Raises:
        DataError: the first fault, as file:line: reason.
        OSError: the file cannot be read.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
        >>> _ = file.write_text("score;user;item\n8.5;ann;tea\n3;bob;tea\n")
        >>> ratings = levymc_lab.data.read_table(file)
        >>> ratings.user_ids.tolist(), ratings.values.tolist()
        (['ann', 'bob'], [8.5, 3.0])
    """
    rows = _Rows({}, {}, array("q"), array("q"), array("d"), array("q"))
    if not _scan(path, delimiter, partial(_layout, wanted=columns), rows.add):
        raise DataError(f"{path}: the file is empty.")
    if not rows.rating:
        raise DataError(f"{path}: there is no rating in it.")
    user_ids, user_order = _order_of(rows.users)
    item_ids, item_order = _order_of(rows.items)
    values = np.frombuffer(rows.rating).astype(np.float32)
    levels, codes = np.unique(values, return_inverse=True)
    ratings = Ratings(
        user_order[np.frombuffer(rows.user, np.int64)],
        item_order[np.frombuffer(rows.item, np.int64)],
        codes.astype(np.min_scalar_type(len(levels) - 1)),
        levels,
        user_ids,
        item_ids,
    )
    return in_order(ratings, str(path), rows.line.__getitem__)


def read_pairs(path: str | os.PathLike[str], delimiter: str | None = None) -> Pairs:
    r"""Read a table with a user and an item in each row; further columns are passed over.

    Where the first line has headings for them (such as user and item, userId and movieId), these
    decide; otherwise there is no header, and they are the first two columns.

    Args:
        path: a text file in UTF-8.
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
        pairs.users.append(_stripped("user", user))
        pairs.items.append(_stripped("item", item))

    _scan(path, delimiter, _layout_of_pairs, add)
    if not pairs.users:
        raise DataError(f"{path}: there is no pair of a user and an item in it.")
    return pairs


# Lines and fields.


def _scan(
    path: str | os.PathLike[str],
    delimiter: str | None,
    layout_of: Callable[[list[str]], Layout],
    add: Callable[..., None],
) -> bool:
    """Give line and wanted fields of each row below the header to `add`; False for no line at all.

    What `layout_of`, which is given the first line, and `add` raise becomes a fault of the line.
    """
    label, layout, width = str(path), None, 0
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        try:
            for line, fields in _split_lines(stream, label, delimiter):
                try:
                    if layout is None:
                        layout, width = layout_of(fields), len(fields)
                        if layout[1]:
                            continue
                    if len(fields) != width:
                        raise ValueError(f"{len(fields)} fields, where the first line has {width}.")
                    add(line, *(fields[place] for place in layout[0]))
                except ValueError as error:
                    raise at_line(label, line, str(error)) from None
        except UnicodeDecodeError as error:
            raise DataError(
                f"{label}: this is no text in UTF-8 ({error.reason}). Convert it."
            ) from None
    return layout is not None


def _split_lines(
    stream: IO[str], label: str, delimiter: str | None
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each row, with the number of its line."""
    if delimiter is None:
        first = stream.readline()
        stream.seek(0)
        delimiter = next((mark for mark in DELIMITERS if mark in first), ",")
    if len(delimiter) > 1:
        for line, text in enumerate(stream, start=1):
            if text.strip():
                yield line, text.rstrip("\r\n").split(delimiter)
        return
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise at_line(label, reader.line_num, f"{error}.") from None


# Which columns are wanted.


def _layout(first: list[str], wanted: Sequence[str | int] | None) -> Layout:
    """The places of user, item and rating; a header has no number in that of the rating."""
    if len(first) < 3:
        raise ValueError(f"{len(first)} fields. Expected a user, an item and a rating, {SEPARATED}")
    names = [name.strip() for name in first]
    places = (_usual(names) or (0, 1, 2)) if wanted is None else _wanted(names, wanted)
    try:
        float(names[places[2]])
    except ValueError:
        return places, True
    return places, False


def _usual(names: list[str]) -> tuple[int, ...] | None:
    """The columns by usual names, where each is there once."""
    places = []
    for beginnings in (USER_NAMES, ITEM_NAMES, RATING_NAMES):
        found = [k for k, name in enumerate(names) if name.lower().startswith(beginnings)]
        if len(found) != 1:
            return None
        places += found
    return tuple(places)


def _wanted(names: list[str], wanted: Sequence[str | int]) -> tuple[int, ...]:
    if len(wanted) != 3 or isinstance(wanted, str):
        raise ValueError(f"`columns` must be those of user, item and rating, got {wanted!r}.")
    places = tuple(_place(names, one) for one in wanted)
    if len(set(places)) != 3:
        raise ValueError(f"`columns` must be three different ones, got {wanted!r}.")
    return places


def _place(names: list[str], one: str | int) -> int:
    if isinstance(one, str):
        if names.count(one) != 1:
            raise ValueError(f"no single column {one!r}. There are {', '.join(names)}.")
        return names.index(one)
    place = operator.index(one)
    if not 0 <= place < len(names):
        raise ValueError(f"no column {place}. There are {len(names)}, counted from 0.")
    return place


def _layout_of_pairs(first: list[str]) -> Layout:
    """The places of user and item, by their headings if the line is one of headings."""
    if len(first) < 2:
        raise ValueError(f"1 field. Expected a user and an item, {SEPARATED}")
    user, item = (
        [k for k, field in enumerate(first) if heading.fullmatch(field.strip())]
        for heading in HEADINGS
    )
    is_header = len(user) == len(item) == 1
    return ((user[0], item[0]) if is_header else (0, 1)), is_header


# Texts and numbers.


def _stripped(name: str, field: str) -> str:
    text = field.strip()
    if not text:
        raise ValueError(f"there is no {name}.")
    return text


def _number_of(name: str, field: str, known: dict[str, int]) -> int:
    """Ids are numbered in the order in which they first occur."""
    number = known.get(field)
    if number is not None:
        return number
    text = _stripped(name, field)
    if len(text) > LONGEST_ID:
        raise ValueError(f"the {name} has more than {LONGEST_ID} characters.")
    return known.setdefault(text, len(known))


def _finite(text: str) -> float:
    """A number that is finite in single precision, as Python writes it but for underscores."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST or "_" in text:  # NaN fails every comparison
        raise ValueError(f"rating {text.strip()!r} is no finite number.")
    return value


def _order_of(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The ids in ascending order, whole numbers where all are, and for each text its place."""
    given = list(texts)
    is_numeric = all(PLAIN_NUMBER.fullmatch(text) for text in given)
    ids = np.array(given, np.int64 if is_numeric else np.str_)
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(ids), np.uint32)
    place[order] = np.arange(len(ids), dtype=np.uint32)
    return ids[order], place
