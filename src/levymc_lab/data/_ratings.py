"""Ratings as compact arrays: their order, and random parts of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc._checks import check_key, check_seed

from ._dataset import DataError, at_line

CHUNK = 2**20
WORD_BITS = 64
ROUNDING = 1e-9  # that a sum such as 0.7 + 0.2 + 0.1 may be off by


class Ratings(NamedTuple):
    """Who rated what, and how; sorted by user, then item, with no pair twice.

    Attributes:
        users: uint32, one for each rating, an index into `user_ids`.
        items: an index into `item_ids`; uint16 where there are at most 65536, else uint32.
        codes: an index into `levels`; uint8 where there are at most 256 levels.
        levels: float32, the ratings that occur, ascending.
        user_ids: the ids in the source, int64 or str, ascending.
        item_ids: likewise.

    Examples:
        >>> import levymc_lab.data
        >>> ratings = levymc_lab.data.synthetic(num_users=30, num_items=40, num_ratings=500, seed=1)
        >>> ratings.num_ratings, ratings.num_users, ratings.num_items
        (500, 30, 40)
        >>> ratings.values[:3] == ratings.levels[ratings.codes[:3]]
        array([ True,  True,  True])
    """

    users: np.ndarray
    items: np.ndarray
    codes: np.ndarray
    levels: np.ndarray
    user_ids: np.ndarray
    item_ids: np.ndarray

    # No __len__: it would make tuple methods such as _replace fail.
    @property
    def num_ratings(self) -> int:
        """How many ratings there are."""
        return len(self.users)

    @property
    def num_users(self) -> int:
        """How many users there are, also those with no rating in this part of a split."""
        return len(self.user_ids)

    @property
    def num_items(self) -> int:
        """How many items there are, also those with no rating in this part of a split."""
        return len(self.item_ids)

    @property
    def values(self) -> np.ndarray:
        """The ratings as float32."""
        return self.levels[self.codes]


def item_type(count: int) -> type[np.unsignedinteger]:
    """The type of `Ratings.items`."""
    return np.uint16 if count <= 2**16 else np.uint32


def indexed(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids that occur, ascending, and each entry as an index into them."""
    largest = int(ids.max())
    if largest > 4 * len(ids) + 2**20:  # a table of all numbers up to there would be too large
        names, index = np.unique(ids, return_inverse=True)
        return names.astype(np.int64), index.astype(np.uint32)
    # By chunks, because NumPy makes 64-bit indices of what it is given.
    chunks = [slice(begin, begin + CHUNK) for begin in range(0, len(ids), CHUNK)]
    occurs = np.zeros(largest + 1, bool)
    for rows in chunks:
        occurs[ids[rows]] = True
    place = np.cumsum(occurs, dtype=np.uint32) - np.uint32(1)
    index = np.empty(len(ids), np.uint32)
    for rows in chunks:
        index[rows] = place[ids[rows]]
    return np.flatnonzero(occurs).astype(np.int64), index


def in_order(rows: Ratings, label: str, line_of: Callable[[int], int]) -> Ratings:
    """Sort ratings, and give their items the narrowest type.

    Args:
        rows: in any order, with uint32 for users and items.
        label: the file's name in messages.
        line_of: the line of a row.

    Raises:
        DataError: a user rated an item twice.
    """
    ordered = rows
    if not _is_sorted(rows):
        ordered = _sorted(rows)
        if not _is_sorted(ordered):
            raise repeat_at(rows, *next(repeats(rows)), label, line_of)
    return ordered._replace(items=ordered.items.astype(item_type(rows.num_items)))


def _is_sorted(rows: Ratings) -> bool:
    """Whether each pair comes before the next; so that none occurs twice."""
    users, items = rows.users, rows.items
    is_next_user = users[1:] > users[:-1]
    is_next_item = (users[1:] == users[:-1]) & (items[1:] > items[:-1])
    return bool(np.all(is_next_user | is_next_item))


def _sorted(rows: Ratings) -> Ratings:
    """The rows by user, then item."""
    sizes = (rows.num_users, rows.num_items, len(rows.levels))
    user_bits, item_bits, code_bits = ((size - 1).bit_length() for size in sizes)
    if user_bits + item_bits + code_bits > WORD_BITS:
        return rows_of(rows, np.lexsort((rows.items, rows.users)))
    # One word a row: to sort words is far faster than to find their order.
    words = rows.users.astype(np.uint64)
    words <<= np.uint64(item_bits)
    words |= rows.items
    words <<= np.uint64(code_bits)
    words |= rows.codes
    words.sort()
    codes = (words & np.uint64(2**code_bits - 1)).astype(rows.codes.dtype)
    words >>= np.uint64(code_bits)
    items = (words & np.uint64(2**item_bits - 1)).astype(np.uint32)
    users = (words >> np.uint64(item_bits)).astype(np.uint32)
    return rows._replace(users=users, items=items, codes=codes)


