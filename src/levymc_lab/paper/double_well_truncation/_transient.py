r"""Figure 3 as it was made: 5000 explicit steps of 5e-3 time units in all.

.. math:: X_{n+1} = X_n + η_{n+1} \tilde b_{h,K}(X_n) + η_{n+1}^{1/α} ΔL_{n+1}, \qquad
   η_n = \left(\frac{10^{-7}}{n + 1}\right)^{0.6}, \qquad X_0 = -5,

and the bias of the weighted mean Σ η_n X_n / Σ η_n.  The paper gives neither X_0 nor where n
begins; these reproduce its curves.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import levymc.algorithms as algorithms
from levymc import integrators

from .._double_well import MEAN, target
from . import _truncated_drift

START = -5.0
MOST_TERMS = 20  # the largest K of the figure


def step_size(n: Any) -> Any:
    """η_n, one step further than the paper writes it."""
    return (1e-7 / (n + 1)) ** 0.6


def mean_abs_bias(
    key: Any,
    alpha: Float[np.ndarray, " n"],
    h: Float[np.ndarray, " n"],
    num_terms: Float[np.ndarray, " n"],
    num_steps: int,
    num_repeats: int,
) -> Float[np.ndarray, " n"]:
    """For each (α, h, K) the mean over the repeats of |weighted mean - mean of the target|."""
    keys = jax.random.split(key, (alpha.size, num_repeats))
    settings = [jnp.asarray(column)[:, None] for column in (alpha, h, num_terms)]
    wide = [jnp.broadcast_to(column, keys.shape) for column in settings]
    means = _weighted_means(keys, *wide, num_steps)
    return np.abs(np.asarray(means) - MEAN).mean(axis=1)


@partial(jax.jit, static_argnames="num_steps")
def _weighted_means(keys: Any, alpha: Any, h: Any, num_terms: Any, num_steps: int) -> Any:
    mean = jax.vmap(jax.vmap(partial(_weighted_mean, num_steps=num_steps)))
    return mean(keys, alpha, h, num_terms)


def _weighted_mean(key: Any, alpha: Any, h: Any, num_terms: Any, num_steps: int) -> Any:
    drift = _truncated_drift.traced(alpha, h, num_terms, MOST_TERMS)
    chain = algorithms.flmc(target, step_size, alpha, drift=drift, integrator=integrators.euler())

    def advance(carry: Any, key_step: Any) -> Any:
        state, total, length = carry
        state, info = chain.step(key_step, state)
        return (state, total + info.step_size * state.position, length + info.step_size), None

    zero = jnp.zeros_like(alpha)
    start = chain.init(START + zero), zero, zero
    (_, total, length), _ = jax.lax.scan(advance, start, jax.random.split(key, num_steps))
    return total / length
