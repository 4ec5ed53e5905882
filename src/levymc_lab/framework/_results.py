"""What a results folder holds: where it is, what its cells were, and how the run is judged.

Every cell says in its own file at which revision and when it was made, so that one copied from
another run is known by it.  The manifest of a finished run repeats that, and has the SHA-256 of
each file of the tables: what was changed since is not read.

A run that is not finished is judged by the cells that are there.  Nothing is written then: another
process may be at work in the folder, and what is made from some of the cells must not be taken for
what is made from all.
"""

import hashlib
import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from levymc._workdir import (
    Fields,
    ResultsError,
    git_state,
    now,
    parse_json,
    read_arrays,
    read_json,
    save_arrays,
)

from ._check import Check, Verdict
from ._experiment import CellResult
from ._registry import get, names
from ._table import Table

# Of a manifest, what is relied on here and when a run goes on.
FIELDS: Fields = {
    **dict.fromkeys(("digest", "status", "command", "profile"), str),
    **dict.fromkeys(("config", "versions"), dict),
    **dict.fromkeys(("sessions", "tables"), list),
    **dict.fromkeys(("seed", "num_cells"), int),
    "wall_seconds": (int, float),
}
FORMAT = 2  # of a manifest; from 2 on with checksums of the tables and the revision of each cell
TABLE_SUFFIXES = ("csv", "json")
STAMP = ("_revision", "_dirty", "_made")  # of a cell, beside what its experiment keeps in it


class Folder(NamedTuple):
    """Where things are."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def checks(self) -> Path:
        return self.path / "checks.json"

    @property
    def cells(self) -> Path:
        return self.path / "cells"

    def cell(self, id: str) -> Path:
        return self.cells / f"{id}.npz"

    def scratch(self, id: str) -> Path:
        return self.cells / id

    def table(self, name: str, suffix: str) -> Path:
        return self.path / "tables" / f"{name}.{suffix}"

    def figure(self, name: str, suffix: str) -> Path:
        return self.path / "figures" / f"{name}.{suffix}"

    def clear(self) -> None:
        """Remove what a run writes, and nothing else; last the manifest, which names the rest."""
        for part in (self.cells, self.path / "tables", self.path / "figures"):
            if part.exists():
                shutil.rmtree(part)
        for file in (self.checks, self.manifest):
            file.unlink(missing_ok=True)


def read_manifest(folder: Folder) -> dict[str, Any]:
    """The manifest, with the fields that others rely on."""
    remedy = "Nothing was changed: restore it from a copy, or start anew with --force."
    try:
        return read_json(folder.manifest, remedy, FIELDS)
    except FileNotFoundError:
        raise ResultsError(
            f"{folder.path} is no results folder: it has no manifest.json."
        ) from None


def checksum(content: bytes) -> str:
    """SHA-256, as `sha256sum` prints it."""
    return hashlib.sha256(content).hexdigest()


def read_tables(folder: Folder, manifest: Mapping[str, Any]) -> dict[str, Table]:
    """The tables, if they are as they were made; those without checksums as they are.

    Raises:
        ResultsError: a table was changed since, or the manifest lost its checksum.
    """
    found = {}
    for name in manifest["tables"]:
        contents = {kind: folder.table(name, kind).read_bytes() for kind in TABLE_SUFFIXES}
        for kind, content in contents.items():
            check_table(folder, manifest, name, kind, content)
        found[name] = Table.from_json(contents["json"])
    return found


def has_checksums(manifest: Mapping[str, Any]) -> bool:
    """Whether tables can be checked; those of a manifest of format 1 cannot."""
    return manifest.get("format", 1) > 1 or "checksums" in manifest


def check_table(
    folder: Folder, manifest: Mapping[str, Any], name: str, kind: str, content: bytes
) -> None:
    """Refuse a file of a table that is not the one that was made."""
    if not has_checksums(manifest):
        return
    file = folder.table(name, kind)
    known = manifest.get("checksums", {}).get(file.name)
    if checksum(content) != known:
        reason = "changed since it was made" if known else "without its checksum in the manifest"
        raise ResultsError(
            f"{file} was {reason}: its SHA-256 is {checksum(content)[:12]}…, not "
            f"{str(known)[:12]}…. Restore it from a copy, such as the committed one, or make all "
            f"anew: {manifest['command']} --force"
        )


def stamp() -> dict[str, Any]:
    """At which revision and when a cell is made that is made now."""
    state = git_state() or {"revision": "", "dirty": False}
    return dict(zip(STAMP, (state["revision"], state["dirty"], now()), strict=True))


def cell_bytes(result: CellResult) -> bytes:
    """Numbers, texts and arrays as the content of one file, without pickle; and its stamp."""
    if taken := set(STAMP).intersection(result):
        raise TypeError(f"`run_cell` must not give {sorted(taken)}: take other names.")
    arrays = {name: np.asarray(value) for name, value in {**result, **stamp()}.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufU":
            raise TypeError(
                f"`run_cell` must give numbers, texts and arrays of them, got {name!r} of "
                f"{type(result[name]).__name__}. Give its parts under names of their own."
            )
    stream = io.BytesIO()
    save_arrays(stream, arrays)
    return stream.getvalue()


def read_cell(path: Path) -> dict[str, Any]:
    """What `cell_bytes` was given; numbers and texts as Python's."""
    return {name: value for name, value in _read_all(path).items() if name not in STAMP}


