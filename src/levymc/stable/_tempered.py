r"""Draws of tempered stable laws: stable jumps up to some length, damped exponentially beyond."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import (
    check_interval,
    check_key,
    check_one_number,
    check_positive,
    check_shape,
    nan_outside,
)

from ._sample import check_dtype, log_positive_stable, wide_dtype

_MOST_PIECES = 1e6  # of the time: beyond them a draw would take seconds


def sample_tempered(
    key: Any,
    alpha: ArrayLike,
    rate: ArrayLike,
    shape: Any = (),
    *,
    time: ArrayLike = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    r"""Draw from the tempered stable law of a time t,

    .. math:: E\, e^{iωX} = \exp\bigl(-t\,[(λ^2 + ω^2)^{α/2} - λ^α]\bigr) .

    Its jumps are those of SαS(t^{1/α}) up to lengths of about 1/λ; longer ones are rarer by a
    factor that falls like e^{-λ|z|}, up to a power.  All moments are finite, and the variance is
    t α λ^{α-2}.  Unlike a stable law it is not the same at all times up to a scale: short times are
    stable, long ones Gaussian.

    Exact: X = √(2S) N with S positive (α/2)-stable, tempered by rejection with probability
    e^{-λ²S}, in as many pieces of the time as keep the share of those accepted above 1/e; the cost
    of a draw grows like tλ^α where that is above 1.  Where it is above 10⁶ draws are NaN.

    Args:
        key: a JAX random key.
        alpha: characteristic exponent in (0, 2], one number; may be traced.
        rate: λ > 0, one number; may be traced.
        shape: of the result.
        time: t > 0, one number; may be traced.
        dtype: as for `sample`.

    Raises:
        ValueError, TypeError: an argument outside its range or of the wrong kind.

    Examples:
        >>> import jax, levymc
        >>> draws = levymc.stable.sample_tempered(jax.random.key(0), 1.5, 0.5, (1000,))
        >>> bool(abs(draws).max() < 100)
        True

    References: [rosinski2007], whose laws these are a kind of; their usual ones damp by e^{-λ|z|}
    alone, for which no draw for α > 1 is both exact and as simple.
    """
    key = check_key(key)
    for name, value in (("alpha", alpha), ("rate", rate), ("time", time)):
        check_one_number(name, value, "Draw for each one.")
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy="2 is Gaussian.")
    check_positive("rate", rate, "Jumps are damped beyond 1/rate; without that, use `sample`.")
    check_positive("time", time, "It is how long the jumps are collected.")
    out_dtype = check_dtype(dtype)
    wide = wide_dtype(out_dtype)
    full_shape = check_shape("shape", shape)
    exponent = nan_outside(jnp.asarray(alpha, wide), 0.0, 2.0, includes_low=False)
    key_time, key_normal = jax.random.split(key)
    rates, times = jnp.asarray(rate, wide), jnp.asarray(time, wide)
    clock = _clock(key_time, exponent, rates, times, full_shape)
    normals = jax.random.normal(key_normal, full_shape, wide)
    return (jnp.sqrt(2 * clock) * normals).astype(out_dtype)


def _clock(key: Array, alpha: Array, rate: Array, time: Array, shape: tuple[int, ...]) -> Array:
    """S with E e^{-uS} = exp(-t [(λ² + u)^{α/2} - λ^α]), the sum of equal pieces of the time."""
    load = time * rate**alpha
    is_known = (time > 0) & (rate > 0) & (load < _MOST_PIECES)
    time, rate = jnp.where(is_known, time, 1.0), jnp.where(is_known, rate, 1.0)  # so that it ends
    pieces = jnp.maximum(jnp.where(is_known, jnp.ceil(load), 1.0), 1.0).astype(jnp.int32)
    log_scale = jnp.log(time / pieces) * (2 / alpha)

    def piece(number: Array, total: Array) -> Array:
        return total + _accepted(jax.random.fold_in(key, number), alpha, rate, log_scale, shape)

    total = jax.lax.fori_loop(0, pieces, piece, jnp.zeros(shape, alpha.dtype))
    return jnp.where(is_known, total, math.nan)


def _accepted(
    key: Array, alpha: Array, rate: Array, log_scale: Array, shape: tuple[int, ...]
) -> Array:
    """Positive stable draws, each accepted with probability e^{-λ²S}; the others drawn again."""

    def draw(turn: Array) -> tuple[Array, Array]:
        key_time, key_test = jax.random.split(jax.random.fold_in(key, turn))
        clock = jnp.exp(log_scale + log_positive_stable(key_time, alpha / 2, shape))
        waiting = jax.random.exponential(key_test, shape, clock.dtype)
        return clock, rate * rate * clock > waiting  # so that NaN ends

    def again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        turn, clock, is_refused = state
        other, is_other_refused = draw(turn)
        kept = jnp.where(is_refused, other, clock)
        return turn + 1, kept, is_refused & is_other_refused

    return jax.lax.while_loop(
        lambda state: jnp.any(state[2]), again, (jnp.int32(1), *draw(jnp.int32(0)))
    )[1]
