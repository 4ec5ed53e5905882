"""What the experiment `sbn_stepsize` makes of its cells: tables, checks, verdict and figures.

All of it from those cells that there are: runs that are not finished can be looked at, too.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from levymc_lab.framework import Cell, CellResult, Check, Table, Tables, Verdict
from levymc_lab.framework.style import BLUE, GREY, VERMILLION, new_figure, note

from ._paired import RATE, spread
from ._shared import groups, published, rows_at, spread_colour

if TYPE_CHECKING:
    from .sbn_stepsize import StepSizes

NAMES = {
    "warm": "SG-FLA",
    "sgld": "SGLD, step c_α η",
    "normal": "Gaussian noise of the same scale",
    "sgd": "SGD, step c_α η",
    "cold": "SG-FLA, units from the prior",
    "best": "SG-FLA, decreasing steps",
}
FIGURE = "fig6_sbn_loglik_vs_eta"
PARTICLES = 10  # an image, for the network whose likelihood is known
SIDE = 28  # of a picture, in pixels
PICTURES = ("weights", "originals", "reconstructions", "fantasies")
ENUMERATION = 0.3  # nats, between annealing and the exact sum
BRACKET = 1.0  # nats, between the bounds from below and above
CLOSE = 10.0  # nats, to the published points
NETWORKS = {"annealing": "easy", "annealing-hard": "hard"}  # of the cells that judge annealing
SHARP = (
    "Units of the hard network decide much at once, and annealing passes their states too fast; "
    "`gain` in the runs is what more temperatures change there."
)
FALL = "fall from the smallest to the largest step"
UNKNOWN = (
    "The paper does not tell the start, the binarisation, how hidden units are drawn, on which "
    "large steps depend most, nor the temperatures; with few and the weight last, its code is "
    "biased upwards."
)
NOTABLE = 20.0  # nats, twice what runs at large steps wander by
TICKS = (4e-5, 6e-5, 1e-4, 1.6e-4, 2.8e-4)
PARTS = ("normal", "sgd", "sgld")
GAP = 2  # pixels between two pictures
COLUMNS = 10


def tables_of(
    config: "StepSizes", cells: Sequence[Cell], results: Mapping[str, CellResult]
) -> Tables:
    done = [cell for cell in cells if cell.id in results]
    runs = [cell for cell in done if cell["kind"] != "annealing"]
    tables = {}
    if runs:
        tables["runs"] = Table.stack(
            f"Each run: the mean log-likelihood of {config.fewer_test:,} test images, each by "
            f"one of the last {config.num_draws} stored draws in turn, by annealed importance "
            f"sampling with {config.num_temperatures:,} temperatures, and its standard "
            f"error over images; where it was made, that of all {config.num_test:,}, and by how "
            f"much that of {config.num_annealed} rises with {max(config.temperatures):,} "
            "temperatures; the spread and the largest of the weights; seconds of one "
            "core, with compiling. Hidden units are kept between visits unless it says from the "
            "prior.",
            (_row(config, cell, results[cell.id]) for cell in runs),
        )
        tables |= _grid(config, tables["runs"])
    tables |= _annealing(config, results)
    shown = [cell for cell in done if cell["kind"] == "best"]
    if shown:
        cell = min(shown, key=lambda cell: cell["alpha"])
        tables["pictures"] = Table.stack(
            "Greys, from top left to bottom right, of 8 bits each in base 64, of the network that "
            f"was trained with decreasing steps at α = {cell['alpha']:g}.",
            _pictures(results[cell.id]),
        )
    return tables


def _grid(config: "StepSizes", runs: Table) -> dict[str, Table]:
    """SG-FLA's runs beside the figure's and beside SGLD's at the same step."""
    plain = runs.where(sampler=NAMES["warm"])
    points = sorted({(row["alpha"], row["step"]) for row in plain.rows()}, reverse=True)
    rows = [_point(config, plain.where(step=step), alpha, step) for alpha, step in points]
    caption = (
        "SG-FLA with constant steps, hidden units kept between visits: mean over seeds, half their "
        "range, and the figure's; at both ends the mean on all images; how far above SGLD at that "
        f"step, and by how much that may differ by chance: {RATE:.0%} false alarms in all "
        "comparisons of a step together, by paired seeds whose error is pooled over α."
    )
    return {"grid": Table.stack(caption, rows)} if rows else {}