def repeats(rows: Ratings) -> Iterator[tuple[int, int]]:
    """Each row with a pair that was there before, in order, and the first row with that pair."""
    users, items = rows.users, rows.items
    order = np.lexsort((items, users))  # stable: the same pairs stay in the order of the file
    is_same = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    place = np.flatnonzero(np.append(False, is_same))
    begins = np.maximum.accumulate(np.where(np.append(True, ~is_same), np.arange(len(order)), 0))
    later, first = order[place], order[begins[place]]
    for row in np.argsort(later):
        yield int(later[row]), int(first[row])


def repeat_at(
    rows: Ratings, later: int, first: int, label: str, line_of: Callable[[int], int]
) -> DataError:
    """The fault of a row with a pair that was there before."""
    user, item = rows.user_ids[rows.users[later]], rows.item_ids[rows.items[later]]
    reason = f"user {user} rates item {item} again, after line {line_of(first)}. Keep one of them."
    return at_line(label, line_of(later), reason)


def rows_of(ratings: Ratings, chosen: np.ndarray) -> Ratings:
    return ratings._replace(
        users=ratings.users[chosen], items=ratings.items[chosen], codes=ratings.codes[chosen]
    )


def split(
    ratings: Ratings, key_or_seed: Any, fractions: Sequence[float] = (0.9, 0.1)
) -> tuple[Ratings, ...]:
    """Divide ratings at random into parts of given fractions, exact to one rating.

    Every rating is as likely as any other to fall into a part; the parts keep the ids of the whole,
    so that users and items have the same index in each.  The division depends on the ratings and
    the seed only: it is made of the raw words of a generator that is the same in every version of
    NumPy.

    Args:
        ratings: what to divide.
        key_or_seed: a non-negative integer, or a JAX key.
        fractions: positive, with sum 1; (0.8, 0.1, 0.1) for training, validation and test.

    Returns:
        A part for each fraction, sorted like the whole.

    Raises:
        ValueError, TypeError: fractions or a seed that are none; a part that would be empty.

    Examples:
        >>> import levymc_lab.data
        >>> whole = levymc_lab.data.synthetic(num_users=30, num_items=40, num_ratings=500)
        >>> [part.num_ratings for part in levymc_lab.data.split(whole, 0)]
        [450, 50]
        >>> [part.num_ratings for part in levymc_lab.data.split(whole, 0, (0.8, 0.1, 0.1))]
        [400, 50, 50]
    """
    ends = _ends(ratings.num_ratings, fractions)
    words = _distinct_words(ratings.num_ratings, _seed(key_or_seed))
    borders = np.partition(words, ends[:-1] - 1)[ends[:-1] - 1] if len(ends) > 1 else words[:0]
    part_of = np.searchsorted(borders, words).astype(np.uint8)
    return tuple(rows_of(ratings, part_of == number) for number in range(len(ends)))


def _ends(count: int, fractions: Sequence[float]) -> np.ndarray:
    """How many ratings lie in each part and those before it."""
    shares = np.asarray(fractions, float)
    if shares.ndim != 1 or not 1 <= len(shares) <= 255 or not np.all(shares > 0):
        raise ValueError(f"`fractions` must be positive, got {fractions}. Give (0.9, 0.1), say.")
    if abs(shares.sum() - 1) > ROUNDING:
        raise ValueError(
            f"`fractions` must have the sum 1, got {fractions} with sum {shares.sum():g}. "
            "To leave ratings out, give them a part of their own."
        )
    ends = np.rint(np.cumsum(shares) * count).astype(int)
    if np.any(np.diff(ends, prepend=0) == 0):
        raise ValueError(
            f"`fractions` {fractions} leave a part of {count} ratings empty. Take larger ones."
        )
    return ends


def _distinct_words(count: int, seed: tuple[int, ...]) -> np.ndarray:
    """Random words in which the lowest bits are the row, so that no two are the same."""
    row_bits = np.uint64(max(1, (count - 1).bit_length()))
    words = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(count)
    return (words >> row_bits << row_bits) | np.arange(count, dtype=np.uint64)


def _seed(key_or_seed: Any) -> tuple[int, ...]:
    if isinstance(key_or_seed, jax.Array | np.ndarray) and (
        key_or_seed.ndim or jax.dtypes.issubdtype(key_or_seed.dtype, jax.dtypes.prng_key)
    ):
        words = jax.random.key_data(check_key(key_or_seed))
        # A seed is one number, so that no key gives the division of a seed.
        return (int(words.size), *(int(word) for word in np.asarray(words).ravel()))
    return (check_seed("key_or_seed", key_or_seed, "Give 0, say.", "an integer or a JAX key"),)
