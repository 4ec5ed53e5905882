"""The model's chain, what is observed of it, and the noise of a rating."""

from collections.abc import Generator, Iterator
from types import EllipsisType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import levymc
from levymc import models
from levymc._trees import module
from levymc.algorithms import Algorithm, Info, SamplingAlgorithm
from levymc.run import Visit

from ._prepare import Job
from ._table import FACTOR_SQUARE, NUM_BIASES, STEP_SIZE, TRUNCATION, Targets, batch_size_of

COMMIT_SECONDS = 5.0  # what a kill loses at most
START_SCALE = 0.1

# Of the Gibbs sampler that finds the noise.
SWEEPS = (8, 4, 4)  # a round; the error goes down by a third to a tenth in each
FIRST_SHARE = 0.7  # of the ratings' standard deviation, which is what it is on MovieLens
SMALLEST_SHARE = 0.01  # ratings that factors explain fully have no noise, but a precision is finite
CHUNK = 2**20

Position = dict[str, Any]


class Counted(NamedTuple):
    """The state of an algorithm, and how many of its steps diverged."""

    inner: Any
    num_divergent: Array

    @property
    def position(self) -> Position:
        return self.inner.position


@module()
class Counting(SamplingAlgorithm[Counted]):
    """An algorithm that counts the steps that diverge: observers see few of them."""

    takes_minibatch = True

    algorithm: Algorithm

    def init(self, position: Position, rng_key: Array | None = None) -> Counted:
        return Counted(self.algorithm.init(position), jnp.int32(0))

    def step(self, key: Array, state: Counted, *minibatch: Any) -> tuple[Counted, Info]:
        inner, info = self.algorithm.step(key, state.inner, *minibatch)
        return Counted(inner, state.num_divergent + info.is_divergent.astype(jnp.int32)), info


def of_one_chain(visit: Visit) -> Visit:
    """A visit to a single chain without the axis of chains, in NumPy."""
    states, observed = jax.tree.map(lambda leaf: np.asarray(leaf)[0], visit[1:])
    return Visit(visit.step, states, observed)


class Predict(NamedTuple):
    """Predictions of the targets by a position, and their variance from what was never seen."""

    targets: Targets
    rank: int

    def mean(self, position: Position) -> Array:
        users, items = self._rows(position)
        return jnp.sum(users * items, axis=-1)

    def unseen_variance(self, position: Position) -> Array:
        r"""Σ_k v_k b_k² + a_k² w_k + v_k w_k, for means a, b of two rows and variances v, w.

        The variances are those of the prior, 1, in a new row, and 0 in one that is known.
        """
        of, is_new = self.targets, self.targets.is_new
        a, b = self._rows(position, is_new)
        column = np.arange(a.shape[1])
        moves = column < self.rank + NUM_BIASES
        v = (of.is_new_user[is_new, None] & moves & (column != self.rank + 1)).astype(np.float32)
        w = (of.is_new_item[is_new, None] & moves & (column != self.rank)).astype(np.float32)
        return jnp.sum(v * b**2 + a**2 * w + v * w, axis=-1)

    def _rows(
        self, position: Position, chosen: np.ndarray | EllipsisType = ...
    ) -> tuple[Array, Array]:
        """Those of the targets; of new ones the mean of the prior, 1 for the partner of a bias."""
        width = position["users"].shape[1]
        user, item = np.zeros((2, 1, width), np.float32)
        user[0, self.rank + 1] = item[0, self.rank] = 1
        users = jnp.append(position["users"], user, axis=0)
        items = jnp.append(position["items"], item, axis=0)
        return users[self.targets.users[chosen]], items[self.targets.items[chosen]]


def chain(job: Job, predict: Predict, noise: float, key: Array) -> Generator[Visit, None, None]:
    """Stochastic-gradient FLA with steps that suit each row, from where the job's folder has it.

    Observed, in the model's units: "predicted", and "unseen", the mean variance that predictions
    have from users and items never seen.
    """
    settings = job.settings
    key_start, key_steps = jax.random.split(key)
    fast = _fast(job, noise)
    return levymc.iterate(
        Counting(fast.algorithm),
        key_steps,
        _start(job, key_start),
        settings.steps,
        at=settings.looks,
        minibatches=levymc.whole(fast.data),
        observe={
            "predicted": levymc.observe.predictive(predict.mean),
            "unseen": levymc.observe.mean(predict.unseen_variance),
        },
        observe_every=settings.draws,
        store=job.folder.chain,
        commit_seconds=COMMIT_SECONDS,
    )


