r"""Functions of x and α that jax.vmap maps over as it would be done by hand.

To map a function of one α over many would sum up the powers of each for all of the table.  Mapped
over pairs of x and α the functions here take arrays of both instead, and mapped over x alone they
keep the one α.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array

MANY = 32  # x for each α, from which on it costs less to sum up the powers of α first


@lru_cache(maxsize=64)
def for_each(function: Callable[..., Any], *first: Any) -> Callable[[Any, Any], Any]:
    """`function(*first, x, α)` of x and α that broadcast; each result is of its own x and α."""

    @custom_vmap
    def mapped(x: Array, alpha: Array) -> Array:
        return function(*first, x, alpha)

    @mapped.def_vmap
    def _(_size: int, is_mapped: list[bool], x: Array, alpha: Array) -> tuple[Array, bool]:
        has_many = is_mapped[0] and x[0].size >= MANY
        if is_mapped[1] and alpha.ndim == 1 and has_many:
            return jax.vmap(partial(function, *first))(x, alpha), True
        rank = max(array.ndim - one for array, one in zip((x, alpha), is_mapped, strict=True))
        pair = (_aligned(x, rank, is_mapped[0]), _aligned(alpha, rank, is_mapped[1]))
        return whole(*pair), True

    @jax.custom_jvp
    def whole(x: Array, alpha: Array) -> Array:
        return mapped(x, alpha)

    @partial(whole.defjvp, symbolic_zeros=True)
    def _(primals: Any, tangents: Any) -> Any:
        """By derivatives that are mapped likewise, as JAX cannot turn a `custom_vmap` round."""
        out = whole(*primals)
        total = jnp.zeros_like(out)
        for place, tangent in enumerate(tangents):
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero):
                slope = for_each(_slope, place, function, *first)
                total = total + slope(*primals) * tangent
        return out, total

    return whole


def _aligned(array: Array, rank: int, is_mapped: bool) -> Array:
    """With as many axes as others have behind the mapped one."""
    if not is_mapped:
        return array
    ones = (1,) * (rank + 1 - array.ndim)
    return array.reshape(array.shape[:1] + ones + array.shape[1:])


def _slope(place: int, function: Callable[..., Any], *arguments: Any) -> Array:
    """∂/∂x for place 0, ∂/∂α for place 1: the last two of the arguments."""
    *first, x, alpha = arguments
    if place == 0:
        return jax.jvp(lambda one: function(*first, one, alpha), (x,), (jnp.ones_like(x),))[1]
    return jax.jvp(partial(function, *first, x), (alpha,), (jnp.ones_like(alpha),))[1]
