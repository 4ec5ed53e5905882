"""What a data set is, and what can be wrong with one; each message names place, fault and remedy.

To add a data set, write a module that reads and describes it, and enter it in `_store.py`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class DataError(ValueError):
    """Data that cannot be what they were taken for: a bad row, a damaged archive, a wrong file."""


class MissingDataError(DataError):
    """A data set that is not in the cache."""


class CacheError(OSError):
    """A cache whose files are not what was written."""


class DownloadError(OSError):
    """A download that did not arrive, or not as published."""


def at_line(label: str, line: int, reason: str) -> DataError:
    """An error at a line of a file, in the form that editors know; to be raised."""
    return DataError(f"{label}:{line}: {reason}")


class Download(NamedTuple):
    """A published file.

    Attributes:
        url: its official address.
        sha256: of the file, if known.
        md5: as its publisher states it, if so.
    """

    url: str
    sha256: str | None = None
    md5: str | None = None

    @property
    def filename(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]


class Dataset(NamedTuple):
    """A data set that can be imported and fetched.

    Attributes:
        name: in commands and in the cache.
        title: one line on what it is.
        downloads: the published files; several are imported as one folder.
        licence: the terms, shown before a download.
        citation: what its makers ask to be cited.
        kind: the NamedTuple of arrays that it is read into.
        read: makes one of a file, folder or archive, or raises a DataError.
        summary: a few words on one, for lists.
    """

    name: str
    title: str
    downloads: tuple[Download, ...]
    licence: str
    citation: str
    kind: type
    read: Callable[[Path], Any]
    summary: Callable[[Any], str]
