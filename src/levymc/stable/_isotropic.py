r"""Isotropic stable vectors: one jump for all coordinates, in a uniform direction."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_interval, check_key, check_positive, check_shape

from ._chambers_mallows_stuck import log_sine
from ._sample import check_dtype
from ._words import exponential, half_uniform, lowest_bit, random_words


def sample_isotropic(
    key: Any,
    alpha: ArrayLike,
    shape: Any,
    *,
    scale: ArrayLike = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    r"""Draw vectors X = scale·√(2S)·N with S positive (α/2)-stable and N standard normal, so that

    .. math:: E\, e^{iω·X} = e^{-|σω|^α}, \qquad |·| \text{ the Euclidean norm.}

    Outside the paper's theory: its drift makes a target invariant for noise with *independent*
    components ([simsekli2017], section 3.3, footnote); with this noise it does not.

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in (0, 2]; broadcasts against shape[:-1].
        shape: of the result; the last axis is the vector.
        scale: positive; broadcasts against shape[:-1].
        dtype: as for `sample`.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, levymc
        >>> levymc.stable.sample_isotropic(jax.random.key(0), 1.5, (100, 3)).shape
        (100, 3)

    References: [kanter1975] for S.
    """
    key = check_key(key)
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy="2 is Gaussian.")
    check_positive("scale", scale, "Give the sigma of exp(-|sigma omega|^alpha).")
    full_shape = check_shape("shape", shape)
    if not full_shape:
        raise ValueError("`shape` must have a last axis, the vector, got (). Give (dimension,).")
    out_dtype = check_dtype(dtype)
    wide = np.dtype(np.float64 if out_dtype == np.float64 else np.float32)
    key_time, key_direction = jax.random.split(key)
    normals = jax.random.normal(key_direction, full_shape, wide)
    log_time = _log_positive_stable(key_time, jnp.asarray(alpha, wide) / 2, full_shape[:-1])
    radius = math.sqrt(2.0) * jnp.exp(log_time / 2) * jnp.asarray(scale, wide)
    return (radius[..., None] * normals).astype(out_dtype)


def _log_positive_stable(key: Array, index: Array, shape: tuple[int, ...]) -> Array:
    r"""log S with E e^{-λS} = e^{-λ^a}, by Kanter's formula in the distance δ = π - U:

    S = sin(aU) / sin(U)^{1/a} · (sin((1-a)U)/E)^{(1-a)/a},  U ~ U(0, π).
    """
    dtype = index.dtype
    key_angle, key_exponential = jax.random.split(key)
    words = random_words(key_angle, shape, dtype)
    half = math.pi * half_uniform(words, dtype)
    distance = jnp.where(lowest_bit(words), math.pi - half, half)
    waiting = exponential(random_words(key_exponential, shape, dtype), dtype)
    rest = 1 - index
    return (
        log_sine(rest * math.pi + index * distance)
        - log_sine(distance) / index
        + rest / index * (log_sine(rest * (math.pi - distance)) - jnp.log(waiting))
    )
