r"""The step that FLA, FLMC, SG-FLA, ULA and SGLD share: the drift's move, then the noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc import schedules
from levymc.drifts import Drift
from levymc.integrators import Integrator, tamed

from ._base import Info, State, add, keep_finite, position_dtype
from ._noise import Noise, NoiseKind, largest_size, noise_of_kind
from ._scaling import check_preconditioner, curvature_factors, multiplied, spread, stretched


class Stepping(NamedTuple):
    """All that makes a step but the drift."""

    alpha: Any
    schedule: schedules.Schedule
    integrator: Integrator
    noise: Noise
    preconditioner: Any


def stepping(
    step_size: Any,
    alpha: Any,
    integrator: Integrator | None,
    noise: NoiseKind,
    preconditioner: Any,
) -> Stepping:
    """Check and complete a user's options."""
    check_preconditioner(preconditioner)
    return Stepping(
        alpha,
        schedules.as_schedule(step_size),
        integrator or tamed(),
        noise_of_kind(noise),
        preconditioner,
    )


def unadjusted_step(
    key: Array,
    state: State,
    drift: Drift,
    how: Stepping,
    curvature: Callable[[Any], Any] | None = None,
) -> tuple[State, Info]:
    r"""X_{n+1} = X_n + (integrator's move over η_{n+1}) + η_{n+1}^{1/α} ΔL_{n+1}."""
    number = state.step + 1
    step_size = schedules.at(how.schedule, number, position_dtype(state.position))
    scaled, shortening = _scaled_drift(drift, state.position, step_size, how, curvature)
    move = how.integrator(scaled, state.position, step_size)
    jump = how.noise(key, how.alpha, state.position, step_size)
    if how.preconditioner is not None:
        parts = spread("preconditioner", how.preconditioner, state.position)
        jump = stretched(jump, parts, how.alpha)
    position, is_divergent = keep_finite(
        add(state.position, move.displacement, jump), state.position
    )
    always = jnp.ones_like(step_size)
    taming = move.taming if shortening is None else jnp.maximum(move.taming, shortening)
    info = Info(step_size, always, is_divergent, largest_size(jump), taming)
    return State(position, number), info


def _scaled_drift(
    drift: Drift,
    position: Any,
    step_size: Array,
    how: Stepping,
    curvature: Callable[[Any], Any] | None,
) -> tuple[Drift, Array | None]:
    """The drift in each coordinate's own time, and how far its curvature shortens it, if asked."""
    if how.preconditioner is None and curvature is None:
        return drift, None
    given = 1.0 if how.preconditioner is None else how.preconditioner
    parts = spread("preconditioner", given, position)
    if curvature is None:
        return multiplied(drift, parts), None
    factors = curvature_factors(curvature, position, step_size, parts, how.alpha)
    both = jax.tree.map(lambda m, f: jnp.asarray(m, f.dtype) * f, parts, factors)
    least = jnp.min(jnp.stack([jnp.min(leaf) for leaf in jax.tree.leaves(factors)]))
    return multiplied(drift, both), 1 - least.astype(step_size.dtype)
