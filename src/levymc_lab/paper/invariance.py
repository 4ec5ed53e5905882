r"""Theorem 1: is the target π stationary under the drifts b, b̃ and b̂?

A density stays as it is under dX = b(X) dt + dL^α if its fractional Fokker–Planck residual,

.. math:: r = -(bπ)' - (-Δ)^{α/2} π, \qquad b\,π = D^{α-2} π',

is zero.  The two terms are computed apart: the drift's, b π from the drift's own signs and
logarithms, differentiated by a formula of order eight; and the jumps', by Fourier transform, from
the density alone.  If a chain starts in π, ½∫|r| is the speed at which its law leaves π, in total
variation a unit of time.

References: [simsekli2017], Theorem 1, and eqs. (8) and (14) for b̃ and b̂.  Departures: the paper
proves, and measures nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import drifts, riesz
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import GREEN, GREY, INK, ORANGE, SAMPLERS, new_figure, note

from . import _double_well as well
from ._shared import failures

EXACT, PAPER, SHORT, LEADING = "b", "b̃, K = 170", "b̃, K = 15", "b̂"
REACHING = {0.12: "b̃, h = 0.12, all terms", 0.06: "b̃, h = 0.06, all terms"}
DRIFTS = (EXACT, PAPER, SHORT, LEADING, *REACHING.values())
SPACING = 0.02  # a sixteenth of a well's width: the eighth order then leaves 1e-9
NUM_POINTS = 2**19  # a period of 10⁴, so that images, |x|^{-1-α} away, are below 1e-9
INSIDE = 8.0  # |x| up to which the residual is looked at; beyond, π < 1e-100
DIFFERENCE = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SHOWN_ALPHA = 1.7
STATIONARY, VISIBLE = 1e-6, 0.1  # largest residual of b, smallest of b̂, over the largest term
COLOURS = {EXACT: SAMPLERS["FLMC"], PAPER: GREEN, SHORT: ORANGE, LEADING: SAMPLERS["FLA"]}
MARKS = {EXACT: "o", PAPER: "s", SHORT: "^", LEADING: "D"}
FLOOR = 1e-13  # of what is drawn


@dataclass(frozen=True)
class Invariance:
    """The exponents of the noise."""

    alphas: tuple[float, ...]


def cells(config: Invariance) -> list[Cell]:
    return [Cell(f"alpha={alpha:g}", {"alpha": alpha}) for alpha in config.alphas]


def run_cell(config: Invariance, cell: Cell, key: Any) -> CellResult:
    """Nothing here is random."""
    alpha = cell["alpha"]
    jumps = -np.asarray(riesz.fourier_derivative(well.density(_grid()), alpha, spacing=SPACING))
    flows = {name: drift_term(drift) for name, drift in _drifts(alpha).items()}
    terms = {f"drift-{i}": flows[name] for i, name in enumerate(DRIFTS)}
    return {"jumps": jumps[np.abs(_grid()) <= INSIDE], **terms}


def _grid() -> np.ndarray:
    return (np.arange(NUM_POINTS) - NUM_POINTS // 2) * SPACING


def _drifts(alpha: float) -> dict[str, drifts.Drift]:
    def difference(h: float, terms: int) -> drifts.Drift:
        return drifts.centered_difference(well.target, alpha, spacing=h, num_terms=terms)

    reaching = {name: difference(h, round(2 * INSIDE / h)) for h, name in REACHING.items()}
    return {
        EXACT: drifts.quadrature(well.target, alpha),
        PAPER: difference(0.06, 170),
        SHORT: difference(0.06, 15),
        LEADING: drifts.leading_term(well.target, alpha),
        **reaching,
    }


def drift_term(drift: drifts.Drift) -> np.ndarray:
    """-(bπ)' on the points of the grid inside ±INSIDE."""
    margin = DIFFERENCE.size // 2
    points = _grid()[np.abs(_grid()) <= INSIDE + (margin + 0.5) * SPACING]
    sign, log_size = jax.jit(jax.vmap(drift.signed_log))(jnp.asarray(points))
    # b alone overflows where π is small; their product does not.
    flow = np.asarray(sign) * np.exp(np.asarray(log_size) - well.potential(points))
    middle = np.zeros(1)
    flow *= well.density(middle) / np.exp(-well.potential(middle))
    return -np.correlate(flow, DIFFERENCE, "valid") / SPACING


def summarise(config: Invariance, results: Mapping[str, CellResult]) -> Tables:
    x = _grid()[np.abs(_grid()) <= INSIDE].round(6)
    found = {alpha: results[f"alpha={alpha:g}"] for alpha in config.alphas}
    shown = min(config.alphas, key=lambda alpha: abs(alpha - SHOWN_ALPHA))
    return {
        "residuals": Table.stack(
            "Largest |residual| over the largest |(-Δ)^{α/2} π|, where it is, and the speed at "
            "which the law leaves π, in total variation a unit of time.",
            (_residual(a, n, r["jumps"], r[f"drift-{i}"], x)
             for a, r in found.items() for i, n in enumerate(DRIFTS)),
        ),
        "balance": Table.stack(
            f"The two terms of the Fokker–Planck equation at α = {shown:g}: the jumps' "
            "-(-Δ)^{α/2} π, and the drift's -(bπ)'.",
            ({"alpha": shown, "drift": n, "x": x, "jumps": found[shown]["jumps"],
              "flow": found[shown][f"drift-{i}"]} for i, n in enumerate(DRIFTS[:4])),
        ),
    }  # fmt: skip


