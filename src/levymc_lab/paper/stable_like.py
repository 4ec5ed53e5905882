r"""Future direction (ii): does an α that depends on the position pay?

.. math:: α(x) = α_{\text{well}} + (α_{\text{barrier}} - α_{\text{well}})\,
   s\bigl(\tfrac{\log φ_{\max} - \log φ(x) - h}{w}\bigr), \qquad s(t) = 1/(1 + e^{-t})

Heavy jumps in the barrier and light ones in the wells, and the other way round, against the same α
everywhere.  All have the exact drift, under which the target is invariant.  Chains start in the
leftmost mode.  Step sizes are chosen on the double well, by the distance to the target, and kept on
three modes, where they are judged.

A drift with α(x) takes more evaluations than one with a single α: the comparison is made after as
many steps, and after as many evaluations.

References: [simsekli2017], section 5, names the direction; [bass1988].
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import algorithms, diagnostics, drifts, integrators, targets
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import alpha_colour, new_figure, note

from . import _double_well as well
from ._shared import failures, plain_ticks, sampled

HEAVY, LIGHT = 1.2, 1.8
LEVEL, WIDTH = 4.0, 1.0  # h and w, in units of log φ: wells end where φ is e^-4 of its maximum
NUM_PANELS = 12  # of the drift with α(x): right to 1e-4 on both targets
NUM_NODES = 48  # of the drift with one α: right to 1e-5
RADIUS = 12.0  # how far the drift with α(x) looks
CAP = 0.5
STEP_SIZES = (0.01, 0.03, 0.1)
TUNED, JUDGED = "double well", "three modes"
BARRIER, WELLS = "heavy in the barrier", "heavy in the wells"


class Target(NamedTuple):
    """A target of one number; `cores` as for `levymc.diagnostics.hops`."""

    logdensity_fn: Callable[[Any], Array]
    highest: float
    start: float
    reach: float
    cores: tuple[float, ...]
    edges: np.ndarray


@lru_cache
def target(name: str) -> Target:
    if name == TUNED:
        return Target(
            targets.double_well,
            float(targets.double_well(well.LEFT_MINIMUM)),
            well.LEFT_MINIMUM,
            well.REACH,
            well.CORES,
            well.EDGES,
        )
    density = targets.gaussian_mixture([0.35, 0.4, 0.25], [-4.0, 0.0, 4.0], [0.5, 0.4, 0.6])
    return Target(
        density, float(density(0.0)), -4.0, 7.0, (-3.0, -1.0, 1.0, 3.0), np.linspace(-7, 7, 71)
    )


@dataclass(frozen=True)
class Law:
    """α in the wells and in the barrier."""

    name: str
    in_wells: float
    in_barrier: float

    @property
    def is_constant(self) -> bool:
        return self.in_wells == self.in_barrier


LAWS = {
    law.name: law
    for law in (
        Law(BARRIER, LIGHT, HEAVY),
        Law(WELLS, HEAVY, LIGHT),
        *(Law(f"α = {alpha:g}", alpha, alpha) for alpha in (HEAVY, 1.5, LIGHT)),
    )
}


@dataclass(frozen=True)
class StableLike:
    """Sizes; `num_steps` are those of the laws whose α varies."""

    num_chains: int
    num_steps: int
    step_sizes: tuple[float, ...] = STEP_SIZES
    laws: tuple[str, ...] = tuple(LAWS)


def cells(config: StableLike) -> list[Cell]:
    """Of a target, all laws and steps share the random keys."""
    return [
        Cell(
            f"{kind}-law-{place}-step-{number}",
            {"target": name, "law": law, "step_size": step_size},
            stream=kind,
        )
        for kind, name in (("tuned", TUNED), ("judged", JUDGED))
        for place, law in enumerate(config.laws)
        for number, step_size in enumerate(config.step_sizes)
    ]


@lru_cache
def alpha_fn(name: str, law: Law) -> Callable[[Any], Array]:
    """α(x) by the height of the target; one function, so that step sizes share a program."""
    of = target(name)

    def alpha(x: Any) -> Array:
        depth = (of.highest - of.logdensity_fn(x) - LEVEL) / WIDTH
        return law.in_wells + (law.in_barrier - law.in_wells) * jax.nn.sigmoid(depth)

    return alpha


@lru_cache
def drift(name: str, law: Law) -> drifts.Drift:
    of = target(name)
    if law.is_constant:
        return drifts.quadrature(
            of.logdensity_fn,
            law.in_wells,
            radius=lambda x: jnp.abs(x) + of.reach,
            num_nodes=NUM_NODES,
        )
    return drifts.stable_like(
        of.logdensity_fn, alpha_fn(name, law), radius=RADIUS, num_panels=NUM_PANELS
    )


def sampler(name: str, law: Law, step_size: float) -> algorithms.SamplingAlgorithm:
    of = target(name)
    how: dict[str, Any] = {"drift": drift(name, law), "integrator": integrators.tamed(CAP)}
    if law.is_constant:
        return algorithms.flmc(of.logdensity_fn, step_size, law.in_wells, **how)
    return algorithms.stable_like(of.logdensity_fn, step_size, alpha_fn(name, law), **how)


def evaluations(name: str, law: Law) -> int:
    """Of the density and its gradient, for one step."""
    made = drift(name, law).evaluations
    return made.density + made.gradient


def num_steps(config: StableLike, name: str, law: Law) -> int:
    """So many that all laws make as many evaluations."""
    most = evaluations(name, LAWS[BARRIER])
    return config.num_steps * most // evaluations(name, law)


def run_cell(config: StableLike, cell: Cell, key: Any) -> CellResult:
    name, law = cell["target"], LAWS[cell["law"]]
    of, count = target(name), num_steps(config, name, law)
    starts = jnp.full(config.num_chains, of.start, jnp.float32)
    result = sampled(sampler(name, law, cell["step_size"]), key, starts, count)
    x = np.asarray(result.positions, np.float64)
    return {
        "divergent": int(np.sum(result.info.is_divergent)),
        "evaluations": evaluations(name, law),
        **{f"steps_{name}": value for name, value in _scores(of, x[:, : config.num_steps]).items()},
        **{f"work_{name}": value for name, value in _scores(of, x).items()},
    }


def _scores(of: Target, x: np.ndarray) -> dict[str, float]:
    """Total variation of all draws, and hops of a chain."""
    return {
        "tv": diagnostics.total_variation(x, of.logdensity_fn, of.edges),
        "hops": float(diagnostics.hops(x, of.cores).mean()),
    }


def summarise(config: StableLike, results: Mapping[str, CellResult]) -> Tables:
    rows = [
        {
            "target": cell["target"],
            "law": cell["law"],
            "step_size": cell["step_size"],
            "evaluations": int(results[cell.id]["evaluations"]),
            **{
                name: float(results[cell.id][name])
                for name in ("steps_tv", "steps_hops", "work_tv", "work_hops", "divergent")
            },
        }
        for cell in cells(config)
    ]
    return {
        "scores": Table.stack(
            f"{config.num_chains} chains from the leftmost mode: total variation to the target and "
            f"hops of a chain, after {config.num_steps:,} steps (steps_), and after as many "
            "evaluations as those with α(x) make in them (work_).",
            rows,
        ),
        "chosen": Table.stack(
            f"The step with the least distance on the {TUNED}, and what it gives on {JUDGED}.",
            [_chosen(rows, law, per) for law in config.laws for per in ("steps", "work")],
        ),
    }


def _chosen(rows: list[dict[str, Any]], law: str, per: str) -> dict[str, Any]:
    def of(name: str) -> list[dict[str, Any]]:
        return [row for row in rows if (row["target"], row["law"]) == (name, law)]

    tuned = min(of(TUNED), key=lambda row: row[f"{per}_tv"])
    judged = next(row for row in of(JUDGED) if row["step_size"] == tuned["step_size"])
    return {
        "law": law,
        "equal": {"steps": "steps", "work": "evaluations"}[per],
        "step_size": tuned["step_size"],
        **{
            f"{kind}_{score}": row[f"{per}_{score}"]
            for kind, row in (("tuned", tuned), ("judged", judged))
            for score in ("tv", "hops")
        },
    }


def noise(config: StableLike) -> float:
    """What the distances of two laws may differ by: twice that of a mode's share over chains.

    The share of a mode in a chain that hops little is close to zero or one, at worst by the toss of
    a coin for each chain.
    """
    return 2 * math.sqrt(0.25 / config.num_chains)


def best(tables: Tables, equal: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The better of the laws with α(x), and the best of those with one α, where they are tuned."""
    rows = tables["chosen"].where(equal=equal).rows()
    varying = [row for row in rows if not LAWS[row["law"]].is_constant]
    constant = [row for row in rows if LAWS[row["law"]].is_constant]
    by_tuning = [min(kind, key=lambda row: row["tuned_tv"]) for kind in (varying, constant)]
    return by_tuning[0], by_tuning[1]


