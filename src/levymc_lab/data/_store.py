"""The cache: for each data set a folder with one file of arrays and a manifest with its checksum.

The file of arrays is named by its checksum and the manifest, which names it, is replaced last and
in one step.  So whatever interrupts an import, there is the old data set, or the new one, or none.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from levymc._cache import user_cache
from levymc._workdir import InUseError, atomic_bytes, flush, json_bytes, lock

from . import _images, _movielens
from ._dataset import CacheError, DataError, Dataset, MissingDataError

# What describes a data set, given its name.
DATASETS: dict[str, Callable[[str], Dataset]] = {
    **dict.fromkeys(_movielens.EDITIONS, _movielens.describe),
    "mnist": _images.describe,
}
FORMAT = 1  # of the manifest
MANIFEST = "manifest.json"
OURS = re.compile(r"[0-9a-f]{16}\.npz")  # other arrays in the folder are someone's own


def names() -> list[str]:
    """The data sets that can be imported.

    >>> import levymc_lab.data
    >>> "ml-1m" in levymc_lab.data.names()
    True
    """
    return list(DATASETS)


def get(name: str) -> Dataset:
    """The description of a data set: its title, licence, citation and published files.

    Raises:
        DataError: there is none of that name.

    Examples:
        >>> import levymc_lab.data
        >>> levymc_lab.data.get("ml-1m").downloads[0].filename
        'ml-1m.zip'
    """
    if name not in DATASETS:
        close = get_close_matches(name, DATASETS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(DATASETS)}."
        raise DataError(f"There is no data set {name!r}. {hint}")
    return DATASETS[name](name)


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Where data sets are kept: `cache`, or else LEVYMC_DATA, or else the user's cache folder.

    >>> import levymc_lab.data
    >>> levymc_lab.data.cache_folder("some/folder").as_posix()
    'some/folder'
    """
    if chosen := cache or os.environ.get("LEVYMC_DATA"):
        return Path(chosen)
    return user_cache()


def import_dataset(
    name: str, path: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None
) -> Any:
    """Read a copy of a data set, make sure that it is that data set, and keep it in the cache.

    Args:
        name: of the data set; `levymc_lab.data.names()` has them.
        path: the official archive, or the folder or file unpacked from it; of several files, the
            folder that holds them.
        cache: the folder to keep it in; see `levymc_lab.data.cache_folder`.

    Returns:
        What `levymc_lab.data.load` gives.

    Raises:
        DataError: a fault in the data, or another data set; the cache stays as it was.
        OSError: something cannot be read or written; likewise.
    """
    path = Path(path)
    dataset = get(name)
    value = dataset.read(path)
    folder = cache_folder(cache) / name
    with exclusive(folder):
        # Without the folder that they come from, which is nobody else's business.
        source = {"file": path.name, "sha256": digest_of(path) if path.is_file() else None}
        keep(dataset, folder, value, source)
    return value


def load(name: str, cache: str | os.PathLike[str] | None = None) -> Any:
    """A data set from the cache, having verified its checksum.

    Args:
        name: of the data set; `levymc_lab.data.names()` has them.
        cache: the folder it is kept in; see `levymc_lab.data.cache_folder`.

    Returns:
        For MovieLens a `Ratings`, for MNIST `Images`.

    Raises:
        MissingDataError: it has not been imported; the message shows how to.
        CacheError: it is not what was written.
    """
    manifest = cached(name, cache)
    if manifest is None:
        raise MissingDataError(
            f"{name} is not in {cache_folder(cache)}. If you have a copy: levymc data import "
            f"{name} --from PATH. To download it: levymc data fetch {name}."
        )
    path = cache_folder(cache) / name / Path(str(manifest.get("file"))).name
    if not path.is_file() or digest_of(path) != manifest.get("sha256"):
        raise CacheError(
            f"{path} is missing or not what was written: its SHA-256 does not match {MANIFEST}. "
            "Import the data set again."
        )
    kind: Any = get(name).kind
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return kind(**{field: arrays[field] for field in kind._fields})
    except (KeyError, ValueError, BadZipFile) as error:
        raise CacheError(f"{path} cannot be read ({error}). Import the data set again.") from None


def cached(name: str, cache: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """The manifest of a data set in the cache, with its summary, source and checksum, or None.

    Raises:
        CacheError: it is broken.
    """
    path = cache_folder(cache) / get(name).name / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise CacheError(f"{path} is broken. Import the data set again.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CacheError(f"{path} is of another version of levymc. Import the data set again.")
    return manifest


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


def _tidy(folder: Path) -> None:
    """Remove what killed processes left half written."""
    for partial_file in folder.glob("*.partial"):
        if partial_file.is_dir():
            shutil.rmtree(partial_file)
        else:
            partial_file.unlink()


def keep(dataset: Dataset, folder: Path, value: Any, source: dict[str, Any]) -> None:
    """Write a data set, its terms and where it comes from; to be called by one at a time."""
    old = {one for one in folder.glob("*.npz") if OURS.fullmatch(one.name)}
    file, checksum = _written(folder, value)
    try:
        manifest = {
            "format": FORMAT,
            "kind": dataset.kind.__name__,
            "file": file.name,
            "sha256": checksum,
            "bytes": file.stat().st_size,
            "name": dataset.name,
            "summary": dataset.summary(value),
            "source": source,
            "licence": dataset.licence,
            "citation": dataset.citation,
        }
        atomic_bytes(folder / MANIFEST, json_bytes(manifest))
    except BaseException:
        if file not in old:
            file.unlink()
        raise
    for outdated in old - {file}:
        outdated.unlink()


def _written(folder: Path, value: Any) -> tuple[Path, str]:
    """The file of the arrays of a NamedTuple, named by its checksum, and that."""
    arrays = value._asdict()
    for field, array in arrays.items():
        if array.dtype.hasobject:  # NumPy would pickle them
            raise TypeError(f"`{field}` must not hold Python objects, got {array.dtype}.")
    partial_file = folder / f"{os.getpid()}.npz.partial"
    try:
        with partial_file.open("wb") as stream:
            np.savez(stream, **arrays)
        flush([partial_file])
        checksum = digest_of(partial_file)
        return partial_file.replace(folder / f"{checksum[:16]}.npz"), checksum
    finally:
        partial_file.unlink(missing_ok=True)


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """A checksum of a file of any size, in hexadecimal."""
    with path.open("rb") as stream:
        new = partial(hashlib.new, algorithm, usedforsecurity=False)
        return hashlib.file_digest(stream, new).hexdigest()
