r"""Modes without gradients: where Lévy walks have been, as a mixture of t laws."""

import math
from typing import Any

import jax
import numpy as np

from levymc.algorithms import levy_walk
from levymc.run import sample

from ._adapted import whole
from ._fit import expectation_maximisation, score, split_components
from ._ladder import NUM_SYSTEMS
from ._reference import LAPLACE_DEGREES, Fit
from ._target import Target
from ._warm_up import warm_up

WALKING = 0.2  # of the budget
SCALING = WALKING / 4  # of it, to find the scales
SPLITS = 4


def by_walking(target: Target, key: Any, starts: np.ndarray, budget: int) -> Fit:
    """Walk from the starts, and fit a mixture to the second half of where that led."""
    least = math.ceil(NUM_SYSTEMS * (target.dimension + 1) / SCALING)
    if budget < least:
        raise ValueError(
            f"`budget` must be at least {least} for {target.dimension} coordinates without a "
            f"gradient, got {budget}: each has a scale to be found. Give more."
        )
    key_scales, key_walk = jax.random.split(key)
    chains = target.positions(starts[np.arange(NUM_SYSTEMS) % len(starts)])
    walk = levy_walk(target.logdensity_fn, 1.0)
    adapted = warm_up(walk, key_scales, chains, budget=int(SCALING * budget))
    target.evaluations += sum(adapted.evaluations.values())
    steps = int((WALKING - SCALING) * budget / NUM_SYSTEMS)
    result = whole(sample(adapted.algorithm, key_walk, adapted.positions, steps, progress=False))
    target.evaluations += steps * NUM_SYSTEMS
    points = target.flattened(result.positions)[:, steps // 2 :]
    return fit_mixture(target, points)


def fit_mixture(target: Target, points: np.ndarray) -> Fit:
    """As many components as make proposals better on the chains that are held out."""
    dimension = points.shape[-1]
    others = points[NUM_SYSTEMS // 2 :].reshape(-1, dimension)
    everything = points.reshape(-1, dimension)
    others = others[:: max(1, len(others) // 1000)]
    values = target.values(others)
    low, high = np.quantile(everything, (0.1, 0.9), axis=0)
    spread = np.diag(np.maximum(((high - low) / 2.6) ** 2, 1e-300))
    fit = Fit(
        np.ones(1),
        np.median(everything, axis=0)[None],
        spread[None],
        np.full(1, LAPLACE_DEGREES),
        np.zeros(1, int),
    )
    best, best_score = fit, score(fit, others, values)
    thinned = everything[:: max(1, len(everything) // 4000)]
    for _ in range(SPLITS):
        candidate = split_components(fit._replace(mode=np.arange(len(fit.weights))), thinned)
        if candidate is None:
            break
        candidate = candidate._replace(mode=np.arange(len(candidate.weights)))
        fit = expectation_maximisation(candidate, candidate, thinned)
        found = score(fit, others, values)
        if found > best_score:
            best, best_score = fit, found
    return best._replace(mode=np.arange(len(best.weights)))
