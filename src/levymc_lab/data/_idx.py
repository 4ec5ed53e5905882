"""Arrays of bytes in idx files, plain or gzipped.

An idx file is two zero bytes, a byte for the type of number, a byte for the number of dimensions,
each dimension as four bytes, the highest first, and then the numbers.
"""

import gzip
import math
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ._blocks import Readable
from ._errors import DataError
from ._source import Source

GZIP_BEGINS = b"\x1f\x8b"
UBYTE = 8
OTHER_TYPES = {9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}
MOST_DIMENSIONS = 8
MOST_BYTES = 2**30  # MNIST's pictures are 47 MB; a header may claim anything
CHUNK = 2**20
DAMAGE = (gzip.BadGzipFile, zlib.error, EOFError)

CheckShape = Callable[[str, tuple[int, ...]], None]


def read_idx(source: Source, check_shape: CheckShape) -> np.ndarray:
    """Read an idx file of unsigned bytes; memory grows with what is there, not what is claimed.

    Args:
        source: plain or gzipped; its first bytes tell, not its name.
        check_shape: is given the label and the shape before anything else is read, and raises a
            DataError where these are not what is wanted.

    Raises:
        DataError: no idx file, another type of number, cut short, damaged, or too long.
    """
    with _unpacked(source) as stream:
        shape = _shape(stream, source.label)
        check_shape(source.label, shape)
        content = _body(stream, source.label, shape)
    return np.frombuffer(content, np.uint8).reshape(shape)


def idx_bytes(array: np.ndarray) -> bytes:
    """The idx file of an array of uint8."""
    header = struct.pack(f">HBB{array.ndim}I", 0, UBYTE, array.ndim, *array.shape)
    return header + array.tobytes()


@contextmanager
def _unpacked(source: Source) -> Iterator[Readable]:
    with source.open() as stream:
        is_gzip = stream.read(2) == GZIP_BEGINS
    with source.open() as stream:
        if not is_gzip:
            yield stream
            return
        try:
            with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked:  # type: ignore[call-overload]
                yield unpacked
        except DAMAGE as error:
            raise DataError(
                f"{source.label}: the gzip file is cut short or damaged ({error}). "
                "Take another copy."
            ) from None


def _shape(stream: Readable, label: str) -> tuple[int, ...]:
    magic = _up_to(stream, 4)
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise DataError(
            f"{label}: this is no idx file: it begins with {bytes(magic)!r}, where two zero bytes "
            "are expected. Take the file as published."
        )
    kind, num_dimensions = magic[2], magic[3]
    if kind != UBYTE:
        found = OTHER_TYPES.get(kind, "unknown numbers")
        raise DataError(
            f"{label}: holds {found} (type {kind:#04x}), where unsigned bytes (0x08) are expected. "
            "Take the file as published."
        )
    if not 1 <= num_dimensions <= MOST_DIMENSIONS:
        raise DataError(
            f"{label}: declares {num_dimensions} dimensions, which no pictures or labels have. "
            "Take the file as published."
        )
    sizes = _up_to(stream, 4 * num_dimensions)
    if len(sizes) < 4 * num_dimensions:
        raise DataError(f"{label}: ends within its header. Take another copy.")
    return struct.unpack(f">{num_dimensions}I", sizes)


def _body(stream: Readable, label: str, shape: tuple[int, ...]) -> bytearray:
    size = math.prod(shape)
    declared = f"{' × '.join(map(str, shape))} = {size} bytes"
    if size > MOST_BYTES:
        raise DataError(
            f"{label}: declares {declared}, more than the {MOST_BYTES // 2**30} GB that any "
            "data set here has. Take the file as published."
        )
    content = _up_to(stream, size + 1)  # one more: it also lets gzip compare its checksum
    if len(content) < size:
        raise DataError(
            f"{label}: ends after {len(content)} of {declared}. It is cut short: take another copy."
        )
    if len(content) > size:
        raise DataError(
            f"{label}: goes on after the {declared} that its header declares. "
            "Take the file as published."
        )
    return content


def _up_to(stream: Readable, count: int) -> bytearray:
    """As many bytes, or fewer where there are no more."""
    content = bytearray()
    while len(content) < count and (part := stream.read(min(CHUNK, count - len(content)))):
        content += part
    return content
