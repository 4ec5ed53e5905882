"""The figure of the experiment `model_selection`: evidence below its maximum, and what predicts.

Errors are a few nats where the evidence falls by hundreds or thousands: below its maximum, on an
axis that is linear near it and logarithmic beyond, both are seen.
"""

from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import BLACK, GREY, VERMILLION, new_figure

from ._evidence_by_gradients import FULL, MINIBATCH
from ._model_selection_results import chosen
from ._shared import legend_below

if TYPE_CHECKING:
    from .model_selection import Selection

STYLES: dict[str, dict[str, Any]] = {
    FULL: {"color": BLACK, "marker": "o"},
    MINIBATCH: {"color": GREY, "marker": "s", "ls": "--"},
}
BESIDE = 0.06  # of a unit, for points that would hide others
NATS = "log evidence below the most, nats"


def figures(config: "Selection", tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 8)
    (ranks, control), (units, held) = figure.subplots(2, 2)
    _draw_ranks(ranks, tables.get("rank"))
    title = f"Simulated pictures, of {config.control_truth} units"
    _draw_units(control, title, tables.get("control"))
    _draw_units(units, "Small pictures", tables.get("units"))
    _draw_held(held, tables.get("held"))
    legend_below(figure, units, 2)
    return {"model-selection": figure}


def _draw_ranks(axes: Axes, table: Table | None) -> None:
    axes.set(title="Ratings", xlabel="rank L", ylabel=NATS)
    if table is None:
        return
    _draw_below(axes, table, table["evidence"].max(), **STYLES[FULL])
    _end(axes, table, 100.0)
    beside = axes.twinx()
    beside.plot(table["size"], table["rmse"], color=VERMILLION, marker="s", ls="--")
    beside.set_ylabel("RMSE on held-out ratings (dashed)", color=VERMILLION)
    beside.grid(False)


def _draw_units(axes: Axes, title: str, table: Table | None) -> None:
    axes.set(title=title, xlabel="hidden units J", ylabel=NATS)
    if table is None:
        return
    parts = {way: table.where(way=way) for way in STYLES}
    there = {way: part for way, part in parts.items() if len(part)}
    first = next(iter(there.values()))  # by full gradients, for which more sizes are tried
    for place, (way, part) in enumerate(there.items()):
        most = first["evidence"].max()
        _draw_below(axes, part, most, BESIDE * place, label=way, **STYLES[way])
    _end(axes, first, 10.0)


def _draw_below(axes: Axes, table: Table, most: float, beside: float = 0.0, **style: Any) -> None:
    """Evidence below the most, with both errors."""
    values, errors = table["evidence"] - most, table["random"] + table["systematic"]
    axes.errorbar(table["size"] + beside, values, errors, capsize=3, **style)


def _end(axes: Axes, table: Table, linear: float) -> None:
    """The choice, and an axis that is logarithmic beyond `linear`, if anything is."""
    axes.set_xticks(table["size"].tolist())
    if max(map(abs, axes.get_ylim())) > 3 * linear:
        bottom = 2 * axes.get_ylim()[0]
        axes.set_yscale("symlog", linthresh=linear, linscale=0.5)
        axes.set_ylim(bottom, linear)  # nothing is above zero but an error
        axes.yaxis.set_major_formatter(FuncFormatter(_with_minus))
    choice = chosen(table)
    axes.axvline(choice.size, color=GREY, ls=":", lw=1)
    if choice.is_most and len(table) > 1:
        axes.annotate(
            "the most tried ",
            (choice.size, 0.03),
            xycoords=("data", "axes fraction"),
            ha="right",
            color=GREY,
        )


def _with_minus(value: float, _: int) -> str:
    return f"{value:,.0f}".replace("-", "−")


def _draw_held(axes: Axes, table: Table | None) -> None:
    label = "log-likelihood behind the best, nats"
    axes.set(title="Full pictures, held out", xlabel="hidden units J", ylabel=label)
    if table is None:
        return
    axes.errorbar(table["size"], -table["behind"], table["behind_error"], capsize=3, **STYLES[FULL])
    axes.set_xticks(table["size"].tolist())
