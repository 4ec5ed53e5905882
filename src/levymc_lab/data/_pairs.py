"""Pairs of a user and an item from a person's own table."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ._errors import DataError, at_line
from ._table import text_rows
from ._table_columns import ITEM_NAMES, USER_NAMES

NEEDED = 2
HEADINGS = tuple(  # whole words: `user17` may well be an id
    re.compile(rf"({'|'.join(names)})s?[ _-]?(id|name)?", re.IGNORECASE)
    for names in (USER_NAMES, ITEM_NAMES)
)


class Pairs(NamedTuple):
    """Users and items as they are written, one each a pair, in the order of the file."""

    users: list[str]
    items: list[str]


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
    label = str(path)
    pairs = Pairs([], [])
    width, places = 0, (0, 1)
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        try:
            for line, fields in text_rows(stream, label, delimiter):
                if not width:
                    width = _width(fields, label, line)
                    headed = _headed(fields)
                    if headed is not None:
                        places = headed
                        continue
                if len(fields) != width:
                    reason = f"{len(fields)} fields, where the first line has {width}."
                    raise at_line(label, line, reason)
                _add(pairs, fields, places, label, line)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{label}: this is no text in UTF-8 ({error.reason}). Convert it."
            ) from None
    if not pairs.users:
        raise DataError(f"{label}: there is no pair of a user and an item in it.")
    return pairs


def _width(fields: list[str], label: str, line: int) -> int:
    if len(fields) < NEEDED:
        reason = "1 field. Expected a user and an item, separated by a comma, a semicolon, a tab "
        raise at_line(label, line, reason + "or '::'.")
    return len(fields)


def _headed(fields: list[str]) -> tuple[int, int] | None:
    """The columns by their headings, if the line is one of headings."""
    user, item = (
        [k for k, field in enumerate(fields) if heading.fullmatch(field.strip())]
        for heading in HEADINGS
    )
    return (user[0], item[0]) if len(user) == len(item) == 1 else None


def _add(pairs: Pairs, fields: list[str], places: Sequence[int], label: str, line: int) -> None:
    for name, place, texts in zip(("user", "item"), places, pairs, strict=True):
        text = fields[place].strip()
        if not text:
            raise at_line(label, line, f"there is no {name}.")
        texts.append(text)
