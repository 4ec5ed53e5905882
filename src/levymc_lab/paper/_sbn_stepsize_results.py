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
from levymc_lab.framework.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    alpha_colour,
    new_figure,
    note,
)

from ._shared import groups, published, rows_at

if TYPE_CHECKING:
    from .sbn_stepsize import StepSizes

NAMES = {
    "sgfla": "SG-FLA",
    "sgld": "SGLD, step c_α η",
    "normal": "Gaussian noise of the same scale",
    "sgd": "SGD, step c_α η",
    "warm": "SG-FLA, warm start",
    "best": "SG-FLA, warm start, decreasing steps",
    "polya": "SG-FLA, Pólya–Gamma sweeps",
}
FIGURE = "fig6_sbn_loglik_vs_eta"
PARTICLES = 10  # an image, for the network whose likelihood is known
SIDE = 28  # of a picture, in pixels
PICTURES = ("weights", "originals", "reconstructions", "fantasies")
ENUMERATION = 0.3  # nats, between annealing and the exact sum
BRACKET = 1.0  # nats, between the bounds from below and above
CLOSE = 10.0  # nats, to the published points
FALL = "fall from the smallest to the largest step"
UNKNOWN = (
    "The paper does not tell the start, the binarisation, how hidden units are drawn, on which "
    "large steps depend most, nor the temperatures; with few and the weight last, its code is "
    "biased upwards."
)
NOTABLE = 20.0  # nats, twice what runs at large steps wander by
TICKS = (4e-5, 6e-5, 1e-4, 1.6e-4, 2.8e-4)
PARTS = (("normal", BLUE, "v"), ("sgd", GREY, "s"), ("sgld", ORANGE, "^"))
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
            "Each run: the likelihood of test images a digit, by annealed importance sampling with "
            f"{config.num_temperatures} temperatures, and its standard error over the images; the "
            "spread and the largest of the weights; seconds of one core, with compiling.",
            (_row(config, cell, results[cell.id]) for cell in runs),
        )
        tables |= _grid(config, tables["runs"])
    traced = [cell for cell in runs if cell["length"] == config.num_iterations]
    if traced:
        tables["traces"] = Table.stack(
            "Likelihoods through the long runs, of fewer images.",
            (_trace(config, cell, results[cell.id]) for cell in traced),
        )
    if "annealing" in results:
        tables |= _annealing(config, results["annealing"])
    shown = [cell for cell in done if cell["kind"] == "best"]
    if shown:
        cell = min(shown, key=lambda cell: cell["alpha"])
        tables["pictures"] = Table.stack(
            "Greys, from top left to bottom right, of 8 bits each in base 64, of the network that "
            f"was trained with decreasing steps and a warm start at α = {cell['alpha']:g}.",
            _pictures(results[cell.id]),
        )
    return tables


def _grid(config: "StepSizes", runs: Table) -> dict[str, Table]:
    """SG-FLA's runs beside the figure's, of the longest length that each α and step has."""
    plain = runs.where(sampler=NAMES["sgfla"], sweeps=config.sweeps)
    points = sorted({(row["alpha"], row["step"]) for row in plain.rows()}, reverse=True)
    rows = [_point(plain.where(alpha=alpha, step=step)) for alpha, step in points]
    caption = "SG-FLA with constant steps: mean over seeds, half their range, and the figure's."
    return {"grid": Table.stack(caption, rows)} if rows else {}


def _point(runs: Table) -> dict[str, Any]:
    longest = runs.where(iterations=runs["iterations"].max())
    values = longest["loglikelihood"]
    alpha, step = float(longest["alpha"][0]), float(longest["step"][0])
    return {
        "alpha": alpha,
        "step": step,
        "iterations": int(longest["iterations"][0]),
        "seeds": len(values),
        "loglikelihood": float(values.mean()),
        "half_range": float(np.ptp(values)) / 2,
        "published": float(published(FIGURE).where(alpha=alpha, x=step)["y"][0]),
    }


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
    measured = ("loglikelihood", "error", "spread", "largest", "divergences", "seconds")
    return {**_given(config, cell), **{name: result[name] for name in measured}}


def _trace(config: "StepSizes", cell: Cell, result: CellResult) -> dict[str, Any]:
    return {
        **_given(config, cell),
        "iteration": result["marks"],
        "loglikelihood": result["trace"],
    }