def _point(config: "StepSizes", runs: Table, alpha: float, step: float) -> dict[str, Any]:
    here = runs.where(alpha=alpha)
    values, beside = here["loglikelihood"], runs.where(alpha=2.0)["loglikelihood"]
    error = spread(_paired(config, runs))
    is_whole = len(values) == len(beside) == config.num_seeds
    return {
        "alpha": alpha,
        "step": step,
        "seeds": len(values),
        "loglikelihood": float(values.mean()),
        "half_range": float(np.ptp(values)) / 2,
        "all_images": float(here["all_images"].mean()),
        "published": float(published(FIGURE).where(alpha=alpha, x=step)["y"][0]),
        "above_sgld": float(values.mean() - beside.mean()) if len(beside) else np.nan,
        "give_or_take": error.half_width(len(config.alphas) - 1) if is_whole else np.nan,
        "give_or_take_anywhere": error.half_width(_comparisons(config)) if is_whole else np.nan,
    }


def _comparisons(config: "StepSizes") -> int:
    """Of an α < 2 with SGLD, at any step."""
    return (len(config.alphas) - 1) * len(config.steps)


def _paired(config: "StepSizes", runs: Table) -> np.ndarray:
    """Of one step, a row for each α whose seeds are all there, and a column for each seed."""
    ordered = [rows_at(part, np.argsort(part["seed"])) for _, part in groups(runs, "alpha")]
    whole = [one["loglikelihood"] for one in ordered if len(one) == config.num_seeds]
    return np.array(whole).reshape(-1, config.num_seeds)


def _given(config: "StepSizes", cell: Cell) -> dict[str, Any]:
    return {
        "sampler": NAMES[cell["kind"]],
        "alpha": cell["alpha"],
        "step": cell["step"],
        "sweeps": cell.parameters.get("sweeps", config.sweeps),
        "iterations": cell["length"],
        "seed": cell["seed"],
    }


def _row(config: "StepSizes", cell: Cell, result: CellResult) -> dict[str, Any]:
    measured = (
        "loglikelihood",
        "error",
        "all_images",
        "all_error",
        "gain",
        "gain_error",
        "spread",
        "largest",
        "divergences",
        "seconds",
    )
    return {**_given(config, cell), **{name: result[name] for name in measured}}


def _annealing(config: "StepSizes", results: Mapping[str, CellResult]) -> dict[str, Table]:
    made = [(name, results[id]) for id, name in NETWORKS.items() if id in results]
    tables = {}
    if made:
        tables["annealing"] = Table.stack(
            "Estimates of the mean log-likelihood: of test images, with the weight first, which is "
            "right, and last; of simulated images from below and from above. Easy: SGLD with units "
            f"from the prior, {config.short_iterations:,} iterations with the smallest step; hard: "
            f"α = {min(config.alphas):g}, units kept between visits, {config.num_iterations:,} "
            "with the largest.",
            [
                {
                    "network": name,
                    "temperatures": np.array(config.temperatures),
                    **{part: result[part] for part in ("first", "last", "below", "above")},
                }
                for name, result in made
            ],
        )
    if "annealing" in results:
        tables["enumerated"] = _enumerated(config, results["annealing"])
    return tables


def _enumerated(config: "StepSizes", result: CellResult) -> Table:
    return Table(
        f"A network of {config.small_hidden} hidden units, whose likelihood can be added up, "
        f"beside annealing with one particle and with {PARTICLES}.",
        {
            "temperatures": [config.num_temperatures],
            "exact": [float(result["small_exact"])],
            "one_particle": [float(result["small_one"])],
            "annealed": [float(result["small_annealed"])],
        },
    )


def _pictures(result: CellResult) -> list[dict[str, Any]]:
    return [
        {"what": what, "number": number, "pixels": base64.b64encode(greys.tobytes()).decode()}
        for what in PICTURES
        for number, greys in enumerate(np.asarray(result[what]))
    ]


def checks(config: "StepSizes", tables: Tables) -> list[Check]:
    found = _check_annealing(config, tables)
    if config.source == "mnist" and "grid" in tables:  # published numbers say nothing of others
        found += _check_robustness(config, tables)
    return found


