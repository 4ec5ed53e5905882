"""SGLD for a sigmoid belief network as users of JAX and of PyTorch would write it.

An iteration takes 200 images of 28 × 28 pixels, draws their 100 hidden units by five sweeps of
collapsed Gibbs from the prior, and makes one step with the gradient of the joint density:

    log-odds of unit j = b_j + Σ_d [v_d W_dj − softplus(a_d + W_dj) + softplus(a_d)],

where a = Wh + c is without unit j.  All images move at once, a is kept up to date, the sum with v
is one matrix product an iteration, and the difference of softplus is log1p(σ(a)(exp W − 1)), three
times as fast as two calls of `softplus` and the fastest of the short forms that were tried.
"""

import importlib.util
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

NUM_IMAGES, NUM_VISIBLE, NUM_HIDDEN = 60_000, 784, 100
BATCH_SIZE, SWEEPS, ETA = 200, 5, 4.47e-5

Position = dict[str, np.ndarray]
Iterate = Callable[[int], float]


def synthetic_images(count: int = NUM_IMAGES) -> np.ndarray:
    """Pixels that are on as often as those of MNIST; what they show does not matter for time."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.3, 2.0, NUM_VISIBLE).astype(np.float32)
    return (rng.random((count, NUM_VISIBLE), np.float32) < rates).astype(np.uint8)


def start() -> Position:
    rng = np.random.default_rng(1)
    return {
        "weights": 0.1 * rng.standard_normal((NUM_VISIBLE, NUM_HIDDEN), np.float32),
        "hidden_bias": np.zeros(NUM_HIDDEN, np.float32),
        "visible_bias": np.full(NUM_VISIBLE, -2.0, np.float32),
    }


def gibbs_by_jax(key, position, images):
    """Hidden units of every image, and a = Wh + c."""
    columns, bias = position["weights"].T, position["hidden_bias"]
    evidence = images @ position["weights"] + bias
    key_start, key_sweeps = jax.random.split(key)
    shape = (len(images), len(bias))
    hidden = jax.random.bernoulli(key_start, jax.nn.sigmoid(bias), shape).astype(images.dtype)
    activation = hidden @ columns + position["visible_bias"]

    def unit(index, carry):
        hidden, activation, thresholds = carry
        column = columns[index]
        without = activation - jnp.outer(hidden[:, index], column)
        rise = jnp.sum(jnp.log1p(jax.nn.sigmoid(without) * jnp.expm1(column)), axis=1)
        new = (thresholds[:, index] < evidence[:, index] - rise).astype(hidden.dtype)
        return hidden.at[:, index].set(new), without + jnp.outer(new, column), thresholds

    def sweep(carry, key):
        thresholds = jax.random.logistic(key, shape, images.dtype)
        return jax.lax.fori_loop(0, len(bias), unit, (*carry, thresholds))[:2], None

    return jax.lax.scan(sweep, (hidden, activation), jax.random.split(key_sweeps, SWEEPS))[0]


def by_jax(images: np.ndarray, begin: Position) -> Iterate:
    """One compiled scan over the iterations; threads are XLA's, as many as the process may use."""
    count, data = len(images), jnp.asarray(images)

    def step(position, key, data):
        key_batch, key_gibbs, key_noise = jax.random.split(key, 3)
        batch = data[jax.random.randint(key_batch, (BATCH_SIZE,), 0, count)].astype(jnp.float32)
        hidden, activation = gibbs_by_jax(key_gibbs, position, batch)
        errors = batch - jax.nn.sigmoid(activation)
        scale = count / BATCH_SIZE
        gradient = {
            "weights": errors.T @ hidden,
            "hidden_bias": jnp.sum(hidden - jax.nn.sigmoid(position["hidden_bias"]), axis=0),
            "visible_bias": jnp.sum(errors, axis=0),
        }
        return {
            name: leaf
            + ETA * (scale * gradient[name] - leaf)
            + (2 * ETA) ** 0.5 * jax.random.normal(key, leaf.shape, leaf.dtype)
            for key, (name, leaf) in zip(
                jax.random.split(key_noise, 3), position.items(), strict=True
            )
        }

    @jax.jit
    def run(keys, position, data):
        return jax.lax.scan(lambda p, key: (step(p, key, data), None), position, keys)[0]

    first = jax.tree.map(jnp.asarray, begin)

    def iterate(num_iterations: int) -> float:
        keys = jax.random.split(jax.random.key(0), num_iterations)
        started = time.perf_counter()
        jax.block_until_ready(run(keys, first, data))
        return (time.perf_counter() - started) / num_iterations

    return iterate


def by_torch(images: np.ndarray, begin: Position, num_threads: int) -> Iterate:
    import torch

    count, data = len(images), torch.from_numpy(images)

    def gibbs(position, batch):
        columns, bias = position["weights"].T.contiguous(), position["hidden_bias"]
        evidence = (batch @ position["weights"] + bias).T.contiguous()
        hidden = torch.bernoulli(torch.sigmoid(bias).expand(len(batch), -1))
        activation = hidden @ columns + position["visible_bias"]
        growth = torch.expm1(columns)
        for _ in range(SWEEPS):
            thresholds = torch.logit(torch.rand(len(bias), len(batch)))
            for index, column in enumerate(columns):
                activation.addr_(hidden[:, index], column, alpha=-1)
                rise = torch.sigmoid(activation).mul_(growth[index]).log1p_().sum(1)
                hidden[:, index] = (thresholds[index] < evidence[index] - rise).float()
                activation.addr_(hidden[:, index], column)
        return hidden, activation

    def step(position):
        batch = data[torch.randint(0, count, (BATCH_SIZE,))].float()
        hidden, activation = gibbs(position, batch)
        errors = batch - torch.sigmoid(activation)
        gradient = {
            "weights": errors.T @ hidden,
            "hidden_bias": (hidden - torch.sigmoid(position["hidden_bias"])).sum(0),
            "visible_bias": errors.sum(0),
        }
        for name, leaf in position.items():
            drift = ETA * ((count / BATCH_SIZE) * gradient[name] - leaf)
            leaf += drift + (2 * ETA) ** 0.5 * torch.randn_like(leaf)

    def iterate(num_iterations: int) -> float:
        torch.set_num_threads(num_threads)
        position = {name: torch.from_numpy(np.array(leaf)) for name, leaf in begin.items()}
        started = time.perf_counter()
        with torch.no_grad():
            for _ in range(num_iterations):
                step(position)
        return (time.perf_counter() - started) / num_iterations

    return iterate


def peers(images: np.ndarray, begin: Position, num_threads: int) -> dict[str, Iterate]:
    """Those that are installed; all threads of XLA share the cores that the process is bound to."""
    found = {"JAX": by_jax(images, begin)}
    if importlib.util.find_spec("torch") is None:
        print("  (PyTorch is not installed: its loop is left out)")
        return found
    return {**found, "PyTorch": by_torch(images, begin, num_threads)}
