r"""Hops between modes, and the long jumps of the noise."""

from typing import Any

import numpy as np
from jaxtyping import Int

from levymc._checks import check_positive, check_real
from levymc.algorithms import Info
from levymc.run import Result

from ._draws import ONE_COORDINATE


def hops(values: Any, boundaries: Any) -> Int[np.ndarray, "*chains"]:
    r"""How often a chain goes from the core of one mode to that of another.

    `boundaries` b₁ < b₂ ≤ b₃ < b₄ … cut the line into cores and the bands between them,

    .. math:: (-∞, b_1],\; [b_2, b_3],\; …,\; [b_{2m}, ∞) .

    A hop is counted when a core is reached and the last core visited was another: what happens
    inside a band, such as a chain that hesitates at the top of a barrier, counts nothing.

    Args:
        values: one coordinate, with the axes (…, draw).
        boundaries: an even number of increasing values; for two modes, a point inside each.

    Returns: the hops of each chain.

    Raises:
        ValueError, TypeError: values that are not finite, boundaries that do not increase.

    Examples:
        >>> from levymc import diagnostics
        >>> int(diagnostics.hops([-4.0, 0.1, -0.1, 0.1, -4.0, 4.0], (-3.6, 3.6)))
        1
    """
    check_real("values", values, ONE_COORDINATE)
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError(f"`values` must have an axis of draws, got the number {array}.")
    regions = _regions(array, _check_boundaries(boundaries))
    # The last core visited, at each draw: carry the place of the latest draw inside a core along.
    places = np.where(regions >= 0, np.arange(array.shape[-1]), -1)
    latest = np.maximum.accumulate(places, axis=-1)
    last = np.take_along_axis(regions, np.maximum(latest, 0), axis=-1)
    has_begun = latest[..., :-1] >= 0
    return np.asarray(np.sum((last[..., 1:] != last[..., :-1]) & has_begun, axis=-1))


def jumps(result: Result, threshold: Any) -> Int[np.ndarray, " chain"]:
    """How many draws had noise with a coordinate of more than `threshold`, in each chain.

    The noise counts before any Metropolis test: of an adjusted algorithm, these are proposals.
    With thinning, a draw has the largest noise of its steps.

    Args:
        result: of one of levymc's algorithms.
        threshold: positive, in the units of the position; half the distance of two modes, say.

    Raises:
        ValueError, TypeError: a threshold that is not positive; a result without noise recorded.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> result = levymc.sample(walk, jax.random.key(0), jnp.zeros(4), 100, progress=False)
        >>> levymc.diagnostics.jumps(result, 1.0).shape
        (4,)
    """
    check_positive("threshold", threshold, "It is a length in the units of the position.")
    if not isinstance(result.info, Info):
        raise TypeError(
            f"`result` must come from one of levymc's algorithms, got info of type "
            f"{type(result.info).__name__}. Count with levymc.diagnostics.hops instead."
        )
    return np.sum(np.asarray(result.info.largest_jump) > threshold, axis=1)


def _check_boundaries(boundaries: Any) -> np.ndarray:
    remedy = "Give two for each barrier, a point inside each of its modes: (-3.6, 3.6)."
    check_real("boundaries", boundaries, remedy)
    limits = np.asarray(boundaries, np.float64)
    if limits.ndim != 1 or limits.size < 2 or limits.size % 2:
        raise ValueError(f"`boundaries` must be an even number of values, got {boundaries}. "
                         f"{remedy}")  # fmt: skip
    if np.any(np.diff(limits) < 0) or np.any(limits[::2] == limits[1::2]):
        raise ValueError(f"`boundaries` must increase, got {boundaries}. {remedy}")
    return limits


def _regions(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The number of the core that a value lies in, -1 in a band."""
    # Cores are closed: a value at an upper limit lies below it, one at a lower limit above.
    bands = zip(limits[::2], limits[1::2], strict=True)
    in_band = [(values > low) & (values < up) for low, up in bands]
    above = [values >= upper for upper in limits[1::2]]
    return np.where(np.any(in_band, axis=0), -1, np.sum(above, axis=0))
