"""How the cost of a step grows with dimension, chains, data and modes: fitted exponents."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scale_jobs import log_likelihood, log_prior, logistic

import levymc

DIMENSIONS, CHAINS = (8, 64, 512), (16, 128, 1024)
DATA, MODES = (1_000, 10_000, 100_000), (4, 32, 256)
SECONDS = 0.15  # of a measurement
REPEATS = 3


def normal(x):
    return -jnp.sum(x * x) / 2


def mixture(num_modes: int, dimension: int) -> Callable[[Any], Any]:
    centers = 3 * jax.random.normal(jax.random.key(1), (num_modes, dimension), jnp.float32)
    return lambda x: jax.nn.logsumexp(-jnp.sum((x - centers) ** 2, axis=-1) / 2)


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "ula": lambda logdensity: levymc.ula(logdensity, 1e-2),
    "fla": lambda logdensity: levymc.fla(logdensity, 1e-2, 1.7),
    "mafla": lambda logdensity: levymc.mafla(logdensity, 1e-2),
    "levy_walk": lambda logdensity: levymc.levy_walk(logdensity, 0.5),
    "proximal": lambda logdensity: levymc.proximal(logdensity, 0.1),
    "underdamped": lambda logdensity: levymc.underdamped(logdensity, 1e-2),
    "jumping": lambda logdensity: levymc.jumping(
        levymc.ula(logdensity, 1e-2), logdensity, every=100, scale=1.0
    ),
    "nuts": lambda logdensity: levymc.adapt.nuts(logdensity, 0.5),
}


def seconds_per_step(algorithm: Any, num_chains: int, dimension: int, minibatches: Any) -> float:
    """Of the processor, the least of some repeats; as many steps as take about `SECONDS`."""
    starts = 0.1 * jax.random.normal(jax.random.key(2), (num_chains, dimension), jnp.float32)

    def run(steps: int) -> float:
        begin = time.process_time()
        options = {"minibatches": minibatches, "thin": [steps], "progress": False}
        levymc.sample(algorithm, jax.random.key(0), starts, steps, **options)
        return time.process_time() - begin

    run(2)
    steps = 8
    while (spent := run(steps)) < SECONDS / 4:
        steps *= 4
    empty = min(run(1) for _ in range(REPEATS))
    steps = max(2, int(steps * SECONDS / spent))
    return max(min(run(steps) for _ in range(REPEATS)) - empty, 1e-9) / steps


def exponents(sizes: tuple[int, ...], costs: list[float]) -> dict[str, Any]:
    """The slope of log cost over log size, of all sizes and of the two largest."""
    x, y = np.log(sizes), np.log(costs)
    last = (y[-1] - y[-2]) / (x[-1] - x[-2])
    return {"sizes": list(sizes), "seconds": costs, "fit": np.polyfit(x, y, 1)[0], "last": last}


def growth() -> dict[str, dict[str, Any]]:
    """By sampler and by what grows; the others stay at 16 chains of 8 dimensions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows: dict[str, Callable[[], dict[str, Any]]] = {
            **{name: partial(_of_density, make) for name, make in SAMPLERS.items()},
            "flmc": lambda: {"d": _flmc((2, 4, 8))},
            "sgld": lambda: _of_minibatches(levymc.sgld),
            "sgfla": lambda: _of_minibatches(levymc.sgfla),
            "auto": _of_auto,
        }
        found = {}
        for name, measure in rows.items():
            begin = time.perf_counter()
            found[name] = measure()
            fits = ", ".join(f"{kind} {one['fit']:.2f}" for kind, one in found[name].items())
            print(f"  {name}: {fits} ({time.perf_counter() - begin:.0f} s)", flush=True)
    return found


def _of_density(make: Callable[[Any], Any]) -> dict[str, Any]:
    algorithm = make(normal)

    def full(size: int) -> Any:
        data = jax.tree.map(jnp.asarray, logistic(size, 8))
        return make(lambda x: _log_posterior(x, data))

    return {
        "d": exponents(DIMENSIONS, [seconds_per_step(algorithm, 16, d, None) for d in DIMENSIONS]),
        "chains": exponents(CHAINS, [seconds_per_step(algorithm, n, 8, None) for n in CHAINS]),
        "data": exponents(DATA, [seconds_per_step(full(n), 16, 8, None) for n in DATA]),
        "modes": exponents(
            MODES, [seconds_per_step(make(mixture(n, 8)), 16, 8, None) for n in MODES]
        ),
    }


def _log_posterior(x, data):
    return log_prior(x) + jnp.sum(jax.vmap(log_likelihood, in_axes=(None, 0))(x, data))


def _flmc(dimensions: tuple[int, ...]) -> dict[str, Any]:
    """The exact drift, by quadrature along every coordinate."""
    algorithm = levymc.flmc(normal, 1e-2, 1.7)
    return exponents(dimensions, [seconds_per_step(algorithm, 4, d, None) for d in dimensions])


def _of_minibatches(make: Callable[[Any, float], Any]) -> dict[str, Any]:
    """Minibatches of 100, whatever the data."""

    def cost(num_points: int, num_chains: int, dimension: int) -> float:
        estimator = levymc.grad_estimator(log_prior, log_likelihood, num_points)
        batches = levymc.batches(logistic(num_points, dimension), 100)
        return seconds_per_step(make(estimator, 1e-5), num_chains, dimension, batches)

    return {
        "d": exponents(DIMENSIONS, [cost(1000, 16, d) for d in DIMENSIONS]),
        "chains": exponents(CHAINS, [cost(1000, n, 8) for n in CHAINS]),
        "data": exponents(DATA, [cost(n, 16, 8) for n in DATA]),
    }


def _of_auto() -> dict[str, Any]:
    """A whole call with 20 000 evaluations, the second of two, as the first compiles."""

    def cost(num_modes: int, dimension: int) -> float:
        target, starts = mixture(num_modes, dimension), jnp.zeros((4, dimension), jnp.float32)
        for seed in range(2):
            begin = time.process_time()
            levymc.auto(target, jax.random.key(seed), starts, budget=20_000, progress=False)
        return time.process_time() - begin

    least, sizes = cost(2, 2), (2, 8, 32)
    return {
        "d": exponents(sizes, [least, *(cost(2, d) for d in sizes[1:])]),
        "modes": exponents(sizes, [least, *(cost(n, 2) for n in sizes[1:])]),
    }
