"""The picture of ``levymc demo``."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Tables
from levymc_lab.framework.style import GREY, INK, SAMPLERS, new_figure, note

from .. import _double_well as well

NOISE = {"ULA": "Gaussian noise", "FLA": "Lévy noise", "FLMC": "Lévy noise, exact drift"}
REACH = 5.7


def draw(tables: Tables) -> Figure:
    """A row for each sampler: a chain against time, and all draws, on the same axis."""
    figure = new_figure(10, 7)
    rows = tables["scores"].rows()
    panels = figure.subplots(len(rows), 2, sharey=True, width_ratios=(4, 1), squeeze=False)
    for (left, right), row in zip(panels, rows, strict=True):
        _draw_path(left, tables, row)
        _draw_histogram(right, tables, row)
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    first = panels[0, 0]
    first.text(0.01, 0.53, "top of the barrier", color=GREY, fontsize=9, transform=first.transAxes)
    panels[-1, 0].set_xlabel("time")
    panels[-1, 1].set_xlabel("density")
    return figure


def _draw_path(axes: Axes, tables: Tables, row: dict[str, Any]) -> None:
    name = row["sampler"]
    path = tables["paths"].where(sampler=name)
    axes.plot(path["time"], path["position"], color=SAMPLERS[name], linewidth=0.7)
    axes.set(title=f"{name}: {NOISE[name]}", ylabel="x", ylim=(-REACH, REACH))
    axes.set(xlim=(0, path["time"].max()))
    axes.set_yticks([-4, -2, 0, 2, 4])
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    note(axes, f"{row['hops']:.0f} hops a chain" if row["hops"] else "no hops")


def _draw_histogram(axes: Axes, tables: Tables, row: dict[str, Any]) -> None:
    part = tables["histograms"].where(sampler=row["sampler"])
    height = part["x"][1] - part["x"][0]
    colour = SAMPLERS[row["sampler"]]
    axes.barh(part["x"], part["found"], height, color=colour, alpha=0.55, linewidth=0)
    grid = np.linspace(-REACH, REACH, 400)
    axes.plot(well.density(grid), grid, color=INK, linewidth=1.2)
    axes.set(xlim=(0, 1.35))
    note(axes, f"TV {row['tv']:.3f}")
