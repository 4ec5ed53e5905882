"""The table of ratings and what is asked of it: settings, the parts, and the scale."""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from levymc._checks import check_count, check_interval, check_positive, check_seed
from levymc_lab import data

HELD_OUT = 0.1  # share of the ratings
BURN_IN = 0.2  # share of the steps
DRAW_BYTES = 2**26  # of all draws that are kept, but
FEWEST_DRAWS = 40  # are kept in any case
MOST_LOOKS = 2000  # reports of progress, so that a long chain of short steps is not slowed down
FEWEST_STEPS = 50  # of stochastic gradients, four draws that count
MOST_RANK = 61  # with biases, 63 columns: as many as the bits of a signed word

# Chosen at alpha 1.8 and rank 10 on one split (seed 0) of MovieLens 1M and latest-small: after 4000
# steps of 0.1 the error is 0.003 larger on 1M, and steps of 0.5 end 0.014 above.  At alpha 2 the
# error is the same to 0.0015 on 1M, 100K and latest-small.
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
MOST_ON_A_SCALE = 21  # different ratings, such as 0, 0.5, …, 10: so few are taken for a whole scale


class Pace(NamedTuple):
    """Of a sampler.

    steps: of a chain, unless others are asked for.
    every: steps between draws that count, or a multiple of it where draws take much room.
    between_looks: steps between two reports of progress, or more.
    """

    steps: int
    every: int
    between_looks: int


# On MovieLens 1M the Gibbs sampler's predictions hardly get better after some 100 sweeps, and of
# 190 all draws are kept; stochastic gradients need thousands of steps (benchmarks/ratings_time.py).
PACES = {"sg": Pace(4000, 10, 20), "gibbs": Pace(190, 1, 4)}


