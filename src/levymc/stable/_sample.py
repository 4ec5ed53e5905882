r"""Draws of the symmetric α-stable law."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import (
    check_broadcast,
    check_interval,
    check_key,
    check_positive,
    check_shape,
)

from . import _chambers_mallows_stuck, _inverse_table
from ._words import random_words

_ALPHA_REMEDY = "2 is Gaussian, 1 is Cauchy; smaller is heavier-tailed."
_SCALE_REMEDY = "Give the sigma of exp(-|sigma omega|^alpha)."


def sample(
    key: Any,
    alpha: ArrayLike,
    shape: Any = (),
    *,
    scale: ArrayLike = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    r"""Draw from SαS(scale), the law with E exp(iωX) = exp(-|scale·ω|^α).

    A fixed α ∈ [0.5, 2), a Python or NumPy number, in float32 costs one random word a draw and a
    look into a table of quantiles, as little as a normal draw; the largest sizes are those of tail
    probability 2^-33.  Anything else, such as an α that is a JAX array or traced, takes the
    Chambers–Mallows–Stuck transform.  The two make different numbers of one key.

    Not valid when: in float32 a small α (below 0.3, say) has draws beyond the largest float; they
    come out as ±inf, which is where they belong.

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in (0, 2]; may be traced, or an array.
        shape: of the result; `alpha` and `scale` broadcast against it.
        scale: positive.
        dtype: float32, float64 or a narrower float; JAX's default float if not given.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, levymc
        >>> levymc.stable.sample(jax.random.key(0), 1.7, (3,)).shape
        (3,)

    References: [chambers1976].
    """
    key = check_key(key)
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy=_ALPHA_REMEDY)
    check_positive("scale", scale, _SCALE_REMEDY)
    out_dtype = check_dtype(dtype)
    sizes = check_shape("shape", shape)
    for name, value in (("alpha", alpha), ("scale", scale)):
        check_broadcast(name, value, sizes)
    full_shape = jnp.broadcast_shapes(sizes, jnp.shape(alpha), jnp.shape(scale))
    draws = standard(key, alpha, full_shape, out_dtype)
    return (draws * jnp.asarray(scale, draws.dtype)).astype(out_dtype)


def standard(key: Array, alpha: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """SαS(1), in float32 or, for a float64 dtype, in float64."""
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    if not isinstance(alpha, jax.Array) and np.ndim(alpha) == 0:
        fixed = float(alpha)
        if fixed == 2.0:
            return math.sqrt(2.0) * jax.random.normal(key, shape, wide)
        if fixed >= 0.5 and wide == np.float32:
            return _by_table(key, fixed, shape, wide)
    return _by_transform(key, jnp.asarray(alpha, wide), shape)


@partial(jax.jit, static_argnums=(1, 2, 3))
def _by_table(key: Array, alpha: float, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return _inverse_table.transform(random_words(key, shape, dtype), alpha)


@partial(jax.jit, static_argnums=2)
def _by_transform(key: Array, alpha: Array, shape: tuple[int, ...]) -> Array:
    key_angle, key_exponential = jax.random.split(key)
    angle_words = random_words(key_angle, shape, alpha.dtype)
    exponential_words = random_words(key_exponential, shape, alpha.dtype)
    return _chambers_mallows_stuck.transform(angle_words, exponential_words, alpha)


def check_dtype(dtype: Any) -> np.dtype:
    """The dtype of the draws; JAX's default float if not given."""
    found = jax.dtypes.canonicalize_dtype(float if dtype is None else dtype)
    if not jnp.issubdtype(found, jnp.floating):
        raise TypeError(f"`dtype` must be a floating type, got {dtype!r}. Give float32 or float64.")
    return np.dtype(found)
