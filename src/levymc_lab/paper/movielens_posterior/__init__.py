r"""What the paper lacks on ratings: how near the samplers come to the posterior, and in what time.

The predictive mean of a rating is the mean of a_u · b_i over the draws.  The Gibbs sampler gives
it exactly; SGLD and SG-FLA give it up to their bias, from a tenth of the ratings a step.  Step size
and preconditioner of each method are tuned on a validation split and reported on the test split,
over several seeds, with the time that one core takes.

SG-FLA with truncated noise is colder than the posterior: its noise has a finite variance v, so that
it samples about φ^{1/T} with T = v (η m)^{2/α - 1} / (2 c_α) < 1 in a row of step η m.  SGLD with
its noise scaled by the same √T tells what the temperature does by itself.

References: [salakhutdinov2008] for the Gibbs sampler; [simsekli2017] has no such comparison.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from levymc_lab.framework import Cell, CellResult, Experiment, Table, Tables

from .. import _movielens as ml
from ._checks import checks, verdict
from ._methods import METHODS, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Posterior:
    """Sizes.

    step_sizes, offsets: η and c of the preconditioner 1/(1 + s²(d + c)) that are tried.
    plain_steps: η that are tried without it.
    tuning_steps, num_steps, num_sweeps: of a chain that is tuned, of one that is reported, and of
        the Gibbs sampler.
    """

    set: str
    step_sizes: tuple[float, ...]
    offsets: tuple[float, ...]
    plain_steps: tuple[float, ...]
    tuning_steps: int
    num_steps: int
    num_sweeps: int
    num_seeds: int
    burn_in: int
    every: int
    s2: float = 0.25


def needs(config: Posterior) -> None:
    ml.check_there(config.set)


def cells(config: Posterior) -> list[Cell]:
    return [Cell(method.id, {"method": method.id}) for method in METHODS]


def run_cell(config: Posterior, cell: Cell, key: Any) -> CellResult:
    """Tune on the validation split, then report on the test split."""
    return report(config, cell["method"], key)


def summarise(config: Posterior, results: Mapping[str, CellResult]) -> Tables:
    return {
        "scores": Table.stack(
            "Predictive mean on the test split, over seeds: RMSE (mean, least, largest), that of a "
            "single draw, share of ratings inside the 90 % interval, seconds on one core in all "
            "and until within 0.002 of the Gibbs sampler's end (infinite if never), what was "
            "chosen on the validation split, and steps that diverged.",
            (_row(method, results) for method in METHODS),
        ),
        "curves": Table.stack(
            "RMSE of the running predictive mean against seconds on one core; mean over seeds.",
            (
                {
                    "method": method.name,
                    "seconds": results[method.id]["seconds"].mean(axis=0).round(4),
                    "error": results[method.id]["errors"].mean(axis=0).round(5),
                }
                for method in METHODS
            ),
        ),
    }


def _row(method: Any, results: Mapping[str, CellResult]) -> dict[str, Any]:
    result = results[method.id]
    last, goal = result["errors"][:, -1], results["gibbs"]["errors"][:, -1].mean() + 0.002
    mean, clock = result["errors"].mean(axis=0), result["seconds"].mean(axis=0)
    there = clock[mean <= goal]
    return {
        "method": method.name,
        "source": str(result["source"]),
        "error": last.mean(),
        "least": last.min(),
        "largest": last.max(),
        "single": result["single"].mean(),
        "coverage": result["coverage"].mean(),
        "seconds": clock[-1],
        "seconds_to_goal": there[0] if there.size else float("inf"),
        "step_size": float(result["step_size"]),
        "offset": float(result["offset"]),
        "temperature": float(result["temperature"]),
        "divergences": int(result["divergences"].sum()),
        "seeds": len(last),
    }


def figures(config: Posterior, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"movielens-posterior": draw(tables)}


EXPERIMENT = Experiment(
    name="movielens-posterior",
    title="Ratings: how near to the posterior, and how fast",
    paper_item="beyond Figure 5",
    question="Do SGLD and SG-FLA reach the Gibbs sampler's predictions, and sooner?",
    profiles={
        "quick": Posterior(
            set="small",
            step_sizes=(0.1, 0.3),
            offsets=(100.0,),
            plain_steps=(1e-3,),
            tuning_steps=40,
            num_steps=120,
            num_sweeps=60,
            num_seeds=2,
            burn_in=20,
            every=10,
        ),
        "paper": Posterior(
            set="ml-1m",
            step_sizes=(0.1, 0.2, 0.4),
            offsets=(100.0, 300.0),
            plain_steps=(1e-4, 3e-4, 1e-3),
            tuning_steps=1000,
            num_steps=8000,
            num_sweeps=600,
            num_seeds=5,
            burn_in=200,
            every=10,
        ),
    },
    captions={
        "movielens-posterior": "Left: RMSE of the running predictive mean against seconds on one "
        "core. Right: where each method ends, over seeds, and the band of 0.002 about the Gibbs "
        "sampler."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
)
