r"""Figure 3: the bias of the scheme with the truncated drift b̃_{h,K}, against K and against h.

As published: the bias of the weighted mean Σ η_n X_n / Σ η_n after 5000 explicit steps that cover
5e-3 units of time,

.. math:: X_{n+1} = X_n + η_{n+1} \tilde b_{h,K}(X_n) + η_{n+1}^{1/α} ΔL_{n+1}, \qquad
   η_n = \left(\frac{10^{-7}}{n + 1}\right)^{0.6}, \qquad X_0 = -5.

And at equilibrium, where Theorem 3 says

.. math:: \left|ν(g) - \lim_N \tilde ν_N(g)\right| = O\left(h^2 + \frac{1}{hK}\right),

so that the best h would fall like K^{-1/3}.  The sampling noise of chains would hide errors of
1e-5; the stationary density of the diffusion, from its discretised generator, has none.  It is
compared with that of the exact drift on the same grid, so that the grid's own error, reported
beside, drops out.  A few runs of chains are a check.

References: [simsekli2017], Figure 3, Theorem 3.  Departures: the paper leaves open where the chain
starts and where the steps are counted from; -5 and 2 reproduce its curves.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from levymc import algorithms, drifts, integrators, iterate, observe
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import CYCLE, GREY, new_figure, note

from . import _double_well as well
from ._generator import Grid, exact_density, stationary_density, truncated_density, truncated_drift
from ._shared import failures, gathered, groups, published, sampled, spread_colour

SPACING = 0.06  # h of the figure's upper panel
START = -5.0
MOST_TERMS = 20  # the largest K of the figure
REACH = 14.0  # hK at which every sum covers the whole target from everywhere on the grid
LARGEST_SPACING = 0.7  # as wide as a well: beyond, the drift is a comb that the grid cannot follow
FINE_REACHES = np.arange(6.0, 11.01, 0.5)  # the smallest error lies here
DROP = (6.5, 8.5)  # hK between which the truncation's error vanishes
SHOWN_ALPHA = 1.7  # where one α stands for all
SHADE = "#f1f1f1"

FALSE_ALARM = 1e-8
STEP_BIAS = 0.02  # allowed for the chains' step size
K_IN_TEXT = "The text says K = 15, the points agree with K = 14: one term fewer on either side."
LIGHT_TAILS = (
    "1/(hK) bounds the truncation's error but is not its size: the target's tails are so light "
    "that a sum over hK > 9 misses nothing, so that the best h falls much faster."
)


@dataclass(frozen=True)
class Truncation:
    """Sizes.

    dx: of the grid at equilibrium.
    every: of the published spacings in the lower panel, one in so many is run.
    counts, reaches: K and hK where the best h is looked for.
    terms: K at h = 0.06.
    chain_h, chain_terms, chain_time, step_size: chains that check the grid, at α = 1.7.
    """

    dx: float
    every: int
    counts: tuple[int, ...]
    reaches: tuple[float, ...]
    terms: tuple[int, ...]
    chain_h: tuple[float, ...]
    chain_terms: tuple[int, ...]
    num_chains: int
    step_size: float
    chain_time: float = 100.0
    chain_alpha: float = 1.7
    alphas: tuple[float, ...] = (1.6, 1.7, 1.8, 1.9)
    spacings: tuple[float, ...] = (0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.25)
    panel_terms: tuple[int, ...] = (14, 15)  # for the lower panel: what fits, and what is written
    num_steps: int = 5000
    num_repeats: int = 5


def points(config: Truncation) -> Table:
    """The points of the figure that are run, and the h and K of each."""
    top, bottom = published("fig3_top_bias_vs_K"), published("fig3_bottom_bias_vs_h")
    part = {name: bottom[name][:: config.every] for name in bottom.columns}
    blocks: list[dict[str, Any]] = [
        {"panel": "bottom", **part, "h": part["x"], "K": float(count)}
        for count in config.panel_terms
    ]
    return Table.stack("", [{"panel": "top", **top.columns, "h": SPACING, "K": top["x"]}, *blocks])


def settings(config: Truncation) -> dict[str, list[tuple[float, int]]]:
    """(h, K) for each of the three questions."""
    return {
        "h": full_sums(config.spacings),
        "K": [(SPACING, count) for count in config.terms],
        "best h": fixed_terms(config.counts, config.reaches),
    }


def full_sums(spacings: Iterable[float]) -> list[tuple[float, int]]:
    """K so large that only h matters."""
    return [(h, int(np.ceil(REACH / h))) for h in spacings]


def fixed_terms(counts: Iterable[int], reaches: Iterable[float]) -> list[tuple[float, int]]:
    """For each K all h whose reach hK is asked for, up to the largest."""
    wanted = np.union1d(np.asarray(list(reaches)), FINE_REACHES)
    pairs = [(float(reach / count), count) for count in counts for reach in wanted]
    return [(h, count) for h, count in pairs if h <= LARGEST_SPACING]


def cells(config: Truncation) -> list[Cell]:
    """The published figure, the stationary laws for each α, and the chains."""
    laws = [Cell(f"laws-alpha={alpha:g}", {"alpha": alpha}) for alpha in config.alphas]
    pairs = zip(config.chain_h, config.chain_terms, strict=True)
    chains = [Cell(f"chains-h={h:g}-K={k}", {"setting": (h, k)}) for h, k in pairs]
    return [Cell("published"), *laws, *chains]


def run_cell(config: Truncation, cell: Cell, key: Any) -> CellResult:
    if cell.id == "published":
        run, sizes = points(config), (config.num_steps, config.num_repeats)
        return {"bias": mean_abs_bias(key, run["alpha"], run["h"], run["K"], *sizes)}
    if cell.id.startswith("laws"):
        return _solve(config, cell["alpha"])
    return _compare(config, cell["setting"], key)


def _solve(config: Truncation, alpha: float) -> CellResult:
    """Errors of the stationary law for all settings, and those of the grid itself."""
    grid = Grid(config.dx)
    every = [setting for part in settings(config).values() for setting in part]
    exact = exact_density(grid, alpha)
    floor = grid.difference(exact, well.density(grid.points))
    end = effect_of_ends(grid, alpha, SPACING, config.panel_terms[-1])
    found = sweep(grid, alpha, exact, every)
    return {**found, "floor_tv": floor["tv"], "floor_bias": floor["bias"], "end": end}


def sweep(
    grid: Grid, alpha: float, exact: np.ndarray, settings: Iterable[tuple[float, int]]
) -> dict[str, np.ndarray]:
    """For each (h, K) the difference from the exact drift's law, and b̃'s number of wells."""
    rows = []
    for h, num_terms in settings:
        drift = truncated_drift(grid.points, alpha, h, num_terms)
        found = stationary_density(drift, grid.points, alpha)
        wells = np.count_nonzero((drift[:-1] > 0) & (drift[1:] <= 0))
        rows.append({"h": h, "K": num_terms, "wells": wells, **grid.difference(found, exact)})
    return gathered(rows)


def effect_of_ends(grid: Grid, alpha: float, h: float, num_terms: int) -> float:
    """Total variation, within the grid, to the law on a grid half as wide again."""
    wide = Grid(grid.dx, 1.5 * grid.limit)
    inner, outer = (truncated_density(g, alpha, h, num_terms) for g in (grid, wide))
    margin = (outer.size - inner.size) // 2
    return grid.difference(outer[margin : outer.size - margin], inner)["tv"]


def _compare(config: Truncation, setting: tuple[float, int], key: Any) -> CellResult:
    """Scores of chains, and those of the stationary law."""
    alpha, grid = config.chain_alpha, Grid(config.dx)
    law = truncated_density(grid, alpha, *setting)
    solved = grid.difference(law, exact_density(grid, alpha))
    measured = well.scores(run_chains(config, setting, key))
    return {**measured, **{f"law_{name}": value for name, value in solved.items()}}


def run_chains(
    config: Truncation, setting: tuple[float, int], key: Any
) -> Float[np.ndarray, "chain draw"]:
    """Chains from independent draws of the target; the draws of their second half, thinned."""
    key_start, key_run = jax.random.split(key)
    alpha, (h, num_terms) = config.chain_alpha, setting
    drift = drifts.centered_difference(well.target, alpha, spacing=h, num_terms=num_terms)
    tamed = integrators.tamed(0.5)
    chain = algorithms.flmc(well.target, config.step_size, alpha, drift=drift, integrator=tamed)
    x = np.linspace(-7, 7, 20_001)
    levels = np.cumsum(well.density(x)) * (x[1] - x[0])
    starts = jnp.interp(jax.random.uniform(key_start, (config.num_chains,)), levels, x)
    half = round(config.chain_time / config.step_size) // 2
    thin = max(1, half // 20)
    result = sampled(chain, key_run, starts, half, burn_in=half, thin=thin)
    return np.asarray(result.positions)


def mean_abs_bias(
    key: Any,
    alpha: Float[np.ndarray, " n"],
    h: Float[np.ndarray, " n"],
    num_terms: Float[np.ndarray, " n"],
    num_steps: int,
    num_repeats: int,
) -> Float[np.ndarray, " n"]:
    """For each (α, h, K) the mean over the repeats of |weighted mean - mean of the target|."""
    settings = zip(alpha.tolist(), h.tolist(), num_terms.tolist(), strict=True)
    schemes = [_scheme(*setting) for setting in settings]
    every = [scheme for scheme in schemes for _ in range(num_repeats)]
    starts, observers = jnp.full(len(every), START), {"mean": observe.mean()}
    (last,) = iterate(every, key, starts, num_steps, at=[num_steps], observe=observers)
    means = np.asarray(last.observed["mean"]).reshape(-1, num_repeats)
    return np.abs(means - well.MEAN).mean(axis=1)


def _scheme(alpha: float, h: float, num_terms: float) -> algorithms.SamplingAlgorithm[Any]:
    drift, euler = padded_drift(alpha, h, num_terms), integrators.euler()
    return algorithms.flmc(well.target, step_size, alpha, drift=drift, integrator=euler)


def step_size(n: Any) -> Any:
    """η_n, one step further than the paper writes it."""
    return (1e-7 / (n + 1)) ** 0.6


def padded_drift(alpha: float, h: float, num_terms: float | int) -> drifts.Drift:
    """b̃ with zeros for the terms beyond K, so that all K ≤ `MOST_TERMS` share one program."""
    drift: Any = drifts.centered_difference(well.target, alpha, spacing=h, num_terms=MOST_TERMS)
    is_kept = np.arange(MOST_TERMS + 1) <= num_terms
    return dataclasses.replace(drift, coefficients=np.where(is_kept, drift.coefficients, 0.0))


def summarise(config: Truncation, results: Mapping[str, CellResult]) -> Tables:
    run = points(config)
    laws = {alpha: results[f"laws-alpha={alpha:g}"] for alpha in config.alphas}
    sweeps = _sweeps(config)
    fields = ("h", "K", "bias", "tv", "left_mass_error", "wells")
    return {
        "published": Table(
            "Figure 3: mean |bias| as published and as measured here over the same number of "
            "repeats; the lower panel with K as in the text and with the K that fits.",
            {
                **{name: run[name] for name in ("panel", "alpha", "h", "K")},
                "published": run["y"],
                "measured": results["published"]["bias"],
            },
        ),
        "equilibrium": Table.stack(
            "Stationary law with b̃ against that with the exact drift, on one grid. The sweep h has "
            f"K so large that it does not matter; the sweep K has h = {SPACING}. Wells: "
            "points that b̃ leads to from both sides. At α = 1.9 biases below 1e-4 still depend on "
            "the grid; total variations do not.",
            (
                {"sweep": sweeps, "alpha": a, **{name: r[name] for name in fields}}
                for a, r in laws.items()
            ),
        ),
        "grid": Table.stack(
            "The grid: what it finds for the exact drift, against the target; and the "
            "total variation between the laws at h = 0.06, K = 15 on it and on a wider one.",
            (
                {"alpha": a, "tv": r["floor_tv"], "bias": r["floor_bias"], "wider": r["end"]}
                for a, r in laws.items()
            ),
        ),
        "rates": Table.stack(
            "Fitted exponents: of total variation and |bias| in h; of total variation in hK, from "
            "6.5 to 8.5; of the best h in K, with its mean reach hK. And the largest |bias| over "
            "h² + 1/(hK).",
            (_rates(config, a, r) for a, r in laws.items()),
        ),
        "chains": Table.stack(
            f"Chains at α = {config.chain_alpha:g}, with η = {config.step_size:g} and tamed steps, "
            f"after {config.chain_time:g} units of time, beside the stationary law. Of the "
            "means little can be said: jumps far out come back by at most 0.5 a step.",
            (
                _chain_row(config, h, count, results[f"chains-h={h:g}-K={count}"])
                for h, count in zip(config.chain_h, config.chain_terms, strict=True)
            ),
        ),
    }


def _sweeps(config: Truncation) -> np.ndarray:
    """For each setting, which question it is for."""
    return np.array([name for name, part in settings(config).items() for _ in part])


def _rates(config: Truncation, alpha: float, law: CellResult) -> dict[str, float]:
    sweeps = _sweeps(config)
    h, reach = law["h"], law["h"] * law["K"]
    full = sweeps == "h"
    falling = (sweeps == "K") & (reach > DROP[0] - 0.01) & (reach < DROP[1] + 0.01)
    best = [_best(h, law["tv"], (sweeps == "best h") & (law["K"] == k)) for k in config.counts]
    return {
        "alpha": alpha,
        "tv_in_h": _slope(h[full], law["tv"][full]),
        "bias_in_h": _slope(h[full], np.abs(law["bias"][full])),
        "tv_in_reach": _slope(reach[falling], law["tv"][falling]),
        "best_h_in_K": _slope(np.array(config.counts), np.array(best)),
        "best_reach": float(np.mean(np.array(best) * config.counts)),
        "bound": float(np.max(np.abs(law["bias"]) / (h**2 + 1 / reach))),
    }


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _best(h: np.ndarray, error: np.ndarray, chosen: np.ndarray) -> float:
    return float(h[chosen][np.argmin(error[chosen])])


def _chain_row(config: Truncation, h: float, count: int, result: CellResult) -> dict[str, Any]:
    names = ("left_mass_error", "law_left_mass_error", "bias", "law_bias", "tv", "law_tv", "hops")
    row = {name: float(result[name]) for name in names}
    return {"h": h, "K": count, "num_chains": config.num_chains, **row}


def deviations(table: Table, panel: str, num_terms: int | None = None) -> np.ndarray:
    """|measured - published| in a panel, for one K if it is given."""
    part = table.where(panel=panel) if num_terms is None else table.where(panel=panel, K=num_terms)
    return np.abs(part["measured"] - part["published"])


def checks(config: Truncation, tables: Tables) -> list[Check]:
    return [
        *_check_figure(config, tables["published"]),
        *[_check_grid(row) for row in tables["grid"].rows()],
        *_check_rates(tables["rates"].rows()),
        *[_check_chains(row) for row in tables["chains"].rows()],
    ]


def _check_figure(config: Truncation, table: Table) -> list[Check]:
    fits, written = config.panel_terms
    return [
        Check.below(
            "upper panel, mean distance from the published points",
            deviations(table, "top").mean(),
            0.06,
            source="paper",
            reason="the points are means over 5 repeats and read off a figure",
        ),
        Check.below(
            f"lower panel with K = {fits}, mean distance from the published points",
            deviations(table, "bottom", fits).mean(),
            0.06,
            source="paper",
            reason="as above",
        ),
        Check.below(
            f"lower panel with K = {written}, median distance from the published points",
            np.median(deviations(table, "bottom", written)),
            0.06,
            source="paper",
            reason="as above; a median, as single chains explode",
            explanation=K_IN_TEXT,
        ),
    ]


def _check_grid(row: dict[str, Any]) -> Check:
    return Check.below(
        f"grid with the exact drift: total variation to the target, α = {row['alpha']:g}",
        row["tv"],
        5e-3,
        reason="the exact drift makes the target stationary; the rest is the grid's error",
    )


def _check_rates(rows: list[dict[str, Any]]) -> list[Check]:
    of_spacing = [
        Check.near(
            f"exponent of h in the total variation, α = {row['alpha']:g}",
            row["tv_in_h"],
            2.0,
            0.05,
            reason="Theorem 3, with sums that reach over the whole target",
        )
        for row in rows
    ]
    of_best = [
        Check.near(
            f"exponent of K in the best h, α = {row['alpha']:g}",
            row["best_h_in_K"],
            -1 / 3,
            0.1,
            reason="what makes h² + 1/(hK) smallest",
            explanation=LIGHT_TAILS,
        )
        for row in rows
    ]
    return of_spacing + of_best


def _check_chains(row: dict[str, Any]) -> Check:
    spread = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * row["num_chains"]))
    return Check.near(
        f"left-mass error of chains, h = {row['h']:g}, K = {row['K']}",
        row["left_mass_error"],
        row["law_left_mass_error"],
        spread + STEP_BIAS,
        reason="the stationary law's; Hoeffding's bound over independent chains, false-alarm rate "
        f"{FALSE_ALARM:g}, and {STEP_BIAS:g} for the step size",
    )


def verdict(config: Truncation, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"These are off: {failed}.")
    words = f"{_on_transient(config, tables['published'])} {_on_equilibrium(tables)}"
    return Verdict("reproduced only as a transient", words)


def _on_transient(config: Truncation, table: Table) -> str:
    fits, written = config.panel_terms
    time = np.sum(step_size(np.arange(1, config.num_steps + 1)))
    return (
        f"From -5 the curves come out to {deviations(table, 'top').mean():.3f} (upper) and "
        f"{deviations(table, 'bottom', fits).mean():.3f} (lower, with K = {fits} instead of "
        f"{written}), but the steps sum to {time:.4f} units of time: they show how far the first "
        "of them drag a chain that passes the mean on its way."
    )


def _on_equilibrium(tables: Tables) -> str:
    sweep, rates = tables["equilibrium"].where(sweep="K"), tables["rates"]
    reach, bias = sweep["h"] * sweep["K"], np.abs(sweep["bias"])
    middle = (reach > 3) & (reach < 6)
    return (
        f"At equilibrium K ≤ 15 gives a bias of {bias[reach < 1].min():.2f} to "
        f"{bias[reach < 1].max():.2f} whatever K is: the sum does not reach the other well. With "
        f"hK from 3 to 6 the drift has up to {sweep['wells'][middle].max()} wells instead of 2, "
        f"and the bias is up to {bias[middle].max():.1f}. Beyond hK = 9 the error is h² alone "
        f"(exponents {rates['tv_in_h'].min():.2f} to {rates['tv_in_h'].max():.2f}). Theorem 3 "
        f"holds as a bound, with a constant of {rates['bound'].max():.1f} over the h and K tried, "
        "but 1/(hK) is not the size of the truncation's error, which for such light tails "
        f"vanishes like (hK)^({rates['tv_in_reach'].max():.0f}) and faster: the best h falls like "
        f"K^({rates['best_h_in_K'].mean():.2f}), with hK ≈ {rates['best_reach'].mean():.1f}, not "
        "like K^(-1/3)."
    )


def figures(config: Truncation, tables: Tables) -> dict[str, Figure]:
    return {
        "as-published": draw_published(tables["published"]),
        "at-equilibrium": draw_equilibrium(tables["equilibrium"]),
    }


def _colour(alpha: float) -> Any:
    return spread_colour(alpha, 1.6, 0.82)


def draw_published(table: Table) -> Figure:
    figure = new_figure(9.5, 4.4)
    upper, lower = figure.subplots(1, 2, sharey=True)
    _draw_panel(upper, table.where(panel="top"), "K")
    bottom = table.where(panel="bottom")
    fits = bottom["K"].min()
    _draw_panel(lower, bottom.where(K=fits), "h")
    upper.set(title="Against K, h = 0.06", xlabel="K", ylabel="mean |bias|", ylim=(0, 5))
    lower.set(title="Against h", xlabel="h")
    upper.xaxis.set_major_locator(MaxNLocator(integer=True))
    note(lower, f"K = {fits:g} here, 15 in the text")
    note(upper, "lines: here, dots: published")
    upper.legend(loc="lower left", labelcolor="linecolor", handlelength=1.3)
    return figure


def _draw_panel(axes: Axes, table: Table, name: str) -> None:
    for alpha, part in sorted(groups(table, "alpha"), key=lambda group: group[0]):
        colour, order = _colour(alpha), np.argsort(part[name])
        x = part[name][order]
        axes.plot(x, part["published"][order], "o", ms=6, color=colour, alpha=0.28, mec="none")
        axes.plot(x, part["measured"][order], color=colour, lw=1.6, label=f"α = {alpha:g}")


def draw_equilibrium(table: Table) -> Figure:
    figure = new_figure(9.5, 8.2)
    (spacing, terms), (fixed, best) = figure.subplots(2, 2)
    _draw_spacing(spacing, table.where(sweep="h"))
    _draw_terms(terms, table.where(sweep="K"))
    _draw_fixed(fixed, table.where(sweep="best h", alpha=SHOWN_ALPHA))
    _draw_best(best, table.where(sweep="best h"))
    return figure


def _draw_spacing(axes: Axes, table: Table) -> None:
    for alpha, part in groups(table, "alpha"):
        colour = _colour(alpha)
        axes.loglog(part["h"], part["tv"], "o-", ms=5, color=colour, label=f"α = {alpha:g}")
    _guide(axes, table["h"], 2.0, table["tv"].max() * 1.6, "h²")
    axes.set(title="Sums that reach over all", xlabel="h", ylabel="total variation")
    _ticks(axes, (0.02, 0.05, 0.1, 0.2))
    axes.legend(loc="lower right", labelcolor="linecolor", handlelength=1.3)
    note(axes, "hK ≥ 14")


def _draw_terms(axes: Axes, table: Table) -> None:
    axes.axvspan(0, 20 * 0.06, color=SHADE, zorder=0)
    axes.text(0.6, -1.0, "the paper's K ≤ 20", rotation=90, ha="center", va="bottom", color=GREY)
    axes.axhline(0, color=GREY, lw=0.8)
    for alpha, part in groups(table, "alpha"):
        axes.plot(part["h"] * part["K"], part["bias"], ".-", ms=6, color=_colour(alpha))
    axes.set(title="How far it must reach", xlabel="reach hK", ylabel="bias at equilibrium")
    axes.set(xlim=(0, None), ylim=(-1.2, 0.5))
    note(axes, "h = 0.06")


def _draw_fixed(axes: Axes, table: Table) -> None:
    for (count, part), colour in zip(groups(table, "K"), CYCLE, strict=False):
        order = np.argsort(part["h"])
        h, error = part["h"][order], part["tv"][order]
        axes.loglog(h, error, color=colour, label=f"K = {count:g}")
        axes.plot(h[np.argmin(error)], error.min(), "o", ms=8, mfc="white", mec=colour, mew=1.8)
    axes.set(title="Fixed K", xlabel="h", ylabel="total variation")
    _ticks(axes, (0.01, 0.1, 1.0))
    axes.legend(loc="lower left", labelcolor="linecolor", handlelength=1.3)
    note(axes, f"α = {SHOWN_ALPHA:g}; rings: best h")


def _draw_best(axes: Axes, table: Table) -> None:
    """Where lines coincide, each is drawn inside the one before."""
    counts = np.unique(table["K"])
    lines = sorted(groups(table, "alpha"), key=lambda group: group[0])
    for place, (alpha, part) in enumerate(lines):
        best = [_best(part["h"], part["tv"], part["K"] == count) for count in counts]
        look: Any = {"lw": 7.0 - 1.8 * place, "ms": 15 - 3.2 * place, "color": _colour(alpha)}
        axes.loglog(counts, best, "o-", **look, label=f"α = {alpha:g}")
    first = float(table.where(K=counts[0])["h"].max())
    _guide(axes, counts, -1 / 3, first, "$K^{-1/3}$", start=True)
    _guide(axes, counts, -1.0, 6.0 / counts[0], "$K^{-1}$", start=True, above=False)
    axes.set(title="The best h", xlabel="K", ylabel="h of the smallest total variation")
    _ticks(axes, counts, (0.03, 0.1, 0.3, 1.0))
    note(axes, "dashed: bound and 1/K")
    axes.legend(loc="lower left", labelcolor="linecolor", handlelength=1.3)


def _ticks(axes: Axes, x: Sequence[float] | np.ndarray, y: Sequence[float] | None = None) -> None:
    """Plain numbers at these places of logarithmic axes, and at no others."""
    axes.set_xticks(x, [f"{tick:g}" for tick in x])
    if y is not None:
        axes.set_yticks(y, [f"{tick:g}" for tick in y])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


def _guide(
    axes: Axes,
    x: np.ndarray,
    power: float,
    height: float,
    text: str,
    *,
    start: bool = False,
    above: bool = True,
) -> None:
    """A dashed line of that slope, as high as `height` at one end."""
    ends = np.array([x.min(), x.max()])
    anchor = ends[0] if start else ends[1]
    y = height * (ends / anchor) ** power
    axes.plot(ends, y, "--", color=GREY, lw=1.2)
    middle = np.sqrt(ends.prod()), np.sqrt(y.prod())
    offset = (0, 8) if above else (-6, -8)
    side = ("left" if power < 0 else "right") if above else "right"
    axes.annotate(
        text,
        middle,
        offset,
        textcoords="offset points",
        color=GREY,
        ha=side,
        va="bottom" if above else "top",
    )


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
