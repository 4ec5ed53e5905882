"""The picture of the experiment `movielens_posterior`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import BLACK, GREY, alpha_colour, new_figure, note

from ._checks import GOAL, is_real
from ._methods import METHODS, Method

CEILING = 0.06  # above the Gibbs sampler; what is worse is drawn there


def draw(tables: Tables) -> Figure:
    figure = new_figure(12, 5.6)
    curves, ends = figure.subplots(1, 2, width_ratios=(1.25, 1))
    truth = float(tables["scores"].where(method="Gibbs")["error"][0])
    _draw_curves(curves, tables["curves"], truth)
    _draw_ends(ends, tables["scores"], truth)
    note(curves, "MovieLens 1M" if is_real(tables) else "made ratings")
    return figure


def _style(method: Method) -> dict[str, Any]:
    if method.kind != "sg":
        return {"color": BLACK, "ls": "-" if method.kind == "gibbs" else ":"}
    colour = GREY if method.alpha == 2 else alpha_colour(method.alpha)
    if not method.has_rows:
        return {"color": colour, "ls": (0, (1, 1))}
    cold = method.bound is not None or method.cold_as is not None
    return {"color": colour, "ls": (0, (4, 2)) if cold else "-"}


def _draw_curves(axes: Axes, table: Table, truth: float) -> None:
    axes.axhspan(truth - GOAL, truth + GOAL, color=GREY, alpha=0.2, lw=0)
    for method in METHODS:
        part = table.where(method=method.name)
        axes.plot(part["seconds"], part["error"], **_style(method), label=method.name)
    axes.set(
        title="Running predictive mean",
        xlabel="seconds on one core",
        ylabel="RMSE on the test split",
        xscale="log",
        ylim=(truth - 0.01, truth + 2.5 * CEILING),
    )


def _draw_ends(axes: Axes, table: Table, truth: float) -> None:
    names = [method.name for method in METHODS]
    places = np.arange(len(names))[::-1]
    axes.axvspan(-GOAL, GOAL, color=GREY, alpha=0.2, lw=0)
    for place, method in zip(places, METHODS, strict=True):
        (row,) = table.where(method=method.name).rows()
        ends = np.minimum(np.array([row["least"], row["largest"]]) - truth, CEILING)
        style = _style(method)
        axes.plot(ends, [place, place], color=style["color"], lw=3, alpha=0.5)
        x = min(row["error"] - truth, CEILING)
        axes.plot([x], [place], color=style["color"], marker=">" if x == CEILING else "o", ms=6)
    axes.set_yticks(places, names, fontsize=9)
    axes.set(title="At the end, above Gibbs", xlabel="RMSE less that of the Gibbs sampler")
    axes.set_xlim(-0.01, 1.05 * CEILING)
    note(axes, "range over seeds")