def checks(config: StableLike, tables: Tables) -> list[Check]:
    found = [
        Check.below(
            "steps that were not made",
            tables["scores"]["divergent"].sum(),
            0,
            reason="α(x) stays in (1, 2), and the drift is finite",
        )
    ]
    for equal in ("steps", "evaluations"):
        varying, constant = best(tables, equal)
        found.append(
            Check.below(
                f"distance on {JUDGED} of the α(x) that is best on the {TUNED}, equal {equal}",
                varying["judged_tv"],
                constant["judged_tv"],
                reason="that of the single α which is best there: α(x) pays if it is below",
                explanation="a single α may be as good: then α(x) does not pay",
            )
        )
    return found


def verdict(config: StableLike, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"The comparison is not sound: {failed}.")
    words = [_sentence(config, tables, equal) for equal in ("steps", "evaluations")]
    rows = {row["law"]: row for row in tables["chosen"].where(equal="steps").rows()}
    hops = ", ".join(f"{row['judged_hops']:.3g} ({name})" for name, row in rows.items())
    return Verdict(
        "measured here",
        f"{' '.join(words)} Hops of a chain in as many steps on {JUDGED}: {hops}.{_why(rows)}",
    )


def _why(rows: dict[str, dict[str, Any]]) -> str:
    """If α in the wells is what tells the hops."""
    if not {BARRIER, WELLS} <= rows.keys():
        return ""
    if rows[WELLS]["judged_hops"] <= rows[BARRIER]["judged_hops"]:
        return ""
    return (
        " Jumps start in the wells, where a chain spends its time: heavy in the wells it hops "
        "more than heavy in the barrier."
    )


