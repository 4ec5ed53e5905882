"""Ratings from a person's own table."""

import csv
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ._assemble import assemble
from ._errors import DataError, at_line
from ._ratings import Ratings, smallest_unsigned
from ._table_columns import choose_columns, finite
from ._table_ids import LONGEST_ID, order_of

DELIMITERS = ("::", "\t", ";", ",")


class _Rows(NamedTuple):
    """Users, items and ratings as numbers in the order of their first occurrence, and lines."""

    users: dict[str, int]
    items: dict[str, int]
    user: array
    item: array
    rating: array
    line: array


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
    label = str(path)
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        try:
            rows = _read(stream, label, columns, delimiter)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{label}: this is no text in UTF-8 ({error.reason}). Convert it."
            ) from None
    if not rows.rating:
        raise DataError(f"{label}: there is no rating in it.")
    return _ratings(rows, label)


def _read(
    stream: IO[str], label: str, columns: Sequence[str | int] | None, delimiter: str | None
) -> _Rows:
    lines = text_rows(stream, label, delimiter)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{label}: the file is empty.")
    line, fields = first
    try:
        places, has_header = choose_columns(fields, columns)
    except ValueError as error:
        raise at_line(label, line, str(error)) from None
    rows = _Rows({}, {}, array("q"), array("q"), array("d"), array("q"))
    if not has_header:
        _add(rows, fields, places, len(fields), label, line)
    for line, row in lines:
        _add(rows, row, places, len(fields), label, line)
    return rows


def text_rows(
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


def _add(
    rows: _Rows, fields: list[str], places: tuple[int, ...], width: int, label: str, line: int
) -> None:
    if len(fields) != width:
        raise at_line(label, line, f"{len(fields)} fields, where the first line has {width}.")
    user, item, rating = fields[places[0]], fields[places[1]], fields[places[2]]
    try:
        rows.user.append(_number_of("user", user, rows.users))
        rows.item.append(_number_of("item", item, rows.items))
        rows.rating.append(finite(rating))
    except ValueError as error:
        raise at_line(label, line, f"{error}") from None
    rows.line.append(line)


def _number_of(name: str, field: str, known: dict[str, int]) -> int:
    """Ids are numbered in the order in which they first occur."""
    number = known.get(field)
    if number is not None:
        return number
    text = field.strip()
    if not text:
        raise ValueError(f"there is no {name}.")
    if len(text) > LONGEST_ID:
        raise ValueError(f"the {name} has more than {LONGEST_ID} characters.")
    return known.setdefault(text, len(known))


def _ratings(rows: _Rows, label: str) -> Ratings:
    user_ids, user_order = order_of(rows.users)
    item_ids, item_order = order_of(rows.items)
    values = np.frombuffer(rows.rating).astype(np.float32)
    levels, codes = np.unique(values, return_inverse=True)
    return assemble(
        user_ids,
        user_order[np.frombuffer(rows.user, np.int64)],
        item_ids,
        item_order[np.frombuffer(rows.item, np.int64)],
        codes.astype(smallest_unsigned(len(levels))),
        levels,
        label,
        rows.line.__getitem__,
    )
