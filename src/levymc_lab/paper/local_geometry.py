r"""Future direction (iii): does local geometry pay?

A step that is in proportion to the local scale of the target, m(x), needs a correction of the drift
(`docs/directions.md`); without it the law is φ/m in the place of φ: the chain without the
correction on φ is the corrected one on φ/m, and is run as that.

Two wells, one ten times as narrow as the other, for ULA, SGLD, FLA and FLMC: with a constant m,
with m(x) and with m(x) uncorrected.  Neal's funnel in two dimensions, for ULA and FLA, with one
pace for each coordinate, m = (1, e^v).  And for the adjusted samplers, whose metric is dense but
the same everywhere: a strongly correlated Gaussian and a logistic regression, for MAFLA and the
Lévy walk with and without `covariance`.

Each is run at several steps.  Of unadjusted samplers the step with the least distance to the
target is taken, so that a larger step is not bought with bias; of adjusted ones the step with the
most effective draws for an evaluation.  A distance is told from another where they differ by twice
the error of both, by bootstrap over the chains: at small steps chains hop seldom, and the weights
of the wells are chance.

References: [simsekli2017], section 5, names the direction; [neal2003] for the funnel.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

from levymc import algorithms, diagnostics, integrators, targets
from levymc.run import whole
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLUE, GREEN, GREY, VERMILLION, new_figure, note

from ._shared import failures, gathered, groups, legend_below, plain_ticks, sampled
from .stable_laws import kolmogorov_distance

ALPHA = 1.8
CONSTANT, LOCAL, UNCORRECTED = "the same m everywhere", "m(x)", "m(x), not corrected"
IDENTITY, DENSE = "no covariance", "covariance"
WELLS, FUNNEL, GAUSSIAN, LOGISTIC = "wide and narrow", "funnel", "correlated Gaussian", "logistic"
MEANS, SCALES, WEIGHTS = (-1.0, 0.3), (1.0, 0.1), (0.5, 0.5)
FUNNEL_SCALE = 1.5  # of v; x given v is N(0, e^v)
CORRELATION, DIMENSION = 0.95, 10
NUM_ROWS = 200  # of the logistic regression
STEPS = {
    WELLS: (1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    FUNNEL: (1e-3, 1e-2, 3e-2, 1e-1, 3e-1),
    GAUSSIAN: (1e-2, 3e-2, 1e-1, 3e-1, 1.0),
    LOGISTIC: (1e-2, 3e-2, 1e-1, 3e-1, 1.0),
}
UNADJUSTED = {WELLS: ("ULA", "SGLD", "FLA", "FLMC"), FUNNEL: ("ULA", "FLA")}
ADJUSTED = ("MAFLA", "Lévy walk")
BIAS = 0.05  # of a distribution function, above which an uncorrected law is seen to be wrong
NUM_LEVELS, NUM_RESAMPLES = 200, 400  # of the bootstrap: its own error is a thirtieth of the one
CLEAR = 2.0  # standard errors
NOT_HERE = "It does not pay here, or not by more than chance."


@dataclass(frozen=True)
class LocalGeometry:
    """Sizes; num_flmc_steps: of FLMC, whose drift takes hundreds of evaluations."""

    num_chains: int
    num_steps: int
    num_flmc_steps: int
    num_step_sizes: int = 5
    samplers: tuple[str, ...] = ("ULA", "SGLD", "FLA", "FLMC", *ADJUSTED)


def needs(config: LocalGeometry) -> None:
    """Refuse at once where effective draws are to be counted, and cannot be."""
    if set(ADJUSTED) & set(config.samplers) and find_spec("arviz") is None:
        raise ValueError(
            "local-geometry counts effective draws by ArviZ, which is not installed: "
            "pip install 'levymc[arviz]'."
        )


def cells(config: LocalGeometry) -> list[Cell]:
    kinds = [
        (target, sampler, geometry)
        for target, samplers in UNADJUSTED.items()
        for sampler in samplers
        for geometry in _geometries(target)
    ]
    kinds += [
        (target, sampler, geometry)
        for target in (GAUSSIAN, LOGISTIC)
        for sampler in ADJUSTED
        for geometry in (IDENTITY, DENSE)
    ]
    return [
        Cell(f"case-{place:02}", {"target": t, "sampler": s, "geometry": g}, stream=f"{t}-{s}")
        for place, (t, s, g) in enumerate(kinds)
        if s in config.samplers
    ]


def _geometries(target: str) -> tuple[str, ...]:
    """A pace of x that depends on v alone needs no correction."""
    return (CONSTANT, LOCAL, UNCORRECTED) if target == WELLS else (CONSTANT, LOCAL)


def step_sizes(config: LocalGeometry, target: str) -> tuple[float, ...]:
    sizes = STEPS[target]
    return sizes[len(sizes) // 2 :][:1] if config.num_step_sizes == 1 else sizes


_wells = targets.gaussian_mixture(WEIGHTS, MEANS, SCALES)


def pace(x: Any) -> Array:
    """The local variance of the wells: that of each component by its share in the density."""
    logs = jnp.stack(
        [
            math.log(w / s) - (x - mean) ** 2 / (2 * s * s)
            for w, mean, s in zip(WEIGHTS, MEANS, SCALES, strict=True)
        ]
    )
    shares = jax.nn.softmax(logs)
    return jnp.exp(jnp.sum(shares * jnp.log(jnp.asarray(SCALES, x.dtype) ** 2)))


def _wells_by_pace(x: Any) -> Array:
    return _wells(x) - jnp.log(pace(x))


def funnel(x: Any) -> Array:
    """log φ(v, x)."""
    v, y = x[0], x[1]
    return -(v**2) / (2 * FUNNEL_SCALE**2) - v / 2 - y**2 * jnp.exp(-v) / 2


def funnel_pace(x: Any) -> Array:
    """One for v, e^v for x, neither of which depends on its own coordinate."""
    return jnp.stack([jnp.ones_like(x[0]), jnp.exp(jnp.clip(x[0], -8.0, 8.0))])


@lru_cache
def dense_target(name: str) -> tuple[Callable[[Any], Array], np.ndarray]:
    """A log density, and a covariance: exact, or of the Gaussian around the mode."""
    if name == GAUSSIAN:
        gaps = np.subtract.outer(np.arange(DIMENSION), np.arange(DIMENSION))
        covariance = CORRELATION ** np.abs(gaps)
        precision = np.linalg.inv(covariance)
        return lambda x: -x @ jnp.asarray(precision, x.dtype) @ x / 2, covariance
    rng = np.random.default_rng(0)
    common = rng.normal(size=(NUM_ROWS, 1))
    rows = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * rng.normal(
        size=(NUM_ROWS, DIMENSION)
    )
    labels = (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-rows.sum(1) / 2))).astype(float)

    def logdensity(x: Any) -> Array:
        logits = jnp.asarray(rows, x.dtype) @ x
        fit = jnp.sum(jnp.asarray(labels, x.dtype) * logits - jnp.logaddexp(0.0, logits))
        return fit - x @ x / 8

    mode = jnp.zeros(DIMENSION)
    for _ in range(20):  # Newton
        hessian = jax.hessian(logdensity)(mode)
        mode = mode - jnp.linalg.solve(hessian, jax.grad(logdensity)(mode))
    return logdensity, np.linalg.inv(-np.asarray(jax.hessian(logdensity)(mode), np.float64))


def sampler(target: str, name: str, geometry: str, step_size: float) -> algorithms.Algorithm:
    if target in (GAUSSIAN, LOGISTIC):
        density, covariance = dense_target(target)
        metric = covariance if geometry == DENSE else None
        if name == "MAFLA":
            return algorithms.mafla(density, step_size, ALPHA, covariance=metric)
        return algorithms.levy_walk(density, math.sqrt(step_size), covariance=metric)
    density = _wells_by_pace if geometry == UNCORRECTED else _wells
    m: Any = None if geometry == CONSTANT else pace
    if target == FUNNEL:
        density, m = funnel, None if geometry == CONSTANT else funnel_pace
    if name == "ULA":
        follow = integrators.tamed()
        return algorithms.ula(density, step_size, preconditioner=m, integrator=follow)
    if name == "SGLD":  # with all of the data, of which there is none: the gradient is a function
        return algorithms.sgld(_gradient(density), step_size, preconditioner=m)
    if name == "FLA":
        return algorithms.fla(density, step_size, ALPHA, preconditioner=m)
    return algorithms.flmc(density, step_size, ALPHA, preconditioner=m)


@lru_cache
def _gradient(density: Callable[[Any], Array]) -> Callable[[Any, Any], Any]:
    slope = jax.grad(density)
    return lambda x, minibatch: slope(x)


def evaluations(made: Any) -> int:
    """Of one step: density or gradient, each as one."""
    drift = getattr(made, "drift", None)
    if drift is None or not hasattr(drift, "evaluations"):
        return 1
    return max(1, drift.evaluations.density + drift.evaluations.gradient)


def run_cell(config: LocalGeometry, cell: Cell, key: Any) -> CellResult:
    target, name = cell["target"], cell["sampler"]
    rows = []
    for size in step_sizes(config, target):
        made = sampler(target, name, cell["geometry"], size)
        count = config.num_flmc_steps if name == "FLMC" else config.num_steps
        how: dict[str, Any] = {"minibatches": whole(jnp.zeros(1))} if name == "SGLD" else {}
        result = sampled(made, key, _starts(config, target), count, **how)
        x = np.asarray(result.positions, np.float64)
        work = evaluations(made) * x.shape[0] * count
        rows.append({**_distance(target, x), "ess": _least_ess(x), "evaluations": work})
    return gathered(rows)


def _starts(config: LocalGeometry, target: str) -> Array:
    """Chains in turn at either well; at zero elsewhere."""
    if target == WELLS:
        return jnp.resize(jnp.asarray(MEANS, jnp.float32), (config.num_chains,))
    dimension = 2 if target == FUNNEL else DIMENSION
    return jnp.zeros((config.num_chains, dimension), jnp.float32)


def _distance(target: str, x: np.ndarray) -> dict[str, float]:
    """Kolmogorov's, of all draws: of the wells, of v, and of a coordinate of the Gaussian."""
    if target == LOGISTIC:
        return {"distance": math.nan, "distance_error": math.nan}
    levels = _levels(target, x if x.ndim == 2 else x[..., 0])
    distance = kolmogorov_distance(np.sort(levels.ravel()))
    return {"distance": distance, "distance_error": _bootstrap_error(levels)}


