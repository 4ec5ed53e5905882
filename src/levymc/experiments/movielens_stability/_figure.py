"""The picture of the experiment `movielens_stability`."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .._experiment import Tables
from .._style import BLUE, GREEN, GREY, ORANGE, VERMILLION, new_figure, note
from . import OPTIONS

COLOURS = (GREY, VERMILLION, ORANGE, BLUE, GREEN)
MARKS = "sD^ov"


def draw(config: Any, tables: Tables) -> Figure:
    figure = new_figure(11, 4.6)
    shares, errors = figure.subplots(1, 2)
    table = tables["options"]
    for place, (option, colour, mark) in enumerate(zip(OPTIONS, COLOURS, MARKS, strict=True)):
        part = table.where(step=option.name)
        width = 0.016
        x = part["alpha"] + (place - 2) * width
        shares.bar(x, part["diverged"] / part["seeds"], width, color=colour, label=option.name)
        errors.plot(part["alpha"], part["error"], color=colour, marker=mark, ms=5)
        errors.plot(part["alpha"], part["clipped"], color=colour, ls=(0, (1, 1)), lw=1.3)
    shares.set(title="Chains that diverge", xlabel="α", ylabel="share", ylim=(0, 1.05))
    errors.set(title="RMSE of the predictive mean", xlabel="α", yscale="log")
    errors.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    errors.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    note(errors, "dotted: clipped to the stars")
    for axes in (shares, errors):
        axes.set_xticks(np.array(config.alphas))
    figure.legend(*shares.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure
