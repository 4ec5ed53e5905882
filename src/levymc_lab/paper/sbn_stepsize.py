r"""Figure 6: the test log-likelihood of a belief network after SG-FLA with constant steps.

.. math:: x' = x + η\, c_α\, \widehat{∇\log φ}(x; Ω) + η^{1/α}\, ξ, \qquad |Ω| = 200,

for the weights and biases x of `levymc.models.sbn` with 100 hidden units, 5000 iterations, and the
likelihood by annealed importance sampling.  Does a smaller α stand larger steps, as published; and
if not, or if so, which part of the step is it due to: the longer gradient step c_α η, the scale of
the noise, its jumps, or where the Gibbs sweeps of the hidden units begin?

Every α and step of the figure is run at full length with each seed, with hidden units that are kept
between visits (warm).  Runs whose units begin from the prior at each visit (cold) are at the
smallest and the largest step only, where they differ most.

At large steps single draws of a chain wander by some ten nats.  So each test image has its
likelihood by one of the chain's last four stored draws in turn: their mean costs no more than one.
Annealing is judged on an easy network, by a short cold chain with the smallest step, and on a hard
one of the grid, with the largest step and the smallest α; and at both ends of the grid by what
more temperatures change.

References: [simsekli2017], Figure 6.  Departures: the paper tells neither the start nor how hidden
units are drawn, nor the temperatures, nor of how many draws a point is; grey pixels are binarised
at random, once, by a fixed seed.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc import augmented, batches, integrators, models, noises, observe, sgfla
from levymc._trees import module
from levymc.riesz import leading_coefficient
from levymc.run import Result
from levymc_lab import data
from levymc_lab.framework import Cell, CellResult, Experiment, Tables

from ._sbn_stepsize_results import PARTICLES, SIDE, checks, figures, tables_of, verdict
from ._shared import gathered, sampled

# The nine of the figure.
STEPS = (3.998e-5, 4.473e-5, 5.478e-5, 7.071e-5, 8.367e-5, 1e-4, 1.6e-4, 2.236e-4, 2.828e-4)
NUM_PARTS = 10  # of a chain on disk: what a killed one has to make again is at most one of them
FEWEST_STORED = 500  # iterations of a chain that is kept on disk, which takes some seconds
EASY, HARD = "easy", "hard"  # networks that annealing is judged by


@dataclass(frozen=True)
class StepSizes:
    """Sizes.

    source: "mnist", or "synthetic" pictures.
    num_train, num_test: images to learn from, and those whose likelihood is estimated at the
        smallest and the largest step of the grid.
    fewer_test: images whose likelihood is estimated elsewhere, the first of those.
    short_iterations: of the easy networks that annealing is judged by.
    num_draws: of the last that a chain stored, which share the images between them.
    steps, alphas: of the grid, each with `num_seeds` runs of `num_iterations`.
    cold_alphas: of runs whose hidden units begin from the prior, at both ends of `steps`.
    other_sweeps: of such runs with α = 2, numbers of Gibbs sweeps in place of `sweeps`.
    ablated_alpha: of which the parts of the step are run one by one, at the largest step.
    best: (η, τ, b) of the schedule η (1 + n/τ)^-b.
    """

    source: str
    num_train: int
    num_test: int
    fewer_test: int
    num_hidden: int
    num_iterations: int
    short_iterations: int
    num_seeds: int
    num_temperatures: int
    steps: tuple[float, ...] = STEPS
    alphas: tuple[float, ...] = (2.0, 1.9, 1.8, 1.7, 1.6)
    cold_alphas: tuple[float, ...] = (2.0, 1.6)
    sweeps: int = 5
    other_sweeps: tuple[int, ...] = (20,)
    ablated_alpha: float = 1.6
    best: tuple[float, float, float] = (1e-4, 300.0, 1.0)
    best_alphas: tuple[float, ...] = (2.0, 1.6)
    temperatures: tuple[int, ...] = (100, 300, 1000, 5000)
    num_annealed: int = 200
    num_draws: int = 4
    small_hidden: int = 10
    batch_size: int = 200
    binarize_seed: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest step."""
        return min(self.steps), max(self.steps)


def needs(config: StepSizes) -> None:
    """Refuse at once where the pictures are missing."""
    if config.source == "mnist":
        data.load("mnist")


