"""The contest at equal seconds: every peer gets the time that `levymc.auto` takes.

All methods of a problem run one after the other in the same process.  First `levymc.auto`, with
its budget of evaluations, after a call that compiles its programs; the median over the seeds is the
time that the others get.  A peer's budget is found by runs with another seed; where one of the runs
that count compiles something, that time is taken off.  The seconds that were measured are given
beside those that were intended.

Seconds are honest only where nothing else runs: one cell at a time, whatever `jobs` says, and a
quiet machine, which is yours to see to.

Departures: the paper has no such comparison.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from levymc_lab.framework import Cell, CellResult, Check, Table, Tables, Verdict

from . import _figures, _judgement, peers, problems
from .experiment import EXPERIMENT as EQUAL_BUDGETS
from .experiment import OURS, columns, outcome_of, run_once, runs_of, tables_of

PILOTS = 6  # runs that find a budget, at most
CLOSE = 1.1  # ratio of times at which it is found
ALIKE = 1.25  # largest ratio of measured to intended seconds, or its inverse, that is called equal
MOST = 100  # times the budget of levymc.auto: more would not fit into memory
TERMS = "equal seconds"


@dataclass(frozen=True)
class EqualSeconds:
    """Sizes.

    with_modes, with_heavy, with_light: peers on problems of each kind.
    budget: evaluations of `levymc.auto`.
    """

    problems: tuple[str, ...]
    with_modes: tuple[str, ...]
    with_heavy: tuple[str, ...]
    with_light: tuple[str, ...]
    budget: int
    num_seeds: int

    def peers(self, problem: str) -> tuple[str, ...]:
        kinds = {"modes": self.with_modes, "heavy": self.with_heavy, "light": self.with_light}
        return kinds[problems.get(problem).kind]


def cells(config: EqualSeconds) -> list[Cell]:
    """A cell for each problem, so that its methods are timed in one process."""
    return [Cell(name, {"problem": name}) for name in config.problems]


def run_cell(config: EqualSeconds, cell: Cell, key: Any) -> CellResult:
    """The runs of all methods, measured; without `levymc.auto` there is no time to give."""
    name = cell["problem"]
    if reason := peers.missing(OURS):
        return {"problem": name, "method": OURS, "skipped": reason}
    pilot = config.num_seeds  # the seed after those that count
    outcome_of(name, OURS, key, pilot, config.budget)
    rows = [run_once(name, OURS, key, seed, config.budget) for seed in range(config.num_seeds)]
    intended = float(np.median([row["seconds"] for row in rows]))
    for method in config.peers(name):

        def seconds_of(budget: int, method: str = method) -> float:
            return outcome_of(name, method, key, pilot, budget).seconds

        budget = fitting_budget(seconds_of, intended, config.budget)
        rows += [run_once(name, method, key, seed, budget) for seed in range(config.num_seeds)]
    return columns(
        [
            {**row, "budget": config.budget, "granted": row["budget"], "intended": intended}
            for row in rows
        ]
    )


def fitting_budget(seconds_of: Callable[[int], float], intended: float, first: int) -> int:
    """The budget that takes about so many seconds, as near as some trials come.

    >>> fitting_budget(lambda budget: 0.1 + budget / 1000, 2.0, 100)
    1818
    >>> fitting_budget(lambda budget: 1.0 if budget < 150 else 4.0, 1.5, 100)
    126
    """
    budget, distances = first, {}
    for _ in range(PILOTS):
        ratio = intended / max(seconds_of(budget), 1e-9)
        distances[budget] = abs(math.log(ratio))
        if distances[budget] < math.log(CLOSE):
            break
        budget = min(max(first // 10, round(budget * ratio)), MOST * first)
    return min(reversed(distances), key=lambda tried: distances[tried])  # of equal ones the last


def summarise(config: EqualSeconds, results: Mapping[str, CellResult]) -> Tables:
    found = dict(tables_of(results))
    rows = [row for one in results.values() if "skipped" not in one for row in runs_of(one)]
    if rows:
        found["seconds"] = Table.stack(
            "Seconds without compilation, median over the seeds, and those that were intended.",
            list(_times(rows)),
        )
    return found


def _times(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For each problem and method."""
    for labels, part in _judgement.grouped(rows):
        seconds = [row["seconds"] for row in part]
        yield {
            "problem": labels["problem"],
            "method": labels["method"],
            "intended": part[0]["intended"],
            "seconds": float(np.median(seconds)),
            "least": min(seconds),
            "most": max(seconds),
            "granted": part[0]["granted"],
            "evaluations": float(np.median([row["evaluations"] for row in part])),
        }


