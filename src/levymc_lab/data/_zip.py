"""One member of a zip archive as a stream; nothing is unpacked to disk."""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ._blocks import Readable
from ._errors import DataError

MOST_MEMBERS = 10_000
MOST_BYTES = 4 * 2**30  # MovieLens 20M unpacks to less than one GB
HIGHEST_RATIO = 100  # ratings shrink to a fourth or fifth; a bomb to a thousandth
RATIO_FROM_BYTES = 2**20  # small members may be of one letter
ENCRYPTED = 0x1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


@contextmanager
def archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip archive whose names and sizes have been looked at.

    Raises:
        DataError: it is cut short or damaged, names lead out of it, or it unpacks to too much.
    """
    try:
        opened = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(
            f"{path}: the archive is cut short or damaged ({error}). Download it again."
        ) from None
    with opened:
        _check(path, opened.infolist())
        yield opened


@contextmanager
def member(path: Path, name: str) -> Iterator[Readable]:
    """A member to read from.

    Raises:
        DataError: also while it is read, where it turns out damaged.
    """
    with archive(path) as opened:
        try:
            with opened.open(name) as stream:
                yield stream
        except DataError:
            raise
        except DAMAGE as error:
            raise DataError(
                f"{path}: {name} is damaged ({error}). Download the archive again."
            ) from None


def _check(path: Path, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MOST_MEMBERS:
        raise DataError(f"{path}: {len(members)} files in one archive. This is no data set.")
    for one in members:
        _check_name(path, one)
        _check_size(path, one)
    total = sum(one.file_size for one in members)
    if total > MOST_BYTES:
        raise DataError(_too_large(path, "the archive", total))


def _check_name(path: Path, one: zipfile.ZipInfo) -> None:
    name = one.filename
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
        raise DataError(
            f"{path}: the name {name!r} leads out of the archive. Take the official one."
        )
    if stat.S_ISLNK(one.external_attr >> 16):
        raise DataError(f"{path}: {name!r} is a link. Take the official archive.")
    if one.flag_bits & ENCRYPTED:
        raise DataError(f"{path}: {name!r} is encrypted. Take the official archive.")


def _check_size(path: Path, one: zipfile.ZipInfo) -> None:
    if one.file_size > MOST_BYTES:
        raise DataError(_too_large(path, repr(one.filename), one.file_size))
    if one.file_size > max(RATIO_FROM_BYTES, HIGHEST_RATIO * one.compress_size):
        raise DataError(
            f"{path}: {one.filename!r} unpacks from {one.compress_size} to {one.file_size} bytes. "
            "No data set shrinks so much: this is a zip bomb."
        )


def _too_large(path: Path, what: str, size: int) -> str:
    return (
        f"{path}: {what} unpacks to {size / 2**30:.1f} GB, more than the {MOST_BYTES // 2**30} GB "
        "that any data set here has. Unpack it yourself if you trust it."
    )
