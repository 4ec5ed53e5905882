r"""Figure 2: the double well as ULA and FLA see it, and beside them samplers that target it.

All runs start in the left well.  At steps n = 1, …, N

.. math:: x_n = x_{n-1} + η\, b(x_{n-1}) + η^{1/α}\, ξ_n, \qquad ξ_n \sim SαS(1),

with the gradient as drift (α = 2, ULA), c_α times the gradient (FLA), or the exact drift (FLMC);
MAFLA is FLA with a Metropolis test.

Published: N = 50 000, 10 runs for each tuned a_η and b_η of η_n = (a_η/n)^{b_η}, explicit Euler,
"two typical empirical distributions", α = 2 and 1.7.  The initial state and the tuned values are
not printed.

References: [simsekli2017], section 5.1, Figure 2.  Departures: steps are constant.  Euler's step
explodes after a jump to |x| > √(5/η), which has a chance of order η^{1+α/2} a step: convex, so that
of all schedules of the same length and Σ η_n the constant one explodes least.  Further samplers and
more runs are shown, and all draws are scored: a picture alone hides bias.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import GREY, INK, SAMPLERS, new_figure, note

from . import _double_well as well
from ._double_well import Sampler

PUBLISHED, ADVISED = "FLA, Euler", "FLA, tamed"
EXACT = ("FLMC, tamed", "FLMC, split", "MAFLA")
TALLEST = 1.5  # of the histograms; the left well alone reaches 1.27


@dataclass(frozen=True)
class Histograms:
    """Sizes and steps.

    euler_step: of FLA as published; with twice that, two in five of its runs explode.
    step_size: of the others but MAFLA; with it they cross the barrier some 16 times in a run.
    mafla_step: accepts about a half.
    """

    num_runs: int
    num_steps: int = 50_000
    alpha: float = 1.7
    euler_step: float = 0.005
    step_size: float = 0.02
    mafla_step: float = 0.3


def samplers(config: Histograms) -> list[Sampler]:
    eta = config.step_size
    steps = {PUBLISHED: config.euler_step, ADVISED: eta}
    steps |= {"FLMC, tamed": eta, "FLMC, split": eta, "MAFLA": config.mafla_step}
    return [Sampler("ULA", 2.0, eta)] + [Sampler(n, config.alpha, h) for n, h in steps.items()]


def cells(config: Histograms) -> list[Cell]:
    """A cell for each sampler."""
    found = samplers(config)
    return [Cell(s.name.lower().replace(", ", "-"), {"sampler": s}) for s in found]


def run_cell(config: Histograms, cell: Cell, key: Any) -> CellResult:
    runs = well.run_from_left(cell["sampler"], key, config.num_runs, config.num_steps)
    return well.measure(runs)


def summarise(config: Histograms, results: Mapping[str, CellResult]) -> Tables:
    parts, rows = [], []
    for cell in cells(config):
        sampler, result = cell["sampler"], dict(results[cell.id])
        parts.append(well.histogram_of(sampler.name, result))
        del result["histogram"]
        rows.append({**_settings(sampler, config), **result})
    caption = (
        "Each sampler, over all runs together: total variation to the target, also after each well "
        "was given its exact mass (shape), and of one run (median); share of the draws left of "
        "zero, less the exact one, and its standard error; hops a run; share of the runs that saw "
        "both wells; runs that exploded."
    )
    histograms = Table.stack("Histograms of all draws, and the density.", parts)
    return {"scores": Table.stack(caption, rows), "histograms": histograms}


def _settings(sampler: Sampler, config: Histograms) -> dict[str, Any]:
    settings = {"sampler": sampler.name, "alpha": sampler.alpha, "step_size": sampler.step_size}
    return {**settings, "runs": config.num_runs, "steps": config.num_steps}


def checks(config: Histograms, tables: Tables) -> list[Check]:
    rows = well.by_name(tables)
    ratio = rows[ADVISED]["tv_of_shape"] / rows["FLMC, split"]["tv_of_shape"]
    return [
        well.check_ula(rows["ULA"]),
        Check.above(
            "share of FLA's runs that see both wells",
            rows[PUBLISHED]["both_wells"],
            0.5,
            source="paper",
            reason="“FLA is able to locate both of the modes”; read as: most runs are",
        ),
        *(well.check_left_mass(rows[name]) for name in EXACT),
        Check.above(
            "shape's total variation, tamed FLA over split FLMC",
            ratio,
            2,
            reason="at the same step only the drift differs, and FLA's keeps another law invariant",
        ),
    ]


def verdict(config: Histograms, tables: Tables, checks: Sequence[Check]) -> Verdict:
    rows = well.by_name(tables)
    runs = rows["ULA"]["runs"]
    failed = [check.name for check in checks if check.source == "paper" and not check.holds]
    if failed:
        return Verdict("not reproduced", f"The figure shows otherwise: {'; '.join(failed)}.")
    fla, hops = rows[PUBLISHED], round(rows["ULA"]["hops"] * runs)
    shape = {name: rows[name]["tv_of_shape"] for name in (ADVISED, *EXACT)}
    return Verdict(
        "reproduced",
        f"From the left well ULA made {hops} hops in {runs} runs, while FLA saw both wells in "
        f"{fla['both_wells']:.0%} of them. But what FLA draws is not the target: Euler's step "
        f"exploded in {fla['exploded']} runs, and where taming prevents that, the wells' shape is "
        f"off by {shape[ADVISED]:.3f} in total variation. With the exact drift it is off by "
        f"{shape['FLMC, tamed']:.3f} (tamed) and {shape['FLMC, split']:.3f} (split) at the same "
        f"step, with a Metropolis test by {shape['MAFLA']:.3f}.",
    )


def figures(config: Histograms, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(13, 6.6)
    panels = figure.subplots(2, 4).ravel()
    rows = tables["scores"].rows()
    _draw_potential(panels[0])
    for axes, row in zip(panels[1:], rows, strict=False):
        _draw_histogram(axes, tables["histograms"].where(sampler=row["sampler"]), row)
    _draw_bars(panels[-1], rows)
    for axes in (panels[1], panels[4]):
        axes.set_ylabel("density")
        axes.tick_params(labelleft=True)
    for axes in panels[4:7]:
        axes.set_xlabel("x")
    return {"double-well-histograms": figure}


def colour_of(name: str) -> Any:
    return SAMPLERS[name.partition(",")[0]]


def title_of(name: str) -> str:
    """`FLMC, split` as `FLMC split`, with room beside it."""
    return name.replace(",", "")


def _draw_potential(axes: Axes) -> None:
    x = np.linspace(-5.6, 5.6, 400)
    axes.plot(x, well.potential(x), color=INK)
    bottoms = np.array([well.LEFT_MINIMUM, well.RIGHT_MINIMUM])
    depths = well.potential(bottoms)
    top = float(well.potential(0.0))
    axes.annotate(
        "",
        (0, top),
        (0, depths[0]),
        arrowprops={"arrowstyle": "<->", "color": GREY, "shrinkA": 0, "shrinkB": 0},
    )
    axes.text(0.25, (top + depths[0]) / 2, "17", color=GREY, va="center", fontsize=11)
    axes.plot(bottoms[0], depths[0], "o", color=INK, ms=6)
    axes.annotate(
        "start", (bottoms[0], depths[0]), (0, -8), textcoords="offset points", ha="center", va="top"
    )
    axes.set(title="Potential U(x)", ylim=(-17.5, 12), xlim=(-6, 6), xticks=(-4, -2, 0, 2, 4))


def _draw_histogram(axes: Axes, part: Table, row: dict[str, Any]) -> None:
    name = row["sampler"]
    width = part["x"][1] - part["x"][0]
    axes.bar(part["x"], part["found"], width, color=colour_of(name), alpha=0.55, linewidth=0)
    grid = np.linspace(-6, 6, 400)
    axes.plot(grid, well.density(grid), color=INK, linewidth=1.2)
    axes.set(title=title_of(name), xlim=(-6, 6), ylim=(0, TALLEST), xticks=(-4, -2, 0, 2, 4))
    axes.set_yticks([0, 0.5, 1])
    axes.tick_params(labelleft=False)
    note(axes, f"α = {row['alpha']:g}, η = {row['step_size']:g}")
    axes.text(0.97, 0.95, _remark(row), transform=axes.transAxes, ha="right", va="top", fontsize=9)


def _remark(row: dict[str, Any]) -> str:
    lines = [
        f"TV {row['tv']:.3f}",
        f"left mass {row['left_mass_error']:+.3f}".replace("-", "−"),
        f"{row['hops']:.1f} hops a run" if row["hops"] else "no hops",
    ]
    if row["exploded"]:
        lines.append(f"{row['exploded']} of {row['runs']} exploded")
    return "\n".join(lines)


def _draw_bars(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Total variation as a bar, and the part of it that the wells' shape has."""
    for place, row in enumerate(rows):
        colour = colour_of(row["sampler"])
        axes.barh(place, row["tv"], 0.4, color=colour, alpha=0.4, linewidth=0)
        axes.barh(place, row["tv_of_shape"], 0.4, color=colour, linewidth=0)
        label = f"{title_of(row['sampler'])}  {row['tv']:.3f}"
        axes.text(0.004, place - 0.28, label, va="bottom", fontsize=9)
    axes.set_yticks([])
    axes.set(title="TV to the target", xlim=(0, 0.5), ylim=(len(rows) - 0.5, -0.9))
    axes.grid(visible=False, axis="y")
    axes.set_xticks([0, 0.1, 0.2, 0.3, 0.4])
    note(axes, "dark: shape alone")


EXPERIMENT = Experiment(
    name="double-well-histograms",
    title="The double well as each sampler sees it",
    paper_item="Figure 2",
    question="Does FLA find both wells where ULA stays in one, and does it draw from the target?",
    profiles={
        "quick": Histograms(num_runs=16, num_steps=20_000, euler_step=0.01),
        "paper": Histograms(num_runs=100),
    },
    captions={
        "double-well-histograms": "The potential with its two wells, and histograms of all draws "
        "of six samplers that start in the left well, each under the exact density. ULA fills the "
        "left well only; FLA fills both, too narrowly in the middle; the samplers with the exact "
        "drift or a Metropolis test follow the density more closely. Last, their total variation "
        "to it as bars."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
