"""Files given themselves, in a folder, or in a zip archive, which is not unpacked to disk."""

import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, runtime_checkable

from ._dataset import DataError, at_line

BLOCK_BYTES = 2**20  # a block and what is made of it stay in a processor's cache
LONGEST_LINE = 2**16
ZIP_BEGINS = b"PK"
MOST_MEMBERS = 10_000
MOST_BYTES = 4 * 2**30  # MovieLens 20M unpacks to less than one GB
HIGHEST_RATIO = 100  # ratings shrink to a fourth or fifth; a bomb to a thousandth
RATIO_FROM_BYTES = 2**20  # small members may be of one letter
ENCRYPTED = 0x1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


@runtime_checkable
class Readable(Protocol):
    """A stream of bytes: a file, or a member of an archive."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Source:
    """A file that may lie in an archive.

    Attributes:
        path: of the file, or of the archive.
        member: its name in the archive.
    """

    path: Path
    member: str | None = None

    @property
    def label(self) -> str:
        """Its name in messages."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    def open(self) -> AbstractContextManager[Readable]:
        """A stream to read from; a DataError also while it is read, where it is damaged."""
        return self.path.open("rb") if self.member is None else _member(self.path, self.member)


def find(path: Path, filenames: Sequence[str]) -> Source:
    """The file of one of these names at `path`, or `path` itself where that is a plain file.

    In a folder or an archive it may lie one folder deeper; a folder may also hold the archive.

    Raises:
        DataError: there is none, or more than one.
        OSError: `path` cannot be read.
    """
    if not path.is_dir() and not _is_zip(path):
        return Source(path)
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


def blocks(stream: Readable, label: str) -> Iterator[bytes]:
    r"""A stream as blocks of whole lines, so that memory does not grow with it.

    Every line ends with ``\n`` alone, also the last.

    Args:
        stream: what to read.
        label: the file's name in messages.

    Raises:
        DataError: a line that is too long to be one.
    """
    rest, line = b"", 1
    while chunk := stream.read(BLOCK_BYTES):
        head, line_break, tail = chunk.rpartition(b"\n")
        if line_break:
            yield (rest + head + line_break).replace(b"\r\n", b"\n")
            line += head.count(b"\n") + 1
            rest = tail
        else:
            rest += chunk
        if len(rest) > LONGEST_LINE:
            reason = f"no line break in {LONGEST_LINE} bytes. This is no file of ratings."
            raise at_line(label, line, reason)
    if rest:
        yield rest.removesuffix(b"\r") + b"\n"


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == ZIP_BEGINS


def _in_folder(folder: Path, filenames: Sequence[str]) -> list[Source]:
    found = [
        file for name in filenames for file in (folder / name, *sorted(folder.glob(f"*/{name}")))
    ]
    files = [Source(file) for file in found if file.is_file()]
    archives = sorted(folder.glob("*.zip"))
    if not files and len(archives) == 1:
        return _in_zip(archives[0], filenames)
    return files


def _in_zip(path: Path, filenames: Sequence[str]) -> list[Source]:
    def is_wanted(name: str) -> bool:
        pure = PurePosixPath(name)
        return not name.endswith("/") and pure.name in filenames and len(pure.parts) <= 2

    with _archive(path) as opened:
        return [Source(path, name) for name in opened.namelist() if is_wanted(name)]


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip archive whose names and sizes have been looked at."""
    try:
        opened = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
        raise DataError(
            f"{path}: the archive is cut short or damaged ({error}). Download it again."
        ) from None
    with opened:
        fault = _fault(opened.infolist())
        if fault is not None:
            raise DataError(f"{path}: {fault}")
        yield opened


@contextmanager
def _member(path: Path, name: str) -> Iterator[Readable]:
    with _archive(path) as opened:
        try:
            with opened.open(name) as stream:
                yield stream
        except DAMAGE as error:
            raise DataError(
                f"{path}: {name} is damaged ({error}). Download the archive again."
            ) from None


def _fault(members: list[zipfile.ZipInfo]) -> str | None:
    """Why an archive is not to be opened."""
    if len(members) > MOST_MEMBERS:
        return f"{len(members)} files in one archive. This is no data set."
    faults = (fault(one) for one in members for fault in (_fault_in_name, _fault_in_size))
    total = sum(one.file_size for one in members)
    return next(filter(None, faults), None) or _too_large("the archive", total)


def _fault_in_name(one: zipfile.ZipInfo) -> str | None:
    name = one.filename
    if name.startswith("/") or ".." in PurePosixPath(name).parts or "\\" in name or ":" in name:
        return f"the name {name!r} leads out of the archive. Take the official one."
    if stat.S_ISLNK(one.external_attr >> 16):
        return f"{name!r} is a link. Take the official archive."
    if one.flag_bits & ENCRYPTED:
        return f"{name!r} is encrypted. Take the official archive."
    return None


def _fault_in_size(one: zipfile.ZipInfo) -> str | None:
    fault = _too_large(repr(one.filename), one.file_size)
    if fault is None and one.file_size > max(RATIO_FROM_BYTES, HIGHEST_RATIO * one.compress_size):
        fault = (
            f"{one.filename!r} unpacks from {one.compress_size} to {one.file_size} bytes. "
            "No data set shrinks so much: this is a zip bomb."
        )
    return fault


def _too_large(what: str, size: int) -> str | None:
    if size <= MOST_BYTES:
        return None
    return (
        f"{what} unpacks to {size / 2**30:.1f} GB, more than the {MOST_BYTES // 2**30} GB "
        "that any data set here has. Unpack it yourself if you trust it."
    )
