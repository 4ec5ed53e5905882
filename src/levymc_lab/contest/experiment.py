r"""The contest: a sampler that needs no tuning against its peers, at equal budgets.

Every method gets the same density, starts near one mode and the same number of evaluations, those
of warm-up and tuning included.  Judged are the weights of the modes by total variation, how much
the draws are worth (ArviZ's bulk and tail sizes of the worst coordinate), whether stated standard
errors hold, and whether a wrong answer came with a warning.  The *final* problems were not used to
choose constants; the *development* problems were, and are reported apart.

Departures: the paper has no such comparison.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from levymc_lab.framework import Cell, CellResult, Check, Experiment, Tables, Verdict

from . import _figures, _judgement, metrics, peers, problems

METHODS = ("auto", "nuts-dense", "nuts-diagonal", "tempering", "smc", "mala", "emcee")


@dataclass(frozen=True)
class Contest:
    """Sizes.

    budget: evaluations of each run.
    large_budget, large_methods: of more runs of the final problems; none where it is zero.
    """

    problems: tuple[str, ...]
    methods: tuple[str, ...]
    budget: int
    num_seeds: int
    large_budget: int = 0
    large_methods: tuple[str, ...] = ()


def _plan(config: Contest) -> Iterator[tuple[str, str, int]]:
    """Problem, method and budget; one problem after the other, to share what is compiled."""
    final = problems.names("final")
    for name in config.problems:
        for method in config.methods:
            yield name, method, config.budget
        if config.large_budget and name in final:
            for method in config.large_methods:
                yield name, method, config.large_budget


def cells(config: Contest) -> list[Cell]:
    """A cell for each problem, method, budget and seed; methods share keys, hence starts."""
    return [
        Cell(
            f"{name}-{method}-{budget}-{seed}",
            {"problem": name, "method": method, "budget": budget, "seed": seed},
            stream=f"{name}-{seed}",
        )
        for name, method, budget in _plan(config)
        for seed in range(config.num_seeds)
    ]


def run_cell(config: Contest, cell: Cell, key: Any) -> CellResult:
    """One run, measured; of a method that is missing, the reason."""
    labels = {name: cell[name] for name in ("problem", "method", "budget", "seed")}
    if reason := peers.missing(cell["method"]):
        return {**labels, "skipped": reason}
    problem = problems.get(cell["problem"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a sampler warns of is in its outcome
        outcome = peers.run(problem, cell["method"], key, cell["budget"])
    return {
        **labels,
        "skipped": "",
        "group": problem.group,
        "kind": problem.kind,
        "tail_index": problem.tail_index,
        "evaluations": outcome.evaluations,
        "seconds": outcome.seconds,
        "compiling": outcome.compiling,
        "is_flagged": outcome.is_flagged,
        "notes": " ".join(outcome.notes),
        **metrics.as_row(metrics.measure(problem, outcome, cell["budget"])),
    }


def summarise(config: Contest, results: Mapping[str, CellResult]) -> Tables:
    return _judgement.tables(list(results.values()))


def checks(config: Contest, tables: Tables) -> list[Check]:
    return _judgement.checks(tables, config.budget)


def verdict(config: Contest, tables: Tables, checks: Sequence[Check]) -> Verdict:
    return _judgement.verdict(tables, checks, config.budget)


def figures(config: Contest, tables: Tables) -> dict[str, Figure]:
    return {
        "contest-weights": _figures.weights(tables, config.budget),
        "contest-efficiency": _figures.efficiency(tables, config.budget),
    }


EXPERIMENT = Experiment(
    name="contest",
    title="A sampler that needs no tuning, against its peers",
    paper_item="beyond the paper",
    question="Does levymc.auto beat tuned peers at equal budgets, and warn where it does not?",
    profiles={
        "quick": Contest(
            problems=("double-well", "cauchy-10"),
            methods=("auto", "nuts-dense", "mala"),
            budget=4000,
            num_seeds=2,
        ),
        "paper": Contest(
            problems=tuple(problems.names("final") + problems.names("development")),
            methods=METHODS,
            budget=200_000,
            num_seeds=5,
            large_budget=1_000_000,
            large_methods=("auto", "nuts-dense", "tempering"),
        ),
    },
    captions={
        "contest-weights": "Total variation of the weights of the modes, for each problem and "
        "method: the dot is the median over seeds, the whisker reaches to the worst. The dashed "
        "line is the bar; in the shaded part the answer is wrong. Hollow dots warned of theirs.",
        "contest-efficiency": "Effective sample size of the worst coordinate, bulk or tail, over "
        "that of NUTS with a dense metric, per evaluation and per second, on problems with one "
        "mode.",
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    shows_parts=True,
)
