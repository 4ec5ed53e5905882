r"""The exact drift of Gaussian targets, in closed form."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import (
    as_parameter,
    check_alpha,
    check_positive,
    check_real,
    spread,
)
from levymc._trees import module

from ._drift import Drift, Evaluations, Position, SignedLog, widened
from ._kummer import log_kummer


def gaussian(alpha: Any, mean: Any = 0.0, std: Any = 1.0) -> Drift:
    r"""The drift of independent Gaussians N(μ, σ²), with u = (x - μ)/σ:

    .. math::
       b(x) = -σ^{1-α}\, \frac{2^{α/2}}{\sqrt π}\, Γ\Bigl(\frac{α+1}{2}\Bigr)\, u\;
       {}_1F_1\Bigl(\frac{2-α}{2}; \frac32; \frac{u^2}{2}\Bigr) .

    Targets: N(μ, σ²) exactly.  It grows like e^{u²/2}: -219 at u = 4, -2.4e6 at u = 6 (α = 1.5).

    Args:
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        mean: μ, one number or a pytree like the position.
        std: σ > 0, likewise.

    Raises:
        ValueError: an argument outside its range.

    Examples:
        >>> import levymc
        >>> round(float(levymc.drifts.gaussian(1.5)(1.0)), 4)
        -0.9417
    """
    check_alpha(alpha)
    check_real("mean", mean, "Give the mean of the target.")
    check_positive("std", std, "Give the standard deviation of the target.")
    return Gaussian(*map(as_parameter, (alpha, mean, std)))


@module()
class Gaussian(Drift):
    """Independent coordinates N(mean, std²)."""

    alpha: Any
    mean: Any
    std: Any
    evaluations = Evaluations(density=0, gradient=0)

    def evaluate(self, position: Position) -> SignedLog:
        return widened(partial(_evaluate, self), position)


@jax.jit  # step by step it would be slow
def _evaluate(drift: Gaussian, position: Position) -> SignedLog:
    named = {"alpha": drift.alpha, "mean": drift.mean, "std": drift.std}
    parts = (spread(name, value, position) for name, value in named.items())
    pairs = jax.tree.map(gaussian_signed_log, position, *parts)
    outer, inner = jax.tree.structure(position), jax.tree.structure((0, 0))
    return SignedLog(*jax.tree.transpose(outer, inner, pairs))


def gaussian_signed_log(x: Array, alpha: Any, mean: Any, std: Any) -> tuple[Array, Array]:
    """sign(b) and log|b| of N(mean, std²); all broadcast."""
    alpha, mean, std = (jnp.asarray(value, x.dtype) for value in (alpha, mean, std))
    u = (x - mean) / std
    log_constant = (
        alpha / 2 * math.log(2.0)
        - math.log(math.pi) / 2
        + jax.scipy.special.gammaln((alpha + 1) / 2)
        + (1 - alpha) * jnp.log(std)
    )
    return -jnp.sign(u), log_constant + jnp.log(jnp.abs(u)) + log_kummer(1 - alpha / 2, u * u / 2)
