"""What a search for modes loses where processes share it: modes found in one part and in several.

    python benchmarks/search_parts.py gaussians-60 wells-8-rotated --budget 200000 --seeds 3

The problems are those of `python -m levymc_lab.contest`; means over seeds are printed.
"""

import argparse

import jax
import numpy as np

from levymc.adapt._auto import EXPLORING
from levymc.adapt._explore import Modes
from levymc.adapt._search import searched
from levymc.adapt._stages import Stages
from levymc.adapt._target import Target
from levymc_lab.contest import problems

PARTS = (1, 2, 4, 8)
NUM_STARTS = 8


def modes_of(name: str, seed: int, budget: int, parts: int) -> Modes:
    """The modes that `levymc.auto` would begin with."""
    problem = problems.get(name)
    key_start, key_search = jax.random.split(jax.random.key(seed))
    starts = problem.starts(key_start, NUM_STARTS)
    target = Target(problem.logdensity_fn, starts[0])
    return searched(
        target,
        key_search,
        target.flattened(starts),
        int(EXPLORING * budget),
        budget,
        lambda _: None,
        Stages(None),
        parts,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--budget", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(
        f"{'problem':<20} {'parts':>5} {'modes':>7} {'relaxations':>11} {'evaluations':>11} chance"
    )
    for name in given.problems:
        for parts in PARTS:
            found = [modes_of(name, seed, given.budget, parts) for seed in range(given.seeds)]
            modes, relaxations, evaluations, chance = np.mean(
                [
                    (one.num_modes, one.num_relaxations, one.evaluations, one.chance_of_another)
                    for one in found
                ],
                axis=0,
            )
            print(
                f"{name:<20} {parts:>5} {modes:>7.1f} {relaxations:>11.0f} {evaluations:>11.0f} "
                f"{chance:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
