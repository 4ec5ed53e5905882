r"""The law of SαS(1) from its table, in NumPy or JAX: the ten lines behind `_law`.

With m = max(1, |x|) and g = f_2(x) m^{1+α}, the rescaled Gaussian density, the density is
f = m^{-1-α} (g + (2-α) T_0), which neither underflows nor cancels in the tail.
"""

import math
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import jax.scipy.special

from ._table import CENTRAL, DENSITY, SLOPE, evaluate

_LOG_NORMALISER = math.log(2 * math.sqrt(math.pi))


def logpdf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    stretched, log_stretch = _stretched_density(xp, x, alpha)
    gaussian = -(x * x) / 4 - _LOG_NORMALISER
    return xp.where(alpha == 2, gaussian, xp.log(stretched) - log_stretch)


def pdf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    stretched, log_stretch = _stretched_density(xp, x, alpha)
    return stretched * xp.exp(-log_stretch)


def sf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """P(X > x), accurate relative to its size as x → ∞."""
    _, tail = central_and_tail(xp, abs(x), alpha)
    return xp.where(x < 0, 1 - tail, tail)


def central_and_tail(xp: ModuleType, x: Any, alpha: Any) -> tuple[Any, Any]:
    """P(0 < X < x) and P(X > x) for x ≥ 0, each accurate relative to its size.

    They are erf(x/2)/2 and erfc(x/2)/2, plus and minus (2-α) x m^{-1-α} T_1.
    """
    shift = (2 - alpha) * _shrink(xp, x, alpha) * evaluate(xp, CENTRAL, x, alpha)
    special = _special(xp)
    return special.erf(x / 2) / 2 + shift, special.erfc(x / 2) / 2 - shift


def score(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """f'/f = -x (g/2 + (2-α) T_2/m²) / (g + (2-α) T_0)."""
    stretch, log_stretch = _stretch(xp, abs(x), alpha)
    gaussian = xp.exp(log_stretch - x * x / 4 - _LOG_NORMALISER)
    slope = gaussian / 2 + (2 - alpha) * evaluate(xp, SLOPE, x, alpha) / stretch / stretch
    density = gaussian + (2 - alpha) * evaluate(xp, DENSITY, x, alpha)
    gaussian_law = alpha == 2
    return -x * xp.where(gaussian_law, 0.5, slope / xp.where(gaussian_law, 1.0, density))


def log_slope(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """x f(x) for x ≥ 0, the slope of P(X < x) in log x, where f itself may underflow."""
    stretched, _ = _stretched_density(xp, x, alpha)
    return stretched * _shrink(xp, x, alpha)


def _shrink(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """x m^{-1-α} for x ≥ 0."""
    return xp.minimum(x, 1.0) * xp.exp(-alpha * xp.log(xp.maximum(x, 1.0)))


def _stretched_density(xp: ModuleType, x: Any, alpha: Any) -> tuple[Any, Any]:
    """f m^{1+α}, and the logarithm of m^{1+α}."""
    _, log_stretch = _stretch(xp, abs(x), alpha)
    gaussian = xp.exp(log_stretch - x * x / 4 - _LOG_NORMALISER)
    return gaussian + (2 - alpha) * evaluate(xp, DENSITY, x, alpha), log_stretch


def _stretch(xp: ModuleType, size: Any, alpha: Any) -> tuple[Any, Any]:
    """m = max(1, |x|), and log m^{1+α}."""
    stretch = xp.maximum(size, 1.0)
    return stretch, (1 + alpha) * xp.log(stretch)


def _special(xp: ModuleType) -> Any:
    if xp is jnp:
        return jax.scipy.special
    import scipy.special  # only here, as it takes a third of a second

    return scipy.special