def _levels(target: str, values: np.ndarray) -> np.ndarray:
    """The target's distribution function at draws."""
    if target != WELLS:
        return ndtr(values / (FUNNEL_SCALE if target == FUNNEL else 1.0))
    return sum(
        (w * ndtr((values - mean) / s) for w, mean, s in zip(WEIGHTS, MEANS, SCALES, strict=True)),
        np.zeros(values.shape),
    )


def _bootstrap_error(levels: np.ndarray) -> float:
    """Of the distance, over chains, which are independent; `levels` has the axes (chain, step)."""
    grid = np.linspace(0, 1, NUM_LEVELS + 1)
    counts = np.stack([np.histogram(chain, grid)[0] for chain in levels])
    excess = np.cumsum(counts, axis=1) / levels.shape[1] - grid[1:]
    rng, num_chains = np.random.default_rng(0), len(levels)
    chosen = rng.multinomial(num_chains, np.full(num_chains, 1 / num_chains), NUM_RESAMPLES)
    return float(np.std(np.max(np.abs(chosen @ excess / num_chains), axis=1)))


def _least_ess(x: np.ndarray) -> float:
    """The least over the coordinates, of the bulk; none where one never moved."""
    found = diagnostics.ess(x)
    return float(min(np.min(np.nan_to_num(values)) for values in found.values()))


