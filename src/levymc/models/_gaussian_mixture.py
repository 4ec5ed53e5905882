r"""Mixtures of isotropic Gaussians."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_positive, check_real
from levymc.drifts import LogDensity


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
        >>> logdensity_fn = levymc.models.gaussian_mixture([0.5, 0.5], [-3.0, 3.0], 1.0)
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

    def logdensity(position: Any) -> Array:
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
