"""The picture of the experiment `invariance`."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import GREEN, GREY, INK, ORANGE, SAMPLERS, new_figure, note

from . import EXACT, LEADING, PAPER, SHORT

COLOURS = {EXACT: SAMPLERS["FLMC"], PAPER: GREEN, SHORT: ORANGE, LEADING: SAMPLERS["FLA"]}
MARKS = {EXACT: "o", PAPER: "s", SHORT: "^", LEADING: "D"}
FLOOR = 1e-13


def draw(tables: Tables) -> Figure:
    figure = new_figure(11, 7.6)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.1), hspace=0.04)[:, 0]
    _draw_balance(top.subplots(1, 2, sharey=True), tables["balance"])
    residual, largest = bottom.subplots(1, 2)
    _draw_residual(residual, tables["balance"])
    _draw_largest(largest, tables["residuals"])
    return figure


def _draw_balance(panels: np.ndarray, table: Table) -> None:
    alpha = table["alpha"][0]
    for axes, name, words in zip(
        panels, (EXACT, LEADING), ("jumps and drift cancel", "they do not"), strict=True
    ):
        part = table.where(drift=name)
        axes.plot(part["x"], part["jumps"], color=GREY, label="the jumps, $-(-Δ)^{α/2}π$")
        axes.plot(part["x"], part["flow"], color=COLOURS[name], label=f"the drift, $-$({name}π)′")
        total = part["jumps"] + part["flow"]
        axes.plot(part["x"], total, color=INK, ls=(0, (2, 1.5)), lw=1.4, label="their sum")
        axes.set(title=f"Under {name} {words}", xlabel="x", xlim=(-6, 6))
        axes.legend(loc="upper center", fontsize=9, handlelength=1.6)
        note(axes, f"α = {alpha:g}")
    panels[0].set_ylabel("density a unit of time")


def _draw_residual(axes: Axes, table: Table) -> None:
    for name, colour in COLOURS.items():
        part = table.where(drift=name)
        size = np.abs(part["jumps"] + part["flow"]) / np.abs(part["jumps"]).max()
        axes.semilogy(part["x"], np.maximum(size, FLOOR), color=colour, lw=1.3)
    axes.set(title="What is left, over the largest term", xlabel="x", xlim=(-8, 8))
    axes.set_ylim(FLOOR, 10)
    note(axes, f"α = {table['alpha'][0]:g}")


def _draw_largest(axes: Axes, table: Table) -> None:
    for name, colour in COLOURS.items():
        part = table.where(drift=name)
        style = {"color": colour, "marker": MARKS[name], "ms": 5}
        axes.semilogy(part["alpha"], part["largest"], **style, label=name)
    axes.set(title="Its largest value", xlabel="α", ylim=(1e-10, 30))
    axes.set_xticks(np.unique(table["alpha"]))
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.38), labelcolor="linecolor")
    note(axes, "h = 0.06")
