r"""Whether draws are as wide as the slopes of log φ tell, by Stein's identity in each coordinate,

.. math:: E[g(X)\, ∂_d \log φ(X) + ∂_d g(X)] = 0, \qquad
   g(x) = \tanh\frac{x_d - c}{w},

for centres c and widths w at quantiles of the draws.  For normal draws too wide by a factor f the
first term is f² times the second.
"""

import math
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from levymc.drifts import LogDensity
from levymc.run import Result

from ._draws import at_points, flat_chains, flat_function
from ._trend import FALSE_ALARM, largest_z, long_run_variance

MOST_GRADIENTS = 2048
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
HALF_WIDTH = 0.09  # of the levels: g rises between the quantiles so far from its centre
WORST_MISFIT = 0.2  # of the forces: for normal draws, a fifth of their variance


class Misfit(NamedTuple):
    """The identity's sum over the mean size of its terms; in standard errors; and for which."""

    axis: int
    value: float
    size: float
    z: float


def worst_misfit(result: Result, logdensity_fn: LogDensity, axes: np.ndarray) -> Misfit | None:
    """That which is neither small nor chance; negative where the draws are too wide."""
    step = max(1, math.ceil(result.num_chains * result.num_draws / MOST_GRADIENTS))
    draws = flat_chains(result)[:, ::step]
    if draws.shape[1] < 2:
        return None
    scores = _scores(result, logdensity_fn, draws)
    weights = np.asarray(result.weights[:, ::step], np.float64)
    found = [
        _misfit(axis, draws[..., axis], scores[..., axis], weights, level)
        for axis in axes.tolist()
        for level in LEVELS
        if np.all(np.isfinite(scores[..., axis]))
    ]
    limit = largest_z(FALSE_ALARM, len(found))
    bad = [f for f in found if f and abs(f.z) > limit and abs(f.size) > WORST_MISFIT]
    return max(bad, key=lambda f: abs(f.size), default=None)


def _misfit(
    axis: int, values: np.ndarray, scores: np.ndarray, weights: np.ndarray, level: float
) -> Misfit | None:
    low, center, high = np.quantile(values, [level - HALF_WIDTH, level, level + HALF_WIDTH])
    if not low < high:
        return None
    rise = np.tanh((values - center) / (high - low))
    forces, slopes = scores * rise, (1 - rise**2) / (high - low)
    share = weights / weights.mean()
    terms = share * (forces + slopes)
    typical = float(np.mean(share * np.abs(forces)))
    error = math.sqrt(long_run_variance(terms) / terms.size)
    if typical == 0 or error == 0:
        return None
    total = float(np.mean(terms))
    return Misfit(axis, float(center), total / typical, total / error)


def _scores(
    result: Result, logdensity_fn: LogDensity, draws: Float[np.ndarray, "chain draw coordinate"]
) -> Float[np.ndarray, "chain draw coordinate"]:
    """∇ log φ at the draws."""
    of_vectors = flat_function(result, logdensity_fn)
    scores = at_points(jax.grad(of_vectors.function), of_vectors.dtype)
    return scores(draws.reshape(-1, draws.shape[2])).reshape(draws.shape)
