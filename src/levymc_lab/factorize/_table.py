"""The table of ratings and what is asked of it: settings, the parts, the pairs to predict."""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from levymc._checks import check_count, check_interval, check_positive, check_seed
from levymc_lab import data

HELD_OUT = 0.1  # share of the ratings
LEVEL = 0.9  # probability of the intervals
BURN_IN = 0.2  # share of the steps
EVERY = 10  # steps between draws that count
BETWEEN_LOOKS = 20  # steps between two reports of progress, or more,
MOST_LOOKS = 2000  # so that a long chain of short steps is not slowed down
FEWEST_STEPS = 50  # four draws that count
MOST_RANK = 61  # with biases, 63 columns: as many as the bits of a signed word

# Chosen at alpha 1.8 and rank 10 on one split (seed 0) of MovieLens 1M and latest-small: after 4000
# steps of 0.1 the error is 0.003 larger on 1M, and steps of 0.5 end 0.014 above.
STEP_SIZE = 0.25
NUM_BIASES = 2  # columns that biases take
BATCH_SHARE = 0.1
FACTOR_SQUARE = 0.5  # mean square of the entries of a factor, as found there
# A row with one rating in a batch sees it 1/BATCH_SHARE times, with a curvature of its partner's
# squared length, which goes with the number of columns: for each column so many ratings are added
# to the row's count, so that its step stays short.
CAUTION_A_COLUMN = 1.25 / BATCH_SHARE
# Of the stable noise.  Without it the draws' errors are too large (0.854 in place of 0.845 on
# MovieLens 1M), as one jump in a row moves all its partners.
TRUNCATION = 50.0

FEWEST_RATINGS = 20
MOST_LEVELS = 256  # of the kernel

# What is known of a pair.
BASES = ("known", "new user", "new item", "new both")


