"""A hundred thousand data, two modes: SGLD stays in one, rare Lévy jumps weigh both.

A quantity is measured through its square, so that its sign is unknown but for the prior, which
prefers the positive one by nearly e to 1.  SGLD looks at a thousand data a step and never changes
the sign.  A Lévy jump every twenty steps, tested on all data, does, and adds no bias of its own.

    python examples/minibatch_jumps.py [--out minibatch_jumps.png] [--small]
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import levymc

NUM_DATA, NOISE = 100_000, 300.0
DATA = 4.0 + NOISE * np.random.default_rng(0).normal(size=NUM_DATA)
SHARE = 1 / (1 + np.exp(-np.tanh(2.0)))  # of the positive mode, as the data are symmetric


def logprior(x):
    return -(x**2) / 50 + jnp.tanh(x) / 2


def loglikelihood(x, y):
    """Without -y²/2σ², which would cost digits in float32."""
    return (2 * y * x**2 - x**4) / (2 * NOISE**2)


ESTIMATOR = levymc.grad_estimator(logprior, loglikelihood, NUM_DATA)


def all_data(x):
    return ESTIMATOR.logdensity(x, jnp.asarray(DATA, jnp.float32))


def run(algorithm, num_steps):
    batches = levymc.batches(jnp.asarray(DATA, jnp.float32), 1000)
    starts = jnp.full(8, 2.0)
    return levymc.sample(
        algorithm, jax.random.key(0), starts, num_steps, thin=10, minibatches=batches
    ).positions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("minibatch_jumps.png"))
    parser.add_argument("--small", action="store_true", help="few draws, for a quick look")
    options = parser.parse_args()
    num_steps = 4000 if options.small else 20_000
    sgld = levymc.sgld(ESTIMATOR, 1e-4)
    found = {
        "SGLD": run(sgld, num_steps),
        "SGLD with jumps": run(levymc.jumping(sgld, all_data, every=20, scale=3.0), num_steps),
    }
    figure, panels = plt.subplots(
        2, 1, figsize=(9, 4.6), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (name, draws) in zip(panels, found.items(), strict=True):
        share = np.mean(draws > 0)
        print(f"{name}: share of the positive mode {share:.3f}, truth about {SHARE:.3f}")
        axis.plot(10 * np.arange(draws.shape[1]), np.asarray(draws[:3]).T, lw=0.7)
        axis.set(title=f"{name}: {share:.2f} positive (truth {SHARE:.2f})", ylabel="x")
    panels[-1].set_xlabel("step")
    figure.savefig(options.out, dpi=120)
    print(f"The picture is in {options.out}.")


if __name__ == "__main__":
    main()
