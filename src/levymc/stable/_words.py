"""Random words turned into the variables that stable laws are made of, and into their draws.

Each keeps its relative precision where the law is sensitive to it: the tails of a stable law come
from angles near their end and from exponentials near zero, where 1 - u would round them off.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt

# sin(y)/y in powers of y² on [0, π/2], interpolated at Chebyshev points: 7e-9 relative. XLA's own
# sine costs as much on the CPU as the random words do.
_SINE = (
    0.9999999956988092,
    -0.16666657947846064,
    0.008333050170672644,
    -0.000198090174087426,
    2.6051076354871732e-06,
)


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


def chambers_mallows_stuck(
    angle_words: UInt[Array, "..."], exponential_words: UInt[Array, "..."], alpha: Array
) -> Float[Array, "..."]:
    r"""SαS(1) from two random words per draw; the dtype is that of `alpha`, which broadcasts.

    The transform of a uniform angle V and an exponential E,

    .. math::
       X = \frac{\sin αV}{(\cos V)^{1/α}} \left(\frac{\cos (1-α)V}{E}\right)^{(1-α)/α},
       \qquad V \sim U(-π/2, π/2),

    for any α in (0, 2], also traced.  Everything is written in the distance δ = π/2 - |V| of the
    angle from its end, where all three factors may vanish at once, and combined in logarithms:
    cos V = sin δ,  sin α|V| = sin((2-α)π/2 + αδ),  cos (1-α)V = sin((1-|1-α|)π/2 + |1-α|δ).
    """
    dtype = alpha.dtype
    distance = math.pi * half_uniform(angle_words, dtype)
    waiting = exponential(exponential_words, dtype)
    detour = abs(1 - alpha)
    log_size = (
        log_sine((2 - alpha) * (math.pi / 2) + alpha * distance)
        - log_sine(distance) / alpha
        + (1 - alpha)
        / alpha
        * (log_sine((1 - detour) * (math.pi / 2) + detour * distance) - jnp.log(waiting))
    )
    size = jnp.exp(log_size)
    return jnp.where(lowest_bit(angle_words), -size, size)


def log_sine(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    """log sin on (0, π); at the ends the logarithm of the smallest normal number."""
    folded = jnp.minimum(angle, math.pi - angle)
    sine = jnp.sin(folded) if angle.dtype == jnp.float64 else _polynomial_sine(folded)
    return jnp.log(jnp.maximum(sine, jnp.finfo(angle.dtype).tiny))


def _polynomial_sine(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    square = angle * angle
    total = jnp.full_like(angle, _SINE[-1])
    for coefficient in reversed(_SINE[:-1]):
        total = total * square + coefficient
    return angle * total
