"""The rows of a text file, read once and by the line, and what becomes of bad ones.

Nothing is read ahead but a line, nothing twice, and no line without a bound: a pipe will do, and a
device that never ends is refused.
"""

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from levymc._checks import check_count

from ._dataset import DataError, at_line

DELIMITERS = ("::", "\t", ";", ",")
LONGEST_LINE = 2**16
MOST_LINES = 1000  # of a row, whose quoted fields may hold line breaks
STANDARD_INPUT = "-"

# The places of the wanted fields, and whether the first line is a header.
Layout = tuple[tuple[int, ...], bool]
LayoutOf = Callable[[list[str], list[str] | None], Layout]


@dataclass
class Skips:
    """How many bad rows may be left out, and how many were.

    on_bad: is given the fault of each.
    advice: ends the message of a fault where none may be left out.
    """

    most: int = 0
    on_bad: Callable[[str], None] | None = None
    advice: str = ""
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_count("skip_bad", self.most, "Bad rows that may be left out.", least=0)

    def skip(self, error: DataError) -> None:
        """Leave a row out, or raise its fault."""
        if self.count >= self.most:
            if self.most:
                raise DataError(
                    f"{error} These are more than the {self.most} bad rows that may be left out."
                )
            raise DataError(f"{error} {self.advice}") if self.advice else error
        self.count += 1
        if self.on_bad is not None:
            self.on_bad(str(error))


class Row(NamedTuple):
    """Lines `first` to `last` of a file: their fields, or why there are none."""

    first: int
    last: int
    fields: list[str]
    fault: str | None = None


class _Lines:
    """The lines of a stream, each with a bound on its length, and so many for one row."""

    def __init__(self, stream: IO[str], label: str) -> None:
        self.stream, self.label = stream, label
        self.number, self.row_begins = 0, 1

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self.stream.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_LINE:
            reason = f"no line break in {LONGEST_LINE} characters. This is no table of ratings."
            raise at_line(self.label, self.number, reason)
        if self.number - self.row_begins >= MOST_LINES:
            reason = f"a row of more than {MOST_LINES} lines. Is a quotation mark missing?"
            raise at_line(self.label, self.row_begins, reason)
        return line


def scan(
    path: str | os.PathLike[str],
    delimiter: str | None,
    layout_of: LayoutOf,
    add: Callable[..., None],
    skips: Skips | None = None,
) -> bool:
    """Give line and wanted fields of each row below the header to `add`; False for no line at all.

    What `layout_of`, given the first two rows, and `add` raise becomes a fault of the line.
    """
    label, left_out = str(path), skips or Skips()
    with _open(path) as stream:
        rows = _rows(_Lines(stream, label), delimiter)
        first = next(rows, None)
        if first is None:
            return False
        if first.fault:
            raise at_line(label, first.first, first.fault)
        second = next(rows, None)
        try:
            places, is_header = layout_of(first.fields, second.fields if second else None)
        except ValueError as error:
            raise at_line(label, first.first, str(error)) from None
        begin = [second] if is_header else [first, second]
        for row in chain((row for row in begin if row is not None), rows):
            try:
                _add(row, len(first.fields), places, add)
            except ValueError as error:
                hint = "" if row.first > first.first else _HINT
                fault = at_line(label, row.first, f"{error}{hint}")
                if row.last > row.first:  # rows may have been swallowed
                    raise DataError(f"{fault} It ends in line {row.last}.") from None
                left_out.skip(fault)
    return True


_HINT = " If the line is a header, name its columns (--columns)."


def _add(row: Row, width: int, places: tuple[int, ...], add: Callable[..., None]) -> None:
    if row.fault:
        raise ValueError(row.fault)
    if len(row.fields) != width:
        raise ValueError(
            f"{len(row.fields)} fields, where the first line has {width}. Are fields missing, or "
            "not quoted?"
        )
    add(row.first, *[row.fields[place] for place in places])


def _open(path: str | os.PathLike[str]) -> AbstractContextManager[IO[str]]:
    """Text in UTF-8; what is none becomes surrogates, which no such text has."""
    is_input = os.fspath(path) == STANDARD_INPUT
    target: int | Path = 0 if is_input else Path(path)
    return open(
        target, encoding="utf-8-sig", errors="surrogateescape", newline="", closefd=not is_input
    )


def _rows(lines: _Lines, delimiter: str | None) -> Iterator[Row]:
    """Those that are not empty."""
    begin: list[str] = []
    if delimiter is None:
        begin = _until_filled(lines)
        delimiter = next((mark for mark in DELIMITERS if begin and mark in begin[-1]), ",")
    again = chain(begin, lines)
    return _split(again, delimiter) if len(delimiter) > 1 else _parsed(again, delimiter, lines)


def _fault_of(fields: list[str]) -> str | None:
    """Whether bytes were no text."""
    for one in fields:
        if not one.isascii() and any("\ud800" <= mark <= "\udfff" for mark in one):
            return "this is no text in UTF-8. Convert it."
    return None


def _until_filled(lines: _Lines) -> list[str]:
    """The first line that is not empty, and those before it."""
    found = []
    for line in lines:
        found.append(line)
        lines.row_begins = lines.number
        if line.strip():
            break
    return found


def _split(lines: Iterator[str], delimiter: str) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            fields = line.rstrip("\r\n").split(delimiter)
            yield Row(number, number, fields, _fault_of(fields))


def _parsed(again: Iterator[str], delimiter: str, lines: _Lines) -> Iterator[Row]:
    reader = csv.reader(again, delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        lines.row_begins = max(first, lines.row_begins)
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"{error}. Is a quotation mark missing, or one too many?"
            yield Row(first, reader.line_num, [], fault)
        else:
            if fields:
                yield Row(first, reader.line_num, fields, _fault_of(fields))
