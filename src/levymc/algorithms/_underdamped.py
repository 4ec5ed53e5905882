r"""Fractional underdamped Langevin dynamics: momentum driven by stable noise."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import noises, schedules, stable
from levymc._checks import (
    as_parameter,
    check_alpha,
    check_one_number,
    check_positive,
    known_alpha,
)
from levymc._trees import module
from levymc.drifts import LogDensity

from ._base import (
    Info,
    SamplingAlgorithm,
    add,
    check_minibatch,
    check_start_logdensity,
    choose,
    is_finite,
    start_place,
)


class UnderdampedState(NamedTuple):
    """Where the chain is, log φ and its gradient there, the momentum, and the steps made."""

    position: Any
    logdensity: Array
    gradient: Any
    momentum: Any
    step: Array


def underdamped(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: ArrayLike = 1.7,
    *,
    friction: ArrayLike = 1.0,
    momentum_scale: ArrayLike = 0.5**0.5,
) -> SamplingAlgorithm[UnderdampedState]:
    r"""Fractional underdamped Langevin dynamics, with momentum v of law SαS(s) and density p:

    .. math:: dx = -∇\log p(v)\, dt, \qquad
       dv = ∇\log φ(x)\, dt - κ v\, dt + (ακ)^{1/α} s\, dL .

    The first parts are Hamilton's equations of -log φ(x) - log p(v), and the last two a Lévy–OU
    process whose law is SαS(s): each keeps φ ⊗ p, so that both together do.  The gradient alone is
    needed, and no fractional derivative.  A step is the OU process over η, which is exact, and one
    of leapfrog, with one gradient.  At α = 2 and s = √½ it is underdamped Langevin dynamics.

    For α < 2 velocities are bounded, as ∇ log p falls like (1 + α)/v: a long jump of the momentum
    is no long jump of the position.  It makes the chain slow, not fast.

    Targets: φ up to O(η²), for every α, on a bounded support, too: a step that would end where log
    φ is not finite is not made, and the momentum, fresh from the OU process, is turned round, as
    by generalised HMC with the support's indicator as its test.  That keeps φ ⊗ p on the support.

    Not valid when: η² |∇² log φ| K is near 4 or above where the chain may go, with
    K = Γ(3/α)/(Γ(1/α) s²) the slope of the velocity at v = 0, the steepest; at α = 2 and s = √½
    it is 1.  Near an edge towards which log φ falls without bound that is so for every η.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (1, 2], one number; may be traced.
        friction: κ > 0, one number.
        momentum_scale: s > 0, one number.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.underdamped(lambda x: -x * x / 2, 0.2)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [simsekli2020]; [horowitz1991] for turning round.  Departures: the paper takes
    Euler's step, and leaves the kinetic energy open; with that of the stable law the drift of the
    momentum is linear.
    """
    check_alpha(alpha)
    for name, value in (
        ("alpha", alpha),
        ("friction", friction),
        ("momentum_scale", momentum_scale),
    ):
        check_one_number(name, value, "It is the same for all coordinates.")
    check_positive("friction", friction, "It is the rate at which momentum is forgotten.")
    check_positive("momentum_scale", momentum_scale, "It is the scale of the momentum's law.")
    law = noises.independent().law(alpha)
    schedule = schedules.as_schedule(step_size)
    numbers = (as_parameter(value) for value in (alpha, friction, momentum_scale))
    return Underdamped(logdensity_fn, schedule, law, *numbers)


@module(static=("logdensity_fn",))
class Underdamped(SamplingAlgorithm[UnderdampedState]):
    """See `underdamped`."""

    takes_minibatch = False
    is_exact = False
    logdensity_fn: LogDensity
    schedule: Any
    law: Any
    alpha: Any
    friction: Any
    momentum_scale: Any

    @property
    def name(self) -> str:
        return "underdamped"

    @property
    def step_schedule(self) -> schedules.Schedule:
        return self.schedule

    def init(self, position: Any, rng_key: Any = None) -> UnderdampedState:
        where = start_place(self.logdensity_fn, position)
        logdensity, gradient = self._known_at(where)
        check_start_logdensity("logdensity_fn", logdensity, where)
        at_rest = jax.tree.map(jnp.zeros_like, where)
        return UnderdampedState(where, logdensity, gradient, at_rest, jnp.int32(0))

    def moved(
        self, state: UnderdampedState, position: Any, rng_key: Any = None
    ) -> UnderdampedState:
        """Elsewhere with the same momentum, whose law is the same everywhere."""
        return self.init(position)._replace(momentum=state.momentum, step=state.step)

    def step(
        self, key: Array, state: UnderdampedState, *minibatch: Any
    ) -> tuple[UnderdampedState, Info]:
        check_minibatch(self, minibatch)
        number = schedules.following(state.step)
        eta = schedules.at(self.schedule, number, state.logdensity.dtype)
        refreshed, jump = self._refreshed(key, state.momentum, eta)
        momentum = _kicked(refreshed, state.gradient, eta / 2)
        position = add(state.position, jax.tree.map(lambda v: self._path(v, eta), momentum))
        logdensity, gradient = self._known_at(position)
        momentum = _kicked(momentum, gradient, eta / 2)
        there = UnderdampedState(position, logdensity, gradient, momentum, number)
        is_refreshed = is_finite(refreshed) & (eta > 0) & jnp.isfinite(eta)
        is_outside = is_refreshed & is_finite(position) & ~jnp.isfinite(logdensity)
        is_made = is_refreshed & is_finite((position, logdensity, momentum))
        back = state._replace(momentum=jax.tree.map(jnp.negative, refreshed), step=number)
        stayed = choose(is_refreshed, back, state._replace(step=number))
        chosen, is_divergent = choose(is_made, there, stayed), ~is_made
        one, nothing, largest = jnp.ones_like(eta), jnp.zeros_like(eta), noises.largest_size(jump)
        return chosen, Info(eta, one, is_divergent, largest, nothing, is_outside)

    def _known_at(self, position: Any) -> tuple[Array, Any]:
        logdensity, gradient = jax.value_and_grad(self.logdensity_fn)(position)
        return jnp.asarray(logdensity), gradient

    def _refreshed(self, key: Array, momentum: Any, eta: Array) -> tuple[Any, Any]:
        """The Lévy–OU process after η: e^{-κη} v + noise of scale s (1 - e^{-ακη})^{1/α}."""
        numbers = (known_alpha(self.alpha), self.friction, self.momentum_scale)
        alpha, friction, scale = (jnp.asarray(value, eta.dtype) for value in numbers)
        time = -jnp.expm1(-alpha * friction * eta) * scale**alpha
        jump = self.law.draw(key, momentum, time)
        return add(_times(momentum, jnp.exp(-friction * eta)), jump), jump

    def _path(self, momentum: Array, eta: Array) -> Array:
        """-∇ log p(v) η."""
        alpha, scale = (
            jnp.asarray(value, momentum.dtype) for value in (self.alpha, self.momentum_scale)
        )
        return -stable.score(momentum, alpha, scale) * eta.astype(momentum.dtype)


def _kicked(momentum: Any, gradient: Any, time: Array) -> Any:
    return add(momentum, _times(gradient, time))


def _times(tree: Any, factor: Array) -> Any:
    return jax.tree.map(lambda leaf: leaf * factor.astype(leaf.dtype), tree)
