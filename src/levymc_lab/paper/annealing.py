r"""Future direction (i): does annealing by Lévy jumps find the lowest minimum?

`levymc.minimize`, SciPy's dual annealing and basin hopping (all three with gradients), differential
evolution and CMA-ES (which take none) search fifteen standard functions of 2 to 50 variables for
their lowest value, with the same number of evaluations each,

.. math:: \text{found} \iff \min_n U(x_n) - \min U \le 10^{-4} \max(1, |\min U|) .

An evaluation with its gradient counts as one for all, which favours the methods that use one: the
best peer with gradients and the best without are reported apart.  Ours and differential evolution
know the budget, the schedule of dual annealing does not; what else differs is in `_minimizers`.

References: [simsekli2017], section 5.  Departures: the paper names the use and measures nothing.
The constants of `levymc.minimize` were chosen on Rastrigin's and Ackley's functions in 10
dimensions and Styblinski and Tang's in 20.  None of the fifteen is one of these, but four are of
their families, in other dimensions or rotated: mean rates are given without them, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm

from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import new_figure

from ._landscapes import LANDSCAPES
from ._minimizers import METHODS, OURS, PEERS, WITHOUT_GRADIENTS, missing, search
from ._shared import failures, groups

FAMILIAR = ("rotated Rastrigin", "Rastrigin", "Styblinski–Tang", "Ackley")
CLASSES = {
    "with gradients": tuple(peer for peer in PEERS if peer not in WITHOUT_GRADIENTS),
    "without gradients": WITHOUT_GRADIENTS,
}
FALSE_ALARM = 0.05  # of all comparisons of a function and a peer together
BELOW = 1e-6  # of max(1, |min U|): rounding, and digits of the published minima


@dataclass(frozen=True)
class Annealing:
    """Sizes: evaluations of a search, and how many searches from random starts."""

    num_seeds: int
    budget: int
    functions: tuple[str, ...] = tuple(LANDSCAPES)
    methods: tuple[str, ...] = METHODS


def needs(config: Annealing) -> None:
    for method in config.methods:
        if reason := missing(method):
            raise ValueError(reason)


def cells(config: Annealing) -> list[Cell]:
    """A cell for each function and method; of a function, all methods share the random keys."""
    return [
        Cell(
            f"{tuple(LANDSCAPES).index(function):02}-{method.replace(' ', '-')}",
            {"function": function, "method": method},
            stream=function,
        )
        for function in config.functions
        for method in config.methods
    ]


def run_cell(config: Annealing, cell: Cell, key: Any) -> CellResult:
    landscape = LANDSCAPES[cell["function"]]
    found = [
        search(cell["method"], landscape, key_search, config.budget)
        for key_search in jax.random.split(key, config.num_seeds)
    ]
    return {
        "gap": np.array([one.value for one in found]) - landscape.lowest,
        "evaluations": np.array([one.evaluations for one in found]),
    }


def summarise(config: Annealing, results: Mapping[str, CellResult]) -> Tables:
    rows = [_row(cell, results[cell.id]) for cell in cells(config) if cell.id in results]
    return {
        "searches": Table.stack(
            f"Of {config.num_seeds} searches of {config.budget:,} evaluations, how many found the "
            "lowest value; and by how much the lowest that a search met exceeds it, in units of "
            "that value where it is beyond one.",
            rows,
        ),
        "means": Table.stack(
            "The rate of success, averaged over the functions; and over those that are not of the "
            "families on which the constants of levymc.minimize were chosen (NaN if there are "
            "none).",
            [_mean(method, rows) for method in dict.fromkeys(row["method"] for row in rows)],
        ),
    }


def _mean(method: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    of_method = [row for row in rows if row["method"] == method]
    elsewhere = [row["rate"] for row in of_method if row["function"] not in FAMILIAR]
    return {
        "method": method,
        "gradients": method not in WITHOUT_GRADIENTS,
        "rate": float(np.mean([row["rate"] for row in of_method])),
        "rate_elsewhere": float(np.mean(elsewhere)) if elsewhere else math.nan,
    }


def _row(cell: Cell, result: CellResult) -> dict[str, Any]:
    landscape = LANDSCAPES[cell["function"]]
    gap = np.asarray(result["gap"])
    relative = gap / max(1.0, abs(landscape.lowest))
    return {
        "function": cell["function"],
        "dimension": landscape.dimension,
        "method": cell["method"],
        "found": int(np.sum(gap <= landscape.close)),
        "rate": float(np.mean(gap <= landscape.close)),
        "least_gap": float(np.min(relative)),
        "median_gap": float(np.median(relative)),
        "evaluations": int(np.max(result["evaluations"])),
    }


def checks(config: Annealing, tables: Tables) -> list[Check]:
    searches, means = tables["searches"], tables["means"]
    found = [
        Check.below(
            "most evaluations of a search",
            searches["evaluations"].max(),
            config.budget,
            reason="all methods have the same",
        ),
        Check.above(
            "lowest value met, less the known one",
            searches["least_gap"].min(),
            -BELOW,
            reason="relative where it exceeds one; nothing can be lower than the minimum",
        ),
    ]
    return [*found, *(_check_mean(means, peers, score) for peers, score in _bars(means))]


def _bars(means: Table) -> list[tuple[str, str]]:
    """The classes of peers and the scores in which ours is compared with their best."""
    there = means["method"].tolist()
    if OURS not in there:
        return []
    scores = [s for s in ("rate", "rate_elsewhere") if np.isfinite(means[s]).all()]
    return [(name, s) for name in CLASSES if set(CLASSES[name]) & set(there) for s in scores]


def _best(means: Table, peers: str, score: str) -> dict[str, Any]:
    rows = [row for row in means.rows() if row["method"] in CLASSES[peers]]
    return max(rows, key=lambda row: row[score])


def _check_mean(means: Table, peers: str, score: str) -> Check:
    best = _best(means, peers, score)
    where = "" if score == "rate" else ", families elsewhere than where its constants are from"
    return Check.above(
        f"mean rate of success of levymc.minimize, {best['method']} the best peer {peers}{where}",
        means.where(method=OURS)[score][0],
        best[score],
        reason="that of the best such peer: the direction pays if it is exceeded",
        explanation="another method may be the better one on the average",
    )


def margin(config: Annealing) -> float:
    """By which no two rates differ that are the same, of any function and peer, in 95 % of runs.

    By the normal law where it is widest, at rates of a half, and Bonferroni's inequality.  So the
    best of four peers is not favoured for being the best of four.
    """
    comparisons = len(config.functions) * max(len(config.methods) - 1, 1)
    return float(norm.isf(FALSE_ALARM / 2 / comparisons)) * math.sqrt(0.5 / config.num_seeds)


def judged(config: Annealing, searches: Table, peers: Sequence[str]) -> dict[str, list[str]]:
    """The functions where our rate exceeds all of these by the margin, misses one's, or neither."""
    lists: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for function, part in groups(searches, "function"):
        rates = dict(zip(part["method"].tolist(), part["rate"].tolist(), strict=True))
        others = [rates[peer] for peer in peers if peer in rates]
        if OURS not in rates or not others:
            continue
        lead = rates[OURS] - max(others)
        kind = "ahead" if lead > margin(config) else "behind" if lead < -margin(config) else "level"
        lists[kind].append(function)
    return lists


