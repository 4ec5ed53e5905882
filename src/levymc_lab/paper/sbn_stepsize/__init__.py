r"""Figure 6: the test log-likelihood of a belief network after SG-FLA with constant steps.

.. math:: x' = x + η\, c_α\, \widehat{∇\log φ}(x; Ω) + η^{1/α}\, ξ, \qquad |Ω| = 200,

for the weights and biases x of `levymc.models.sbn` with 100 hidden units, 5000 iterations, and the
likelihood by annealed importance sampling.  Does a smaller α stand larger steps, as published; and
if not, or if so, which part of the step is it due to: the longer gradient step c_α η, the scale of
the noise, its jumps, or the number of Gibbs sweeps?

References: [simsekli2017], Figure 6.  Departures: the paper tells neither the start nor how hidden
units are drawn, nor the temperatures; grey pixels are binarised at random, once, by a fixed seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from levymc_lab.framework import Cell, CellResult, Experiment, Tables

from ._annealing import anneal
from ._checks import checks
from ._data import check_there
from ._tables import summarise
from ._train import train
from ._verdict import verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The nine of the figure; those in `MAIN` have two seeds.
STEPS = (3.998e-5, 4.473e-5, 5.478e-5, 7.071e-5, 8.367e-5, 1e-4, 1.6e-4, 2.236e-4, 2.828e-4)
MAIN = (3.998e-5, 7.071e-5, 1e-4, 1.6e-4, 2.828e-4)


@dataclass(frozen=True)
class StepSizes:
    """Sizes.

    source: "mnist", or "made" for pictures that are made.
    num_train, num_test: images to learn from, and those whose likelihood is estimated.
    main_steps: of these each of `main_alphas` has `num_seeds` runs of `num_iterations`; other
        steps and `other_alphas` have one run of `short_iterations`, judged by `short_test` images.
    best: (η, τ, b) of the schedule η (1 + n/τ)^-b, with a warm start.
    polya_iterations: of the runs with Pólya–Gamma sweeps, `polya_sweeps` of them a step.
    """

    source: str
    num_train: int
    num_test: int
    num_hidden: int
    num_iterations: int
    short_iterations: int
    short_test: int
    num_seeds: int
    num_temperatures: int
    steps: tuple[float, ...] = STEPS
    main_steps: tuple[float, ...] = MAIN
    main_alphas: tuple[float, ...] = (2.0, 1.6)
    other_alphas: tuple[float, ...] = (1.9, 1.8, 1.7)
    ablation_steps: tuple[float, ...] = (3.998e-5, 2.828e-4)
    ablated_alpha: float = 1.6
    sweeps: int = 5
    other_sweeps: tuple[int, ...] = (1, 20)
    sweep_steps: tuple[float, ...] = (3.998e-5, 2.828e-4)
    best: tuple[float, float, float] = (1e-4, 300.0, 1.0)
    best_alphas: tuple[float, ...] = (2.0, 1.8, 1.6)
    polya_alphas: tuple[float, ...] = (2.0,)
    polya_iterations: int = 500
    polya_sweeps: int = 20
    temperatures: tuple[int, ...] = (100, 300, 1000, 5000)
    num_annealed: int = 200
    small_hidden: int = 10
    batch_size: int = 200
    binarize_seed: int = 0


def needs(config: StepSizes) -> None:
    check_there(config)


def cells(config: StepSizes) -> list[Cell]:
    """Those that the figure needs most come first."""
    return [
        *_main(config),
        *_schedules(config),
        Cell("annealing", {"kind": "annealing"}),
        *_parts(config),
        *_others(config),
        *_sweeps(config),
    ]


def _cell(kind: str, alpha: float, step: float, length: int, seed: int = 0, **more: Any) -> Cell:
    """Runs with the same step and seed share the start and the minibatches."""
    extra = "".join(f"-{name}={value}" for name, value in more.items())
    id = f"{kind}-alpha={alpha:g}-step={step:g}{extra}-seed={seed}"
    given = {"kind": kind, "alpha": alpha, "step": step, "length": length, "seed": seed}
    return Cell(id, {**given, **more}, stream=f"seed={seed}")


def _main(config: StepSizes) -> list[Cell]:
    return [
        _cell("sgfla", alpha, step, config.num_iterations, seed)
        for seed in range(config.num_seeds)
        for step in config.main_steps
        for alpha in config.main_alphas
    ]


def _schedules(config: StepSizes) -> list[Cell]:
    return [
        _cell("best", alpha, config.best[0], config.num_iterations) for alpha in config.best_alphas
    ]


def _parts(config: StepSizes) -> list[Cell]:
    return [
        _cell(kind, config.ablated_alpha, step, config.num_iterations)
        for kind in ("sgld", "normal", "sgd")
        for step in config.ablation_steps
    ]


def _others(config: StepSizes) -> list[Cell]:
    return [
        _cell("sgfla", alpha, step, config.short_iterations)
        for alpha in (*config.main_alphas, *config.other_alphas)
        for step in config.steps
        if alpha in config.other_alphas or step not in config.main_steps
    ]


def _sweeps(config: StepSizes) -> list[Cell]:
    """SGLD with other numbers of sweeps, from a warm start, and by Pólya–Gamma variables."""
    length = config.num_iterations
    counts = [
        _cell("sgfla", 2.0, step, length, sweeps=count)
        for count in config.other_sweeps
        for step in config.sweep_steps
    ]
    warm = [_cell("warm", 2.0, step, length) for step in config.sweep_steps]
    polya = [
        _cell("polya", alpha, step, config.polya_iterations, sweeps=config.polya_sweeps)
        for alpha in config.polya_alphas
        for step in config.sweep_steps[:1]
    ]
    return counts + warm + polya


def run_cell(config: StepSizes, cell: Cell, key: Any) -> CellResult:
    return anneal(config, key) if cell["kind"] == "annealing" else train(config, cell, key)


def make_tables(config: StepSizes, results: Mapping[str, CellResult]) -> Tables:
    return summarise(config, cells(config), results)


def figures(config: StepSizes, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw_annealing, draw_steps
    from ._pictures import draw_model

    return {
        "sbn-stepsize": draw_steps(config, tables),
        "sbn-annealing": draw_annealing(config, tables),
        "sbn-model": draw_model(config, tables),
    }


EXPERIMENT = Experiment(
    name="sbn-stepsize",
    title="Belief networks on pictures of digits, with constant steps",
    paper_item="Figure 6",
    question="Does SG-FLA stand larger steps the smaller α is, and what is it due to?",
    profiles={
        "quick": StepSizes(
            source="made",
            num_train=200,
            num_test=20,
            num_hidden=8,
            num_iterations=12,
            short_iterations=6,
            short_test=10,
            num_seeds=2,
            num_temperatures=20,
            steps=(4.473e-5, 1e-4, 2.828e-4),
            main_steps=(4.473e-5, 2.828e-4),
            other_alphas=(1.8,),
            ablation_steps=(2.828e-4,),
            other_sweeps=(1,),
            sweep_steps=(2.828e-4,),
            best_alphas=(1.6,),
            polya_alphas=(),
            temperatures=(10, 20),
            num_annealed=20,
            small_hidden=4,
            batch_size=20,
        ),
        "paper": StepSizes(
            source="mnist",
            num_train=60_000,
            num_test=1000,
            num_hidden=100,
            num_iterations=5000,
            short_iterations=1000,
            short_test=300,
            num_seeds=2,
            num_temperatures=1000,
        ),
    },
    captions={
        "sbn-stepsize": "Test log-likelihood against the step size. Left: published points behind "
        "ours, for each α. Right: the parts of the step of α = 1.6 one by one, and other numbers "
        "of Gibbs sweeps.",
        "sbn-annealing": "What annealed importance sampling says, against the number of "
        "temperatures: with the weight first, with the weight last, and from above.",
        "sbn-model": "A network trained with decreasing steps: weights of its most used units, "
        "test images and their reconstructions, and images drawn from the model.",
    },
    cells=cells,
    run_cell=run_cell,
    summarise=make_tables,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
    shows_parts=True,
)
