r"""Four unequal modes in two dimensions."""

from typing import Any

import numpy as np
from jaxtyping import Array

from ._gaussian_mixture import gaussian_mixture

FOUR_MODES_WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
FOUR_MODES_MEANS = np.array([[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0]])
FOUR_MODES_SCALE = 0.8

_mixture = gaussian_mixture(FOUR_MODES_WEIGHTS, FOUR_MODES_MEANS, FOUR_MODES_SCALE)


def four_modes(position: Any) -> Array:
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
        >>> heaviest, lightest = levymc.models.FOUR_MODES_MEANS[jnp.array([0, 3])]
        >>> ratio = levymc.models.four_modes(heaviest) - levymc.models.four_modes(lightest)
        >>> round(float(jnp.exp(ratio)), 3)
        4.0
    """
    return _mixture(position)
