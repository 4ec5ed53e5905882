"""Lines to columns with a few array operations a block, for lines as they should be."""

import numpy as np

from ._columns import Columns
from ._formats import Format

MOST_DIGITS = 9  # of an id; more do not fit into uint32
DOT, RETURN, ZERO = ord("."), ord("\r"), ord("0")


class UnusualError(Exception):
    """A block to be read line by line: it holds an error, or a number written in a rare manner."""


def parse(block: bytes, kind: Format, scale: tuple[int, ...]) -> Columns:
    """Columns of a block of whole lines.

    Every byte is a digit or one of the marks of its line, in their order, so that there is nothing
    else to look for.

    Raises:
        UnusualError: anything else.
    """
    text = np.frombuffer(block, np.uint8)
    digits = text - np.uint8(ZERO)  # what lies below '0' wraps around and is above 9, too
    marks = np.flatnonzero(digits > 9)
    kinds = text[marks]
    is_dot = kinds == DOT
    num_dots = np.count_nonzero(is_dot)
    marks, kinds = _without_returns(text, marks[~is_dot], kinds[~is_dot])
    places = _by_line(marks, kinds, kind)
    wide = len(kind.separator)
    user_end, item_end, rating_end = (places[wide * field] for field in range(3))
    line_end = places[-1]
    item, rating, time = (places[wide * field - 1] + 1 for field in (1, 2, 3))
    user = np.concatenate([[0], line_end[:-1] + 1])
    _require(np.all(line_end > time + (text[line_end - 1] == RETURN)))
    halves, used_dots = _half_stars(digits, text, rating, rating_end, scale)
    _require(used_dots == num_dots)
    return Columns(_whole(digits, user, user_end), _whole(digits, item, item_end), halves)


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise UnusualError


def _without_returns(
    text: np.ndarray, marks: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Drop the \\r of \\r\\n."""
    is_return = kinds == RETURN
    if not is_return.any():
        return marks, kinds
    _require(np.all(text[marks[is_return] + 1] == ord("\n")))
    return marks[~is_return], kinds[~is_return]


def _by_line(marks: np.ndarray, kinds: np.ndarray, kind: Format) -> np.ndarray:
    """Where the marks stand: one row for each mark of a line, one column for each line."""
    expected = kind.marks
    _require(len(marks) % len(expected) == 0)
    _require(np.all(kinds.reshape(-1, len(expected)) == expected))
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
        pointed = start if num_points == len(start) else start[has_point]
        _require(np.all(text[pointed + 1] == DOT))
        tenths = digits[pointed + 2]
        _require(np.all((tenths == 0) | (tenths == 5)))
        if num_points == len(start):
            halves += tenths == 5
        else:
            halves[has_point] += tenths == 5
    is_known = np.zeros(256, bool)
    is_known[list(scale)] = True
    _require(is_known[halves].all())
    return halves, num_points