class Settings(NamedTuple):
    """Of a fit.

    rank: columns of the factors, 1 to 61.
    alpha: of the noise, in (1, 2]; 2 is SGLD.
    steps: of the chain.
    seed: of all random numbers, the choice of held-out ratings among them.
    noise: standard deviation of a rating about its mean, in units of a rating; estimated if None.
    """

    rank: int = 10
    alpha: float = 1.8
    steps: int = 4000
    seed: int = 0
    noise: float | None = None

    @property
    def burn_in(self) -> int:
        """Steps before the first that counts."""
        return int(BURN_IN * self.steps)

    @property
    def caution(self) -> float:
        """Ratings that are added to the count of each row."""
        return CAUTION_A_COLUMN * (self.rank + NUM_BIASES)

    @property
    def draws(self) -> range:
        """The steps that count."""
        return range(EVERY * (self.burn_in // EVERY + 1), self.steps + 1, EVERY)

    @property
    def looks(self) -> list[int]:
        """The steps after which progress is reported, the last among them."""
        every = max(BETWEEN_LOOKS, self.steps // MOST_LOOKS)
        return [*range(every, self.steps, every), self.steps]


DEFAULTS = Settings()


def check_settings(settings: Settings) -> None:
    """Refuse what lies outside its range."""
    check_count("rank", settings.rank, "It is the number of columns of the factors.")
    if settings.rank > MOST_RANK:
        raise ValueError(f"`rank` must be at most {MOST_RANK}, got {settings.rank}.")
    check_interval("alpha", settings.alpha, 1.0, 2.0, includes_low=False, remedy="2 is SGLD.")
    check_count("steps", settings.steps, "Some thousands are usual.", least=FEWEST_STEPS)
    check_seed("seed", settings.seed, "Give 0, say.")
    if settings.noise is not None:
        check_positive("noise", settings.noise, "Leave it out, and it is estimated.")


class Scale(NamedTuple):
    """A rating is center + spread · (what the model calls a rating)."""

    center: float
    spread: float


class Table(NamedTuple):
    """Ratings of a file, in two parts."""

    whole: data.Ratings
    training: data.Ratings
    held_out: data.Ratings
    digest: str


def load_table(path: Path, seed: int) -> Table:
    """Read ratings, and hold some out.

    Raises:
        DataError: a fault of the file, with its line; ratings that nothing can be learnt from.
    """
    whole = _read(path)
    _check(whole, path)
    training, held_out = data.split(whole, seed, (1 - HELD_OUT, HELD_OUT))
    if np.ptp(training.values) == 0:
        raise data.DataError(f"{path}: all ratings are {training.values[0]:g}: nothing to learn.")
    return Table(whole, training, held_out, _digest(whole))


def scale_of(training: data.Ratings, rank: int) -> Scale:
    """Units in which factors with N(0, 1) entries explain as much variance as the ratings have.

    So that the fit depends on neither the scale of the ratings nor, much, the rank.
    """
    values = training.values.astype(np.float64)
    return Scale(float(values.mean()), float(values.std()) / rank**0.5)


def batch_size_of(training: data.Ratings) -> int:
    return math.ceil(BATCH_SHARE * training.num_ratings)


def _read(path: Path) -> data.Ratings:
    if path.is_dir() or path.suffix == ".zip":
        return data.read(path)
    try:
        return data.read(path)  # the formats of MovieLens, some ten times as fast
    except data.DataError:
        return data.read_table(path)


def _check(ratings: data.Ratings, path: Path) -> None:
    if ratings.num_ratings < FEWEST_RATINGS:
        raise data.DataError(
            f"{path}: {ratings.num_ratings} ratings are too few. "
            f"There must be {FEWEST_RATINGS} at least."
        )
    if len(ratings.levels) > MOST_LEVELS:
        raise data.DataError(
            f"{path}: {len(ratings.levels)} different ratings are too many. "
            f"Round them, so that there are at most {MOST_LEVELS}."
        )


def _digest(ratings: data.Ratings) -> str:
    """A checksum of what was read, whatever the format of the file."""
    total = hashlib.sha256()
    for name, array in ratings._asdict().items():
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


class Labels(NamedTuple):
    """What is written beside predictions; `ratings` are NaN where there are none."""

    users: list[str]
    items: list[str]
    ratings: np.ndarray
    bases: list[str]


class Targets(NamedTuple):
    """Pairs to predict, first those that are held out, then those that are asked for.

    users, items: int32, of the model's rows; the row after the last is that of a new one, as is
        whoever and whatever has no rating in the training part.
    is_new_user, is_new_item: whether they are.
    labels: of those that are written: those asked for, or else those held out.
    """

    users: np.ndarray
    items: np.ndarray
    is_new_user: np.ndarray
    is_new_item: np.ndarray
    labels: Labels

    @property
    def is_new(self) -> np.ndarray:
        return self.is_new_user | self.is_new_item


def targets_of(table: Table, asked: data.Pairs | None) -> Targets:
    whole, training, held_out = table.whole, table.training, table.held_out
    users, items = held_out.users.astype(np.int64), held_out.items.astype(np.int64)
    if asked is None:
        ids = (whole.user_ids[held_out.users], whole.item_ids[held_out.items])
        names, ratings = [list(map(str, some.tolist())) for some in ids], held_out.values
    else:
        found = _indices(whole.user_ids, asked.users), _indices(whole.item_ids, asked.items)
        names, ratings = list(asked), _ratings(whole, *found)
        users, items = np.append(users, found[0]), np.append(items, found[1])
    users = _known(users, training.users, training.num_users)
    items = _known(items, training.items, training.num_items)
    is_new_user, is_new_item = users == training.num_users, items == training.num_items
    numbers = (is_new_user + 2 * is_new_item)[len(users) - len(ratings) :]
    labels = Labels(names[0], names[1], ratings, [BASES[number] for number in numbers.tolist()])
    return Targets(users, items, is_new_user, is_new_item, labels)


def _indices(ids: np.ndarray, texts: list[str]) -> np.ndarray:
    """The index of each that is asked for; the number of all for one not there."""
    place = {str(id): index for index, id in enumerate(ids.tolist())}
    return np.array([place.get(text, len(ids)) for text in texts], np.int64)


def digest_of(asked: data.Pairs | None) -> str | None:
    if asked is None:
        return None
    text = "\0".join([*asked.users, *asked.items])
    return hashlib.sha256(text.encode()).hexdigest()


def _known(rows: np.ndarray, trained: np.ndarray, num_rows: int) -> np.ndarray:
    """The rows, but `num_rows` in place of those that no rating was fitted to."""
    is_trained = np.append(np.bincount(trained, minlength=num_rows) > 0, False)
    return np.where(is_trained[rows], rows, num_rows).astype(np.int32)


def _ratings(whole: data.Ratings, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The rating of each pair in the table, NaN where there is none."""
    width = whole.num_items + 1
    sorted_pairs = whole.users.astype(np.int64) * width + whole.items
    wanted = users * width + items
    place = np.minimum(np.searchsorted(sorted_pairs, wanted), len(sorted_pairs) - 1)
    found = np.where(sorted_pairs[place] == wanted, whole.values[place], np.nan)
    return found.astype(np.float32)
