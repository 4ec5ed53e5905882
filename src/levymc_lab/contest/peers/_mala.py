"""The Metropolis-adjusted Langevin algorithm, its step tuned to accept 0.57."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc import integrators
from levymc.algorithms import mafla
from levymc.run import sample
from levymc_lab.contest.problems import Problem

from ._outcome import Outcome

NUM_CHAINS = 8
ACCEPTANCE = 0.57
ROUNDS = 20  # of tuning, on a tenth of the budget


def mala(problem: Problem, key: Any, budget: int) -> Outcome:
    """Each step costs an evaluation."""
    key_start, key_tune, key_draw = jax.random.split(key, 3)
    positions = problem.starts(key_start, NUM_CHAINS)
    log_step, spent = np.log(0.1), 0
    each = max(5, budget // (10 * ROUNDS * NUM_CHAINS))
    for number in range(ROUNDS):
        run = _run(
            problem, jax.random.fold_in(key_tune, number), positions, float(np.exp(log_step)), each
        )
        accepted = float(np.mean(run.info.acceptance_rate))
        log_step += (accepted - ACCEPTANCE) * 6 / (1 + number) ** 0.6
        positions, spent = jnp.asarray(run.positions[:, -1]), spent + (each + 1) * NUM_CHAINS
    num_steps = (budget - spent) // NUM_CHAINS - 1
    run = _run(problem, key_draw, positions, float(np.exp(log_step)), num_steps)
    return Outcome(run.positions, spent + (num_steps + 1) * NUM_CHAINS)


def _run(problem: Problem, key: Any, positions: Any, step_size: float, num_steps: int) -> Any:
    algorithm = mafla(problem.logdensity_fn, step_size, 2.0, integrator=integrators.euler())
    return sample(algorithm, key, positions, num_steps, progress=False)
