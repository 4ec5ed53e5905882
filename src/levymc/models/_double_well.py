r"""The paper's double well."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


def double_well(position: Any) -> Array:
    r"""Log density of the paper's double well, up to a constant:

    .. math:: \log φ(x) = -\frac{(x+5)(x+1)(x-1.02)(x-5)}{10} - \frac12 .

    The minima of -log φ lie at -3.6042 and 3.6096, with a barrier of 17 between them.  The mean is
    -0.30140, the variance 12.716, and 0.54263 of the mass lies left of zero.

    Args:
        position: x, a number.

    Examples:
        >>> import levymc
        >>> float(levymc.models.double_well(5.0))
        -0.5

    References: [simsekli2017], section 5.1.
    """
    x = jnp.asarray(position)
    quartic = (x + 5) * (x + 1) * (x - 1.02) * (x - 5)
    return -(quartic / 10 + 0.5)
