"""A file as blocks of whole lines, so that memory does not grow with it."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from ._errors import DataError

BLOCK_BYTES = 2**20  # a block and what is made of it stay in a processor's cache
LONGEST_LINE = 2**16


@runtime_checkable
class Readable(Protocol):
    """A stream of bytes: a file, or a member of an archive."""

    def read(self, size: int, /) -> bytes: ...


def blocks(stream: Readable, label: str) -> Iterator[bytes]:
    """Blocks that end with a line break.

    A last line without a break is given one.

    Args:
        stream: what to read.
        label: the file's name in messages.

    Raises:
        DataError: a line that is too long to be one.
    """
    rest = b""
    while chunk := stream.read(BLOCK_BYTES):
        head, line_break, tail = chunk.rpartition(b"\n")
        if line_break:
            yield rest + head + line_break
            rest = tail
        else:
            rest += chunk
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{label}: no line break in {LONGEST_LINE} bytes. This is no text.")
    if rest:
        yield rest + b"\n"
