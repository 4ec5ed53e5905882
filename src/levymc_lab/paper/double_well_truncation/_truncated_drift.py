r"""The drift b̃_{h,K} of the double well, where h and K are numbers like any other.

.. math:: \tilde b_{h,K}(x) = h^{2-α} \sum_{k=-K}^{K} g_{α-2,k}\, ∂\log φ(x - kh)\,
   \frac{φ(x - kh)}{φ(x)}

`levymc.drifts.centered_difference` is compiled for each K; here are the same sums for many h and K
at once.  Tests compare the two.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc import riesz

from .._double_well import potential, target

# U = (x⁴ - 0.02 x³ - 26.02 x² + 0.5 x + 25.5)/10 + 0.5
SLOPE = np.polynomial.Polynomial([0.5, -52.04, -0.06, 4.0]) / 10
LARGEST_LOG = 400.0  # of a drift; what is larger is as good as infinite


def on_grid(x: Float[np.ndarray, " n"], alpha: float, h: float, num_terms: int) -> np.ndarray:
    """b̃ at the points x, at most e^400, in NumPy."""
    k = np.arange(-num_terms, num_terms + 1)
    weights = riesz.unchecked_coefficients(np.float64(alpha - 2), num_terms)[np.abs(k)]
    places = x[:, None] - h * k
    log_ratios = potential(x)[:, None] - potential(places)
    largest = log_ratios.max(axis=1)
    sums = np.sum(-weights * SLOPE(places) * np.exp(log_ratios - largest[:, None]), axis=1)
    log_size = np.log(np.maximum(np.abs(sums), 1e-300)) + largest + (2 - alpha) * np.log(h)
    return np.sign(sums) * np.exp(np.minimum(log_size, LARGEST_LOG))


def traced(alpha: Any, h: Any, num_terms: Any, most: int) -> Callable[[Any], Array]:
    """b̃ for K ≤ `most`, where α, h and K may be traced."""
    k = jnp.arange(-most, most + 1)
    every = riesz.unchecked_coefficients(alpha - 2, most)[jnp.abs(k)]
    weights = jnp.where(jnp.abs(k) <= num_terms, every, 0.0) * h ** (2 - alpha)
    slope = jax.vmap(jax.grad(target))

    def drift(x: Any) -> Array:
        places = x - h * k
        return jnp.sum(weights * slope(places) * jnp.exp(target(places) - target(x)))

    return drift
