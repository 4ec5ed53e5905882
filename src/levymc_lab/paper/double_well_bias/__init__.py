r"""Figure 4: the bias of FLA's mean on the double well, against α, with its step sizes searched.

The estimator is the weighted one, with decreasing steps,

.. math:: \hat ν = \sum_n η_n X_n \Big/ \sum_n η_n, \qquad η_n = (a/n)^b,

and for each α that pair (a, b) of a grid is taken whose mean |bias| over the repeats is least.
That number is an optimist's: it is the least of many noisy ones.  So the repeats come in sets; a
pair is chosen on one and judged on the next, whose random numbers are others.  Beside the chains
stands the bias of the diffusion itself, from its stationary law on a grid: what b̂ leaves to FLA
for every step size.

References: [simsekli2017], Figure 4.  Departures: the paper does not say where chains start, which
pairs were tried, nor on what they were judged.  Here all start at -5, as in Figure 3: a chain that
stays in the left well is off by 3.26, and 3.23 is published at α = 2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from levymc_lab.framework import Cell, CellResult, Experiment, Table, Tables

from .. import _double_well as well
from ._chains import METHODS, simulate
from ._checks import checks, verdict
from ._diffusion import diffusion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START = -5.0
SELECTIONS = ("mean |bias|", "|mean bias|")


@dataclass(frozen=True)
class DoubleWellBias:
    """Sizes, and the pairs (a, b) that are tried: all of `fla_a` with all of `fla_b`, and so on."""

    alphas: tuple[float, ...]
    num_steps: int
    fla_a: tuple[float, ...]
    fla_b: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    flmc_a: tuple[float, ...] = (0.01, 1.0)
    mafla_a: tuple[float, ...] = (1e2, 1e4, 1e6)
    exact_b: tuple[float, ...] = (0.3, 0.5)
    num_sets: int = 4
    num_repeats: int = 10

    def pairs(self, method: str) -> np.ndarray:
        """The pairs, one a row."""
        grids = {"FLMC": (self.flmc_a, self.exact_b), "MAFLA": (self.mafla_a, self.exact_b)}
        axes = np.meshgrid(*grids.get(method, (self.fla_a, self.fla_b)), indexing="ij")
        return np.stack(axes, axis=-1).reshape(-1, 2)


def cells(config: DoubleWellBias) -> list[Cell]:
    """One for each α and method: all pairs, sets and repeats in one program."""
    return [
        Cell(f"{method.replace(', ', '-')}-alpha={alpha:g}", {"method": method, "alpha": alpha})
        for alpha in config.alphas
        for method in METHODS
    ]


def run_cell(config: DoubleWellBias, cell: Cell, key: Any) -> CellResult:
    """Arrays of pairs × sets × repeats; the histograms are those of a set."""
    pairs = config.pairs(cell["method"])
    shape = (len(pairs), config.num_sets, config.num_repeats)
    a, b = np.repeat(pairs, config.num_sets * config.num_repeats, axis=0).T
    chains = simulate(cell["method"], cell["alpha"], a, b, START, config.num_steps, key)
    histogram = np.asarray(chains.histogram).reshape(*shape, -1).mean(axis=2)
    return {
        "bias": np.asarray(chains.mean).reshape(shape) - well.MEAN,
        "tv": np.abs(histogram - well.masses()).sum(axis=-1) / 2,
        "left_mass": histogram[..., : well.EDGES.size // 2 + 1].sum(axis=-1),
        "hops": np.asarray(chains.hops).reshape(shape).mean(axis=2),
        "exploded": np.asarray(chains.exploded).reshape(shape).mean(axis=2),
    }


def summarise(config: DoubleWellBias, results: Mapping[str, CellResult]) -> Tables:
    sets = Table.stack(
        "The pair chosen on each set of repeats: its bias there (chosen), and scores on the next.",
        (
            row
            for cell in cells(config)
            for selection in SELECTIONS
            for row in _judged(config, cell, selection, results[cell.id])
        ),
    )
    return {
        "bias": Table.stack(
            "Over the sets: median, least and largest mean |bias| on other seeds; medians of the "
            "bias on the seeds that chose the pair, and of the other scores on other seeds; and "
            "the share of exploded chains there.",
            _over_sets(config, sets),
        ),
        "sets": sets,
        "pairs": Table.stack(
            "Of the pairs (a, b) that were tried, how many let a chain explode, and with how many "
            "of the others chains hop less than once on average.",
            (_count_pairs(cell, results[cell.id]) for cell in cells(config)),
        ),
        "diffusion": Table.stack(
            "The stationary law of FLA's diffusion, from its generator, and the published bias.",
            (diffusion(alpha) for alpha in config.alphas),
        ),
    }


def _judged(
    config: DoubleWellBias, cell: Cell, selection: str, result: CellResult
) -> Iterator[dict[str, Any]]:
    absolute, mean = np.abs(result["bias"]).mean(axis=2), np.abs(result["bias"].mean(axis=2))
    score = absolute if selection == SELECTIONS[0] else mean
    pairs = config.pairs(cell["method"])
    for chosen_on, best in enumerate(np.argmin(score, axis=0)):
        here, there = (best, chosen_on), (best, (chosen_on + 1) % config.num_sets)
        yield {
            **cell.parameters,
            "selected_by": selection,
            "set": chosen_on,
            "a": pairs[best, 0],
            "b": pairs[best, 1],
            "chosen_abs_bias": absolute[here],
            "chosen_bias": mean[here],
            "abs_bias": absolute[there],
            "bias": result["bias"][there].mean(),
            "tv": result["tv"][there],
            "left_mass_error": result["left_mass"][there] - well.LEFT_MASS,
            "hops": result["hops"][there],
            "exploded": result["exploded"][there],
        }


def _count_pairs(cell: Cell, result: CellResult) -> dict[str, Any]:
    explodes = result["exploded"].max(axis=1) > 0
    stays = ~explodes & (result["hops"].mean(axis=1) < 1)
    counts = {"pairs": explodes.size, "exploding": explodes.sum(), "staying": stays.sum()}
    return {**cell.parameters, **counts}


def _over_sets(config: DoubleWellBias, sets: Table) -> Iterator[dict[str, Any]]:
    """Medians: one chain that explodes, or is long on its way back, would rule a mean."""
    scores = ("chosen_abs_bias", "chosen_bias", "tv", "left_mass_error", "hops")
    for cell in cells(config):
        for selection in SELECTIONS:
            part = sets.where(**cell.parameters, selected_by=selection)
            yield {
                **cell.parameters,
                "selected_by": selection,
                "abs_bias": np.median(part["abs_bias"]),
                "least": part["abs_bias"].min(),
                "largest": part["abs_bias"].max(),
                "abs_mean_bias": np.median(np.abs(part["bias"])),
                **{score: np.median(part[score]) for score in scores},
                "exploded": part["exploded"].mean(),
            }


def figures(config: DoubleWellBias, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"double-well-bias": draw(tables)}


EXPERIMENT = Experiment(
    name="double-well-bias",
    title="The bias of FLA on the double well, tuned and then judged",
    paper_item="Figure 4",
    question="How small is FLA's bias for each α, if its steps are not judged on the seeds that "
    "chose them?",
    profiles={
        "quick": DoubleWellBias(
            alphas=(1.7, 2.0),
            num_steps=2000,
            fla_a=(1e-4, 1e-2, 1.0, 100.0),
            fla_b=(0.3, 0.6),
            flmc_a=(1.0,),
            mafla_a=(100.0,),
            num_sets=2,
        ),
        "paper": DoubleWellBias(
            alphas=(1.5, 1.55, 1.6, 1.65, 1.7, 1.75, 1.8, 1.85, 1.9, 1.95, 2.0),
            num_steps=50_000,
            fla_a=(1e-7, 1e-5, 1e-3, 0.1, 10.0, 1000.0),
        ),
    },
    captions={
        "double-well-bias": "Against α: the mean |bias| of FLA by Euler's step and tamed, of FLMC "
        "and of MAFLA, with the published points and the diffusion's own bias; what choosing on "
        "the error itself hides; total variation; and hops between the wells."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
