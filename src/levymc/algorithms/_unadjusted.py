r"""The step that FLA, FLMC, SG-FLA, ULA and SGLD share: the drift's move, then the noise."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from levymc import schedules
from levymc.drifts import Drift
from levymc.integrators import Integrator

from ._base import Info, State, add, keep_finite, position_dtype
from ._noise import Noise, largest_size


def unadjusted_step(
    key: Array,
    state: State,
    drift: Drift,
    alpha: Any,
    schedule: schedules.Schedule,
    integrator: Integrator,
    noise: Noise,
) -> tuple[State, Info]:
    r"""X_{n+1} = X_n + (integrator's move over η_{n+1}) + η_{n+1}^{1/α} ΔL_{n+1}."""
    number = state.step + 1
    step_size = schedules.at(schedule, number, position_dtype(state.position))
    move = integrator(drift, state.position, step_size)
    jump = noise(key, alpha, state.position, step_size)
    position, is_divergent = keep_finite(
        add(state.position, move.displacement, jump), state.position
    )
    always = jnp.ones_like(step_size)
    info = Info(step_size, always, is_divergent, largest_size(jump), move.taming)
    return State(position, number), info