def read_stamp(path: Path) -> dict[str, Any]:
    """Revision and time of a cell; of one that was made before there were stamps, unknown."""
    found = _read_all(path)
    values = (found.get(name) for name in STAMP)
    return dict(zip(("revision", "dirty", "made"), values, strict=True))


def _read_all(path: Path) -> dict[str, Any]:
    arrays = read_arrays(path, "Remove it: the same command then makes it again.")
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


@dataclass(frozen=True, eq=False)
class Judged:
    """What comes from cells, be they all or not."""

    folder: Path
    manifest: dict[str, Any]
    tables: dict[str, Table]
    checks: list[Check]
    verdict: Verdict

    @property
    def has_failed(self) -> bool:
        """Whether a check failed without an explanation."""
        return any(check.outcome == "fail" for check in self.checks)


@dataclass(frozen=True, eq=False)
class Results(Judged):
    """A finished run."""

    def figure(self, name: str, suffix: str = "svg") -> Path:
        """The file of a figure; names and captions are in ``manifest["captions"]``."""
        return Folder(self.folder).figure(name, suffix)

    def picture(self, name: str, suffix: str = "svg") -> bytes:
        """What that file holds."""
        return self.figure(name, suffix).read_bytes()


@dataclass(frozen=True, eq=False)
class SoFar(Judged):
    """As `Results`, of `num_done` of the cells; its figures are in memory only."""

    num_done: int
    num_cells: int
    pictures: Mapping[tuple[str, str], bytes]

    def picture(self, name: str, suffix: str = "svg") -> bytes:
        """A figure as SVG or PNG."""
        return self.pictures[name, suffix]


def load(path: Path | str) -> Results:
    """Read the folder OUT/NAME of a finished run.

    Raises:
        ResultsError: there is none, it is damaged, or the run is not finished.
    """
    folder = Folder(Path(path))
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise ResultsError(
            f"{folder.path} holds a run that is not finished. Go on with: {manifest['command']}"
        )
    try:
        judged = parse_json(folder.checks.read_bytes())
        checks = [Check.from_json(content) for content in judged["checks"]]
        tables = read_tables(folder, manifest)
        return Results(folder.path, manifest, tables, checks, Verdict(**judged["verdict"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ResultsError(
            f"{folder.path} is damaged ({error}). Run again: {manifest['command']} --force"
        ) from error


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
    profile, num_cells = manifest["profile"], manifest["num_cells"]
    if profile not in experiment.profiles:
        return None
    config = experiment.config(profile)
    cells = experiment.checked_cells(config)
    wanted = experiment.identity(profile, manifest["seed"])
    if (manifest["digest"], num_cells) != (wanted["digest"], len(cells)):
        return None
    done = [cell for cell in cells if folder.cell(cell.id).exists()]
    if not done:
        return None
    results = {cell.id: read_cell(folder.cell(cell.id)) for cell in done}
    tables = experiment.tables(config, results)
    checks, verdict = experiment.judge(config, tables)
    pictures = experiment.draw(config, tables)
    return SoFar(folder.path, manifest, tables, checks, verdict, len(done), num_cells, pictures)
