r"""The truncated fractional centred difference."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_positive, check_scalar_output

from ._coefficients import coefficients


def centered_difference(
    f: Callable[[Array], Array],
    x: ArrayLike,
    gamma: Any,
    *,
    spacing: ArrayLike,
    num_terms: Any,
) -> Float[Array, "..."]:
    r"""Approximate the Riesz derivative D^γ f(x) by

    .. math:: Δ^γ_{h,K} f(x) = h^{-γ} \sum_{k=-K}^{K} g_{γ,k}\, f(x - kh),

    with error O(h² + 1/(hK)) for f smooth and of exponential decay.

    Not valid when: f decays slower than |x|^γ for γ < 0; the sum over k then has no limit.

    Args:
        f: a function of one number.
        x: where; an array is taken point by point.
        gamma: order in (-1, 2].
        spacing: h > 0.
        num_terms: K ≥ 1.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> wave = lambda x: jnp.exp(-x * x)
        >>> value = levymc.riesz.centered_difference(wave, 0.0, 2.0, spacing=1e-2, num_terms=1)
        >>> round(float(value), 2)  # D² = -d²/dx²
        2.0

    References: [simsekli2017], eq. (10); Theorem 2.
    """
    check_positive("spacing", spacing, "It is h, the distance between the points of the sum.")
    positive = coefficients(gamma, num_terms)
    points = jnp.asarray(x)
    points = points if jnp.issubdtype(points.dtype, jnp.floating) else points.astype(float)
    check_scalar_output("f", f, jnp.zeros_like(points, shape=()))
    h = jnp.asarray(spacing, points.dtype)
    both = jnp.concatenate([positive[:0:-1], positive]).astype(points.dtype)
    offsets = h * jnp.arange(1 - positive.size, positive.size, dtype=points.dtype)

    def at(point: Array) -> Array:
        return h**-gamma * jnp.sum(both * jax.vmap(f)(point - offsets))

    return jax.vmap(at)(points.ravel()).reshape(points.shape)
