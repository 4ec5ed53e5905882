r"""``levymc demo``: why Lévy noise matters, on the paper's double well.

All chains start in the left well, behind a barrier of 17.  By Kramers' law a chain driven by
Gaussian noise (ULA) needs some 2e7 time units to cross it; one that is driven by α-stable noise
(FLA, FLMC) jumps across every 60.  `levymc.auto` looks for the wells first, and needs neither a
step size nor an α.

It is an experiment like the others, but has no part in the paper, nor in ``levymc run all``.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table as Listing

import levymc
from levymc._workdir import write_json
from levymc.run import Result, stage_bar
from levymc_lab.framework import (
    Cell,
    CellResult,
    Check,
    Experiment,
    Results,
    Table,
    Tables,
    Verdict,
    run,
)
from levymc_lab.framework.style import GREY, INK, SAMPLERS, new_figure, note

from . import _double_well as well
from ._double_well import LEFT_MASS, Sampler

AUTO = "levymc.auto"
SHOWN = ("tv", "left_mass_error", "left_mass_spread", "hops")
NUM_POINTS = 2000  # of a path that is drawn
NUM_INDEPENDENT = 10_000  # draws, of which the total variation is told
WAYS = {
    "ULA": "Gaussian noise",
    "FLA": "Lévy noise",
    "FLMC": "Lévy noise, exact drift",
    AUTO: "finds the wells, then chooses",
}


@dataclass(frozen=True)
class Demo:
    """Sizes; at this step the samplers differ by what they target more than by their steps."""

    num_runs: int = 32
    num_steps: int = 20_000
    alpha: float = 1.7
    step_size: float = 0.03
    auto_starts: int = 4
    auto_budget: int = 20_000

    @property
    def num_moves(self) -> int:
        """Of all samplers: steps, and evaluations of `levymc.auto`."""
        return 3 * self.num_runs * self.num_steps + self.auto_budget


def cells(config: Demo) -> list[Cell]:
    found = [
        Sampler("ULA", 2.0, config.step_size),
        Sampler("FLA, tamed", config.alpha, config.step_size),
        Sampler("FLMC, split", config.alpha, config.step_size),
    ]
    return [Cell(_short(sampler.name), {"sampler": sampler}) for sampler in found] + [Cell(AUTO)]


def run_cell(config: Demo, cell: Cell, key: Any) -> CellResult:
    begin = time.perf_counter()
    result = _auto(config, key) if cell.id == AUTO else _run(config, cell["sampler"], key)
    seconds = time.perf_counter() - begin
    num_runs, num_draws = result.positions.shape
    path = np.asarray(result.positions[0], np.float64)[:: max(1, num_draws // NUM_POINTS)]
    sizes = {"runs": num_runs, "draws": num_runs * num_draws, "end": _end(config, cell.id, result)}
    return {**well.measure(result), "path": path, "seconds": seconds, **sizes}


def _run(config: Demo, sampler: Sampler, key: Any) -> Result:
    return well.run_from_left(sampler, key, config.num_runs, config.num_steps)


def _auto(config: Demo, key: Any) -> Result:
    starts = jnp.full(config.auto_starts, well.LEFT_MINIMUM)
    result = levymc.auto(well.target, key, starts, budget=config.auto_budget, progress=False)
    if result.is_interrupted:
        raise KeyboardInterrupt  # which is heard there: a part of a run is no result
    return result


def _end(config: Demo, name: str, result: Result) -> float:
    """Where the path that is drawn ends: at a time, and of `levymc.auto` at a draw."""
    num_draws = result.positions.shape[1]
    return float(num_draws) if name == AUTO else num_draws * config.step_size


def summarise(config: Demo, results: Mapping[str, CellResult]) -> Tables:
    rows, histograms, paths = [], [], []
    for name, result in results.items():
        rows.append(_scores(name, result))
        histograms.append(well.histogram_of(name, result))
        times = np.linspace(0, result["end"], len(result["path"]), endpoint=False)
        paths.append({"sampler": name, "time": times, "position": result["path"]})
    return {
        "scores": Table.stack("Each sampler; seconds include those of compiling.", rows),
        "histograms": Table.stack("Histograms of all draws, and the density.", histograms),
        "paths": Table.stack(f"The first chain of each; the time of {AUTO} is its draws.", paths),
    }


def _scores(name: str, result: CellResult) -> dict[str, Any]:
    shown = {key: result[key] for key in SHOWN}
    sizes = {key: result[key] for key in ("runs", "draws", "seconds")}
    return {"sampler": name, "left_mass": LEFT_MASS + shown["left_mass_error"], **shown, **sizes}


def checks(config: Demo, tables: Tables) -> list[Check]:
    rows = well.by_name(tables)
    exact = [well.check_left_mass(rows[name]) for name in ("FLMC", AUTO)]
    return [well.check_ula(rows["ULA"]), *exact]


def verdict(config: Demo, tables: Tables, checks: Sequence[Check]) -> Verdict:
    rows, span = well.by_name(tables), config.num_steps * config.step_size
    hops = {name: row["hops"] * row["runs"] for name, row in rows.items()}
    auto = rows[AUTO]
    return Verdict(
        "measured here",
        f"{config.num_runs} chains started in the left well. In {span:g} time units each, those "
        f"of ULA crossed the barrier {hops['ULA']:.0f} times, those of FLA "
        f"{hops['FLA']:,.0f} and those of FLMC {hops['FLMC']:,.0f} times. "
        f"{_on_left_mass(rows['FLMC'], checks)} {AUTO} was given {config.auto_budget:,} "
        f"evaluations of the density, where the others made {config.num_runs * config.num_steps:,} "
        f"steps each, and no step size: its left mass is {_with_error(auto)}, its TV "
        f"{auto['tv']:.3f}.",
    )


def _on_left_mass(row: dict[str, Any], checks: Sequence[Check]) -> str:
    """Whether FLMC's share of the left well is off by more than chance and start."""
    (check,) = (one for one in checks if one.name.endswith(row["sampler"]))
    opening = f"FLMC's left mass is {_with_error(row)}, where {LEFT_MASS:.3f} is right: "
    if not check.holds:
        return f"{opening}that is more than chance and its start explain."
    return (
        f"{opening}that is Monte Carlo error, as {row['hops']:.0f} hops a chain are few, and of it "
        f"{well.part_of_start(row):.3f} is what the start in the left well leaves on average. Both "
        "vanish in longer runs."
    )


