r"""Which steps keep SG-FLA on ratings finite, and what they do to its answer.

With exact noise a jump of size J in one row makes the curvature of its partners grow like J²: where
it exceeds 2/η, Euler's step overshoots by more than it corrects, and all is lost.  Options of the
step that prevent this: taming, a step of each row that is bounded by its curvature, a
preconditioner with it, and noise without the longest jumps.

References: none in [simsekli2017], whose runs on ratings are short.  Its "plain" step is here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import models
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLUE, GREEN, GREY, ORANGE, VERMILLION, new_figure, note

from . import _movielens as ml
from ._shared import gathered, groups, legend_below, plain_ticks

CAP = 0.1  # longest tamed step of a coordinate; entries are of size 0.5
S2, OFFSET = 0.25, 300.0  # of the preconditioner
LOWEST, HIGHEST = 0.5, 5.0  # stars
LOOKS = ((GREY, "s"), (VERMILLION, "D"), (ORANGE, "^"), (BLUE, "o"), (GREEN, "v"))  # of options


class Option(NamedTuple):
    """A step.  step_size: of the rows' own, where there is a preconditioner."""

    id: str
    name: str
    has_rows: bool = False
    curvature: bool = False
    cap: float | None = None
    bound: float | None = None


OPTIONS = (
    Option("euler", "plain Euler"),
    Option("tamed", "tamed", cap=CAP),
    Option("curvature", "bounded by curvature", curvature=True),
    Option("rows", "preconditioner, curvature", has_rows=True, curvature=True),
    Option("cut", "preconditioner, jumps ≤ 50", has_rows=True, curvature=True, bound=ml.BOUND),
)
BY_ID = {option.id: option for option in OPTIONS}


@dataclass(frozen=True)
class Stability:
    """Sizes.  A chain is given up at its first step that leaves the finite numbers."""

    set: str
    num_steps: int
    every: int
    num_seeds: int
    alphas: tuple[float, ...] = (1.4, 1.6, 1.8, 1.9)
    step_size: float = 3e-4
    row_step: float = 0.2


def needs(config: Stability) -> None:
    ml.check_there(config.set)


def sources(config: Stability) -> dict[str, str]:
    return ml.sources(config.set)


def cells(config: Stability) -> list[Cell]:
    return [
        Cell(f"{option.id}-alpha={alpha:g}", {"option": option.id, "alpha": alpha})
        for option in OPTIONS
        for alpha in config.alphas
    ]


def run_cell(config: Stability, cell: Cell, key: Any) -> CellResult:
    option, part = BY_ID[cell["option"]], ml.part(config.set, is_tuning=False)
    model = ml.fast(
        part,
        step_size=config.row_step if option.has_rows else config.step_size,
        alpha=cell["alpha"],
        center=part.center,
        preconditioner=ml.row_steps(part, S2, OFFSET) if option.has_rows else None,
        curvature=option.curvature,
        cap=option.cap,
        truncation=option.bound,
    )
    keys = jax.random.split(key, config.num_seeds)
    runs = [_follow(config, part, model, seed, k) for seed, k in enumerate(keys)]
    return {"source": part.source, **gathered(runs)}


def _follow(
    config: Stability, part: ml.Part, model: models.FastFactorization, seed: int, key: Any
) -> dict[str, float | int]:
    """Until the end or the first divergence; the mean is over the second half."""
    predict = ml.predictor(part, part.center)
    marks = np.arange(config.every, config.num_steps + 1, config.every)
    total, count = np.zeros(part.test.num_ratings), 0
    for visit in ml.watch(model, ml.start(part, seed), key, marks):
        if visit.divergences:
            return {"lasted": visit.steps - config.every, "error": np.nan, "clipped": np.nan}
        if visit.steps > config.num_steps // 2:
            total, count = total + predict(visit.position), count + 1
    mean = total / count
    clipped = ml.rmse(np.clip(mean, LOWEST, HIGHEST), part)
    return {"lasted": config.num_steps, "error": ml.rmse(mean, part), "clipped": clipped}


def summarise(config: Stability, results: Mapping[str, CellResult]) -> Tables:
    caption = (
        "Chains that diverged, iterations that the first of them lasted, and RMSE of the "
        "predictive mean over the second half of the others, as it is and clipped to the range of "
        "ratings; medians over seeds."
    )
    return {
        "options": Table.stack(
            caption, (_row(config, cell, results[cell.id]) for cell in cells(config))
        )
    }


