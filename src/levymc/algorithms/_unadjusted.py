r"""The step that FLA, FLMC, SG-FLA, ULA and SGLD share: the drift's move, then the noise."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc import drifts, noises, schedules
from levymc._checks import check_positive
from levymc._trees import as_parameter, module, spread
from levymc.drifts import Drift
from levymc.integrators import tamed

from ._base import (
    Info,
    SamplingAlgorithm,
    State,
    add,
    keep_finite,
    position_dtype,
    start_at,
)


@module()
class Stepping:
    """All that makes a step but the drift."""

    alpha: Any
    schedule: Any
    integrator: Any
    noise: Any
    preconditioner: Any


def stepping(
    step_size: Any, alpha: Any, integrator: Any, noise: Any, preconditioner: Any
) -> Stepping:
    """Check and complete a user's options."""
    if preconditioner is not None:
        check_positive(
            "preconditioner", preconditioner, "It multiplies the step size of each coordinate."
        )
    return Stepping(
        as_parameter(alpha),
        schedules.as_schedule(step_size),
        integrator or tamed(),
        noises.as_law(noise, alpha),
        as_parameter(preconditioner),
    )


@module()
class Unadjusted(SamplingAlgorithm[State]):
    """The algorithm of a drift."""

    takes_minibatch = False
    drift: Any
    how: Stepping

    def init(self, position: Any, rng_key: Any = None) -> State:
        return start_at(position)

    def step(self, key: Array, state: State, *minibatch: Any) -> tuple[State, Info]:
        return unadjusted_step(key, state, self.drift, self.how)


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
    jump = how.noise.draw(key, state.position, step_size)
    if how.preconditioner is not None:
        jump = noises.stretched(jump, how.preconditioner, how.alpha)
    position, is_divergent = keep_finite(
        add(state.position, move.displacement, jump), state.position
    )
    taming = move.taming if shortening is None else jnp.maximum(move.taming, shortening)
    largest = noises.largest_size(jump)
    info = Info(step_size, jnp.ones_like(step_size), is_divergent, largest, taming)
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
        return drifts.Scaled(drift, parts), None
    factors = _curvature_factors(curvature, position, step_size, parts, how.alpha)
    both = jax.tree.map(lambda m, f: jnp.asarray(m, f.dtype) * f, parts, factors)
    least = jnp.min(jnp.stack([jnp.min(leaf) for leaf in jax.tree.leaves(factors)]))
    return drifts.Scaled(drift, both), 1 - least.astype(step_size.dtype)


def _curvature_factors(
    curvature: Callable[[Any], Any],
    position: Any,
    step_size: Array,
    preconditioner: Any,
    alpha: Any,
) -> Any:
    r"""min(1, 1/(η m c_α S)) for each coordinate, S its curvature."""
    sizes = spread("curvature", curvature(position), position)
    alphas = jax.tree.broadcast(alpha, position)

    def factor(size: Any, m: Any, a: Any) -> Array:
        size = jnp.asarray(size)
        scale = jnp.asarray(m * drifts.gradient_coefficient(a), size.dtype)
        return jnp.minimum(1, 1 / (step_size.astype(size.dtype) * scale * size))

    return jax.tree.map(factor, sizes, preconditioner, alphas)
