r"""Quadrature for the drift's integral over the distance u, on [0, R] and on [0, ∞).

For F even and smooth, F(u) = [φ(x+u) - φ(x-u)]/(u φ(x)),

.. math:: b(x) = C_α \int_0^∞ F(u)\, u^{1-α}\, du \approx w_0 F(0) + \sum_i w_i F(u_i) .

As α → 2 the integral tends to F(0)/2, the gradient of log φ.  An *anchored* rule takes F(0) from
that gradient, and stays smooth and accurate up to and including α = 2; a rule that is not anchored
has w_0 = 0 and needs no gradient, but its first node then tends to zero and the difference in F
loses digits.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_positive, check_scalar_output, is_traced

from ._centered_difference import gamma_on_host, wide_points
from ._gauss_jacobi import gauss_jacobi, unchecked_rule


class KernelRule(NamedTuple):
    """b ≈ weight_at_zero · F(0) + Σ weights · F(nodes), along the last axis."""

    nodes: Float[Array, "... n"]
    weights: Float[Array, "... n"]
    weight_at_zero: Float[Array, "..."]


def kernel_constant(alpha: ArrayLike) -> Any:
    """C_α/(2-α) = (α-1) / (2 Γ(3-α) cos(π(2-α)/2)): 1/2 at α = 2, and smooth there."""
    xp: ModuleType = jnp if is_traced(alpha) else np
    exponent: Any = xp.asarray(alpha, float)
    rest = 2 - exponent
    gamma = jax.scipy.special.gamma(1 + rest) if is_traced(alpha) else gamma_on_host(1 + rest)
    return (exponent - 1) / (2 * gamma * xp.cos(math.pi * rest / 2))


class KernelQuadrature(NamedTuple):
    """What depends on α alone, made once; `within` and `to_infinity` give the rules."""

    alpha: Any  # with a last axis of one
    constant: Any
    near_nodes: Any
    near_weights: Any
    near_weight_at_zero: Any
    far_angles: Any
    far_weights: Any

    def within(self, radius: Array) -> KernelRule:
        """The rule on [0, radius], all nodes near."""
        reach = radius[..., None]
        mass = self.constant * reach ** (2 - self.alpha)
        at_zero = (mass * self.near_weight_at_zero)[..., 0]
        return KernelRule(reach * self.near_nodes, mass * self.near_weights, at_zero)

    def to_infinity(self, distance: Array, scale: Array) -> KernelRule:
        r"""The rule on [0, ∞) for a bulk at `distance`: [0, ρ] by the near rule, and beyond it
        u = distance + scale·cot ψ, which is dense around the bulk and reaches to infinity.
        """
        middle = (distance + scale) / 2
        near = self.within(middle)
        length = math.pi / 2 - jnp.arctan((middle - distance) / scale)[..., None]
        angle = length * self.far_angles
        far = distance[..., None] + scale[..., None] / jnp.tan(angle)
        density = self.constant * (2 - self.alpha) * far ** (1 - self.alpha)
        weights = density * length * self.far_weights * scale[..., None] / jnp.sin(angle) ** 2
        nodes = jnp.concatenate([near.nodes, far], axis=-1)
        return KernelRule(
            nodes, jnp.concatenate([near.weights, weights], axis=-1), near.weight_at_zero
        )


def kernel_quadrature(
    alpha: ArrayLike, num_near: int, num_far: int, *, anchored: bool
) -> KernelQuadrature:
    """Make the quadrature for α, a scalar or an array; in NumPy unless it is traced."""
    rule = unchecked_rule(alpha, num_near, 3.0 if anchored else 1.0)
    xp: ModuleType = jnp if is_traced(alpha) else np
    exponent = xp.asarray(alpha, float)[..., None]
    weights, at_zero = rule.weights, xp.zeros_like(exponent)
    if anchored:
        # ∫ v^{1-α} F = F(0)/(2-α) + ∫ v^{3-α} (F - F(0))/v², the latter by the rule of power 3.
        weights = (2 - exponent) / (4 - exponent) * rule.weights / rule.nodes**2
        at_zero = 1 - xp.sum(weights, axis=-1, keepdims=True)
    # ψ = τ^{3/2} thins out the powers of ψ, not whole ones, that heavy tails bring in at ψ = 0.
    points, point_weights = np.polynomial.legendre.leggauss(max(num_far, 1))
    angles = ((1 + points) / 2) ** 1.5
    angle_weights = 1.5 * np.sqrt((1 + points) / 2) * point_weights / 2
    return KernelQuadrature(
        alpha=exponent,
        constant=kernel_constant(alpha)[..., None],
        near_nodes=rule.nodes,
        near_weights=weights,
        near_weight_at_zero=at_zero,
        far_angles=angles,
        far_weights=angle_weights,
    )


def derivative_of_potential(
    f: Callable[[Array], Array],
    x: ArrayLike,
    alpha: Any,
    *,
    radius: Any,
    num_nodes: Any = 96,
) -> Float[Array, "..."]:
    r"""Return D^{α-2} f'(x), the numerator of the drift where f is the target density:

    .. math::
       D^{α-2} f'(x) = C_α \int_0^R \frac{f(x+u) - f(x-u)}{u}\, u^{1-α}\, du, \qquad
       C_α = \frac{α-1}{2\,Γ(2-α) \cos(π(2-α)/2)} .

    The fraction is smooth and even in u, so that Gauss–Jacobi quadrature with the weight u^{1-α}
    converges spectrally.

    Not valid when: f reaches further than R from x.  Within 1e-3 of α = 2 the difference loses
    digits, as the nodes tend to zero; at α = 2 itself f is differentiated.

    Args:
        f: a function of one number.
        x: where; an array is taken point by point.
        alpha: in (1, 2], a scalar.
        radius: R > 0.
        num_nodes: of the quadrature; f is evaluated twice for each.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> bell = lambda x: jnp.exp(-x * x / 2)
        >>> value = levymc.riesz.derivative_of_potential(bell, 1.0, 1.5, radius=10.0)
        >>> round(float(value), 4)
        -0.5712

    References: [simsekli2017], Theorem 1, with D^{α-2} ∂ = ∂ I^{2-α} and the kernel differentiated.
    """
    check_positive("radius", radius, "It is how far from x the function is looked at.")
    rule = gauss_jacobi(alpha, num_nodes)
    points, dtype = wide_points(x)
    check_scalar_output("f", f, jnp.zeros_like(points, shape=()))
    if not is_traced(alpha) and float(alpha) == 2.0:
        return jax.vmap(jax.grad(f))(points.ravel()).reshape(points.shape).astype(dtype)
    nodes = (radius * rule.nodes).astype(points.dtype)
    mass = kernel_constant(alpha) * radius ** (2 - alpha)
    weights = (mass * rule.weights / nodes).astype(points.dtype)
    along = jax.vmap(f)

    def at(point: Array) -> Array:
        return jnp.sum(weights * (along(point + nodes) - along(point - nodes)))

    return jax.vmap(at)(points.ravel()).reshape(points.shape).astype(dtype)
