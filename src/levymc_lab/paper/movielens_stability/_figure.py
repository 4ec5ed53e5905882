"""The picture of the experiment `movielens_stability`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from levymc_lab.framework import Tables
from levymc_lab.framework.style import BLUE, GREEN, GREY, ORANGE, VERMILLION, new_figure, note

from . import OPTIONS

COLOURS = (GREY, VERMILLION, ORANGE, BLUE, GREEN)
MARKS = "sD^ov"


def draw(config: Any, tables: Tables) -> Figure:
    figure = new_figure(11, 5.2)
    whole, clipped = figure.subplots(1, 2)
    for option, colour, mark in zip(OPTIONS, COLOURS, MARKS, strict=True):
        part = tables["options"].where(step=option.name)
        count = f"{part['diverged'].sum()} of {part['seeds'].sum()} diverge"
        style: Any = {"color": colour, "marker": mark, "ms": 5.5}
        whole.plot(part["alpha"], part["error"], **style, label=f"{option.name}: {count}")
        clipped.plot(part["alpha"], part["clipped"], **style)
    whole.set(title="RMSE of the predictive mean", ylabel="RMSE on the test split")
    clipped.set_title("The same, clipped to the stars")
    note(clipped, "medians over seeds")
    for axes in (whole, clipped):
        _set_axes(axes, np.array(config.alphas))
    figure.legend(*whole.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _set_axes(axes: Axes, alphas: np.ndarray) -> None:
    axes.set(xlabel="α", yscale="log")
    axes.set_xticks(alphas)
    low, high = axes.get_ylim()
    places = (1, 2, 5) if high > 5 * low else (1, 1.2, 1.4, 1.6, 1.8, 8, 8.5, 9, 9.5)
    axes.yaxis.set_major_locator(LogLocator(subs=places))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
