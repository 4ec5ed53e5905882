"""BlackJAX's adaptive tempered SMC from a wide Gaussian, with HMC moves tuned on the particles."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc_lab.contest.problems import Problem

from ._outcome import Outcome

MOVES, LEAPFROGS = 3, 4  # of each particle at each temperature
COST = MOVES * LEAPFROGS + 3  # where a move starts, the next temperature and the weights
PILOT = 64  # particles that tell how many temperatures there are
TARGET = 0.5  # effective share of the particles, from one temperature to the next
ACCEPTANCE = 0.75


class _Reference(NamedTuple):
    centre: Array
    extent: Array


def smc(problem: Problem, key: Any, budget: int) -> Outcome:
    """Particles whose number the budget allows; those of the end have equal weights."""
    key_start, key_pilot, key_run = jax.random.split(key, 3)
    centre = jnp.mean(problem.starts(key_start, 8), axis=0)
    reference = _Reference(centre, jnp.asarray(problem.extents, centre.dtype))
    pilot = _cool(problem, reference, key_pilot, PILOT, budget // 4)
    left = budget - pilot.evaluations
    wanted = left / (COST * 1.1 * (pilot.temperatures + 2))
    digits = 10 ** max(0, int(np.log10(max(wanted, 10))) - 1)
    count = max(16, int(wanted // digits * digits))  # two digits, so that programs are shared
    run = _cool(problem, reference, key_run, count, left)
    notes = () if run.is_complete else ("the budget ended before the target was reached",)
    return Outcome(
        np.asarray(run.particles)[None],
        pilot.evaluations + run.evaluations,
        is_chain=False,
        is_flagged=not run.is_complete,
        notes=notes,
    )


class _Run(NamedTuple):
    particles: Any
    evaluations: int
    temperatures: int
    is_complete: bool


def _cool(problem: Problem, reference: _Reference, key: Any, count: int, budget: int) -> _Run:
    """From the reference to the target, then moves there while the budget lasts, twice at least.

    A step of BlackJAX resamples, moves at the last temperature, and weights for the next: at the
    target one more is needed before all weights are equal.
    """
    key_draw, key_run = jax.random.split(key)
    noise = jax.random.normal(key_draw, (count, problem.dimension), reference.centre.dtype)
    start, step = _programs(problem.logdensity_fn, problem.dimension)
    state = start(reference.centre + reference.extent * noise)
    log_step, evaluations, temperatures, rested = np.log(0.5), 0, 0, 0
    is_complete, each = True, count * COST
    while rested < 2 or (rested < 12 and evaluations + each <= budget):
        is_there = float(state.tempering_param) >= 1.0
        is_last = not is_there and evaluations + 4 * each > budget  # the rest is for the target
        is_complete &= not is_last
        key_step = jax.random.fold_in(key_run, temperatures + rested)
        state, accepted = step(key_step, state, reference, np.exp(log_step), is_last)
        log_step += 1.5 * (float(accepted) - ACCEPTANCE)
        evaluations += each
        temperatures += not is_there
        rested += is_there
    return _Run(state.particles, evaluations, temperatures, is_complete)


@lru_cache(maxsize=8)
def _programs(logdensity_fn: Any, dimension: int) -> tuple[Any, Any]:
    import blackjax
    from blackjax.smc import ess, resampling, solver

    move = blackjax.hmc.build_kernel()

    def logdensity(x: Array) -> Array:
        value = logdensity_fn(x)
        return jnp.where(jnp.isfinite(value), value, -1e30)

    def step(key: Array, state: Any, reference: _Reference, step_size: Any, is_last: Any) -> Any:
        def log_reference(x: Array) -> Array:
            return -jnp.sum(((x - reference.centre) / reference.extent) ** 2) / 2

        def log_ratio(x: Array) -> Array:
            return logdensity(x) - log_reference(x)

        tempered = blackjax.tempered_smc.build_kernel(
            log_reference, log_ratio, move, blackjax.hmc.init, resampling.systematic
        )
        most = 1 - state.tempering_param
        found = ess.ess_solver(jax.vmap(log_ratio), state.particles, TARGET, most, solver.dichotomy)
        delta = jnp.where(is_last | jnp.isnan(found), most, jnp.clip(found, 0.0, most))
        spread = jnp.var(state.particles, axis=0) + 1e-12
        parameters = {
            "step_size": jnp.asarray(step_size, state.particles.dtype)[None],
            "inverse_mass_matrix": spread[None],
            "num_integration_steps": jnp.array([LEAPFROGS]),
        }
        after, info = tempered(key, state, MOVES, state.tempering_param + delta, parameters)
        return after, jnp.mean(info.update_info.acceptance_rate)

    def start(particles: Array) -> Any:
        return blackjax.tempered_smc.init(particles)

    return start, jax.jit(step)