def _check_annealing(config: "StepSizes", tables: Tables) -> list[Check]:
    brief = "The quick profile has few temperatures." if config.source == "synthetic" else ""
    found = []
    if "enumerated" in tables:
        (small,) = tables["enumerated"].rows()
        found.append(
            Check.near(
                f"log-likelihood by annealing, J = {config.small_hidden}, "
                f"T = {config.num_temperatures}",
                small["annealed"],
                small["exact"],
                ENUMERATION,
                reason="the exact one adds up all states; annealing has ten particles an image",
                explanation=brief,
            )
        )
    for name, part in groups(tables["annealing"], "network") if "annealing" in tables else ():
        (last,) = part.where(temperatures=max(config.temperatures)).rows()
        found.append(
            Check.near(
                f"from above less from below, {name} network of J = {config.num_hidden}, "
                f"T = {last['temperatures']}",
                last["above"] - last["below"],
                BRACKET / 2,
                BRACKET / 2,
                reason="simulated images; the truth lies between, on average",
                explanation=brief or (SHARP if name == "hard" else ""),
            )
        )
    return found


def _fall(part: Table, column: str) -> float:
    """How much lower it is at the largest step than at the smallest."""
    return float(part[column][np.argmin(part["step"])] - part[column][np.argmax(part["step"])])


def _check_robustness(config: "StepSizes", tables: Tables) -> list[Check]:
    found = []
    for alpha in config.alphas:
        part = tables["grid"].where(alpha=alpha)
        if not set(config.steps) <= set(part["step"].tolist()):
            continue
        distance = float(np.mean(np.abs(part["loglikelihood"] - part["published"])))
        found += [
            Check.near(
                f"{FALL}, α = {alpha:g}",
                _fall(part, "all_images"),
                _fall(part, "published"),
                CLOSE,
                source="paper",
                reason=f"nats, on all {config.num_test:,} test images",
                explanation=UNKNOWN,
            ),
            Check.below(
                f"mean distance to the published points, α = {alpha:g}",
                distance,
                CLOSE,
                source="paper",
                reason=f"{len(part)} steps",
                explanation=UNKNOWN,
            ),
        ]
    return found


def verdict(config: "StepSizes", tables: Tables, checks: Sequence[Check]) -> Verdict:
    words = " ".join(_sentences(config, tables)) or "No run is there yet."
    falls = [check for check in checks if check.name.startswith(FALL)]
    if config.source == "synthetic" or len(falls) < len(config.alphas):
        return Verdict("measured here", words)
    return Verdict("reproduced" if all(c.holds for c in falls) else "not reproduced", words)


def _sentences(config: "StepSizes", tables: Tables) -> Iterator[str]:
    if config.source == "synthetic":
        yield "On synthetic pictures."
    if "grid" in tables:
        yield from _of_robustness(config, tables["grid"])
        yield from _of_grid(config, tables["grid"])
    if "runs" in tables:
        yield from _of_parts(config, tables["runs"])
        yield from _of_cold(config, tables["runs"])
        yield from _of_schedules(config, tables["runs"])
    if "annealing" in tables:
        yield from _of_annealing(tables["annealing"])
    if "runs" in tables:
        yield from _of_gains(config, tables["runs"])


def _of_robustness(config: "StepSizes", grid: Table) -> Iterator[str]:
    """Whether a smaller α stands the largest step better, as far as the seeds can tell."""
    rows = [row for row in grid.where(step=config.ends[1]).rows() if row["alpha"] < 2]
    rows = [row for row in rows if np.isfinite(row["give_or_take"])]
    if not rows:
        return
    above, below = (
        [r for r in rows if sign * r["above_sgld"] > r["give_or_take"]] for sign in (1, -1)
    )
    told = [*above, *below]
    alike = [row for row in rows if row not in told]
    said = [
        f"{_each(above)} lies above SGLD" if above else "no α can be told to lie above SGLD",
        *([f"{_each(below)} lies below it"] if below else []),
        *([f"of {_each(alike)} it cannot be told"] if alike else []),
    ]
    yield (
        f"At the largest step, by {rows[0]['seeds']} paired seeds and with {RATE:.0%} false alarms "
        f"in all, {', '.join(said[:-1])}{' and ' if len(said) > 1 else ''}{said[-1]}."
    )


def _each(rows: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"α = {r['alpha']:g} ({r['above_sgld']:+.1f} ± {r['give_or_take']:.1f})" for r in rows
    )


