r"""Euler's step."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc.drifts import Drift

from ._move import Integrator, Move


def euler() -> Integrator:
    r"""The paper's integrator,

    .. math:: x' = x + η\, b(x) .

    Not valid when: η |b'| > 2 anywhere that a jump may land: the chain then explodes.  That is
    soon so for b̂ on a quartic potential, and always so for the exact drift of light tails.

    References: [simsekli2017], eqs. (6), (11) and (15).
    """

    def move(drift: Drift, position: Any, step_size: Array) -> Move:
        displacement = jax.tree.map(lambda b: step_size * b, drift(position))
        return Move(displacement, jnp.zeros_like(step_size))

    return move
