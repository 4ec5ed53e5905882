r"""Made ratings of any size, for readers, speed and memory where the true ones cannot be had."""

from typing import NamedTuple

import numpy as np

from levymc._checks import check_count

from ._made_pairs import made_pairs
from ._ratings import Ratings, item_type

FEWEST_A_USER = 20  # as in every MovieLens set
ID_SPREAD = 5  # MovieLens numbers also the movies that it leaves out
MEAN = 3.5
USER_SPREAD, ITEM_SPREAD, TASTE_SPREAD = 0.4, 0.5, 0.4  # standard deviations, in stars
CHUNK = 2**20


class Size(NamedTuple):
    """How large a set of ratings is."""

    num_users: int
    num_items: int
    num_ratings: int


SIZES = {
    "ml-100k": Size(943, 1682, 100_000),
    "ml-1m": Size(6040, 3706, 1_000_209),
    "ml-10m": Size(71_567, 10_681, 10_000_054),
    "ml-20m": Size(138_493, 27_278, 20_000_263),
}


def synthetic(
    num_users: int,
    num_items: int,
    num_ratings: int,
    *,
    seed: int = 0,
    rank: int = 8,
    noise: float = 0.75,
) -> Ratings:
    r"""Made half-star ratings with a planted low-rank structure:

    .. math:: r_{ui} = \mathrm{round}_{½}\bigl(3.5 + b_u + c_i + p_u \cdot q_i + σ ε\bigr),
       \qquad b_u, c_i, ε \text{ Gaussian},\ p_u, q_i \in ℝ^{rank},

    and what lies outside ½ … 5 stars becomes the nearer of them.  The numbers of ratings of users
    and of items are as skewed as those of MovieLens 20M: for a user log-normal with 20 at least,
    for the item of rank k proportional to :math:`e^{-11.1 (k/I)^{0.437}}`.  Not valid for any
    statement about people: these are not MovieLens ratings.

    Args:
        num_users: each rates an item at least.
        num_items: each is rated at least once.
        num_ratings: exactly as many; at most half of all pairs.
        seed: the same seed gives the same ratings (in one version of NumPy).
        rank: of the planted structure.
        noise: σ, in stars; with rounding, no prediction has a smaller error.

    Raises:
        ValueError: sizes for which there is no such set.

    Examples:
        >>> import levymc_lab.data
        >>> size = levymc_lab.data.SIZES["ml-20m"]
        >>> size.num_ratings
        20000263
        >>> levymc_lab.data.synthetic(943, 1682, 100_000).num_items
        1682
    """
    size = _checked(num_users, num_items, num_ratings)
    generator = np.random.default_rng(seed)
    users, items = made_pairs(*size, min(FEWEST_A_USER, num_ratings // num_users), generator)
    codes = _codes(users, items, size, check_count("rank", rank, "8, say."), noise, generator)
    numbers = generator.choice(ID_SPREAD * num_items, num_items, replace=False, shuffle=False)
    return Ratings(
        users,
        items.astype(item_type(num_items)),
        codes,
        np.arange(1, 11, dtype=np.float32) / 2,
        np.arange(1, num_users + 1),
        np.sort(numbers).astype(np.int64) + 1,
    )


def _checked(num_users: int, num_items: int, num_ratings: int) -> Size:
    remedy = "See levymc_lab.data.SIZES for those of MovieLens."
    users = check_count("num_users", num_users, remedy)
    items = check_count("num_items", num_items, remedy)
    ratings = check_count("num_ratings", num_ratings, remedy)
    if not 2 * max(users, items) <= ratings <= users * items / 2:
        raise ValueError(
            f"`num_ratings` must lie between 2 for every user and item, {2 * max(users, items)}, "
            f"and half of all pairs, {users * items // 2}, got {ratings}. {remedy}"
        )
    return Size(users, items, ratings)


def _codes(
    users: np.ndarray,
    items: np.ndarray,
    size: Size,
    rank: int,
    noise: float,
    generator: np.random.Generator,
) -> np.ndarray:
    def normal(*shape: int, scale: float) -> np.ndarray:
        return scale * generator.standard_normal(shape, np.float32)

    user_bias = normal(size.num_users, scale=USER_SPREAD)
    item_bias = normal(size.num_items, scale=ITEM_SPREAD)
    taste = normal(size.num_users, rank, scale=TASTE_SPREAD)
    trait = normal(size.num_items, rank, scale=rank**-0.5)
    codes = np.empty(len(users), np.uint8)
    for begin in range(0, len(users), CHUNK):
        user, item = users[begin : begin + CHUNK], items[begin : begin + CHUNK]
        stars = user_bias[user] + item_bias[item] + normal(len(user), scale=noise)
        stars += np.einsum("nk,nk->n", taste[user], trait[item])
        halves = np.rint(2 * (stars + MEAN))
        codes[begin : begin + CHUNK] = np.clip(halves, 1, 10) - 1
    return codes