def _of_grid(config: "StepSizes", grid: Table) -> Iterator[str]:
    """Both ends of the outermost lines, and at how many steps the others are told apart."""
    for alpha in (max(config.alphas), min(config.alphas)):
        part = grid.where(alpha=alpha)
        if len(part) < 2:
            continue
        small, large = np.argmin(part["step"]), np.argmax(part["step"])
        beside = f" (published: {part['published'][small]:.1f} and {part['published'][large]:.1f})"
        yield (
            f"At α = {alpha:g} the log-likelihood goes from {part['loglikelihood'][small]:.1f} at "
            f"η = {part['step'][small]:.2g} to {part['loglikelihood'][large]:.1f} at "
            f"{part['step'][large]:.2g}{beside if config.source == 'mnist' else ''}."
        )
    rest = rows_at(grid, (grid["alpha"] < 2) & np.isfinite(grid["give_or_take_anywhere"]))
    if len(rest):
        higher = int((rest["above_sgld"] > rest["give_or_take_anywhere"]).sum())
        lower = int((rest["above_sgld"] < -rest["give_or_take_anywhere"]).sum())
        yield (
            f"Of the {len(rest)} pairs of a step and an α < 2, {higher} can be told to lie above "
            f"SGLD at that step, and {lower} below, with {RATE:.0%} false alarms in all of them."
        )


def _of_parts(config: "StepSizes", runs: Table) -> Iterator[str]:
    alpha, step = config.ablated_alpha, config.ends[1]
    at = runs.where(step=step, alpha=alpha, seed=0)
    parts = _listed((NAMES[kind], at.where(sampler=NAMES[kind])) for kind in ("warm", *PARTS))
    if any(len(at.where(sampler=NAMES[kind])) for kind in PARTS):
        yield f"The parts of its step at α = {alpha:g}, η = {step:.2g}, one seed: {parts}."


def _of_cold(config: "StepSizes", runs: Table) -> Iterator[str]:
    for step in config.ends:
        at = runs.where(step=step, seed=0)
        found = _listed(
            (f"α = {alpha:g} with {count} sweeps", part)
            for alpha in config.cold_alphas
            for count in sorted({*config.other_sweeps, config.sweeps})
            for part in [at.where(sampler=NAMES["cold"], alpha=alpha, sweeps=count)]
        )
        kept = _listed(
            (f"α = {alpha:g}", at.where(sampler=NAMES["warm"], alpha=alpha))
            for alpha in config.cold_alphas
        )
        if found:
            beside = f", kept between visits {kept}" if kept else ""
            yield f"Hidden units from the prior at η = {step:.2g}, one seed: {found}{beside}."
    largest = runs.where(step=config.ends[1], alpha=2.0, sweeps=config.sweeps, seed=0)
    cold, warm = (largest.where(sampler=NAMES[kind]) for kind in ("cold", "warm"))
    if len(cold) and len(warm) and _mean(warm) - _mean(cold) > NOTABLE:
        yield "So it is hidden units drawn from a cold start that make large steps fail."


def _of_schedules(config: "StepSizes", runs: Table) -> Iterator[str]:
    at = runs.where(sampler=NAMES["best"])
    found = _listed((f"α = {alpha:g}", at.where(alpha=alpha)) for alpha in config.best_alphas)
    if found:
        yield f"With decreasing steps: {found}."


def _of_annealing(table: Table) -> Iterator[str]:
    for name, part in groups(table, "network"):
        few, many = part.rows()[0], part.rows()[-1]
        yield (
            f"On the {name} network annealing with {few['temperatures']} temperatures gives "
            f"{few['first']:.1f} with the weight first and {few['last']:.1f} with the weight last; "
            f"with {many['temperatures']}, {many['first']:.1f} and {many['last']:.1f}, and "
            f"simulated images lie between {many['below']:.1f} and {many['above']:.1f}."
        )


def _of_gains(config: "StepSizes", runs: Table) -> Iterator[str]:
    """What more temperatures change at the largest step, by which comparisons may be off."""
    at = runs.where(sampler=NAMES["warm"], step=config.ends[1])
    found = [
        f"{part['gain'].mean():.1f} ± {_standard_error(part):.1f} (α = {alpha:g})"
        for alpha, part in groups(at, "alpha")
    ]
    if found:
        yield (
            f"At the largest step {max(config.temperatures):,} temperatures in the place of "
            f"{config.num_temperatures:,} raise the log-likelihood by {', '.join(found)}."
        )


def _standard_error(runs: Table) -> float:
    """Of the mean gain, over images; seeds share them, so that it is no less than one's."""
    return float(runs["gain_error"].mean())