def _annealing(config: "StepSizes", result: CellResult) -> dict[str, Table]:
    both = {
        "temperatures": np.array(config.temperatures),
        **{name: result[name] for name in ("first", "last", "below", "above")},
    }
    return {
        "annealing": Table(
            "Estimates of the mean log-likelihood: of test images, with the weight first, which is "
            "right, and last; of simulated images from below and from above.",
            both,
        ),
        "enumerated": Table(
            f"A network of {config.small_hidden} hidden units, whose likelihood can be added up, "
            f"beside annealing with one particle and with {PARTICLES}.",
            {
                "temperatures": [config.num_temperatures],
                "exact": [float(result["small_exact"])],
                "one_particle": [float(result["small_one"])],
                "annealed": [float(result["small_annealed"])],
            },
        ),
    }


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
    if "annealing" not in tables:
        return []
    (small,) = tables["enumerated"].rows()
    (last,) = tables["annealing"].where(temperatures=max(config.temperatures)).rows()
    is_short = config.source == "made"
    brief = "The quick profile has few temperatures." if is_short else ""
    return [
        Check.near(
            f"log-likelihood by annealing, J = {config.small_hidden}, "
            f"T = {config.num_temperatures}",
            small["annealed"],
            small["exact"],
            ENUMERATION,
            reason="the exact one adds up all states; annealing has ten particles an image",
            explanation=brief,
        ),
        Check.near(
            f"from above less from below, J = {config.num_hidden}, T = {last['temperatures']}",
            last["above"] - last["below"],
            BRACKET / 2,
            BRACKET / 2,
            reason="simulated images; the truth lies between, on average",
            explanation=brief,
        ),
    ]


def _fall(part: Table, column: str) -> float:
    """How much lower it is at the largest step than at the smallest."""
    return float(part[column][np.argmin(part["step"])] - part[column][np.argmax(part["step"])])


