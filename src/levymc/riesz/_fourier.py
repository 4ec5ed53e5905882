r"""The Riesz derivative by its definition, on a grid."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_interval, check_positive, is_traced

from ._centered_difference import GAMMA_REMEDY


def fourier_derivative(values: ArrayLike, gamma: Any, *, spacing: ArrayLike) -> Float[Array, " n"]:
    r"""Return D^γ f = F^{-1}{|ω|^γ F f} of a function sampled on a regular grid, by FFT.

    The reference for everything else: spectrally accurate for a function that is periodic, or has
    died out at both ends, as far as its Riesz derivative has died out there too.

    Not valid when: γ < 0 and f has a mean, as |ω|^γ is infinite at ω = 0.  (The derivative of a
    density, which is what the drift needs, has none.)  For γ < 0 the result is that of zero mean
    over the period: add the constant if one is known.

    Args:
        values: f on the grid.
        gamma: order in (-1, 2].
        spacing: of the grid.

    Raises:
        ValueError, TypeError: an argument outside its range, or values with a mean for γ < 0.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> grid = jnp.arange(64) * (2 * jnp.pi / 64)
        >>> wave = levymc.riesz.fourier_derivative(jnp.sin(2 * grid), 0.5, spacing=2 * jnp.pi / 64)
        >>> bool(jnp.allclose(wave, 2**0.5 * jnp.sin(2 * grid), atol=1e-5))
        True

    References: [simsekli2017], eq. (4).
    """
    check_interval("gamma", gamma, -1.0, 2.0, includes_low=False, remedy=GAMMA_REMEDY)
    check_positive("spacing", spacing, "It is the distance between the points of the grid.")
    samples = jnp.asarray(values)
    is_whole = jnp.issubdtype(samples.dtype, jnp.integer)
    dtype = jnp.result_type(float) if is_whole else samples.dtype
    samples = samples.astype(jnp.promote_types(dtype, jnp.float32))  # no transform is of sixteen
    if samples.ndim != 1:
        raise ValueError(f"`values` must be a vector, got shape {samples.shape}. Use jax.vmap.")
    if not is_traced((values, gamma)) and float(gamma) < 0:
        _check_mean(np.asarray(samples))
    frequencies = 2 * jnp.pi * jnp.fft.rfftfreq(samples.size, spacing).astype(samples.dtype)
    multiplier = jnp.where(frequencies > 0, frequencies, 1.0) ** gamma
    multiplier = jnp.where((frequencies > 0) | (jnp.asarray(gamma) == 0), multiplier, 0.0)
    return jnp.fft.irfft(multiplier * jnp.fft.rfft(samples), n=samples.size).astype(dtype)


def _check_mean(samples: np.ndarray) -> None:
    mean, size = float(np.mean(samples)), float(np.mean(np.abs(samples)))
    if abs(mean) > 1e3 * float(np.finfo(samples.dtype).eps) * size:
        raise ValueError(
            f"`values` must have zero mean for a negative `gamma`, got mean {mean:.3g} "
            f"against a mean size of {size:.3g}. Differentiate first, or subtract the mean."
        )
