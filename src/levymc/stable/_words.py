"""Random words turned into the variables that stable laws are made of.

Each keeps its relative precision where the law is sensitive to it: the tails of a stable law come
from angles near their end and from exponentials near zero, where 1 - u would round them off.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt


def random_words(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> UInt[Array, "..."]:
    """Unsigned words as wide as `dtype`."""
    return jax.random.bits(key, shape, jnp.uint32 if dtype == jnp.float32 else jnp.uint64)


def half_uniform(words: UInt[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Uniform on (0, 1/2] from all bits but the lowest, fine as 2^-32 (2^-64) near zero."""
    width = words.dtype.itemsize * 8
    signed = jnp.int32 if width == 32 else jnp.int64  # signed to float converts in one instruction
    return ((words >> 1).astype(signed).astype(dtype) + 0.5) * dtype.type(2.0**-width)


def lowest_bit(words: UInt[Array, "..."]) -> Array:
    """A fair coin independent of `half_uniform`."""
    return (words & 1) == 1


def exponential(words: UInt[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Exp(1), with full relative precision both for small and for large values."""
    half = half_uniform(words, dtype)
    return -jnp.where(lowest_bit(words), jnp.log(half), jnp.log1p(-half))
