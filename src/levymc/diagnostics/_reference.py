r"""The distribution function of a density on the line, known up to a constant, by quadrature."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline

from ._cells import EDGES_REMEDY, cells, check_edges

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
MOST_REFINEMENTS = 7
LOG_NEGLIGIBLE = -100.0  # what lies beyond a point with e^-100 of the largest density is nothing


class Reference(NamedTuple):
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
        return np.clip(CubicHermiteSpline(self.knots, self.cdf, self.density)(inside), 0, 1)

    def partial_mean_at(self, x: np.ndarray) -> np.ndarray:
        inside = np.clip(x, self.knots[0], self.knots[-1])
        slopes = self.knots * self.density
        return CubicHermiteSpline(self.knots, self.partial_mean, slopes)(inside)

    def quantile(self, level: np.ndarray) -> np.ndarray:
        """The point at which F reaches a level, by bisection between two knots."""
        cell = np.clip(np.searchsorted(self.cdf, level), 1, len(self.knots) - 1)
        low, high = self.knots[cell - 1], self.knots[cell]
        for _ in range(50):
            middle = (low + high) / 2
            is_left = self.cdf_at(middle) < level
            low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
        return (low + high) / 2


def reference(logdensity_fn: Callable[[Any], Any], edges: Any) -> Reference:
    """Refine the cells between `edges`, and outside of them, until F no longer changes.

    Raises:
        ValueError: edges that do not increase; a density that is not finite, has no finite
            integral, or is not resolved.
    """
    limits = check_edges(edges)
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


def _integrate(logdensity_fn: Any, edges: np.ndarray, refinement: int) -> Reference:
    knots = cells(edges, refinement)
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
    return Reference(
        knots,
        _running(masses.sum(axis=1) / total),
        _running((points * masses).sum(axis=1) / total),
        at_knots / total,
        float(outermost / far.sum()),
    )


def _densities(
    logdensity_fn: Any, points: np.ndarray, knots: np.ndarray, edges: np.ndarray
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
