r"""Synthetic ratings and pictures of any number, where the true ones cannot be had."""

from functools import cache
from typing import NamedTuple

import numpy as np

from levymc._checks import check_count

from ._ratings import Ratings, item_type

FEWEST_PER_USER = 20  # as in every MovieLens set
ID_SPREAD = 5  # MovieLens numbers also the movies that it leaves out
MEAN = 3.5
USER_SPREAD, ITEM_SPREAD, TASTE_SPREAD = 0.4, 0.5, 0.4  # standard deviations, in stars
RATINGS_AT_ONCE = 2**20

USER_SKEW = 1.38  # log-normal: a mean of 144 and a median of 68 ratings above the first 20
ITEM_SPAN, ITEM_POWER = 11.1, 0.437  # through the most, the median and the least rated of 20M
MOST_SHARE = 3  # the keenest user of 20M has rated a third of the movies
PAIRS_AT_ONCE = 2**18

WOBBLE = 0.03  # standard deviations, as shares of the height of a digit: of each vertex …
SHIFT = 0.03
SCALE, SLANT, TURN = 0.1, 0.15, 0.1  # … of the logarithm of width and height, the shear, the angle
MEAN_SLANT = 0.15  # people lean their digits to the right
HEIGHT = 0.62  # of a digit in a picture
PEN, PEN_SPREAD = 0.042, 0.2  # half the width of a stroke in a picture, and its logarithm's spread
FULL_INK = 255
EDGE = 0.04  # over this share of a picture ink fades out
PICTURES_AT_ONCE = 256  # whose greys stay in cache

