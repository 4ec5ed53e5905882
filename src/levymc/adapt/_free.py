r"""Modes without gradients: where Lévy walks have been, as a mixture of t laws."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc.algorithms import levy_walk
from levymc.run import sample

from ._adapted import whole
from ._explore import DIP, NEIGHBOURS, NUM_BETWEEN
from ._fit import expectation_maximisation, score, split_components
from ._ladder import NUM_SYSTEMS, Draws
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


class Hills(NamedTuple):
    """Tops with dips to all higher ones, and the number of the one that a component is part of."""

    location: np.ndarray
    logdensity: np.ndarray
    of_component: np.ndarray


def hills_of(
    target: Target, fit: Fit, draws: Draws, components: np.ndarray, most: int
) -> Hills | None:
    """Components as hills, by the rule of the search: without a dip of log φ between, two are one.

    Each is where log φ is highest, of its mean and its draws, and joins the nearest higher one that
    it has no dip to.  One that lies in a valley joins one side, so that it does not join both.
    None if that takes more than `most` evaluations.
    """
    tops, heights = fit.means.copy(), target.values(fit.means)
    for number in range(len(tops)):
        own = components == number
        if np.any(own) and draws.values[own].max() > heights[number]:
            best = int(np.argmax(draws.values[own]))
            tops[number], heights[number] = draws.points[own][best], draws.values[own][best]
    order, most = np.argsort(-heights, kind="stable"), most - len(tops)
    inside = np.arange(1, NUM_BETWEEN + 1)[:, None] / (NUM_BETWEEN + 1)
    number_of, found = np.full(len(tops), -1), list[int]()
    for place, one in enumerate(order):
        inverse = np.linalg.inv(fit.covariances[one])
        offsets = tops[order[:place]] - tops[one]
        squares = np.einsum("ki,ij,kj->k", offsets, inverse, offsets)
        for higher in order[:place][np.argsort(squares, kind="stable")[:NEIGHBOURS]]:
            most -= NUM_BETWEEN
            if most < 0:
                return None
            between = target.values(tops[one] + inside * (tops[higher] - tops[one]))
            if between.min() > heights[one] - DIP:
                number_of[one] = number_of[higher]
                break
        else:
            number_of[one] = len(found)
            found.append(int(one))
    return Hills(tops[found], heights[found], number_of)


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
