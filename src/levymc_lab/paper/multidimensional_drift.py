r"""Equation (13): the exact drift in several dimensions, and what it costs.

.. math:: b_d(x) = -\frac{1}{φ(x)}\, D_{x_d}^{α-2} \{φ(x)\, ∂_d U(x)\}(x), \qquad d = 1, …, D

Each coordinate has its own integral along its own line, with the other coordinates fixed.  Chains
of FLMC start from independent draws of the target, which they must then keep: a Gaussian whose
coordinates are correlated, and a mixture of two Gaussians of known weights, whose means differ in
two coordinates, so that the drift is no sum over coordinates.  FLA with the leading term b̂ in the
place of b shows that the same chains would tell a drift that is wrong.

References: [simsekli2017], eq. (13).  Departures: the paper measures it nowhere.  The exact drift
grows like 1/φ: steps are split.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

from levymc import algorithms, drifts, integrators, targets
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import GREY, SAMPLERS, new_figure, note

from ._shared import failures, legend_below, plain_ticks, sampled
from .stable_laws import kolmogorov_distance

ALPHA = 1.7
NUM_NODES = 24  # of each half line: 1e-9 on these targets
REACH = 7.0  # no mass of note lies further out
CAP, MAX_SUBSTEPS = 0.25, 8
CORRELATION = 0.7  # of neighbouring coordinates
WEIGHTS, OFFSET, SCALE = (0.3, 0.7), 1.4, 0.7  # means ±OFFSET in the first two coordinates
GAUSSIAN, MIXTURE = "correlated Gaussian", "mixture"
EXACT, LEADING = "FLMC", "FLA"
FALSE_ALARM = 1e-6  # of each check
STEP_BIAS = 0.01  # of a distribution function, left to Euler's step; O(η)
NUM_TIMED = 5


@dataclass(frozen=True)
class MultidimensionalDrift:
    """Sizes.  num_chains: one number for each of `dimensions`."""

    num_chains: tuple[int, ...]
    time: float
    step_size: float
    timed_chains: int
    timed_dimensions: tuple[int, ...]
    dimensions: tuple[int, ...] = (2, 10)

    @property
    def num_steps(self) -> int:
        return round(self.time / self.step_size)


class Law(NamedTuple):
    """directions: rows; `cdf` of the target's projections onto them, of shape (draw, direction)."""

    logdensity_fn: Callable[[Any], Array]
    draws: Callable[[np.random.Generator, int], np.ndarray]
    directions: np.ndarray
    cdf: Callable[[np.ndarray], np.ndarray]


def law(name: str, dimension: int) -> Law:
    return _gaussian(dimension) if name == GAUSSIAN else _mixture(dimension)


def _gaussian(dimension: int) -> Law:
    gaps = np.subtract.outer(np.arange(dimension), np.arange(dimension))
    covariance = CORRELATION ** np.abs(gaps)
    precision, factor = np.linalg.inv(covariance), np.linalg.cholesky(covariance)
    directions = _directions(dimension)
    spreads = np.sqrt(np.einsum("ij,jk,ik->i", directions, covariance, directions))

    def logdensity(x: Any) -> Array:
        return -x @ jnp.asarray(precision, x.dtype) @ x / 2

    return Law(
        logdensity,
        lambda rng, count: rng.normal(size=(count, dimension)) @ factor.T,
        directions,
        lambda places: ndtr(places / spreads),
    )


def _mixture(dimension: int) -> Law:
    means = np.zeros((2, dimension))
    means[:, :2] = np.array([[-OFFSET], [OFFSET]])
    directions = _directions(dimension)

    def draws(rng: np.random.Generator, count: int) -> np.ndarray:
        chosen = rng.choice(2, size=count, p=WEIGHTS)
        return means[chosen] + SCALE * rng.normal(size=(count, dimension))

    def cdf(places: np.ndarray) -> np.ndarray:
        parts = [
            weight * ndtr((places - directions @ mean) / SCALE)
            for weight, mean in zip(WEIGHTS, means, strict=True)
        ]
        return sum(parts, np.zeros(places.shape))

    return Law(targets.gaussian_mixture(WEIGHTS, means, SCALE), draws, directions, cdf)


