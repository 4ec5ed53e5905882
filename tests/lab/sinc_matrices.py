r"""Fractional derivatives as matrices that act on the sinc interpolant of a function.

Exact up to rounding for a smooth function that has decayed at the ends of the grid: an oracle for
what the experiments compute in other ways.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.linalg import toeplitz
from scipy.special import roots_jacobi

from levymc_lab.paper._generator import spacing

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]
NUM_NODES = 24  # a half wave, to rounding


def fractional_laplacian(grid: Vector, alpha: float) -> Matrix:
    r"""The matrix of -(-Δ)^{α/2}, whose symbol is -|ω|^α for |ω| ≤ π/dx.

    Args:
        grid: uniform; the function it is applied to has to vanish at both ends.
        alpha: in (0, 2].
    """
    column = -(spacing(grid) ** -alpha) * _wave_moments(alpha, grid.size, np.cos)
    return toeplitz(column)


def fractional_gradient(grid: Vector, alpha: float) -> Matrix:
    r"""The matrix of D^{α-2} ∂, whose symbol is iω|ω|^{α-2}: the derivative for α = 2.

    Its derivative is `fractional_laplacian`; b q = D^{α-2} ∂ q holds where q is stationary.
    """
    column = -(spacing(grid) ** (1 - alpha)) * _wave_moments(alpha - 1, grid.size, np.sin)
    return toeplitz(column, -column)


def _wave_moments(power: float, count: int, wave: Callable[[Vector], Vector]) -> Vector:
    r"""(1/π) ∫_0^π u^p wave(ku) du for k < count, as sums over half waves of t = ku."""
    nodes, weights = np.polynomial.legendre.leggauss(NUM_NODES)
    t = np.pi * (np.arange(1, count)[:, None] + (1 + nodes) / 2)
    halves = (t**power * wave(t)) @ weights * (np.pi / 2)
    nodes, weights = roots_jacobi(NUM_NODES, 0.0, power)  # the first has t^p at its end
    first = wave(np.pi * (1 + nodes) / 2) @ weights * (np.pi / 2) ** (power + 1)
    k = np.arange(1.0, count)
    sums = np.cumsum(np.concatenate([[first], halves]))[: count - 1]
    at_zero = float(wave(np.zeros(1))[0]) * np.pi**power / (power + 1)
    return np.concatenate([[at_zero], sums / (np.pi * k ** (power + 1))])
