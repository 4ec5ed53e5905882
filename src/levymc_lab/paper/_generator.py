r"""The stationary law of dX = b(X) dt + dL^α on a grid, without random numbers.

.. math:: ∂_t q = -∂_x (b q) - (-Δ)^{α/2} q

`stationary_density` solves for a Markov chain on the points of the grid, whose densities are never
negative, however large the drift.  With it come the laws of the double well under its three drifts:
the exact b, the truncated sum b̃_{h,K}, and the leading term b̂.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve, toeplitz

from levymc.riesz import leading_coefficient, unchecked_coefficients

from . import _double_well as well

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]

# What is larger is cut: less than 1e-7 of the mass lies there, but a trap between two such drifts
# would be left once in 1/LARGEST_DRIFT visits, which must not be lost to rounding.
LARGEST_DRIFT = 1e6
LARGEST_LOG = 400.0  # of a truncated drift; what is larger is as good as infinite

# The double well's U = (x⁴ - 0.02 x³ - 26.02 x² + 0.5 x + 25.5)/10 + 0.5
SLOPE = np.polynomial.Polynomial([0.5, -52.04, -0.06, 4.0]) / 10


def spacing(grid: Vector) -> float:
    """The distance between the points of a uniform grid."""
    return float((grid[-1] - grid[0]) / (grid.size - 1))


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


@dataclass(frozen=True)
class Grid:
    """Points on [-limit, limit]; beyond, the drift brings every jump back at once."""

    dx: float
    limit: float = 8.0

    @property
    def points(self) -> Vector:
        half = round(self.limit / self.dx)
        return np.arange(-half, half + 1) * self.dx

    def difference(self, one: Vector, other: Vector) -> dict[str, float]:
        """Bias, total variation and left-mass error of the first density against the second."""
        x, masses = self.points, (one - other) * self.dx
        left = np.where(x < 0, 1.0, np.where(x == 0, 0.5, 0.0))
        return {
            "bias": float(masses @ x),
            "tv": float(np.abs(masses).sum() / 2),
            "left_mass_error": float(masses @ left),
        }


def exact_density(grid: Grid, alpha: float) -> Vector:
    """Of the double well's diffusion with the exact drift: the target, up to the grid's error."""
    values = jax.jit(jax.vmap(well.exact_drift(alpha, 128)))(jnp.asarray(grid.points))
    return stationary_density(np.asarray(values), grid.points, alpha)


def truncated_drift(x: Vector, alpha: float, h: float, num_terms: int) -> Vector:
    r"""The double well's b̃_{h,K} at the points x, at most e^400, for many h and K at once.

    .. math:: \tilde b_{h,K}(x) = h^{2-α} \sum_{k=-K}^{K} g_{α-2,k}\, ∂\log φ(x - kh)\,
       \frac{φ(x - kh)}{φ(x)}

    `levymc.drifts.centered_difference` would be compiled for each K; a test compares the two.
    """
    k = np.arange(-num_terms, num_terms + 1)
    weights = unchecked_coefficients(np.float64(alpha - 2), num_terms)[np.abs(k)]
    places = x[:, None] - h * k
    log_ratios = well.potential(x)[:, None] - well.potential(places)
    largest = log_ratios.max(axis=1)
    sums = np.sum(-weights * SLOPE(places) * np.exp(log_ratios - largest[:, None]), axis=1)
    log_size = np.log(np.maximum(np.abs(sums), 1e-300)) + largest + (2 - alpha) * np.log(h)
    return np.sign(sums) * np.exp(np.minimum(log_size, LARGEST_LOG))


def truncated_density(grid: Grid, alpha: float, h: float, num_terms: int) -> Vector:
    """Of the double well's diffusion with b̃_{h,K}."""
    values = truncated_drift(grid.points, alpha, h, num_terms)
    return stationary_density(values, grid.points, alpha)


def leading_density(x: Vector, alpha: float) -> Vector:
    """Of FLA's diffusion on the double well, dX = c_α ∂log φ(X) dt + dL^α."""
    if alpha == 2:  # the drift is exact
        return well.density(x)
    slope = -np.polynomial.Polynomial.fromroots([-5, -1, 1.02, 5]).deriv()(x) / 10
    return stationary_density(float(leading_coefficient(alpha - 2)) * slope, x, alpha)