def _with_error(row: dict[str, Any]) -> str:
    return f"{row['left_mass']:.3f} ± {row['left_mass_spread']:.3f}"


def _short(name: str) -> str:
    """`FLMC, split` is FLMC here."""
    return name.partition(",")[0]


def figures(config: Demo, tables: Tables) -> dict[str, Figure]:
    """A row for each sampler: a chain against time, and all draws, on the same axis."""
    figure = new_figure(10, 9)
    rows = tables["scores"].rows()
    panels = figure.subplots(len(rows), 2, sharey=True, width_ratios=(4, 1), squeeze=False)
    for (left, right), row in zip(panels, rows, strict=True):
        _draw_path(left, tables["paths"].where(sampler=row["sampler"]), row)
        _draw_histogram(right, tables["histograms"].where(sampler=row["sampler"]), row)
    for axes in (*panels[:-2, 0], *panels[:-1, 1]):
        axes.tick_params(labelbottom=False)
    first = panels[0, 0]
    first.text(0.01, 0.53, "top of the barrier", color=GREY, fontsize=9, transform=first.transAxes)
    panels[-2, 0].set_xlabel("time")
    panels[-1, 0].set_xlabel("draw")
    panels[-1, 1].set_xlabel("density")
    return {"double-well": figure}


def _draw_path(axes: Axes, path: Table, row: dict[str, Any]) -> None:
    name = row["sampler"]
    # Where nearly every draw is in another well than the last, lines would fill the panel.
    look = {"marker": ".", "markersize": 3, "linewidth": 0} if name == AUTO else {"linewidth": 0.7}
    axes.plot(path["time"], path["position"], color=SAMPLERS[name], **look)
    axes.set(title=f"{name}: {WAYS[name]}", ylabel="x", ylim=(-well.REACH, well.REACH))
    axes.set(xlim=(0, path["time"].max()))
    axes.set_yticks([-4, -2, 0, 2, 4])
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    note(axes, f"{row['hops']:.0f} hops a chain" if row["hops"] else "no hops")


def _draw_histogram(axes: Axes, part: Table, row: dict[str, Any]) -> None:
    height = part["x"][1] - part["x"][0]
    colour = SAMPLERS[row["sampler"]]
    axes.barh(part["x"], part["found"], height, color=colour, alpha=0.55, linewidth=0)
    grid = np.linspace(-well.REACH, well.REACH, 400)
    axes.plot(well.density(grid), grid, color=INK, linewidth=1.2)
    axes.set(xlim=(0, 1.35))
    note(axes, f"TV {row['tv']:.3f}")