def summarise(config: LocalGeometry, results: Mapping[str, CellResult]) -> Tables:
    scores, chosen = [], []
    for cell in cells(config):
        result = results[cell.id]
        named = {name: cell[name] for name in ("target", "sampler", "geometry")}
        rate = 1000 * result["ess"] / result["evaluations"]
        sizes = np.array(step_sizes(config, cell["target"]))
        measured = {
            "step_size": sizes,
            "distance": result["distance"],
            "distance_error": result["distance_error"],
            "ess_per_1000": rate,
        }
        scores.append({**named, **measured})
        adjusted = cell["sampler"] in ADJUSTED
        place = int(np.nanargmax(rate) if adjusted else np.nanargmin(result["distance"]))
        chosen.append({**named, **{name: float(v[place]) for name, v in measured.items()}})
    return {
        "scores": Table.stack(
            "Kolmogorov distance of all draws to the target with its standard error, and effective "
            "draws (the least over coordinates) for 1000 evaluations, at each step.",
            scores,
        ),
        "chosen": Table.stack(
            "At the step with the least distance (unadjusted) or most effective draws (adjusted).",
            chosen,
        ),
    }


def _pairs(tables: Tables) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """With geometry and without, for each target and sampler."""
    rows = tables["chosen"].rows()
    found = {(row["target"], row["sampler"], row["geometry"]): row for row in rows}
    return [
        (row, found[(row["target"], row["sampler"], plain)])
        for row in rows
        for local, plain in ((LOCAL, CONSTANT), (DENSE, IDENTITY))
        if row["geometry"] == local
    ]


