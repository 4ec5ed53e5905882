r"""Draws of the symmetric α-stable law: plain, of bounded size, isotropic vectors, Lévy motion."""

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
    check_one_number,
    check_positive,
    check_real,
    check_shape,
    is_traced,
    nan_outside,
)

from . import _tabulated
from ._law import SCALE_REMEDY
from ._words import (
    chambers_mallows_stuck,
    exponential,
    half_uniform,
    log_kanter,
    lowest_bit,
    random_words,
    word_pairs,
)

_ALPHA_REMEDY = "2 is Gaussian, 1 is Cauchy; smaller is heavier-tailed."
_TIMES_REMEDY = "Give times at or after 0, each later than the one before."


def sample(
    key: Any,
    alpha: ArrayLike,
    shape: Any = (),
    *,
    scale: ArrayLike = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    r"""Draw from SαS(scale), the law with E exp(iωX) = exp(-|scale·ω|^α).

    A fixed α ∈ [0.5, 2), a Python or NumPy number, in float32 costs one random word per draw and a
    look into a table of quantiles, as little as a normal draw; the largest sizes are those of tail
    probability 2^-33.  Anything else, such as float64 or an α that is a JAX array or traced, takes
    the Chambers–Mallows–Stuck transform, at most half as long again as a normal draw of its type.
    The two make different numbers of one key.

    Not valid when: in float32 a small α (below 0.3, say) has draws beyond the largest float; they
    come out as ±inf, which is where they belong.

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in (0, 2]; may be traced, or an array.
            A traced one outside gives NaN.
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
    check_positive("scale", scale, SCALE_REMEDY)
    out_dtype = check_dtype(dtype)
    sizes = check_shape("shape", shape)
    for name, value in (("alpha", alpha), ("scale", scale)):
        check_broadcast(name, value, sizes)
    full_shape = jnp.broadcast_shapes(sizes, jnp.shape(alpha), jnp.shape(scale))
    draws = _standard(key, alpha, full_shape, out_dtype)
    return (draws * jnp.asarray(scale, draws.dtype)).astype(out_dtype)


def sample_truncated(
    key: Any, alpha: ArrayLike, bound: ArrayLike, shape: Any = (), *, dtype: Any = None
) -> Float[Array, "..."]:
    r"""Draw from SαS(1) conditioned on |X| ≤ bound, by inverting its distribution function:

    .. math:: P(X > x) = q + (1 - 2q)\, u, \qquad u \sim U(0, 1/2), \quad q = P(X > \text{bound}).

    A fixed α in float32 costs the same look into a table as `sample`, with which it shares its
    random words: where the bound is far out, draws are nearly those of `sample`.  A traced α, and
    float64, take Newton's method for each draw, which is some 75 times as slow.

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in [0.5, 2]; may be traced, or an array.
            A traced one outside gives NaN.
        bound: positive, a number; may be traced, with α.
        shape: of the result; `alpha` broadcasts against it.
        dtype: as for `sample`.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> draws = levymc.stable.sample_truncated(jax.random.key(0), 1.5, 10.0, (1000,))
        >>> bool(jnp.max(jnp.abs(draws)) <= 10.0)
        True
    """
    key = check_key(key)
    check_interval("alpha", alpha, 0.5, 2.0, includes_low=True, remedy="2 is Gaussian.")
    check_one_number("bound", bound, "Draw for each one.")
    check_positive("bound", bound, "It is the largest size of a draw.")
    out_dtype = check_dtype(dtype)
    sizes = check_shape("shape", shape)
    check_broadcast("alpha", alpha, sizes)
    full_shape = jnp.broadcast_shapes(sizes, jnp.shape(alpha))
    return _truncated(key, alpha, bound, full_shape, out_dtype).astype(out_dtype)


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
    check_positive("scale", scale, SCALE_REMEDY)
    sizes = check_shape("shape", shape)
    if not sizes:
        raise ValueError("`shape` must have a last axis, the vector, got (). Give (dimension,).")
    for name, value in (("alpha", alpha), ("scale", scale)):
        check_broadcast(name, value, sizes[:-1])
    vectors = jnp.broadcast_shapes(sizes[:-1], jnp.shape(alpha), jnp.shape(scale))
    out_dtype = check_dtype(dtype)
    wide = wide_dtype(out_dtype)
    key_time, key_direction = jax.random.split(key)
    normals = jax.random.normal(key_direction, (*vectors, sizes[-1]), wide)
    known = nan_outside(jnp.asarray(alpha, wide), 0.0, 2.0, includes_low=False)
    log_time = log_positive_stable(key_time, known / 2, vectors)
    radius = math.sqrt(2.0) * jnp.exp(log_time / 2) * jnp.asarray(scale, wide)
    return (radius[..., None] * normals).astype(out_dtype)


def levy_motion(
    key: Any, alpha: ArrayLike, times: ArrayLike, shape: Any = ()
) -> Float[Array, "*shape times"]:
    r"""Draw Lévy motions at `times`: L_0 = 0, with independent increments

    .. math:: L_t - L_s \sim SαS\bigl((t-s)^{1/α}\bigr), \qquad s < t .

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in (0, 2], a scalar; √2 times Brownian motion at 2.
        times: increasing, not negative; the first need not be 0.
        shape: how many motions.

    Returns:
        Values of the motions, the time along the last axis.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> levymc.stable.levy_motion(jax.random.key(0), 1.7, jnp.linspace(0, 1, 101), (5,)).shape
        (5, 101)

    References: [simsekli2017], section 2, (i)-(iv).
    """
    check_real("times", times, _TIMES_REMEDY)
    grid = jnp.asarray(times)
    if not jnp.issubdtype(grid.dtype, jnp.floating):
        grid = grid.astype(float)
    _check_grid(grid)
    durations = jnp.diff(grid, prepend=jnp.zeros_like(grid, shape=1))
    full_shape = (*check_shape("shape", shape), grid.size)
    increments = sample(key, alpha, full_shape, dtype=grid.dtype)
    lengths = durations ** (1 / jnp.asarray(alpha, grid.dtype))
    # At time 0 the motion is at 0, also where the increment that was drawn overflows.
    return jnp.cumsum(jnp.where(lengths == 0, 0, lengths * increments), axis=-1)


def _standard(key: Array, alpha: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """SαS(1), in float32 or, for a float64 dtype, in float64."""
    wide = wide_dtype(dtype)
    if not isinstance(alpha, jax.Array) and np.ndim(alpha) == 0:
        fixed = float(alpha)
        if fixed == 2.0:
            return math.sqrt(2.0) * jax.random.normal(key, shape, wide)
        if fixed >= 0.5 and wide == np.float32:
            return _by_table(key, fixed, math.inf, shape)
    known = nan_outside(jnp.asarray(alpha, wide), 0.0, 2.0, includes_low=False)
    return _by_transform(key, known, shape)


def _truncated(
    key: Array, alpha: Any, bound: Any, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    wide = wide_dtype(dtype)
    if wide == np.float32 and not isinstance(alpha, jax.Array) and np.ndim(alpha) == 0:
        return _by_table(key, float(alpha), float(bound), shape)
    known = nan_outside(jnp.asarray(alpha, wide), 0.5, 2.0, includes_low=True)
    return _by_newton(key, known, jnp.asarray(bound, wide), shape)


@partial(jax.jit, static_argnums=(1, 2, 3))
def _by_table(key: Array, alpha: float, bound: float, shape: tuple[int, ...]) -> Array:
    words = random_words(key, shape, np.dtype(np.float32))
    return _tabulated.transform(words, alpha, bound)


@partial(jax.jit, static_argnums=2)
def _by_transform(key: Array, alpha: Array, shape: tuple[int, ...]) -> Array:
    return chambers_mallows_stuck(*word_pairs(key, shape, alpha.dtype), alpha)


@partial(jax.jit, static_argnums=3)
def _by_newton(key: Array, alpha: Array, bound: Array, shape: tuple[int, ...]) -> Array:
    words = random_words(key, shape, alpha.dtype)
    beyond = _tabulated.sf(jnp, bound, alpha)
    tail = beyond + (1 - 2 * beyond) * half_uniform(words, alpha.dtype)
    size = jnp.minimum(abs(_tabulated.solve(tail, alpha)), bound)  # beyond it by rounding only
    return jnp.where(lowest_bit(words), -size, size)


def log_positive_stable(key: Array, index: Array, shape: tuple[int, ...]) -> Array:
    r"""log S with E e^{-λS} = e^{-λ^a}; S = (A(U)/E)^{(1-a)/a}, U ~ U(0, π), by Kanter."""
    dtype = index.dtype
    key_angle, key_exponential = jax.random.split(key)
    words = random_words(key_angle, shape, dtype)
    half = math.pi * half_uniform(words, dtype)
    distance = jnp.where(lowest_bit(words), math.pi - half, half)
    waiting = exponential(random_words(key_exponential, shape, dtype), dtype)
    return log_kanter(distance, index) - (1 - index) / index * jnp.log(waiting)


def _check_grid(times: Array) -> None:
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"`times` must be a vector, got shape {times.shape}. {_TIMES_REMEDY}")
    if is_traced(times):
        return
    values = np.asarray(times)
    if values[0] < 0:
        raise ValueError(f"`times` must not be negative, got {values[0]!s}. {_TIMES_REMEDY}")
    steps = np.diff(values)
    if np.any(steps <= 0):
        place = int(np.argmax(steps <= 0))
        raise ValueError(
            f"`times` must increase, got {values[place + 1]!s} after {values[place]!s} "
            f"at index {place + 1}. {_TIMES_REMEDY}"
        )


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to compute in."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def check_dtype(dtype: Any) -> np.dtype:
    """The dtype of the draws; JAX's default float if not given."""
    found = jax.dtypes.canonicalize_dtype(float if dtype is None else dtype)
    if not jnp.issubdtype(found, jnp.floating):
        raise TypeError(f"`dtype` must be a floating type, got {dtype!r}. Give float32 or float64.")
    return np.dtype(found)
