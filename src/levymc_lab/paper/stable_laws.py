r"""Figure 1: the densities of the α-stable laws, their tails, and Lévy motions.

For each α independent draws are compared with the exact law,

.. math:: E\, e^{iωX} = e^{-|ω|^α},

in the middle by the Kolmogorov distance and far out by the number of draws beyond a quantile; and
so are the ends L₁ ~ SαS(1) of motions made of many steps.

References: [simsekli2017], Figure 1.  Departures: the paper prints neither numbers nor how its
densities were approximated; here they are exact, and the tails are drawn, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import stable
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import alpha_colour, new_figure, note

from ._shared import centres, failures, groups

BIN_EDGES = np.linspace(-6.05, 6.05, 122)  # a bin has its centre at 0
THRESHOLDS = np.geomspace(0.5, 2e4, 70)
TAIL_PROBABILITY = 1e-3  # P(|X| > threshold) in the check of the tails
FALSE_ALARM = 1e-8  # of each check
LOG_RATE = math.log(2 / FALSE_ALARM)
LEAP = 0.04  # a step longer than this share of the path's range is drawn thin: it is a jump
SMALLEST_COUNT = 10  # a dot of fewer draws would say little
SMALLEST_SHARE = 3e-8


@dataclass(frozen=True)
class StableLaws:
    """Sizes.  `num_motions` only end in a check; of each kind one more is drawn in the figure."""

    num_draws: int
    num_motions: int
    alphas: tuple[float, ...] = (2.0, 1.8, 1.5, 1.2, 1.0)
    motion_alphas: tuple[float, ...] = (2.0, 1.7, 1.3)
    num_steps: int = 1000
    num_coarse_steps: int = 64


def cells(config: StableLaws) -> list[Cell]:
    """A cell for the draws of each α, and one for its motions, which share their random numbers."""
    draws = [Cell(f"draws-alpha={a:g}", {"alpha": a}) for a in config.alphas]
    motions = [
        Cell(f"motions-alpha={a:g}", {"alpha": a}, stream="motions") for a in config.motion_alphas
    ]
    return draws + motions


def run_cell(config: StableLaws, cell: Cell, key: Any) -> CellResult:
    make = _draw if cell.id.startswith("draws") else _move
    return make(config, cell["alpha"], key)


def _draw(config: StableLaws, alpha: float, key: Any) -> CellResult:
    draws = np.sort(np.asarray(stable.sample(key, alpha, (config.num_draws,))))
    counts, _ = np.histogram(draws, BIN_EDGES)
    sizes = np.sort(np.abs(draws))
    levels = np.asarray(stable.cdf(draws, alpha))
    return {
        "counts": counts,
        "exceedances": sizes.size - np.searchsorted(sizes, THRESHOLDS, side="right"),
        "num_beyond": np.count_nonzero(np.abs(levels - 0.5) > (1 - TAIL_PROBABILITY) / 2),
        "distance": kolmogorov_distance(levels),
    }


def _move(config: StableLaws, alpha: float, key: Any) -> CellResult:
    key_path, key_ends = jax.random.split(key)
    times = jnp.linspace(0.0, 1.0, config.num_steps + 1)
    path = stable.levy_motion(key_path, alpha, times)
    coarse = jnp.linspace(0.0, 1.0, config.num_coarse_steps + 1)[1:]
    ends = stable.levy_motion(key_ends, alpha, coarse, (config.num_motions,))[:, -1]
    return {
        "time": times,
        "position": path,
        "distance": kolmogorov_distance(np.sort(np.asarray(stable.cdf(ends, alpha)))),
    }


def kolmogorov_distance(levels: np.ndarray) -> float:
    """sup |F̂ - F| over the line, from the values of F at the draws, in increasing order."""
    steps = np.arange(levels.size + 1) / levels.size
    return float(max(np.max(steps[1:] - levels), np.max(levels - steps[:-1])))


def summarise(config: StableLaws, results: Mapping[str, CellResult]) -> Tables:
    draws = {alpha: results[f"draws-alpha={alpha:g}"] for alpha in config.alphas}
    motions = {alpha: results[f"motions-alpha={alpha:g}"] for alpha in config.motion_alphas}
    rows = [_distance("draws", a, config.num_draws, r) for a, r in draws.items()]
    rows += [_distance("L₁", a, config.num_motions, r) for a, r in motions.items()]
    return {
        "densities": Table.stack(
            "Density: histogram of the draws (mean over a bin) and exact value at its centre.",
            (_density(a, r["counts"] / config.num_draws) for a, r in draws.items()),
        ),
        "tails": Table.stack(
            "Tails: share of the draws with |X| > x, and P(|X| > x).",
            (_tail(a, r["exceedances"] / config.num_draws) for a, r in draws.items()),
        ),
        "motions": Table.stack(
            "Lévy motions, one for each α, made from the same random numbers; to four decimals.",
            (
                {"alpha": a, "time": r["time"].round(4), "position": r["position"].round(4)}
                for a, r in motions.items()
            ),
        ),
        "distances": Table.stack(
            "Kolmogorov distances to the exact law, and draws in its outer "
            f"{TAIL_PROBABILITY:g} over their expected number.",
            rows,
        ),
    }


def _density(alpha: float, shares: np.ndarray) -> dict[str, Any]:
    x = centres(BIN_EDGES)
    exact = np.asarray(stable.pdf(x, alpha))
    return {"alpha": alpha, "x": x, "measured": shares / np.diff(BIN_EDGES), "exact": exact}


def _tail(alpha: float, shares: np.ndarray) -> dict[str, Any]:
    exact = 2 * np.asarray(stable.sf(THRESHOLDS, alpha))
    return {"alpha": alpha, "x": THRESHOLDS, "measured": shares, "exact": exact}


def _distance(of: str, alpha: float, count: int, result: CellResult) -> dict[str, Any]:
    ratio = result.get("num_beyond", math.nan) / (count * TAIL_PROBABILITY)
    row = {"of": of, "alpha": alpha, "count": count}
    return {**row, "distance": result["distance"], "tail_ratio": ratio}


def checks(config: StableLaws, tables: Tables) -> list[Check]:
    """Bounds that right code misses with probability at most FALSE_ALARM each."""
    rows = tables["distances"].rows()
    tail_rows = [row for row in rows if row["of"] == "draws"]
    return [_check_distance(row) for row in rows] + [_check_tail(row) for row in tail_rows]


def _check_distance(row: dict[str, Any]) -> Check:
    return Check.below(
        f"Kolmogorov distance of {row['of']}, α = {row['alpha']:g}",
        row["distance"],
        math.sqrt(LOG_RATE / (2 * row["count"])),
        reason=f"Dvoretzky–Kiefer–Wolfowitz bound, false-alarm rate {FALSE_ALARM:g}",
    )


def _check_tail(row: dict[str, Any]) -> Check:
    """The number of draws is binomial; Bernstein bounds its distance from the mean."""
    expected = row["count"] * TAIL_PROBABILITY
    spread = LOG_RATE / 3 + math.sqrt(LOG_RATE**2 / 9 + 2 * expected * LOG_RATE)
    return Check.near(
        f"tail draws over expected, α = {row['alpha']:g}",
        row["tail_ratio"],
        1.0,
        spread / expected,
        reason=f"draws in the outer {TAIL_PROBABILITY:g} of the law; Bernstein's bound, "
        f"false-alarm rate {FALSE_ALARM:g}",
    )


def verdict(config: StableLaws, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"Draws and exact law disagree: {failed}.")
    worst = float(np.max(tables["distances"].where(of="draws")["distance"]))
    return Verdict(
        "measured here",
        "The figure has no numbers, and its shapes are those drawn here: tails that thicken and "
        "jumps that grow as α falls. Our draws follow the exact laws: over "
        f"{config.num_draws:,} draws for each α the distribution functions differ by at most "
        f"{worst:.1g}.",
    )


def figures(config: StableLaws, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 7.4)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.15, 1), hspace=0.04)[:, 0]
    densities, tails = top.subplots(1, 2)
    _draw_densities(densities, tables["densities"])
    _draw_tails(tails, tables["tails"], SMALLEST_COUNT / config.num_draws)
    motions = list(groups(tables["motions"], "alpha"))
    panels = bottom.subplots(1, len(motions), squeeze=False)[0]
    for axes, (alpha, path) in zip(panels, motions, strict=True):
        _draw_motion(axes, alpha, path)
    panels[0].set_ylabel("position")
    return {"stable-laws": figure}


def _name(alpha: float) -> str:
    return f"α = {alpha:g}" + {2.0: " (Gaussian)", 1.0: " (Cauchy)"}.get(alpha, "")


def _draw_densities(axes: Axes, table: Table) -> None:
    for place, (alpha, part) in enumerate(groups(table, "alpha")):
        axes.plot(part["x"], part["exact"], color=alpha_colour(alpha), label=_name(alpha))
        shown = slice(place, None, 5)  # so that dots of neighbouring curves do not hide each other
        _dots(axes, part["x"][shown], part["measured"][shown], alpha)
    axes.set(title="Density", xlabel="x", ylabel="probability density")
    axes.set(xlim=(-6, 6), ylim=(0, None))
    axes.legend(loc="upper left", handlelength=1.3, labelcolor="linecolor")
    note(axes, "lines: exact, dots: draws")


def _draw_tails(axes: Axes, table: Table, smallest: float) -> None:
    for alpha, part in groups(table, "alpha"):
        axes.loglog(part["x"], part["exact"], color=alpha_colour(alpha))
        seen = part["measured"] >= smallest
        _dots(axes, part["x"][seen][::2], part["measured"][seen][::2], alpha)
        if alpha < 2 and part["exact"][-1] > SMALLEST_SHARE:
            _label_end(axes, part, alpha)
    axes.set(title="Tails", xlabel="x", ylabel="P(|X| > x)", ylim=(SMALLEST_SHARE, 1.5))
    axes.set(xlim=(table["x"].min(), table["x"].max()))
    note(axes, "both axes logarithmic")


def _label_end(axes: Axes, part: Table, alpha: float) -> None:
    axes.annotate(
        f"$x^{{-{alpha:g}}}$",
        (part["x"][-1], part["exact"][-1]),
        xytext=(5, 0),
        textcoords="offset points",
        color=alpha_colour(alpha),
        va="center",
        fontsize=11,
        annotation_clip=False,
    )


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray, alpha: float) -> None:
    axes.plot(x, y, "o", ms=4, mfc="white", mec=alpha_colour(alpha), mew=1.0)


def _draw_motion(axes: Axes, alpha: float, path: Table) -> None:
    """One path; what it covers within a single step by a jump is drawn thin."""
    time, position, colour = path["time"], path["position"], alpha_colour(alpha)
    steps = np.abs(np.diff(position))
    leaps = np.flatnonzero((steps > LEAP * np.ptp(position)) & (alpha < 2)) + 1
    whole = np.insert(time, leaps, np.nan), np.insert(position, leaps, np.nan)
    axes.plot(time, position, color=colour, linewidth=0.6, alpha=0.45)
    axes.plot(*whole, color=colour, linewidth=1.3)
    kind = "Brownian" if alpha == 2.0 else "Lévy"
    axes.set(title=f"{kind}, α = {alpha:g}", xlabel="time", xlim=(0, 1))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    note(axes, f"largest step {steps.max():.2f}")


EXPERIMENT = Experiment(
    name="stable-laws",
    title="The α-stable laws and the motions that they drive",
    paper_item="Figure 1",
    question="Do the draws follow the exact α-stable laws, from the middle to the far tail?",
    profiles={
        "quick": StableLaws(num_draws=200_000, num_motions=20_000),
        "paper": StableLaws(num_draws=10_000_000, num_motions=200_000),
    },
    captions={
        "stable-laws": "Top: densities and tails of the α-stable laws, dots for the draws and "
        "lines for the exact law. Bottom: a Lévy motion for each of three α, with larger jumps "
        "the smaller α is."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
