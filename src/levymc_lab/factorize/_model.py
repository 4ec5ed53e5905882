"""The model's chain, what is remembered of its predictions, and the noise of a rating."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc import models
from levymc.run import observe
from levymc_lab import data

from ._table import (
    BATCH_SHARE,
    CAUTION_A_COLUMN,
    EVERY,
    FACTOR_SQUARE,
    NUM_BIASES,
    STEP_SIZE,
    TRUNCATION,
    Scale,
    Settings,
    Targets,
)

START_SCALE = 0.1

# Of the Gibbs sampler that finds the noise.
SWEEPS = (8, 4, 4)  # a round; the error goes down by a third to a tenth in each
FIRST_SHARE = 0.7  # of the ratings' standard deviation, which is what it is on MovieLens
SMALLEST_SHARE = 0.01  # ratings that factors explain fully have no noise, but a precision is finite
CHUNK = 2**20


class Carry(NamedTuple):
    """All that the next step needs, and all that is kept of those before.

    predicted: mean and spread of the predictions, in the model's units.
    unseen: the mean variance that a prediction has from users and items never seen.
    divergent: steps that would have left the finite numbers.
    """

    state: Any
    predicted: Any
    unseen: Any
    divergent: Array


class Sampler(NamedTuple):
    """What is needed to go from one carry to the next.

    advance: (carry, first, count) -> carry after the steps first, …, first + count - 1.
    predict: a carry -> predictions of its draw, in the model's units.
    """

    start: Callable[[], Carry]
    advance: Callable[[Carry, int, int], Carry]
    predict: Callable[[Carry], Array]


def start(key: Array, num_users: int, num_items: int, rank: int) -> dict[str, np.ndarray]:
    """Small factors: at zero the gradient in both would vanish.

    Made by NumPy, as to compile JAX's normals for two shapes takes seconds.
    """
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    generator = np.random.default_rng(words)
    shapes = {"users": (num_users, rank), "items": (num_items, rank)}
    return {
        name: np.float32(START_SCALE) * generator.standard_normal(shape, np.float32)
        for name, shape in shapes.items()
    }


def batch_size_of(num_ratings: int) -> int:
    return math.ceil(BATCH_SHARE * num_ratings)


def description_of(num_ratings: int, settings: Settings) -> dict[str, Any]:
    """What a manifest tells of the sampler."""
    caution = CAUTION_A_COLUMN * (settings.rank + NUM_BIASES)
    return {
        "batch_size": batch_size_of(num_ratings),
        "step_size": STEP_SIZE,
        "burn_in": settings.burn_in,
        "steps_between_draws": EVERY,
        "noise_truncated_at": TRUNCATION,
        "has_curvature_steps": True,
        "has_biases": True,
        "row_steps": {"s2": FACTOR_SQUARE, "c": caution},
    }


def make_sampler(
    training: data.Ratings,
    targets: Targets,
    scale: Scale,
    noise: float,
    settings: Settings,
    key: Array,
    num_threads: int,
) -> Sampler:
    """Stochastic-gradient FLA with steps that suit each row."""
    fast = _fast(training, scale, noise, settings, num_threads)
    key_start, key_steps = jax.random.split(key)
    predict = partial(_predict, targets, settings.rank)
    summaries = (
        observe.predictive(predict),
        observe.mean(partial(_unseen_variance, _unseen(targets, training), settings.rank)),
    )

    def init() -> Carry:
        rows = start(key_start, training.num_users, training.num_items, settings.rank)
        state = fast.algorithm.init(rows)
        predicted, unseen = (one.init(state.position) for one in summaries)
        return Carry(state, predicted, unseen, jnp.int32(0))

    def watch(state: Any, predicted: Any, unseen: Any) -> tuple[Any, Any]:
        both = zip(summaries, (predicted, unseen), strict=True)
        first, second = (one.update(so_far, state.position, 1.0) for one, so_far in both)
        return first, second

    def step(ratings: Any, number: Array, carry: Carry) -> Carry:
        key_step = jax.random.fold_in(key_steps, number)
        state, info = fast.algorithm.step(key_step, carry.state, ratings)
        made = number + 1
        is_seen = (made > settings.burn_in) & (made % EVERY == 0)
        kept = (carry.predicted, carry.unseen)
        predicted, unseen = jax.lax.cond(is_seen, watch, lambda _, *old: old, state, *kept)
        divergent = carry.divergent + info.is_divergent.astype(jnp.int32)
        return Carry(state, predicted, unseen, divergent)

    @jax.jit
    def advance(ratings: Any, carry: Carry, first: Array, count: Array) -> Carry:
        return jax.lax.fori_loop(first, first + count, partial(step, ratings), carry)

    return Sampler(
        init,
        lambda carry, first, count: advance(fast.data, carry, jnp.int32(first), jnp.int32(count)),
        jax.jit(lambda carry: predict(carry.state.position)),
    )


def _fast(
    training: data.Ratings, scale: Scale, noise: float, settings: Settings, num_threads: int
) -> models.FastFactorization:
    precision = (scale.spread / noise) ** 2
    size = batch_size_of(training.num_ratings)
    model = models.matrix_factorization(
        training.num_users, training.num_items, rank=settings.rank, noise_precision=precision
    )
    steps = model.row_preconditioner(
        training.users,
        training.items,
        FACTOR_SQUARE,
        CAUTION_A_COLUMN * (settings.rank + NUM_BIASES),
    )
    return models.fast_factorization(
        training.users.astype(np.int64),
        training.items.astype(np.int64),
        training.values.astype(np.float64) / scale.spread,
        training.num_users,
        training.num_items,
        rank=settings.rank,
        batch_size=size,
        step_size=STEP_SIZE,
        alpha=settings.alpha,
        center=scale.center / scale.spread,
        noise_precision=precision,
        preconditioner={name: rows[:, 0] for name, rows in steps.items()},
        curvature=True,
        truncation=TRUNCATION,
        biases=True,
        num_threads=num_threads,
    )


def _predict(targets: Targets, rank: int, position: dict[str, Array]) -> Array:
    users, items = _with_new(rank, position)
    return jnp.sum(users[targets.users] * items[targets.items], axis=-1)


def _with_new(rank: int, position: dict[str, Array]) -> tuple[Array, Array]:
    """The rows, and after them the mean of a row's prior; a bias's partner is always 1."""
    width = position["users"].shape[1]
    user, item = np.zeros((2, 1, width), np.float32)
    user[0, rank + 1] = item[0, rank] = 1
    return jnp.append(position["users"], user, axis=0), jnp.append(position["items"], item, axis=0)


def _unseen(targets: Targets, training: data.Ratings) -> Targets:
    """The pairs in which someone or something is new."""
    is_new = (targets.users == training.num_users) | (targets.items == training.num_items)
    return Targets(targets.users[is_new], targets.items[is_new], 0)


def _unseen_variance(unseen: Targets, rank: int, position: dict[str, Array]) -> Array:
    r"""Σ_k v_k b_k² + a_k² w_k + v_k w_k, for means a, b of two rows and variances v, w.

    The variances are those of the prior, 1, in a new row, and 0 in one that is known.
    """
    users, items = _with_new(rank, position)
    a, b = users[unseen.users], items[unseen.items]
    width = a.shape[1]
    moves = np.arange(width) < rank + NUM_BIASES
    is_new_user = (unseen.users == len(users) - 1)[:, None]
    is_new_item = (unseen.items == len(items) - 1)[:, None]
    v = (is_new_user & moves & (np.arange(width) != rank + 1)).astype(np.float32)
    w = (is_new_item & moves & (np.arange(width) != rank)).astype(np.float32)
    return jnp.sum(v * b**2 + a**2 * w + v * w, axis=-1)


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
