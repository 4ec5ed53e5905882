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
    if path.is_dir():
        return _in_folder(path, filenames)
    with path.open("rb") as stream:
        is_zip = stream.read(2) == ZIP_BEGINS
    return _in_zip(path, filenames) if is_zip else Source(str(path), lambda: path.open("rb"))


def _in_folder(folder: Path, filenames: Sequence[str]) -> Source:
    found = [file for name in filenames for file in (folder / name, *folder.glob(f"*/{name}"))]
    files = [file for file in found if file.is_file()]
    archives = sorted(folder.glob("*.zip"))
    if not files and len(archives) == 1:
        return _in_zip(archives[0], filenames)
    file = _only([str(file) for file in files], folder, filenames)
    return Source(file, lambda: Path(file).open("rb"))


def _in_zip(path: Path, filenames: Sequence[str]) -> Source:
    with archive(path) as opened:
        names = [PurePosixPath(name) for name in opened.namelist()]
    found = [str(name) for name in names if name.name in filenames and len(name.parts) <= 2]
    name = _only(found, path, filenames)
    return Source(f"{path}/{name}", partial(member, path, name))


def _only(found: list[str], path: Path, filenames: Sequence[str]) -> str:
    if not found:
        raise DataError(f"{path}: holds none of {', '.join(filenames)}. Is it another data set?")
    if len(found) > 1:
        raise DataError(f"{path}: holds {' and '.join(found)}. Name the one to read.")
    return found[0]
