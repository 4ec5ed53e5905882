"""The folder of one experiment's results: files that are whole or absent."""

import io
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from levymc._files import InUseError, atomic_bytes, lock


class ResultsError(Exception):
    """A results folder that cannot be read or written."""


class MismatchError(ValueError):
    """A results folder that belongs to another run."""


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

    def table(self, name: str, suffix: str) -> Path:
        return self.path / "tables" / f"{name}.{suffix}"

    def figure(self, name: str, suffix: str) -> Path:
        return self.path / "figures" / f"{name}.{suffix}"

    def tidy(self) -> None:
        """Remove what killed processes left half written."""
        for partial in self.path.rglob("*.partial"):
            partial.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove what a run writes, and nothing else; last the manifest, which names the rest."""
        for part in (self.cells, self.path / "tables", self.path / "figures"):
            if part.exists():
                shutil.rmtree(part)
        for file in (self.checks, self.manifest):
            file.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let one process at a time run."""
        try:
            with lock(self.path):
                yield
        except InUseError as error:
            raise ResultsError(str(error)) from None


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    atomic_bytes(path, (text + "\n").encode())


def write_cell(path: Path, result: Mapping[str, Any]) -> None:
    """Numbers, texts and arrays into one file, without pickle."""
    arrays = {name: np.asarray(value) for name, value in result.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufU":
            raise TypeError(
                f"`run_cell` must give numbers, texts and arrays of them, got {name!r} of "
                f"{type(result[name]).__name__}. Give its parts under names of their own."
            )
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    atomic_bytes(path, buffer.getvalue())


def read_cell(path: Path) -> dict[str, Any]:
    """What `write_cell` was given; numbers and texts as Python's."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise ResultsError(
            f"{path} is damaged ({error}). Remove it: the same command then makes it again."
        ) from error
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}
