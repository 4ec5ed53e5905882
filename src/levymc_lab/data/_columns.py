"""What is read of a block of lines."""

from typing import NamedTuple

import numpy as np

HALF_STARS = tuple(range(1, 11))  # 0.5, 1, …, 5 stars, counted in halves
WHOLE_STARS = tuple(range(2, 11, 2))


class Columns(NamedTuple):
    """The columns of some lines, in the order of the file.

    Attributes:
        users: ids.
        items: ids.
        halves: ratings in half stars, uint8.
    """

    users: np.ndarray
    items: np.ndarray
    halves: np.ndarray


def joined(parts: list[Columns]) -> Columns:
    """All lines of a file; uses the parts up, so that one column at a time is there twice."""
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    arrays = []
    for column in columns:
        arrays.append(np.concatenate(column))
        column.clear()
    return Columns(*arrays)
