"""How many components has a mixture?  The evidence answers, if all modes are found.

The posterior of a mixture with k components has k! modes, one for each labelling.  levymc.auto
finds and weighs them, and gives the log marginal likelihood with its standard error.

    python examples/model_comparison.py [--out model_comparison.png] [--small]
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

import levymc

NOISE, WIDTH = 0.7, 4.0  # of a component, and of the prior of its centre
RNG = np.random.default_rng(3)
DATA = np.concatenate([RNG.normal(-3, NOISE, 25), RNG.normal(2, NOISE, 35)])


def log_joint(centres):
    """Prior times likelihood, with all constants: equal weights, centres N(0, 4²)."""
    prior = jnp.sum(norm.logpdf(centres, scale=WIDTH))
    terms = norm.logpdf(jnp.asarray(DATA)[:, None], centres, NOISE) - jnp.log(len(centres))
    return prior + jnp.sum(logsumexp(terms, axis=1))


def fit(budget, count):
    starts = jax.random.normal(jax.random.key(count), (4, count))
    return levymc.auto(log_joint, jax.random.key(0), starts, budget=budget, progress=False)


def counted(number, thing):
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def draw(fits, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.hist(DATA, bins=25, density=True, color="0.8")
    grid = np.linspace(-6, 6, 300)
    for count, found in fits.items():
        centres = found.positions.reshape(-1, count)[:: max(1, found.positions.size // 2000)]
        heights = norm.pdf(grid[:, None, None], centres, NOISE).mean(axis=(1, 2))
        left.plot(grid, heights, color=f"C{count}", label=counted(count, "component"))
    left.set(title="Data and predictive densities", xlabel="y", ylabel="density")
    left.legend(frameon=False)
    values = np.array([found.log_evidence.value for found in fits.values()])
    shares = np.exp(values - logsumexp(values))
    bars = right.bar(list(fits), shares, color=[f"C{count}" for count in fits], width=0.5)
    right.bar_label(bars, [f"log evidence\n{value:.1f}" for value in values], padding=3)
    right.set(title="Posterior probability, from equal priors", xlabel="components")
    right.set(xticks=list(fits), ylim=(0, 1))
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("model_comparison.png"))
    parser.add_argument("--small", action="store_true", help="few draws, for a quick look")
    options = parser.parse_args()
    budget, counts = (10_000, (1, 2)) if options.small else (30_000, (1, 2, 3))
    fits = {count: fit(budget, count) for count in counts}
    for count, found in fits.items():
        evidence = found.log_evidence
        print(
            f"{counted(count, 'component')}: {counted(found.modes.num_modes, 'mode')}, "
            f"log evidence {evidence.value:.2f} +- {evidence.standard_error:.2f}",
            *found.warnings,
        )
    best = max(fits, key=lambda count: fits[count].log_evidence.value)
    draw(fits, options.out)
    print(f"The data favour {counted(best, 'component')}. The picture is in {options.out}.")


if __name__ == "__main__":
    main()
