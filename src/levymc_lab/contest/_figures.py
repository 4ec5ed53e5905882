"""Dots by problem and method; losses are as visible as wins."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from levymc_lab.framework import Tables
from levymc_lab.framework.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    new_figure,
    note,
)

from ._judgement import (
    BEST_TV,
    FAILED_TV,
    NOT_WORSE,
    NUTS,
    by_method,
    efficiency_ratio,
    speed_ratio,
)

LOOKS = {
    "auto": (VERMILLION, "o"),
    "tempering": (BLUE, "s"),
    "smc": (GREEN, "^"),
    "nuts-dense": (BLACK, "D"),
    "nuts-diagonal": (GREY, "D"),
    "mala": (ORANGE, "v"),
    "emcee": (PURPLE, "P"),
    "zeus": (SKY, "X"),
}
SMALLEST = 3e-4  # errors below are drawn there
RATIOS = (1e-3, 1e3)  # of effective sizes; those beyond are drawn a little outside
GROUPS = ("final", "development")


def weights(tables: Tables, budget: int, terms: str) -> Figure:
    """Total variation by problem and method; `terms` say what was equal for all."""
    panels = _panels(tables, "weights", budget)
    figure, axes = _stacked(panels)
    for one, (group, rows) in zip(axes, panels, strict=True):
        _bands(one)
        for place, (_, methods) in enumerate(_descending(rows)):
            for shift, (method, row) in _spread(methods):
                _whisker(one, place + shift, method, row)
        _label(one, rows)
        one.set(xscale="log", xlim=(SMALLEST / 1.3, 1.3))
        one.set_title(f"{group.capitalize()} problems")
        note(one, f"{terms}: median, and worst seed")
    axes[-1].set_xlabel("total variation of the weights of the modes")
    _legend(figure, panels, hidden=())
    return figure


def _bands(axes: Axes) -> None:
    axes.axvspan(FAILED_TV, 2, color=VERMILLION, alpha=0.08, lw=0)
    axes.axvline(BEST_TV, color=GREY, lw=1, ls=(0, (4, 2)))


def _whisker(axes: Axes, place: float, method: str, row: Mapping[str, Any]) -> None:
    colour, marker = LOOKS[method]
    middle, worst = max(row["median"], SMALLEST), max(row["worst"], SMALLEST)
    axes.plot([middle, worst], [place, place], color=colour, lw=1.2, alpha=0.7)
    is_flagged = row["flagged"] > row["seeds"] / 2
    face = "white" if is_flagged else colour
    axes.plot([middle], [place], marker, color=colour, mfc=face, ms=5 if method != "auto" else 7)


def efficiency(tables: Tables, budget: int, terms: str) -> Figure:
    """Effective sizes over those of dense NUTS, by problem and method, where that was run."""
    panels = _panels(tables, "efficiency", budget)
    panels = [part for part in panels if _has_reference(part[1])] or panels[:1]
    figure, rows_of_axes = _stacked(panels, columns=2)
    for number, (group, rows) in enumerate(panels):
        pair = rows_of_axes[2 * number : 2 * number + 2]
        for axes, is_per_second in zip(pair, (False, True), strict=True):
            _ratios(axes, rows, is_per_second=is_per_second)
        _label(pair[0], rows)
        pair[1].set_yticks(pair[0].get_yticks(), [])
        pair[1].set_ylim(pair[0].get_ylim())
        pair[0].set_title(f"{group.capitalize()}: per evaluation")
        pair[1].set_title("Per second")
        note(pair[1], f"{terms}; at the edges: beyond")
    for axes in rows_of_axes[-2:]:
        axes.set_xlabel("effective sample size over that of dense NUTS")
    _legend(figure, panels, hidden=("smc", NUTS[0]))
    return figure


def _ratios(axes: Axes, rows: Mapping[str, Any], *, is_per_second: bool) -> None:
    axes.axvspan(NOT_WORSE, 1 / NOT_WORSE, color=GREY, alpha=0.15, lw=0)
    for bar in (2, 20):
        axes.axvline(bar, color=GREY, lw=0.8, ls=(0, (1, 2)))
    for place, (_, methods) in enumerate(_descending(rows)):
        reference = methods.get(NUTS[0])
        for shift, (method, row) in _spread(methods):
            if reference is None or method == NUTS[0]:
                continue
            ratio = (speed_ratio if is_per_second else efficiency_ratio)(row, reference)
            if math.isnan(ratio):
                continue
            colour, marker = LOOKS[method]
            face = "white" if row["flagged"] > row["seeds"] / 2 else colour
            x = float(np.clip(ratio, RATIOS[0] / 1.3, RATIOS[1] * 1.3))
            axes.plot(
                [x],
                [place + shift],
                marker,
                color=colour,
                mfc=face,
                ms=7 if method == "auto" else 5,
            )
    axes.set(xscale="log", xlim=(RATIOS[0] / 1.8, RATIOS[1] * 1.8))


def _has_reference(rows: Mapping[str, Any]) -> bool:
    return any(NUTS[0] in methods for methods in rows.values())


def _panels(tables: Tables, kind: str, budget: int) -> list[tuple[str, dict[str, Any]]]:
    """The groups that there are, by problem and method; one that is empty if there are none."""
    found = [(group, by_method(tables.get(f"{kind}-{group}"), budget)) for group in GROUPS]
    return [part for part in found if part[1]] or [("final", {})]


def _descending(rows: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """From the bottom, as an axis counts; the first problem is at the top."""
    return list(rows.items())[::-1]


def _spread(methods: Mapping[str, Any]) -> list[tuple[float, tuple[str, Any]]]:
    """Methods of one problem a little apart, so that none hides another."""
    order = [name for name in LOOKS if name in methods]
    shifts = np.linspace(0.3, -0.3, len(order)) if len(order) > 1 else [0.0]
    return [
        (float(shift), (name, methods[name])) for shift, name in zip(shifts, order, strict=True)
    ]


def _label(axes: Axes, rows: Mapping[str, Any]) -> None:
    axes.set_yticks(range(len(rows)), [name for name, _ in _descending(rows)], fontsize=9)
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    axes.grid(visible=False, axis="y")
    for place in range(1, len(rows)):
        axes.axhline(place - 0.5, color="#e4e4e4", lw=0.7)


def _stacked(
    panels: Sequence[tuple[str, dict[str, Any]]], columns: int = 1
) -> tuple[Figure, list[Axes]]:
    heights = [max(2, len(rows)) + 1.5 for _, rows in panels]
    figure = new_figure(11, 1.2 + 0.36 * sum(heights))
    axes = figure.subplots(
        len(panels), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    return figure, list(axes.ravel())


def _legend(
    figure: Figure, panels: Sequence[tuple[str, dict[str, Any]]], hidden: Sequence[str]
) -> None:
    shown = {method for _, rows in panels for methods in rows.values() for method in methods}
    shown = shown.difference(hidden)
    handles: list[Any] = [
        Line2D([], [], color=colour, marker=marker, ls="", label=name)
        for name, (colour, marker) in LOOKS.items()
        if name in shown
    ]
    handles.append(Line2D([], [], color=GREY, marker="o", mfc="white", ls="", label="warned"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
