"""Columns of ids to sorted indices, with no pair twice."""

from collections.abc import Callable

import numpy as np

from ._errors import at_line
from ._ratings import Ratings, item_type

CHUNK = 2**20


def indexed(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids that occur, ascending, and each entry as an index into them."""
    largest = int(ids.max())
    if largest > 4 * len(ids) + 2**20:  # a table of all numbers up to there would be too large
        names, index = np.unique(ids, return_inverse=True)
        return names.astype(np.int64), index.astype(np.uint32)
    # By chunks, because NumPy makes 64-bit indices of what it is given.
    occurs = np.zeros(largest + 1, bool)
    for rows in _chunks(len(ids)):
        occurs[ids[rows]] = True
    place = np.cumsum(occurs, dtype=np.uint32) - np.uint32(1)
    index = np.empty(len(ids), np.uint32)
    for rows in _chunks(len(ids)):
        index[rows] = place[ids[rows]]
    return np.flatnonzero(occurs).astype(np.int64), index


def _chunks(count: int) -> list[slice]:
    return [slice(begin, begin + CHUNK) for begin in range(0, count, CHUNK)]


def assemble(
    user_ids: np.ndarray,
    users: np.ndarray,
    item_ids: np.ndarray,
    items: np.ndarray,
    codes: np.ndarray,
    levels: np.ndarray,
    label: str,
    line_of: Callable[[int], int],
) -> Ratings:
    """Ratings of rows in any order.

    Args:
        user_ids: ascending.
        users: uint32 indices into them, one a row.
        item_ids: ascending.
        items: uint32 indices into them.
        codes: indices into `levels`.
        levels: the ratings.
        label: the file's name in messages.
        line_of: the line of a row.

    Raises:
        DataError: a user rated an item twice.
    """
    given = users, items
    if not _is_sorted(*given):
        sizes = len(user_ids), len(item_ids), len(levels)
        users, items, codes = _sorted(users, items, codes, sizes)
        if not _is_sorted(users, items):
            first, later = _repeat(*given)
            user, item = user_ids[given[0][later]], item_ids[given[1][later]]
            raise at_line(
                label,
                line_of(later),
                f"user {user} rates item {item} again, after line {line_of(first)}. "
                "Keep one of them.",
            )
    items = items.astype(item_type(len(item_ids)))
    return Ratings(users, items, codes, levels, user_ids, item_ids)


def _is_sorted(users: np.ndarray, items: np.ndarray) -> bool:
    """Whether each pair comes before the next; so that none occurs twice."""
    is_next_user = users[1:] > users[:-1]
    is_next_item = (users[1:] == users[:-1]) & (items[1:] > items[:-1])
    return bool(np.all(is_next_user | is_next_item))


def _sorted(
    users: np.ndarray, items: np.ndarray, codes: np.ndarray, sizes: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows by user, then item."""
    user_bits, item_bits, code_bits = ((size - 1).bit_length() for size in sizes)
    if user_bits + item_bits + code_bits > 64:
        order = np.lexsort((items, users))
        return users[order], items[order], codes[order]
    # One word a row: to sort words is far faster than to find their order.
    words = users.astype(np.uint64)
    words <<= np.uint64(item_bits)
    words |= items
    words <<= np.uint64(code_bits)
    words |= codes
    words.sort()
    codes = (words & np.uint64(2**code_bits - 1)).astype(codes.dtype)
    words >>= np.uint64(code_bits)
    items = (words & np.uint64(2**item_bits - 1)).astype(np.uint32)
    return (words >> np.uint64(item_bits)).astype(np.uint32), items, codes


def _repeat(users: np.ndarray, items: np.ndarray) -> tuple[int, int]:
    """The first row with a pair that was there before, and where; that one first."""
    order = np.lexsort((items, users))  # stable: the same pairs stay in the order of the file
    is_same = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    later = int(order[np.flatnonzero(is_same) + 1].min())
    return int(np.flatnonzero((users == users[later]) & (items == items[later]))[0]), later
