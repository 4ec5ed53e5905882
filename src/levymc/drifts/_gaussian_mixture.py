r"""The exact drift of mixtures of Gaussians, in closed form."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import (
    as_parameter,
    check_alpha,
    check_floating,
    check_positive,
    check_real,
    is_traced,
)
from levymc._trees import module

from ._drift import Drift, Evaluations, Position, SignedLog, signed_log_sum, widened
from ._gaussian import gaussian_signed_log


def gaussian_mixture(alpha: Any, weights: Any, means: Any, stds: Any) -> Drift:
    r"""The drift of Σ_i w_i N(μ_i, diag σ_i²), from those of its components:

    .. math::
       b(x) = \sum_i r_i(x)\, b_i(x), \qquad r_i(x) = \frac{w_i N_i(x)}{\sum_j w_j N_j(x)} .

    Targets: the mixture exactly.

    Args:
        alpha: in (1, 2], one number or one a coordinate; may be traced.
        weights: w_i > 0, of length K; they need not sum to one.
        means: μ_i, of shape (K,) for a target of one number, (K, D) for a vector of D.
        stds: σ_i > 0, that broadcasts to the shape of `means`.

    Raises:
        ValueError: an argument outside its range, or shapes that do not go together.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> drift = levymc.drifts.gaussian_mixture(1.5, [0.5, 0.5], [-2.0, 2.0], 0.5)
        >>> bool(abs(drift(0.0)) < 1e-5)
        True
    """
    check_alpha(alpha)
    check_positive("weights", weights, "Leave out components of no weight.")
    check_real("means", means, "Give the means of the components.")
    check_positive("stds", stds, "Give the standard deviations of the components.")
    shape = np.shape(means)
    if len(np.shape(weights)) != 1 or shape[:1] != np.shape(weights):
        raise ValueError(
            f"`weights` must be of length K and `means` of shape (K,) or (K, D), "
            f"got shapes {np.shape(weights)} and {shape}."
        )

    parts = [part if is_traced(part) else np.asarray(part) for part in (weights, means, stds)]
    return GaussianMixture(as_parameter(alpha), *parts)


@module()
class GaussianMixture(Drift):
    """Σ_i w_i N(μ_i, diag σ_i²)."""

    alpha: Any
    weights: Any
    means: Any
    stds: Any
    evaluations = Evaluations(density=0, gradient=0)

    def evaluate(self, position: Position) -> SignedLog:
        check_floating("position", position)
        found, shape = np.shape(position), np.shape(self.means)
        if found != shape[1:]:
            raise ValueError(f"`position` must have shape {shape[1:]}, got {found}.")
        return widened(partial(_evaluate, self), position)


@jax.jit  # step by step it would be slow
def _evaluate(drift: GaussianMixture, x: Array) -> SignedLog:
    centers = jnp.asarray(drift.means, x.dtype)
    widths = jnp.broadcast_to(jnp.asarray(drift.stds, x.dtype), centers.shape)
    heights = -(((x - centers) / widths) ** 2) / 2 - jnp.log(widths)
    log_weights = jnp.log(jnp.asarray(drift.weights, x.dtype))
    heights = heights.reshape(len(centers), -1).sum(-1) + log_weights
    responsibility = jax.nn.log_softmax(heights).reshape(-1, *[1] * x.ndim)
    sign, log_size = gaussian_signed_log(x, drift.alpha, centers, widths)
    moved = (jnp.moveaxis(part, 0, -1) for part in (sign, log_size + responsibility))
    return SignedLog(*signed_log_sum(*moved))
