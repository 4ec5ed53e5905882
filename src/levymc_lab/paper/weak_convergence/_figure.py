"""The picture of the experiment `weak_convergence`."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import BLUE, GREEN, GREY, PURPLE, new_figure, note

from ._chains import CONSTANT, FUNCTIONS, LEFT, LOCAL, NAMES, POSITION
from ._checks import FITTED

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


def draw(tables: Tables) -> Figure:
    figure = new_figure(11, 4.8)
    panels = figure.subplots(1, len(FUNCTIONS))
    for axes, function in zip(panels, FUNCTIONS, strict=True):
        _draw_errors(axes, tables["errors"].where(function=function))
        _draw_theory(axes, tables, function)
        axes.set(title=TITLES[function], xlabel="steps N")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        note(axes, NOTES[function])
    panels[0].set_ylabel("root mean square error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


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
