"""The cache: for each data set a folder with one file of arrays and a manifest with its checksum.

The file of arrays is named by its checksum and the manifest, which names it, is replaced last and
in one step.  So whatever interrupts an import, there is the old data set, or the new one, or none.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from levymc._workdir import InUseError, ResultsError, atomic_bytes, flush, lock, read_json

from ._checksum import sha256_of
from ._errors import CacheError

FORMAT = 1  # of the manifest
MANIFEST = "manifest.json"


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Where data sets are kept: `cache`, or else LEVYMC_DATA, or else the user's cache folder.

    >>> import levymc_lab.data
    >>> levymc_lab.data.cache_folder("some/folder").as_posix()
    'some/folder'
    """
    if chosen := cache or os.environ.get("LEVYMC_DATA"):
        return Path(chosen)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "levymc"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "levymc"


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Work alone in the folder of a data set; leave none behind if nothing comes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lock(folder):
            _tidy(folder)
            try:
                yield
            finally:
                if not any(folder.iterdir()):
                    folder.rmdir()
    except InUseError as error:
        raise CacheError(str(error)) from None


def store(folder: Path, kind: type, value: Any, facts: dict[str, Any]) -> None:
    """Write the arrays of `value`, a NamedTuple of class `kind`; to be called by one at a time."""
    old = set(folder.glob("*.npz"))
    file, checksum = _written(folder, value)
    manifest = {
        "format": FORMAT,
        "kind": kind.__name__,
        "file": file.name,
        "sha256": checksum,
        "bytes": file.stat().st_size,
        **facts,
    }
    try:
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        atomic_bytes(folder / MANIFEST, text.encode())
    except BaseException:
        if file not in old:
            file.unlink()
        raise
    for outdated in old - {file}:
        outdated.unlink()


def _written(folder: Path, value: Any) -> tuple[Path, str]:
    """The file of the arrays, named by its checksum, and that."""
    partial = folder / f"{os.getpid()}.npz.partial"
    try:
        with partial.open("wb") as stream:
            np.savez(stream, **_plain(value))  # type: ignore[arg-type]
        flush([partial])
        checksum = sha256_of(partial)
        return partial.replace(folder / f"{checksum[:16]}.npz"), checksum
    finally:
        partial.unlink(missing_ok=True)


def _plain(value: Any) -> dict[str, np.ndarray]:
    arrays = value._asdict()
    for field, array in arrays.items():
        if array.dtype.hasobject:  # NumPy would pickle them
            raise TypeError(f"`{field}` must not hold Python objects, got {array.dtype}.")
    return arrays


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of a data set; None where there is no data set.

    Raises:
        CacheError: it is broken.
    """
    path = folder / MANIFEST
    try:
        manifest = read_json(path, "Import the data set again.")
    except FileNotFoundError:
        return None
    except ResultsError as error:
        raise CacheError(str(error)) from None
    if manifest.get("format") != FORMAT:
        raise CacheError(f"{path} is of another version of levymc. Import the data set again.")
    return manifest


def restore(folder: Path, kind: type, manifest: dict[str, Any]) -> Any:
    """The arrays that the manifest names.

    Raises:
        CacheError: they are not those that were written.
    """
    path = folder / Path(str(manifest.get("file"))).name
    if not path.is_file() or sha256_of(path) != manifest.get("sha256"):
        raise CacheError(
            f"{path} is missing or not what was written: its SHA-256 does not match {MANIFEST}. "
            "Import the data set again."
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return kind(**{field: arrays[field] for field in kind._fields})  # type: ignore[attr-defined]
    except (KeyError, ValueError, BadZipFile) as error:
        raise CacheError(f"{path} cannot be read ({error}). Import the data set again.") from None


def _tidy(folder: Path) -> None:
    """Remove what killed processes left half written."""
    for partial in folder.glob("*.partial"):
        if partial.is_dir():
            shutil.rmtree(partial)
        else:
            partial.unlink()
