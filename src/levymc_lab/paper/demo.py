r"""``levymc demo``: why Lévy noise matters, on the paper's double well.

All chains start in the left well, behind a barrier of 17.  By Kramers' law a chain driven by
Gaussian noise (ULA) needs some 2e7 time units to cross it; one that is driven by α-stable noise
(FLA, FLMC) jumps across every 60.

It is an experiment like the others, but has no part in the paper, nor in ``levymc run all``.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table as Listing

from levymc._workdir import write_json
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

SHOWN = ("tv", "left_mass_error", "left_mass_spread", "hops")
NUM_POINTS = 2000  # of a path that is drawn
NOISE = {"ULA": "Gaussian noise", "FLA": "Lévy noise", "FLMC": "Lévy noise, exact drift"}


@dataclass(frozen=True)
class Demo:
    """Sizes; at this step the samplers differ by what they target more than by their steps."""

    num_runs: int = 32
    num_steps: int = 20_000
    alpha: float = 1.7
    step_size: float = 0.03


def cells(config: Demo) -> list[Cell]:
    found = [
        Sampler("ULA", 2.0, config.step_size),
        Sampler("FLA, tamed", config.alpha, config.step_size),
        Sampler("FLMC, split", config.alpha, config.step_size),
    ]
    return [Cell(_short(sampler.name), {"sampler": sampler}) for sampler in found]


def run_cell(config: Demo, cell: Cell, key: Any) -> CellResult:
    begin = time.perf_counter()
    result = well.run_from_left(cell["sampler"], key, config.num_runs, config.num_steps)
    seconds = time.perf_counter() - begin
    path = np.asarray(result.positions[0], np.float64)[:: max(1, config.num_steps // NUM_POINTS)]
    return {**well.measure(result), "path": path, "seconds": seconds}


def summarise(config: Demo, results: Mapping[str, CellResult]) -> Tables:
    end = config.num_steps * config.step_size
    rows, histograms, paths = [], [], []
    for name, result in results.items():
        shown = {key: result[key] for key in SHOWN}
        rows.append(
            {"sampler": name, **shown, "runs": config.num_runs, "seconds": result["seconds"]}
        )
        histograms.append(well.histogram_of(name, result))
        times = np.linspace(0, end, len(result["path"]), endpoint=False)
        paths.append({"sampler": name, "time": times, "position": result["path"]})
    return {
        "scores": Table.stack("Each sampler; the time includes its compilation.", rows),
        "histograms": Table.stack("Histograms of all draws, and the density.", histograms),
        "paths": Table.stack("The first chain of each.", paths),
    }


def checks(config: Demo, tables: Tables) -> list[Check]:
    rows = well.by_name(tables)
    return [well.check_ula(rows["ULA"]), well.check_left_mass(rows["FLMC"])]


def verdict(config: Demo, tables: Tables, checks: Sequence[Check]) -> Verdict:
    rows, span = well.by_name(tables), config.num_steps * config.step_size
    hops = {name: row["hops"] * config.num_runs for name, row in rows.items()}
    return Verdict(
        "measured here",
        f"{config.num_runs} chains started in the left well. In {span:g} time units each, those "
        f"of ULA crossed the barrier {hops['ULA']:.0f} times, those of FLA "
        f"{hops['FLA']:,.0f} and those of FLMC {hops['FLMC']:,.0f} times.",
    )


def _short(name: str) -> str:
    """`FLMC, split` is FLMC here."""
    return name.partition(",")[0]


def figures(config: Demo, tables: Tables) -> dict[str, Figure]:
    """A row for each sampler: a chain against time, and all draws, on the same axis."""
    figure = new_figure(10, 7)
    rows = tables["scores"].rows()
    panels = figure.subplots(len(rows), 2, sharey=True, width_ratios=(4, 1), squeeze=False)
    for (left, right), row in zip(panels, rows, strict=True):
        _draw_path(left, tables["paths"].where(sampler=row["sampler"]), row)
        _draw_histogram(right, tables["histograms"].where(sampler=row["sampler"]), row)
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    first = panels[0, 0]
    first.text(0.01, 0.53, "top of the barrier", color=GREY, fontsize=9, transform=first.transAxes)
    panels[-1, 0].set_xlabel("time")
    panels[-1, 1].set_xlabel("density")
    return {"double-well": figure}


def _draw_path(axes: Axes, path: Table, row: dict[str, Any]) -> None:
    name = row["sampler"]
    axes.plot(path["time"], path["position"], color=SAMPLERS[name], linewidth=0.7)
    axes.set(title=f"{name}: {NOISE[name]}", ylabel="x", ylim=(-well.REACH, well.REACH))
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
    title="A double well, three samplers",
    paper_item="Demo",
    question="Which samplers cross a barrier of 17?",
    profiles=dict.fromkeys(("quick", "paper"), Demo()),
    captions={
        "double-well": "A chain of each sampler against time, and beside it the histogram of all "
        "chains with the exact density. ULA stays in the left well, in which all of them start; "
        "FLA and FLMC jump between the two."
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
    console = Console()
    with console.status("ULA, FLA and FLMC on a double well, all started in the left one …"):
        results = run(experiment or EXPERIMENT, out, seed=seed, jobs=0, force=True)
        _name_command(results.folder)
    console.print(table_of(results))
    console.print(results.verdict.words)
    console.print(f"Picture: {results.figure('double-well', 'png')}", markup=False, soft_wrap=True)
    return Path(out)


def _name_command(folder: Path) -> None:
    """`run` writes a command that does not know the demo."""
    path = folder / "manifest.json"
    write_json(path, {**json.loads(path.read_text("utf-8")), "command": "levymc demo"})


def table_of(results: Results) -> Listing:
    """What the terminal shows."""
    grid = Listing(box=box.SIMPLE_HEAD)
    grid.add_column("sampler", style="bold")
    headings = ("TV to the target", f"left mass ({LEFT_MASS:.3f})", "hops a chain", "seconds")
    for heading in headings:
        grid.add_column(heading, justify="right")
    for row in results.tables["scores"].rows():
        left = f"{LEFT_MASS + row['left_mass_error']:.3f}"
        grid.add_row(
            row["sampler"], f"{row['tv']:.3f}", left, f"{row['hops']:.1f}", f"{row['seconds']:.1f}"
        )
    return grid
