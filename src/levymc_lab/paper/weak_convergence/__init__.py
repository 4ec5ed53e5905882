r"""Corollary 1: does the weighted estimator of FLMC converge with decreasing steps, and how fast?

.. math:: ν_N(g) = \frac{1}{H_N} \sum_{n ≤ N} η_n\, g(X_n), \qquad H_N = \sum_{n ≤ N} η_n, \qquad
   η_n = (a/n)^b

The error has two parts: the steps' own, of order Σ η² / Σ η, which is N^{-min(b, 1-b)}; and that of
chance, of order H_N^{-1/2}, which is N^{-(1-b)/2}.  A constant step leaves the first where it is.
Which part is seen depends on g: cos x feels the shape of each well, and the first; the mass of the
left well is known only after many hops, and shows the second.

References: [simsekli2017], Corollary 1; [panloup2008].  Departures: the corollary asks for a drift
that is Lipschitz, and tells no rate.  The exact drift of the double well grows like 1/φ, and
Euler's step explodes: here it is tamed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from levymc_lab.framework import Cell, CellResult, Experiment, Table, Tables

from . import _chains as chains
from ._chains import FUNCTIONS, LOCAL, NAMES, POSITION, SCHEDULES
from ._checks import FITTED, checks, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTLED = 300.0  # ten relaxation times: hops are many, and chance follows its law
NUM_BOOTSTRAPS = 400


@dataclass(frozen=True)
class WeakConvergence:
    """N runs over the powers of two from 2^`first` to 2^`last`."""

    num_repeats: int
    last: int
    first: int = 6

    @property
    def lengths(self) -> np.ndarray:
        return 2 ** np.arange(self.first, self.last + 1)


def cells(config: WeakConvergence) -> list[Cell]:
    return [Cell(f"steps-{i}", {"steps": name}) for i, name in enumerate(NAMES)]


def run_cell(config: WeakConvergence, cell: Cell, key: Any) -> CellResult:
    return chains.estimates(cell["steps"], config.lengths, config.num_repeats, key)


def summarise(config: WeakConvergence, results: Mapping[str, CellResult]) -> Tables:
    parts = [
        (name, function, results[f"steps-{i}"], place)
        for i, name in enumerate(NAMES)
        for place, function in enumerate(FUNCTIONS)
    ]
    return {
        "errors": Table.stack(
            f"Error of the weighted estimator over {config.num_repeats} repeats after N steps and "
            "the time H: root mean square, and its mean with standard error.",
            (_errors(config, *part) for part in parts),
        ),
        "slopes": Table.stack(
            f"Slope of log error against log N over the last {FITTED} doublings, with its "
            "bootstrap error, and what theory says of the part that is larger.",
            (_slope(config, *part) for part in parts),
        ),
    }


def _errors(
    config: WeakConvergence, name: str, function: str, result: CellResult, place: int
) -> dict[str, Any]:
    errors = result["estimates"][:, place] - chains.exact()[function]
    return {
        "steps": name,
        "function": function,
        "num_steps": config.lengths,
        "time": result["time"],
        "rms": np.sqrt(np.mean(errors**2, axis=1)),
        "mean": errors.mean(axis=1),
        "standard_error": errors.std(axis=1, ddof=1) / np.sqrt(config.num_repeats),
    }


def _slope(
    config: WeakConvergence, name: str, function: str, result: CellResult, place: int
) -> dict[str, Any]:
    last = slice(-FITTED - 1, None)
    squares = (result["estimates"][last, place] - chains.exact()[function]) ** 2
    chosen = np.random.default_rng(0).integers(
        config.num_repeats, size=(NUM_BOOTSTRAPS, config.num_repeats)
    )
    logs = np.log2(config.lengths[last])
    again = np.polyfit(logs, np.log2(squares[:, chosen].mean(axis=2)) / 2, 1)[0]
    return {
        "steps": name,
        "function": function,
        "slope": np.polyfit(logs, np.log2(squares.mean(axis=1)) / 2, 1)[0],
        "slope_error": again.std(),
        "theory": theory(name, function),
        "settled": bool(result["time"][last][0] >= SETTLED),
    }


def theory(name: str, function: str) -> float:
    """The slope of the steps' part for cos x, of chance's for the left well; for x there is none.

    The tamed step comes back from a jump of size J in J/c steps.  At a fixed step the mean of |x|
    is then a sum of J² over jumps, which has no end: their sizes have a density like J^{-1-α}.
    """
    if function == POSITION:
        return math.nan
    b = SCHEDULES[name][1] if name in SCHEDULES else 0.0
    return -min(b, 1 - b) if function == LOCAL else -(1 - b) / 2


def figures(config: WeakConvergence, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"weak-convergence": draw(tables)}


EXPERIMENT = Experiment(
    name="weak-convergence",
    title="Decreasing steps against a constant one",
    paper_item="Corollary 1",
    question="Does the weighted estimator converge with decreasing steps, and at which rate?",
    profiles={
        "quick": WeakConvergence(num_repeats=32, last=12),
        "paper": WeakConvergence(num_repeats=64, last=18),
    },
    captions={
        "weak-convergence": "Root mean square error of the weighted estimator against the number "
        "of steps N, on logarithmic scales, for three decreasing schedules and a constant step: "
        "for cos x, for the mass of the left well, and for x itself. Thin lines have the slopes "
        "of theory."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
