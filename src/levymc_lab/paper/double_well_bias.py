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

The grid of each method reaches beyond what is best for it, where there is such a thing: with the
smallest a chains stay in their well, with the largest they explode or are far from the target.
MAFLA's test leaves its steps no bias, and its a is taken from the upper end of the grid: its bias
could still be less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import iterate, observe, schedules
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLACK, GREY, INK, ORANGE, SAMPLERS, new_figure, note

from . import _double_well as well
from ._generator import leading_density
from ._shared import DASHED, DOTTED, failures, heavy, legend_below, plain_ticks, published, wide

START = -5.0
GRID = np.linspace(-20.0, 20.0, 1001)  # finer or wider changes the mean by less than 1e-5
METHODS = ("FLA, Euler", "FLA, tamed", "FLMC", "MAFLA")
EULER, TAMED, EXACT, ADJUSTED = METHODS
BY_SIZE, BY_MEAN = "mean |bias|", "|mean bias|"
PLATEAU = (1.55, 1.6, 1.65, 1.7)  # where the published bias is nearly level
CLOSE = 0.15  # of two mean |bias|; a set of ten scatters by 0.1 or more
OBSERVERS = {
    "mean": observe.mean(wide),
    "histogram": observe.histogram(well.EDGES, wide),
    "hops": observe.hops(*well.CORES),
    "divergences": observe.divergences(),
}


