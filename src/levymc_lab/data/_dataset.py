"""What is to be known of a data set; to add one, write a module and enter it in `_registry.py`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


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
