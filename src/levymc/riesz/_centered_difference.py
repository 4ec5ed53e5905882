r"""The fractional centred difference, and its coefficients."""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import (
    check_count,
    check_interval,
    check_positive,
    check_scalar_output,
    is_traced,
)

GAMMA_REMEDY = "It is the order of differentiation, alpha - 2 in the drift."


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
    points, dtype = wide_points(x)
    check_scalar_output("f", f, jnp.zeros_like(points, shape=()))
    h = jnp.asarray(spacing, points.dtype)
    both = jnp.concatenate([positive[:0:-1], positive]).astype(points.dtype)
    offsets = h * jnp.arange(1 - positive.size, positive.size, dtype=points.dtype)

    def at(point: Array) -> Array:
        return h**-gamma * jnp.sum(both * jax.vmap(f)(point - offsets))

    return jax.vmap(at)(points.ravel()).reshape(points.shape).astype(dtype)


def wide_points(x: ArrayLike) -> tuple[Array, Any]:
    """Real numbers in 32 bits at least, as a sum of many terms asks for, and their own dtype."""
    points = jnp.asarray(x)
    points = points if jnp.issubdtype(points.dtype, jnp.floating) else points.astype(float)
    return points.astype(jnp.promote_types(points.dtype, jnp.float32)), points.dtype


def coefficients(gamma: ArrayLike, num_terms: Any) -> Float[Array, " terms"]:
    r"""Return g_{γ,0}, …, g_{γ,K} of the centred difference, K = `num_terms`:

    .. math::
       g_{γ,k} = \frac{(-1)^k\, Γ(γ+1)}{Γ(γ/2 - k + 1)\, Γ(γ/2 + k + 1)},
       \qquad g_{γ,k+1} = g_{γ,k}\, \frac{k - γ/2}{k + 1 + γ/2}.

    The recursion on the right is used: the gamma functions overflow at k ≈ 170.  The coefficients
    are symmetric, g_{γ,-k} = g_{γ,k}, and fall like k^{-1-γ}.

    Args:
        gamma: order in (-1, 2]; may be traced.
        num_terms: K ≥ 1.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import levymc
        >>> levymc.riesz.coefficients(2.0, 1).tolist()  # the second difference, with its sign
        [2.0, -1.0]

    References: [simsekli2017], below eq. (8); [ortigueira2006].
    """
    check_interval("gamma", gamma, -1.0, 2.0, includes_low=False, remedy=GAMMA_REMEDY)
    count = check_count("num_terms", num_terms, "It is K, the terms kept on either side.")
    if jnp.ndim(gamma) != 0:
        raise ValueError(f"`gamma` must be a scalar, got shape {jnp.shape(gamma)}. Use jax.vmap.")
    return jnp.asarray(unchecked_coefficients(gamma, count))


def unchecked_coefficients(gamma: Any, count: int) -> Any:
    """For γ of any shape, along a new last axis; in NumPy and float64 unless γ is traced."""
    xp: ModuleType = jnp if is_traced(gamma) else np
    order = xp.asarray(gamma, float)[..., None]
    k = xp.arange(count, dtype=order.dtype)
    ratios = (k - order / 2) / (k + 1 + order / 2)
    first = xp.asarray(leading_coefficient(order))
    return first * xp.concatenate([xp.ones_like(order), xp.cumprod(ratios, axis=-1)], axis=-1)


def leading_coefficient(gamma: Any) -> Any:
    """g_{γ,0} = Γ(γ+1)/Γ(γ/2+1)², the paper's c_α at γ = α - 2; in NumPy unless γ is traced."""
    if not is_traced(gamma):
        order = np.asarray(gamma, np.float64)
        return gamma_on_host(order + 1) / gamma_on_host(order / 2 + 1) ** 2
    log_gamma = jax.scipy.special.gammaln
    return jnp.exp(log_gamma(gamma + 1) - 2 * log_gamma(gamma / 2 + 1))


def gamma_on_host(x: Any) -> Any:
    """Γ in NumPy; SciPy's takes a third of a second to import."""
    return np.vectorize(math.gamma, otypes=[np.float64])(x)
