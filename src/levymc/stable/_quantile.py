r"""Quantiles of SαS(1): Newton's method, safe from either end.

Near the median, P(0 < X < x) = c is solved for x; the left side is concave, so that Newton's steps
from the left never overshoot.  In the tail, log P(X > x) = log q is solved for log x, where it
tends to a straight line; as α → 2 it is not convex there, so that every step is kept in a bracket.
"""

import math
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _formulas

_TAIL = 0.15  # smaller probabilities are solved for in logarithms
_OVERFLOW_LOG = {4: 89.0, 8: 710.0}  # whose exponential is infinite, by bytes of the float
_MOST_STEPS = 80


class _Search(NamedTuple):
    variable: Any  # x near the median, log x in the tail
    low: Any
    high: Any
    step: Any


def solve(p: Any, alpha: Any) -> Any:
    """F^{-1}(p) in JAX."""
    tail, central, start = _begin(jnp, p, alpha)

    def unfinished(carry: tuple[Any, _Search]) -> Any:
        count, search = carry
        return (count < _MOST_STEPS) & jnp.any(_moves(jnp, search, tail))

    def step(carry: tuple[Any, _Search]) -> tuple[Any, _Search]:
        count, search = carry
        # The barrier keeps XLA from computing the law once for each part of the search.
        residual = jax.lax.optimization_barrier(_residual(jnp, search, tail, central, alpha))
        return count + 1, _advance(jnp, search, tail, *residual)

    _, search = jax.lax.while_loop(unfinished, step, (0, start))
    return _finish(jnp, search.variable, p, tail)


def solve_on_host(p: np.ndarray, alpha: float) -> np.ndarray:
    """F^{-1}(p) in NumPy, in float64 whatever JAX's precision is."""
    exponent = np.asarray(alpha, p.dtype)
    tail, central, search = _begin(np, p, exponent)
    for _ in range(_MOST_STEPS):
        if not np.any(_moves(np, search, tail)):
            break
        search = _advance(np, search, tail, *_residual(np, search, tail, central, exponent))
    return _finish(np, search.variable, p, tail)


def _begin(xp: ModuleType, p: Any, alpha: Any) -> tuple[Any, Any, _Search]:
    """The smaller tail probability, its distance from the median, and where to start."""
    p, alpha = xp.broadcast_arrays(p, alpha)
    tail = xp.minimum(p, 1 - p)
    central = abs(p - 0.5)
    density_at_zero = _formulas.pdf(xp, xp.zeros_like(p), alpha)
    largest = _OVERFLOW_LOG[p.dtype.itemsize]
    in_tail = tail < _TAIL
    near = xp.maximum(central / density_at_zero, float(np.finfo(p.dtype).tiny))
    far = _tail_guess(xp, xp.maximum(tail, math.exp(-largest)), alpha)
    start = xp.where(in_tail, xp.minimum(far, largest), near)
    low = xp.where(in_tail, -8.0, 0.0).astype(p.dtype)
    high = xp.full_like(p, largest)
    # The median is known, and rests from the start.
    step = xp.where(tail == 0.5, 0.0, xp.inf).astype(p.dtype)
    return tail, central, _Search(start, low, high, step)


def _tail_guess(xp: ModuleType, tail: Any, alpha: Any) -> Any:
    """Logarithm of the larger of the Pareto and the Gaussian quantile: either rules somewhere."""
    # P(X > x) ~ Γ(α) sin(πα/2)/π x^{-α}, with Γ(α) ≈ 1 here, as only a start is wanted.
    weight = xp.maximum(xp.sin(math.pi * (2 - alpha) / 2), 1e-30) / math.pi
    pareto = (xp.log(weight) - xp.log(tail)) / alpha
    gaussian = 0.5 * xp.log(-4 * xp.log(2 * xp.minimum(tail, _TAIL)))
    return xp.maximum(pareto, gaussian)


def _residual(xp: ModuleType, search: _Search, tail: Any, central: Any, alpha: Any) -> Any:
    """What is still missing, and Newton's slope."""
    in_tail = tail < _TAIL
    x = xp.where(in_tail, xp.exp(xp.where(in_tail, search.variable, 0.0)), search.variable)
    between, beyond = _formulas.central_and_tail(xp, x, alpha)
    error = xp.where(in_tail, xp.log(beyond) - xp.log(tail), central - between)
    slope = _formulas.log_slope(xp, x, alpha) / xp.where(in_tail, beyond, x)
    return error, slope


def _advance(xp: ModuleType, search: _Search, tail: Any, error: Any, slope: Any) -> _Search:
    low = xp.where(error > 0, search.variable, search.low)
    high = xp.where(error > 0, search.high, search.variable)
    proposal = search.variable + error / slope
    # A bracket's middle takes the place of a step that leaves it (or is 0/0 far out).
    inside = (proposal >= low) & (proposal <= high)
    variable = xp.where(inside, proposal, (low + high) / 2)
    # What has converged rests: among rounding errors a bracket would close beside the root.
    moves = _moves(xp, search, tail) & (error != 0)
    variable = xp.where(moves, variable, search.variable)
    return _Search(variable, low, high, abs(variable - search.variable))


def _moves(xp: ModuleType, search: _Search, tail: Any) -> Any:
    """Whether the last step still mattered: after a smaller one, Newton's error is its square."""
    small = float(np.finfo(search.step.dtype).eps) ** 0.42
    return search.step > small * xp.where(tail < _TAIL, 1.0, search.variable)


def _finish(xp: ModuleType, variable: Any, p: Any, tail: Any) -> Any:
    in_tail = tail < _TAIL
    size = xp.where(in_tail, xp.exp(xp.where(in_tail, variable, 0.0)), variable)
    size = xp.where(tail == 0, xp.inf, xp.where(tail == 0.5, 0.0, size))
    quantile = xp.where(p < 0.5, -size, size)
    return xp.where((p >= 0) & (p <= 1), quantile, xp.nan)
