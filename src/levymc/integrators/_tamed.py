r"""A step that is bounded, however large the drift."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_positive
from levymc.drifts import Drift

from ._move import Integrator, Move, largest


def tamed(cap: Any = 1.0, *, componentwise: bool = True) -> Integrator:
    r"""Euler's step, tamed:

    .. math:: x' = x + \frac{η\, b(x)}{1 + |η\, b(x)|/c} = x + \mathrm{sign}(b)\, c\,
       σ\bigl(\log |η b| - \log c\bigr), \qquad σ(t) = \frac{1}{1 + e^{-t}},

    coordinate by coordinate, or with the Euclidean norm of ηb in the denominator.  The form on the
    right is the one computed: it takes log|b|, and overflows for no drift.  The error it adds is
    O(η²).

    Args:
        cap: c > 0, the longest step; a few local standard deviations at most.
        componentwise: bound each coordinate by itself; otherwise the length of the whole step.

    Raises:
        ValueError: `cap` not positive.
    """
    check_positive("cap", cap, "It is the longest step that the drift may make.")

    def move(drift: Drift, position: Any, step_size: Array) -> Move:
        sign, log_size = drift.signed_log(position)
        log_steps = jax.tree.map(lambda size: size + jnp.log(step_size), log_size)
        total = None if componentwise else _log_norm(log_steps)
        # log of 1/(1 + |step|/c), the factor that the step is shortened by.
        factors = jax.tree.map(
            lambda size: jax.nn.log_sigmoid(jnp.log(cap) - (size if total is None else total)),
            log_steps,
        )
        displacement = jax.tree.map(
            lambda s, size, factor: s * jnp.exp(size + factor), sign, log_steps, factors
        )
        return Move(displacement, largest(jax.tree.map(lambda f: -jnp.expm1(f), factors)))

    return move


def _log_norm(log_sizes: Any) -> Array:
    """Logarithm of the Euclidean norm, from the logarithms of the entries."""
    entries = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(log_sizes)])
    return jax.scipy.special.logsumexp(2 * entries) / 2
