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

import jax
import numpy as np
from matplotlib.figure import Figure

from levymc_lab.framework import Cell, CellResult, Check, Experiment, Tables, Verdict

from . import _figures, _judgement, metrics, peers, problems

OURS = _judgement.OURS
METHODS = (OURS, "nuts-dense", "nuts-diagonal", "tempering", "smc", "mala", "emcee")


@dataclass(frozen=True)
class Contest:
    """Sizes.

    problems, methods: every method runs on every problem.
    development, development_methods: those beside, on which constants were chosen.
    budget: evaluations of each run.
    """

    problems: tuple[str, ...]
    methods: tuple[str, ...]
    budget: int
    num_seeds: int
    development: tuple[str, ...] = ()
    development_methods: tuple[str, ...] = ()


def cells(config: Contest) -> list[Cell]:
    """A cell for each problem and method: its seeds share what is compiled.

    Methods share keys, hence starts.
    """
    groups = [
        (config.problems, config.methods),
        (config.development, config.development_methods),
    ]
    return [
        Cell(f"{name}-{method}", {"problem": name, "method": method}, stream=name)
        for names, methods in groups
        for name in names
        for method in methods
    ]


def run_cell(config: Contest, cell: Cell, key: Any) -> CellResult:
    """The runs, measured; of a method that is missing, the reason."""
    if reason := peers.missing(cell["method"]):
        return {"problem": cell["problem"], "method": cell["method"], "skipped": reason}
    rows = [
        run_once(cell["problem"], cell["method"], key, seed, config.budget)
        for seed in range(config.num_seeds)
    ]
    return columns(rows)


def columns(rows: Sequence[Mapping[str, Any]]) -> CellResult:
    """Runs as a cell holds them; `runs_of` gives them back."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def run_once(name: str, method: str, key: Any, seed: int, budget: int) -> dict[str, Any]:
    """A run of a method on a problem, measured."""
    problem, outcome = problems.get(name), outcome_of(name, method, key, seed, budget)
    return {
        "problem": problem.name,
        "method": method,
        "budget": budget,
        "seed": seed,
        "group": problem.group,
        "kind": problem.kind,
        "tail_index": problem.tail_index,
        "evaluations": outcome.evaluations,
        "seconds": outcome.seconds,
        "compiling": outcome.compiling,
        "is_flagged": outcome.is_flagged,
        "notes": " ".join(outcome.notes),
        **metrics.as_row(metrics.measure(problem, outcome, budget)),
    }


def outcome_of(name: str, method: str, key: Any, seed: int, budget: int) -> peers.Outcome:
    """What a method leaves on a problem, with the time that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a sampler warns of is in its outcome
        return peers.run(problems.get(name), method, jax.random.fold_in(key, seed), budget)


def summarise(config: Contest, results: Mapping[str, CellResult]) -> Tables:
    return tables_of(results)


def tables_of(results: Mapping[str, CellResult]) -> Tables:
    """Those of any cells that hold runs."""
    skipped = {
        str(one["method"]): str(one["skipped"]) for one in results.values() if "skipped" in one
    }
    rows = [row for one in results.values() if "skipped" not in one for row in runs_of(one)]
    return _judgement.tables(rows, skipped)


def runs_of(runs: CellResult) -> Iterator[dict[str, Any]]:
    """Each run of a cell by itself."""
    for values in zip(*(np.asarray(column).tolist() for column in runs.values()), strict=True):
        yield dict(zip(runs, values, strict=True))


def checks(config: Contest, tables: Tables) -> list[Check]:
    return _judgement.checks(tables, config.budget)


def verdict(config: Contest, tables: Tables, checks: Sequence[Check]) -> Verdict:
    return _judgement.verdict(tables, checks, config.budget, f"With {_terms(config)}")


def _terms(config: Contest) -> str:
    """What is equal for all methods."""
    return f"{config.budget:,} evaluations"


def figures(config: Contest, tables: Tables) -> dict[str, Figure]:
    return {
        "contest-weights": _figures.weights(tables, config.budget, _terms(config)),
        "contest-efficiency": _figures.efficiency(tables, config.budget, _terms(config)),
    }


EXPERIMENT = Experiment(
    name="contest",
    title="A sampler that needs no tuning, against its peers",
    paper_item="beyond the paper",
    question="Does levymc.auto beat tuned peers at equal budgets, and warn where it does not?",
    profiles={
        "quick": Contest(
            problems=("double-well", "cauchy-10"),
            methods=(OURS, "nuts-dense", "mala"),
            budget=4000,
            num_seeds=2,
        ),
        "paper": Contest(
            problems=tuple(problems.names("final")),
            methods=METHODS,
            budget=200_000,
            num_seeds=5,
            development=tuple(problems.names("development")),
            development_methods=(OURS,),
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
