"""The picture of the experiment `movielens_convergence`."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    alpha_colour,
    new_figure,
    note,
)

from ._chains import VARIANTS
from ._checks import is_real

COLOURS = (VERMILLION, ORANGE, PURPLE, BLUE, GREEN)
DASHES = ("-", "-", (0, (4, 2)), (0, (1, 1)), "-.")


def draw(config: Any, tables: Tables) -> Figure:
    figure = new_figure(12, 8.4)
    (fitted, common), (tuned, large) = figure.subplots(2, 2)
    curves = tables["curves"]
    _draw_fitted(fitted, curves.where(kind="as published"), with_points=is_real(tables))
    _draw_common(common, curves.where(kind="common"))
    _draw_tuned(tuned, curves.where(kind="tuned", set=config.first), config.first)
    sources = dict(zip(tables["tuned"]["set"], tables["tuned"]["source"], strict=True))
    _draw_large(large, curves.where(kind="tuned", step=VARIANTS[0].name), sources)
    for axes in (fitted, common, tuned, large):
        axes.set(xlabel="iterations")
    for axes in (fitted, tuned):
        axes.set_ylabel("RMSE of the current draw")
    return figure


def _alphas(table: Table) -> list[float]:
    return sorted(set(table["alpha"].tolist()), reverse=True)


def _draw_fitted(axes: Axes, table: Table, *, with_points: bool) -> None:
    for alpha in _alphas(table):
        part, colour = table.where(alpha=alpha), alpha_colour(alpha)
        ours, theirs = part.where(step="measured"), part.where(step="published")
        beside = part.where(step="sgld")
        axes.plot(ours["n"], ours["error"], color=colour, label=f"α = {alpha:g}")
        axes.plot(beside["n"], beside["error"], color=colour, ls=(0, (1, 1)), lw=1.3)
        if with_points:
            style: Any = {"marker": "o", "ms": 4, "mfc": "white", "mec": colour, "ls": "none"}
            axes.plot(theirs["n"][::2], theirs["error"][::2], **style)
    axes.set_title("Each α from a start of its own")
    note(axes, "circles: published; dotted: SGLD" if with_points else "dotted: SGLD")
    axes.legend(fontsize=9)


def _draw_common(axes: Axes, table: Table) -> None:
    alpha = _alphas(table)[-1]
    plain = table.where(alpha=_alphas(table)[0], step=VARIANTS[0].name)
    axes.plot(plain["n"], plain["error"], color=GREY, label="SGLD, step η")
    for variant, colour, dash in zip(VARIANTS, COLOURS, DASHES, strict=True):
        part = table.where(alpha=alpha, step=variant.name)
        axes.plot(part["n"], part["error"], color=colour, ls=dash, label=variant.name)
    axes.set_title("One start, one a")
    note(axes, f"α = {alpha:g}")
    axes.legend(fontsize=9)


def _draw_tuned(axes: Axes, table: Table, name: str) -> None:
    for alpha in _alphas(table):
        colour = alpha_colour(alpha)
        exact = table.where(alpha=alpha, step=VARIANTS[0].name)
        axes.plot(exact["n"], exact["error"], color=colour, label=f"α = {alpha:g}")
        if alpha < 2:
            cut = table.where(alpha=alpha, step=VARIANTS[1].name)
            axes.plot(cut["n"], cut["error"], color=colour, ls=(0, (4, 2)))
    axes.set(title="a tuned on a validation split", yscale="log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    note(axes, f"{name}; dashed: jumps ≤ 50")
    axes.legend(fontsize=9)


def _draw_large(axes: Axes, table: Table, sources: dict[str, str]) -> None:
    dashes = ("-", (0, (4, 2)), (0, (1, 1)))
    for (name, source), dash in zip(sources.items(), dashes, strict=False):
        part = table.where(set=name)
        for alpha in _alphas(part):
            line = part.where(alpha=alpha)
            label = f"{name}, {source}" if alpha == _alphas(part)[0] else None
            axes.plot(line["n"], line["error"], color=alpha_colour(alpha), ls=dash, label=label)
    axes.set(title="All data sets, tuned", xscale="log", yscale="log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    axes.legend(fontsize=9, labelcolor=BLACK)
    note(axes, "colours: α, as on the left")