class Settings(NamedTuple):
    """Of a fit.

    rank: columns of the factors, 1 to 61.
    alpha: of the noise of stochastic gradients, in (1, 2]; 2 is SGLD, than which smaller ones do no
        better on ratings.
    steps: of the chain, which are sweeps of the Gibbs sampler; if None, what is usual.
    seed: of all random numbers, the choice of held-out ratings among them.
    noise: standard deviation of a rating about its mean, in units of a rating; estimated if None.
    method: "sg" for stochastic gradients, or "gibbs", which draws from the posterior exactly.  On
        MovieLens its intervals hold what they say, and its predictions are a little worse.
    """

    rank: int = 10
    alpha: float = 2.0
    steps: int | None = None
    seed: int = 0
    noise: float | None = None
    method: str = "sg"

    @property
    def pace(self) -> Pace:
        return PACES[self.method]

    @property
    def num_steps(self) -> int:
        """Of the chain."""
        return self.pace.steps if self.steps is None else self.steps

    @property
    def burn_in(self) -> int:
        """Steps before the first that counts."""
        return int(BURN_IN * self.num_steps)

    @property
    def caution(self) -> float:
        """Ratings that are added to the count of each row."""
        return CAUTION_A_COLUMN * (self.rank + NUM_BIASES)

    def draws(self, num_rows: int) -> range:
        """The steps that count, of a model with so many users and items."""
        every = self.pace.every
        first = every * (self.burn_in // every + 1)
        most = max(FEWEST_DRAWS, DRAW_BYTES // (4 * (self.rank + 1) * num_rows))
        candidates = range(first, self.num_steps + 1, every)
        return candidates[:: -(-len(candidates) // most)]

    @property
    def looks(self) -> list[int]:
        """The steps after which progress is reported, the last among them."""
        every = max(self.pace.between_looks, self.num_steps // MOST_LOOKS)
        return [*range(every, self.num_steps, every), self.num_steps]


DEFAULTS = Settings()


def check_settings(settings: Settings) -> None:
    """Refuse what lies outside its range."""
    check_count("rank", settings.rank, "It is the number of columns of the factors.")
    if settings.rank > MOST_RANK:
        raise ValueError(f"`rank` must be at most {MOST_RANK}, got {settings.rank}.")
    check_interval("alpha", settings.alpha, 1.0, 2.0, includes_low=False, remedy="2 is SGLD.")
    if settings.method not in PACES:
        raise ValueError(f"`method` must be one of {', '.join(PACES)}, got {settings.method!r}.")
    if settings.method == "gibbs" and settings.alpha != 2:
        raise ValueError(
            f"`alpha` must be 2 with the method gibbs, got {settings.alpha:g}: it draws from the "
            "posterior itself, and no noise is added. Leave it out, or take the method sg."
        )
    if settings.steps is not None:
        remedy = "Leave it out for what is usual."
        check_count("steps", settings.steps, remedy, least=FEWEST_STEPS)
    check_seed("seed", settings.seed, "Give 0, say.")
    if settings.noise is not None:
        check_positive("noise", settings.noise, "Leave it out, and it is estimated.")


class Scale(NamedTuple):
    """A rating is center + spread · (what the model calls a rating).

    ends: the least and the largest that there can be, perhaps infinite.
    """

    center: float
    spread: float
    ends: tuple[float, float]


class Table(NamedTuple):
    """Ratings of a file, in two parts."""

    whole: data.Ratings
    training: data.Ratings
    held_out: data.Ratings
    digest: str


class Reading(NamedTuple):
    """How a table is read: see `levymc_lab.data.read_table`.

    columns: the names of user, item and rating in the header, or their numbers.
    scale: the least and the largest rating; if None, those in the table where it has few different
        ones.  Infinite ends are no bounds.
    skip_bad: bad rows that may be left out.
    """

    columns: tuple[str | int, ...] | None = None
    scale: tuple[float, float] | None = None
    skip_bad: int = 0


AS_IT_IS = Reading()


def load_table(path: Path, seed: int, reading: Reading, on_bad: Callable[[str], None]) -> Table:
    """Read ratings, and hold some out.

    Raises:
        DataError: a fault of the file, with its line; ratings that nothing can be learnt from.
    """
    whole = _read(path, reading, on_bad)
    _check(whole, path)
    training, held_out = data.split(whole, seed, (1 - HELD_OUT, HELD_OUT))
    if np.ptp(training.values) == 0:
        raise data.DataError(
            f"{path}: all ratings are {training.values[0]:g}: nothing to learn. Is it the right "
            "column?"
        )
    return Table(whole, training, held_out, _digest(whole))


def scale_of(table: Table, rank: int, declared: tuple[float, float] | None) -> Scale:
    """Units in which factors with N(0, 1) entries explain as much variance as the ratings have.

    So that the fit depends on neither the scale of the ratings nor, much, the rank.
    """
    values, levels = table.training.values.astype(np.float64), table.whole.levels
    low, high = declared or (-math.inf, math.inf)
    # Rounded as ratings are: those of 0.6 would lie above 0.6, and so outside of every interval.
    ends = (float(np.float32(low)), float(np.float32(high)))
    if declared is None and len(levels) <= MOST_ON_A_SCALE:
        ends = (float(levels[0]), float(levels[-1]))
    return Scale(float(values.mean()), float(values.std()) / rank**0.5, ends)


def batch_size_of(training: data.Ratings) -> int:
    return math.ceil(BATCH_SHARE * training.num_ratings)


def _read(path: Path, reading: Reading, on_bad: Callable[[str], None]) -> data.Ratings:
    """By the readers for MovieLens, some ten times as fast, or else as a table of one's own."""
    columns, scale, skip_bad = reading
    low, high = data.check_scale(scale)
    if path.is_dir() or path.suffix == ".zip":
        return _read_archive(path, reading)
    if columns is None and path.is_file():  # a pipe can be read once only
        try:
            found = data.read(path)
        except data.DataError:
            scale = scale or data.published_scale(path)
        else:
            if low <= found.levels[0] <= found.levels[-1] <= high:
                return found
    return data.read_table(path, columns, scale=scale, skip_bad=skip_bad, on_bad=on_bad)


def _read_archive(path: Path, reading: Reading) -> data.Ratings:
    """An archive, or a folder, of MovieLens."""
    if reading.columns is not None or reading.skip_bad:
        raise data.DataError(
            f"{path}: columns and bad rows (--columns, --skip-bad) are those of a table. Name the "
            "file of ratings itself, and unpack it if it lies in an archive."
        )
    found, (low, high) = data.read(path), data.check_scale(reading.scale)
    if not low <= found.levels[0] <= found.levels[-1] <= high:
        raise data.DataError(
            f"{path}: ratings from {found.levels[0]:g} to {found.levels[-1]:g} lie outside the "
            f"scale from {low:g} to {high:g}. Declare another (--scale)."
        )
    return found


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


def digest_of(asked: data.Pairs | None) -> str | None:
    if asked is None:
        return None
    text = "\0".join([*asked.users, *asked.items])
    return hashlib.sha256(text.encode()).hexdigest()
