r"""Distances between draws and a density on the line, known up to a constant."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from levymc._checks import check_real
from levymc.drifts import LogDensity

from ._draws import ONE_COORDINATE, shares

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
OUTER_PANELS = 60  # each twice as long as the one before: 1e18 widths of a bin
MOST_REFINEMENTS = 7
LOG_NEGLIGIBLE = -100.0  # what lies beyond a point with e^-100 of the largest density is nothing
MEAN_TOLERANCE = 1e-6
EDGES_REMEDY = "Give points that enclose and resolve the modes: np.linspace(-6, 6, 61)."


def total_variation(
    draws: Any, logdensity_fn: LogDensity, edges: Any, *, weights: Any = None
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
    values, share = _pooled(draws, weights)
    law = _reference(logdensity_fn, edges)
    limits = np.asarray(edges, np.float64)
    masses = np.diff(law.cdf_at(limits), prepend=0.0, append=1.0)
    bins = np.searchsorted(limits, values, side="right")
    found = np.bincount(bins, share, minlength=masses.size)
    return float(np.abs(found - masses).sum() / 2)


def wasserstein(draws: Any, logdensity_fn: LogDensity, edges: Any, *, weights: Any = None) -> float:
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
    law = _reference(logdensity_fn, edges)
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


def mass_left_of(point: Any, logdensity_fn: LogDensity, edges: Any) -> float:
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
    return float(_reference(logdensity_fn, edges).cdf_at(np.array([point], np.float64))[0])


def _pooled(
    draws: Any, weights: Any
) -> tuple[Float[np.ndarray, " draw"], Float[np.ndarray, " draw"]]:
    """The draws of all chains, and weights that sum to one."""
    check_real("draws", draws, ONE_COORDINATE)
    values = np.asarray(draws, np.float64)
    if values.size == 0:
        raise ValueError(f"`draws` must not be empty, got shape {values.shape}.")
    return values.ravel(), shares(weights, values.shape).ravel()


class _Reference(NamedTuple):
    """A law at its knots.

    cdf: F(x).
    partial_mean: ∫ y φ(y) dy up to x.
    density: φ, normalised.
    tail_mean: share of E|X - middle| in the outermost panels, which tells of an infinite mean.
    """

    knots: Float[np.ndarray, " knot"]
    cdf: Float[np.ndarray, " knot"]
    partial_mean: Float[np.ndarray, " knot"]
    density: Float[np.ndarray, " knot"]
    tail_mean: float

    def cdf_at(self, x: np.ndarray) -> np.ndarray:
        """F, by cubic interpolation with the right slopes."""
        inside = np.clip(x, self.knots[0], self.knots[-1])
        return np.clip(_spline(self.knots, self.cdf, self.density)(inside), 0, 1)

    def partial_mean_at(self, x: np.ndarray) -> np.ndarray:
        inside = np.clip(x, self.knots[0], self.knots[-1])
        slopes = self.knots * self.density
        return _spline(self.knots, self.partial_mean, slopes)(inside)

    def quantile(self, level: np.ndarray) -> np.ndarray:
        """The point at which F reaches a level, by bisection between two knots."""
        cell = np.clip(np.searchsorted(self.cdf, level), 1, len(self.knots) - 1)
        low, high = self.knots[cell - 1], self.knots[cell]
        for _ in range(50):
            middle = (low + high) / 2
            is_left = self.cdf_at(middle) < level
            low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
        return (low + high) / 2


def _reference(logdensity_fn: LogDensity, edges: Any) -> _Reference:
    """Refine the cells between `edges`, and outside of them, until F no longer changes.

    Raises:
        ValueError: edges that do not increase; a density that is not finite, has no finite
            integral, or is not resolved.
    """
    limits = _check_edges(edges)
    current = _integrate(logdensity_fn, limits, 1)
    for power in range(1, MOST_REFINEMENTS):
        finer = _integrate(logdensity_fn, limits, 2**power)
        error = float(np.max(np.abs(current.cdf_at(finer.knots) - finer.cdf)))
        current = finer
        if error < _tolerance():
            return current
    raise ValueError(
        f"`edges` must resolve the density, got bins in which its integral is known to {error:.1e} "
        "only. Put an edge at every jump and kink of the density, and several across each mode."
    )


def _tolerance() -> float:
    """JAX's precision decides what can be had."""
    return 1e-7 if jnp.zeros(()).dtype == jnp.float64 else 3e-4


