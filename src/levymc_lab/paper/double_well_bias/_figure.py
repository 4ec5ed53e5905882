"""The picture of the experiment `double_well_bias`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import BLACK, GREY, INK, ORANGE, SAMPLERS, new_figure, note

from ._chains import METHODS
from ._checks import BY_MEAN, BY_SIZE, EULER, EXACT, TAMED

STYLES: dict[str, dict[str, Any]] = {
    EULER: {"color": ORANGE, "marker": "s"},
    TAMED: {"color": SAMPLERS["FLA"], "marker": "D"},
    EXACT: {"color": SAMPLERS["FLMC"], "marker": "^"},
    METHODS[-1]: {"color": SAMPLERS["MAFLA"], "marker": "o"},
}
CEILING = 12.0  # larger means, of exploded chains, are drawn here
ASIDE = 0.004  # in α, so that the spans of two methods do not hide each other
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1))


def draw(tables: Tables) -> Figure:
    figure = new_figure(11, 8.8)
    (bias, chosen), (distance, hops) = figure.subplots(2, 2)
    honest, diffusion = tables["bias"].where(selected_by=BY_SIZE), tables["diffusion"]
    _draw_bias(bias, honest, diffusion)
    _draw_chosen(chosen, tables["bias"].where(method=TAMED), diffusion)
    _draw_score(distance, honest, "tv")
    distance.plot(*_heavy(diffusion, "tv"), color=INK, ls=DASHED, lw=1.3)
    distance.set(title="Total variation to the target", xlabel="α", ylim=(None, 1))
    _draw_score(hops, honest, "hops")
    hops.set(title="Hops between the wells", xlabel="α", ylabel="a chain, and one more")
    for axes in (bias, chosen, distance, hops):
        _set_ticks(axes, diffusion["alpha"])
    figure.legend(*bias.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_bias(axes: Axes, table: Table, diffusion: Table) -> None:
    for place, (method, style) in enumerate(STYLES.items()):
        part = table.where(method=method)
        x = part["alpha"] + ASIDE * (place - 1.5)
        ends = np.minimum(part["least"], CEILING), np.minimum(part["largest"], CEILING)
        axes.vlines(x, *ends, color=style["color"], lw=2.4, alpha=0.35)
        y = np.minimum(part["abs_bias"], CEILING)
        axes.plot(x, y, **style, ms=5, label=method)
    axes.axhline(CEILING, color=GREY, lw=0.8, ls=DOTTED)
    at_right = axes.get_yaxis_transform()
    words: Any = {
        "color": GREY,
        "fontsize": 9,
        "ha": "right",
        "va": "bottom",
        "transform": at_right,
    }
    axes.text(1, 1.08 * CEILING, "or more: a chain explodes, or is far out", **words)
    _draw_reference(axes, diffusion)
    axes.set(title="Mean |bias|, on other seeds", xlabel="α", ylim=(0.02, 25), yscale="log")
    note(axes, "median and range of sets")


def _draw_reference(axes: Axes, diffusion: Table) -> None:
    own = _heavy(diffusion, "bias")
    axes.plot(*own, color=INK, ls=DASHED, lw=1.3, label="FLA diffusion")
    style: Any = {"marker": "*", "ms": 9, "mfc": "white", "mec": BLACK, "ls": "none", "zorder": 5}
    axes.plot(diffusion["alpha"], diffusion["published"], **style, label="published")


def _heavy(table: Table, score: str) -> tuple[np.ndarray, np.ndarray]:
    """Without α = 2, where the drift is exact."""
    kept = table["alpha"] < 2
    return table["alpha"][kept], table[score][kept]


def _draw_chosen(axes: Axes, table: Table, diffusion: Table) -> None:
    """What a search shows on the seeds that chose, and on others."""
    lines = (
        (BY_SIZE, "abs_bias", "mean |bias|, other seeds", "-"),
        (BY_SIZE, "chosen_abs_bias", "mean |bias|, same seeds", DOTTED),
        (BY_MEAN, "abs_mean_bias", "|mean bias|, other seeds", "-"),
        (BY_MEAN, "chosen_bias", "|mean bias|, same seeds", DOTTED),
    )
    for selection, score, label, dash in lines:
        part = table.where(selected_by=selection)
        colour = SAMPLERS["FLA"] if selection == BY_SIZE else GREY
        axes.plot(part["alpha"], part[score], color=colour, ls=dash, marker=".", label=label)
    handles, labels = axes.get_legend_handles_labels()
    _draw_reference(axes, diffusion)
    axes.set(title="What choosing on the error hides", xlabel="α", yscale="log", ylim=(0.01, 25))
    axes.legend(handles, labels, fontsize=9, loc="upper left", ncols=2, columnspacing=1)
    note(axes, "FLA, tamed")


def _draw_score(axes: Axes, table: Table, score: str) -> None:
    for method, style in STYLES.items():
        part = table.where(method=method)
        values = part[score] + 1 if score == "hops" else part[score]
        axes.semilogy(part["alpha"], values, **style, ms=5)


def _set_ticks(axes: Axes, alphas: np.ndarray) -> None:
    axes.set_xticks(alphas, [f"{a:g}" if len(f"{a:g}") < 4 else "" for a in alphas])
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
