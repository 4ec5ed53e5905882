r"""The drift b̂ of the fractional Langevin algorithm."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_interval, is_traced
from levymc.riesz import leading_coefficient

from ._coordinates import check_position, like
from ._drift import ALPHA_REMEDY, Drift, Evaluations, LogDensity, Position, from_value
from ._gradient import is_gaussian


def leading_term(logdensity_fn: LogDensity, alpha: Any) -> Drift:
    r"""The first term of the centred difference alone:

    .. math:: \hat b(x) = c_α ∇\log φ(x), \qquad c_α = Γ(α-1)/Γ(α/2)^2 .

    Targets: not φ, for α < 2.  The diffusion with this drift has another stationary law, whatever
    the step: on N(0, σ²) it is SαS with scale (σ²/(α c_α))^{1/α}, of the right width and with
    tails |x|^{-α}.  Its median relative error on a double well is near 100 %.

    Not valid when: the target is heavy-tailed; the gradient vanishes far out and cannot bring back
    a jump.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.

    Raises:
        ValueError: alpha outside its range.  TypeError: when called, `logdensity_fn` not scalar.

    Examples:
        >>> import levymc
        >>> drift = levymc.drifts.leading_term(lambda x: -x * x / 2, 1.5)
        >>> round(float(drift(1.0)), 3)
        -1.18

    References: [simsekli2017], eq. (14).
    """
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy=ALPHA_REMEDY)

    def slope(position: Position) -> Position:
        check_position(logdensity_fn, position)
        return jax.grad(logdensity_fn)(position)

    return scaled_gradient(slope, alpha)


def scaled_gradient(gradient_fn: Callable[[Position], Position], alpha: Any) -> Drift:
    """c_α times a gradient of log φ that is given, or estimated."""
    if is_gaussian(alpha):
        return from_value(gradient_fn, Evaluations(density=0, gradient=1))

    def value(position: Position) -> Position:
        slopes = gradient_fn(position)
        weights = jax.tree.map(gradient_coefficient, like("alpha", alpha, position))
        return jax.tree.map(lambda c, slope: jnp.asarray(c, slope.dtype) * slope, weights, slopes)

    return from_value(value, Evaluations(density=0, gradient=1))


def gradient_coefficient(alpha: Any) -> Any:
    """c_α of b̂ = c_α ∇log φ, exactly one at α = 2 also where α is traced."""
    xp: ModuleType = jnp if is_traced(alpha) else np
    return xp.where(alpha == 2, 1.0, leading_coefficient(alpha - 2))