def _listed(parts: Any) -> str:
    """Names and the means of their runs, where there are runs."""
    return "; ".join(f"{name} {_mean(table):.1f}" for name, table in parts if len(table))


def _mean(table: Table) -> float:
    return float(table["loglikelihood"].mean())


def figures(config: "StepSizes", tables: Tables) -> dict[str, Figure]:
    """Every figure is drawn, with gaps where cells are missing."""
    return {
        "sbn-stepsize": draw_steps(config, tables),
        "sbn-annealing": draw_annealing(config, tables),
        "sbn-model": draw_model(tables),
    }


def draw_steps(config: "StepSizes", tables: Tables) -> Figure:
    figure = new_figure(11.5, 9.4)
    rows: Any = figure.subfigures(2, 1)
    upper, lower = rows
    theirs, ours = upper.subplots(1, 2)
    less, ends = lower.subplots(1, 2, width_ratios=(1.3, 1))
    _draw_published(config, theirs)
    if "grid" in tables:
        _draw_grid(tables["grid"], ours)
        _draw_differences(tables["grid"], less)
    if "runs" in tables:
        _draw_ends(config, tables["runs"], ends)
    theirs.set(title="Published", ylabel="log-likelihood of a test image, nats")
    of = "" if config.source == "mnist" else "synthetic pictures; "
    ours.set_title("Here")
    note(theirs, "MNIST, 5,000 iterations")
    note(ours, f"{of}hidden units kept between visits; an axis of its own")
    less.set(title="Here, less SGLD", ylabel="nats above SGLD at the same step")
    note(less, f"bars: {RATE:.0%} false alarms in all at a step")
    for axes in (theirs, ours, less):
        axes.set_xlabel("step size η")
        _set_ticks(axes, TICKS, lambda value, _: f"{value * 1e5:.2g}·10⁻⁵")
    _add_legend(theirs, loc="lower left")
    return figure


def _colour(alpha: float) -> Any:
    return GREY if alpha == 2 else spread_colour(alpha, 1.6, 0.85)


def _draw_published(config: "StepSizes", axes: Axes) -> None:
    for alpha in config.alphas:
        part = published(FIGURE).where(alpha=alpha)
        order, name = np.argsort(part["x"]), "SGLD (α = 2)" if alpha == 2 else f"α = {alpha:g}"
        look: Any = {"color": _colour(alpha), "marker": "o", "ms": 5, "mfc": "none", "lw": 1.2}
        axes.plot(part["x"][order], part["y"][order], **look, label=name)


def _draw_grid(grid: Table, axes: Axes) -> None:
    for alpha, points in groups(grid, "alpha"):
        part = _sorted(points)
        axes.errorbar(
            part["step"], part["loglikelihood"], yerr=part["half_range"], color=_colour(alpha),
            marker="o", ms=5, capsize=2,
        )  # fmt: skip


def _draw_differences(grid: Table, axes: Axes) -> None:
    """Side by side where they would hide each other."""
    axes.axhline(0, color=GREY, lw=1.0)
    heavy = [(alpha, part) for alpha, part in groups(grid, "alpha") if alpha < 2]
    for place, (alpha, points) in enumerate(heavy):
        part = _sorted(points)
        shift = 1 + 0.014 * (place - (len(heavy) - 1) / 2)
        axes.errorbar(
            part["step"] * shift, part["above_sgld"], yerr=part["give_or_take"],
            color=_colour(alpha), marker="o", ms=5, capsize=2, ls="",
        )  # fmt: skip


def _draw_ends(config: "StepSizes", runs: Table, axes: Axes) -> None:
    """A row for each way to make a step; two points and no line."""
    alpha = config.ablated_alpha
    ways = [
        ("SGLD", {"sampler": NAMES["warm"], "alpha": 2.0}),
        (f"SG-FLA, α = {alpha:g}", {"sampler": NAMES["warm"], "alpha": alpha}),
        *((NAMES[kind], {"sampler": NAMES[kind], "alpha": alpha}) for kind in PARTS),
        *(
            (
                f"{'SGLD' if one == 2 else f'α = {one:g}'} from the prior, {count} "
                f"sweep{'s' if count > 1 else ''}",
                {"sampler": NAMES["cold"], "alpha": one, "sweeps": count},
            )
            for one in config.cold_alphas
            for count in (config.sweeps, *(config.other_sweeps if one == 2 else ()))
        ),
    ]
    for step, colour, mark in zip(config.ends, (BLUE, VERMILLION), "os", strict=True):
        found = [runs.where(step=step, **way)["loglikelihood"] for _, way in ways]
        places = [(place, y) for place, values in enumerate(found) for y in values]
        if places:
            label = f"η = {step * 1e5:.2g}·10⁻⁵"
            axes.plot([y for _, y in places], [-place for place, _ in places], mark, color=colour,
                      ms=6, alpha=0.8, label=label)  # fmt: skip
    axes.set_yticks(-np.arange(len(ways)), [name for name, _ in ways], fontsize=9)
    axes.set(title="Parts of the step", xlabel="log-likelihood of a test image, nats")
    note(axes, "a point for each seed")
    _add_legend(axes, loc="best")


