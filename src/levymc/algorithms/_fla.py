r"""The fractional Langevin algorithm, ULA as its α = 2, and the step that FLMC and SG-FLA share."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import drifts, integrators, noises, schedules
from levymc._checks import as_parameter, check_positive, spread
from levymc._trees import module
from levymc.drifts import Drift, LogDensity

from ._base import (
    Info,
    LangevinState,
    SamplingAlgorithm,
    add,
    check_minibatch,
    choose,
    is_finite,
    position_dtype,
    start,
)
from ._local import Local, Paced, local


def fla(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.7,
    *,
    integrator: integrators.Integrator | None = None,
    noise: noises.Noise | None = None,
    preconditioner: Any = None,
    checks_support: bool = True,
) -> SamplingAlgorithm[LangevinState]:
    r"""Fractional Langevin algorithm: steps with the leading-term drift b̂.

    .. math:: x' = x + η\, c_α ∇\log φ(x) + η^{1/α}\, ξ, \qquad ξ \sim SαS(1)

    (the drift's step tamed, unless another integrator is given).  A step that would end where log φ
    is not finite is not made, and counted as divergent: on a bounded support that is a bias.

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
            steps η m_d, in drift and noise.  For what that does to the target see `sgfla`.  Or a
            function of the position that gives either: local geometry, for which the drift is
            c_α (m_d ∂_d log φ + ∂_d m_d).  The derivatives take one reverse pass through m for
            each number that it gives, and as many times the position's memory: one number is
            cheap.  Where m is not positive and finite no step is made.
        checks_support: look at log φ where a step ends, and do not make one that ends where it is
            not finite.  The value comes with the gradient that the next step takes: of a cheap
            density it costs a tenth of a step with a thousand chains, and a third with four; where
            the gradient does not need it, as a logistic regression's, up to 0.9 of the gradient.
            False, for a target that is finite everywhere, does without, and leaves
            `state.logdensity` as it was at the start.

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
    how = stepping(step_size, alpha, integrator, noise, preconditioner)
    return Unadjusted("fla", logdensity_fn, drift, how, checks_support)


def ula(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    *,
    integrator: integrators.Integrator | None = None,
    preconditioner: Any = None,
    checks_support: bool = True,
) -> SamplingAlgorithm[LangevinState]:
    r"""Unadjusted Langevin algorithm, FLA at α = 2 with Euler's step:

    .. math:: x' = x + η ∇\log φ(x) + \sqrt{2η}\, ξ, \qquad ξ \sim N(0, 1) .

    Targets: φ up to O(η).  Not valid when: η |∇² log φ| > 2 anywhere the chain may go.

    Args, Raises: as for `fla`; the integrator is `euler()` if not given.

    References: [simsekli2017], eq. (2).
    """
    drift = drifts.gradient(logdensity_fn)
    used = integrators.euler() if integrator is None else integrator
    how = stepping(step_size, 2.0, used, None, preconditioner)
    return Unadjusted("ula", logdensity_fn, drift, how, checks_support)


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
    if callable(preconditioner):
        preconditioner = local(preconditioner, drifts.gradient_coefficients(alpha))
    elif preconditioner is not None and not isinstance(preconditioner, Local):
        check_positive(
            "preconditioner", preconditioner, "It multiplies the step size of each coordinate."
        )
    return Stepping(
        as_parameter(alpha),
        schedules.as_schedule(step_size),
        integrators.as_integrator(integrator),
        noises.as_law(noise, alpha),
        as_parameter(preconditioner),
    )


class Proposal(NamedTuple):
    """Where a step leads, and what to know of it; `noise` is that of time η."""

    position: Any
    step_size: Array
    noise: Any
    largest_jump: Array
    taming: Array

    @property
    def is_valid(self) -> Array:
        """Whether all of it is finite, and the step size a positive number."""
        eta = self.step_size
        return is_finite(self.position) & (eta > 0) & jnp.isfinite(eta)


def propose(
    key: Array,
    position: Any,
    number: Array,
    drift: Drift,
    how: Stepping,
    here: drifts.Evaluation | None = None,
    curvature: Callable[[Any], Any] | None = None,
) -> Proposal:
    r"""X_n + (integrator's move over η_{n+1}) + η_{n+1}^{1/α} ΔL_{n+1}."""
    eta = schedules.at(how.schedule, number, position_dtype(position))
    own, shortening = in_own_time(drift, position, how), None
    if curvature is not None:
        own, shortening = _shortened(own, position, eta, how, curvature)
    move = how.integrator(own, position, eta, here)
    noise = how.noise.draw(key, position, eta)
    jump = noise
    if how.preconditioner is not None:
        jump = noises.stretched(noise, factors_at(how, position), how.alpha)
    taming = move.taming if shortening is None else jnp.maximum(move.taming, shortening)
    proposed = add(position, move.displacement, jump)
    return Proposal(proposed, eta, noise, noises.largest_size(jump), taming)


class Langevin(SamplingAlgorithm[LangevinState]):
    """What the algorithms of a drift share.

    Density and drift at the position are kept: they are those of a step's end, at which the density
    has to be looked at anyway.
    """

    takes_minibatch = False
    logdensity_fn: LogDensity
    drift: Any
    how: Stepping

    @property
    def step_schedule(self) -> schedules.Schedule:
        return self.how.schedule

    def init(self, position: Any, rng_key: Any = None) -> LangevinState:
        where, _ = start(self.logdensity_fn, position)
        return self.known_at(where, jnp.int32(0))

    def prepared(self, positions: Any) -> Any:
        return dataclasses.replace(self, drift=self.drift.prepared(positions))  # type: ignore[type-var]

    def known_at(self, position: Any, step: Array) -> LangevinState:
        """log φ and the drift at a position, in each coordinate's own time."""
        own = in_own_time(self.drift, position, self.how)
        logdensity, drift = own.with_density(self.logdensity_fn, position)
        if isinstance(drift, drifts.Estimated) and self.is_exact:
            drift = drift.numbers  # whatever its error, the test makes the law right
        return LangevinState(position, logdensity, drift, step)


@module(static=("label", "logdensity_fn", "checks_support"))
class Unadjusted(Langevin):
    """The algorithm of a drift, without a test."""

    is_exact = False
    label: str
    logdensity_fn: LogDensity
    drift: Any
    how: Stepping
    checks_support: bool = True

    @property
    def name(self) -> str:
        return self.label

    def step(self, key: Array, state: LangevinState, *minibatch: Any) -> tuple[LangevinState, Info]:
        check_minibatch(self, minibatch)
        number = schedules.following(state.step)
        proposal = propose(key, state.position, number, self.drift, self.how, state.drift)
        there, is_outside = self.known_at(proposal.position, number), None
        is_divergent = ~proposal.is_valid
        if self.checks_support:
            is_outside = proposal.is_valid & ~jnp.isfinite(there.logdensity)
            is_divergent = is_divergent | is_outside
        else:  # not kept, so that it is not computed
            there = there._replace(logdensity=state.logdensity)
        chosen = choose(is_divergent, state._replace(step=number), there)
        error = largest_error(state.drift, proposal.step_size.dtype)
        return chosen, unadjusted_info(proposal, is_divergent, is_outside, error)


def unadjusted_info(
    proposal: Proposal,
    is_divergent: Array,
    is_outside: Array | None,
    drift_error: Array | None = None,
) -> Info:
    eta, largest, taming = proposal.step_size, proposal.largest_jump, proposal.taming
    return Info(eta, jnp.ones_like(eta), is_divergent, largest, taming, is_outside, drift_error)


def largest_error(here: drifts.Evaluation, dtype: Any) -> Array | None:
    """The largest of a drift's estimated errors, if there are any.

    Where the drift overflows its sign alone decides the step, and that is known below an error
    of a half.
    """
    if not isinstance(here, drifts.Estimated):
        return None

    def of_leaf(error: Array, value: Array) -> Array:
        return jnp.max(jnp.where(jnp.isinf(value) & (error < 0.5), 0.0, error), initial=0.0)

    each = jax.tree.leaves(jax.tree.map(of_leaf, here.error, here.value()))
    return jnp.max(jnp.stack(each)).astype(dtype)


def in_own_time(drift: Drift, position: Any, how: Stepping) -> Drift:
    """The drift in each coordinate's own time."""
    if how.preconditioner is None:
        return drift
    if isinstance(how.preconditioner, Local):
        return Paced(drift, how.preconditioner)
    return drifts.Scaled(drift, factors_at(how, position))


def factors_at(how: Stepping, position: Any) -> Any:
    """m at a position, a number for each leaf or coordinate of it."""
    given = 1.0 if how.preconditioner is None else how.preconditioner
    if isinstance(given, Local):
        return given.at(position)
    return spread("preconditioner", given, position)


def _shortened(
    drift: Drift, position: Any, eta: Array, how: Stepping, curvature: Callable[[Any], Any]
) -> tuple[Drift, Array]:
    """The drift shortened by its curvature, and how far."""
    parts = factors_at(how, position)
    factors = _curvature_factors(curvature, position, eta, parts, how.alpha)
    least = jnp.min(jnp.stack([jnp.min(leaf) for leaf in jax.tree.leaves(factors)]))
    return drifts.Scaled(drift, factors), 1 - least.astype(eta.dtype)


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
