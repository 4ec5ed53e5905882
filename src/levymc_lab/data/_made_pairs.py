"""Pairs of users and items, each once, with numbers of ratings as skewed as MovieLens's."""

import numpy as np

USER_SKEW = 1.38  # log-normal: a mean of 144 and a median of 68 ratings above the first 20
ITEM_SPAN, ITEM_POWER = 11.1, 0.437  # through the most, the median and the least rated of 20M
MOST_SHARE = 3  # the keenest user of 20M has rated a third of the movies
CHUNK = 2**18


def made_pairs(
    num_users: int,
    num_items: int,
    num_ratings: int,
    fewest: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Users and items as indices, sorted by user, then item; every index occurs."""
    counts = _ratings_a_user(num_users, num_items, num_ratings, fewest, generator)
    popularity = _popularity(num_items, generator)
    ends = np.cumsum(counts)
    groups = np.flatnonzero(np.diff(ends // CHUNK, prepend=0))  # of users, to stay in cache
    parts = [
        _distinct_items(group, popularity, generator) for group in np.split(counts, groups + 1)
    ]
    items = np.concatenate(parts)
    users = np.repeat(np.arange(num_users, dtype=np.uint32), counts)
    _rate_all(items, ends - counts, ends, users, num_items)
    return users, items


def _distinct_items(
    counts: np.ndarray, popularity: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """As many items for each user as `counts` says, ascending."""
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


def _ratings_a_user(
    num_users: int, num_items: int, num_ratings: int, fewest: int, generator: np.random.Generator
) -> np.ndarray:
    """Log-normal above `fewest`, with the sum `num_ratings`."""
    most = max(num_items // MOST_SHARE, min(num_items, 3 * num_ratings // (2 * num_users) + 1))
    weights = generator.lognormal(0, USER_SKEW, num_users)
    counts = np.full(num_users, fewest)
    while (missing := num_ratings - counts.sum()) > 0:
        open_weights = np.where(counts < most, weights, 0)
        borders = np.rint(np.cumsum(open_weights) / open_weights.sum() * missing).astype(int)
        counts = np.minimum(counts + np.diff(borders, prepend=0), most)
    return counts


def _popularity(num_items: int, generator: np.random.Generator) -> np.ndarray:
    """Cumulative probabilities of the items, popular ones among the others."""
    rank = generator.permutation(num_items) / num_items
    return np.cumsum(weights := np.exp(-ITEM_SPAN * rank**ITEM_POWER)) / weights.sum()


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
