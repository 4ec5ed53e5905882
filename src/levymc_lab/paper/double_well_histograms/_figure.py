"""The picture of the experiment `double_well_histograms`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Tables
from levymc_lab.framework.style import GREY, INK, SAMPLERS, new_figure, note

from .. import _double_well as well

TALLEST = 1.5  # the left well alone reaches 1.27


def draw(tables: Tables) -> Figure:
    figure = new_figure(13, 6.6)
    panels = figure.subplots(2, 4).ravel()
    rows = tables["scores"].rows()
    _draw_potential(panels[0])
    for axes, row in zip(panels[1:], rows, strict=False):
        _draw_histogram(axes, tables, row)
    _draw_bars(panels[-1], rows)
    for axes in (panels[1], panels[4]):
        axes.set_ylabel("density")
        axes.tick_params(labelleft=True)
    for axes in panels[4:7]:
        axes.set_xlabel("x")
    return figure


def colour_of(name: str) -> Any:
    return SAMPLERS[name.partition(",")[0]]


def title_of(name: str) -> str:
    """`FLMC, split` as `FLMC split`, with room beside it."""
    return name.replace(",", "")


def _draw_potential(axes: Axes) -> None:
    x = np.linspace(-5.6, 5.6, 400)
    axes.plot(x, well.potential(x), color=INK)
    bottoms = np.array([well.LEFT_MINIMUM, well.RIGHT_MINIMUM])
    depths = well.potential(bottoms)
    top = float(well.potential(0.0))
    axes.annotate(
        "",
        (0, top),
        (0, depths[0]),
        arrowprops={"arrowstyle": "<->", "color": GREY, "shrinkA": 0, "shrinkB": 0},
    )
    axes.text(0.25, (top + depths[0]) / 2, "17", color=GREY, va="center", fontsize=11)
    axes.plot(bottoms[0], depths[0], "o", color=INK, ms=6)
    axes.annotate(
        "start", (bottoms[0], depths[0]), (0, -8), textcoords="offset points", ha="center", va="top"
    )
    axes.set(title="Potential U(x)", ylim=(-17.5, 12), xlim=(-6, 6), xticks=(-4, -2, 0, 2, 4))


def _draw_histogram(axes: Axes, tables: Tables, row: dict[str, Any]) -> None:
    name = row["sampler"]
    part = tables["histograms"].where(sampler=name)
    width = part["x"][1] - part["x"][0]
    axes.bar(part["x"], part["found"], width, color=colour_of(name), alpha=0.55, linewidth=0)
    grid = np.linspace(-6, 6, 400)
    axes.plot(grid, well.density(grid), color=INK, linewidth=1.2)
    axes.set(title=title_of(name), xlim=(-6, 6), ylim=(0, TALLEST), xticks=(-4, -2, 0, 2, 4))
    axes.set_yticks([0, 0.5, 1])
    axes.tick_params(labelleft=False)
    note(axes, f"α = {row['alpha']:g}, η = {row['step_size']:g}")
    axes.text(0.97, 0.95, _remark(row), transform=axes.transAxes, ha="right", va="top", fontsize=9)


def _remark(row: dict[str, Any]) -> str:
    lines = [
        f"TV {row['tv']:.3f}",
        f"left mass {row['left_mass_error']:+.3f}".replace("-", "−"),
        f"{row['hops']:.1f} hops a run" if row["hops"] else "no hops",
    ]
    if row["exploded"]:
        lines.append(f"{row['exploded']} of {row['runs']} exploded")
    return "\n".join(lines)


def _draw_bars(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Total variation as a bar, and the part of it that the wells' shape has."""
    for place, row in enumerate(rows):
        colour = colour_of(row["sampler"])
        axes.barh(place, row["tv"], 0.4, color=colour, alpha=0.4, linewidth=0)
        axes.barh(place, row["tv_of_shape"], 0.4, color=colour, linewidth=0)
        label = f"{title_of(row['sampler'])}  {row['tv']:.3f}"
        axes.text(0.004, place - 0.28, label, va="bottom", fontsize=9)
    axes.set_yticks([])
    axes.set(title="TV to the target", xlim=(0, 0.5), ylim=(len(rows) - 0.5, -0.9))
    axes.grid(visible=False, axis="y")
    axes.set_xticks([0, 0.1, 0.2, 0.3, 0.4])
    note(axes, "dark: shape alone")
