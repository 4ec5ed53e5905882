"""Where a wanted file is: given itself, in a folder, or in a zip archive."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ._blocks import Readable
from ._errors import DataError
from ._zip import archive, member

ZIP_BEGINS = b"PK"


class Source(NamedTuple):
    """A file that may lie in an archive.

    Attributes:
        label: its name in messages.
        open: to read from it.
    """

    label: str
    open: Callable[[], AbstractContextManager[Readable]]


def find(path: Path, filenames: Sequence[str]) -> Source:
    """The file of one of these names at `path`, or `path` itself where that is a plain file.

    In a folder or an archive it may lie one folder deeper; a folder may also hold the archive.

    Raises:
        DataError: there is none, or more than one.
        OSError: `path` cannot be read.
    """
    if not path.is_dir() and not _is_zip(path):
        return _file(path)
    found = find_all(path, filenames)
    if not found:
        raise DataError(f"{path}: holds none of {', '.join(filenames)}. Is it another data set?")
    if len(found) > 1:
        labels = " and ".join(source.label for source in found)
        raise DataError(f"{path}: holds {labels}. Name the one to read.")
    return found[0]


def find_all(path: Path, filenames: Sequence[str]) -> list[Source]:
    """The files of these names in a folder or an archive, and one folder deeper.

    Raises:
        DataError: `path` is a plain file.
        OSError: `path` cannot be read.
    """
    if path.is_dir():
        return _in_folder(path, filenames)
    if _is_zip(path):
        return _in_zip(path, filenames)
    raise DataError(
        f"{path}: this is one file. Name the folder or zip archive that holds them all."
    )


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == ZIP_BEGINS


def _file(path: Path) -> Source:
    return Source(str(path), lambda: path.open("rb"))


def _in_folder(folder: Path, filenames: Sequence[str]) -> list[Source]:
    found = [
        file for name in filenames for file in (folder / name, *sorted(folder.glob(f"*/{name}")))
    ]
    files = [file for file in found if file.is_file()]
    archives = sorted(folder.glob("*.zip"))
    if not files and len(archives) == 1:
        return _in_zip(archives[0], filenames)
    return [_file(file) for file in files]


def _in_zip(path: Path, filenames: Sequence[str]) -> list[Source]:
    with archive(path) as opened:
        names = [name for name in opened.namelist() if not name.endswith("/")]
    found = [name for name in names if _is_one_of(PurePosixPath(name), filenames)]
    return [Source(f"{path}/{name}", partial(member, path, name)) for name in found]


def _is_one_of(name: PurePosixPath, filenames: Sequence[str]) -> bool:
    return name.name in filenames and len(name.parts) <= 2