# Vertices (right, down) of the digits 0 to 9 in a box of 100 × 100; twice the same makes a corner.
SKELETONS = (
    "55 2, 20 20, 12 60, 40 98, 80 75, 85 30, 50 2",
    "50 0, 50 35, 50 70, 50 100",
    "15 25, 45 0, 80 20, 65 55, 10 97, 10 97, 50 93, 92 97",
    "15 10, 50 0, 80 20, 40 47, 40 47, 85 68, 60 97, 12 88",
    "20 2, 12 50, 12 50, 78 48, 78 48, 78 2, 78 2, 75 50, 72 100",
    "82 2, 28 3, 28 3, 22 45, 22 45, 62 40, 85 68, 60 97, 12 90",
    "70 0, 32 30, 15 72, 45 99, 80 75, 55 50, 20 70",
    "10 5, 85 5, 85 5, 60 50, 40 100",
    "75 12, 45 0, 22 22, 50 47, 82 75, 50 100, 18 78, 50 47, 78 22, 72 10",
    "78 25, 50 0, 20 25, 45 50, 78 25, 78 25, 75 60, 60 100",
)
NUM_VERTICES = max(skeleton.count(",") + 1 for skeleton in SKELETONS)
NUM_POINTS = 48  # along a curve: closer together than a stroke of MNIST is wide
FINE = 2000


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
    r"""Synthetic half-star ratings with a planted low-rank structure:

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
    users, items = _pairs(size, generator)
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
    for begin in range(0, len(users), RATINGS_AT_ONCE):
        rows = slice(begin, begin + RATINGS_AT_ONCE)
        user, item = users[rows], items[rows]
        stars = user_bias[user] + item_bias[item] + normal(len(user), scale=noise)
        stars += np.einsum("nk,nk->n", taste[user], trait[item])
        codes[rows] = np.clip(np.rint(2 * (stars + MEAN)), 1, 10) - 1
    return codes


# Who rates what: pairs of users and items, each once, as skewed as MovieLens's.


def _pairs(size: Size, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Users and items as indices, sorted by user, then item; every index occurs."""
    counts = _ratings_per_user(size, generator)
    popularity = _popularity(size.num_items, generator)
    ends = np.cumsum(counts)
    groups = np.flatnonzero(np.diff(ends // PAIRS_AT_ONCE, prepend=0))  # of users, to stay in cache
    parts = [
        _distinct_items(group, popularity, generator) for group in np.split(counts, groups + 1)
    ]
    items = np.concatenate(parts)
    users = np.repeat(np.arange(size.num_users, dtype=np.uint32), counts)
    _rate_all(items, ends - counts, ends, users, size.num_items)
    return users, items


def _ratings_per_user(size: Size, generator: np.random.Generator) -> np.ndarray:
    """Log-normal above the fewest, with the sum `num_ratings`."""
    num_users, num_items, num_ratings = size
    most = max(num_items // MOST_SHARE, min(num_items, 3 * num_ratings // (2 * num_users) + 1))
    weights = generator.lognormal(0, USER_SKEW, num_users)
    counts = np.full(num_users, min(FEWEST_PER_USER, num_ratings // num_users))
    while (missing := num_ratings - counts.sum()) > 0:
        open_weights = np.where(counts < most, weights, 0)
        borders = np.rint(np.cumsum(open_weights) / open_weights.sum() * missing).astype(int)
        counts = np.minimum(counts + np.diff(borders, prepend=0), most)
    return counts


def _popularity(num_items: int, generator: np.random.Generator) -> np.ndarray:
    """Cumulative probabilities of the items, popular ones among the others."""
    rank = generator.permutation(num_items) / num_items
    return np.cumsum(weights := np.exp(-ITEM_SPAN * rank**ITEM_POWER)) / weights.sum()


def _distinct_items(
    counts: np.ndarray, popularity: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """As many items for each user as in `counts`, ascending."""
    total, last = counts.sum(), len(popularity) - 1
    count = np.repeat(counts, counts)
    begin = np.repeat(np.cumsum(counts) - counts, counts)
    rank = np.arange(total) - begin
    # One item from each of as many equally popular strata as the user has ratings …
    points = (rank + generator.random(total)) / count
    items = np.minimum(np.searchsorted(popularity, points, side="right"), last)
    # … and where two strata share an item, the next one: k + the largest (item - k) so far.
    # `begin` grows from user to user by more than an item could, once multiplied.
    shift = begin * (2 * last + 2)
    items = np.maximum.accumulate(items - rank + shift) - shift + rank
    return np.minimum(items, last - (count - 1 - rank)).astype(np.uint32)


def _rate_all(
    items: np.ndarray, begins: np.ndarray, ends: np.ndarray, users: np.ndarray, num_items: int
) -> None:
    """Give each item without a rating one of the most rated item's, in place."""
    while True:
        counts = np.zeros(num_items, int)
        for part in np.array_split(items, 16):  # bincount makes 64-bit numbers of its argument
            counts += np.bincount(part, minlength=num_items)
        unrated = np.flatnonzero(counts == 0)
        if not len(unrated):
            return
        rows = np.flatnonzero(items == counts.argmax())[:-1]
        for row, item in zip(rows, unrated, strict=False):
            items[row] = item
            user = users[row]
            items[begins[user] : ends[user]].sort()


# Pictures: pen strokes along jittered skeletons.


class _Jitter(NamedTuple):
    """Standard normal numbers, a row for each picture."""

    vertices: np.ndarray
    affine: np.ndarray
    pen: np.ndarray


def synthetic_images(count: int, seed: int = 0, size: int = 28) -> tuple[np.ndarray, np.ndarray]:
    r"""Synthetic grey pictures of the ten digits, for tests and trials where MNIST is not at hand.

    A digit is a smooth curve :math:`q(s)` through some vertices that every picture moves a little,
    slanted, turned, stretched and shifted at random, and drawn with a round pen:

    .. math:: g(x) = \mathrm{clip}\Bigl(\frac12 + \frac{r - \min_s |x - q(s)|}{w},\ 0,\ 1\Bigr).

    Not valid for any statement about MNIST: these are ten curves, not people's handwriting.

    Args:
        count: how many.
        seed: the same seed gives the same pictures (in one version of NumPy), and the first of
            them whatever their number.
        size: height and width, in pixels.

    Returns:
        Pictures (count, size, size) with 0 for paper and 255 for full ink, and labels (count,)
        from 0 to 9; both uint8.

    Raises:
        TypeError, ValueError: a count or size below one.

    Examples:
        >>> import levymc_lab.data
        >>> images, labels = levymc_lab.data.synthetic_images(100, seed=1)
        >>> images.shape, images.dtype, int(labels.max())
        ((100, 28, 28), dtype('uint8'), 9)
    """
    count = check_count("count", count, "100, say.")
    size = check_count("size", size, "28, as MNIST's pictures.")
    for_labels, for_jitter = np.random.default_rng(seed).spawn(2)
    labels = for_labels.integers(0, 10, count).astype(np.uint8)
    normals = for_jitter.standard_normal((count, 2 * NUM_VERTICES + 7), np.float32)
    images = np.empty((count, size, size), np.uint8)
    for begin in range(0, count, PICTURES_AT_ONCE):
        rows = slice(begin, begin + PICTURES_AT_ONCE)
        jitter = _jitter(normals[rows])
        pens = PEN * np.exp(PEN_SPREAD * jitter.pen)
        images[rows] = _drawn(_written(labels[rows], jitter), pens, size)
    return images, labels


def _jitter(normals: np.ndarray) -> _Jitter:
    vertices, affine, pen = np.split(normals, [2 * NUM_VERTICES, 2 * NUM_VERTICES + 6], axis=1)
    return _Jitter(vertices.reshape(-1, NUM_VERTICES, 2), affine, pen[:, 0])


def _written(labels: np.ndarray, jitter: _Jitter) -> np.ndarray:
    """Points (count, points, 2) along each digit, in a picture from 0 to 1."""
    weights, vertices = _curves()
    written = weights[labels] @ (vertices[labels] - 0.5 + WOBBLE * jitter.vertices)
    moved = written @ _affine(jitter.affine) + SHIFT * jitter.affine[:, None, :2]
    return HEIGHT * moved + 0.5


def _affine(normals: np.ndarray) -> np.ndarray:
    """Matrices (count, 2, 2) that stretch, slant and turn rows (right, down)."""
    stretch = np.exp(SCALE * normals[:, 2:4])
    angle = TURN * normals[:, 4]
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], axis=1)
    slant = np.broadcast_to(np.eye(2, dtype=np.float32), turn.shape).copy()
    slant[:, 1, 0] = -MEAN_SLANT + SLANT * normals[:, 5]
    return stretch[:, :, None] * slant @ turn


def _drawn(points: np.ndarray, pens: np.ndarray, size: int) -> np.ndarray:
    """Greys of pixels by their distance from the nearest point of the curve."""
    centres = (np.arange(size, dtype=np.float32) + 0.5) / size
    squares = (points[:, :, :, None] - centres) ** 2
    nearest = np.full((len(points), size, size), np.inf, np.float32)
    for point in range(points.shape[1]):
        right, down = squares[:, point, 0, None, :], squares[:, point, 1, :, None]
        np.minimum(nearest, right + down, out=nearest)
    ink = 0.5 + (pens[:, None, None] - np.sqrt(nearest)) / EDGE
    return np.rint(FULL_INK * np.clip(ink, 0, 1)).astype(np.uint8)


@cache
def _curves() -> tuple[np.ndarray, np.ndarray]:
    """For each digit, weights (points, vertices) of a curve at equal distances, and the vertices.

    The curve is Catmull and Rom's; digits with fewer vertices than others have weights of zero.
    """
    weights = np.zeros((len(SKELETONS), NUM_POINTS, NUM_VERTICES), np.float32)
    vertices = np.zeros((len(SKELETONS), NUM_VERTICES, 2), np.float32)
    for digit, skeleton in enumerate(SKELETONS):
        own = np.array([vertex.split() for vertex in skeleton.split(",")], float) / 100
        fine = _catmull_rom(len(own), np.linspace(0, len(own) - 1, FINE))
        lengths = np.linalg.norm(np.diff(fine @ own, axis=0), axis=1)
        travelled = np.concatenate([[0], np.cumsum(lengths)])
        places = np.searchsorted(travelled, np.linspace(0, travelled[-1], NUM_POINTS))
        weights[digit, :, : len(own)] = fine[np.minimum(places, FINE - 1)]
        vertices[digit, : len(own)] = own
    return weights, vertices


def _catmull_rom(num_vertices: int, times: np.ndarray) -> np.ndarray:
    """Weights of the vertices at each time; the curve passes vertex k at time k."""
    left = np.minimum(times.astype(int), num_vertices - 2)
    t = times - left
    cubics = (
        (-t + 2 * t**2 - t**3) / 2,
        (2 - 5 * t**2 + 3 * t**3) / 2,
        (t + 4 * t**2 - 3 * t**3) / 2,
        (-(t**2) + t**3) / 2,
    )
    weights = np.zeros((len(times), num_vertices))
    for offset, cubic in zip((-1, 0, 1, 2), cubics, strict=True):
        vertex = np.clip(left + offset, 0, num_vertices - 1)
        np.add.at(weights, (np.arange(len(times)), vertex), cubic)
    return weights
