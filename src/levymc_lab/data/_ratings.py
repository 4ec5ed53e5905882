"""Ratings as compact arrays."""

from typing import NamedTuple

import numpy as np


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


def smallest_unsigned(count: int) -> type[np.unsignedinteger]:
    """The narrowest type that indexes `count` things."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if count <= np.iinfo(kind).max + 1:
            return kind
    return np.uint64


def item_type(count: int) -> type[np.unsignedinteger]:
    """The type of `Ratings.items`."""
    return np.uint16 if count <= 2**16 else np.uint32
