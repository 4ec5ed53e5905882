"""The chains of the experiment `sbn_stepsize`."""

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc import integrators, models
from levymc.algorithms import AugmentedState, augmented, sgfla
from levymc.riesz import leading_coefficient
from levymc.run import batches as batches_of
from levymc_lab.framework import Cell, CellResult

from . import _data
from ._data import PIXELS

NUM_MARKS = 10
COLD = 1e-12  # a temperature at which there is no noise to speak of
MOST_TRACED = 100  # images whose likelihood is followed through a run


@lru_cache(maxsize=8)  # so that programs that were compiled for a model are found again
def network(hidden: int, sweeps: int, method: str = "collapsed") -> models.BeliefNetwork:
    return models.sbn(PIXELS, hidden, sweeps=sweeps, method=method)


class Settings(NamedTuple):
    """Numbers of a run that its program takes as they come.

    step, time_scale, power: of the schedule η (1 + n/τ)^-b; constant for b = 0.
    temperature: of the noise, where α = 2.
    """

    step: Any
    time_scale: Any
    power: Any
    temperature: Any


def settings(config: Any, cell: Mapping[str, Any]) -> Settings:
    """Those of a kind.

    sgld: SGLD with the step c_α η.  normal: SG-FLA's drift with Gaussian noise of scale η^{1/α}.
    sgd: its drift alone.
    """
    kind, alpha, step = cell["kind"], cell["alpha"], cell["step"]
    if kind == "best":
        first, time_scale, power = config.best
        return Settings(first, time_scale, power, 1.0)
    if kind not in ("sgld", "normal", "sgd"):
        return Settings(step, 1.0, 0.0, 1.0)
    drift = float(leading_coefficient(alpha - 2)) * step
    temperature = {"sgld": 1.0, "normal": step ** (2 / alpha) / drift, "sgd": COLD}[kind]
    return Settings(drift, 1.0, 0.0, temperature)


@lru_cache(maxsize=8)
def program(model: models.BeliefNetwork, alpha: float, batch_size: int) -> Callable[..., Any]:
    """The compiled function of (settings, state, key, end, data) that makes steps up to `end`."""

    def advance(how: Settings, state: Any, key: Any, end: Any, data: Any) -> Any:
        gradient, temperature = model.grad_estimator(len(data["images"])), how.temperature
        # SGLD with the step η T and the gradient g/T moves by η g, with noise √(2 η T).
        warmed = lambda x, batch: jax.tree.map(lambda g: g / temperature, gradient(x, batch))  # noqa: E731
        algorithm = augmented(
            sgfla(
                warmed if alpha == 2 else gradient,
                lambda n: temperature * how.step * (1 + n / how.time_scale) ** -how.power,
                alpha,
                integrator=integrators.euler(),
            ),
            model.latents,
        )
        batches = batches_of(data, batch_size)

        def step(so_far: Any) -> Any:
            state, divergences = so_far
            key_batch, key_step = jax.random.split(jax.random.fold_in(key, state.inner.step))
            state, info = algorithm.step(key_step, state, batches.draw(key_batch))
            return state, divergences + info.is_divergent

        return jax.lax.while_loop(lambda s: s[0].inner.step < end, step, (state, jnp.int32(0)))

    return jax.jit(advance)


class Run(NamedTuple):
    """Positions at the marks, the marks, steps that were not finite, and seconds of one core."""

    positions: list[Any]
    marks: np.ndarray
    divergences: int
    seconds: float


def chain(config: Any, cell: Mapping[str, Any], model: models.BeliefNetwork, key: Any) -> Run:
    """A run from W ~ 0.1 N(0, 1) and biases of zero."""
    images = _data.of(config).train
    key_start, key_run = jax.random.split(key)
    alpha = 2.0 if cell["kind"] in ("sgld", "normal", "sgd") else cell["alpha"]
    how, advance = settings(config, cell), program(model, alpha, config.batch_size)
    is_warm = cell["kind"] in ("warm", "best")
    points = {"images": jnp.asarray(images)}
    points |= {"index": jnp.arange(len(images))} if is_warm else {}
    start = sgfla(model.grad_estimator(1), 1.0, alpha).init(
        model.init(key_start, dtype=jnp.float32)
    )
    state = AugmentedState(start, model.memory(len(images)) if is_warm else None)
    jax.block_until_ready(advance(how, state, key_run, 0, points))  # compiled before the clock runs
    count = NUM_MARKS if cell["length"] == config.num_iterations else 1  # short runs have no trace
    marks = np.arange(1, count + 1) * cell["length"] // count
    positions, divergences, begin = [], 0, time.process_time()
    for mark in marks.tolist():
        state, count = jax.block_until_ready(advance(how, state, key_run, mark, points))
        positions.append(state.position)
        divergences += int(count)
    return Run(positions, marks, divergences, time.process_time() - begin)


def train(config: Any, cell: Cell, key: Any) -> CellResult:
    given = cell.parameters
    method = "polya-gamma" if cell["kind"] == "polya" else "collapsed"
    model = network(config.num_hidden, given.get("sweeps", config.sweeps), method)
    key_chain, key_test, key_pictures = jax.random.split(key, 3)
    run = chain(config, given, model, key_chain)
    last = run.positions[-1]
    is_long = cell["length"] == config.num_iterations
    most = None if is_long else config.short_test
    estimate = likelihood(config, model, last, key_test, config.num_temperatures, most)
    traced = [
        likelihood(config, model, position, key_test, config.num_temperatures, MOST_TRACED).mean
        for position in (run.positions if is_long else [])
    ]
    found = {
        "seconds": run.seconds,
        "loglikelihood": estimate.mean,
        "error": estimate.standard_error,
        "divergences": run.divergences,
        "spread": float(jnp.std(last["weights"])),
        "largest": float(jnp.max(jnp.abs(last["weights"]))),
        "marks": run.marks[: len(traced)],
        "trace": np.array(traced),
    }
    return found | (pictures(config, model, last, key_pictures) if cell["kind"] == "best" else {})


def likelihood(
    config: Any, model: Any, position: Any, key: Any, count: int, most: int | None = None
) -> Any:
    parts = _data.of(config)
    return models.annealed_loglikelihood(
        model,
        key,
        position,
        parts.test[:most],
        base_rate=models.pixel_rates(parts.train),
        num_temperatures=count,
    )


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