def _row(config: Stability, cell: Cell, result: CellResult) -> dict[str, Any]:
    diverged = result["lasted"] < config.num_steps
    kept = ~diverged
    return {
        "step": BY_ID[cell["option"]].name,
        "alpha": cell["alpha"],
        "source": str(result["source"]),
        "seeds": len(diverged),
        "diverged": int(diverged.sum()),
        "lasted": int(result["lasted"].min()),
        "error": np.median(result["error"][kept]) if kept.any() else np.nan,
        "clipped": np.median(result["clipped"][kept]) if kept.any() else np.nan,
    }


def checks(config: Stability, tables: Tables) -> list[Check]:
    """No divergence with any of the options; plain Euler is not among them."""
    _, *parts = groups(tables["options"], "step")
    return [
        Check.below(
            f"divergent chains, {name}",
            part["diverged"].sum(),
            0,
            reason=f"{part['seeds'].sum()} chains of {config.num_steps:,} iterations",
        )
        for name, part in parts
    ]


def verdict(config: Stability, tables: Tables, checks: Sequence[Check]) -> Verdict:
    table = tables["options"]
    made = "" if ml.is_real(table) else "On synthetic ratings. "
    plain = table.where(step=OPTIONS[0].name)
    early = plain["lasted"]
    ends = dict.fromkeys(f"{end + config.every:,}" for end in (early.min(), early.max()))
    when = f", the first of each α within {' to '.join(ends)} iterations"
    parts = "; ".join(_of_option(part) for _, part in list(groups(table, "step"))[1:])
    settings = f"at η = {config.step_size:g} and α = {', '.join(f'{a:g}' for a in config.alphas)}"
    return Verdict(
        "measured here",
        f"{made}By the plain step {plain['diverged'].sum()} of {plain['seeds'].sum()} chains "
        f"diverge{when if plain['diverged'].all() else ''}, {settings}. {parts}.",
    )


def _of_option(table: Table) -> str:
    errors = ", ".join(f"{row['error']:.3f} [{row['clipped']:.3f}]" for row in table.rows())
    return (
        f"{table['step'][0]}: {table['diverged'].sum()} of {table['seeds'].sum()} diverge, RMSE "
        f"[clipped to the stars] {errors} for these α"
    )


def figures(config: Stability, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 5.2)
    whole, clipped = figure.subplots(1, 2)
    for (name, part), (colour, mark) in zip(groups(tables["options"], "step"), LOOKS, strict=True):
        count = f"{part['diverged'].sum()} of {part['seeds'].sum()} diverge"
        count += ", none left to draw" if part["diverged"].sum() == part["seeds"].sum() else ""
        style: Any = {"color": colour, "marker": mark, "ms": 5.5}
        whole.plot(part["alpha"], part["error"], **style, label=f"{name}: {count}")
        clipped.plot(part["alpha"], part["clipped"], **style)
    whole.set(title="RMSE of the predictive mean", ylabel="RMSE on the test split")
    clipped.set_title("The same, clipped to the stars")
    note(clipped, "medians over seeds")
    for axes in (whole, clipped):
        _set_axes(axes, np.array(config.alphas))
    legend_below(figure, whole, 2)
    return {"movielens-stability": figure}


def _set_axes(axes: Axes, alphas: np.ndarray) -> None:
    axes.set(xlabel="α", yscale="log")
    axes.set_xticks(alphas)
    low, high = axes.get_ylim()
    places = (1, 2, 5) if high > 5 * low else (1, 1.2, 1.4, 1.6, 1.8, 8, 8.5, 9, 9.5)
    plain_ticks(axes.yaxis, places)


EXPERIMENT = Experiment(
    name="movielens-stability",
    title="Steps that keep SG-FLA finite on ratings",
    paper_item="beyond Figure 5",
    question="Which steps do not diverge with exact α-stable noise, and what do they cost?",
    profiles={
        "quick": Stability(set="small", num_steps=60, every=20, num_seeds=2, alphas=(1.4, 1.9)),
        "paper": Stability(set="ml-1m", num_steps=5000, every=100, num_seeds=5),
    },
    captions={
        "movielens-stability": "RMSE of the predictive mean against α for each step, as it is and "
        "clipped to the range of ratings; and how many chains diverge: of a step with which all "
        "do, nothing is left to draw."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
    sources=sources,
)
