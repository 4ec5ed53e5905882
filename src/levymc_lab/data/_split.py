"""Random parts of ratings, the same for the same seed."""

import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from levymc._checks import check_key

from ._ratings import Ratings

ROUNDING = 1e-9  # that a sum such as 0.7 + 0.2 + 0.1 may be off by


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
    return tuple(_part(ratings, part_of == number) for number in range(len(ends)))


def _part(whole: Ratings, chosen: np.ndarray) -> Ratings:
    return whole._replace(
        users=whole.users[chosen], items=whole.items[chosen], codes=whole.codes[chosen]
    )


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
    if isinstance(key_or_seed, jax.Array | np.ndarray) and np.ndim(key_or_seed) + _is_key(
        key_or_seed
    ):
        words = jax.random.key_data(check_key(key_or_seed))
        # A seed is one number, so that no key gives the division of a seed.
        return (int(words.size), *(int(word) for word in np.asarray(words).ravel()))
    try:
        seed = operator.index(key_or_seed)
    except TypeError:
        raise TypeError(
            f"`key_or_seed` must be an integer or a JAX key, got {key_or_seed!r}. Give 0, say."
        ) from None
    if seed < 0:
        raise ValueError(f"`key_or_seed` must not be negative, got {seed}. Give 0, say.")
    return (seed,)


def _is_key(value: Any) -> bool:
    return jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
