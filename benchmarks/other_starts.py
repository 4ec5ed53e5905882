"""Where climbs to new modes had better begin: in jumps, or in chains on a heated or cooled target.

    python benchmarks/other_starts.py                 # the development problems with modes to find
    python benchmarks/other_starts.py narrow-40 --seeds 5

Each way gets the same number of evaluations, those of the chains included, and begins near one mode
with its curvature known.  A chain is NUTS on β log φ, mapped by that curvature, a step of which
leads to a climb; β = 1 is the target itself.  Printed are the modes found, means over the seeds.
"""

import argparse
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc import sample
from levymc.adapt import nuts
from levymc.adapt._explore import Atlas, Jumps, begun, go_on
from levymc.adapt._target import Target
from levymc_lab.contest import problems

PROBLEMS = ("widths-30-2d", "widths-20-4d", "narrow-40", "gaussians-60", "grid-25", "two-bananas-6")
BETAS = (0.01, 0.1, 1.0, 4.0)
STEPS = 16  # of a chain, between two times of climbing
NUM_CHAINS = 4
STEP_SIZE = 0.5  # in units of the mode that is known, over √β


def near_one_mode(name: str, seed: int) -> Atlas:
    problem = problems.get(name)
    starts = problem.starts(jax.random.key(seed), NUM_CHAINS)
    target = Target(problem.logdensity_fn, starts[0])
    return begun(target, target.flattened(starts))


def by_jumps(name: str, seed: int, budget: int) -> int:
    atlas = near_one_mode(name, seed)
    go_on(atlas, Jumps(jax.random.key(seed)), budget, budget, lambda _: None)
    return atlas.listed().num_modes


def by_chains(beta: float, name: str, seed: int, budget: int) -> int:
    """Climbs from the draws of NUTS on β log φ."""
    atlas = near_one_mode(name, seed)
    target, mode, key = atlas.target, atlas.modes[0], jax.random.key(seed)
    begin = target.evaluations
    center, factor = jnp.asarray(mode.location), jnp.asarray(mode.factor)

    def heated(z: Any) -> Any:
        return beta * target.flat_fn(center + factor @ z)

    chain = nuts(heated, STEP_SIZE / np.sqrt(beta), max_num_doublings=6)
    places = jnp.zeros((NUM_CHAINS, target.dimension))
    for number in range(10_000):
        if target.evaluations - begin >= budget:
            break
        made = sample(chain, jax.random.fold_in(key, number), places, STEPS, progress=False)
        places = jnp.asarray(made.positions[:, -1])
        target.evaluations += int(np.sum(made.info.num_integration_steps))
        drawn = np.asarray(made.positions).reshape(-1, target.dimension)
        points = mode.location + drawn @ mode.factor.T
        atlas.relax(points, np.full(len(points), mode.scale))
    return atlas.listed().num_modes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    ways = {"jumps": by_jumps, **{f"β = {beta:g}": partial(by_chains, beta) for beta in BETAS}}
    print(f"{'problem':<16}" + "".join(f"{name:>10}" for name in ways))
    for name in given.problems:
        row = []
        for way in ways.values():
            row.append(np.mean([way(name, seed, given.budget) for seed in range(given.seeds)]))
        print(f"{name:<16}" + "".join(f"{value:>10.1f}" for value in row), flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
