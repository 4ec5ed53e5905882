r"""How much a rating scatters about its mean, learnt from the ratings."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from levymc import models
from levymc_lab import data

from ._sampler import start
from ._table import Scale

SWEEPS = (8, 4, 4)  # a round; the error goes down by a third to a tenth in each
FIRST_SHARE = 0.7  # of the ratings' standard deviation, which is what it is on MovieLens
SMALLEST_SHARE = 0.01  # ratings that factors explain fully have no noise, but a precision is finite
CHUNK = 2**20


def estimate_noise(
    training: data.Ratings,
    scale: Scale,
    rank: int,
    key: Array,
    num_threads: int,
    on_round: Callable[[], None] = lambda: None,
) -> float:
    r"""The standard deviation σ of a rating, in its units, as the fixed point of

    .. math:: σ^2 \gets \frac1N \sum_{ui} (y_{ui} - \hat y_{ui})^2,
       \qquad \hat y \text{ of a draw from the posterior given } σ,

    where a flat prior's conditional law of σ² has its mass, N being large.  Some sweeps of the
    Gibbs sampler make the draws.
    """
    deviation = float(training.values.std(dtype=np.float64))
    noise = FIRST_SHARE * deviation
    key_start, key_sweeps = jax.random.split(key)
    position: Any = start(key_start, training.num_users, training.num_items, rank)
    for number, sweeps in enumerate(SWEEPS):
        gibbs = models.gibbs_factorization(
            training.users.astype(np.int64),
            training.items.astype(np.int64),
            training.values.astype(np.float64) / scale.spread,
            training.num_users,
            training.num_items,
            rank=rank,
            center=scale.center / scale.spread,
            noise_precision=(scale.spread / noise) ** 2,
            biases=True,
            num_threads=num_threads,
        )
        state, step = gibbs.algorithm.init(position), jax.jit(gibbs.algorithm.step)
        key_round = jax.random.fold_in(key_sweeps, number)
        for sweep in range(sweeps):
            state, _ = step(jax.random.fold_in(key_round, sweep), state, gibbs.data)
        position = state.position
        noise = max(_residual(position, training, scale), SMALLEST_SHARE * deviation)
        on_round()
    return noise


def _residual(position: dict[str, Array], ratings: data.Ratings, scale: Scale) -> float:
    """The root mean square error of one draw."""
    users, items = np.asarray(position["users"]), np.asarray(position["items"])
    total = 0.0
    for begin in range(0, ratings.num_ratings, CHUNK):
        rows = slice(begin, begin + CHUNK)
        product = np.einsum("nk,nk->n", users[ratings.users[rows]], items[ratings.items[rows]])
        values = ratings.levels[ratings.codes[rows]].astype(np.float64)
        total += float(np.sum((values - scale.center - scale.spread * product) ** 2))
    return (total / ratings.num_ratings) ** 0.5
