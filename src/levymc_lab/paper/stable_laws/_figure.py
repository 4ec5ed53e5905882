"""The picture of the experiment `stable_laws`."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import alpha_colour, new_figure, note

LEAP = 0.04  # a step longer than this share of the path's range is drawn thin: it is a jump
SMALLEST_COUNT = 10  # a dot of fewer draws would say little
SMALLEST_SHARE = 3e-8


def draw(tables: Tables, num_draws: int) -> Figure:
    figure = new_figure(11, 7.4)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.15, 1), hspace=0.04)[:, 0]
    densities, tails = top.subplots(1, 2)
    _draw_densities(densities, tables["densities"])
    _draw_tails(tails, tables["tails"], SMALLEST_COUNT / num_draws)
    alphas = _alphas(tables["motions"])
    panels = bottom.subplots(1, len(alphas), squeeze=False)[0]
    for axes, alpha in zip(panels, alphas, strict=True):
        _draw_motion(axes, alpha, tables["motions"].where(alpha=alpha))
    panels[0].set_ylabel("position")
    return figure


def _alphas(table: Table) -> list[float]:
    return list(dict.fromkeys(table["alpha"].tolist()))


def _name(alpha: float) -> str:
    return f"α = {alpha:g}" + {2.0: " (Gaussian)", 1.0: " (Cauchy)"}.get(alpha, "")


def _draw_densities(axes: Axes, table: Table) -> None:
    for place, alpha in enumerate(_alphas(table)):
        part = table.where(alpha=alpha)
        axes.plot(part["x"], part["exact"], color=alpha_colour(alpha), label=_name(alpha))
        shown = slice(place, None, 5)  # so that dots of neighbouring curves do not hide each other
        _dots(axes, part["x"][shown], part["measured"][shown], alpha)
    axes.set(title="Density", xlabel="x", ylabel="probability density")
    axes.set(xlim=(-6, 6), ylim=(0, None))
    axes.legend(loc="upper left", handlelength=1.3, labelcolor="linecolor")
    note(axes, "lines: exact, dots: draws")


def _draw_tails(axes: Axes, table: Table, smallest: float) -> None:
    for alpha in _alphas(table):
        part = table.where(alpha=alpha)
        axes.loglog(part["x"], part["exact"], color=alpha_colour(alpha))
        seen = part["measured"] >= smallest
        _dots(axes, part["x"][seen][::2], part["measured"][seen][::2], alpha)
        if alpha < 2 and part["exact"][-1] > SMALLEST_SHARE:
            _label_end(axes, part, alpha)
    axes.set(title="Tails", xlabel="x", ylabel="P(|X| > x)", ylim=(SMALLEST_SHARE, 1.5))
    axes.set(xlim=(table["x"].min(), table["x"].max()))
    note(axes, "both axes logarithmic")


def _label_end(axes: Axes, part: Table, alpha: float) -> None:
    axes.annotate(
        f"$x^{{-{alpha:g}}}$",
        (part["x"][-1], part["exact"][-1]),
        xytext=(5, 0),
        textcoords="offset points",
        color=alpha_colour(alpha),
        va="center",
        fontsize=11,
        annotation_clip=False,
    )


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray, alpha: float) -> None:
    axes.plot(x, y, "o", ms=4, mfc="white", mec=alpha_colour(alpha), mew=1.0)


def _draw_motion(axes: Axes, alpha: float, path: Table) -> None:
    """One path; what it covers within a single step by a jump is drawn thin."""
    time, position, colour = path["time"], path["position"], alpha_colour(alpha)
    steps = np.abs(np.diff(position))
    leaps = np.flatnonzero((steps > LEAP * np.ptp(position)) & (alpha < 2)) + 1
    whole = np.insert(time, leaps, np.nan), np.insert(position, leaps, np.nan)
    axes.plot(time, position, color=colour, linewidth=0.6, alpha=0.45)
    axes.plot(*whole, color=colour, linewidth=1.3)
    kind = "Brownian" if alpha == 2.0 else "Lévy"
    axes.set(title=f"{kind}, α = {alpha:g}", xlabel="time", xlim=(0, 1))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    note(axes, f"largest step {steps.max():.2f}")
