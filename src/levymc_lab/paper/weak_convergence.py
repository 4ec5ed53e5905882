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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import schedules
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLUE, GREEN, GREY, PURPLE, new_figure, note

from . import _double_well as well
from ._shared import failures, legend_below, plain_ticks, wide
from ._weighted import fitted_slope, weighted_estimates

ALPHA = 1.7
LOCAL, LEFT, POSITION = "cos x", "left well", "x"
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    LOCAL: jnp.cos,
    LEFT: lambda x: jax.nn.sigmoid(-4 * x),  # smooth; nothing of note lies where it is not 0 or 1
    POSITION: lambda x: x,
}
# a and b.  With these the first steps are about 1, as large as taming bears.
SCHEDULES = {"b = 0.2": (0.01, 0.2), "b = 1/3": (1.0, 1 / 3), "b = 0.6": (10.0, 0.6)}
CONSTANT, STEP_SIZE = "constant", 0.05
NAMES = (*SCHEDULES, CONSTANT)
SETTLED = 300.0  # ten relaxation times: hops are many, and chance follows its law
FITTED = 4  # slopes are fitted to the last so many doublings of N
SLACK = 0.08  # of a slope, for what is not yet asymptotic


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
    return estimates(cell["steps"], config.lengths, config.num_repeats, key)


def estimates(steps: str, lengths: np.ndarray, num_repeats: int, key: Any) -> dict[str, np.ndarray]:
    """ν_N(g) for each N of `lengths`, g and repeat, and H_N; repeats start in either well."""
    schedule = _schedule(steps)
    sampler = well.algorithm(well.Sampler("FLMC, tamed", ALPHA, schedule))
    wells = jnp.float32([well.LEFT_MINIMUM, well.RIGHT_MINIMUM])
    starts = jnp.resize(wells, (num_repeats,))
    return weighted_estimates(sampler, schedule, functions, starts, lengths, key)


def functions(x: Any) -> Array:
    """Each g of x."""
    return jnp.stack([wide(g(x)) for g in FUNCTIONS.values()])


def _schedule(name: str) -> schedules.Schedule:
    if name == CONSTANT:
        return schedules.constant(STEP_SIZE)
    return schedules.polynomial(*SCHEDULES[name])


def exact() -> dict[str, float]:
    """∫ g π for each g, by a sum that converges spectrally."""
    x = np.linspace(-well.BEYOND, well.BEYOND, 4001)
    law = well.density(x) * (x[1] - x[0])
    return {
        name: float((np.asarray(g(jnp.asarray(x))) * law).sum()) for name, g in FUNCTIONS.items()
    }


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
    errors = result["estimates"][:, place] - exact()[function]
    return {
        "steps": name,
        "function": function,
        "num_steps": config.lengths,
        "time": result["time"],
        "rms": root_mean_square(errors),
        "mean": errors.mean(axis=1),
        "standard_error": errors.std(axis=1, ddof=1) / np.sqrt(config.num_repeats),
    }


def _slope(
    config: WeakConvergence, name: str, function: str, result: CellResult, place: int
) -> dict[str, Any]:
    last = slice(-FITTED - 1, None)
    errors = result["estimates"][last, place] - exact()[function]
    slope, slope_error = fitted_slope(config.lengths[last], [errors], root_mean_square)
    return {
        "steps": name,
        "function": function,
        "slope": slope,
        "slope_error": slope_error,
        "theory": theory(name, function),
        "settled": bool(result["time"][last][0] >= SETTLED),
    }


def root_mean_square(errors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(errors**2, axis=-1))


def theory(name: str, function: str) -> float:
    """The slope of the steps' part for cos x, of chance's for the left well; for x there is none.

    The tamed step comes back from a jump of size J in J/c steps.  At a fixed step the mean of |x|
    is then a sum of J² over jumps, which has no end: their sizes have a density like J^{-1-α}.
    """
    if function == POSITION:
        return math.nan
    b = SCHEDULES[name][1] if name in SCHEDULES else 0.0
    return -min(b, 1 - b) if function == LOCAL else -(1 - b) / 2


def checks(config: WeakConvergence, tables: Tables) -> list[Check]:
    """The slopes of the bounded g."""
    rows = tables["slopes"].rows()
    return [_check_slope(row) for row in rows if _is_checked(row)]


def _is_checked(row: dict[str, Any]) -> bool:
    """Chance follows its law only after many hops; and a constant step's part of it is no claim."""
    if row["function"] == LEFT:
        return row["steps"] != CONSTANT and row["settled"]
    return row["function"] == LOCAL


