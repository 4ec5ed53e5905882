r"""The evidence of models by MALA, from all data, and by SGLD, from minibatches.

Chains of a belief network stay in the mode that they come to, and so each network is run twice.
Chains that are cooled from the prior, along β, freeze: at large β they are in poorer modes than
the posterior, and the integral is too low.  Chains that all begin in a good mode, the best that
cooled ones came to, melt: where they stay in it at small β, it is too high.  The truth lies between
the two, as long as no better mode was missed.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc import adapt, mafla, models, sample, sgld
from levymc._trees import module
from levymc_lab import data
from levymc_lab.framework import Cell, CellResult

from . import _movielens as ml

if TYPE_CHECKING:
    from .model_selection import Selection

KNOWN_RUNGS = 30
POWER = 5  # of the ladder (i/K)^5
INK = 64  # of 255: a small picture's pixel is on from there
SIDE, POOL = 7, 4  # of a small picture; pixels of a picture in one of its pixels, each way
FULL, MINIBATCH = "full gradients", "minibatches"
LOG_2_PI = math.log(2 * math.pi)
LOOKS = 10  # at chains that have come to the posterior, by which the best is told
STARTS = ("prior", "mode")
SHORTER = 4  # SGLD's steps, of MALA's


def reported(found: adapt.PathEvidence) -> dict[str, Any]:
    kept = {name: value for name, value in found._asdict().items() if name != "warnings"}
    return {**kept, "warnings": " ".join(found.warnings)}


def integrated(
    way: str, logprior: Any, loglikelihood: Any, step_size: Any, *given: Any, **how: Any
) -> adapt.PathEvidence:
    """By MALA, or by SGLD from minibatches, whose steps are a quarter as long."""
    kernel = _mala if way == FULL else sgld
    steps = step_size if way == FULL else lambda beta: step_size(beta) / SHORTER
    return adapt.thermodynamic_integration(
        logprior, loglikelihood, kernel, steps, *given, progress=False, **how
    )


def _mala(logdensity_fn: Any, step_size: Any) -> Any:
    return mafla(logdensity_fn, step_size, 2.0)


def of_regression(config: "Selection", cell: Cell, key: Any) -> CellResult:
    """A regression of a hundred points on five covariates, whose evidence is a normal density."""
    random = np.random.default_rng(0)
    design, noise = random.normal(size=(100, 5)), random.normal(size=100)
    y = design @ random.normal(size=5) + noise
    covariance = np.eye(100) + design @ design.T
    _, logdet = np.linalg.slogdet(covariance)
    truth = -(100 * LOG_2_PI + logdet + y @ np.linalg.solve(covariance, y)) / 2
    found = integrated(
        cell["way"],
        lambda w: -jnp.sum(w**2) / 2,
        lambda w, point: -((point[5] - point[:5] @ w) ** 2 + LOG_2_PI) / 2,
        lambda beta: 0.4 / (1 + 100 * beta),
        key,
        jnp.zeros((config.known_chains, 5), jnp.float32),
        config.known_steps,
        betas=KNOWN_RUNGS,
        data=np.column_stack([design, y]).astype(np.float32),
        batch_size=None if cell["way"] == FULL else 25,
    )
    return {**reported(found), "truth": truth}


@lru_cache(maxsize=2)
def small_pictures(source: str, count: int) -> np.ndarray:
    """Of 7 × 7 pixels, 0 or 1: means over four by four."""
    greys = data.synthetic_images(count, 0)[0] if source == "synthetic" else None
    if greys is None:
        greys = data.load(source).train_images[:count]
    pooled = np.asarray(greys, float).reshape(count, SIDE, POOL, SIDE, POOL).mean(axis=(2, 4))
    return (pooled >= INK).reshape(count, -1).astype(np.float32)


def simulated_pictures(num_units: int, count: int) -> np.ndarray:
    """Of a network of so many units, whose weights and biases are a draw of the prior."""
    model = models.sbn(SIDE * SIDE, num_units)
    key_weights, key_pictures = jax.random.split(jax.random.key(num_units))
    position = jax.tree.map(lambda leaf: leaf[0], _of_prior(model, key_weights, 1))
    images, _ = model.simulate(key_pictures, position, count)
    return np.asarray(images, np.float32)


def of_units(config: "Selection", cell: Cell, key: Any) -> CellResult:
    """The evidence of a belief network with few units, all of whose states are added up."""
    images = pictures(config, cell["kind"])
    problem = Problem(models.sbn(images.shape[1], cell["size"]), images)
    key_cool, *keys = jax.random.split(key, 1 + len(STARTS))
    chains, height, mode = cooled(config, problem, key_cool)
    stay = stacked([mode] * config.num_chains)
    is_real = cell["kind"] == "units" and config.source != "synthetic"
    found: dict[str, Any] = {"height": height, "source": ml.REAL if is_real else ml.SYNTHETIC}
    for name, key_path, first in zip(STARTS, keys, (chains, stay), strict=True):
        path = _path(config, cell["way"], problem, key_path, first)
        found |= {f"{name}_{field}": value for field, value in reported(path).items()}
    return found


def pictures(config: "Selection", kind: str) -> np.ndarray:
    if kind == "control":
        return simulated_pictures(config.control_truth, config.num_pictures)
    return small_pictures(config.source, config.num_pictures)


class Problem:
    """A network and its pictures.  One object of each function, for one compiled program."""

    def __init__(self, model: models.BeliefNetwork, images: np.ndarray) -> None:
        self.model, self.images = model, images
        scale = model.num_visible * (model.num_hidden + 1)
        self.logprior = model.logprior
        self.of_one = lambda position, image: model.exact_loglikelihood(position, image[None])[0]
        self.whole = lambda position: jnp.sum(model.exact_loglikelihood(position, images))
        self.tempered = lambda position, beta: (
            model.logprior(position) + beta * self.whole(position)
        )
        self.logposterior = lambda position: self.tempered(position, 1.0)
        self.tempered_gradient = lambda position, power: jax.grad(self.tempered)(
            position, power["beta"]
        )
        self.step_size = lambda beta: scale ** (-1 / 3) / (1 + beta * len(images) / 4)

    def of_prior(self, key: Any, count: int) -> Any:
        return _of_prior(self.model, key, count)


def _of_prior(model: models.BeliefNetwork, key: Any, count: int) -> Any:
    """Draws, of the biases, too, which `init` leaves at zero."""
    leaves, form = jax.tree.flatten(model.init(key, 1.0, dtype=jnp.float32))
    keys = jax.random.split(key, len(leaves))
    drawn = [
        jax.random.normal(k, (count, *leaf.shape), leaf.dtype)
        for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(form, drawn)


def stacked(positions: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *positions)


class Cooled(NamedTuple):
    """Chains by β; and the best of them at β = 1, with the mean of its log density there.

    The density is up to a constant.
    """

    chains: Callable[[float], Any]
    height: float
    mode: Any


def cooled(config: "Selection", problem: Problem, key: Any) -> Cooled:
    """Chains from the prior by Langevin steps along a rising β, which then stays at one."""
    key_start, key_run = jax.random.split(key)
    count, rungs = config.cooling_steps, config.num_rungs
    first = problem.of_prior(key_start, config.cooling_chains)
    steps = count + count // 2
    at = (np.minimum(np.arange(steps) / count, 1) ** POWER).astype(np.float32)
    marks = np.arange(1, rungs + 1) * count // rungs
    looks = count + np.arange(1, LOOKS + 1) * (count // 2) // LOOKS
    run = sample(
        sgld(problem.tempered_gradient, Listed(problem.step_size(at) / SHORTER)),
        key_run,
        first,
        steps,
        thin=[*marks.tolist(), *looks.tolist()],
        minibatches=lambda n: {"beta": at[n]},
        progress=False,
    )
    if run.is_interrupted:
        raise KeyboardInterrupt
    later = jax.tree.map(lambda leaf: leaf[:, rungs:], run.positions)
    heights = np.asarray(jax.jit(jax.vmap(jax.vmap(problem.logposterior)))(later), np.float64)
    best = int(np.argmax(heights.mean(axis=1)))
    kept = [first, *(_at(run.positions, (slice(None), rung)) for rung in range(rungs))]

    def chains(beta: float) -> Any:
        rung = round(beta ** (1 / POWER) * rungs)
        return _at(kept[rung], slice(config.num_chains))

    return Cooled(chains, float(heights[best].mean()), _at(later, (best, -1)))


def _at(tree: Any, place: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[place]), tree)


@module()
class Listed:
    """The step sizes that are listed."""

    sizes: Any

    def __call__(self, n: Any) -> Any:
        return jnp.asarray(self.sizes)[n - 1]


def _path(
    config: "Selection", way: str, problem: Problem, key: Any, starts: Any
) -> adapt.PathEvidence:
    """Its chains go on for as many steps as in the profile, after half as many."""
    given, is_full = (problem.step_size, key, starts), way == FULL
    of = problem.whole if is_full else problem.of_one
    how = {"thin": 5} if is_full else {"data": problem.images, "batch_size": config.batch_size}
    count = config.num_steps if is_full else config.minibatch_steps
    return integrated(way, problem.logprior, of, *given, count, betas=config.num_rungs, **how)
