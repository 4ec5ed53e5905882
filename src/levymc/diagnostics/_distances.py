r"""Distances between draws and a density on the line, known up to a constant."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from levymc._checks import check_real

from ._cells import check_edges
from ._reference import reference
from ._weights import shares

MEAN_TOLERANCE = 1e-6


def total_variation(
    draws: Any, logdensity_fn: Callable[[Any], Any], edges: Any, *, weights: Any = None
) -> float:
    r"""Total variation between draws and a density, on bins:

    .. math:: \tfrac12 \sum_i \Bigl| \sum_{n:\, X_n ∈ B_i} w_n - \int_{B_i} φ \Bigr| ,

    over the bins between `edges` and the two outside of them.  From 0 to 1; valid for all tails.

    Bias: bins hide what happens inside of them, and N independent draws of φ itself are at about
    Σ √(p_i (1 - p_i) / 2πN), p_i the masses of the bins.

    Args:
        draws: of one coordinate, any shape; chains are pooled.
        logdensity_fn: log φ of a scalar, up to a constant.
        edges: increasing points that enclose and resolve all modes; `np.linspace(-6, 6, 61)` for
            the paper's double well.  The tails outside of them are integrated, too.
        weights: none negative, of the shape of `draws`, such as `result.weights`.

    Raises:
        ValueError, TypeError: an argument outside its range, a density that cannot be integrated.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> draws = np.random.default_rng(0).normal(size=100_000)
        >>> diagnostics.total_variation(draws, lambda x: -x * x / 2, np.linspace(-3, 3, 31)) < 0.01
        True
    """
    limits = check_edges(edges)
    values, share = _pooled(draws, weights)
    cdf = reference(logdensity_fn, limits).cdf_at(limits)
    masses = np.diff(cdf, prepend=0.0, append=1.0)
    bins = np.searchsorted(limits, values, side="right")
    found = np.bincount(bins, share, minlength=masses.size)
    return float(np.abs(found - masses).sum() / 2)


def wasserstein(
    draws: Any, logdensity_fn: Callable[[Any], Any], edges: Any, *, weights: Any = None
) -> float:
    r"""The Wasserstein-1 distance between draws and a density: how far mass has to be carried,

    .. math:: W_1 = \int |F_N(x) - F(x)|\, dx = \int_0^1 |F_N^{-1}(p) - F^{-1}(p)|\, dp .

    The integral over p is taken exactly between the draws' levels, from F and ∫ yφ(y) dy.

    Not valid when: φ has no mean, where the distance is infinite; use `total_variation`.

    Args, Raises: as for `total_variation`.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> edges = np.linspace(-4, 4, 41)
        >>> print(f"{diagnostics.wasserstein([0.0], lambda x: -x * x / 2, edges):.6f}")  # √(2/π)
        0.797885
    """
    values, share = _pooled(draws, weights)
    law = reference(logdensity_fn, edges)
    if law.tail_mean > MEAN_TOLERANCE:
        raise ValueError(
            f"`logdensity_fn` must have a mean, got tails that hold {law.tail_mean:.1e} of it at "
            f"|x| = {law.knots[-1]:.0e}: W1 is infinite, or as good as. Use total_variation."
        )
    order = np.argsort(values)
    x, share = values[order], share[order]
    levels = np.concatenate([[0.0], np.cumsum(share)[:-1], [1.0]])
    low, high = levels[:-1], levels[1:]
    inner = law.partial_mean_at(law.quantile(levels[1:-1]))
    means = np.concatenate([[0.0], inner, law.partial_mean[-1:]])
    at_draw = law.cdf_at(x)
    # A draw carries the levels from low to high; those below F(x) come from its left.
    turn = np.clip(at_draw, low, high)
    mean_at_turn = np.where(
        at_draw <= low, means[:-1], np.where(at_draw >= high, means[1:], law.partial_mean_at(x))
    )
    parts = x * (2 * turn - low - high) - 2 * mean_at_turn + means[:-1] + means[1:]
    return float(parts.sum())


def mass_left_of(point: Any, logdensity_fn: Callable[[Any], Any], edges: Any) -> float:
    r"""The mass of a density to the left of a point, ∫_{-∞}^{point} φ.

    Args:
        point: one number.
        logdensity_fn, edges: as for `total_variation`.

    Raises: as for `total_variation`.

    Examples:
        >>> import jax.numpy as jnp, numpy as np
        >>> from levymc import diagnostics
        >>> cauchy = lambda x: -jnp.log1p(x * x)
        >>> print(f"{diagnostics.mass_left_of(1.0, cauchy, np.linspace(-5, 5, 51)):.6f}")
        0.750000
    """
    check_real("point", point, "Give one number.")
    return float(reference(logdensity_fn, edges).cdf_at(np.array([point], np.float64))[0])


def _pooled(
    draws: Any, weights: Any
) -> tuple[Float[np.ndarray, " draw"], Float[np.ndarray, " draw"]]:
    """The draws of all chains, and weights that sum to one."""
    check_real("draws", draws, "Give the draws of one coordinate.")
    values = np.asarray(draws, np.float64)
    if values.size == 0:
        raise ValueError(f"`draws` must not be empty, got shape {values.shape}.")
    return values.ravel(), shares(weights, values.shape).ravel()
