r"""Kummer's function ₁F₁(a; 3/2; z) for a ∈ [0, 1/2) and z ≥ 0, as a logarithm."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_B = 1.5
_SWITCH = 30.0  # the series' terms are positive; beyond, the asymptotic one is good to e^-30
_SERIES_TERMS = 110
_ASYMPTOTIC_TERMS = 28


def log_kummer(a: Float[Array, "..."], z: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""log ₁F₁(a; 3/2; z), by the series for small z and, for large z, by

    .. math::
       \frac{Γ(b)}{Γ(a)} e^z z^{a-b} \sum_k \frac{(1-a)_k (b-a)_k}{k!\, z^k}
       + \frac{Γ(b) \cos πa}{Γ(b-a)} z^{-a} \sum_k \frac{(a)_k (a-b+1)_k}{k!\, (-z)^k} .
    """
    near = jnp.log(_series(a, jnp.minimum(z, _SWITCH)))
    return jnp.where(z <= _SWITCH, near, _log_asymptotic(a, jnp.maximum(z, _SWITCH)))


def _series(a: Array, z: Array) -> Array:
    def add(k: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        term, total = carry
        term = term * (a + k) / (_B + k) * z / (k + 1.0)
        return term, total + term

    one = jnp.ones_like(a + z)
    return jax.lax.fori_loop(0, _SERIES_TERMS, add, (one, one))[1]


def _log_asymptotic(a: Array, z: Array) -> Array:
    def add(k: Any, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        term, total, small_term, small_total = carry
        term = term * (1 - a + k) * (_B - a + k) / ((k + 1.0) * z)
        small_term = -small_term * (a + k) * (a - _B + 1 + k) / ((k + 1.0) * z)
        return term, total + term, small_term, small_total + small_term

    one = jnp.ones_like(a + z)
    _, growing, _, fading = jax.lax.fori_loop(0, _ASYMPTOTIC_TERMS, add, (one, one, one, one))
    log_gamma = jax.scipy.special.gammaln
    # 1/Γ(a) = a/Γ(1+a), which is zero at a = 0, where the function is one.
    log_growing = z + (a - _B) * jnp.log(z) + jnp.log(a * growing) - log_gamma(1 + a)
    log_fading = jnp.log(jnp.cos(jnp.pi * a) * fading) - a * jnp.log(z) - log_gamma(_B - a)
    return log_gamma(_B) + jnp.logaddexp(log_growing, log_fading)
