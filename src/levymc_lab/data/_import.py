"""Data sets into the cache from a person's own copy, and out of it."""

import os
from pathlib import Path
from typing import Any

from ._cache import cache_folder, exclusive, manifest_of, restore, store
from ._checksum import sha256_of
from ._dataset import Dataset
from ._errors import MissingDataError
from ._registry import get


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
    dataset = get(name)
    value = dataset.read(Path(path))
    folder = cache_folder(cache) / name
    with exclusive(folder):
        keep(dataset, folder, value, source_of(Path(path)))
    return value


def keep(dataset: Dataset, folder: Path, value: Any, source: dict[str, Any]) -> None:
    """Write a data set and its terms; to be called by one at a time."""
    facts = {
        "name": dataset.name,
        "summary": dataset.summary(value),
        "source": source,
        "licence": dataset.licence,
        "citation": dataset.citation,
    }
    store(folder, dataset.kind, value, facts)


def source_of(path: Path) -> dict[str, Any]:
    """Where data come from, without the folder, which is nobody else's business."""
    return {"file": path.name, "sha256": sha256_of(path) if path.is_file() else None}


def load(name: str, cache: str | os.PathLike[str] | None = None) -> Any:
    """A data set from the cache, having verified its checksum.

    Args:
        name: of the data set; `levymc_lab.data.names()` has them.
        cache: the folder it is kept in; see `levymc_lab.data.cache_folder`.

    Returns:
        For MovieLens a `Ratings`, for MNIST `Images`.

    Raises:
        MissingDataError: it has not been imported; the message says how to.
        CacheError: it is not what was written.
    """
    dataset = get(name)
    folder = cache_folder(cache) / name
    manifest = manifest_of(folder)
    if manifest is None:
        raise MissingDataError(
            f"{name} is not in {cache_folder(cache)}. If you have a copy: levymc data import "
            f"{name} --from PATH. To download it: levymc data fetch {name}."
        )
    return restore(folder, dataset.kind, manifest)


def cached(name: str, cache: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """The manifest of a data set in the cache, with its summary, source and checksum, or None.

    Raises:
        CacheError: it is broken.
    """
    return manifest_of(cache_folder(cache) / get(name).name)
