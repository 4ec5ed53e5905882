"""Lines to columns one by one, to say what is wrong where, and to read numbers written rarely."""

import re

import numpy as np

from ._columns import Columns
from ._errors import at_line
from ._formats import Format

WHOLE = re.compile(r"[0-9]+")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
LARGEST_ID = 2**63 - 1
FIELDS = ("user", "item", "rating", "timestamp")


def parse(block: bytes, kind: Format, scale: tuple[int, ...], label: str, line: int) -> Columns:
    """Columns of a block of whole lines.

    Args:
        block: the lines.
        kind: their format.
        scale: the known ratings in half stars.
        label: the file's name in messages.
        line: the number of the first line.

    Raises:
        DataError: the first fault, with its line.
    """
    rows = []
    for number, text in enumerate(block.removesuffix(b"\n").split(b"\n"), start=line):
        try:
            rows.append(_row(text.removesuffix(b"\r"), kind, scale))
        except ValueError as error:
            raise at_line(label, number, str(error)) from None
    users, items, halves = zip(*rows, strict=True)
    ids = (np.array(users, np.int64), np.array(items, np.int64))
    return Columns(*ids, np.array(halves, np.uint8))


def _row(text: bytes, kind: Format, scale: tuple[int, ...]) -> tuple[int, int, int]:
    if not text:
        raise ValueError("an empty line. Each line must hold a rating.")
    fields = text.decode("utf-8", "backslashreplace").split(kind.separator.decode())
    if len(fields) != len(FIELDS):
        raise ValueError(
            f"{len(fields)} fields in {_shown(text)}. Expected {len(FIELDS)}, separated by "
            f"{kind.separator.decode()!r}: {', '.join(FIELDS)}."
        )
    user, item, rating, time = fields
    row = _id("user", user), _id("item", item), _half_stars(rating, scale)
    if not WHOLE.fullmatch(time):
        raise ValueError(f"timestamp {time!r} is no whole number.")
    return row


def _id(field: str, text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise ValueError(f"{field} {text!r} is no whole number.")
    if len(text) > 20 or int(text) > LARGEST_ID:
        raise ValueError(f"{field} {text!r} is larger than {LARGEST_ID}.")
    return int(text)


def _half_stars(text: str, scale: tuple[int, ...]) -> int:
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"rating {text!r} is no number.")
    halves = 2 * float(text)
    if halves not in scale:
        known = ", ".join(f"{half / 2:g}" for half in scale)
        raise ValueError(f"unknown rating {text!r}. Known are {known}.")
    return int(halves)


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "backslashreplace"))