def cells(config: StepSizes) -> list[Cell]:
    """Those that the figure needs most come first: its ends, and the first seed."""
    largest = max(config.steps)
    ordered = sorted(config.steps, key=lambda step: step not in config.ends)
    length, inner = config.num_iterations, config.ablated_alpha
    return [
        *(
            _cell("warm", alpha, step, length, seed)
            for seed in range(config.num_seeds)
            for step in ordered
            for alpha in config.alphas
        ),
        *(
            _cell("cold", alpha, step, length)
            for step in config.ends
            for alpha in config.cold_alphas
        ),
        *(_cell(kind, inner, largest, length) for kind in ("sgld", "normal", "sgd")),
        *(_cell("cold", 2.0, largest, length, sweeps=count) for count in config.other_sweeps),
        *(_cell("best", alpha, config.best[0], length) for alpha in config.best_alphas),
        Cell("annealing", {"kind": "annealing", "of": EASY}),
        Cell("annealing-hard", {"kind": "annealing", "of": HARD}),
    ]


def _cell(kind: str, alpha: float, step: float, length: int, seed: int = 0, **more: Any) -> Cell:
    """Runs with the same step and seed share the start and the minibatches.

    Those of other steps do not: errors of one step must not be seen again in all others.
    """
    extra = "".join(f"-{name}={value}" for name, value in more.items())
    id = f"{kind}-alpha={alpha:g}-step={step:g}{extra}-seed={seed}"
    given = {"kind": kind, "alpha": alpha, "step": step, "length": length, "seed": seed}
    return Cell(id, {**given, **more}, stream=f"step={step:g}-seed={seed}")


def run_cell(config: StepSizes, cell: Cell, key: Any) -> CellResult:
    return anneal(config, cell, key) if cell["kind"] == "annealing" else train(config, cell, key)


class Split(NamedTuple):
    """Images of 0 and 1 to learn from, and those whose likelihood is estimated."""

    train: np.ndarray
    test: np.ndarray


def split(config: StepSizes) -> Split:
    return _split(config.source, config.num_train, config.num_test, config.binarize_seed)


@lru_cache(maxsize=1)
def _split(source: str, num_train: int, num_test: int, seed: int) -> Split:
    """The test images come in random order, as the official one is not: so are the first ones."""
    if source == "synthetic":
        greys, _ = data.synthetic_images(num_train + num_test, seed)
        binary = data.binarize(greys, seed)
        return Split(binary[:num_train], binary[num_train:])
    pictures = data.load(source)
    chosen = np.random.default_rng(seed).permutation(len(pictures.test_images))[:num_test]
    train = data.binarize(pictures.train_images[:num_train], seed)
    return Split(train, data.binarize(pictures.test_images[chosen], seed + 1))


def network(hidden: int, sweeps: int) -> models.BeliefNetwork:
    return models.sbn(SIDE * SIDE, hidden, sweeps=sweeps)


@module()
class Decreasing:
    """η (1 + n/τ)^-b; constant for b = 0."""

    eta: Any
    time_scale: Any = 1.0
    power: Any = 0.0

    def __call__(self, n: Any) -> Any:
        return self.eta * (1 + n / self.time_scale) ** -self.power


@module()
class Tempered:
    """Gaussian noise √(2 η T): a kind of noise, and its law."""

    temperature: Any

    def law(self, alpha: Any) -> "Tempered":
        return self

    def draw(self, key: Any, position: Any, step_size: Any) -> Any:
        return noises.independent().law(2.0).draw(key, position, self.temperature * step_size)


class Settings(NamedTuple):
    """Numbers of a run; the temperature is that of the noise, where α = 2."""

    alpha: float
    steps: Decreasing
    temperature: float = 1.0


def settings(config: StepSizes, cell: Mapping[str, Any]) -> Settings:
    """Those of a kind.

    sgld: SGLD with the step c_α η.  normal: SG-FLA's drift with Gaussian noise of scale η^{1/α}.
    sgd: its drift alone.
    """
    kind, alpha, step = cell["kind"], cell["alpha"], cell["step"]
    if kind == "best":
        return Settings(alpha, Decreasing(*config.best))
    if kind not in ("sgld", "normal", "sgd"):
        return Settings(alpha, Decreasing(step))
    drift = float(leading_coefficient(alpha - 2)) * step
    temperature = {"sgld": 1.0, "normal": step ** (2 / alpha) / drift, "sgd": 0.0}[kind]
    return Settings(2.0, Decreasing(drift), temperature)


