r"""What the experiments on ratings share: the data and their splits, and a chain that is watched.

Everything is tuned on a part of the training ratings, the validation split, and reported on the
test split, which no choice has seen.  Where a data set is not in the cache, the larger ones are
made: of the same size and skew, and marked so wherever a number comes from them.
"""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import iterate, models, whole
from levymc.run.observe import divergences
from levymc_lab import data
from levymc_lab.framework import REAL as REAL
from levymc_lab.framework import SYNTHETIC as SYNTHETIC
from levymc_lab.framework import Table

RANK = 10
SPLIT_SEED = 0
BOUND = 50.0  # of truncated noise
START_SCALE = 0.1  # of the factors that chains start from
SMALL = data.Size(300, 200, 9000)  # of the quick profile


class Part(NamedTuple):
    """Ratings to learn from, and those to predict.

    source: "real" or "synthetic".
    """

    train: data.Ratings
    test: data.Ratings
    source: str

    @property
    def counts(self) -> tuple[int, int]:
        return self.train.num_users, self.train.num_items

    @property
    def center(self) -> float:
        return float(self.train.values.mean())


@lru_cache(maxsize=4)
def part(name: str, *, is_tuning: bool) -> Part:
    """A data set, nine tenths of it to learn from; or of these again nine, where one tunes.

    Args:
        name: "small" for a few synthetic ratings, or a name of `levymc_lab.data`.
        is_tuning: predict the validation split, not the test split.
    """
    ratings, source = _ratings(name)
    train, test = data.split(ratings, SPLIT_SEED, (0.9, 0.1))
    if is_tuning:
        train, test = data.split(train, SPLIT_SEED + 1, (0.9, 0.1))
    return Part(train, test, source)


def _ratings(name: str) -> tuple[data.Ratings, str]:
    if _source(name) == REAL:
        return data.load(name), REAL
    return data.synthetic(*(SMALL if name == "small" else data.SIZES[name])), SYNTHETIC


def _source(name: str) -> str:
    """Whether ratings of that name would be read or made now; for ml-1m none stand in."""
    is_made = name == "small" or (name != "ml-1m" and data.cached(name) is None)
    return SYNTHETIC if is_made else REAL


def sources(*names: str) -> dict[str, str]:
    """As an experiment's `sources`."""
    return {name: _source(name) for name in names}


def check_there(*names: str) -> None:
    """Refuse at once where a data set is missing for which synthetic ratings cannot stand in."""
    if "ml-1m" in names:
        data.load("ml-1m")


def start(part: Part, seed: int, scale: float = START_SCALE) -> dict[str, Array]:
    """Factors of N(0, scale²)."""
    model = models.matrix_factorization(*part.counts, rank=RANK)
    return model.init(jax.random.key(seed), scale, jnp.float32)


def row_steps(part: Part, s2: float, c: float) -> dict[str, np.ndarray]:
    """The preconditioner 1/(1 + s²(d + c)), d the number of a row's ratings."""
    model = models.matrix_factorization(*part.counts, rank=RANK)
    steps = model.row_preconditioner(part.train.users, part.train.items, s2=s2, c=c)
    return {name: np.asarray(step, np.float32).ravel() for name, step in steps.items()}


def fast(part: Part, **options: Any) -> models.FastFactorization:
    """The stochastic-gradient sampler, by default with a tenth of the ratings, as in the paper."""
    train = part.train
    options = {"batch_size": train.num_ratings // 10, **options}
    return models.fast_factorization(
        train.users, train.items, train.values, *part.counts, rank=RANK, **options
    )


def with_noise(model: models.FastFactorization, quantiles: Any) -> models.FastFactorization:
    """The same sampler with noise of other quantiles."""
    return model._replace(data=model.data._replace(quantiles=quantiles))


def predictor(part: Part, center: float) -> Callable[[Any], np.ndarray]:
    """A function of a position: predictions of the test ratings."""
    users, items = jnp.asarray(part.test.users), jnp.asarray(part.test.items)
    return lambda position: np.asarray(_products(position, users, items)) + np.float32(center)


@jax.jit
def _products(position: Any, users: Array, items: Array) -> Array:
    return jnp.sum(position["users"][users] * position["items"][items], axis=-1)


def rmse(predictions: np.ndarray, part: Part) -> float:
    """Root mean squared error, in stars."""
    return float(np.sqrt(np.mean((predictions - part.test.values) ** 2, dtype=np.float64)))


def over_seeds(errors: np.ndarray) -> dict[str, float]:
    """What a table has of the last errors of several runs."""
    return {"error": errors.mean(), "least": errors.min(), "largest": errors.max()}


def is_real(table: Table) -> bool:
    """Whether its first rows are of true ratings; published numbers say nothing of others."""
    return bool(table["source"][0] == REAL)


class Visit(NamedTuple):
    """Where a chain is after `steps` steps, `seconds` of computing, and `divergences` so far."""

    steps: int
    seconds: float
    divergences: int
    position: Any


def watch(model: Any, position: Any, key: Any, marks: Any) -> Iterator[Visit]:
    """A chain of the model at each of `marks`; the time does not count compiling nor looking."""
    start, ratings = jax.tree.map(lambda leaf: leaf[None], position), whole(model.data)

    def chain(at: Any) -> Iterator[Any]:
        given = model.algorithm, key, start, int(at[-1])
        return iterate(*given, at=at, minibatches=ratings, observe={"divergent": divergences()})

    next(chain([1]))  # compiled before the clock runs
    visits, seconds = chain(marks), 0.0
    for _ in marks:
        begin = time.process_time()  # one thread: the same on a busy machine
        step, states, observed = next(visits)
        seconds += time.process_time() - begin
        here = jax.tree.map(lambda leaf: leaf[0], states.position)
        yield Visit(step, seconds, int(observed["divergent"][0]), here)
