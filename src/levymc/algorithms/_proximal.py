r"""The stable proximal sampler: Gibbs' sampler of x and of x with stable noise added."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from levymc import noises, schedules
from levymc._checks import as_parameter, check_count, check_interval, check_one_number, check_real
from levymc._trees import module
from levymc.drifts import LogDensity

from ._base import Info, SamplingAlgorithm, add, check_minibatch, choose, start
from ._metropolis import judge

_MOST_ROUNDING = 8  # units in the last place by which log φ may be above a bound that is tight


class ProximalState(NamedTuple):
    """Where the chain is, log φ there, and the steps made."""

    position: Any
    logdensity: Array
    step: Array


def proximal(
    logdensity_fn: LogDensity,
    step_size: ArrayLike | schedules.Schedule,
    alpha: Any = 1.0,
    *,
    upper_bound: ArrayLike | None = None,
    num_tries: int = 8,
    noise: noises.Noise | None = None,
) -> SamplingAlgorithm[ProximalState]:
    r"""Stable proximal sampler: Gibbs' sampler of φ(x) q(y - x), q the density of η^{1/α} ξ,

    .. math:: y = x + η^{1/α} ξ, \qquad x' \sim \text{a law} ∝ φ(x')\, q(x' - y) .

    The second draw is by rejection if a bound log M ≥ log φ is known: of points y + η^{1/α} ξ' the
    first that is accepted with probability φ/M; if none of `num_tries` is, x stays.  Without a
    bound it is as many steps of Metropolis with such points as proposals, of which q cancels:
    what is lost is that x' is a fresh draw, not the law.  With one try that is `levy_walk` along
    all coordinates at the scale (2η)^{1/α}.

    Targets: φ exactly; with a bound that is too low, min(φ, M).  A step costs `num_tries`
    densities, and no gradient.  `info.acceptance_rate` is the probability that it moves.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n = 1, 2, …
        alpha: in (0, 2], one number or a pytree like the position; 1, Cauchy noise, is the paper's.
        upper_bound: log M, a number that log φ exceeds nowhere, but by rounding.  A run warns
            of draws with a step that met a point where it does, `info.is_above_bound`.
        num_tries: at least 1.
        noise: `levymc.noises.independent()` if not given; any other is as exact.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.proximal(lambda x: -x * x / 2, 0.5, upper_bound=0.0)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [he2024].  Departures: theirs tries until a point is accepted.
    """
    remedy = "1 is the Cauchy law, and serves heavy tails."
    check_interval("alpha", alpha, 0.0, 2.0, includes_low=False, remedy=remedy)
    if upper_bound is not None:
        check_one_number("upper_bound", upper_bound, "It is that of log φ over all positions.")
        check_real("upper_bound", upper_bound, "Leave it out if there is none.")
    tries = check_count("num_tries", num_tries, "It is how often a step may try.")
    law, schedule = noises.as_law(noise, alpha), schedules.as_schedule(step_size)
    return Proximal(logdensity_fn, tries, schedule, law, as_parameter(upper_bound))


@module(static=("logdensity_fn", "num_tries"))
class Proximal(SamplingAlgorithm[ProximalState]):
    """See `proximal`."""

    takes_minibatch = False
    is_exact = True
    logdensity_fn: LogDensity
    num_tries: int
    schedule: Any
    law: Any
    upper_bound: Any

    @property
    def name(self) -> str:
        return "proximal"

    @property
    def step_schedule(self) -> schedules.Schedule:
        return self.schedule

    def init(self, position: Any, rng_key: Any = None) -> ProximalState:
        return ProximalState(*start(self.logdensity_fn, position), jnp.int32(0))

    def step(self, key: Array, state: ProximalState, *minibatch: Any) -> tuple[ProximalState, Info]:
        check_minibatch(self, minibatch)
        number = schedules.following(state.step)
        eta = schedules.at(self.schedule, number, state.logdensity.dtype)
        key_center, key_tries = jax.random.split(key)
        jump = self.law.draw(key_center, state.position, eta)
        center = add(state.position, jump)

        def attempt(turn: Array, so_far: _Tries) -> _Tries:
            return self._attempt(jax.random.fold_in(key_tries, turn), center, eta, so_far)

        has_bound = self.upper_bound is not None
        level = self.upper_bound if has_bound else state.logdensity
        first = _Tries(
            state._replace(step=number),
            jnp.asarray(level, state.logdensity.dtype),
            jnp.ones_like(state.logdensity),
            *(jnp.bool_(False),) * 3,
        )
        last = jax.lax.fori_loop(0, self.num_tries, attempt, first)
        return last.state, Info(
            eta,
            1 - last.stays,
            last.is_divergent,
            noises.largest_size(jump),
            jnp.zeros_like(eta),
            is_above_bound=last.is_above if has_bound else None,
        )

    def _attempt(self, key: Array, center: Any, eta: Array, so_far: "_Tries") -> "_Tries":
        """Try one point around y."""
        key_noise, key_accept = jax.random.split(key)
        state, is_open = so_far.state, ~so_far.is_done
        position = add(center, self.law.draw(key_noise, center, eta))
        there = state._replace(
            position=position, logdensity=jnp.asarray(self.logdensity_fn(position))
        )
        has_bound = self.upper_bound is not None
        level = so_far.level if has_bound else state.logdensity
        outcome = judge(key_accept, level, there, 0.0)
        from_start = judge(key_accept, so_far.level, there, 0.0).rate
        rounding = _MOST_ROUNDING * jnp.finfo(level.dtype).eps * jnp.maximum(1.0, jnp.abs(level))
        is_above = ~outcome.is_divergent & (there.logdensity > level + rounding)
        return _Tries(
            choose(outcome.is_accepted & is_open, there, state),
            so_far.level,
            so_far.stays * (1 - from_start),
            so_far.is_done | (outcome.is_accepted & has_bound),
            so_far.is_divergent | (outcome.is_divergent & is_open),
            so_far.is_above | (is_above & is_open),
        )


class _Tries(NamedTuple):
    """What is known of a step so far.

    level: of log φ, that of the bound or of where the step began; stays: the probability that none
    of the points is accepted from there.  is_done: the step's end is drawn.  is_divergent: a point
    could not be judged.  is_above: one was above the level.
    """

    state: ProximalState
    level: Array
    stays: Array
    is_done: Array
    is_divergent: Array
    is_above: Array
