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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from levymc_lab.framework import Cell, CellResult, Experiment, Table, Tables

from .._double_well import density
from .._double_well_samplers import BINS, Sampler, measure, run_from_left
from ._checks import ADVISED, PUBLISHED, checks, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    return measure(run_from_left(cell["sampler"], key, config.num_runs, config.num_steps))


def summarise(config: Histograms, results: Mapping[str, CellResult]) -> Tables:
    centres = ((BINS[:-1] + BINS[1:]) / 2).round(6)
    parts, rows = [], []
    for cell in cells(config):
        sampler, result = cell["sampler"], dict(results[cell.id])
        histogram = result.pop("histogram")
        exact = density(centres)
        parts.append({"sampler": sampler.name, "x": centres, "found": histogram, "exact": exact})
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


def figures(config: Histograms, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"double-well-histograms": draw(tables)}


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