@dataclass(frozen=True)
class DoubleWellBias:
    """Sizes, and the pairs (a, b) that are tried: all of `fla_a` with all of `fla_b`, and so on.

    Below a = 1e-3 FLMC hops too seldom: in a trial of 50 000 steps its mean |bias| was 1.1 to 2.4
    with a = 1e-4 and b = 0.3, for α = 1.5 to 1.9, and 0.7 to 1.7 with 0.01.
    """

    alphas: tuple[float, ...]
    num_steps: int
    fla_a: tuple[float, ...]
    fla_b: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    flmc_a: tuple[float, ...] = (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
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
    count = config.num_sets * config.num_repeats
    found = simulate(cell["method"], cell["alpha"], pairs, count, config.num_steps, key)
    histogram = found["histogram"].reshape(*shape, -1).mean(axis=2)
    return {
        "bias": found["mean"].reshape(shape) - well.MEAN,
        "tv": np.abs(histogram - well.masses()).sum(axis=-1) / 2,
        "left_mass": histogram[..., : well.EDGES.size // 2 + 1].sum(axis=-1),
        "hops": found["hops"].reshape(shape).mean(axis=2),
        "exploded": (found["divergences"] > 0).reshape(shape).mean(axis=2),
    }


def simulate(
    method: str, alpha: float, pairs: np.ndarray, count: int, num_steps: int, key: Any
) -> dict[str, np.ndarray]:
    """Of `count` chains for each pair (a, b), in float32, what is observed of every step.

    Every chain has its own random numbers.  A step that would leave the finite numbers is not made,
    and counts as a divergence.
    """
    tried = [schedules.polynomial(*pair) for pair in pairs.tolist()]
    samplers = [well.algorithm(well.Sampler(method, alpha, steps)) for steps in tried]
    every = [sampler for sampler in samplers for _ in range(count)]
    starts = jnp.full(len(every), START, jnp.float32)
    (last,) = iterate(every, key, starts, num_steps, at=[num_steps], observe=OBSERVERS)
    return {name: np.asarray(values) for name, values in last.observed.items()}


def diffusion(alpha: float) -> dict[str, Any]:
    """FLA's diffusion: its mean, bias and distance from the target, beside the published bias."""
    x, dx = GRID, GRID[1] - GRID[0]
    law = leading_density(x, alpha)
    mean = float((x * law).sum() * dx)
    paper = published("fig4_bias_vs_alpha").where(x=alpha)["y"]
    return {
        "alpha": alpha,
        "mean": mean,
        "bias": abs(mean - well.MEAN),
        "tv": np.abs(law - well.density(x)).sum() * dx / 2,
        "published": paper[0] if paper.size else np.nan,
    }


def summarise(config: DoubleWellBias, results: Mapping[str, CellResult]) -> Tables:
    sets = Table.stack(
        "The pair chosen on each set of repeats: its bias there (chosen), and scores on the next.",
        (
            row
            for cell in cells(config)
            for selection in (BY_SIZE, BY_MEAN)
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
    score = absolute if selection == BY_SIZE else mean
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
        for selection in (BY_SIZE, BY_MEAN):
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


def checks(config: DoubleWellBias, tables: Tables) -> list[Check]:
    published = {row["alpha"]: row["published"] for row in tables["diffusion"].rows()}
    level = [row for row in tables["diffusion"].rows() if row["alpha"] in PLATEAU]
    return [
        *(_check_published(row, published[row["alpha"]]) for row in _part(tables, EULER).rows()),
        *([_check_plateau(level)] if level else []),
        _check_choice(tables),
        *(_check_adjusted(row) for row in heavy(_part(tables, ADJUSTED)).rows()),
    ]


def _part(tables: Tables, method: str, selection: str = BY_SIZE) -> Table:
    return tables["bias"].where(method=method, selected_by=selection)


def _check_published(row: dict[str, Any], published: float) -> Check:
    gaussian = row["alpha"] == 2
    return Check.near(
        f"mean |bias| of FLA by Euler's step, α = {row['alpha']:g}",
        row["abs_bias"],
        published,
        CLOSE,
        source="paper",
        reason="read off Figure 4; a set of ten repeats scatters by 0.1 or more",
        explanation=""
        if gaussian
        else "Steps large enough to hop often let Euler's step explode; smaller ones leave chains "
        "in the well where they started.",
    )


def _check_plateau(level: list[dict[str, Any]]) -> Check:
    return Check.near(
        "published bias, mean over α = 1.55 to 1.7",
        np.mean([row["published"] for row in level]),
        np.mean([row["bias"] for row in level]),
        0.05,
        reason="the FLA diffusion's own bias, from its generator; read off a figure",
    )


def _check_adjusted(row: dict[str, Any]) -> Check:
    return Check.below(
        f"total variation of MAFLA, α = {row['alpha']:g}",
        row["tv"],
        0.25,
        reason="exact for every step; what remains is the share of the wells, known from hops only",
    )


def _check_choice(tables: Tables) -> Check:
    rows = tables["sets"].where(method=TAMED, selected_by=BY_MEAN)
    return Check.above(
        "|mean bias| of tamed FLA, other seeds less those that chose",
        np.mean(np.abs(rows["bias"]) - rows["chosen_bias"]),
        0.0,
        reason="the least of many noisy numbers is too small on average",
    )


def verdict(config: DoubleWellBias, tables: Tables, checks: Sequence[Check]) -> Verdict:
    failed = failures(checks)
    words = f"These do not hold: {failed}. " if failed else ""
    parts = (_of_euler, _of_tamed, _of_choice, _of_exact)
    said = [*(part(tables) for part in parts), _of_edges(config, tables)]
    return Verdict("not reproduced", words + " ".join(said))


def _span(table: Table, score: str) -> str:
    """Of α < 2, from the least to the largest."""
    values = heavy(table)[score]
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return low if low == high else f"{low} to {high}"


def _of_euler(tables: Tables) -> str:
    part, pairs = _part(tables, EULER), heavy(tables["pairs"].where(method=EULER))
    exploding, staying, count = (pairs[name].sum() for name in ("exploding", "staying", "pairs"))
    gaussian = part.where(alpha=2.0)["abs_bias"].tolist()
    stuck = f" At α = 2 it is {gaussian[0]:.2f}: all stay in the left well." if gaussian else ""
    return (
        "By Euler's step the mean |bias| of the best pair for α < 2 is "
        f"{_span(part, 'chosen_abs_bias')} even on the seeds that chose it (published: "
        f"{_span(tables['diffusion'], 'published')}): of {count} pairs, over all α, {exploding} "
        f"let a chain explode, and with {staying} more chains hop less than once.{stuck}"
    )


def _of_tamed(tables: Tables) -> str:
    return (
        f"Tamed, FLA comes to {_span(_part(tables, TAMED), 'abs_bias')}. Its diffusion has a bias "
        f"of {_span(tables['diffusion'], 'bias')} of its own, whatever the steps, and that is "
        "where the published points at α = 1.55 to 1.7 lie."
    )


def _of_choice(tables: Tables) -> str:
    part = _part(tables, TAMED, BY_MEAN)
    return (
        "Less can be had by choosing on the error itself: chosen by |mean bias| over ten repeats, "
        f"tamed FLA shows {_span(part, 'chosen_bias')} on the seeds that chose, of the order "
        f"of the published 0.03 at α = 1.75, and {_span(part, 'abs_mean_bias')} on others."
    )


def _of_exact(tables: Tables) -> str:
    tamed, exact, adjusted = (_part(tables, method) for method in (TAMED, EXACT, ADJUSTED))
    return (
        f"For α < 2 the total variation is {_span(tamed, 'tv')} for tamed "
        f"FLA, {_span(exact, 'tv')} for FLMC and {_span(adjusted, 'tv')} for MAFLA, whose mean "
        f"|bias| is {_span(adjusted, 'abs_bias')}. FLMC's is {_span(exact, 'abs_bias')}, "
        f"{_less_often(tables)}. A tamed step takes long to come back from a far jump, which the "
        "mean feels and the total variation does not."
    )


def _less_often(tables: Tables) -> str:
    """For how many α < 2 FLMC's mean |bias| is less than tamed FLA's, with the pairs of each."""
    ours, theirs = (heavy(_part(tables, method))["abs_bias"] for method in (EXACT, TAMED))
    tried = (int(tables["pairs"].where(method=method)["pairs"][0]) for method in (EXACT, TAMED))
    share = f"{np.sum(ours < theirs)} of {ours.size} α"
    return "with {} pairs tried for each α, and less than tamed FLA's, with {}, for {}".format(
        *tried, share
    )


def _of_edges(config: DoubleWellBias, tables: Tables) -> str:
    """How often a search ended where its grid does."""
    parts = []
    for method in METHODS:
        chosen = tables["sets"].where(method=method, selected_by=BY_SIZE)["a"]
        tried = config.pairs(method)[:, 0]
        ends = [np.sum(chosen == end) for end in (tried.min(), tried.max())]
        parts.append(f"{method} {ends[0]} and {ends[1]} of {chosen.size}")
    return (
        f"Chosen at the least and the largest a that was tried: {'; '.join(parts)}. MAFLA's steps "
        "have no bias, whatever a: its own could still be less."
    )


STYLES: dict[str, dict[str, Any]] = {
    EULER: {"color": ORANGE, "marker": "s"},
    TAMED: {"color": SAMPLERS["FLA"], "marker": "D"},
    EXACT: {"color": SAMPLERS["FLMC"], "marker": "^"},
    METHODS[-1]: {"color": SAMPLERS["MAFLA"], "marker": "o"},
}
CEILING = 12.0  # larger means, of exploded chains, are drawn here
ASIDE = 0.004  # in α, so that the spans of two methods do not hide each other


def figures(config: DoubleWellBias, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(11, 8.8)
    (bias, chosen), (distance, hops) = figure.subplots(2, 2)
    honest, diffusion = tables["bias"].where(selected_by=BY_SIZE), tables["diffusion"]
    own = heavy(diffusion)
    _draw_bias(bias, honest, diffusion)
    _draw_chosen(chosen, tables["bias"].where(method=TAMED), diffusion)
    _draw_score(distance, honest, "tv")
    distance.plot(own["alpha"], own["tv"], color=INK, ls=DASHED, lw=1.3)
    distance.set(title="Total variation to the target", xlabel="α", ylim=(None, 1))
    _draw_score(hops, honest, "hops")
    hops.set(title="Hops between the wells", xlabel="α", ylabel="a chain, and one more")
    for axes in (bias, chosen, distance, hops):
        _set_ticks(axes, diffusion["alpha"])
    legend_below(figure, bias, 3)
    return {"double-well-bias": figure}


def _draw_bias(axes: Axes, table: Table, diffusion: Table) -> None:
    for place, (method, style) in enumerate(STYLES.items()):
        part = table.where(method=method)
        x = part["alpha"] + ASIDE * (place - 1.5)
        ends = np.minimum(part["least"], CEILING), np.minimum(part["largest"], CEILING)
        axes.vlines(x, *ends, color=style["color"], lw=2.4, alpha=0.35)
        y = np.minimum(part["abs_bias"], CEILING)
        axes.plot(x, y, **style, ms=5, label=method)
    axes.axhline(CEILING, color=GREY, lw=0.8, ls=DOTTED)
    at_right: Any = {"ha": "right", "va": "bottom", "transform": axes.get_yaxis_transform()}
    words = "or more: a chain explodes, or is far out"
    axes.text(1, 1.08 * CEILING, words, color=GREY, fontsize=9, **at_right)
    _draw_reference(axes, diffusion)
    axes.set(title="Mean |bias|, on other seeds", xlabel="α", ylim=(0.02, 25), yscale="log")
    note(axes, "median and range of sets")


def _draw_reference(axes: Axes, diffusion: Table) -> None:
    own = heavy(diffusion)
    axes.plot(own["alpha"], own["bias"], color=INK, ls=DASHED, lw=1.3, label="FLA diffusion")
    style: Any = {"marker": "*", "ms": 9, "mfc": "white", "mec": BLACK, "ls": "none", "zorder": 5}
    axes.plot(diffusion["alpha"], diffusion["published"], **style, label="published")


def _draw_chosen(axes: Axes, table: Table, diffusion: Table) -> None:
    """What a search shows on the seeds that chose, and on others."""
    lines = (
        (BY_SIZE, "abs_bias", "mean |bias|, other seeds", "-"),
        (BY_SIZE, "chosen_abs_bias", "mean |bias|, same seeds", DOTTED),
        (BY_MEAN, "abs_mean_bias", "|mean bias|, other seeds", "-"),
        (BY_MEAN, "chosen_bias", "|mean bias|, same seeds", DOTTED),
    )
    for selection, score, label, dash in lines:
        part = table.where(selected_by=selection)
        colour = SAMPLERS["FLA"] if selection == BY_SIZE else GREY
        axes.plot(part["alpha"], part[score], color=colour, ls=dash, marker=".", label=label)
    handles, labels = axes.get_legend_handles_labels()
    _draw_reference(axes, diffusion)
    axes.set(title="What choosing on the error hides", xlabel="α", yscale="log", ylim=(0.01, 25))
    axes.legend(handles, labels, fontsize=9, loc="upper left", ncols=2, columnspacing=1)
    note(axes, "FLA, tamed")


def _draw_score(axes: Axes, table: Table, score: str) -> None:
    for method, style in STYLES.items():
        part = table.where(method=method)
        values = part[score] + 1 if score == "hops" else part[score]
        axes.semilogy(part["alpha"], values, **style, ms=5)


def _set_ticks(axes: Axes, alphas: np.ndarray) -> None:
    axes.set_xticks(alphas, [f"{a:g}" if len(f"{a:g}") < 4 else "" for a in alphas])
    low, high = axes.get_ylim()
    plain_ticks(axes.yaxis, (1, 2, 5) if high < 300 * low else (1,))


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
            fla_a=(1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 0.1, 10.0, 1000.0),
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