def _directions(dimension: int) -> np.ndarray:
    """The coordinates, and the sum and the difference of the first two, all of length one."""
    pair = np.zeros((2, dimension))
    pair[0, :2], pair[1, :2] = (1, 1), (1, -1)
    return np.concatenate([np.eye(dimension), pair / math.sqrt(2)])


def cells(config: MultidimensionalDrift) -> list[Cell]:
    """Both drifts have the same starts and noise."""
    laws = [
        Cell(
            f"law-{kind}-{dimension}-{sampler}",
            {"target": name, "dimension": dimension, "sampler": sampler},
            stream=f"law-{kind}-{dimension}",
        )
        for kind, name in (("gaussian", GAUSSIAN), ("mixture", MIXTURE))
        for dimension in config.dimensions
        for sampler in (EXACT, LEADING)
    ]
    return [*laws, Cell("cost", {})]


def run_cell(config: MultidimensionalDrift, cell: Cell, key: Any) -> CellResult:
    if cell.id == "cost":
        return _cost(config)
    of = law(cell["target"], cell["dimension"])
    key_starts, key_run = jax.random.split(key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key_starts)).tolist())
    count = config.num_chains[config.dimensions.index(cell["dimension"])]
    starts = of.draws(rng, count)
    sampler = _sampler(of, cell["sampler"], config.step_size)
    result = sampled(
        sampler, key_run, jnp.asarray(starts, jnp.float32), config.num_steps, thin=config.num_steps
    )
    ends = np.asarray(result.positions, np.float64)[:, -1]
    return {
        "distances": _distances(of, ends),
        "distances_at_start": _distances(of, starts),
        "right_mode": float(np.mean(ends[:, 0] + ends[:, 1] > 0)),
        "moved": float(np.mean((ends[:, 0] + ends[:, 1] > 0) != (starts[:, 0] + starts[:, 1] > 0))),
    }


def _radius(x: Any) -> Any:
    return jnp.abs(x) + REACH


def _sampler(of: Law, name: str, step_size: float) -> algorithms.SamplingAlgorithm:
    follow = integrators.split(CAP, max_substeps=MAX_SUBSTEPS)
    if name == LEADING:
        return algorithms.fla(
            of.logdensity_fn, step_size, ALPHA, integrator=follow, checks_support=False
        )
    drift = drifts.quadrature(of.logdensity_fn, ALPHA, radius=_radius, num_nodes=NUM_NODES)
    return algorithms.flmc(
        of.logdensity_fn,
        step_size,
        ALPHA,
        drift=drift,
        integrator=follow,
        checks_support=False,
    )


def _distances(of: Law, positions: np.ndarray) -> np.ndarray:
    """Kolmogorov's, along each direction."""
    levels = of.cdf(positions @ of.directions.T)
    return np.array([kolmogorov_distance(np.sort(column)) for column in levels.T])


def _cost(config: MultidimensionalDrift) -> CellResult:
    """Evaluations of the density for one drift, and CPU seconds of one, the least of some."""
    evaluations, seconds = [], []
    for dimension in config.timed_dimensions:
        of = law(GAUSSIAN, dimension)
        drift = drifts.quadrature(of.logdensity_fn, ALPHA, radius=_radius, num_nodes=NUM_NODES)
        places = jnp.asarray(of.draws(np.random.default_rng(0), config.timed_chains), jnp.float32)
        program = jax.jit(jax.vmap(drift))
        program(places).block_until_ready()
        found = []
        for _ in range(NUM_TIMED):
            begin = time.process_time()
            program(places).block_until_ready()
            found.append(time.process_time() - begin)
        evaluations.append(dimension * drift.evaluations.density)
        seconds.append(min(found) / config.timed_chains)
    return {"evaluations": np.array(evaluations), "seconds": np.array(seconds)}