def _residual(alpha: float, name: str, jumps: Any, flow: Any, x: Any) -> dict[str, Any]:
    residual = np.abs(jumps + flow)
    return {
        "alpha": alpha,
        "drift": name,
        "largest": residual.max() / np.abs(jumps).max(),
        "at": x[residual.argmax()],
        "tv_speed": residual.sum() * SPACING / 2,
    }


def checks(config: Invariance, tables: Tables) -> list[Check]:
    rows = {(row["alpha"], row["drift"]): row["largest"] for row in tables["residuals"].rows()}
    found = []
    for alpha in config.alphas:
        coarse, fine = (rows[alpha, name] for name in REACHING.values())
        found += [
            Check.below(
                f"residual under b, α = {alpha:g}",
                rows[alpha, EXACT],
                STATIONARY,
                reason="Theorem 1 says zero; quadrature, Fourier transform and difference of order "
                "eight leave about 1e-9",
            ),
            Check.above(
                f"residual under b̂, α = {alpha:g}", rows[alpha, LEADING], VISIBLE, reason="visible"
            ),
            Check.near(
                f"order in h of the residual under b̃, α = {alpha:g}",
                np.log2(coarse / fine),
                2.0,
                0.05,
                reason="O(h²) where the sum reaches over the whole target; h from 0.12 to 0.06",
            ),
        ]
    return found


def verdict(config: Invariance, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"These do not hold: {failed}.")
    table = tables["residuals"]
    exact, paper, leading = (table.where(drift=name) for name in (EXACT, PAPER, LEADING))
    low, high = 100 * paper["largest"].min(), 100 * paper["largest"].max()
    return Verdict(
        "reproduced",
        "Theorem 1 holds to the precision of the computation: under the exact drift the terms "
        f"cancel to {exact['largest'].max():.0e} of their size. Under b̃ with the paper's h = 0.06 "
        f"and K = 170 there remain {low:.2g} to {high:.2g} % (α from {max(config.alphas):g} down "
        f"to {min(config.alphas):g}), the largest at |x| = {np.abs(paper['at']).min():.2g}, where "
        "the sum, hK = 10.2 long, no longer reaches the other well. Under b̂, FLA's drift, π is "
        "not stationary, and no step size changes that: a law that starts as π leaves it at a "
        f"speed, in total variation, of {leading['tv_speed'].min():.2g} to "
        f"{leading['tv_speed'].max():.2g} a unit of time.",
    )


def figures(config: Invariance, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 7.6)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.1), hspace=0.04)[:, 0]
    _draw_balance(top.subplots(1, 2, sharey=True), tables["balance"])
    residual, largest = bottom.subplots(1, 2)
    _draw_residual(residual, tables["balance"])
    _draw_largest(largest, tables["residuals"])
    return {"invariance": figure}


def _draw_balance(panels: np.ndarray, table: Table) -> None:
    alpha = table["alpha"][0]
    for axes, name, words in zip(
        panels, (EXACT, LEADING), ("jumps and drift cancel", "they do not"), strict=True
    ):
        part = table.where(drift=name)
        axes.plot(part["x"], part["jumps"], color=GREY, label="the jumps, $-(-Δ)^{α/2}π$")
        axes.plot(part["x"], part["flow"], color=COLOURS[name], label=f"the drift, $-$({name}π)′")
        total = part["jumps"] + part["flow"]
        axes.plot(part["x"], total, color=INK, ls=(0, (2, 1.5)), lw=1.4, label="their sum")
        axes.set(title=f"Under {name} {words}", xlabel="x", xlim=(-6, 6))
        axes.legend(loc="upper center", fontsize=9, handlelength=1.6)
        note(axes, f"α = {alpha:g}")
    panels[0].set_ylabel("density a unit of time")


def _draw_residual(axes: Axes, table: Table) -> None:
    for name, colour in COLOURS.items():
        part = table.where(drift=name)
        size = np.abs(part["jumps"] + part["flow"]) / np.abs(part["jumps"]).max()
        axes.semilogy(part["x"], np.maximum(size, FLOOR), color=colour, lw=1.3)
    axes.set(title="What is left, over the largest term", xlabel="x", xlim=(-8, 8))
    axes.set_ylim(FLOOR, 10)
    note(axes, f"α = {table['alpha'][0]:g}")


def _draw_largest(axes: Axes, table: Table) -> None:
    for name, colour in COLOURS.items():
        part = table.where(drift=name)
        style = {"color": colour, "marker": MARKS[name], "ms": 5}
        axes.semilogy(part["alpha"], part["largest"], **style, label=name)
    axes.set(title="Its largest value", xlabel="α", ylim=(1e-10, 30))
    axes.set_xticks(np.unique(table["alpha"]))
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.38), labelcolor="linecolor")
    note(axes, "h = 0.06")


EXPERIMENT = Experiment(
    name="invariance",
    title="Which drift leaves the target as it is",
    paper_item="Theorem 1",
    question="Is the target stationary under the exact drift, and under its approximations?",
    profiles={
        "quick": Invariance(alphas=(1.5, 1.9)),
        "paper": Invariance(alphas=(1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)),
    },
    captions={
        "invariance": "Top: what jumps bring to a place and what the drift brings, which cancel "
        "under the exact drift b and not under b̂. Bottom: what is left of the two for each drift, "
        "on a logarithmic scale, and its largest value for each α."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
