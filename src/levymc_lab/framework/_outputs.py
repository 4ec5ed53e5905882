"""From the cells: tables, then from the tables the checks, the verdict and the figures.

Only what is missing is written, and everything after the tables is made from the tables as they
are on disk, so that a folder never holds figures of one version beside tables of another.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levymc._files import atomic_bytes

from ._experiment import Cell, Experiment, Tables
from ._folder import Folder, read_cell, write_json
from ._results import read_tables

SUFFIXES = ("png", "svg")


def write_tables(
    experiment: Experiment, config: Any, cells: Sequence[Cell], folder: Folder
) -> list[str]:
    """Summarise the cells; return the names of the tables."""
    results = {cell.id: read_cell(folder.cell(cell.id)) for cell in cells}
    with experiment.precision():
        tables = experiment.summarise(config, results)
    for name, table in tables.items():
        for suffix, content in (("csv", table.to_csv()), ("json", table.to_json())):
            _write_missing(folder.table(name, suffix), content)
    return list(tables)


def has_tables(folder: Folder, names: Sequence[str]) -> bool:
    """Whether there are tables, and all of them."""
    files = [folder.table(name, suffix) for name in names for suffix in ("csv", "json")]
    return bool(files) and all(file.exists() for file in files)


def write_judgement_and_figures(
    experiment: Experiment, config: Any, names: Sequence[str], folder: Folder
) -> None:
    tables = read_tables(folder, list(names))
    with experiment.precision():
        if not folder.checks.exists():
            checks = list(experiment.checks(config, tables))
            verdict = experiment.verdict(config, tables, checks)
            content = {
                "checks": [check.to_json() for check in checks],
                "verdict": dataclasses.asdict(verdict),
            }
            write_json(folder.checks, content)
        _write_figures(experiment, config, tables, folder)


def _write_figures(experiment: Experiment, config: Any, tables: Tables, folder: Folder) -> None:
    wanted = [folder.figure(name, s) for name in experiment.captions for s in SUFFIXES]
    if all(file.exists() for file in wanted):
        return
    for (name, suffix), content in draw(experiment, config, tables).items():
        _write_missing(folder.figure(name, suffix), content)


def draw(experiment: Experiment, config: Any, tables: Tables) -> dict[tuple[str, str], bytes]:
    """Every figure, by its name and suffix."""
    from .style import rendered, styled

    with styled():
        figures = experiment.figures(config, tables)
        if set(figures) != set(experiment.captions):
            raise ValueError(
                f"{experiment.name} draws {sorted(figures)} and has captions for "
                f"{sorted(experiment.captions)}: give every figure its caption."
            )
        return {  # always all, in this order: the layout of one depends on those drawn before it
            (name, suffix): rendered(figures[name], suffix)
            for name in experiment.captions
            for suffix in SUFFIXES
        }


def _write_missing(path: Path, content: bytes) -> None:
    if not path.exists():
        atomic_bytes(path, content)
