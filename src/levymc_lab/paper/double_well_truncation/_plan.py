"""Sizes of the experiment `double_well_truncation`, and the h and K that it visits."""

from dataclasses import dataclass
from typing import Any

from levymc_lab.framework import Table

from .._published import published
from . import _equilibrium as equilibrium

SPACING = 0.06  # h of the figure's upper panel


@dataclass(frozen=True)
class Truncation:
    """Sizes.

    dx: of the grid at equilibrium.
    every: of the published spacings in the lower panel, one in so many is run.
    counts, reaches: K and hK where the best h is looked for.
    terms: K at h = 0.06.
    chain_h, chain_terms, chain_time, step_size: chains that check the grid, at α = 1.7.
    """

    dx: float
    every: int
    counts: tuple[int, ...]
    reaches: tuple[float, ...]
    terms: tuple[int, ...]
    chain_h: tuple[float, ...]
    chain_terms: tuple[int, ...]
    num_chains: int
    step_size: float
    chain_time: float = 100.0
    chain_alpha: float = 1.7
    alphas: tuple[float, ...] = (1.6, 1.7, 1.8, 1.9)
    spacings: tuple[float, ...] = (0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.25)
    panel_terms: tuple[int, ...] = (14, 15)  # for the lower panel: what fits, and what is written
    num_steps: int = 5000
    num_repeats: int = 5


def points(config: Truncation) -> Table:
    """The points of the figure that are run, and the h and K of each."""
    top, bottom = published("fig3_top_bias_vs_K"), published("fig3_bottom_bias_vs_h")
    part = {name: bottom[name][:: config.every] for name in bottom.columns}
    blocks: list[dict[str, Any]] = [
        {"panel": "bottom", **part, "h": part["x"], "K": float(count)}
        for count in config.panel_terms
    ]
    return Table.stack("", [{"panel": "top", **top.columns, "h": SPACING, "K": top["x"]}, *blocks])


def settings(config: Truncation) -> dict[str, list[tuple[float, int]]]:
    """(h, K) for each of the three questions."""
    return {
        "h": equilibrium.full_sums(config.spacings),
        "K": [(SPACING, count) for count in config.terms],
        "best h": equilibrium.fixed_terms(config.counts, config.reaches),
    }