def chain(
    config: StepSizes,
    cell: Mapping[str, Any],
    model: models.BeliefNetwork,
    key: Any,
    store: Path | None = None,
) -> Result:
    """A run from W ~ 0.1 N(0, 1) and biases of zero; goes on from the store if it is there.

    Settings are numbers: those with α = 2 share one compiled program, and so do all others.
    """
    images, is_warm = split(config).train, cell["kind"] != "cold"
    how, (key_start, key_run) = settings(config, cell), jax.random.split(key)
    inner = sgfla(
        model.grad_estimator(len(images)),
        how.steps,
        how.alpha,
        integrator=integrators.euler(),
        noise=Tempered(how.temperature) if how.alpha == 2 else None,
    )
    points = {"images": images} | ({"index": np.arange(len(images))} if is_warm else {})
    count = min(NUM_PARTS, cell["length"])
    return sampled(
        augmented(inner, model.latents, model.memory(len(images)) if is_warm else None),
        key_run,
        _at(model.init(key_start, dtype=jnp.float32), None),
        cell["length"],
        thin=np.arange(1, count + 1) * cell["length"] // count,
        minibatches=batches(points, config.batch_size),
        observe={"divergences": observe.divergences()},
        keep=True,
        store=store,
    )


def _at(tree: Any, place: Any) -> Any:
    """Each leaf at that place."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[place]), tree)


def _store(cell: Cell, name: str, length: int) -> Path | None:
    """Where a chain of the cell is kept while it goes on; a short one is rather made again."""
    is_long = length >= FEWEST_STORED
    return cell.folder / name if is_long and cell.folder is not None else None


def train(config: StepSizes, cell: Cell, key: Any) -> CellResult:
    given = cell.parameters
    model = network(config.num_hidden, given.get("sweeps", config.sweeps))
    key_chain, key_test, key_pictures = jax.random.split(key, 3)
    begin = time.process_time()  # compiling counts, but nothing before a resumption
    run = chain(config, given, model, key_chain, _store(cell, "chain", cell["length"]))
    seconds = time.process_time() - begin
    last = _at(run.positions, (0, -1))
    found = {
        **judged(config, cell, model, key_test, run.positions),
        "seconds": seconds,
        "divergences": int(run.observed["divergences"][0]),
        "spread": float(jnp.std(last["weights"])),
        "largest": float(jnp.max(jnp.abs(last["weights"]))),
    }
    return found | (pictures(config, model, last, key_pictures) if cell["kind"] == "best" else {})


def judged(config: StepSizes, cell: Cell, model: Any, key: Any, draws: Any) -> dict[str, float]:
    """The likelihood of the images that all runs share; at the ends of the grid also of all.

    Runs are compared by the same images, whose likelihoods go up and down together.  At the ends
    some are annealed again, with more temperatures: `gain` is by how much they rise.
    """
    is_end = cell["kind"] == "warm" and cell["step"] in config.ends
    tests = split(config).test[: config.num_test if is_end else config.fewer_test]
    key_all, key_finer = jax.random.split(key)
    values = in_turn(config, model, key_all, draws, tests, config.num_temperatures)
    found = {
        **_mean(values[: config.fewer_test], "loglikelihood", "error"),
        "all_images": np.nan,
        "all_error": np.nan,
        "gain": np.nan,
        "gain_error": np.nan,
    }
    if is_end:
        some = slice(0, config.num_annealed)
        finer = in_turn(config, model, key_finer, draws, tests[some], max(config.temperatures))
        found |= _mean(values, "all_images", "all_error")
        found |= _mean(finer - values[some], "gain", "gain_error")
    return found


def in_turn(
    config: StepSizes, model: Any, key: Any, draws: Any, images: np.ndarray, count: int
) -> np.ndarray:
    """Of each image, by one of the last draws in turn: the mean is one over draws, too."""
    values = np.empty(len(images))
    for place, key_draw in enumerate(jax.random.split(key, config.num_draws)):
        theirs = slice(place, None, config.num_draws)
        position = _at(draws, (0, place - config.num_draws))
        found = likelihood(config, model, key_draw, position, images[theirs], count)
        values[theirs] = found.loglikelihoods
    return values


def _mean(values: np.ndarray, name: str, error: str) -> dict[str, float]:
    deviation = values.std(ddof=1) / np.sqrt(len(values))
    return {name: float(values.mean()), error: float(deviation)}


def likelihood(
    config: StepSizes,
    model: models.BeliefNetwork,
    key: Any,
    position: Any,
    images: Any,
    count: int,
    **how: Any,
) -> models.Annealed:
    """By annealed importance sampling with that many temperatures, from the pixels' own rates."""
    rates = models.pixel_rates(split(config).train)
    return models.annealed_loglikelihood(
        model, key, position, images, base_rate=rates, num_temperatures=count, **how
    )