def _check_slope(row: dict[str, Any]) -> Check:
    part = "the steps'" if row["function"] == LOCAL else "chance's"
    return Check.near(
        f"slope of the error of {row['function']}, {row['steps']}",
        row["slope"],
        row["theory"],
        SLACK + 4 * row["slope_error"],
        reason=f"{part} part is the larger; four bootstrap errors, and {SLACK:g} for what is not "
        "yet asymptotic",
    )


def verdict(config: WeakConvergence, tables: Tables, checks: Sequence[Check]) -> Verdict:
    longest = tables["errors"]["num_steps"].max()
    if failed := failures(checks):
        return Verdict("not reproduced", f"These do not hold: {failed}.")
    if not any(LEFT in check.name for check in checks):
        words = f"With N = {longest:,} chains have hopped too little to tell a rate."
        return Verdict("measured here", words)
    last = tables["errors"].where(steps=CONSTANT, function=LOCAL).rows()[-1]
    return Verdict(
        "reproduced",
        "With decreasing steps and the exact drift, tamed, the error of the weighted estimator "
        f"falls as a power of N up to N = {longest:,}. Slopes, with those of theory: "
        f"for cos x {_fitted(tables, LOCAL)}; for the mass of the left well "
        f"{_fitted(tables, LEFT)}. A constant step of {STEP_SIZE:g} stays at an error of "
        f"{last['rms']:.2g} for cos x. The corollary itself does not cover this target, whose "
        "exact drift is not Lipschitz; nor does taming serve g = x, whose error has peaks of up to "
        f"{_worst(tables):.2g} as late as in the last {FITTED} doublings: a tamed step is long on "
        "its way back from a far jump, and at a fixed step |x| has no mean.",
    )


def _worst(tables: Tables) -> float:
    """The largest error of x where slopes are fitted."""
    rows = tables["errors"].where(function=POSITION)
    late = rows["num_steps"] >= rows["num_steps"].max() / 2**FITTED
    return float(rows["rms"][late].max())


def _fitted(tables: Tables, function: str) -> str:
    rows = tables["slopes"].where(function=function).rows()
    return ", ".join(
        f"{row['slope']:.2f} ({row['theory']:.2f}) for {row['steps']}"
        for row in rows
        if row["steps"] in SCHEDULES
    )


COLOURS = dict(zip(NAMES, (PURPLE, BLUE, GREEN, GREY), strict=True))
MARKS = dict(zip(NAMES, "s^Do", strict=True))
TITLES = {
    LOCAL: "cos x: the steps' part",
    LEFT: "Left well: chance's part",
    POSITION: "x: far jumps rule",
}
NOTES = {
    LOCAL: "thin: N$^{-\\min(b,\\,1-b)}$",
    LEFT: "thin: N$^{-(1-b)/2}$",
    POSITION: "tamed: no rate",
}


def figures(config: WeakConvergence, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 4.8)
    panels = figure.subplots(1, len(FUNCTIONS))
    for axes, function in zip(panels, FUNCTIONS, strict=True):
        _draw_errors(axes, tables["errors"].where(function=function))
        _draw_theory(axes, tables, function)
        axes.set(title=TITLES[function], xlabel="steps N")
        plain_ticks(axes.yaxis)
        note(axes, NOTES[function])
    panels[0].set_ylabel("root mean square error")
    legend_below(figure, panels[0], 4)
    return {"weak-convergence": figure}


def _draw_errors(axes: Axes, table: Table) -> None:
    for name in NAMES:
        part = table.where(steps=name)
        style = {"color": COLOURS[name], "marker": MARKS[name], "ms": 4.5}
        label = "constant η = 0.05" if name == CONSTANT else f"η ∝ n$^{{-b}}$, {name}"
        axes.loglog(part["num_steps"], part["rms"], **style, label=label)


def _draw_theory(axes: Axes, tables: Tables, function: str) -> None:
    """A line of the slope of theory along the points that were fitted, a little below them."""
    for row in tables["slopes"].where(function=function).rows():
        if row["steps"] == CONSTANT or np.isnan(row["theory"]):
            continue
        part = tables["errors"].where(function=function, steps=row["steps"])
        steps, errors = part["num_steps"][-FITTED - 1 :], part["rms"][-FITTED - 1 :]
        level = np.exp(np.mean(np.log(errors) - row["theory"] * np.log(steps)))
        axes.loglog(
            steps, 0.8 * level * steps ** row["theory"], color=COLOURS[row["steps"]], lw=0.9
        )


EXPERIMENT = Experiment(
    name="weak-convergence",
    title="Decreasing steps against a constant one",
    paper_item="Corollary 1, beyond it",
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
