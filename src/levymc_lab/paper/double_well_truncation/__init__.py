r"""Figure 3: the bias of the scheme with the truncated drift b̃_{h,K}, against K and against h.

As published: 5000 steps that cover 5e-3 units of time.  And at equilibrium, where Theorem 3 says

.. math:: \left|ν(g) - \lim_N \tilde ν_N(g)\right| = O\left(h^2 + \frac{1}{hK}\right),

so that the best h would fall like K^{-1/3}: the stationary law of the diffusion, from its
discretised generator, with a few runs of chains as a check.

References: [simsekli2017], Figure 3, Theorem 3.  Departures: the paper leaves open where the chain
starts and where the steps are counted from; -5 and 2 reproduce its curves.
"""

from typing import TYPE_CHECKING, Any

from levymc_lab.framework import Cell, CellResult, Experiment, Tables

from .. import _double_well as well
from . import _equilibrium as equilibrium
from . import _transient as transient
from ._checks import checks, verdict
from ._plan import SPACING, Truncation, points, settings
from ._tables import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(config: Truncation) -> list[Cell]:
    """The published figure, the stationary laws for each α, and the chains."""
    laws = [Cell(f"laws-alpha={alpha:g}", {"alpha": alpha}) for alpha in config.alphas]
    pairs = zip(config.chain_h, config.chain_terms, strict=True)
    chains = [Cell(f"chains-h={h:g}-K={k}", {"setting": (h, k)}) for h, k in pairs]
    return [Cell("published"), *laws, *chains]


def run_cell(config: Truncation, cell: Cell, key: Any) -> CellResult:
    if cell.id == "published":
        return _run_published(config, key)
    if cell.id.startswith("laws"):
        return _solve(config, cell["alpha"])
    return _run_chains(config, cell["setting"], key)


def _run_published(config: Truncation, key: Any) -> CellResult:
    chosen = points(config)
    sizes = config.num_steps, config.num_repeats
    columns = (chosen["alpha"], chosen["h"], chosen["K"])
    return {"bias": transient.mean_abs_bias(key, *columns, *sizes)}


def _solve(config: Truncation, alpha: float) -> CellResult:
    grid = equilibrium.Grid(config.dx)
    every = [setting for part in settings(config).values() for setting in part]
    exact = equilibrium.exact_density(grid, alpha)
    floor = equilibrium.difference(grid, exact, well.density(grid.points))
    end = equilibrium.effect_of_ends(grid, alpha, SPACING, config.panel_terms[-1])
    found = equilibrium.sweep(grid, alpha, exact, every)
    return {**found, "floor_tv": floor["tv"], "floor_bias": floor["bias"], "end": end}


def _run_chains(config: Truncation, setting: tuple[float, int], key: Any) -> CellResult:
    alpha, grid = config.chain_alpha, equilibrium.Grid(config.dx)
    num_steps = round(config.chain_time / config.step_size)
    positions = equilibrium.run_chains(
        key, alpha, setting, config.num_chains, num_steps, config.step_size
    )
    exact = equilibrium.exact_density(grid, alpha)
    law = equilibrium.truncated_density(grid, alpha, *setting)
    solved = equilibrium.difference(grid, law, exact)
    measured = well.scores(positions)
    return {**measured, **{f"law_{name}": value for name, value in solved.items()}}


def figures(config: Truncation, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw_equilibrium, draw_published

    return {
        "as-published": draw_published(tables["published"]),
        "at-equilibrium": draw_equilibrium(tables),
    }


EXPERIMENT = Experiment(
    name="double-well-truncation",
    title="The truncated drift: a transient as published, and the bias at equilibrium",
    paper_item="Figure 3",
    question="How does the bias of the scheme with the drift b̃ depend on h and K?",
    profiles={
        "quick": Truncation(
            dx=0.04,
            every=10,
            counts=(30, 60, 120),
            reaches=(1.0, 3.0, 5.0),
            terms=(1, 5, 10, 15, 30, 60, 80, 100, 120, 140, 150, 170),
            chain_h=(0.06,),
            chain_terms=(15,),
            num_chains=200,
            step_size=0.05,
        ),
        "paper": Truncation(
            dx=0.0125,
            every=1,
            counts=(15, 30, 60, 120, 240),
            reaches=(0.5, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 5.5, 12.0, 14.0, 18.0),
            terms=(1, 2, 3, 5, 7, 10, 15, 20, 30, *range(40, 151, 5), 160, 170, 180),
            chain_h=(0.06, 0.06, 0.2),
            chain_terms=(15, 60, 60),
            num_chains=4000,
            step_size=0.01,
        ),
    },
    captions={
        "as-published": "Figure 3 of the paper: its points, and our curves, which follow them, "
        "with K = 14 in the lower panel.",
        "at-equilibrium": "The stationary law with the truncated drift: its error falls like h² "
        "when the sum reaches over the target, and does not fall at all before.",
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
