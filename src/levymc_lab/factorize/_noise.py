r"""The noise of a rating, where none is given: its standard deviation σ as the fixed point of

.. math:: σ^2 = \mathrm{E} \Bigl[ \frac1N \sum_{ui} (y_{ui} - \hat y_{ui})^2 \Bigr],
   \qquad \hat y \text{ of a draw from the posterior given } σ,

which is where a flat prior's conditional law of σ² has its mass, N being large.  Sweeps of the
Gibbs sampler make the draws.  One draw's error is a random number: by it alone two runs on some
thousand ratings differ by a few per cent.  So once the first sweeps are over, σ² is the mean over
all sweeps since (stochastic approximation with weights 1/n).

Where ratings are few beside the factors, a small σ makes a close fit, and that a small σ: a chain
then keeps near where its first sweeps led it, some per cent from another.  So there several chains
are averaged, and how far they are apart tells the Monte Carlo error; where ratings are many, the
parts of a single chain do.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import levymc
from levymc import models
from levymc._trees import module
from levymc.algorithms import Info, SamplingAlgorithm
from levymc.models.factorization import GibbsAlgorithm

from ._model import Position, given_of, start_of
from ._prepare import Job

FIRST_SHARE = 0.7  # of the ratings' standard deviation, which is what it is on MovieLens
SMALLEST_SHARE = 0.01  # ratings that factors explain fully have no noise, but a precision is finite
FIRST_SWEEPS = 12  # not averaged; from small factors the error settles in about as many
# Averaged: many where ratings are few, as they cost nothing and one draw tells little.
WORK = 2**22  # ratings that are gone through, but
FEWEST_SWEEPS, MOST_SWEEPS = 16, 256
MOST_CHAINS = 8
MOST_CHAIN_RATINGS = 2**16  # in all chains; beyond it there is one
NUM_BATCHES = 4  # of a single chain, whose means tell the Monte Carlo error
ROUNDS = 4  # reports of progress
CHUNK = 2**16  # ratings whose errors are computed at once


class Noise(NamedTuple):
    """An estimate of the standard deviation of a rating, and its Monte Carlo error."""

    deviation: float
    error: float


class NoiseData(NamedTuple):
    """The ratings as the sampler has them, and the user of each."""

    ratings: Any
    raters: Array


class NoiseState(NamedTuple):
    """Of the sampler; σ² for the next sweep; the mean square error of the draw of each sweep."""

    inner: Any
    variance: Array
    squares: Array

    @property
    def position(self) -> Position:
        return self.inner.position


@module(static=("num_sweeps",))
class NoiseAlgorithm(SamplingAlgorithm[NoiseState]):
    """A sweep given σ², then σ² given all sweeps that count."""

    takes_minibatch = True

    gibbs: GibbsAlgorithm
    first: Any
    least: Any
    num_sweeps: int

    def init(self, position: Position, rng_key: Array | None = None) -> NoiseState:
        first = jnp.asarray(self.first, jnp.float32)
        return NoiseState(self.gibbs.init(position), first, jnp.zeros(self.num_sweeps, jnp.float32))

    def step(self, key: Array, state: NoiseState, *minibatch: Any) -> tuple[NoiseState, Info]:
        (data,) = minibatch
        sampler = replace(self.gibbs, precision=1 / state.variance)
        inner, info = sampler.step(key, state.inner, data.ratings)
        square = mean_square(inner.position, data)
        squares = state.squares.at[inner.step - 1].set(square, mode="drop")
        num_counted = inner.step - FIRST_SWEEPS
        mean = jnp.sum(squares[FIRST_SWEEPS:]) / jnp.maximum(num_counted, 1)  # the others are 0 yet
        variance = jnp.where(num_counted > 0, mean, square).astype(jnp.float32)
        return NoiseState(inner, jnp.maximum(variance, self.least), squares), info


def mean_square(position: Position, data: NoiseData) -> Array:
    """Of the errors of a draw, some ratings at a time, as their rows take much memory."""
    ratings, count = data.ratings, len(data.raters)

    def add(chunk: Array, total: Array) -> Array:
        place = chunk * CHUNK + jnp.arange(min(CHUNK, count))
        inside = jnp.minimum(place, count - 1)
        users = position["users"][data.raters[inside]]
        items = position["items"][ratings.rated[inside]]
        errors = ratings.levels[ratings.user_codes[inside]] - jnp.sum(users * items, axis=1)
        return total + jnp.sum(jnp.where(place < count, errors**2, 0.0))

    return jax.lax.fori_loop(0, -(-count // CHUNK), add, jnp.float32(0.0)) / np.float32(count)


def num_sweeps_of(num_ratings: int) -> int:
    """All of them, of which the first are not averaged."""
    return FIRST_SWEEPS + int(np.clip(WORK // num_ratings, FEWEST_SWEEPS, MOST_SWEEPS))


def num_chains_of(num_ratings: int) -> int:
    return int(np.clip(MOST_CHAIN_RATINGS // num_ratings, 1, MOST_CHAINS))


def estimate_noise(job: Job, key: Array) -> Iterator[Noise]:
    """Ever better estimates, `ROUNDS` of them."""
    key_start, key_sweeps = jax.random.split(key)
    algorithm, data = _sampler(job)
    count, keys = algorithm.num_sweeps, [key_start]
    if (num_chains := num_chains_of(job.table.training.num_ratings)) > 1:
        keys = list(jax.random.split(key_start, num_chains))
    starts = [start_of(job, key) for key in keys]
    stops = [FIRST_SWEEPS + (count - FIRST_SWEEPS) * k // ROUNDS for k in range(1, ROUNDS + 1)]
    visits = levymc.iterate(
        algorithm,
        key_sweeps,
        jax.tree.map(lambda *leaves: np.concatenate(leaves), *starts),
        count,
        at=stops,
        minibatches=levymc.whole(data),
    )
    for visit in visits:
        yield _noise(np.asarray(visit.states.squares)[:, : visit.step], job)


def _sampler(job: Job) -> tuple[NoiseAlgorithm, NoiseData]:
    training, spread = job.table.training, job.scale.spread
    deviation = float(training.values.std(dtype=np.float64))
    gibbs = models.gibbs_factorization(**given_of(job, FIRST_SHARE * deviation))
    algorithm = NoiseAlgorithm(
        gibbs.algorithm,
        np.float32((FIRST_SHARE * deviation / spread) ** 2),
        np.float32((SMALLEST_SHARE * deviation / spread) ** 2),
        num_sweeps_of(training.num_ratings),
    )
    return algorithm, NoiseData(gibbs.data, jnp.asarray(training.users.astype(np.int32)))


def _noise(squares: np.ndarray, job: Job) -> Noise:
    """From the mean square errors of each chain's sweeps so far, in the model's units."""
    counted = squares[:, FIRST_SWEEPS:].astype(np.float64)
    deviation = max(
        job.scale.spread * counted.mean() ** 0.5,
        SMALLEST_SHARE * float(job.table.training.values.std(dtype=np.float64)),
    )
    parts = list(counted)
    if len(counted) == 1:
        parts = np.array_split(counted[0], min(NUM_BATCHES, counted.size))
    means = [part.mean() for part in parts]
    error = np.std(means, ddof=1) / len(means) ** 0.5 if len(means) > 1 else 0.0
    return Noise(float(deviation), float(job.scale.spread**2 * error / (2 * deviation)))
