"""The evidence of a rank on ratings: a Gibbs sampler of each power posterior.

L^β is a likelihood of precision β τ, so that the sampler draws p L^β exactly.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc import adapt, models, sample, whole
from levymc_lab.framework import Cell, CellResult

from . import _movielens as ml
from ._evidence_by_gradients import LOG_2_PI, reported

if TYPE_CHECKING:
    from .model_selection import Selection

CHUNK = 1 << 15  # ratings whose residuals are made at once, in each of the chains
NUM_STARTS = 2


def of_rank(config: "Selection", cell: Cell, key: Any) -> CellResult:
    """The evidence by two Gibbs chains for each β, and the error on held-out ratings."""
    part = ml.part(config.set, is_tuning=False)
    key_near, key_far, key_path, key_predict = jax.random.split(key, 4)
    gibbs, model = sampler(part, cell["size"]), factorization(part, cell["size"])
    # Near zero, and from the prior: where both lead to the same mean, neither is remembered.
    starts = [
        model.init(key_near, ml.START_SCALE, jnp.float32),
        model.init(key_far, 1.0, jnp.float32),
    ]
    powers = (np.arange(config.rank_rungs + 1) / config.rank_rungs) ** 5
    found = adapt.path_evidence(powers, power_draws(config, part, gibbs, starts, powers, key_path))
    predicted = _predicted(config, part, gibbs, starts[0], key_predict)
    return {**reported(found), **predicted, "source": part.source}


def factorization(part: ml.Part, rank: int) -> models.MatrixFactorization:
    return models.matrix_factorization(*part.counts, rank=rank)


def sampler(part: ml.Part, rank: int) -> models.GibbsFactorization:
    train = part.train
    return models.gibbs_factorization(
        train.users, train.items, train.values, *part.counts, rank=rank, center=part.center
    )


def power_draws(
    config: "Selection", part: ml.Part, gibbs: Any, starts: list[Any], powers: Any, key: Any
) -> np.ndarray:
    """log L at draws of p L^β, with the axes (β, start, draw): β is the precision of a rating."""
    made = sample(
        [
            dataclasses.replace(gibbs.algorithm, precision=np.float32(beta))
            for beta in powers
            for _ in starts
        ],
        key,
        jax.tree.map(lambda *leaves: jnp.stack([*leaves] * len(powers)), *starts),
        config.num_sweeps,
        burn_in=config.burn_in,
        minibatches=whole(gibbs.data),
        keep=loglikelihood(part),
        progress=False,
    )
    if made.is_interrupted:
        raise KeyboardInterrupt
    return np.asarray(made.positions, np.float64).reshape(len(powers), len(starts), -1)


def loglikelihood(part: ml.Part) -> Callable[[Any], Any]:
    """log L of a position, some ratings at a time: all of all chains would not fit."""
    train = part.train
    size = min(CHUNK, train.num_ratings)
    padding = -train.num_ratings % size
    columns = (train.users, train.items, train.values - part.center, np.ones(train.num_ratings))
    parts = tuple(
        jnp.asarray(np.pad(column, (0, padding)).reshape(-1, size), kind)
        for column, kind in zip(
            columns, (jnp.int32, jnp.int32, jnp.float32, jnp.float32), strict=True
        )
    )

    def of_position(position: Any) -> Any:
        def squares(chunk: Any) -> Any:
            users, items, values, is_there = chunk
            products = jnp.sum(position["users"][users] * position["items"][items], axis=-1)
            return jnp.sum(is_there * (values - products) ** 2)

        total = jnp.sum(jax.lax.map(squares, parts))
        return -(total + np.float32(train.num_ratings * LOG_2_PI)) / 2

    return of_position


def _predicted(
    config: "Selection", part: ml.Part, gibbs: Any, start: Any, key: Any
) -> dict[str, float]:
    """RMSE of the predictive mean, and the mean log density of a held-out rating."""
    predict = ml.predictor(part, part.center)
    marks = np.arange(1, config.predicting + 1) + config.burn_in
    mean, density = np.zeros(part.test.num_ratings), np.zeros(part.test.num_ratings)
    for count, visit in enumerate(ml.watch(gibbs, start, key, marks), 1):
        drawn = predict(visit.position).astype(np.float64)
        mean += (drawn - mean) / count
        density += (np.exp(-((part.test.values - drawn) ** 2) / 2) - density) / count
    logs = np.log(np.maximum(density, 1e-300)) - LOG_2_PI / 2
    return {"rmse": ml.rmse(mean, part), "log_predictive": float(logs.mean())}
