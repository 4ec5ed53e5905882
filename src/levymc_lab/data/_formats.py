"""The three formats in which MovieLens ratings are published, and their lines as columns.

Lines as they should be take a few array operations per block; all others are read one by one, to
report what is wrong where, and to take numbers that are written in a rare manner.
"""

import re
from typing import NamedTuple

import numpy as np

from ._dataset import at_line

HEADER = b"userId,movieId,rating,timestamp"
FIELDS = ("user", "item", "rating", "timestamp")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN = 60  # characters of a foreign line in a message
HALF_STARS = tuple(range(1, 11))  # 0.5, 1, …, 5 stars, counted in halves
WHOLE_STARS = tuple(range(2, 11, 2))
MOST_DIGITS = 9  # of an id read fast; more do not fit into uint32
LARGEST_ID = 2**63 - 1
REMEDY = "Correct it; a table of your own is read by levymc_lab.data.read_table."
WHOLE = re.compile(r"[0-9]+")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")


class Format(NamedTuple):
    """User, item, rating and timestamp, one rating per line.

    Attributes:
        name: as `levymc_lab.data.write` takes it.
        separator: between the fields.
        header: the first line, or nothing.
        filename: as in the official archives.
    """

    name: str
    separator: bytes
    header: bytes
    filename: str

    @property
    def first_line(self) -> int:
        """The number of the first line with a rating."""
        return 2 if self.header else 1


TAB = Format("tab", b"\t", b"", "u.data")
DAT = Format("dat", b"::", b"", "ratings.dat")
CSV = Format("csv", b",", HEADER, "ratings.csv")
FORMATS = {one.name: one for one in (TAB, DAT, CSV)}
FILENAMES = tuple(one.filename for one in FORMATS.values())


class Columns(NamedTuple):
    """What is read of some lines, in the order of the file.

    Attributes:
        users: ids.
        items: ids.
        halves: ratings in half stars, uint8.
    """

    users: np.ndarray
    items: np.ndarray
    halves: np.ndarray


class UnusualError(Exception):
    """A block to be read line by line: it holds an error, or a number written in a rare manner."""


def recognise(block: bytes, label: str) -> tuple[Format, bytes]:
    """The format that a file begins in, and its first block without a header.

    Raises:
        DataError: it is none of them.
    """
    block = block.removeprefix(BYTE_ORDER_MARK)
    line, _, rest = block.partition(b"\n")
    line = line.rstrip(b"\r")
    if line == HEADER:
        return CSV, rest
    for candidate in (DAT, TAB):
        if line.count(candidate.separator) == 3:
            return candidate, block
    shown = line[:SHOWN].decode("utf-8", "replace")
    raise at_line(
        label,
        1,
        f"this is no MovieLens file: its first line is {shown!r}. Expected the header "
        f"{HEADER.decode()!r}, or user, item, rating and timestamp between tabs or '::'. "
        "For a table of your own use levymc_lab.data.read_table.",
    )


def parse(block: bytes, kind: Format, scale: tuple[int, ...], label: str, line: int) -> Columns:
    r"""Columns of a block of whole lines.

    Args:
        block: the lines, each with ``\n`` at its end.
        kind: their format.
        scale: the known ratings in half stars.
        label: the file's name in messages.
        line: the number of the first line.

    Raises:
        DataError: the first fault, with its line.
    """
    try:
        return parse_fast(block, kind, scale)
    except UnusualError:
        return parse_carefully(block, kind, scale, label, line)


# All lines of a block at once.


def parse_fast(block: bytes, kind: Format, scale: tuple[int, ...]) -> Columns:
    """Columns of a block in which every byte is a digit or one of the marks of its line.

    Raises:
        UnusualError: anything else.
    """
    text = np.frombuffer(block, np.uint8)
    digits = text - np.uint8(ord("0"))  # what lies below '0' wraps around and is above 9, too
    marks = np.flatnonzero(digits > 9)
    is_dot = text[marks] == ord(".")
    places = _by_line(text, marks[~is_dot], kind)
    wide = len(kind.separator)
    user_end, item_end, rating_end = (places[wide * field] for field in range(3))
    item, rating, time = (places[wide * field - 1] + 1 for field in (1, 2, 3))
    line_end = places[-1]
    user = np.concatenate([[0], line_end[:-1] + 1])
    _require(np.all(line_end > time))
    halves, used_dots = _half_stars(digits, text, rating, rating_end, scale)
    _require(used_dots == np.count_nonzero(is_dot))
    return Columns(_whole(digits, user, user_end), _whole(digits, item, item_end), halves)


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise UnusualError