def _integrate(logdensity_fn: LogDensity, edges: np.ndarray, refinement: int) -> _Reference:
    knots = _cells(edges, refinement)
    half = np.diff(knots)[:, None] / 2
    points = (knots[:-1, None] + half) + half * NODES
    values, at_knots = _densities(logdensity_fn, points, knots, edges)
    masses = values * NODE_WEIGHTS * half
    total = masses.sum()
    if not masses[[0, -1]].sum() < 1e-6 * total:
        raise ValueError(
            "`logdensity_fn` must have a finite integral, got a density that does not fall off by "
            f"x = {knots[-1]:.0e}. Check its sign: log φ goes to -∞."
        )
    far = np.abs(points - np.median(edges)) * masses
    outermost = far[: 8 * refinement].sum() + far[-8 * refinement :].sum()
    return _Reference(
        knots,
        _running(masses.sum(axis=1) / total),
        _running((points * masses).sum(axis=1) / total),
        at_knots / total,
        float(outermost / far.sum()),
    )


def _densities(
    logdensity_fn: LogDensity, points: np.ndarray, knots: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """φ up to a common factor, at points and knots."""
    everywhere = np.concatenate([points.ravel(), knots])
    order = np.argsort(everywhere, kind="stable")
    ordered = everywhere[order]
    log_values = np.array(jax.vmap(logdensity_fn)(jnp.asarray(ordered)), np.float64)
    is_inside = (ordered >= edges[0]) & (ordered <= edges[-1])
    top = np.max(log_values[is_inside], initial=-np.inf, where=~np.isnan(log_values[is_inside]))
    small = ~is_inside & (log_values < top + LOG_NEGLIGIBLE)
    # Far out log φ may overflow to NaN: no harm, once it has been negligible nearer in.
    beyond_right = np.maximum.accumulate(small & (ordered > edges[-1]))
    beyond_left = np.maximum.accumulate((small & (ordered < edges[0]))[::-1])[::-1]
    log_values[beyond_right | beyond_left] = -np.inf
    wrong = np.isnan(log_values) | (log_values == np.inf)
    if np.any(wrong) or top == -np.inf:
        place = ordered[np.argmax(wrong)]
        raise ValueError(
            f"`logdensity_fn` must be a number or -inf and somewhere finite between the edges, got "
            f"{log_values[np.argmax(wrong)]} at {place:g}. {EDGES_REMEDY}"
        )
    values = np.empty_like(log_values)
    values[order] = np.exp(log_values - log_values.max())
    return values[: points.size].reshape(points.shape), values[points.size :]


def _running(parts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(parts)])


def _check_edges(edges: Any) -> Float[np.ndarray, " edge"]:
    check_real("edges", edges, EDGES_REMEDY)
    limits = np.asarray(edges, np.float64)
    if limits.ndim != 1 or limits.size < 2 or np.any(np.diff(limits) <= 0):
        raise ValueError(
            f"`edges` must be at least two increasing points, got {edges}. {EDGES_REMEDY}"
        )
    return limits


def _cells(edges: np.ndarray, refinement: int) -> np.ndarray:
    """Bins in quarters, outer panels in eighths; each again in `refinement` cells."""
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    reach = width * (2.0 ** np.arange(1, OUTER_PANELS + 1) - 1)
    left, right = (edges[0] - reach)[::-1], edges[-1] + reach
    outer = (np.append(left, edges[0]), np.insert(right, 0, edges[-1]))
    before, after = (_cut(points, 8 * refinement) for points in outer)
    return np.concatenate([before[:-1], _cut(edges, 4 * refinement)[:-1], after])


def _cut(points: np.ndarray, pieces: int) -> np.ndarray:
    inner = points[:-1, None] + np.diff(points)[:, None] * (np.arange(pieces) / pieces)
    return np.append(inner.ravel(), points[-1])


def _spline(knots: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> Any:
    from scipy.interpolate import CubicHermiteSpline  # only here, as it takes half a second

    return CubicHermiteSpline(knots, values, slopes)
