"""What a results folder holds, for those who only read it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._check import Check, Verdict
from ._folder import Folder, ResultsError
from ._table import Table


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
        judged = json.loads(folder.checks.read_text("utf-8"))
        checks = [Check.from_json(content) for content in judged["checks"]]
        return Results(
            folder.path,
            manifest,
            read_tables(folder, manifest["tables"]),
            checks,
            Verdict(**judged["verdict"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            f"{folder.path} is damaged ({error}). Run again: {manifest['command']} --force"
        ) from error


def read_manifest(folder: Folder) -> dict[str, Any]:
    """The manifest, with the fields that others rely on."""
    try:
        manifest = json.loads(folder.manifest.read_text("utf-8"))
        for name in ("digest", "status", "config", "versions", "sessions", "tables", "command"):
            manifest[name]
    except FileNotFoundError:
        raise ResultsError(
            f"{folder.path} is no results folder: it has no manifest.json."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            f"{folder.manifest} is broken ({error}). Nothing was changed: restore it from a copy, "
            "or start anew with --force."
        ) from error
    return manifest


def read_tables(folder: Folder, names: list[str]) -> dict[str, Table]:
    return {name: Table.from_json(folder.table(name, "json").read_bytes()) for name in names}