def pictures(config: StepSizes, model: Any, position: Any, key: Any) -> dict[str, np.ndarray]:
    """What the trained network has learnt: weights, reconstructions, fantasies; as greys."""
    key_start, key_sweeps, key_fantasy = jax.random.split(key, 3)
    tests = jnp.asarray(split(config).test[:10])
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


def anneal(config: StepSizes, cell: Cell, key: Any) -> CellResult:
    """On test images with the weight first and last; on simulated ones from below and above.

    Beside the easy network, one so small that the likelihood can be added up.
    """
    key_chain, key_simulate, key_test, key_small = jax.random.split(key, 4)
    model, is_hard = network(config.num_hidden, config.sweeps), cell["of"] == HARD
    position = _trained(config, cell, model, key_chain, "chain", is_hard=is_hard)
    images, hidden = model.simulate(key_simulate, position, config.num_annealed)
    tests = split(config).test[: config.num_annealed]
    known = config, model, key_test, position
    found = [
        {
            "first": likelihood(*known, tests, count).mean,
            "last": likelihood(*known, tests, count, weight_last=True).mean,
            "below": likelihood(*known, images, count).mean,
            "above": likelihood(*known, images, count, reverse_from=hidden).mean,
        }
        for count in config.temperatures
    ]
    return gathered(found) | ({} if is_hard else _small(config, cell, key_small))


def _trained(
    config: StepSizes, cell: Cell, model: Any, key: Any, name: str, *, is_hard: bool
) -> Any:
    """The last draw of a chain: the grid's at its sharpest, or a short one from the prior."""
    smallest, largest = config.ends
    length = config.num_iterations if is_hard else config.short_iterations
    easy = {"kind": "cold", "alpha": 2.0, "step": smallest, "length": length}
    hard = {"kind": "warm", "alpha": min(config.alphas), "step": largest, "length": length}
    given = hard if is_hard else easy
    run = chain(config, given, model, key, _store(cell, name, length))
    return _at(run.positions, (0, -1))


def _small(config: StepSizes, cell: Cell, key: Any) -> dict[str, float]:
    """Few units that each explain much: chains of one image end in different modes."""
    key_chain, key_test = jax.random.split(key)
    model = network(config.small_hidden, config.sweeps)
    position = _trained(config, cell, model, key_chain, "small", is_hard=False)
    tests = split(config).test[: config.num_annealed]
    estimate = likelihood(
        config, model, key_test, position, tests, config.num_temperatures, num_particles=PARTICLES
    )
    return {
        "small_exact": float(np.mean(model.exact_loglikelihood(position, tests))),
        "small_one": float(np.mean(estimate.log_weights)),
        "small_annealed": estimate.mean,
    }


def summarise(config: StepSizes, results: Mapping[str, CellResult]) -> Tables:
    return tables_of(config, cells(config), results)


EXPERIMENT = Experiment(
    name="sbn-stepsize",
    title="Belief networks on pictures of digits, with constant steps",
    paper_item="Figure 6",
    question="Does SG-FLA stand larger steps the smaller α is, and what is it due to?",
    profiles={
        "quick": StepSizes(
            source="synthetic",
            num_train=200,
            num_test=20,
            fewer_test=10,
            num_hidden=8,
            num_iterations=12,
            short_iterations=6,
            num_seeds=2,
            num_temperatures=20,
            steps=(4.473e-5, 1e-4, 2.828e-4),
            alphas=(2.0, 1.8, 1.6),
            other_sweeps=(1,),
            best_alphas=(1.6,),
            temperatures=(10, 20),
            num_annealed=20,
            num_draws=2,
            small_hidden=4,
            batch_size=20,
        ),
        "paper": StepSizes(
            source="mnist",
            num_train=60_000,
            num_test=10_000,
            fewer_test=1000,
            num_hidden=100,
            num_iterations=5000,
            short_iterations=1000,
            num_seeds=2,
            num_temperatures=1000,
        ),
    },
    captions={
        "sbn-stepsize": "Test log-likelihood against the step size. Top: as published, and here "
        "with hidden units kept between visits, each α with the range of its seeds, on an axis of "
        "its own. Bottom left: the same less SGLD's at that step. Bottom right: the parts of the "
        "step of α = 1.6, and hidden units that begin from the prior, at the smallest and the "
        "largest step.",
        "sbn-annealing": "What annealed importance sampling says, against the number of "
        "temperatures: with the weight first, with the weight last, and from above. Top: a network "
        "of a short chain with the smallest step; bottom: of the largest step and smallest α.",
        "sbn-model": "A network trained with decreasing steps: weights of its most used units, "
        "test images and their reconstructions, and images drawn from the model.",
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
    shows_parts=True,
)
