"""Targets to try samplers on: log densities as plain functions, and what is known of their laws."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc._checks import check_one_number, check_positive, check_real
from levymc.drifts import LogDensity


def double_well(position: ArrayLike) -> Array:
    r"""Log density of the paper's double well, up to a constant:

    .. math:: \log φ(x) = -\frac{(x+5)(x+1)(x-1.02)(x-5)}{10} - \frac12 .

    The minima of -log φ lie at -3.6042 and 3.6096, with a barrier of 17 between them.  The mean is
    -0.30140, the variance 12.716, and 0.54263 of the mass lies left of zero.

    Args:
        position: x, a number.

    Examples:
        >>> import levymc
        >>> float(levymc.targets.double_well(5.0))
        -0.5

    References: [simsekli2017], section 5.1.
    """
    x = jnp.asarray(position)
    quartic = (x + 5) * (x + 1) * (x - 1.02) * (x - 5)
    return -(quartic / 10 + 0.5)


def cauchy(position: ArrayLike) -> Array:
    r"""Log density of the Cauchy law, independently in each coordinate:

    .. math:: \log φ(x) = -\sum_d \log\bigl(π (1 + x_d^2)\bigr) .

    It has no mean; its quantiles are tan(π(p - 1/2)).

    Args:
        position: a number or an array.

    Examples:
        >>> import levymc
        >>> round(float(levymc.targets.cauchy(0.0)), 4)
        -1.1447
    """
    x = jnp.asarray(position)
    return -jnp.sum(jnp.log1p(x * x) + math.log(math.pi))


def student_t(degrees: Any) -> LogDensity:
    r"""Return the log density of Student's t, independently in each coordinate:

    .. math:: \log φ(x) = \sum_d -\frac{ν+1}{2} \log\Bigl(1 + \frac{x_d^2}{ν}\Bigr)
       + \log\frac{Γ((ν+1)/2)}{Γ(ν/2)\sqrt{νπ}} .

    It falls as |x|^{-1-ν}: there is no variance for ν ≤ 2, and no mean for ν ≤ 1.

    Args:
        degrees: ν > 0, of freedom.

    Returns:
        A function of a number or an array.

    Raises:
        ValueError, TypeError: `degrees` not positive and finite.

    Examples:
        >>> import levymc
        >>> round(float(levymc.targets.student_t(1.5)(0.0)), 4)
        -1.0767
    """
    check_one_number("degrees", degrees, "All coordinates have the same.")
    check_positive("degrees", degrees, "For infinitely many, use a Gaussian.")
    nu = float(degrees)
    height = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2

    def logdensity(position: ArrayLike) -> Array:
        x = jnp.asarray(position)
        return jnp.sum(height - (nu + 1) / 2 * jnp.log1p(x * x / nu))

    return logdensity


def gaussian_mixture(weights: Any, means: Any, scale: Any) -> LogDensity:
    r"""Return the log density of Σ_k w_k N(μ_k, s_k² I):

    .. math:: \log φ(x) = \log \sum_k \frac{w_k}{(2π s_k^2)^{D/2}}\, e^{-|x - μ_k|^2 / 2 s_k^2} .

    `levymc.drifts.gaussian_mixture` is its exact drift.

    Args:
        weights: w_k > 0, of length K; they need not sum to one.
        means: μ_k, of shape (K,) for a target of one number, (K, D) for a vector of D.
        scale: s > 0, the standard deviation, one number or one for each component.

    Returns:
        A function of a position of the shape of one mean.

    Raises:
        ValueError, TypeError: an argument outside its range, or shapes that do not go together;
            when called, a position of another shape.

    Examples:
        >>> import levymc
        >>> logdensity_fn = levymc.targets.gaussian_mixture([0.5, 0.5], [-3.0, 3.0], 1.0)
        >>> round(float(logdensity_fn(3.0)), 4)
        -1.6121
    """
    check_positive("weights", weights, "Leave out components of no weight.")
    check_real("means", means, "Give the means of the components.")
    check_positive("scale", scale, "It is the standard deviation of a component.")
    shape = np.shape(means)
    if len(np.shape(weights)) != 1 or shape[:1] != np.shape(weights) or len(shape) > 2:
        raise ValueError(
            "`weights` must be of length K and `means` of shape (K,) or (K, D), "
            f"got shapes {np.shape(weights)} and {shape}. Give a mean for each weight."
        )
    if np.shape(scale) not in ((), shape[:1]):
        raise ValueError(
            f"`scale` must be one number or one for each of the {shape[0]} components, "
            f"got shape {np.shape(scale)}. The components are isotropic."
        )
    scales = np.broadcast_to(np.asarray(scale, float), shape[:1])
    shares = np.asarray(weights, float) / np.sum(weights)
    dimension = math.prod(shape[1:])
    heights = np.log(shares) - dimension * np.log(scales * math.sqrt(2 * math.pi))

    def logdensity(position: ArrayLike) -> Array:
        x = jnp.asarray(position)
        if x.shape != shape[1:]:
            raise ValueError(
                f"`position` must have shape {shape[1:]}, that of a mean, got {x.shape}. "
                "Map over many positions with jax.vmap."
            )
        offsets = (x - jnp.asarray(means, x.dtype)).reshape(shape[0], -1)
        squares = jnp.sum(offsets**2, axis=-1) / jnp.asarray(2 * scales**2, x.dtype)
        return jax.scipy.special.logsumexp(jnp.asarray(heights, x.dtype) - squares)

    return logdensity


FOUR_MODES_WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
FOUR_MODES_MEANS = np.array([[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0]])
FOUR_MODES_SCALE = 0.8

_mixture = gaussian_mixture(FOUR_MODES_WEIGHTS, FOUR_MODES_MEANS, FOUR_MODES_SCALE)


def four_modes(position: ArrayLike) -> Array:
    r"""Log density of four Gaussians of unequal weight, at the corners of a square:

    .. math::
       φ(x) = \sum_k w_k\, N(x; μ_k, 0.8^2 I), \qquad w = (.4, .3, .2, .1), \quad
       μ = (-4,-4),\, (4,-4),\, (-4,4),\, (4,4) .

    Neighbours are ten standard deviations apart, along an axis, with a barrier of 12 between them:
    a Langevin chain does not cross it.  The weights test whether a sampler finds the modes, and
    how long it stays in each.

    Args:
        position: of shape (2,).

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> heaviest, lightest = levymc.targets.FOUR_MODES_MEANS[jnp.array([0, 3])]
        >>> ratio = levymc.targets.four_modes(heaviest) - levymc.targets.four_modes(lightest)
        >>> round(float(jnp.exp(ratio)), 3)
        4.0
    """
    return _mixture(position)