def checks(config: LocalGeometry, tables: Tables) -> list[Check]:
    found = []
    for row in tables["chosen"].where(geometry=UNCORRECTED).rows():
        found.append(
            Check.above(
                f"distance without the correction, {row['sampler']}",
                row["distance"],
                BIAS,
                reason="φ/m is invariant then: its wells weigh 0.01 and 0.99",
            )
        )
    return found + [_check_pair(local, plain) for local, plain in _pairs(tables)]


def _check_pair(local: dict[str, Any], plain: dict[str, Any]) -> Check:
    where = f"with {local['geometry']}, {local['sampler']} on {local['target']}"
    if local["geometry"] == DENSE:
        return Check.above(
            f"effective draws {where}",
            local["ess_per_1000"],
            plain["ess_per_1000"],
            reason=f"{plain['geometry']}: geometry pays if it is better",
            explanation=NOT_HERE,
        )
    return Check.below(
        f"distance {where}",
        local["distance"],
        plain["distance"] - _margin(local, plain),
        reason=f"{plain['geometry']}, less {CLEAR:g} standard errors of the difference: geometry "
        "pays if it is below",
        explanation=NOT_HERE,
    )


def _margin(local: dict[str, Any], plain: dict[str, Any]) -> float:
    return CLEAR * math.hypot(local["distance_error"], plain["distance_error"])


def verdict(config: LocalGeometry, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"These do not hold: {failed}.")
    words = []
    for target, pairs in _by_target(tables):
        parts = [_pair_in_words(local, plain) for local, plain in pairs]
        words.append(f"On {target}: {'; '.join(parts)}.")
    wrong = tables["chosen"].where(geometry=UNCORRECTED)["distance"]
    return Verdict(
        "measured here",
        f"{' '.join(words)} Without the correction the distance is {wrong.min():.2f} to "
        f"{wrong.max():.2f} at the best of all steps.",
    )


def _by_target(tables: Tables) -> list[tuple[str, list[Any]]]:
    pairs = _pairs(tables)
    names = dict.fromkeys(local["target"] for local, _ in pairs)
    return [(name, [pair for pair in pairs if pair[0]["target"] == name]) for name in names]