def summarise(config: MultidimensionalDrift, results: Mapping[str, CellResult]) -> Tables:
    rows = [_row(config, cell, results[cell.id]) for cell in cells(config)[:-1]]
    cost = results["cost"]
    return {
        "laws": Table.stack(
            f"Kolmogorov distance of the chains' law to the target after {config.time:g} time "
            f"units in steps of {config.step_size:g}: the largest over the coordinates and two "
            "diagonals; and the share with x₁ + x₂ > 0.",
            rows,
        ),
        "cost": Table(
            "One drift by quadrature: evaluations of the density, and CPU seconds.",
            {
                "dimension": np.array(config.timed_dimensions),
                "evaluations": cost["evaluations"],
                "seconds": cost["seconds"],
            },
        ),
    }


def _row(config: MultidimensionalDrift, cell: Cell, result: CellResult) -> dict[str, Any]:
    of = law(cell["target"], cell["dimension"])
    exact = 1 - of.cdf(np.zeros((1, len(of.directions))))[0, -2]
    return {
        "target": cell["target"],
        "dimension": cell["dimension"],
        "sampler": cell["sampler"],
        "chains": config.num_chains[config.dimensions.index(cell["dimension"])],
        "directions": len(of.directions),
        "distance": float(result["distances"].max()),
        "distance_at_start": float(result["distances_at_start"].max()),
        "right_mode": result["right_mode"],
        "right_mode_exact": float(exact),
        "moved": result["moved"],
    }


def bound(row: dict[str, Any]) -> float:
    """Dvoretzky–Kiefer–Wolfowitz over all directions together."""
    return math.sqrt(math.log(2 * row["directions"] / FALSE_ALARM) / (2 * row["chains"]))


def exponent(tables: Tables, column: str) -> float:
    cost = tables["cost"]
    return float(np.polyfit(np.log(cost["dimension"]), np.log(cost[column]), 1)[0])


def checks(config: MultidimensionalDrift, tables: Tables) -> list[Check]:
    rows = tables["laws"].rows()
    found = [_check_law(row) for row in rows if row["sampler"] == EXACT]
    found += [
        _check_weight(row) for row in rows if row["sampler"] == EXACT and row["target"] == MIXTURE
    ]
    found.append(
        Check.near(
            "exponent of the evaluations in the dimension",
            exponent(tables, "evaluations"),
            1.0,
            1e-6,
            reason="a line for each coordinate",
        )
    )
    found.append(
        Check.below(
            "exponent of the time in the dimension",
            exponent(tables, "seconds"),
            3.0,
            reason="D lines, of which each evaluation takes D² numbers for this Gaussian; the "
            "smallest D are overhead",
            explanation="times depend on the machine and on what else it does",
        )
    )
    return found


def _check_law(row: dict[str, Any]) -> Check:
    return Check.below(
        f"distance of FLMC's law, {row['target']}, D = {row['dimension']}",
        row["distance"],
        bound(row) + STEP_BIAS,
        reason=f"Dvoretzky–Kiefer–Wolfowitz over {row['directions']} directions of {row['chains']} "
        f"independent chains, false-alarm rate {FALSE_ALARM:g}, and {STEP_BIAS:g} for the step",
    )


def _check_weight(row: dict[str, Any]) -> Check:
    return Check.near(
        f"weight of the mode at +{OFFSET:g}, D = {row['dimension']}",
        row["right_mode"],
        row["right_mode_exact"],
        math.sqrt(math.log(2 / FALSE_ALARM) / (2 * row["chains"])) + STEP_BIAS,
        reason=f"Hoeffding, false-alarm rate {FALSE_ALARM:g}, and {STEP_BIAS:g} for the step",
    )


