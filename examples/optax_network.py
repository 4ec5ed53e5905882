"""A Bayesian neural network with Flax and Optax: swap the optimiser, keep the training loop.

The loss is a mean over a minibatch, as ever; `num_data` makes it a negative log posterior, and the
weight decay is a normal prior.  The curves of SGD differ by where they began and by the noise of
minibatches; those of SGLD and SG-FLA are draws, nearly, from a posterior, which is wider where
there are no data.

    python examples/optax_network.py [--out optax_network.png] [--small]
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from flax import nnx

import levymc

NUM_DATA, BATCH_SIZE, NOISE = 200, 50, 0.2
GRID = jnp.linspace(-2.0, 2.0, 161)[:, None]


class Network(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(1, 32, rngs=rngs)
        self.out = nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.tanh(3 * self.hidden(x)))


def make_data(rng):
    """A wave with a gap, in which there is nothing to learn from."""
    sides = rng.choice([-1, 1], NUM_DATA)
    x = sides * rng.uniform(0.4, 1.5, NUM_DATA)
    y = np.sin(4 * x) * np.exp(-(x**2) / 4) + NOISE * rng.standard_normal(NUM_DATA)
    return jnp.asarray(x[:, None], jnp.float32), jnp.asarray(y[:, None], jnp.float32)


def mean_loss(model, x, y):
    """The negative log likelihood of one datum, on average."""
    return jnp.mean((model(x) - y) ** 2) / (2 * NOISE**2)


def run(make, data, key, num_steps, every=100):
    """The curve of one chain after every so many steps, of which the first half is left out."""
    key_start, key_rows, key_noise = jax.random.split(key, 3)
    graph, params = nnx.split(Network(nnx.Rngs(key_start)))
    prior = optax.add_decayed_weights(1 / NUM_DATA)  # N(0, 1) for every weight
    transformation = optax.chain(prior, make(key_noise))

    def train_step(carry, key):
        params, state = carry
        rows = jax.random.choice(key, NUM_DATA, (BATCH_SIZE,))
        x, y = data[0][rows], data[1][rows]
        slopes = jax.grad(lambda p: mean_loss(nnx.merge(graph, p), x, y))(params)
        updates, state = transformation.update(slopes, state, params)
        return (optax.apply_updates(params, updates), state), None

    def train_and_look(carry, keys):
        carry, _ = jax.lax.scan(train_step, carry, keys)
        return carry, nnx.merge(graph, carry[0])(GRID)[:, 0]

    keys = jax.random.split(key_rows, (num_steps // every, every))
    _, curves = jax.lax.scan(train_and_look, (params, transformation.init(params)), keys)
    return curves[len(curves) // 2 :]


def draw(data, curves, out):
    figure, axes = plt.subplots(
        1, len(curves), figsize=(12, 3.8), sharey=True, layout="constrained"
    )
    for axis, (name, found) in zip(axes, curves.items(), strict=True):
        low, middle, high = np.quantile(found, [0.05, 0.5, 0.95], axis=0)
        axis.plot(data[0], data[1], ".", color="0.55", ms=3, label="data")
        axis.plot(GRID[:, 0], found[:: 1 + len(found) // 20].T, "C0", lw=0.4, alpha=0.7)
        axis.fill_between(GRID[:, 0], low, high, alpha=0.25, lw=0, label="90 % of the curves")
        axis.plot(GRID[:, 0], middle, "C3", lw=1.5, label="median of the curves")
        axis.set(title=name, xlabel="x", xlim=(-2, 2), ylim=(-2, 2))
    axes[0].set_ylabel("y")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("optax_network.png"))
    parser.add_argument("--small", action="store_true", help="few steps, for a quick look")
    options = parser.parse_args()
    num_steps, num_chains = (400, 2) if options.small else (40_000, 4)

    data, step_size = make_data(np.random.default_rng(0)), 1e-5
    sampled = {"num_data": NUM_DATA, "integrator": levymc.integrators.tamed(0.1)}
    makers = {
        "SGD": lambda key: optax.sgd(step_size * NUM_DATA),
        "SGLD": lambda key: levymc.optax.sgld(step_size, key=key, **sampled),
        "SG-FLA, α = 1.8": lambda key: levymc.optax.sgfla(step_size, 1.8, key=key, **sampled),
    }
    gap = np.abs(GRID[:, 0]) < 0.3
    curves = {}
    for name, make in makers.items():
        keys = jax.random.split(jax.random.key(1), num_chains)
        chains = jax.jit(jax.vmap(lambda key, make=make: run(make, data, key, num_steps)))(keys)
        curves[name] = np.asarray(chains).reshape(-1, len(GRID))
        spread = np.std(curves[name], axis=0)
        seen = np.abs(np.abs(GRID[:, 0]) - 1) < 0.5
        print(
            f"{name}: spread {spread[gap].mean():.3f} in the gap, {spread[seen].mean():.3f} at data"
        )
    draw(data, curves, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
