r"""The Metropolis-adjusted fractional Langevin algorithm: exact for every step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc import drifts, integrators, schedules, stable
from levymc.drifts import LogDensity

from ._base import Info, SamplingAlgorithm, add, check_start, position_dtype
from ._metropolis import accept
from ._noise import largest_size, noise_of_kind


class MaflaState(NamedTuple):
    """Where the chain is, log φ there, and how many steps it has made."""

    position: Any
    logdensity: Array
    step: Array


def mafla(
    logdensity_fn: LogDensity,
    step_size: Any,
    alpha: Any = 1.8,
    *,
    drift: Any = None,
    integrator: integrators.Integrator | None = None,
) -> SamplingAlgorithm:
    r"""Metropolis–Hastings with FLA's step as the proposal,

    .. math:: y = x + m(x) + η^{1/α}\, ξ, \qquad
       a = \min\Bigl(1, \frac{φ(y)\, q(x - y - m(y))}{φ(x)\, q(y - x - m(x))}\Bigr),

    where m is the integrator's move over η and q the density of η^{1/α} ξ, a product of SαS
    densities, one a coordinate.

    Targets: φ exactly, for every step size, α, drift and integrator.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        step_size: η > 0, or a schedule of the step n; tune to accept about a half at α = 1.8, a
            fifth at 1.2.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.  1.8 in general;
            1.2 to 1.5 where modes are far apart and there are at most ten coordinates.
        drift: a `levymc.drifts.Drift`, or a function that gives the drift's values;
            `levymc.drifts.leading_term(logdensity_fn, alpha)` if not given.
        integrator: `levymc.integrators.tamed()` if not given.

    Raises:
        ValueError, TypeError: an argument outside its range; `logdensity_fn` not finite at the
            start.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.mafla(lambda x: -x * x / 2, 0.5)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> 0 <= float(info.acceptance_rate) <= 1
        True

    Departures: the paper has no adjusted algorithm.
    """
    used = drifts.leading_term(logdensity_fn, alpha) if drift is None else drifts.as_drift(drift)
    schedule = schedules.as_schedule(step_size)
    advance = integrator or integrators.tamed()
    jump = noise_of_kind("independent")

    def init(position: Any) -> MaflaState:
        return MaflaState(*start(logdensity_fn, position), jnp.int32(0))

    def step(key: Array, state: MaflaState) -> tuple[MaflaState, Info]:
        key_noise, key_accept = jax.random.split(key)
        number = state.step + 1
        eta = schedules.at(schedule, number, position_dtype(state.position))
        move = advance(used, state.position, eta)
        noise = jump(key_noise, alpha, state.position, eta)
        proposed = add(state.position, move.displacement, noise)
        back = advance(used, proposed, eta)
        returning = jax.tree.map(
            lambda x, y, m: x - y - m, state.position, proposed, back.displacement
        )
        log_ratio = _log_density(returning, alpha, eta) - _log_density(noise, alpha, eta)
        current = (state.position, state.logdensity)
        there = (proposed, logdensity_fn(proposed))
        (position, logdensity), rate, is_divergent = accept(key_accept, current, there, log_ratio)
        info = Info(eta, rate, is_divergent, largest_size(noise), move.taming)
        return MaflaState(position, logdensity, number), info

    return SamplingAlgorithm(init, step)


def start(logdensity_fn: LogDensity, position: Any) -> tuple[Any, Array]:
    """The position and log φ there, which must be a finite number."""
    check_start(position)
    position = jax.tree.map(jnp.asarray, position)
    logdensity = logdensity_fn(position)
    if not isinstance(logdensity, jax.core.Tracer) and not bool(jnp.all(jnp.isfinite(logdensity))):
        raise ValueError(
            f"`logdensity_fn` must be finite at the start, got {logdensity} at {position}. "
            "Start inside the support of the target."
        )
    return position, logdensity


def _log_density(noise: Any, alpha: Any, step_size: Array) -> Array:
    """log q of η^{1/α} ξ, summed over the coordinates; the constants of η cancel in the ratio."""
    alphas = jax.tree.broadcast(alpha, noise)
    terms = jax.tree.map(
        lambda x, a: jnp.sum(
            stable.logpdf(x / step_size.astype(x.dtype) ** (1 / jnp.asarray(a, x.dtype)), a)
        ),
        noise,
        alphas,
    )
    return sum(jax.tree.leaves(terms), start=jnp.zeros_like(step_size))