def verdict(config: MultidimensionalDrift, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"These do not hold: {failed}.")
    rows = tables["laws"].rows()
    told = {name: [r for r in rows if r["sampler"] == name] for name in (EXACT, LEADING)}
    limits = [bound(row) + STEP_BIAS for row in told[LEADING]]
    missed = sum(r["distance"] > limit for r, limit in zip(told[LEADING], limits, strict=True))
    largest = config.timed_dimensions[-1]
    last = tables["cost"].rows()[-1]
    return Verdict(
        "measured here",
        f"FLMC with eq. (13) keeps the target in {' and '.join(map(str, config.dimensions))} "
        f"dimensions: after {config.time:g} time units the distribution functions along all "
        f"coordinates and two diagonals are within {max(r['distance'] for r in told[EXACT]):.3f} "
        f"of it (bounds from {min(limits):.3f}). With b̂ in the place of b it is up to "
        f"{max(r['distance'] for r in told[LEADING]):.3f}, and beyond the bound on {missed} of "
        f"{len(limits)} targets. Evaluations grow as D, "
        f"CPU time as D to the power of {exponent(tables, 'seconds'):.1f} up to D = {largest}, "
        f"where one drift takes {last['evaluations']:,} evaluations.",
    )


def figures(config: MultidimensionalDrift, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    _draw_distances(left, tables["laws"])
    _draw_cost(right, tables["cost"])
    legend_below(figure, left, 4)
    return {"multidimensional-drift": figure}


def _draw_distances(axes: Axes, table: Table) -> None:
    rows = table.rows()
    names = list(dict.fromkeys((row["target"], row["dimension"]) for row in rows))
    for shift, (sampler, label) in zip(
        (-0.18, 0.18), ((EXACT, "FLMC, b of eq. (13)"), (LEADING, "FLA, b̂")), strict=True
    ):
        values = [row["distance"] for row in rows if row["sampler"] == sampler]
        axes.bar(np.arange(len(values)) + shift, values, 0.34, color=SAMPLERS[sampler], label=label)
    exact = [row for row in rows if row["sampler"] == EXACT]
    for place, row in enumerate(exact):
        ends = (place - 0.4, place + 0.4)
        known = "bound of chance and step" if place == 0 else None
        axes.plot(ends, [bound(row) + STEP_BIAS] * 2, color="black", lw=1.2, label=known)
        first = "independent draws" if place == 0 else None
        axes.plot(ends, [row["distance_at_start"]] * 2, color=GREY, lw=1.2, ls=":", label=first)
    axes.set_xticks(
        range(len(names)), [f"{_short(name)},\nD = {dimension}" for name, dimension in names]
    )
    axes.set(title="Does the law stay the target?", ylabel="largest distance of distributions")
    axes.grid(False, axis="x")


def _short(name: str) -> str:
    return name.removeprefix("correlated ")


def _draw_cost(axes: Axes, table: Table) -> None:
    axes.loglog(table["dimension"], table["seconds"] * 1e6, "o-", color=SAMPLERS[EXACT])
    axes.set(title="Cost of one drift", xlabel="dimension D", ylabel="CPU time, µs")
    axes.set_xticks(table["dimension"], [str(d) for d in table["dimension"].tolist()])
    axes.minorticks_off()
    plain_ticks(axes.yaxis)
    note(axes, f"{table['evaluations'][0] // table['dimension'][0]} D evaluations")


EXPERIMENT = Experiment(
    name="multidimensional-drift",
    title="The exact drift in several dimensions",
    paper_item="Equation (13)",
    question="Does FLMC keep targets of 2 and 10 dimensions, and what does its drift cost?",
    profiles={
        "quick": MultidimensionalDrift(
            num_chains=(400, 60),
            time=1.0,
            step_size=0.1,
            timed_chains=64,
            timed_dimensions=(2, 4, 8),
        ),
        "paper": MultidimensionalDrift(
            num_chains=(20_000, 12_000),
            time=3.0,
            step_size=0.05,
            timed_chains=256,
            timed_dimensions=(2, 5, 10, 20, 50),
        ),
    },
    captions={
        "multidimensional-drift": "Left: Kolmogorov distance between the target and the law of "
        "chains that start in it, with the exact drift and with the leading term. Right: CPU time "
        "of one drift against the dimension, logarithmic scales."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
