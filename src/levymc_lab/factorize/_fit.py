"""A fit as it is kept, and what it predicts, without fitting again.

A fit is draws from the posterior, thinned, and the pairs that were rated.  A prediction is the mean
over the draws; predictions.csv is made by the same function, so that it cannot differ.
"""

import csv
import io
import os
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from levymc._checks import check_count
from levymc._workdir import Fields, ResultsError, read_arrays, read_json
from levymc_lab import data

LEVEL = 0.9  # probability of the intervals
BASES = ("known", "new user", "new item", "new both")  # what is known of a pair
HEADER = ("user", "item", "mean", "low", "high", "rating", "basis")
CHUNK = 2**16  # pairs that are predicted at once
KIND, FORMAT = "factorize", 2
FIELDS: Fields = {"kind": str, "format": int, "status": str}
AGAIN = "Fit again: levymc factorize … --force."


class Predictions(NamedTuple):
    """Of some pairs, in their order, in units of a rating.

    users, items: as they were asked for.
    mean: over the draws.  low, high: the ends of an interval for a new rating.  All three lie in
        the scale, where that is bounded.
    ratings: those in the table, NaN where there is none.
    bases: `known`, or what no rating was fitted to: `new user`, `new item`, `new both`.  Of those
        the model knows its prior only, and the interval is as wide as that.
    """

    users: list[str]
    items: list[str]
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ratings: np.ndarray
    bases: list[str]

    def to_csv(self) -> bytes:
        """A line for each pair, below a header."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        digits = self._digits()
        numbers = [
            [f"{value:.{digits}g}" for value in row] for row in (self.mean, self.low, self.high)
        ]
        # As the table has them, which single precision, made double, does not.
        given = [float(str(value)) for value in self.ratings.astype(np.float32)]
        ratings = ["" if np.isnan(value) else f"{value:.9g}" for value in given]
        columns = (self.users, self.items, *numbers, ratings, self.bases)
        writer.writerows(zip(*columns, strict=True))
        return stream.getvalue().encode()

    def _digits(self) -> int:
        """Significant ones: six, and more where ratings are large beside their intervals."""
        width = float(np.median(self.high - self.low)) if len(self.mean) else 0.0
        size = float(np.max(np.abs([self.low, self.high]), initial=0.0))
        return min(6 + int(np.log10(max(size / width, 1.0))), 15) if width else 6


class Fit(NamedTuple):
    """What factors.npz holds, for D draws, U users, I items, rank L and N ratings.

    center: the mean rating of the training part.  spread: a factor has the prior variance `spread`,
        a bias spread².  noise: the standard deviation of a rating.  scale: its ends, or infinite.
    users, items: (D, U, L), (D, I, L).  user_biases, item_biases: (D, U), (D, I).
    user_ids, item_ids: (U,), (I,).
    user_counts, item_counts: (U,), (I,), of the ratings that were fitted.
    rated_offsets: (U + 1,), where the ratings of each user begin in
    rated, codes: (N,), the items, ascending, and the numbers of their ratings among
    levels: the different ratings.
    """

    center: np.ndarray
    spread: np.ndarray
    noise: np.ndarray
    scale: np.ndarray
    users: np.ndarray
    items: np.ndarray
    user_biases: np.ndarray
    item_biases: np.ndarray
    user_ids: np.ndarray
    item_ids: np.ndarray
    user_counts: np.ndarray
    item_counts: np.ndarray
    rated_offsets: np.ndarray
    rated: np.ndarray
    codes: np.ndarray
    levels: np.ndarray

    def predict(self, pairs: data.Pairs) -> Predictions:
        """The ratings of items by users, which may be new."""
        users, items = _places(self.user_ids, pairs.users), _places(self.item_ids, pairs.items)
        mean, low, high = self.estimates(users, items)
        numbers = self._is_new(users, self.user_counts) + 2 * self._is_new(items, self.item_counts)
        bases = [BASES[number] for number in numbers.tolist()]
        return Predictions(*pairs, mean, low, high, self._ratings(users, items), bases)

    def estimates(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Three rows: the mean, and the ends of an interval for a new rating,

        mean ± z √(variance over draws + variance of new rows + noise²),

        for rows of the tables; the row after the last stands for all that is not in them.
        """
        return np.clip(self._unbounded(users, items), *self.scale)

    def _unbounded(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The same, whatever the scale is."""
        parts = [slice(begin, begin + CHUNK) for begin in range(0, len(users), CHUNK)]
        found = [self._some(users[part], items[part]) for part in parts]
        return np.concatenate([np.zeros((3, 0)), *found], axis=1)

    def _some(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        new_user = self._is_new(users, self.user_counts)
        new_item = self._is_new(items, self.item_counts)
        is_new, spread, count = new_user | new_item, float(self.spread), len(self.users)
        user, item = np.where(new_user, 0, users), np.where(new_item, 0, items)
        total, squares, unseen = np.zeros((3, len(users)))
        for k in range(count):
            a = np.where(new_user[:, None], np.float32(0), self.users[k][user])
            b = np.where(new_item[:, None], np.float32(0), self.items[k][item])
            value = np.einsum("nl,nl->n", a, b, dtype=np.float64)
            value += np.where(new_user, 0, self.user_biases[k][user])
            value += np.where(new_item, 0, self.item_biases[k][item])
            total += value
            squares += value**2
            if is_new.any():
                v, w = spread * new_user[:, None], spread * new_item[:, None]
                unseen += np.sum(v * b**2 + a**2 * w + v * w, axis=1)
                unseen += spread**2 * (new_user.astype(float) + new_item)
        offset = total / count
        variance = np.maximum(squares / count - offset**2, 0) + unseen / count
        half = NormalDist().inv_cdf((1 + LEVEL) / 2) * np.sqrt(variance + float(self.noise) ** 2)
        mean = float(self.center) + offset
        return np.stack([mean, mean - half, mean + half])

    @staticmethod
    def _is_new(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Whether no rating was fitted to a row."""
        return np.append(counts == 0, True)[rows]

    def _ratings(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The rating of each pair in the table, NaN where there is none."""
        width = len(self.item_ids) + 1
        rater = np.repeat(np.arange(len(self.user_ids)), np.diff(self.rated_offsets))
        keys = rater * width + self.rated  # ascending
        wanted = users * width + items
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, self.levels[self.codes[place]], np.nan)

    def recommend(self, user: str, top: int = 20, *, rated: bool = False) -> Predictions:
        """The items with the highest predictions for a user; see `recommend`."""
        check_count("top", top, "It is the number of items to recommend.")
        (row,) = _places(self.user_ids, [user])
        if row == len(self.user_ids) or self.user_counts[row] == 0:
            raise data.DataError(
                f"No rating by user {user!r} was fitted, so that nothing is known of their taste. "
                "Name a user of the table."
            )
        is_open = self.item_counts > 0
        if not rated:
            begin, end = self.rated_offsets[row : row + 2]
            is_open[self.rated[begin:end]] = False
        items = np.flatnonzero(is_open)
        mean = self._unbounded(np.full(len(items), row), items)[0]  # at its end all are alike
        best = items[np.argsort(-mean, kind="stable")[:top]]
        names = [str(name) for name in self.item_ids[best].tolist()]
        return self.predict(data.Pairs([user] * len(names), names))


def _places(ids: np.ndarray, texts: list[str]) -> np.ndarray:
    """The index of each that is asked for; the number of all for one not there."""
    place = {str(id): index for index, id in enumerate(ids.tolist())}
    return np.array([place.get(text, len(ids)) for text in texts], np.int64)


def load(folder: str | os.PathLike[str]) -> Fit:
    """Read a finished fit from its folder.

    Raises:
        ResultsError: the folder holds none, or one that is not finished or is damaged.
    """
    path = Path(folder)
    manifest_file = path / "manifest.json"
    if not manifest_file.exists():
        raise ResultsError(f"{path} holds no fit: there is no manifest.json. {AGAIN}")
    manifest = read_json(manifest_file, AGAIN, FIELDS)
    if manifest["kind"] != KIND or manifest["format"] != FORMAT:
        raise ResultsError(f"{path} holds no fit, or one of another version of levymc. {AGAIN}")
    if manifest["status"] != "finished":
        raise ResultsError(f"{path} holds a fit that is not finished. Go on with it first.")
    arrays = read_arrays(path / "factors.npz", AGAIN)
    missing = [name for name in Fit._fields if name not in arrays]
    if missing:
        raise ResultsError(f"{path / 'factors.npz'} is damaged: it has no {missing[0]}. {AGAIN}")
    return Fit(**{name: arrays[name] for name in Fit._fields})


def predict(
    fit: str | os.PathLike[str] | Fit, pairs: str | os.PathLike[str] | data.Pairs
) -> Predictions:
    """Predict ratings by a fit, without fitting again: what ``levymc predict`` writes.

    The numbers are those of predictions.csv.

    Args:
        fit: the folder of a finished fit, or what `load` gives.
        pairs: a table of users and items, or `levymc_lab.data.Pairs`.

    Raises:
        ResultsError: there is no finished fit in the folder.
        DataError: a fault of the table, as file:line: reason.
    """
    loaded = fit if isinstance(fit, Fit) else load(fit)
    return loaded.predict(pairs if isinstance(pairs, data.Pairs) else data.read_pairs(pairs))


def recommend(
    fit: str | os.PathLike[str] | Fit, user: str | int, top: int = 20, *, rated: bool = False
) -> Predictions:
    """The items with the highest predictions for a user, best first.

    Items that no rating was fitted to are left out.

    Args:
        fit: the folder of a finished fit, or what `load` gives.
        user: the id, as in the table.
        top: how many items at most.
        rated: also those that the user has rated.

    Raises:
        ResultsError: there is no finished fit in the folder.
        DataError: no rating of the user was fitted.
        ValueError, TypeError: `top` is no positive whole number.
    """
    loaded = fit if isinstance(fit, Fit) else load(fit)
    return loaded.recommend(str(user), top, rated=rated)
