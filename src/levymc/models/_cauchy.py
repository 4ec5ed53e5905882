r"""The Cauchy law."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


def cauchy(position: Any) -> Array:
    r"""Log density of the Cauchy law, independently in each coordinate:

    .. math:: \log φ(x) = -\sum_d \log\bigl(π (1 + x_d^2)\bigr) .

    It has no mean; its quantiles are tan(π(p - 1/2)).

    Args:
        position: a number or an array.

    Examples:
        >>> import levymc
        >>> round(float(levymc.models.cauchy(0.0)), 4)
        -1.1447
    """
    x = jnp.asarray(position)
    return -jnp.sum(jnp.log1p(x * x) + math.log(math.pi))