def _sorted(table: Table) -> Table:
    return rows_at(table, np.argsort(table["step"]))


def _set_ticks(
    axes: Axes, places: Sequence[float | int], write: Callable[[float, float | None], str]
) -> None:
    """A logarithmic axis with ticks at these places only."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(write))


def draw_annealing(config: "StepSizes", tables: Tables) -> Figure:
    figure = new_figure(11, 7.6)
    rows: Any = figure.subplots(2, 2, sharex=True)
    for name, (tests, simulated) in zip(NETWORKS.values(), rows, strict=True):
        if "annealing" in tables:
            _draw_estimates(tables["annealing"].where(network=name), tests, simulated)
        tests.set(title=f"Test images, {name} network", ylabel="mean log-likelihood, nats")
        simulated.set_title(f"Simulated images, {name} network")
        note(simulated, "the truth lies between")
        for axes in (tests, simulated):
            _set_ticks(axes, config.temperatures, lambda value, _: f"{value:,.0f}")
            _add_legend(axes, loc="best")
    for axes in rows[1]:
        axes.set_xlabel("temperatures T")
    return figure


def _draw_estimates(table: Table, tests: Axes, simulated: Axes) -> None:
    if not len(table):
        return
    count = table["temperatures"]
    for name, colour, mark, label in (
        ("first", BLUE, "o", "weight first: right"),
        ("last", VERMILLION, "s", "weight last: too high"),
    ):
        tests.plot(count, table[name], color=colour, marker=mark, label=label)
    simulated.plot(count, table["above"], color=VERMILLION, marker="v", label="from above")
    simulated.plot(count, table["below"], color=BLUE, marker="^", label="from below")
    simulated.fill_between(count, table["below"], table["above"], color=GREY, alpha=0.15, lw=0)


def _add_legend(axes: Axes, **how: Any) -> None:
    """None where nothing is drawn yet, of which Matplotlib would warn."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**how)


def draw_model(tables: Tables) -> Figure:
    figure = new_figure(11, 3.4)
    places = figure.subplot_mosaic("WI;WD")
    weights, pairs, fantasies = (places[letter] for letter in "WID")
    if "pictures" in tables:
        table = tables["pictures"]
        _show(weights, _greys(table, "weights"), "RdBu_r")
        both = np.concatenate([_greys(table, "originals"), _greys(table, "reconstructions")])
        _show(pairs, both, "gray_r")
        _show(fantasies, _greys(table, "fantasies"), "gray_r")
    weights.set_title("Weights")
    note(weights, "blue: off; red: on")
    pairs.set_title("Test images, and below what the network makes of them")
    fantasies.set_title("Drawn from the model")
    for axes in (weights, pairs, fantasies):
        axes.set_axis_off()
        axes.set_anchor("N")
    return figure


def _greys(table: Table, what: str) -> np.ndarray:
    texts = table.where(what=what)["pixels"].tolist()
    return np.stack([np.frombuffer(base64.b64decode(text), np.uint8) for text in texts])


def _show(axes: Axes, pictures: np.ndarray, colours: str) -> None:
    """Side by side, some in a row, a gap between them."""
    blank = 128 if colours == "RdBu_r" else 0
    rows = -(-len(pictures) // COLUMNS)
    cell = SIDE + GAP
    sheet = np.full((rows * cell + GAP, COLUMNS * cell + GAP), blank, np.uint8)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, COLUMNS)
        top, left = row * cell + GAP, column * cell + GAP
        sheet[top : top + SIDE, left : left + SIDE] = picture.reshape(SIDE, SIDE)
    axes.imshow(sheet, cmap=colours, vmin=0, vmax=255, interpolation="nearest")
