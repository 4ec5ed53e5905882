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

    .. math:: x' = x + \frac{η\, b(x)}{1 + |η\, b(x)|/c} = x + \mathrm{sign}(b)\, c\, t, \qquad
       t = \frac{1}{1 + c/|η b|},

    coordinate by coordinate, or with the Euclidean norm of ηb in the denominator.  The form on the
    right is the one computed: a drift that overflows to infinity makes a step of c.  The error that
    taming adds is O(η²).

    Args:
        cap: c > 0, the longest step; a few local standard deviations at most.
        componentwise: bound each coordinate by itself; otherwise the length of the whole step.

    Raises:
        ValueError: `cap` not positive.
    """
    check_positive("cap", cap, "It is the longest step that the drift may make.")

    def by_component(drift: Drift, position: Any, step_size: Array) -> Move:
        steps = jax.tree.map(lambda b: step_size * b, drift(position))
        taming = jax.tree.map(lambda step: 1 / (1 + cap / jnp.abs(step)), steps)
        displacement = jax.tree.map(lambda step, t: jnp.sign(step) * cap * t, steps, taming)
        return Move(displacement, largest(taming))

    def by_norm(drift: Drift, position: Any, step_size: Array) -> Move:
        # In logarithms: a ratio of two infinities would be NaN.
        sign, log_size = drift.signed_log(position)
        log_steps = jax.tree.map(lambda size: size + jnp.log(step_size), log_size)
        log_factor = jax.nn.log_sigmoid(jnp.log(cap) - _log_norm(log_steps))
        displacement = jax.tree.map(lambda s, size: s * jnp.exp(size + log_factor), sign, log_steps)
        return Move(displacement, -jnp.expm1(log_factor))

    return by_component if componentwise else by_norm


def _log_norm(log_sizes: Any) -> Array:
    """Logarithm of the Euclidean norm, from the logarithms of the entries."""
    entries = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(log_sizes)])
    return jax.scipy.special.logsumexp(2 * entries) / 2