def _sentence(config: StableLike, tables: Tables, equal: str) -> str:
    varying, constant = best(tables, equal)
    gain = constant["judged_tv"] - varying["judged_tv"]
    limit = noise(config)
    pays = "It pays" if gain > limit else "It does not pay"
    level = f" (level: they differ by less than {limit:.2g})" if abs(gain) <= limit else ""
    return (
        f"{pays} at equal {equal}{level}: total variation {varying['judged_tv']:.3f} "
        f"{varying['law']} against {constant['judged_tv']:.3f} with {constant['law']} everywhere."
    )


def figures(config: StableLike, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 7.2)
    panels = figure.subplots(2, 2)
    chosen = tables["chosen"]
    for row, (kind, name) in zip(panels, (("tuned", TUNED), ("judged", JUDGED)), strict=True):
        for axes, equal in zip(row, ("steps", "evaluations"), strict=True):
            _draw(axes, chosen.where(equal=equal), kind)
            axes.set_title(f"{name[:1].upper()}{name[1:]}, equal {equal}")
            note(axes, "tuned here" if kind == "tuned" else "judged here")
    for axes in panels[-1]:
        axes.set_xlabel("hops of a chain")
    for axes in panels[:, 0]:
        axes.set_ylabel("total variation")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return {"stable-like": figure}


def _draw(axes: Axes, table: Table, kind: str) -> None:
    for row in table.rows():
        law = LAWS[row["law"]]
        mark = "o" if law.is_constant else {BARRIER: "^", WELLS: "v"}[law.name]
        style = {"marker": mark, "ms": 9, "lw": 0, "color": alpha_colour(law.in_wells)}
        if not law.is_constant:
            style |= {"mec": "black", "mew": 1.2}
        axes.plot(max(row[f"{kind}_hops"], 0.05), row[f"{kind}_tv"], label=law.name, **style)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.15 * table[f"{kind}_tv"].max())
    axes.margins(x=0.15)
    plain_ticks(axes.xaxis)


EXPERIMENT = Experiment(
    name="stable-like",
    title="An α that depends on the position",
    paper_item="Future direction (ii)",
    question="Does it pay to jump heavily in the barrier and lightly in the wells, or the other "
    "way round?",
    profiles={
        "quick": StableLike(
            num_chains=16, num_steps=100, step_sizes=(0.03,), laws=(BARRIER, f"α = {HEAVY:g}")
        ),
        "paper": StableLike(num_chains=256, num_steps=3000),
    },
    captions={
        "stable-like": "Total variation to the target against the hops of a chain, for α that "
        "varies with the position and for one α, each at the step that was best on the double "
        "well; few hops are drawn at 0.05."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
