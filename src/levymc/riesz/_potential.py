r"""The derivative of a Riesz potential, without a derivative."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_positive, check_scalar_output, is_traced

from ._gauss_jacobi import gauss_jacobi
from ._kernel import kernel_constant


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
    points = jnp.asarray(x)
    points = points if jnp.issubdtype(points.dtype, jnp.floating) else points.astype(float)
    check_scalar_output("f", f, jnp.zeros_like(points, shape=()))
    if not is_traced(alpha) and float(alpha) == 2.0:
        return jax.vmap(jax.grad(f))(points.ravel()).reshape(points.shape)
    nodes = (radius * rule.nodes).astype(points.dtype)
    mass = kernel_constant(alpha) * radius ** (2 - alpha)
    weights = (mass * rule.weights / nodes).astype(points.dtype)
    along = jax.vmap(f)

    def at(point: Array) -> Array:
        return jnp.sum(weights * (along(point + nodes) - along(point - nodes)))

    return jax.vmap(at)(points.ravel()).reshape(points.shape)
