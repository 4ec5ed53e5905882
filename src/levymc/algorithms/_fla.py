r"""The fractional Langevin algorithm, ULA as its α = 2, and the step that FLMC and SG-FLA share."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc._checks import as_parameter, check_positive, spread
from levymc._trees import module
from levymc.drifts import Drift, LogDensity

from ._base import Info, SamplingAlgorithm, State, add, keep_finite, position_dtype, start_at


def fla(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
) -> SamplingAlgorithm[State]:
    r"""Fractional Langevin algorithm: steps with the leading-term drift b̂.

    .. math:: x' = x + η\, c_α ∇\log φ(x) + η^{1/α}\, ξ, \qquad ξ \sim SαS(1)

    (the drift's step tamed, unless another integrator is given).

    Targets: not φ, for α < 2, however small the step: see `levymc.drifts.leading_term`, and the
    ledger, docs/ledger.md, for how far off it is.
    Not valid when: the target is heavy-tailed, as the gradient cannot pull back a jump.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        integrator: `levymc.integrators.tamed()` if not given; `euler()` is the paper's.
        noise: `levymc.noises.independent()` if not given; `truncated(bound)`; or `isotropic()`,
            which is outside the paper's theory.
        preconditioner: m > 0, a number or a pytree that broadcasts to the position: coordinate d
            steps η m_d, in drift and noise.  For what that does to the target see `sgfla`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.fla(lambda x: -x * x / 2, 0.1, 1.7)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [simsekli2017], eq. (15).
    """
    drift = drifts.leading_term(logdensity_fn, alpha)
    return Unadjusted(drift, stepping(step_size, alpha, integrator, noise, preconditioner))


def ula(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    *,
    integrator: integrators.Integrator | None = None,
    preconditioner: Any = None,
) -> SamplingAlgorithm[State]:
    r"""Unadjusted Langevin algorithm, FLA at α = 2 with Euler's step:

    .. math:: x' = x + η ∇\log φ(x) + \sqrt{2η}\, ξ, \qquad ξ \sim N(0, 1) .

    Targets: φ up to O(η).  Not valid when: η |∇² log φ| > 2 anywhere the chain may go.

    Args, Raises: as for `fla`; the integrator is `euler()` if not given.

    References: [simsekli2017], eq. (2).
    """
    drift = drifts.gradient(logdensity_fn)
    used = integrator or integrators.euler()
    return Unadjusted(drift, stepping(step_size, 2.0, used, None, preconditioner))


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
        integrator or integrators.tamed(),
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

    def prepared(self, positions: Any) -> "Unadjusted":
        return dataclasses.replace(self, drift=self.drift.prepared(positions))


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
    here = scaled.evaluate(state.position) if scaled.has_estimate else None
    move = how.integrator(scaled, state.position, step_size, here)
    jump = how.noise.draw(key, state.position, step_size)
    if how.preconditioner is not None:
        jump = noises.stretched(jump, how.preconditioner, how.alpha)
    position, is_divergent = keep_finite(
        add(state.position, move.displacement, jump), state.position
    )
    taming = move.taming if shortening is None else jnp.maximum(move.taming, shortening)
    largest = noises.largest_size(jump)
    error = largest_error(here, step_size.dtype)
    info = Info(step_size, jnp.ones_like(step_size), is_divergent, largest, taming, error)
    return State(position, number), info


def largest_error(here: drifts.Evaluation | None, dtype: Any) -> Array | None:
    """The largest of a drift's estimated errors, if there are any.

    Where the drift overflows its sign alone decides the step, and that is known below an error
    of a half.
    """
    if not isinstance(here, drifts.Estimated):
        return None

    def of_leaf(error: Array, value: Array) -> Array:
        return jnp.max(jnp.where(jnp.isinf(value) & (error < 0.5), 0.0, error))

    each = jax.tree.leaves(jax.tree.map(of_leaf, here.error, here.value()))
    return jnp.max(jnp.stack(each)).astype(dtype)


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
