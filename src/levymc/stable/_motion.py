r"""The α-stable Lévy motion."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_real, check_shape, is_traced

from ._sample import sample

_TIMES_REMEDY = "Give times at or after 0, each later than the one before."


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
    return jnp.cumsum(lengths * increments, axis=-1)


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
