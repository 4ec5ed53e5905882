r"""Corollary 1 under its own hypotheses: Euler's chain with decreasing steps.

.. math:: ν_N(g) = \frac{1}{H_N} \sum_{n ≤ N} η_n\, g(X_n), \qquad
   X_{n+1} = X_n + η_{n+1} b(X_n) + η_{n+1}^{1/α} ξ_{n+1}

The corollary asks for steps of H1, and for an exact drift b that is Lipschitz and has a Lyapunov
function (H2): that is so for heavy tails of an index of at most α.  Here SαS(1) with noise of the
same α, where b = -x/α, and Student's t with ν = 1.5.  `levymc.theory` is asked before anything is
run, and which g are covered: those below V^{a - 3/4}.

Chains start from the target, so that the mean error over many of them is the steps' part, and
their spread chance's.  The first tells the order of Euler's step: p, if it is in proportion to
Σ η^{1+p} / Σ η.  The second falls as H_N^{-1/2}.

References: [simsekli2017], Corollary 1; [panloup2008]; [chen2023] for the order: η^{1-ε} with
stable noise, and η^{2/α-1} with Pareto noise in its place, which is sharp.
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
from scipy.stats import t as student

from levymc import drifts, flmc, integrators, schedules, stable, targets, theory
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLUE, GREEN, GREY, PURPLE, new_figure, note

from ._shared import DASHED, failures, legend_below, plain_ticks, rows_at, wide
from ._weighted import fitted_slope, weighted_estimates

ALPHA, DEGREES = 1.7, 1.5
STABLE, STUDENT = "SαS(1)", "Student-t(1.5)"
COSINE, POWER = "cos x", "(1 + x²)^0.1"
EXPONENT = 0.1  # of V in the second: the corollary must cover it
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    COSINE: jnp.cos,
    POWER: lambda x: (1 + x * x) ** EXPONENT,
}
# a and b.  First steps are below 2 / 1.34, the Lipschitz constants' limit of Euler's stability.
SCHEDULES = {"b = 0.2": (1.0, 0.2), "b = 1/3": (1.0, 1 / 3), "b = 0.6": (1.0, 0.6)}
CONSTANT, STEP_SIZE = "constant", 0.3
NAMES = (*SCHEDULES, CONSTANT)
TABLE_FROM, TABLE_TO, NUM_POINTS = 1e-3, 16.0, 4001  # of asinh |x|
FITTED = 5  # slopes are fitted to the last so many doublings of N, and the first of them
SLACK = 0.15  # of a slope, for what is not yet asymptotic
FALSE_ALARM = 1e-6
SEEN = 5.0  # standard errors that a mean error must be away from zero to be fitted


@dataclass(frozen=True)
class EulerConvergence:
    """N runs over the powers of two from 2^`first` to 2^`last`."""

    num_chains: int
    last: int
    first: int = 6

    @property
    def lengths(self) -> np.ndarray:
        return 2 ** np.arange(self.first, self.last + 1)


class Target(NamedTuple):
    """draws: of a key and their number, independent ones."""

    logdensity_fn: Callable[[Any], Array]
    drift: drifts.Drift
    draws: Callable[[Any, int], Array]


@lru_cache
def target(name: str) -> Target:
    if name == STABLE:
        return Target(
            lambda x: stable.logpdf(x, ALPHA),
            drifts.stable_target(ALPHA),
            lambda key, count: stable.sample(key, ALPHA, (count,)),
        )
    density = targets.student_t(DEGREES)
    exact = drifts.quadrature(density, ALPHA)
    return Target(density, exact, lambda key, count: jax.random.t(key, DEGREES, (count,)))


@lru_cache
def _stepping_drift(name: str) -> Any:
    """The exact drift as a chain takes it: of Student's t from a table, right to 1e-5.

    b(x)/x between points that are even in asinh x, and as a power of x beyond them.
    """
    if name == STABLE:
        return target(name).drift
    ends = jnp.linspace(TABLE_FROM, TABLE_TO, NUM_POINTS)
    places = jnp.sinh(ends)
    ratios = jax.jit(jax.vmap(target(name).drift))(places) / places

    def drift(x: Any) -> Array:
        place = jnp.arcsinh(jnp.abs(x))
        beyond = jnp.maximum(jnp.abs(x) / places[-1], 1.0) ** (DEGREES - ALPHA)
        return x * jnp.interp(place, ends, ratios) * beyond

    return drift


def cells(config: EulerConvergence) -> list[Cell]:
    return [
        Cell(f"{kind}-{place}", {"target": name, "steps": steps})
        for kind, name in (("stable", STABLE), ("student", STUDENT))
        for place, steps in enumerate(NAMES)
    ]


def run_cell(config: EulerConvergence, cell: Cell, key: Any) -> CellResult:
    key_starts, key_run = jax.random.split(key)
    of, schedule = target(cell["target"]), _schedule(cell["steps"])
    starts = of.draws(key_starts, config.num_chains)
    sampler = flmc(
        of.logdensity_fn,
        schedule,
        ALPHA,
        drift=_stepping_drift(cell["target"]),
        integrator=integrators.euler(),
        checks_support=False,
    )
    found = weighted_estimates(sampler, schedule, functions, starts, config.lengths, key_run)
    sizes = _sizes(cell["steps"], config)
    total = {
        "order_one": np.cumsum(sizes**2)[config.lengths - 1],
        "order_pareto": np.cumsum(sizes ** (2 / ALPHA))[config.lengths - 1],
    }
    return {**found, **{name: part / found["time"] for name, part in total.items()}}


def functions(x: Any) -> Array:
    """Each g of x."""
    return jnp.stack([wide(g(x)) for g in FUNCTIONS.values()])


def _schedule(name: str) -> schedules.Schedule:
    if name == CONSTANT:
        return schedules.constant(STEP_SIZE)
    return schedules.polynomial(*SCHEDULES[name])


def _sizes(name: str, config: EulerConvergence) -> np.ndarray:
    last = int(config.lengths[-1])
    return np.broadcast_to(_schedule(name)(np.arange(1, last + 1)), last)


@lru_cache
def exact(name: str, function: str) -> float:
    """∫ g π by the trapezoidal rule in t, x = sinh t."""
    t = np.linspace(-30.0, 30.0, 40_001)
    x = jnp.asarray(np.sinh(t))
    logdensity = np.asarray(jax.vmap(target(name).logdensity_fn)(x))
    values = np.asarray(FUNCTIONS[function](x)) * np.exp(logdensity) * np.cosh(t)
    return float(values.sum() * (t[1] - t[0]))


def exact_cosine(sizes: np.ndarray) -> np.ndarray:
    """E ν_N(cos) - e^{-1} for every N, of Euler's chain on SαS(1) from the target.

    X_n is stable, of a scale s with s^α ← |1 - η/α|^α s^α + η.
    """
    power, found = 1.0, np.empty(sizes.size)
    for n, eta in enumerate(sizes):
        power = abs(1 - eta / ALPHA) ** ALPHA * power + eta
        found[n] = math.exp(-power)
    return np.cumsum(sizes * found) / np.cumsum(sizes) - math.exp(-1)


@lru_cache
def hypotheses() -> list[dict[str, Any]]:
    """What `levymc.theory` answers; `met` is True, too, where it only looks so, and says which."""
    rows = []
    for name in SCHEDULES:
        rows.append(_answered(f"η ∝ n^-b, {name}", theory.check_schedule(_schedule(name))))
    for name in (STABLE, STUDENT):
        drift = target(name).drift
        lyapunov = theory.check_lyapunov(drift)
        rows.append(_answered(name, theory.check_lipschitz(drift)))
        rows.append(_answered(name, lyapunov))
        covered = lyapunov.numbers["test_functions"]
        rows.append(
            {
                "of": name,
                "condition": f"g = {POWER} is covered",
                "met": bool(covered > EXPONENT),
                "proved": lyapunov.holds is True,
                "answer": f"g below V^{covered:.3g} are.",
            }
        )
    return rows


def _answered(of: str, answer: theory.Answer) -> dict[str, Any]:
    return {
        "of": of,
        "condition": answer.condition,
        "met": bool(answer.looks),
        "proved": answer.holds is True,
        "answer": answer.words,
    }


def summarise(config: EulerConvergence, results: Mapping[str, CellResult]) -> Tables:
    made = [(cell, results[cell.id]) for cell in cells(config)]
    return {
        "hypotheses": Table.stack("What the corollary asks, and whether it is met.", hypotheses()),
        "errors": Table.stack(
            "Error of the weighted estimator after N steps and the time H: its mean over the "
            "chains, with standard error, and its spread; and Σ η² / H.",
            (
                _errors(config, cell, result, place)
                for cell, result in made
                for place in range(len(FUNCTIONS))
            ),
        ),
        "slopes": Table.stack(
            "Slopes in log-log: of the mean error against Σ η^(1+p) / H, for p = 1 and for "
            "p = 2/α - 1, over the decreasing schedules together; and of the spread against H.",
            [
                _slopes(config, name, function, results)
                for name in (STABLE, STUDENT)
                for function in FUNCTIONS
            ],
        ),
    }


def _errors(config: EulerConvergence, cell: Cell, result: CellResult, place: int) -> dict[str, Any]:
    function = list(FUNCTIONS)[place]
    errors = result["estimates"][:, place] - exact(cell["target"], function)
    known = np.full(config.lengths.size, np.nan)
    if (cell["target"], function) == (STABLE, COSINE):
        known = exact_cosine(_sizes(cell["steps"], config))[config.lengths - 1]
    return {
        "target": cell["target"],
        "steps": cell["steps"],
        "function": function,
        "num_steps": config.lengths,
        "time": result["time"],
        "mean_step": result["order_one"],
        "mean": errors.mean(axis=1),
        "standard_error": errors.std(axis=1, ddof=1) / math.sqrt(errors.shape[1]),
        "spread": errors.std(axis=1, ddof=1),
        "chains": errors.shape[1],
        "known_mean": known,
    }


def _slopes(
    config: EulerConvergence, name: str, function: str, results: Mapping[str, CellResult]
) -> dict[str, Any]:
    """Mean errors are fitted where they are seen: above SEEN standard errors."""
    place, last = list(FUNCTIONS).index(function), slice(-FITTED - 1, None)
    parts: list[np.ndarray] = []
    sizes: dict[str, list[np.ndarray]] = {"order_one": [], "order_pareto": []}
    spreads, times = [], []
    for cell in cells(config):
        if cell["target"] != name or cell["steps"] == CONSTANT:
            continue
        result = results[cell.id]
        errors = result["estimates"][last, place] - exact(name, function)
        is_seen = np.abs(errors.mean(1)) > SEEN * errors.std(1) / math.sqrt(errors.shape[1])
        spreads.append(errors)
        times.append(result["time"][last])
        if is_seen.any():
            parts.append(errors[is_seen])
            for kind, values in sizes.items():
                values.append(result[kind][last][is_seen])
    spread, spread_error = fitted_slope(np.concatenate(times), spreads, _spread)
    row: dict[str, Any] = {
        "target": name,
        "function": function,
        "points": sum(len(part) for part in parts),
    }
    for kind, values in sizes.items():
        found = (math.nan, math.nan)
        if row["points"] > FITTED:
            found = fitted_slope(np.concatenate(values), parts, _absolute_mean)
        row |= {f"slope_{kind}": found[0], f"error_{kind}": found[1]}
    return {**row, "slope_spread": spread, "error_spread": spread_error}


def _absolute_mean(errors: np.ndarray) -> np.ndarray:
    return np.abs(errors.mean(axis=-1))


def _spread(errors: np.ndarray) -> np.ndarray:
    return errors.std(axis=-1, ddof=1)


def checks(config: EulerConvergence, tables: Tables) -> list[Check]:
    asked = tables["hypotheses"]
    met = Check.above(
        "hypotheses of Corollary 1 that are met",
        asked["met"].sum(),
        len(asked),
        reason="H1, Lipschitz, H2, and that the corollary covers g; proved or, for Student's t, "
        "seen at 1001 points",
    )
    return [
        met,
        _check_known(config, tables["errors"]),
        *(_check_order(row) for row in tables["slopes"].rows() if row["points"] > FITTED),
        *(_check_spread(row) for row in tables["slopes"].rows()),
        _check_constant(tables["errors"]),
    ]


def _check_known(config: EulerConvergence, errors: Table) -> Check:
    """All lengths and schedules; the union bound over them."""
    part = errors.where(target=STABLE, function=COSINE)
    excess = np.abs(part["mean"] - part["known_mean"]) / part["standard_error"]
    limit = student.isf(FALSE_ALARM / 2 / len(part), config.num_chains - 1)
    return Check.below(
        f"mean error of cos x on {STABLE} against the exact one, in standard errors",
        excess.max(),
        limit,
        reason=f"Student's t over chains, all of {len(part)} numbers together at the false-alarm "
        f"rate {FALSE_ALARM:g}",
    )


def _check_order(row: dict[str, Any]) -> Check:
    return Check.near(
        f"order of the step in the mean error of {row['function']}, {row['target']}",
        row["slope_order_one"],
        1.0,
        SLACK + 4 * row["error_order_one"],
        reason=f"four bootstrap errors, and {SLACK:g} for what is not yet asymptotic; an order of "
        f"2/α - 1 = {2 / ALPHA - 1:.2f} would give a slope of about that",
    )


def _check_spread(row: dict[str, Any]) -> Check:
    return Check.near(
        f"slope of the spread of {row['function']} against H, {row['target']}",
        row["slope_spread"],
        -0.5,
        SLACK + 4 * row["error_spread"],
        reason=f"chance's part; four bootstrap errors, and {SLACK:g} for what is not asymptotic",
    )


def _check_constant(errors: Table) -> Check:
    row = errors.where(target=STABLE, function=COSINE, steps=CONSTANT).rows()[-1]
    return Check.above(
        f"mean error of cos x with a constant step of {STEP_SIZE:g}, in standard errors",
        abs(row["mean"]) / row["standard_error"],
        SEEN,
        reason="H1 is not met by a constant step: an error stays",
    )


def verdict(config: EulerConvergence, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"These do not hold: {failed}.")
    asked = tables["hypotheses"]
    proved = rows_at(asked, asked["proved"] & (asked["of"] == STABLE))
    rows = {(r["target"], r["function"]): r for r in tables["slopes"].rows()}
    orders = ", ".join(
        f"{row['slope_order_one']:.2f} ± {2 * row['error_order_one']:.2f} for {g} on {name}"
        for (name, g), row in rows.items()
        if row["points"] > FITTED
    )
    spreads = [row["slope_spread"] for row in rows.values()]
    kept = tables["errors"].where(target=STABLE, function=COSINE, steps=CONSTANT)["mean"][-1]
    return Verdict(
        "reproduced",
        f"Hypotheses met: H1 by all three schedules (proved); a Lipschitz drift, H2 and g covered "
        f"on {STABLE} ({len(proved)} of 3 proved) and, as far as 1001 points tell, on {STUDENT}. "
        "With Euler's own step the error of the weighted estimator then tends to zero, up to "
        f"N = {tables['errors']['num_steps'].max():,}: chance's part as H to the power of "
        f"{min(spreads):.2f} to {max(spreads):.2f} (-0.5), and the steps' part with the order "
        f"{orders or 'too small to be seen'}. {_order_in_words(checks)} A constant step of "
        f"{STEP_SIZE:g}, which does not meet H1, keeps an error of {kept:.2g} for cos x.",
    )


def _order_in_words(checks: Sequence[Check]) -> str:
    orders = [check for check in checks if check.name.startswith("order of the step")]
    other = 2 / ALPHA - 1
    if not orders or any(check.target - check.tolerance <= other for check in orders):
        return "Chains are too few to tell orders apart."
    return (
        f"That is one, not 2/α - 1 = {other:.2f}, which is the order with Pareto noise in the "
        "place of stable noise."
    )


COLOURS = dict(zip(NAMES, (PURPLE, BLUE, GREEN, GREY), strict=True))
MARKS = dict(zip(NAMES, "s^Do", strict=True))


def figures(config: EulerConvergence, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 7.6)
    panels = figure.subplots(2, 3)
    for row, name in zip(panels, (STABLE, STUDENT), strict=True):
        errors = tables["errors"].where(target=name)
        for axes, function in zip(row, FUNCTIONS, strict=False):
            _draw_means(axes, errors.where(function=function))
            axes.set(title=f"{name}: {function}")
        _draw_spread(row[2], errors.where(function=COSINE))
        row[2].set(title=f"{name}: chance")
        row[0].set_ylabel("mean error: the steps' part")
    legend_below(figure, panels[0, 0], 6)
    return {"euler-convergence": figure}


def _draw_means(axes: Axes, table: Table) -> None:
    for name in NAMES:
        part = table.where(steps=name)
        part = rows_at(part, np.abs(part["mean"]) > SEEN * part["standard_error"])
        if name == CONSTANT:
            part = rows_at(part, np.arange(len(part)) == len(part) - 1)
        style = {"color": COLOURS[name], "marker": MARKS[name], "ms": 4.5, "lw": 0}
        label = f"constant η = {STEP_SIZE:g}" if name == CONSTANT else f"η ∝ n$^{{-b}}$, {name}"
        axes.loglog(part["mean_step"], np.abs(part["mean"]), **style, label=label)
    last = table.where(steps="b = 0.2").rows()[0]
    x = np.geomspace(0.05, 0.8, 20)
    level = abs(last["mean"])
    axes.loglog(x, level * x / last["mean_step"], color="black", lw=0.9, label="order 1")
    low = level * (x / last["mean_step"]) ** (2 / ALPHA - 1)
    axes.loglog(x, low, color="black", lw=0.9, ls=DASHED, label="order 2/α − 1")
    axes.set(xlabel="Σ η² / Σ η")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


def _draw_spread(axes: Axes, table: Table) -> None:
    for name in NAMES:
        part = table.where(steps=name)
        axes.loglog(part["time"], part["spread"], color=COLOURS[name], marker=MARKS[name], ms=4.5)
    time = np.geomspace(table["time"].min(), table["time"].max(), 10)
    first = table.rows()[-1]
    level = 0.7 * first["spread"] * math.sqrt(first["time"])
    axes.loglog(time, level / np.sqrt(time), color="black", lw=0.9)
    axes.set(xlabel="time H", ylabel="spread over chains, cos x")
    note(axes, "thin: H$^{-1/2}$")
    plain_ticks(axes.yaxis)


EXPERIMENT = Experiment(
    name="euler-convergence",
    title="Corollary 1 where its hypotheses are met",
    paper_item="Corollary 1, as stated",
    question="Does Euler's chain converge with decreasing steps where H1 and H2 hold, and what is "
    "its order?",
    profiles={
        "quick": EulerConvergence(num_chains=512, last=10),
        "paper": EulerConvergence(num_chains=2048, last=16),
    },
    captions={
        "euler-convergence": "On targets that meet the corollary's hypotheses, the mean error of "
        "the weighted estimator against the mean step for two functions, with lines of order one "
        "and of order 2/α − 1, and its spread over chains against the time; logarithmic scales. "
        "Means within five standard errors of zero are left out."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
