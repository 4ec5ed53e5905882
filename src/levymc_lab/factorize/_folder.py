"""The folder of a fit: whose it is, and files that are whole or absent."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from levymc._files import InUseError, atomic_bytes, lock
from levymc_lab.framework import MismatchError, ResultsError

KIND = "factorize"
REMEDY = "Name another folder (--out), or start anew and lose what it holds (--force)."


class Folder(NamedTuple):
    """Where things are."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.csv"

    @property
    def factors(self) -> Path:
        return self.path / "factors.npz"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.npz"

    def clear(self) -> None:
        """Remove what a run writes, and nothing else; last the manifest, which names the rest."""
        for file in (self.checkpoint, self.predictions, self.factors, self.manifest):
            file.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed processes left half written."""
        for file in (self.manifest, self.predictions, self.factors, self.checkpoint):
            for partial in self.path.glob(f"{file.name}.*.partial"):
                partial.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let one process at a time run."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with lock(self.path):
                yield
        except InUseError as error:
            raise ResultsError(str(error)) from None


def read_manifest(folder: Folder) -> dict[str, Any] | None:
    """What the folder says of its run; None if there is none."""
    try:
        found = json.loads(folder.manifest.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, NotADirectoryError) as error:
        raise ResultsError(f"{folder.manifest} is broken ({error}). {REMEDY}") from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise MismatchError(f"{folder.path} holds results of another kind. {REMEDY}")
    return found


def write_manifest(folder: Folder, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    atomic_bytes(folder.manifest, (text + "\n").encode())


def is_finished(folder: Folder, manifest: dict[str, Any]) -> bool:
    """Whether there is nothing left to do."""
    return (
        manifest["status"] == "finished" and folder.predictions.exists() and folder.factors.exists()
    )


def check_folder(
    folder: Folder, identity: dict[str, Any], versions: dict[str, str]
) -> dict[str, Any] | None:
    """The manifest of the run that is to go on, or None if there is none.

    Raises:
        MismatchError: the folder holds something else.
    """
    found = read_manifest(folder)
    if found is None:
        theirs = [file.name for file in (folder.predictions, folder.factors) if file.exists()]
        if theirs:
            raise MismatchError(f"{folder.path} holds {theirs[0]} of something else. {REMEDY}")
        return None
    differences = _changed(found["identity"], identity)
    if not is_finished(folder, found):  # half of a chain from another version is no chain
        differences += _changed(found["versions"], versions)
    if differences:
        raise MismatchError(f"{folder.path} holds another run: {', '.join(differences)}. {REMEDY}")
    return found


def _changed(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [
        f"its {name} is {_short(found.get(name))}, not {_short(wanted.get(name))}"
        for name in dict.fromkeys([*found, *wanted])
        if found.get(name) != wanted.get(name)
    ]


def _short(value: Any) -> str:
    return f"{value[:8]}…" if isinstance(value, str) and len(value) == 64 else str(value)


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Arrays into one file, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    atomic_bytes(path, buffer.getvalue())
