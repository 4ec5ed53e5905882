r"""The drift b̂ of the fractional Langevin algorithm, and the gradient as its α = 2."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_alpha, is_traced
from levymc._trees import module, spread
from levymc.riesz import leading_coefficient

from ._drift import Drift, Evaluations, LogDensity, Position, Values, check_position


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
    check_alpha(alpha)
    return LeadingTerm(logdensity_fn, gradient_coefficients(alpha))


def gradient(logdensity_fn: LogDensity) -> Drift:
    """The drift at α = 2, by JAX's own differentiation."""
    return LeadingTerm(logdensity_fn, None)


@module(static=("logdensity_fn",))
class LeadingTerm(Drift):
    """c_α ∇log φ."""

    logdensity_fn: LogDensity
    coefficients: Any  # c_α; None for the gradient itself
    evaluations = Evaluations(density=0, gradient=1)

    def evaluate(self, position: Position) -> Values:
        check_position(self.logdensity_fn, position)
        return Values(scaled_gradient(self.coefficients, jax.grad(self.logdensity_fn), position))


def scaled_gradient(
    coefficients: Any, gradient_fn: Callable[[Position], Position], position: Position
) -> Position:
    """c_α times a gradient of log φ that is given, or estimated."""
    slopes = gradient_fn(position)
    if coefficients is None:
        return slopes
    factors = spread("alpha", coefficients, position)
    return jax.tree.map(lambda c, slope: jnp.asarray(c, slope.dtype) * slope, factors, slopes)


def is_gaussian(alpha: Any) -> bool:
    """Whether every α is known to be 2."""
    return not is_traced(alpha) and all(np.all(np.asarray(a) == 2) for a in jax.tree.leaves(alpha))


def gradient_coefficients(alpha: Any) -> Any:
    """c_α of b̂ = c_α ∇log φ, in NumPy unless α is traced."""
    return jax.tree.map(gradient_coefficient, alpha)


def gradient_coefficient(alpha: Any) -> Any:
    """c_α of one α, exactly one at α = 2 also where it is traced."""
    xp: ModuleType = jnp if is_traced(alpha) else np
    return xp.where(alpha == 2, 1.0, leading_coefficient(alpha - 2))
