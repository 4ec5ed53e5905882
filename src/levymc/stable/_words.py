"""Random words turned into the variables that stable laws are made of, and into their draws.

Each keeps its relative precision where the law is sensitive to it: the tails of a stable law come
from angles near their end and from exponentials near zero, where 1 - u would round them off.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt

# sin(y)/y in powers of y² on [0, π/2], interpolated at Chebyshev points: 7e-9 relative, and 2e-19.
# XLA's own sine costs as much on the CPU as the random words do.
_SINES = {
    4: (
        0.9999999956988092,
        -0.16666657947846064,
        0.008333050170672644,
        -0.000198090174087426,
        2.6051076354871732e-06,
    ),
    8: (
        1.0,
        -0.16666666666666666,
        0.008333333333333186,
        -0.00019841269841208676,
        2.7557319211229606e-06,
        -2.505210689056952e-08,
        1.605894087848656e-10,
        -7.643026557971632e-13,
        2.7215749422983443e-15,
    ),
}


# 2 artanh(s)/s in powers of s² where s = (m - 1)/(m + 1), m ∈ [√½, √2), likewise: 2e-18.
_ARTANH = (
    2.0,
    0.6666666666666765,
    0.3999999999930234,
    0.2857142876064168,
    0.22222197056726048,
    0.18183631680229329,
    0.1531252814836419,
    0.14809710360655276,
)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½

# Of -log(1 - h)/h in powers of h, up to where the logarithm is as precise: 1e-9 of its value in
# float32, where the logarithm has 4e-6, and 5e-17, where it has 1e-14.
_SERIES_END = 2.0**-7
_SERIES_TERMS = {4: 4, 8: 8}


def random_words(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> UInt[Array, "..."]:
    """Unsigned words as wide as `dtype`."""
    return jax.random.bits(key, shape, jnp.uint32 if dtype == jnp.float32 else jnp.uint64)


def word_pairs(
    key: Array, shape: tuple[int, ...], dtype: jnp.dtype
) -> tuple[UInt[Array, "..."], UInt[Array, "..."]]:
    """Two independent words per draw.

    What a key is split into are the two words that each turn of the generator makes, of which bits
    of 32 are the exclusive or: a pair takes half as long as two words one by one.
    """
    if dtype == jnp.float32:
        pairs = jax.random.key_data(jax.random.split(key, shape))
        return pairs[..., 0], pairs[..., 1]
    first, second = jax.random.split(key)
    return random_words(first, shape, dtype), random_words(second, shape, dtype)


def half_uniform(words: UInt[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Uniform on (0, 1/2] from all bits but the lowest, fine as 2^-32 (2^-64) near zero."""
    width = words.dtype.itemsize * 8
    signed = jnp.int32 if width == 32 else jnp.int64  # signed to float converts in one instruction
    return ((words >> 1).astype(signed).astype(dtype) + 0.5) * dtype.type(2.0**-width)


def lowest_bit(words: UInt[Array, "..."]) -> Array:
    """A fair coin independent of `half_uniform`."""
    return (words & 1) == 1


def exponential(words: UInt[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Exp(1), with relative precision both for small and for large values.

    It is -log h or -log(1 - h), h the `half_uniform`; the latter by its series where 1 - h would
    round h off.
    """
    half = half_uniform(words, dtype)
    is_large = lowest_bit(words)
    logarithm = -_log(jnp.where(is_large, half, 1 - half))
    series = jnp.full_like(half, 1 / _SERIES_TERMS[dtype.itemsize])
    for power in range(_SERIES_TERMS[dtype.itemsize] - 1, 0, -1):
        series = series * half + 1 / power
    return jnp.where(is_large | (half > _SERIES_END), logarithm, series * half)


def chambers_mallows_stuck(
    angle_words: UInt[Array, "..."], exponential_words: UInt[Array, "..."], alpha: Array
) -> Float[Array, "..."]:
    r"""SαS(1) from two random words per draw; the dtype is that of `alpha`, which broadcasts.

    The transform of a uniform angle V and an exponential E,

    .. math::
       X = \frac{\sin αV}{(\cos V)^{1/α}} \left(\frac{\cos (1-α)V}{E}\right)^{(1-α)/α}
         = \frac{E \sin αV}{\cos (1-α)V}
           \left(\frac{\cos (1-α)V}{E \cos V}\right)^{1/α},
       \qquad V \sim U(-π/2, π/2),

    for any α in (0, 2], also traced.  Everything is written in the distance δ = π/2 - |V| of the
    angle from its end, where all three factors may vanish at once:
    cos V = sin δ,  sin α|V| = sin((2-α)π/2 + αδ),  cos (1-α)V = sin((1-|1-α|)π/2 + |1-α|δ).
    """
    dtype = alpha.dtype
    distance = math.pi * half_uniform(angle_words, dtype)
    waiting = exponential(exponential_words, dtype)
    detour = abs(1 - alpha)
    quotient = waiting / _sine((1 - detour) * (math.pi / 2) + detour * distance)
    first = quotient * _folded_sine((2 - alpha) * (math.pi / 2) + alpha * distance)
    # Half of the power at a time: the whole may overflow where its product with the rest does not.
    root = jnp.exp(_log(quotient * _sine(distance)) * (-0.5 / alpha))
    size = jnp.maximum(first, jnp.finfo(dtype).tiny) * root * root
    return jnp.where(lowest_bit(angle_words), -size, size)


def log_sine(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    """log sin on (0, π); at the ends the logarithm of the smallest normal number."""
    return _log(jnp.maximum(_folded_sine(angle), jnp.finfo(angle.dtype).tiny))


def log_kanter(
    distance: Float[Array, "..."],
    index: Float[Array, "..."],
    log_sine: Callable[[Array], Array] = log_sine,
) -> Float[Array, "..."]:
    r"""log of A(u)^{(1-a)/a} = sin(au) / sin(u)^{1/a} · sin((1-a)u)^{(1-a)/a}, u = π - distance.

    With E exponential and U uniform on (0, π), (A(U)/E)^{(1-a)/a} is positive a-stable.
    """
    rest = 1 - index
    return (
        log_sine(rest * math.pi + index * distance)
        - log_sine(distance) / index
        + rest / index * log_sine(rest * (math.pi - distance))
    )


def _folded_sine(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    """Sine on (0, π); at its end it may be below zero by rounding."""
    return _sine(jnp.minimum(angle, math.pi - angle))


def _sine(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    """Sine on [0, π/2]."""
    coefficients = _SINES[angle.dtype.itemsize]
    square = angle * angle
    total = jnp.full_like(angle, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * square + coefficient
    return angle * total


def _log(value: Float[Array, "..."]) -> Float[Array, "..."]:
    """Logarithm of positive normal numbers, within 1e-15 of 1 or of its size.

    With value = m 2^n, m in [√½, √2), and s = (m - 1)/(m + 1) it is n log 2 + 2 artanh s.  XLA's
    own takes four times as long in float64.
    """
    if value.dtype == jnp.float32:
        return jnp.log(value)
    bits = jax.lax.bitcast_convert_type(value, jnp.int64)
    exponent = (bits - _ROOT_HALF >> 52).astype(jnp.int32)  # from 32 bits it converts fast
    mantissa = jax.lax.bitcast_convert_type(bits - (exponent.astype(jnp.int64) << 52), jnp.float64)
    ratio = (mantissa - 1) / (mantissa + 1)
    square = ratio * ratio
    total = jnp.full_like(value, _ARTANH[-1])
    for coefficient in reversed(_ARTANH[:-1]):
        total = total * square + coefficient
    return exponent * math.log(2) + ratio * total