EXPERIMENT = Experiment(
    name="double-well",
    title="A double well, four samplers",
    paper_item="Demo",
    question="Which samplers cross a barrier of 17?",
    introduction="A density with two modes, between which it falls by a factor of e¹⁷, or twenty "
    "million. Every chain starts in the left one. A sampler that moves by small Gaussian steps "
    "stays there and reports half of the truth, without a warning; one that is driven by Lévy "
    f"noise jumps to the other side; and {AUTO} finds both modes and weighs them.",
    terms={
        "ULA": "The unadjusted Langevin algorithm: along the gradient, with Gaussian noise.",
        "FLA": "The fractional Langevin algorithm: the noise is α-stable, whose rare large values "
        "are jumps. Its cheap drift makes it draw from a law that is not quite the target.",
        "FLMC": "Fractional Langevin Monte Carlo: the same noise with the exact drift, so that "
        "only the length of the steps is left as bias.",
        AUTO: "One call without anything to tune: it finds the modes, adapts an exact sampler to "
        "them, freezes it, and draws.",
        "TV": "Total variation, the share of the draws that would have to be moved for their "
        "histogram to be right: 0 is perfect, and a sampler that knows the left mode only has "
        f"{1 - LEFT_MASS:.3f}. Draws are finite, so that it is not 0 for right ones, either: "
        f"{NUM_INDEPENDENT:,} independent ones have about {well.floor(NUM_INDEPENDENT):.3f}.",
        "Left mass": f"The share of the draws left of zero, where the target has {LEFT_MASS:.3f}. "
        "Behind ± stands its standard error over the chains (in the table: left mass spread): a "
        "difference of one or two of these is Monte Carlo error, which longer runs make smaller, "
        "and no fault of the sampler.",
        "Hops": "How often a chain went from one well to the other.",
    },
    profiles=dict.fromkeys(("quick", "paper"), Demo()),
    captions={
        "double-well": "A chain of each sampler against time, and beside it the histogram of all "
        "chains with the exact density. ULA stays in the left well, in which all of them start; "
        f"FLA and FLMC jump between the two; {AUTO}, below against its draws, goes from one to "
        "the other every few draws."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
)


def main(
    out: Path | str = Path("results/demo"), *, seed: int = 0, experiment: Experiment | None = None
) -> Path:
    """Run the demo anew, show its table, and return the folder, of which a page can be made.

    Args:
        out: folder of results; what an earlier demo left there is replaced.
        seed: of all random numbers.
        experiment: `EXPERIMENT` if not given; another for other sizes.

    Raises: as `levymc_lab.framework.run`.
    """
    console, chosen = Console(), experiment or EXPERIMENT
    with _showing(chosen) as on_progress:
        results = run(chosen, out, seed=seed, jobs=0, force=True, on_progress=on_progress)
        _name_command(results.folder)
    console.print(table_of(results), "")
    console.print(f"TV: {chosen.terms['TV']}\n", highlight=False)
    console.print(results.verdict.words, highlight=False)
    console.print(f"Picture: {results.figure('double-well', 'png')}", markup=False, soft_wrap=True)
    return Path(out)


@contextmanager
def _showing(experiment: Experiment) -> Iterator[Callable[[int, int], None]]:
    """A bar with the sampler that runs, and whether its program is being compiled."""
    config = experiment.config("quick")
    names = [cell.id for cell in cells(config)]
    steps = config.num_runs * config.num_steps
    with stage_bar(config.num_moves, progress=True) as tell:

        def on_progress(done: int, total: int) -> None:
            tell(names[min(done, total - 1)], done * steps, "")

        yield on_progress


def _name_command(folder: Path) -> None:
    """`run` writes a command that does not know the demo."""
    path = folder / "manifest.json"
    write_json(path, {**json.loads(path.read_text("utf-8")), "command": "levymc demo"})


def table_of(results: Results) -> Listing:
    """What the terminal shows, in 60 columns if it has no more."""
    grid = Listing(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1))
    grid.add_column("sampler", style="bold", no_wrap=True)
    for heading in ("TV", f"left mass\n({LEFT_MASS:.3f})", "hops a\nchain", "draws", "seconds"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row in results.tables["scores"].rows():
        grid.add_row(
            row["sampler"],
            f"{row['tv']:.3f}",
            _with_error(row),
            f"{row['hops']:.1f}",
            f"{row['draws']:,}",
            f"{row['seconds']:.1f}",
        )
    return grid