def _pair_in_words(local: dict[str, Any], plain: dict[str, Any]) -> str:
    ratio = local["ess_per_1000"] / plain["ess_per_1000"]
    if local["geometry"] == DENSE:
        return f"{local['sampler']} {_times(ratio)} times the effective draws for an evaluation"
    gain, margin = plain["distance"] - local["distance"], _margin(local, plain)
    answer = "pays" if gain > margin else "is worse" if gain < -margin else "cannot be told apart"
    distances = [f"{row['distance']:.3f} ± {row['distance_error']:.3f}" for row in (local, plain)]
    return (
        f"{local['sampler']} {answer} (distance {distances[0]} with m(x) and {distances[1]} "
        f"without, {_times(ratio)} times the effective draws)"
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


COLOURS = {
    CONSTANT: GREY,
    LOCAL: BLUE,
    UNCORRECTED: VERMILLION,
    IDENTITY: GREY,
    DENSE: GREEN,
}


def figures(config: LocalGeometry, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 8)
    rows: Any = figure.subfigures(2, 1)
    upper, lower = rows
    panels = upper.subplots(1, 2), lower.subplots(1, 2, sharey=True)
    chosen = tables["chosen"]
    titles = {WELLS: "Wide and narrow well", FUNNEL: "Funnel"}
    for axes, target in zip(panels[0], titles, strict=True):
        _draw(axes, chosen.where(target=target), "distance", _geometries(target))
        axes.set(title=titles[target], ylabel="distance to the target")
    note(panels[0][0], "bars: two standard errors")
    note(panels[0][1], "of v")
    for axes, target in zip(panels[1], (GAUSSIAN, LOGISTIC), strict=True):
        _draw(axes, chosen.where(target=target), "ess_per_1000", (IDENTITY, DENSE))
        axes.set(title=f"{target[:1].upper()}{target[1:]}", yscale="log")
        plain_ticks(axes.yaxis, (1,))
        note(axes, "adjusted samplers")
    panels[1][0].set_ylabel("effective draws for 1000 evaluations")
    legend_below(upper, panels[0][0], 3)
    legend_below(lower, panels[1][0], 2)
    return {"local-geometry": figure}


def _draw(axes: Axes, table: Table, column: str, geometries: Sequence[str]) -> None:
    """Distances as bars from zero; effective draws, on a scale that has none, as points."""
    samplers = [name for name, _ in groups(table, "sampler")]
    width = 0.8 / len(geometries)
    for place, geometry in enumerate(geometries):
        part = table.where(geometry=geometry)
        x = np.arange(len(samplers)) + (place - (len(geometries) - 1) / 2) * width
        look: Any = {"color": COLOURS[geometry], "label": geometry}
        if column == "distance":
            error = CLEAR * part["distance_error"]
            thin: Any = {"capsize": 3, "error_kw": {"elinewidth": 1.2}}
            axes.bar(x, part[column], 0.92 * width, yerr=error, **look, **thin)
        else:
            axes.plot(x, part[column], "o", ms=10, **look)
    axes.set_xticks(range(len(samplers)), samplers)
    axes.set_xlim(-0.5, len(samplers) - 0.5)
    axes.grid(False, axis="x")


EXPERIMENT = Experiment(
    name="local-geometry",
    title="Steps that follow the local scale",
    paper_item="Future direction (iii)",
    question="Does it pay to precondition by the position, or by a dense covariance?",
    profiles={
        "quick": LocalGeometry(
            num_chains=8,
            num_steps=1000,
            num_flmc_steps=20,
            num_step_sizes=1,
            samplers=("ULA", "Lévy walk"),
        ),
        "paper": LocalGeometry(num_chains=128, num_steps=20_000, num_flmc_steps=10_000),
    },
    captions={
        "local-geometry": "Top: distance to the target of unadjusted samplers at the best of five "
        "steps, with the same pace everywhere, with a pace that follows the local scale, and with "
        "that pace but without the drift's correction, with two standard errors. Bottom: effective "
        "draws of adjusted samplers with and without a dense covariance."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    needs=needs,
)
