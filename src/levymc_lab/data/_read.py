"""MovieLens ratings from a file, a folder or an archive."""

import os
from pathlib import Path

import numpy as np

from . import _careful, _fast
from ._assemble import assemble, indexed
from ._blocks import blocks
from ._columns import HALF_STARS, Columns, joined
from ._errors import DataError
from ._formats import BYTE_ORDER_MARK, FILENAMES, Format, recognise
from ._ratings import Ratings
from ._source import Source, find


def read(path: str | os.PathLike[str]) -> Ratings:
    """Read MovieLens ratings in any of the formats in which they are published.

    The format is recognised by the first line, not the name: `u.data` of 100K (tabs), `ratings.dat`
    of 1M and 10M (`::`), `ratings.csv` of 20M and later.  Timestamps are checked and left out.

    Args:
        path: such a file, the folder that holds it, or the zip archive, which is not unpacked.

    Raises:
        DataError: the first fault, as file:line: reason.
        OSError: the file cannot be read.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
        >>> _ = file.write_text("userId,movieId,rating,timestamp\\n7,50,3.5,1\\n7,20,5.0,2\\n")
        >>> ratings = levymc_lab.data.read(file)
        >>> ratings.item_ids[ratings.items].tolist(), ratings.values.tolist()
        ([20, 50], [5.0, 3.5])
    """
    return read_source(find(Path(path), FILENAMES), HALF_STARS)


def read_source(source: Source, scale: tuple[int, ...], expected: Format | None = None) -> Ratings:
    """Read ratings of a known scale (in half stars) and, where given, a known format."""
    kind, parts = _parts(source, scale, expected)
    if not parts:
        raise DataError(f"{source.label}: there is no rating in it.")
    columns = joined(parts)
    return _ratings(columns, source.label, kind.first_line)


def _parts(
    source: Source, scale: tuple[int, ...], expected: Format | None
) -> tuple[Format, list[Columns]]:
    kind, line = None, 0
    parts: list[Columns] = []
    with source.open() as stream:
        for block in blocks(stream, source.label):
            if kind is None:
                kind = _kind(block, source.label, expected)
                block, line = _without_header(block, kind), kind.first_line
            if block:
                parts.append(_columns(block, kind, scale, source.label, line))
                line += len(parts[-1].users)
    if kind is None:
        raise DataError(f"{source.label}: the file is empty.")
    return kind, parts


def _kind(block: bytes, label: str, expected: Format | None) -> Format:
    kind = recognise(block[: block.index(b"\n") + 1], label)
    if expected is not None and kind != expected:
        raise DataError(
            f"{label}: ratings between {kind.separator.decode()!r}, as in {kind.filename}; expected"
            f" {expected.filename} with {expected.separator.decode()!r}. Is it another data set?"
        )
    return kind


def _without_header(block: bytes, kind: Format) -> bytes:
    block = block.removeprefix(BYTE_ORDER_MARK)
    return block[block.index(b"\n") + 1 :] if kind.header else block


def _columns(block: bytes, kind: Format, scale: tuple[int, ...], label: str, line: int) -> Columns:
    try:
        return _fast.parse(block, kind, scale)
    except _fast.UnusualError:
        return _careful.parse(block, kind, scale, label, line)


def _ratings(columns: Columns, label: str, first_line: int) -> Ratings:
    occurring = [half for half in HALF_STARS if np.any(columns.halves == half)]
    code_of = np.zeros(256, np.uint8)
    code_of[occurring] = np.arange(len(occurring))
    # Python's translate needs neither indices of 64 bits nor the memory for them.
    codes = np.frombuffer(bytearray(columns.halves).translate(code_of.tobytes()), np.uint8)
    return assemble(
        *indexed(columns.users),
        *indexed(columns.items),
        codes,
        np.array(occurring, np.float32) / 2,
        label,
        lambda row: row + first_line,
    )
