"""The chains of the experiment `sbn_stepsize`."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc import integrators, models
from levymc.riesz import leading_coefficient

from .._experiment import Cell, CellResult
from . import _data
from ._data import PIXELS

NUM_MARKS = 10
COLD = 1e-12  # a temperature at which there is no noise to speak of
MOST_TRACED = 100  # images whose likelihood is followed through a run


def network(config: Any, sweeps: int | None = None, hidden: int | None = None) -> Any:
    return models.sbn(PIXELS, hidden or config.num_hidden, sweeps=sweeps or config.sweeps)


def sampler(
    kind: str, gradient: Callable, step: Any, alpha: float
) -> levymc.algorithms.SamplingAlgorithm:
    """SG-FLA, or what is left of it.

    sgld: SGLD with the step c_α η.  normal: SG-FLA's drift with Gaussian noise of scale η^{1/α}.
    sgd: its drift alone.
    """
    if kind not in ("sgld", "normal", "sgd"):
        return levymc.sgfla(gradient, step, alpha, integrator=integrators.euler())
    drift = float(leading_coefficient(alpha - 2)) * step
    temperature = {"sgld": 1.0, "normal": step ** (2 / alpha) / drift, "sgd": COLD}[kind]
    # SGLD with the step η T and the gradient g/T moves by η g, with noise √(2 η T).
    warmed = lambda x, batch: jax.tree.map(lambda g: g / temperature, gradient(x, batch))  # noqa: E731
    return levymc.sgld(warmed, drift * temperature)


def schedule(config: Any, kind: str, step: float) -> Any:
    if kind != "decay":
        return step
    first, time_scale, power = config.decay
    return lambda n: first * (1 + n / time_scale) ** -power


def chain(config: Any, cell: Any, model: Any, key: Any) -> Any:
    """A run from W ~ 0.1 N(0, 1) and biases of zero, as `NUM_MARKS` draws."""
    images = _data.of(config).train
    key_start, key_run = jax.random.split(key)
    gradient = model.grad_estimator(len(images))
    steps = schedule(config, cell["kind"], cell["step"])
    is_warm = cell["kind"] == "warm"
    algorithm = levymc.augmented(
        sampler(cell["kind"], gradient, steps, cell["alpha"]),
        model.latents,
        model.memory(len(images)) if is_warm else None,
    )
    start = jax.tree.map(lambda leaf: leaf[None], model.init(key_start, dtype=jnp.float32))
    points = {"images": images} | ({"index": np.arange(len(images))} if is_warm else {})
    return levymc.sample(
        algorithm,
        key_run,
        start,
        cell["length"],
        thin=_thinning(cell["length"]),
        minibatches=levymc.batches(points, config.batch_size),
        progress=False,
    )


def _thinning(length: int) -> int:
    return max(length // NUM_MARKS, 1)


def train(config: Any, cell: Cell, key: Any) -> CellResult:
    model = network(config, cell.parameters.get("sweeps"))
    key_chain, key_test, key_pictures = jax.random.split(key, 3)
    begin = time.process_time()  # one thread: the same on a busy machine
    run = chain(config, cell, model, key_chain)
    draws = jax.block_until_ready(jax.tree.map(lambda leaf: leaf[0], run.positions))
    seconds = time.process_time() - begin
    last = jax.tree.map(lambda leaf: leaf[-1], draws)
    estimate = likelihood(config, model, last, key_test, config.num_temperatures)
    found = {
        "seconds": seconds,
        "loglikelihood": estimate.mean,
        "error": estimate.standard_error,
        "divergences": int(np.sum(run.info.is_divergent)),
        "spread": float(jnp.std(last["weights"])),
        "largest": float(jnp.max(jnp.abs(last["weights"]))),
        **_trace(config, model, draws, cell["length"], key_test),
    }
    if cell["kind"] == "decay":
        found |= pictures(config, model, last, key_pictures)
    return found


def likelihood(config: Any, model: Any, position: Any, key: Any, count: int, most: int = -1) -> Any:
    parts = _data.of(config)
    return models.annealed_loglikelihood(
        model,
        key,
        position,
        parts.test[:most] if most > 0 else parts.test,
        base_rate=models.pixel_rates(parts.train),
        num_temperatures=count,
    )


def _trace(config: Any, model: Any, draws: Any, length: int, key: Any) -> dict[str, np.ndarray]:
    """The likelihood of some test images through the run, by half as many temperatures."""
    num_draws = draws["weights"].shape[0]
    spacing = max(config.num_temperatures // 2, 1)
    values = [
        likelihood(
            config, model, jax.tree.map(lambda leaf, n=n: leaf[n], draws), key, spacing, MOST_TRACED
        ).mean
        for n in range(num_draws)
    ]
    return {"trace": np.array(values), "marks": np.arange(1, num_draws + 1) * _thinning(length)}


def pictures(config: Any, model: Any, position: Any, key: Any) -> dict[str, np.ndarray]:
    """What the trained network has learnt: weights, reconstructions, fantasies; as greys."""
    key_start, key_sweeps, key_fantasy = jax.random.split(key, 3)
    tests = jnp.asarray(_data.of(config).test[:10])
    prior = jax.nn.sigmoid(position["hidden_bias"])
    start = jax.random.bernoulli(key_start, prior, (len(tests), len(prior)))
    hidden = model.gibbs(key_sweeps, position, tests, start, sweeps=50)
    _, imagined = model.simulate(key_fantasy, position, 20)
    most_used = np.argsort(-np.asarray(prior))[:40]
    weights = np.asarray(position["weights"]).T[most_used]
    reach = np.quantile(np.abs(weights), 0.99)
    return {
        "weights": _greys(0.5 + weights / (2 * reach)),
        "originals": _greys(tests),
        "reconstructions": _greys(model.means(position, hidden)),
        "fantasies": _greys(model.means(position, imagined)),
    }


def _greys(values: Any) -> np.ndarray:
    return np.round(255 * np.clip(np.asarray(values, float), 0, 1)).astype(np.uint8)