def _start(job: Job, key: Array) -> Position:
    """Small factors of one chain: at zero the gradient in both would vanish.

    Made by NumPy, as to compile JAX's normals for two shapes takes seconds.
    """
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    generator = np.random.default_rng(words)
    counts = {"users": job.table.training.num_users, "items": job.table.training.num_items}
    return {
        name: np.float32(START_SCALE)
        * generator.standard_normal((1, count, job.settings.rank), np.float32)
        for name, count in counts.items()
    }


def _fast(job: Job, noise: float) -> models.FastFactorization:
    training, settings = job.table.training, job.settings
    given = _given(job, noise)
    model = models.matrix_factorization(
        training.num_users,
        training.num_items,
        rank=settings.rank,
        noise_precision=given["noise_precision"],
    )
    steps = model.row_preconditioner(
        training.users, training.items, FACTOR_SQUARE, settings.caution
    )
    return models.fast_factorization(
        **given,
        batch_size=batch_size_of(training),
        step_size=STEP_SIZE,
        alpha=settings.alpha,
        preconditioner={name: rows[:, 0] for name, rows in steps.items()},
        curvature=True,
        truncation=TRUNCATION,
    )


def _given(job: Job, noise: float) -> dict[str, Any]:
    """What both samplers are made from."""
    training, scale = job.table.training, job.scale
    return {
        "users": training.users.astype(np.int64),
        "items": training.items.astype(np.int64),
        "ratings": training.values.astype(np.float64) / scale.spread,
        "num_users": training.num_users,
        "num_items": training.num_items,
        "rank": job.settings.rank,
        "center": scale.center / scale.spread,
        "noise_precision": (scale.spread / noise) ** 2,
        "biases": True,
        "num_threads": job.num_threads,
    }


def estimate_noise(job: Job, key: Array) -> Iterator[float]:
    r"""The standard deviation σ of a rating, in its units, ever better, as the fixed point of

    .. math:: σ^2 \gets \frac1N \sum_{ui} (y_{ui} - \hat y_{ui})^2,
       \qquad \hat y \text{ of a draw from the posterior given } σ,

    where a flat prior's conditional law of σ² has its mass, N being large.  Some sweeps of the
    Gibbs sampler make the draws.
    """
    deviation = float(job.table.training.values.std(dtype=np.float64))
    noise = FIRST_SHARE * deviation
    key_start, key_sweeps = jax.random.split(key)
    position = _start(job, key_start)
    for number, sweeps in enumerate(SWEEPS):
        gibbs = models.gibbs_factorization(**_given(job, noise))
        key_round = jax.random.fold_in(key_sweeps, number)
        drawn = levymc.sample(
            gibbs.algorithm,
            key_round,
            position,
            sweeps,
            thin=sweeps,
            minibatches=levymc.whole(gibbs.data),
            progress=False,
        )
        position = jax.tree.map(lambda leaf: leaf[:, -1], drawn.positions)
        noise = max(_residual(job, position), SMALLEST_SHARE * deviation)
        yield noise


def _residual(job: Job, position: Position) -> float:
    """The root mean square error of one draw."""
    ratings, scale = job.table.training, job.scale
    users, items = position["users"][0], position["items"][0]
    total = 0.0
    for begin in range(0, ratings.num_ratings, CHUNK):
        rows = slice(begin, begin + CHUNK)
        product = np.einsum("nk,nk->n", users[ratings.users[rows]], items[ratings.items[rows]])
        values = ratings.levels[ratings.codes[rows]].astype(np.float64)
        total += float(np.sum((values - scale.center - scale.spread * product) ** 2))
    return (total / ratings.num_ratings) ** 0.5
