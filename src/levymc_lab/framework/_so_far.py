"""A run that is not finished, judged by the cells that are there.

Nothing is written: another process may be at work in the folder, and what is made from some of the
cells must not be taken for what is made from all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _manifest
from ._experiment import Cell, Experiment
from ._folder import Folder, read_cell
from ._outputs import draw
from ._registry import get, names
from ._results import Judged, read_manifest


@dataclass(frozen=True, eq=False)
class SoFar(Judged):
    """As `Results`, of `num_done` of the cells; its figures are in memory only."""

    num_done: int
    num_cells: int
    pictures: Mapping[tuple[str, str], bytes]

    def picture(self, name: str, suffix: str = "svg") -> bytes:
        """A figure as SVG or PNG."""
        return self.pictures[name, suffix]


def so_far(path: Path | str) -> SoFar | None:
    """Judge the cells in the folder OUT/NAME, while others are missing or being made.

    Returns: None if the experiment does not show its parts, no cell is there, or the folder is of
        another configuration or set of cells than the experiment has now.

    Raises:
        ResultsError: the manifest or a cell is damaged.
        Exception: whatever the experiment's own functions raise.
    """
    folder = Folder(Path(path))
    if folder.path.name not in names():
        return None
    experiment = get(folder.path.name)
    if not experiment.shows_parts:
        return None
    manifest = read_manifest(folder)
    if manifest["profile"] not in experiment.profiles:
        return None
    config = experiment.config(manifest["profile"])
    cells = experiment.checked_cells(config)
    if not _belongs(manifest, experiment, len(cells)):
        return None
    done = [cell for cell in cells if folder.cell(cell.id).exists()]
    return _judge(experiment, config, done, folder, manifest) if done else None


def _belongs(manifest: dict[str, Any], experiment: Experiment, num_cells: int) -> bool:
    wanted = _manifest.new(experiment, manifest["profile"], manifest["seed"], num_cells)
    return all(manifest[name] == wanted[name] for name in ("digest", "num_cells"))


def _judge(
    experiment: Experiment, config: Any, done: list[Cell], folder: Folder, manifest: dict[str, Any]
) -> SoFar:
    results = {cell.id: read_cell(folder.cell(cell.id)) for cell in done}
    with experiment.precision():
        tables = dict(experiment.summarise(config, results))
        checks = list(experiment.checks(config, tables))
        verdict = experiment.verdict(config, tables, checks)
        pictures = draw(experiment, config, tables)
    num_cells = manifest["num_cells"]
    return SoFar(folder.path, manifest, tables, checks, verdict, len(done), num_cells, pictures)