def _by_line(text: np.ndarray, marks: np.ndarray, kind: Format) -> np.ndarray:
    """Where the marks stand: one row for each mark of a line, one column for each line."""
    expected = np.frombuffer(kind.separator * 3 + b"\n", np.uint8)
    _require(len(marks) % len(expected) == 0)
    _require(np.all(text[marks].reshape(-1, len(expected)) == expected))
    places = np.ascontiguousarray(marks.reshape(-1, len(expected)).T)
    if len(kind.separator) == 2:
        _require(all(np.all(places[k + 1] == places[k] + 1) for k in (0, 2, 4)))
    return places


def _whole(digits: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The whole numbers in [start, end), the last digit first."""
    lengths = end - start
    longest = int(lengths.max())
    _require(lengths.min() >= 1 and longest <= MOST_DIGITS)
    place = end - 1
    _require(np.all((digits[start] > 0) | (lengths == 1)))  # else 07 and 7 would be the same
    number = digits[place].astype(np.uint32)
    for power in range(1, longest):
        place -= 1
        # Where the number is over, this is some other byte, perhaps of the block's end.
        digit = digits[place] * (lengths > power)
        number += digit * np.uint32(10**power)
    return number


def _half_stars(
    digits: np.ndarray, text: np.ndarray, start: np.ndarray, end: np.ndarray, scale: tuple[int, ...]
) -> tuple[np.ndarray, int]:
    """Ratings written as `4` or `3.5`, in half stars, and how many points they hold."""
    lengths = end - start
    has_point = lengths == 3
    num_points = int(np.count_nonzero(has_point))
    _require(num_points + np.count_nonzero(lengths == 1) == len(lengths))
    halves = 2 * digits[start]
    if num_points:
        tenths = digits[start + 2]
        is_half = has_point & (tenths == 5)
        is_whole = has_point & (tenths == 0)
        _require(np.count_nonzero(is_half | is_whole) == num_points)
        _require(np.all(text[start + 1][has_point] == ord(".")))
        halves += is_half
    is_known = np.zeros(256, bool)
    is_known[list(scale)] = True
    _require(is_known[halves].all())
    return halves, num_points


# One line after the other.


def parse_carefully(
    block: bytes, kind: Format, scale: tuple[int, ...], label: str, line: int
) -> Columns:
    """Columns of a block of lines, or the DataError of the first fault."""
    rows = []
    for number, text in enumerate(block.removesuffix(b"\n").split(b"\n"), start=line):
        try:
            rows.append(_row(text, kind, scale))
        except ValueError as error:
            raise at_line(label, number, str(error)) from None
    users, items, halves = zip(*rows, strict=True)
    ids = (np.array(users, np.int64), np.array(items, np.int64))
    return Columns(*ids, np.array(halves, np.uint8))


def _row(text: bytes, kind: Format, scale: tuple[int, ...]) -> tuple[int, int, int]:
    if not text:
        raise ValueError("an empty line. Each line must hold a rating.")
    separator = kind.separator.decode()
    fields = text.decode("utf-8", "backslashreplace").split(separator)
    if len(fields) != len(FIELDS):
        shown = text[:SHOWN].decode("utf-8", "backslashreplace")
        raise ValueError(
            f"{len(fields)} fields in {shown!r}. Expected {len(FIELDS)}, separated by "
            f"{separator!r}: {', '.join(FIELDS)}."
        )
    user, item, rating, time = fields
    row = _id("user", user), _id("item", item), _stars(rating, scale)
    _check_whole("timestamp", time)
    return row


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _check_whole(field: str, text: str) -> None:
    if not WHOLE.fullmatch(text):
        raise ValueError(f"{field} {_short(text)!r} is no whole number. {REMEDY}")


def _id(field: str, text: str) -> int:
    _check_whole(field, text)
    if text.startswith("0") and text != "0":
        raise ValueError(
            f"{field} {_short(text)!r} begins with a zero, which a number does not keep. {REMEDY}"
        )
    if len(text) > 20 or int(text) > LARGEST_ID:
        raise ValueError(f"{field} {_short(text)!r} is larger than {LARGEST_ID}. {REMEDY}")
    return int(text)


def _stars(text: str, scale: tuple[int, ...]) -> int:
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"rating {_short(text)!r} is no number. {REMEDY}")
    halves = 2 * float(text)
    if halves not in scale:
        known = ", ".join(f"{half / 2:g}" for half in scale)
        raise ValueError(f"unknown rating {_short(text)!r}. Known are {known}.")
    return int(halves)
