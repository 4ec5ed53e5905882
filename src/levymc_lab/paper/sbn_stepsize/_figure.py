"""The pictures of likelihoods of the experiment `sbn_stepsize`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import (
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

from ._tables import NAMES

TICKS = (4e-5, 6e-5, 1e-4, 1.6e-4, 2.8e-4)
PARTS = (("normal", BLUE, "v"), ("sgd", GREY, "s"), ("sgld", ORANGE, "^"))


def draw_steps(config: Any, tables: Tables) -> Figure:
    figure = new_figure(11.5, 6.4)
    grid, parts = figure.subplots(1, 2, sharey=True)
    if "grid" in tables:
        _draw_grid(config, tables["grid"], grid)
        _draw_parts(config, tables, parts)
    grid.set(title="SG-FLA, constant steps", ylabel="log-likelihood of a test image, nats")
    if config.source == "mnist":  # published numbers say nothing of other pictures
        note(grid, "thin, hollow: published")
    parts.set_title("Which part of the step")
    for axes in (grid, parts):
        _set_steps(axes)
        _add_legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=9)
    return figure


def _draw_grid(config: Any, grid: Table, axes: Axes) -> None:
    for alpha in sorted(set(grid["alpha"].tolist()), reverse=True):
        part, colour = _sorted(grid.where(alpha=alpha)), alpha_colour(alpha)
        if config.source == "mnist":
            axes.plot(
                part["step"], part["published"], color=colour, lw=0.8, marker="o", ms=4,
                mfc="none", alpha=0.6,
            )  # fmt: skip
        whole = part.where(iterations=config.num_iterations)
        short = part.where(iterations=config.short_iterations)
        if len(whole):
            axes.errorbar(
                whole["step"], whole["loglikelihood"], yerr=whole["half_range"], color=colour,
                marker="o", ms=6, capsize=2, label=f"α = {alpha:g}",
            )  # fmt: skip
        if len(short):
            label = f"α = {alpha:g}, {config.short_iterations:,} iterations"
            line = "" if len(whole) else "--"
            axes.plot(
                short["step"], short["loglikelihood"], color=colour, marker="D", ms=4, ls=line,
                lw=1.2, label=label,
            )  # fmt: skip


def _draw_parts(config: Any, tables: Tables, axes: Axes) -> None:
    alpha, grid = config.ablated_alpha, tables["grid"]
    for value, colour in ((2.0, alpha_colour(2.0)), (alpha, alpha_colour(alpha))):
        part = _sorted(grid.where(alpha=value, iterations=config.num_iterations))
        name = "SGLD" if value == 2.0 else f"SG-FLA, α = {value:g}"
        axes.plot(part["step"], part["loglikelihood"], color=colour, lw=2.4, label=name)
    runs = tables["runs"].where(iterations=config.num_iterations)
    for kind, colour, mark in PARTS:
        part = _sorted(runs.where(sampler=NAMES[kind], alpha=alpha))
        axes.plot(
            part["step"], part["loglikelihood"], color=colour, marker=mark, ms=6, ls=":", lw=1.2,
            label=f"α = {alpha:g}: {NAMES[kind]}",
        )  # fmt: skip
    plain = runs.where(sampler=NAMES["sgfla"], alpha=2.0)
    for count, colour in zip(config.other_sweeps, (PURPLE, GREEN), strict=False):
        part = _sorted(plain.where(sweeps=count))
        label = f"SGLD, {count} sweep{'s' if count > 1 else ''} in place of {config.sweeps}"
        axes.plot(
            part["step"], part["loglikelihood"], color=colour, ls="", marker="*", ms=10, label=label
        )
    warm = _sorted(runs.where(sampler=NAMES["warm"]))
    axes.plot(
        warm["step"], warm["loglikelihood"], color=VERMILLION, ls="", marker="x", ms=8, mew=2,
        label="SGLD, units kept between visits",
    )  # fmt: skip


def _sorted(table: Table) -> Table:
    order = np.argsort(table["step"])
    return Table(table.caption, {name: values[order] for name, values in table.columns.items()})


def _set_steps(axes: Axes) -> None:
    axes.set(xlabel="step size η", xscale="log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 1e5:.2g}·10⁻⁵"))


def draw_annealing(config: Any, tables: Tables) -> Figure:
    figure = new_figure(11, 4.4)
    tests, simulated = figure.subplots(1, 2)
    if "annealing" in tables:
        table = tables["annealing"]
        count = table["temperatures"]
        for name, colour, mark, label in (
            ("first", BLUE, "o", "weight first: right"),
            ("last", VERMILLION, "s", "weight last: too high"),
        ):
            tests.plot(count, table[name], color=colour, marker=mark, label=label)
        simulated.plot(count, table["above"], color=VERMILLION, marker="v", label="from above")
        simulated.plot(count, table["below"], color=BLUE, marker="^", label="from below")
        simulated.fill_between(count, table["below"], table["above"], color=GREY, alpha=0.15, lw=0)
    tests.set(title="Test images", ylabel="mean log-likelihood, nats")
    simulated.set_title("Simulated images")
    note(simulated, "the truth lies between")
    for axes in (tests, simulated):
        axes.set(xlabel="temperatures T", xscale="log")
        axes.xaxis.set_major_locator(FixedLocator(config.temperatures))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        _add_legend(axes, loc="best")
    return figure


def _add_legend(axes: Axes, **how: Any) -> None:
    """None where nothing is drawn yet, of which Matplotlib would warn."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**how)
