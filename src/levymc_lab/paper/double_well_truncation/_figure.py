"""The pictures of the experiment `double_well_truncation`."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import CYCLE, GREY, new_figure, note

SHOWN_ALPHA = 1.7  # where one α stands for all
SHADE = "#f1f1f1"


def _values(column: np.ndarray) -> list[float]:
    return sorted({float(value) for value in column})


def _colour(alpha: float) -> Any:
    """As dark to bright as elsewhere, but wider apart: these α are close."""
    return mpl.colormaps["plasma"](np.interp(alpha, (1.6, 1.9), (0.82, 0.0)))


def draw_published(table: Table) -> Figure:
    figure = new_figure(9.5, 4.4)
    upper, lower = figure.subplots(1, 2, sharey=True)
    _draw_panel(upper, table.where(panel="top"), "K")
    bottom = table.where(panel="bottom")
    fits = _values(bottom["K"])[0]
    _draw_panel(lower, bottom.where(K=fits), "h")
    upper.set(title="Against K, h = 0.06", xlabel="K", ylabel="mean |bias|", ylim=(0, 5))
    lower.set(title="Against h", xlabel="h")
    upper.xaxis.set_major_locator(MaxNLocator(integer=True))
    note(lower, f"K = {fits:g} here, 15 in the text")
    note(upper, "lines: here, dots: published")
    upper.legend(loc="lower left", labelcolor="linecolor", handlelength=1.3)
    return figure


def _draw_panel(axes: Axes, table: Table, name: str) -> None:
    for alpha in _values(table["alpha"]):
        part, colour = table.where(alpha=alpha), _colour(alpha)
        order = np.argsort(part[name])
        x = part[name][order]
        axes.plot(x, part["published"][order], "o", ms=6, color=colour, alpha=0.28, mec="none")
        axes.plot(x, part["measured"][order], color=colour, lw=1.6, label=f"α = {alpha:g}")


def draw_equilibrium(tables: Tables) -> Figure:
    figure = new_figure(9.5, 8.2)
    (spacing, terms), (fixed, best) = figure.subplots(2, 2)
    table = tables["equilibrium"]
    _draw_spacing(spacing, table.where(sweep="h"))
    _draw_terms(terms, table.where(sweep="K"))
    _draw_fixed(fixed, table.where(sweep="best h", alpha=SHOWN_ALPHA))
    _draw_best(best, table.where(sweep="best h"))
    return figure


def _draw_spacing(axes: Axes, table: Table) -> None:
    for alpha in _values(table["alpha"]):
        part = table.where(alpha=alpha)
        colour = _colour(alpha)
        axes.loglog(part["h"], part["tv"], "o-", ms=5, color=colour, label=f"α = {alpha:g}")
    _guide(axes, table["h"], 2.0, table["tv"].max() * 1.6, "h²")
    axes.set(title="Sums that reach over all", xlabel="h", ylabel="total variation")
    _ticks(axes, (0.02, 0.05, 0.1, 0.2))
    axes.legend(loc="lower right", labelcolor="linecolor", handlelength=1.3)
    note(axes, "hK ≥ 14")


def _draw_terms(axes: Axes, table: Table) -> None:
    axes.axvspan(0, 20 * 0.06, color=SHADE, zorder=0)
    axes.text(0.6, -1.0, "the paper's K ≤ 20", rotation=90, ha="center", va="bottom", color=GREY)
    axes.axhline(0, color=GREY, lw=0.8)
    for alpha in _values(table["alpha"]):
        part = table.where(alpha=alpha)
        axes.plot(part["h"] * part["K"], part["bias"], ".-", ms=6, color=_colour(alpha))
    axes.set(title="How far it must reach", xlabel="reach hK", ylabel="bias at equilibrium")
    axes.set(xlim=(0, None), ylim=(-1.2, 0.5))
    note(axes, "h = 0.06")


def _draw_fixed(axes: Axes, table: Table) -> None:
    for count, colour in zip(_values(table["K"]), CYCLE, strict=False):
        part = table.where(K=count)
        order = np.argsort(part["h"])
        h, error = part["h"][order], part["tv"][order]
        axes.loglog(h, error, color=colour, label=f"K = {count:g}")
        axes.plot(h[np.argmin(error)], error.min(), "o", ms=8, mfc="white", mec=colour, mew=1.8)
    axes.set(title="Fixed K", xlabel="h", ylabel="total variation")
    _ticks(axes, (0.01, 0.1, 1.0))
    axes.legend(loc="lower left", labelcolor="linecolor", handlelength=1.3)
    note(axes, f"α = {SHOWN_ALPHA:g}; rings: best h")


def _draw_best(axes: Axes, table: Table) -> None:
    counts = np.array(_values(table["K"]))
    for alpha in _values(table["alpha"]):
        parts = [table.where(alpha=alpha, K=count) for count in counts]
        best = [part["h"][np.argmin(part["tv"])] for part in parts]
        axes.loglog(counts, best, "o-", ms=6, color=_colour(alpha), label=f"α = {alpha:g}")
    first = float(table.where(K=counts[0])["h"].max())
    _guide(axes, counts, -1 / 3, first, "$K^{-1/3}$", start=True)
    _guide(axes, counts, -1.0, 6.0 / counts[0], "$K^{-1}$", start=True, above=False)
    axes.set(title="The best h", xlabel="K", ylabel="h of the smallest total variation")
    _ticks(axes, counts, (0.03, 0.1, 0.3, 1.0))
    note(axes, "dashed: bound and 1/K")


def _ticks(axes: Axes, x: Sequence[float] | np.ndarray, y: Sequence[float] | None = None) -> None:
    """Plain numbers at these places of logarithmic axes, and at no others."""
    axes.set_xticks(x, [f"{tick:g}" for tick in x])
    if y is not None:
        axes.set_yticks(y, [f"{tick:g}" for tick in y])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


def _guide(
    axes: Axes,
    x: np.ndarray,
    power: float,
    height: float,
    text: str,
    *,
    start: bool = False,
    above: bool = True,
) -> None:
    """A dashed line of that slope, as high as `height` at one end."""
    ends = np.array([x.min(), x.max()])
    anchor = ends[0] if start else ends[1]
    y = height * (ends / anchor) ** power
    axes.plot(ends, y, "--", color=GREY, lw=1.2)
    middle = np.sqrt(ends.prod()), np.sqrt(y.prod())
    offset = (0, 8) if above else (-6, -8)
    side = ("left" if power < 0 else "right") if above else "right"
    axes.annotate(
        text,
        middle,
        offset,
        textcoords="offset points",
        color=GREY,
        ha=side,
        va="bottom" if above else "top",
    )
