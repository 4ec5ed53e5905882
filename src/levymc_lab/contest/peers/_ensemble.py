"""emcee's affine-invariant ensemble, where it is installed."""

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc_lab.contest.problems import Problem

from ._outcome import Outcome

BURN_IN = 0.25  # of the steps


def is_there() -> bool:
    return find_spec("emcee") is not None


@lru_cache(maxsize=8)
def _vectorised(logdensity_fn: Any) -> Any:
    values = jax.jit(jax.vmap(logdensity_fn))

    def many(positions: np.ndarray) -> np.ndarray:
        found = np.array(values(jnp.asarray(positions)))
        return np.where(np.isfinite(found), found, -np.inf)

    return many


def emcee(problem: Problem, key: Any, budget: int) -> Outcome:
    """Walkers start where chains do; it needs densities only."""
    import emcee as library

    walkers = max(32, 4 * problem.dimension)
    starts = np.asarray(problem.starts(key, walkers), float)
    sampler = library.EnsembleSampler(
        walkers, problem.dimension, _vectorised(problem.logdensity_fn), vectorize=True
    )
    seed = np.asarray(jax.random.key_data(key)).astype(np.uint32)
    state = library.State(starts, random_state=np.random.RandomState(seed).get_state())
    steps = budget // walkers - 1
    sampler.run_mcmc(state, steps, skip_initial_state_check=True)
    draws = sampler.get_chain(discard=int(BURN_IN * steps))
    return Outcome(np.swapaxes(draws, 0, 1), walkers * (steps + 1))
