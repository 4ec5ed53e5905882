r"""Student's t, with tails as heavy as one likes."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_positive
from levymc.drifts import LogDensity


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
        >>> round(float(levymc.models.student_t(1.5)(0.0)), 4)
        -1.0767
    """
    check_positive("degrees", degrees, "For infinitely many, use a Gaussian.")
    nu = float(degrees)
    height = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2

    def logdensity(position: Any) -> Array:
        x = jnp.asarray(position)
        return jnp.sum(height - (nu + 1) / 2 * jnp.log1p(x * x / nu))

    return logdensity
