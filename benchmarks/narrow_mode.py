"""How often `levymc.auto` finds a mode that is narrow along one axis, by its budget.

    python benchmarks/narrow_mode.py [RUNS]

Three normal laws in five dimensions, with weights 0.6, 0.3 and 0.1 and widths of about 1, 0.5 and
2; that of weight 0.3 is 0.06 wide along one axis.  All chains start in the heaviest.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import levymc

WEIGHTS = jnp.array([0.6, 0.3, 0.1])
MEANS = jnp.array([[0.0, 0, 0, 0, 0], [6, -4, 5, 0, 3], [-7, 3, 0, 6, -5]])
WIDTHS = (1.0, 0.5, 2.0)
BUDGETS = (40_000, 200_000)


def factors() -> jax.Array:
    """Of the covariances: those of turned and stretched normal laws."""
    rng = np.random.default_rng(5)
    stretched = [width * (0.3 * rng.normal(size=(5, 5)) + np.eye(5)) for width in WIDTHS]
    return jnp.array([np.linalg.cholesky(one @ one.T) for one in stretched])


FACTORS = factors()


def logdensity_fn(x: jax.Array) -> jax.Array:
    def one(weight: jax.Array, mean: jax.Array, factor: jax.Array) -> jax.Array:
        z = jax.scipy.linalg.solve_triangular(factor, x - mean, lower=True)
        return jnp.log(weight) - z @ z / 2 - jnp.sum(jnp.log(jnp.diag(factor)))

    return jax.scipy.special.logsumexp(jax.vmap(one)(WEIGHTS, MEANS, FACTORS))


def found(budget: int, runs: int) -> str:
    """Runs that found all modes, and of the others those that did not warn."""
    results = [
        levymc.auto(
            logdensity_fn, jax.random.key(seed), jnp.zeros((4, 5)), budget=budget, progress=False
        )
        for seed in range(1, runs + 1)
    ]
    missed = [one for one in results if len(one.modes.weight) < len(WEIGHTS)]
    silent = sum(not one.warnings for one in missed)
    return f"found in {runs - len(missed)} of {runs} runs; missed without a warning in {silent}"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 39
    for budget in BUDGETS:
        print(f"{budget:>9,} evaluations: {found(budget, count)}", flush=True)
