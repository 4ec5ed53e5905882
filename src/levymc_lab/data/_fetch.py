"""Data sets into the cache from their publishers."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._cache import cache_folder, exclusive
from ._dataset import Dataset, Download
from ._download import Checksums, Progress, download
from ._errors import DataError, DownloadError
from ._import import keep
from ._registry import get


def fetch(
    name: str,
    cache: str | os.PathLike[str] | None = None,
    url: str | None = None,
    *,
    sha256: str | None = None,
    trust_first_download: bool = False,
    tell: Callable[[str], None] = print,
    on_progress: Progress | None = None,
) -> Any:
    """Download a data set, verify its checksum, and keep it in the cache.

    The licence is shown first: to use the data is to accept it.

    Args:
        name: of the data set; `levymc_lab.data.names()` has them.
        cache: the folder to keep it in; see `levymc_lab.data.cache_folder`.
        url: another address than the official one; of the folder where there are several files.
        sha256: of the file, where none is known, or to go by instead of the known one.
        trust_first_download: where no checksum is known, take what comes, and show its SHA-256.
        tell: is given the licence, and what arrived.
        on_progress: is given the bytes so far, and all of them where the server says so.

    Returns:
        What `levymc_lab.data.load` gives.

    Raises:
        DataError: no checksum to go by; a fault in the data.  The cache stays as it was.
        DownloadError: nothing arrived, or not what was published.  Likewise.
    """
    dataset = get(name)
    files = _with_choices(dataset, url, sha256)
    _check_trust(dataset, files, trust_first_download)
    tell(f"{dataset.title}\n\n{dataset.licence}\nPlease cite: {dataset.citation}\n")
    folder = cache_folder(cache) / name
    with (
        exclusive(folder),
        tempfile.TemporaryDirectory(suffix=".partial", dir=folder) as scratch,
    ):
        sources = [_arrived(file, Path(scratch), tell, on_progress) for file in files]
        whole = Path(scratch) / files[0].filename if len(files) == 1 else Path(scratch)
        value = _read(dataset, whole, files)
        keep(dataset, folder, value, sources[0] if len(files) == 1 else {"files": sources})
    return value


def _with_choices(dataset: Dataset, url: str | None, sha256: str | None) -> list[Download]:
    files = list(dataset.downloads)
    if sha256 is not None:
        if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
            raise DataError(f"`sha256` must have 64 hexadecimal digits, got {sha256!r}.")
        if len(files) > 1:
            raise DataError(
                f"`sha256` is for one file; {dataset.name} has {len(files)}, each with a checksum "
                "of its own. Leave it out."
            )
        files = [files[0]._replace(sha256=sha256.lower(), md5=None)]
    if url is not None:
        base = url.rstrip("/")
        files = [
            file._replace(url=url if len(files) == 1 else f"{base}/{file.filename}")
            for file in files
        ]
    return files


def _check_trust(dataset: Dataset, files: list[Download], trust_first_download: bool) -> None:
    unknown = [file.filename for file in files if file.sha256 is None and file.md5 is None]
    if unknown and not trust_first_download:
        own = "Give one with --sha256, or take" if len(files) == 1 else "Take"
        raise DataError(
            f"No checksum is known for {', '.join(unknown)} of {dataset.name}. {own} what comes "
            "with --trust-first-download."
        )


def _arrived(
    file: Download, folder: Path, tell: Callable[[str], None], on_progress: Progress | None
) -> dict[str, Any]:
    tell(f"Downloading {file.url}")
    found = download(file.url, folder / file.filename, on_progress)
    _verify(file, found)
    how = {True: "SHA-256", False: "published MD5"}[file.sha256 is not None]
    verdict = f"{how} verified" if file.sha256 or file.md5 else "not verified: no checksum is known"
    tell(f"{file.filename}: {verdict}. SHA-256 {found.sha256}")
    return {"file": file.filename, "url": file.url, "sha256": found.sha256}


def _verify(file: Download, found: Checksums) -> None:
    for name, expected, measured in (
        ("SHA-256", file.sha256, found.sha256),
        ("MD5", file.md5, found.md5),
    ):
        if expected is not None and measured != expected:
            raise DownloadError(
                f"{file.url}: the {name} is {measured}, expected {expected}. Nothing was kept. "
                "Try again; if it stays so, the file is not the one that was published."
            )


def _read(dataset: Dataset, path: Path, files: list[Download]) -> Any:
    """Read what arrived; in messages its address stands for the scratch file."""
    try:
        return dataset.read(path)
    except DataError as error:
        address = files[0].url if len(files) == 1 else files[0].url.rpartition("/")[0]
        raise DataError(str(error).replace(str(path), address)) from None
