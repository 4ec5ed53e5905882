"""Ratings in three bytes each, sorted by user, as the fast matrix factorisation wants them."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_count, check_positive, check_real

MOST_LEVELS = 256  # values that a byte can tell apart
MOST_NARROW = 2**16  # items that two bytes can


class Ratings(NamedTuple):
    """What a step of the fast model reads.

    rated, codes: of each rating, in the order of the users, its item and its value's number;
        empty for the road through numba, which has them on the host.
    levels: the values, less the center; the last is repeated up to 256.
    offsets: where the ratings of each user begin, and their number at the end.
    raters: the user of each rating, for the road through JAX alone; otherwise empty.
    user_steps, user_noises, item_steps, item_noises: m and m^{1/α} of each row, or empty.
    quantiles: see `levymc.stable.quantile_table`.
    """

    rated: Array
    codes: Array
    levels: Array
    offsets: Array
    raters: Array
    user_steps: Array
    user_noises: Array
    item_steps: Array
    item_noises: Array
    quantiles: Array


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
    padded = np.full(MOST_LEVELS, levels[-1] - center, np.float32)
    padded[: len(levels)] = levels - center
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


def to_ratings(ordered: Sorted, preconditioner: Any, alpha: float, quantiles: Any) -> Ratings:
    """All that a step reads, as JAX arrays, without the raters."""
    none = np.zeros(0, np.float32)
    steps = [none, none] if preconditioner is None else preconditioner
    of_rows = [f for m in steps for f in (m, (m.astype(np.float64) ** (1 / alpha)))]
    arrays = [ordered.rated, ordered.codes, ordered.levels, ordered.offsets, np.zeros(0, np.int32)]
    tables = [np.asarray(row, np.float32) for row in [*of_rows, quantiles]]
    return Ratings(*(jnp.asarray(array) for array in arrays + tables))


def check_preconditioner(value: Any, num_users: int, num_items: int) -> list[np.ndarray] | None:
    """The rows' m of users and items, in float32."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"users", "items"}:
        raise TypeError(
            f"`preconditioner` must have one number a row, got {value!r}. "
            'Such as {"users": …, "items": …}, with as many numbers as there are of them.'
        )
    rows = []
    for name, count in (("users", num_users), ("items", num_items)):
        check_positive("preconditioner", value[name], "It multiplies the step size of the row.")
        row = np.asarray(value[name], np.float32)
        if row.shape != (count,):
            raise ValueError(
                f"`preconditioner[{name!r}]` must have shape ({count},), got {row.shape}. "
                "Give one number a row."
            )
        rows.append(row)
    return rows


def _indices(name: str, values: Any, count: int) -> np.ndarray:
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
