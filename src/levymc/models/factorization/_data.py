"""What the kernels of matrix factorisation are given: compact ratings, and padded factors."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_count, check_floating, check_real, check_unmasked

MOST_LEVELS = 256  # values that a byte can tell apart
MOST_NARROW = 2**16  # items that two bytes can
LINE = 16  # floats of a cache line
MOST_RANK = 61  # with two columns for biases, the bits of a mask but its sign


@dataclass(frozen=True)
class Tables:
    """Factors of users and items, padded with zeros to whole cache lines.

    rank: columns without the biases, which are two more: that of the users, where items have 1, and
        that of the items, where users have 1.  Columns of ones are frozen: they do not move.
    """

    num_users: int
    num_items: int
    rank: int
    has_biases: bool

    @property
    def columns(self) -> int:
        """Without the padding."""
        return self.rank + (2 if self.has_biases else 0)

    @property
    def width(self) -> int:
        """With the padding."""
        return -(-self.columns // LINE) * LINE

    @property
    def attributes(self) -> dict[str, int]:
        """As the kernels expect them: bit k of a mask says that column k is frozen."""
        return {
            "rank": self.columns,
            "user_frozen": 1 << self.columns - 1 if self.has_biases else 0,
            "item_frozen": 1 << self.columns - 2 if self.has_biases else 0,
        }

    def is_frozen(self, name: str, width: int) -> np.ndarray:
        """Which of the first columns are, of "users" or of "items"."""
        behind = {"users": 1, "items": 2}[name]
        return (np.arange(width) == self.columns - behind) & self.has_biases

    def is_moving(self, name: str, width: int) -> np.ndarray:
        """Which of the first columns are neither padding nor frozen."""
        return (np.arange(width) < self.columns) & ~self.is_frozen(name, width)

    def start(self, position: Any) -> dict[str, Array]:
        """The position with its padding and, in frozen columns, ones.

        Args:
            position: {"users": …, "items": …} in float32, with the padding or without.
        """
        self._check(position)
        return {name: self._pad(name, position[name]) for name in ("users", "items")}

    def _pad(self, name: str, table: Any) -> Array:
        wide = jnp.pad(jnp.asarray(table), ((0, 0), (0, self.width - table.shape[1])))
        ones = self.is_frozen(name, self.width).astype(np.float32)
        return jnp.where(self.is_moving(name, self.width), wide, ones)

    def _check(self, position: Any) -> None:
        counts = {"users": self.num_users, "items": self.num_items}
        if not isinstance(position, dict) or set(position) != set(counts):
            raise TypeError(f'`position` must be {{"users": …, "items": …}}, got {position!r}.')
        check_floating("position", position)
        for name, count in counts.items():
            shape, dtype = jnp.shape(position[name]), jnp.result_type(position[name])
            if shape not in ((count, self.rank), (count, self.width)):
                raise ValueError(
                    f"`position[{name!r}]` must have shape ({count}, {self.rank}), or "
                    f"({count}, {self.width}) with its padding, got {shape}."
                )
            if dtype != jnp.float32:
                raise TypeError(
                    f"`position[{name!r}]` must be float32, got {dtype}: the kernel knows no "
                    "other. Convert it with .astype(jnp.float32)."
                )


def check_rank(rank: Any, most: int) -> int:
    count = check_count("rank", rank, "It is the number of columns.")
    if count > most:
        raise ValueError(f"`rank` must be at most {most} here, got {count}. Take fewer columns.")
    return count


class Sorted(NamedTuple):
    """Ratings on the host, sorted by user."""

    raters: np.ndarray
    rated: np.ndarray
    codes: np.ndarray
    levels: np.ndarray
    offsets: np.ndarray


def sort_ratings(
    users: Any, items: Any, ratings: Any, num_users: Any, num_items: Any, center: Any
) -> Sorted:
    """Check the ratings, and sort them by user; those of a user stay in their order."""
    count_users = check_count("num_users", num_users, "It is the number of rows of `users`.")
    count_items = check_count("num_items", num_items, "It is the number of rows of `items`.")
    check_real("ratings", ratings, "Leave out what is missing.")
    check_real("center", center, "It is subtracted from every rating.")
    by_user = _indices("users", users, count_users)
    by_item = _indices("items", items, count_items)
    values = np.asarray(ratings)
    if not by_user.shape == by_item.shape == values.shape or values.ndim != 1 or not values.size:
        raise ValueError(
            "`users`, `items` and `ratings` must be three arrays of one length, got shapes "
            f"{by_user.shape}, {by_item.shape} and {values.shape}. Give one entry a rating."
        )
    levels, codes = _encode(values)
    # Small integers would wrap around, and halves would round the center.
    centered = levels.astype(np.promote_types(levels.dtype, np.float32)) - center
    padded = np.full(MOST_LEVELS, centered[-1], np.float32)
    padded[: len(levels)] = centered
    offsets = np.zeros(count_users + 1, np.int64)
    np.cumsum(np.bincount(by_user, minlength=count_users), out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise ValueError(f"`ratings` must be fewer than 2³¹, got {offsets[-1]}.")
    narrow = by_item.astype(np.uint16 if count_items <= MOST_NARROW else np.uint32)
    order = None if np.all(by_user[1:] >= by_user[:-1]) else np.argsort(by_user, kind="stable")
    raters, rated, kept = (
        array if order is None else array[order]
        for array in (by_user.astype(np.int32), narrow, codes)
    )
    return Sorted(raters, rated, kept, padded, offsets.astype(np.int32))


def _indices(name: str, values: Any, count: int) -> np.ndarray:
    check_unmasked(name, values, "Leave out what is missing.")
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be integers, got {array.dtype}. Number them from 0.")
    if array.size and (array.min() < 0 or array.max() >= count):
        raise ValueError(
            f"`{name}` must lie between 0 and {count - 1}, got {array.min()} to {array.max()}. "
            f"Number them from 0, or raise `num_{name}`."
        )
    return array


def _encode(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values, and the number of each rating's among them."""
    levels, codes = np.unique(values, return_inverse=True)
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"`ratings` must have at most {MOST_LEVELS} different values, got {len(levels)}. "
            "Round them, or use levymc.models.matrix_factorization."
        )
    return levels, codes.astype(np.uint8)
