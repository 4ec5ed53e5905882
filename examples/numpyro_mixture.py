"""A Gaussian mixture in NumPyro, whose labels may switch: NUTS beside levymc.

Three components have six labellings, each a mode of the posterior with a sixth of its mass.  A
chain of NUTS stays in the one that it falls into; levymc finds all of them, and weighs them.

    python examples/numpyro_mixture.py [--out numpyro_mixture.png] [--small]
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist

import levymc


def model(y):
    weights = numpyro.sample("weights", dist.Dirichlet(2.0 * jnp.ones(3)))
    with numpyro.plate("component", 3):
        loc = numpyro.sample("loc", dist.Normal(0.0, 5.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(y)):
        law = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale))
        numpyro.sample("y", law, obs=y)


def make_data(count=120):
    rng = np.random.default_rng(0)
    centers = rng.choice([-3.0, 0.5, 4.0], size=count, p=[0.3, 0.45, 0.25])
    return centers + 0.6 * rng.normal(size=count)


def run_nuts(y, num_samples):
    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model),
        num_warmup=num_samples,
        num_samples=num_samples,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), y)
    return mcmc.get_samples(group_by_chain=True)


def draw(fit, nuts, y, path):
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    axes[0].hist(y, bins=40, density=True, color="0.8", label="data")
    grid = np.linspace(y.min() - 1, y.max() + 1, 300)
    axes[0].plot(grid, predictive(fit.posterior, grid), color="C0", label="predictive density")
    axes[0].set(title="Data and fit", xlabel="y", ylabel="density", ylim=(0, 0.45))
    axes[0].legend(loc="upper center", ncols=2, fontsize="small", frameon=False)
    both = zip(
        axes[1:], ("NUTS, 4 chains", "levymc.auto, 8 chains"), (nuts, fit.posterior), strict=True
    )
    for axis, title, posterior in both:
        for number, chain in enumerate(posterior["loc"]):
            axis.plot(*chain[::4, :2].T, ".", ms=2, alpha=0.5, color=f"C{number % 10}")
        axis.set(title=f"{title} (a colour each)", xlabel="mean of component 0")
        axis.set(ylabel="mean of component 1", xlim=(-5, 6), ylim=(-5, 6))
    for place, weight in zip(fit.modes.location["loc"][:6], fit.modes.weight, strict=False):
        axes[2].annotate(
            f"{weight:.2f}", place[:2], (0, 9), textcoords="offset points", ha="center"
        )
    figure.savefig(path, dpi=120)


def predictive(posterior, grid, count=200):
    """The density of new data, averaged over some draws."""
    flat = {name: draws.reshape(-1, *draws.shape[2:]) for name, draws in posterior.items()}
    some = np.linspace(0, len(flat["scale"]) - 1, count).astype(int)
    weights, loc = flat["weights"][some, None], flat["loc"][some, None]
    standard = (grid[:, None] - loc) / flat["scale"][some, None, None]
    heights = np.exp(-(standard**2) / 2) / flat["scale"][some, None, None] / np.sqrt(2 * np.pi)
    return np.mean(np.sum(weights * heights, axis=-1), axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("numpyro_mixture.png"))
    parser.add_argument("--small", action="store_true", help="few draws, for a quick look")
    options = parser.parse_args()
    y = make_data()
    budget, num_samples = (15_000, 100) if options.small else (60_000, 500)

    fit = levymc.interop.numpyro.sample(model, jax.random.key(0), y, budget=budget)
    print(fit.report)

    nuts = run_nuts(y, num_samples)
    labellings = {tuple(np.argsort(chain.mean(axis=0)).tolist()) for chain in nuts["loc"]}
    print(f"NUTS: {len(nuts['loc'])} chains in {len(labellings)} of the 6 labellings.")
    draw(fit, nuts, y, options.out)
    print(f"The picture is in {options.out}.")


if __name__ == "__main__":
    main()
