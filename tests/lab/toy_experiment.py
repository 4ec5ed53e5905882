"""A small experiment for tests; as a program, the `levymc` command that knows it.

The variable TOY makes it misbehave in cell-2: "crash", "interrupt", "kill" itself, or once, until
there is the file, "kill:FILE" or "sleep:FILE", which says in it who sleeps; or "miss" a check.
"""

import errno
import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from levymc_lab.framework import Cell, Check, Experiment, Table, Verdict
from levymc_lab.framework._results import read_cell

MADE = []  # ids of the cells made in this process


@dataclass(frozen=True)
class Toy:
    num_cells: int = 4
    num_draws: int = 50
    scales: tuple[float, ...] = (1.0, 2.0)


def cells(config):
    return [Cell(f"cell-{i}", {"scale": config.scales[i % 2]}) for i in range(config.num_cells)]


def run_cell(config, cell, key):
    if cell.id == "cell-2":
        misbehave(os.environ.get("TOY", ""))
    MADE.append(cell.id)
    normals = jax.random.normal(key, (64,))  # of one shape, so that it is compiled once
    draws = cell["scale"] * np.asarray(normals)[: config.num_draws]
    return {"draws": draws, "mean": draws.mean(), "name": "toy"}


def misbehave(how):
    how, _, file = how.partition(":")
    if file and Path(file).exists():
        return
    if file:
        Path(file).write_text(str(os.getpid()))
    if how == "sleep":
        time.sleep(300)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        raise ValueError("a fault in a cell")
    if how == "interrupt":
        raise KeyboardInterrupt


def summarise(config, results):
    parts = [{"cell": id, "mean": result["mean"]} for id, result in results.items()]
    means = Table.stack("Means.", parts)
    return {"means": means, "draws": Table("Draws.", {"x": next(iter(results.values()))["draws"]})}


def checks(config, tables):
    limit = -1.0 if os.environ.get("TOY") == "miss" else 10.0
    largest = float(np.abs(tables["means"]["mean"]).max())
    return [Check.below("largest mean", largest, limit, reason="because")]


def verdict(config, tables, checks):
    return Verdict("measured here", "It is a toy.")


def figures(config, tables):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 2))
    figure.subplots(subplot_kw={"xticks": [], "yticks": []}).plot(tables["draws"]["x"])
    return {"draws": figure}


EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    paper_item="Figure 0",
    question="Does it run?",
    profiles={"quick": Toy(), "paper": Toy(num_draws=60)},
    captions={"draws": "Draws."},
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    shows_parts=True,
)


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the manifest, which tells the time; of cells, what their experiment gave."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        str(file.relative_to(folder)): _content(file)
        for file in files
        if file.name != "manifest.json"
    }


def _content(file: Path) -> bytes:
    if file.suffix != ".npz":
        return file.read_bytes()
    return b"".join(np.asarray(value).tobytes() for value in read_cell(file).values())


def fill_disk(monkeypatch, after: int):
    """Let that many files be written, and no more; their folders do not count."""
    left, fsync = [after], os.fsync

    def limited(descriptor):
        left[0] -= not stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", limited)


if __name__ == "__main__":
    # A process that a script put into the background ignores Ctrl-C, and so would this one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from levymc_lab.cli import main
    from levymc_lab.framework._registry import MODULES

    MODULES["toy"] = "tests.lab.toy_experiment"
    main()
