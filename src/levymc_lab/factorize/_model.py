"""The model's chain, and what is observed of it."""

from collections.abc import Generator
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
from ._table import FACTOR_SQUARE, STEP_SIZE, TRUNCATION, batch_size_of

COMMIT_SECONDS = 5.0  # what a kill loses at most
START_SCALE = 0.1

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
    """The held-out ratings as a position predicts them, for a look at the error meanwhile.

    users, items: rows of the tables; the one after the last stands for those never fitted.
    """

    users: np.ndarray
    items: np.ndarray
    rank: int

    @classmethod
    def of(cls, job: Job) -> "Predict":
        training, held_out = job.table.training, job.table.held_out
        users = _known(held_out.users, training.users, training.num_users)
        return cls(
            users, _known(held_out.items, training.items, training.num_items), job.settings.rank
        )

    def mean(self, position: Position) -> Array:
        """Without the center; new rows have the mean of the prior, 1 for the partner of a bias."""
        width = position["users"].shape[1]
        user, item = np.zeros((2, 1, width), np.float32)
        user[0, self.rank + 1] = item[0, self.rank] = 1
        users = jnp.append(position["users"], user, axis=0)[self.users]
        items = jnp.append(position["items"], item, axis=0)[self.items]
        return jnp.sum(users * items, axis=-1)


def _known(rows: np.ndarray, trained: np.ndarray, num_rows: int) -> np.ndarray:
    """The rows, but `num_rows` in place of those that no rating was fitted to."""
    is_trained = np.bincount(trained, minlength=num_rows) > 0
    return np.where(is_trained[rows], rows, num_rows).astype(np.int32)


def chain(job: Job, predict: Predict, noise: float, key: Array) -> Generator[Visit, None, None]:
    """The Gibbs sampler or stochastic gradients, from where the job's folder has the chain.

    Observed, in the model's units: "predicted", the mean over the draws that count.
    """
    settings = job.settings
    key_start, key_steps = jax.random.split(key)
    algorithm, ratings, _ = sampler_of(job, noise)
    return levymc.iterate(
        Counting(algorithm),
        key_steps,
        start_of(job, key_start),
        settings.num_steps,
        at=sorted({*settings.looks, *job.draws}),
        minibatches=levymc.whole(ratings),
        observe={"predicted": levymc.observe.mean(predict.mean)},
        observe_every=job.draws,
        store=job.folder.chain,
        commit_seconds=COMMIT_SECONDS,
    )


def start_of(job: Job, key: Array) -> Position:
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


def sampler_of(job: Job, noise: float) -> models.GibbsFactorization | models.FastFactorization:
    """The sampler of the method that was chosen."""
    given = given_of(job, noise)
    return models.gibbs_factorization(**given) if job.is_gibbs else _fast(job, given)


def _fast(job: Job, given: dict[str, Any]) -> models.FastFactorization:
    """Stochastic-gradient FLA with steps that suit each row."""
    training, settings = job.table.training, job.settings
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


def given_of(job: Job, noise: float) -> dict[str, Any]:
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
