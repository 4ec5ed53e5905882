r"""The stationary law of dX = b(X) dt + dL^α on a grid, without random numbers.

.. math:: ∂_t q = -∂_x (b q) - (-Δ)^{α/2} q

Two discretisations, for two purposes.  The matrices of `fractional_laplacian` and
`fractional_gradient` act on the sinc interpolant: exact up to rounding for a smooth function that
has decayed at the ends of the grid, and right for residuals.  `stationary_density` is for unknown
laws: it solves for a Markov chain on the points of the grid, whose densities are never negative,
however large the drift.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve, toeplitz
from scipy.special import roots_jacobi

from levymc.riesz import leading_coefficient, unchecked_coefficients

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]

# What is larger is cut: less than 1e-7 of the mass lies there, but a trap between two such drifts
# would be left once in 1/LARGEST_DRIFT visits, which must not be lost to rounding.
LARGEST_DRIFT = 1e6
NUM_NODES = 24  # a half wave, to rounding


def spacing(grid: Vector) -> float:
    """The distance between the points of a uniform grid."""
    return float((grid[-1] - grid[0]) / (grid.size - 1))


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


def stationary_density(drift_values: Vector, grid: Vector, alpha: float) -> Vector:
    r"""The stationary density on the grid, of sum 1/dx, never negative.

    The noise jumps from point to point by the centred difference of order α, whose weights are
    rates; a jump beyond an end stops there.  The drift is centred where the noise's own steps to
    the next point leave all rates positive, and otherwise upwind.  The error is of order dx² where
    drift and noise are balanced, and dx where the drift is upwind.

    Args:
        drift_values: b at the points, infinities allowed; positive at the first, negative at the
            last, and so large there that little mass lies beyond.
        grid: uniform.
        alpha: in (1, 2).
    """
    rates = _jump_rates(grid, alpha)
    _add_drift(rates, np.clip(drift_values, -LARGEST_DRIFT, LARGEST_DRIFT), spacing(grid))
    leaving = rates.sum(axis=1)
    # How often the points are visited; rates of all sizes are then alike.
    balance = np.eye(grid.size) - (rates / leaving[:, None]).T
    stay = leaving.min() / leaving
    middle = int(np.argmax(stay))
    balance[middle] = stay  # one equation follows from the others: instead, the masses' sum is 1
    visits = solve(balance, np.eye(grid.size)[middle], overwrite_a=True, check_finite=False)
    masses = np.maximum(visits * stay, 0.0)
    return masses / (masses.sum() * spacing(grid))


def _jump_rates(grid: Vector, alpha: float) -> Matrix:
    """From point i to point j at rate -g_{α,i-j} dx^{-α}; beyond the ends, to the ends."""
    scale = spacing(grid) ** -alpha
    rate = -scale * unchecked_coefficients(np.float64(alpha), grid.size)[: grid.size]
    rate[0] = 0.0
    rates = toeplitz(rate)
    beyond = scale * float(leading_coefficient(alpha)) / 2 - np.cumsum(rate)
    rates[1:, 0] += beyond[1:]
    rates[:-1, -1] += beyond[:0:-1]
    return np.maximum(rates, 0.0)


def _add_drift(rates: Matrix, drift: Vector, dx: float) -> None:
    """Add b/dx to the difference of each point's rates to its neighbours."""
    limit = float(rates[1, 2])
    centred = np.clip(drift / (2 * dx), -limit, limit)
    upwind = np.abs(drift / dx - 2 * centred)
    right = _share_to_the_right(drift)
    here = np.arange(drift.size - 1)
    rates[here, here + 1] += (centred + upwind * right)[:-1]
    rates[here + 1, here] += (upwind * (1 - right) - centred)[1:]


def _share_to_the_right(drift: Vector) -> Vector:
    """1 where the drift is positive, 0 where it is negative, and between at a watershed.

    What lands between two points that the drift parts goes left or right of the drift's zero, not
    of the middle: otherwise the masses of two wells would be off by dx.
    """
    share = np.where(drift > 0, 1.0, 0.0)
    before = np.flatnonzero((drift[:-1] < 0) & (drift[1:] > 0))
    zero = drift[before] / (drift[before] - drift[before + 1])  # in dx behind the point before it
    share[before] = np.maximum(0.5 - zero, 0.0)
    share[before + 1] = np.minimum(1.5 - zero, 1.0)
    return share


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