def verdict(config: Annealing, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"The comparison is not sound: {failed}.")
    parts = [_against(config, tables, peers) for peers in CLASSES]
    means = ", ".join(
        f"{row['method']} {row['rate']:.2f} ({row['rate_elsewhere']:.2f})"
        for row in tables["means"].rows()
    )
    return Verdict(
        "measured here",
        f"{' '.join(parts)} Level means rates within {margin(config):.2f}, beyond which chance "
        f"alone puts any of all pairs in one run of twenty. Mean rates of success (without the "
        f"families on which its constants were chosen): {means}.",
    )


def _against(config: Annealing, tables: Tables, peers: str) -> str:
    lists = {
        kind: ", ".join(names) or "none"
        for kind, names in judged(config, tables["searches"], CLASSES[peers]).items()
    }
    return (
        f"Against each peer {peers} ({', '.join(CLASSES[peers])}) it pays on: {lists['ahead']}. It "
        f"does not on: {lists['behind']}. Level: {lists['level']}."
    )


def figures(config: Annealing, tables: Tables) -> dict[str, Figure]:
    """Rates as shades with their numbers, a row for each function and a column for each method."""
    searches = tables["searches"]
    rows = list(groups(searches, "function"))
    methods = list(dict.fromkeys(searches["method"].tolist()))
    rates = np.full((len(rows), len(methods)), np.nan)
    for place, (_, part) in enumerate(rows):
        for method, rate in zip(part["method"].tolist(), part["rate"].tolist(), strict=True):
            rates[place, methods.index(method)] = rate
    figure = new_figure(9, 1.6 + 0.36 * len(rows))
    axes = figure.subplots()
    axes.imshow(rates, cmap="Blues", vmin=0, vmax=1.25, aspect="auto")
    for (row, column), rate in np.ndenumerate(rates):
        if np.isfinite(rate):
            colour = "white" if rate > 0.7 else "#2b2b2b"
            axes.text(column, row, f"{rate:.2f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(methods)), [method.replace(" ", "\n") for method in methods])
    axes.set_yticks(range(len(rows)), [f"{name}, {part['dimension'][0]}" for name, part in rows])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    of = f"{config.num_seeds} searches of {config.budget:,} evaluations"
    axes.set_xlabel(f"share of {of} that found the minimum")
    return {"annealing": figure}


EXPERIMENT = Experiment(
    name="annealing",
    title="Global minima by annealed Lévy jumps",
    paper_item="Future direction (i)",
    question="Does annealing by Lévy jumps find the lowest minimum more often than its peers?",
    profiles={
        "quick": Annealing(
            num_seeds=2, budget=1500, functions=("Goldstein–Price", "Shekel", "Hartmann")
        ),
        "paper": Annealing(num_seeds=50, budget=10_000),
    },
    captions={
        "annealing": "How often each method found the lowest value of each function; names are "
        "followed by the number of variables. The first three methods use gradients, each for the "
        "price of a value; the last two do not."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    needs=needs,
    shows_parts=True,
)
