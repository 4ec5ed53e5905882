"""The picture of the experiment `drift_accuracy`."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import BLUE, GREY, INK, ORANGE, VERMILLION, new_figure, note

SHOWN_ALPHA = 1.7  # where one α stands for all
SPACING = 0.06


def draw(tables: Tables) -> Figure:
    figure = new_figure(9.5, 7.8)
    (drifts, errors), (kappa, radius) = figure.subplots(2, 2)
    shown = tables["drifts"].where(alpha=SHOWN_ALPHA)
    _draw_drifts(drifts, shown)
    _draw_errors(errors, shown)
    _draw_kappa(kappa, tables["kappa"])
    _draw_radius(radius, tables["drifts"])
    return figure


def _colour(alpha: float) -> Any:
    """As dark to bright as elsewhere, but wider apart: these α are close."""
    return mpl.colormaps["plasma"](np.interp(alpha, (1.5, 1.9), (0.85, 0.0)))


def _draw_drifts(axes: Axes, table: Table) -> None:
    x = table["x"]
    axes.plot(x, table["exact"], color=INK, lw=4.5, alpha=0.25, label="exact b")
    axes.plot(x, table["truncated"], color=BLUE, lw=1.6, label="sum b̃, K = 170")
    axes.plot(x, table["leading"], color=VERMILLION, label="leading term b̂")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_yticks([-1e4, -1e2, 0, 1e2, 1e4])
    axes.set(title="Drift", xlabel="x", ylabel="b(x)", xlim=(-5, 5))
    axes.legend(loc="upper left", handlelength=1.3)
    note(axes, f"α = {SHOWN_ALPHA:g}")


def _draw_errors(axes: Axes, table: Table) -> None:
    for name, colour, text in (
        ("leading", VERMILLION, "leading term b̂"),
        ("truncated", BLUE, "sum b̃, K = 170"),
    ):
        error = np.abs(table[name] / table["exact"] - 1)
        axes.semilogy(table["x"], error, color=colour)
        axes.annotate(
            text, (0, 0.03 if name == "truncated" else 2.2), color=colour, ha="center", va="center"
        )
    axes.axhline(1, color=GREY, lw=0.8, ls="--")
    axes.set(title="Relative error", xlabel="x", xlim=(-5, 5), ylim=(1e-7, 1e2))
    axes.set_yticks([1e-6, 1e-4, 1e-2, 1], ["1e-6", "0.01 %", "1 %", "100 %"])
    note(axes, f"against the exact drift, α = {SHOWN_ALPHA:g}")


def _draw_kappa(axes: Axes, table: Table) -> None:
    alpha = table["alpha"]
    axes.plot(alpha, table["published"], "s", ms=15, color=GREY, alpha=0.35, label="published")
    axes.plot(alpha, table["kappa"], "o", ms=6, color=BLUE, label="201 points")
    axes.plot(alpha, table["kappa_text"], "D", ms=6, mfc="white", color=ORANGE, label="200 points")
    axes.set(title="κ̂, Table 1", xlabel="α", ylabel="κ̂", ylim=(0, 22), xlim=(1.45, 1.95))
    axes.set_xticks(alpha)
    for row in table.rows():
        text = f"b̂ off by\n{100 * row['leading_median']:.0f} %"
        axes.annotate(text, (row["alpha"], 1.0), color=VERMILLION, ha="center", fontsize=9)
    axes.legend(loc="upper right", handlelength=1.3)


def _draw_radius(axes: Axes, table: Table) -> None:
    for alpha in dict.fromkeys(table["alpha"].tolist()):
        part = table.where(alpha=alpha)
        axes.semilogy(part["x"], part["radius"], color=_colour(alpha), label=f"α = {alpha:g}")
    axes.axhline(SPACING, color=GREY, lw=1, ls="--")
    axes.annotate("r = h: where b̂ = b̃", (0, SPACING * 3), color=GREY, ha="center", va="bottom")
    axes.set(title="r(x) of Corollary 2", xlabel="x", xlim=(-5, 5), ylim=(1e-24, 1e3))
    axes.set_yticks([1e-24, 1e-18, 1e-12, 1e-6, 1])
    axes.legend(loc="lower left", handlelength=1.3, labelcolor="linecolor", fontsize=9)
    note(axes, "the bound is r² + 1/(rK)")
