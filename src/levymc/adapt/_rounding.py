"""Whether numbers are fine enough: what rounding does to log φ, and to positions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc.run import Result

from ._adapted import info_of
from ._tail_map import flat_draws
from ._target import Target

# Nats from one number to the next: by steps of 1 the evidence is wrong by 0.04, by h by h²/24, and
# sums of many terms are rounded many times.
COARSE = 0.1
COARSE_PLACES = 0.3  # standard deviations, likewise: variances are then 1 % too large
REMEDY = 'Compute in double precision: jax.config.update("jax_enable_x64", True), starts in float64'


def rounding(target: Target, result: Result) -> list[str]:
    """Reasons not to trust draws of a density, or at places, that were rounded.

    No other number shows it: what was sampled, and rightly, is the rounded density.
    """
    if not result.num_draws:
        return []
    return _of_values(target, info_of(result).logdensity) + _of_places(result)


def _of_values(target: Target, logdensities: Any) -> list[str]:
    there = jax.ShapeDtypeStruct((target.dimension,), jnp.dtype(target.dtype))
    kinds = jax.eval_shape(target.flat_fn, there).dtype, np.asarray(logdensities).dtype
    coarsest = max(kinds, key=lambda kind: jnp.finfo(kind).eps)
    value = float(np.median(np.asarray(logdensities, np.float64)))
    gap = float(gaps(np.asarray(value), coarsest))
    if not gap > COARSE:
        return []
    return [
        f"log φ is about {value:.1g} at the draws, where the numbers of {coarsest} are {gap:.2g} "
        f"apart: draws and evidence are those of a density that is rounded so. {REMEDY}; or leave "
        "constants out of the sum."
    ]


def _of_places(result: Result) -> list[str]:
    flat, leaves = flat_draws(result), jax.tree.leaves(result.positions)
    middle = np.median(flat, axis=0)
    ends = np.cumsum([int(np.prod(np.shape(leaf)[2:])) for leaf in leaves])[:-1]
    parts = zip(np.split(middle, ends), leaves, strict=True)
    apart = np.concatenate([gaps(part, np.asarray(leaf).dtype) for part, leaf in parts])
    low, high = np.quantile(flat, (0.158655, 0.841345), axis=0)
    widths = np.maximum((high - low) / 2, 1e-3 * apart)
    coarse = np.where(np.ptp(flat, axis=0) > 0, apart / np.maximum(widths, 1e-300), 0.0)
    worst = int(np.argmax(coarse))
    if coarse[worst] <= COARSE_PLACES:
        return []
    return [
        f"The draws of coordinate {worst} are about {middle[worst]:.1g}, where numbers are "
        f"{apart[worst]:.2g} apart, {coarse[worst]:.2g} of its standard deviations: they are "
        f"rounded. {REMEDY}; or shift it towards zero."
    ]


def gaps(values: np.ndarray, dtype: Any) -> np.ndarray:
    """From numbers to the next ones of a type.

    >>> gaps(np.array([0.0, 1.0, -1e7]), np.float32).round(7).tolist()
    [0.0, 1e-07, 1.0]
    """
    known = np.where(values == 0, 1.0, np.abs(values))
    return np.where(values == 0, 0.0, float(jnp.finfo(dtype).eps) * 2 ** np.floor(np.log2(known)))
