"""A logistic regression with separation and Cauchy priors: tails in which NUTS gets lost.

One feature tells the classes apart without an error, so that the data set no upper bound for its
coefficient: the prior's tail does, which falls like x^-2.  NUTS walks in it for a long time.
levymc.auto learns a map that makes the tail normal, and draws through it.

    python examples/heavy_tails.py [--out heavy_tails.png] [--small]
"""

import argparse
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import levymc

RNG = np.random.default_rng(0)
FEATURES = np.column_stack([np.linspace(-2, 2, 40), RNG.normal(size=40)])
LABELS = (FEATURES[:, 0] > 0).astype(float)  # separated by the first feature


def logdensity_fn(coefficients):
    logits = jnp.asarray(FEATURES) @ coefficients
    prior = -jnp.sum(jnp.log1p((coefficients / 2.5) ** 2))
    return prior + jnp.sum(jnp.asarray(LABELS) * logits - jnp.logaddexp(0.0, logits))


def by_nuts(budget):
    """With window adaptation and a dense metric; a draw takes some sixteen gradients or more."""
    key_warm, key_run = jax.random.split(jax.random.key(1))
    warmup = blackjax.window_adaptation(blackjax.nuts, logdensity_fn, is_mass_matrix_diagonal=False)
    (state, parameters), _ = warmup.run(key_warm, jnp.array([3.0, 0.0]), num_steps=500)
    starts = jnp.repeat(state.position[None], 4, axis=0)
    nuts = blackjax.nuts(logdensity_fn, **parameters)
    run = levymc.sample(nuts, key_run, starts, max(budget // 128, 50), progress=False)
    return run.positions


def draw(fit, nuts, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for name, draws, colour in [("NUTS", nuts, "C1"), ("levymc.auto", fit.positions, "C0")]:
        left.plot(*np.asarray(draws[0, :1000]).T, ".", ms=3, color=colour, alpha=0.5, label=name)
        sizes = np.sort(np.abs(draws[..., 0]).ravel())
        right.loglog(sizes, 1 - np.arange(len(sizes)) / len(sizes), color=colour, label=name)
    left.set(title="One chain of each", xlabel="coefficient that separates", ylabel="the other")
    left.set(xscale="log")
    grid = np.geomspace(30, 3000, 50)
    level = np.mean(np.abs(fit.positions[..., 0]) > 30)
    right.loglog(grid, level * 30 / grid, "k--", lw=1, label="slope of a Cauchy tail")
    right.set(title="P(coefficient > x)", xlabel="x", ylim=(1e-4, 1.2), xlim=(1, 1e4))
    right.legend(frameon=False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("heavy_tails.png"))
    parser.add_argument("--small", action="store_true", help="few draws, for a quick look")
    options = parser.parse_args()
    budget = 20_000 if options.small else 100_000
    fit = levymc.auto(logdensity_fn, jax.random.key(0), jnp.zeros((4, 2)), budget=budget)
    print(fit.report)
    nuts = by_nuts(budget)
    for name, draws in [("levymc.auto", fit.positions), ("NUTS", nuts)]:
        sizes = levymc.diagnostics.ess(draws, kind="tail")["x"]
        far = np.mean(draws[..., 0] > 100)
        print(f"{name}: {min(sizes):.0f} effective draws of the tails; beyond 100: {far:.3f}")
    draw(fit, nuts, options.out)
    print(f"The picture is in {options.out}.")


if __name__ == "__main__":
    main()