def _check_robustness(config: "StepSizes", tables: Tables) -> list[Check]:
    found = []
    for alpha in config.main_alphas:
        part = tables["grid"].where(alpha=alpha, iterations=config.num_iterations)
        if not {min(config.steps), max(config.steps)} <= set(part["step"].tolist()):
            continue
        distance = float(np.mean(np.abs(part["loglikelihood"] - part["published"])))
        found += [
            Check.near(
                f"{FALL}, α = {alpha:g}",
                _fall(part, "loglikelihood"),
                _fall(part, "published"),
                CLOSE,
                source="paper",
                reason="nats",
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
    if config.source == "made" or len(falls) < len(config.main_alphas):
        return Verdict("measured here", words)
    if all(check.holds for check in falls):
        return Verdict("reproduced", f"A smaller α stands larger steps. {words}")
    return Verdict("not reproduced", f"No α stands larger steps than SGLD does. {words}")


def _sentences(config: "StepSizes", tables: Tables) -> Iterator[str]:
    if config.source == "made":
        yield "On made pictures."
    if "grid" in tables:
        yield from _of_grid(config, tables["grid"])
    if "runs" in tables:
        yield from _of_parts(config, tables["runs"])
        yield from _of_sweeps(config, tables["runs"])
        yield from _of_schedules(config, tables["runs"])
    if "annealing" in tables:
        yield _of_annealing(tables["annealing"])


def _of_grid(config: "StepSizes", grid: Table) -> Iterator[str]:
    """Both ends of each α's line."""
    for alpha in config.main_alphas:
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


def _of_parts(config: "StepSizes", runs: Table) -> Iterator[str]:
    alpha, step = config.ablated_alpha, max(config.ablation_steps)
    at = runs.where(step=step, alpha=alpha, sweeps=config.sweeps, iterations=config.num_iterations)
    kinds = ("sgfla", "normal", "sgd", "sgld")
    parts = _listed((NAMES[kind], at.where(sampler=NAMES[kind])) for kind in kinds)
    if parts:
        yield f"The parts of its step at α = {alpha:g}, η = {step:.2g}: {parts}."


def _of_sweeps(config: "StepSizes", runs: Table) -> Iterator[str]:
    for step in sorted(config.sweep_steps):
        at = runs.where(step=step, alpha=2.0)
        plain = at.where(sampler=NAMES["sgfla"])
        counts = sorted({*config.other_sweeps, config.sweeps})
        found = _listed(
            [
                *((f"{count}", plain.where(sweeps=count)) for count in counts),
                (f"{config.sweeps} from where they last ended", at.where(sampler=NAMES["warm"])),
                (
                    f"{config.polya_sweeps} by Pólya–Gamma, {config.polya_iterations} iterations",
                    at.where(sampler=NAMES["polya"]),
                ),
            ]
        )
        if found:
            yield f"SGLD at η = {step:.2g} by the number of Gibbs sweeps: {found}."
    largest = runs.where(step=max(config.sweep_steps), alpha=2.0, sweeps=config.sweeps)
    cold, warm = (largest.where(sampler=NAMES[kind]) for kind in ("sgfla", "warm"))
    if len(cold) and len(warm) and _mean(warm) - _mean(cold) > NOTABLE:
        yield "So it is hidden units drawn from a cold start that make large steps fail."


def _of_schedules(config: "StepSizes", runs: Table) -> Iterator[str]:
    at = runs.where(sampler=NAMES["best"])
    found = _listed((f"α = {alpha:g}", at.where(alpha=alpha)) for alpha in config.best_alphas)
    if found:
        yield f"With decreasing steps and a warm start: {found}."


def _of_annealing(table: Table) -> str:
    few, many = table.rows()[0], table.rows()[-1]
    return (
        f"Annealing with {few['temperatures']} temperatures gives {few['first']:.1f} with the "
        f"weight first and {few['last']:.1f} with the weight last; with {many['temperatures']}, "
        f"{many['first']:.1f} and {many['last']:.1f}."
    )


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
    figure = new_figure(11.5, 6.4)
    grid, parts = figure.subplots(1, 2, sharey=True)
    if "grid" in tables:
        _draw_grid(config, tables["grid"], grid)
        _draw_parts(config, tables, parts)
    grid.set(title="SG-FLA, constant steps", ylabel="log-likelihood of a test image, nats")
    if config.source == "mnist":  # published numbers say nothing of other pictures
        note(grid, "thin, hollow: published")
    parts.set_title("Which part of the step")
    for axes in (grid, parts):
        axes.set_xlabel("step size η")
        _set_ticks(axes, TICKS, lambda value, _: f"{value * 1e5:.2g}·10⁻⁵")
        _add_legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=9)
    return figure


def _draw_grid(config: "StepSizes", grid: Table, axes: Axes) -> None:
    for alpha, points in groups(grid, "alpha"):
        part, colour = _sorted(points), alpha_colour(alpha)
        if config.source == "mnist":
            axes.plot(
                part["step"], part["published"], color=colour, lw=0.8, marker="o", ms=4,
                mfc="none", alpha=0.6,
            )  # fmt: skip
        whole = part.where(iterations=config.num_iterations)
        short = part.where(iterations=config.short_iterations)
        if len(whole):
            axes.errorbar(
                whole["step"], whole["loglikelihood"], yerr=whole["half_range"], color=colour,
                marker="o", ms=6, capsize=2, label=f"α = {alpha:g}",
            )  # fmt: skip
        if len(short):
            label = f"α = {alpha:g}, {config.short_iterations:,} iterations"
            line = "" if len(whole) else "--"
            axes.plot(
                short["step"], short["loglikelihood"], color=colour, marker="D", ms=4, ls=line,
                lw=1.2, label=label,
            )  # fmt: skip


def _draw_parts(config: "StepSizes", tables: Tables, axes: Axes) -> None:
    alpha, grid = config.ablated_alpha, tables["grid"]
    for value, colour in ((2.0, alpha_colour(2.0)), (alpha, alpha_colour(alpha))):
        part = _sorted(grid.where(alpha=value, iterations=config.num_iterations))
        name = "SGLD" if value == 2.0 else f"SG-FLA, α = {value:g}"
        axes.plot(part["step"], part["loglikelihood"], color=colour, lw=2.4, label=name)
    runs = tables["runs"].where(iterations=config.num_iterations)
    for kind, colour, mark in PARTS:
        part = _sorted(runs.where(sampler=NAMES[kind], alpha=alpha))
        axes.plot(
            part["step"], part["loglikelihood"], color=colour, marker=mark, ms=6, ls=":", lw=1.2,
            label=f"α = {alpha:g}: {NAMES[kind]}",
        )  # fmt: skip
    plain = runs.where(sampler=NAMES["sgfla"], alpha=2.0)
    for count, colour in zip(config.other_sweeps, (PURPLE, GREEN), strict=False):
        part = _sorted(plain.where(sweeps=count))
        label = f"SGLD, {count} sweep{'s' if count > 1 else ''} in place of {config.sweeps}"
        axes.plot(
            part["step"], part["loglikelihood"], color=colour, ls="", marker="*", ms=10, label=label
        )
    warm = _sorted(runs.where(sampler=NAMES["warm"]))
    axes.plot(
        warm["step"], warm["loglikelihood"], color=VERMILLION, ls="", marker="x", ms=8, mew=2,
        label="SGLD, units kept between visits",
    )  # fmt: skip


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
    figure = new_figure(11, 4.4)
    tests, simulated = figure.subplots(1, 2)
    if "annealing" in tables:
        table = tables["annealing"]
        count = table["temperatures"]
        for name, colour, mark, label in (
            ("first", BLUE, "o", "weight first: right"),
            ("last", VERMILLION, "s", "weight last: too high"),
        ):
            tests.plot(count, table[name], color=colour, marker=mark, label=label)
        simulated.plot(count, table["above"], color=VERMILLION, marker="v", label="from above")
        simulated.plot(count, table["below"], color=BLUE, marker="^", label="from below")
        simulated.fill_between(count, table["below"], table["above"], color=GREY, alpha=0.15, lw=0)
    tests.set(title="Test images", ylabel="mean log-likelihood, nats")
    simulated.set_title("Simulated images")
    note(simulated, "the truth lies between")
    for axes in (tests, simulated):
        axes.set_xlabel("temperatures T")
        _set_ticks(axes, config.temperatures, lambda value, _: f"{value:,.0f}")
        _add_legend(axes, loc="best")
    return figure


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