def checks(config: EqualSeconds, tables: Tables) -> list[Check]:
    """The bar of light tails, and whether seconds were equal."""
    found = list(_judgement.speed_checks(tables, config.budget))
    if "seconds" in tables:
        found.append(_equality(config, tables["seconds"]))
    return found


def _equality(config: EqualSeconds, times: Table) -> Check:
    """Of those that got as many evaluations as they needed; that is nearly all."""
    ratios, capped = {}, []
    for row in times.rows():
        name = f"{row['problem']} ({row['method']})"
        ratios[name] = row["seconds"] / row["intended"]
        if row["granted"] == MOST * config.budget and ratios[name] < 1:
            capped.append(name)
            del ratios[name]
    furthest = max(ratios, key=lambda name: abs(math.log(ratios[name])))
    return Check.below(
        "seconds, measured over intended: furthest from one, or its inverse",
        max(ratios[furthest], 1 / ratios[furthest]),
        ALIKE,
        reason=f"medians over the seeds; furthest on {furthest}; with {MOST} times the "
        f"evaluations still not as long: {', '.join(capped) or 'none'}",
    )


def verdict(config: EqualSeconds, tables: Tables, checks: Sequence[Check]) -> Verdict:
    return _judgement.verdict(tables, checks, config.budget, "With equal seconds")


def figures(config: EqualSeconds, tables: Tables) -> dict[str, Figure]:
    return {
        "contest-seconds-weights": _figures.weights(tables, config.budget, TERMS),
        "contest-seconds-efficiency": _figures.efficiency(tables, config.budget, TERMS),
    }


EXPERIMENT = dataclasses.replace(
    EQUAL_BUDGETS,
    name="contest-seconds",
    title="The same contest at equal seconds",
    question="Does levymc.auto beat tuned peers that get the same time?",
    profiles={
        "quick": EqualSeconds(
            problems=("four-modes", "logistic-20"),
            with_modes=("tempering",),
            with_heavy=(),
            with_light=("nuts-dense",),
            budget=4000,
            num_seeds=2,
        ),
        "paper": EqualSeconds(
            problems=(
                "gaussians-40", "rings-concentric", "two-modes-50", "galaxies",
                "cauchy-rotated-10", "cauchy-logistic",
                "logistic-40", "gaussian-50", "pumps", "surgical", "stable-regression",
                "eight-schools-noncentred",
            ),
            with_modes=("nuts-dense", "tempering", "smc"),
            with_heavy=("nuts-dense", "tempering"),
            with_light=("nuts-dense", "nuts-diagonal"),
            budget=200_000,
            num_seeds=5,
        ),
    },
    captions={
        "contest-seconds-weights": "Total variation of the weights of the modes at equal seconds, "
        "for each problem and method: the dot is the median over seeds, the whisker reaches to the "
        "worst. The dashed line is the bar; in the shaded part the answer is wrong. Hollow dots "
        "warned of theirs.",
        "contest-seconds-efficiency": "Effective sample size of the worst coordinate, bulk or "
        "tail, over that of NUTS with a dense metric, per evaluation and per second, on problems "
        "with one mode.",
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    runs_alone=True,
)  # fmt: skip
