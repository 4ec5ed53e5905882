"""The three formats in which MovieLens ratings are published, told apart by their first line."""

from typing import NamedTuple

import numpy as np

from ._errors import at_line

HEADER = b"userId,movieId,rating,timestamp"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN = 60  # characters of a foreign line in a message


class Format(NamedTuple):
    """User, item, rating and timestamp, one rating a line.

    Attributes:
        name: as `levymc_lab.data.write` takes it.
        separator: between the fields.
        header: the first line, or nothing.
        filename: as in the official archives.
    """

    name: str
    separator: bytes
    header: bytes
    filename: str

    @property
    def marks(self) -> np.ndarray:
        """The bytes of a line that are neither digit nor decimal point."""
        return np.frombuffer(self.separator * 3 + b"\n", np.uint8)

    @property
    def first_line(self) -> int:
        """The number of the first line with a rating."""
        return 2 if self.header else 1


TAB = Format("tab", b"\t", b"", "u.data")
DAT = Format("dat", b"::", b"", "ratings.dat")
CSV = Format("csv", b",", HEADER, "ratings.csv")
FORMATS = {one.name: one for one in (TAB, DAT, CSV)}
FILENAMES = tuple(one.filename for one in FORMATS.values())


def recognise(first_line: bytes, label: str) -> Format:
    """The format that a file begins in.

    Raises:
        DataError: it is none of them.
    """
    line = first_line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
    if line == HEADER:
        return CSV
    for candidate in (DAT, TAB):
        if line.count(candidate.separator) == 3:
            return candidate
    shown = line[:SHOWN].decode("utf-8", "replace")
    raise at_line(
        label,
        1,
        f"this is no MovieLens file: its first line is {shown!r}. Expected the header "
        f"{HEADER.decode()!r}, or user, item, rating and timestamp between tabs or '::'. "
        "For a table of your own use levymc_lab.data.read_table.",
    )
