"""MovieLens: its ratings read and written, and the data sets as published."""

import os
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ._dataset import DataError, Dataset, Download
from ._formats import (
    CSV,
    DAT,
    FILENAMES,
    FORMATS,
    HALF_STARS,
    TAB,
    WHOLE_STARS,
    Columns,
    Format,
    parse,
    recognise,
)
from ._ratings import Ratings, in_order, indexed
from ._sources import LONGEST_LINE, Source, blocks, find

WRITTEN_AT_ONCE = 2**18  # ratings
FIRST_TIME = 789_652_009  # of the earliest rating of MovieLens 20M, in seconds since 1970
TIMES = 638_000_000  # seconds in the twenty years after it
PRIME = 179_424_673  # steps through them, so that synthetic times look like times

ADDRESS = "https://files.grouplens.org/datasets/movielens"
TERMS = """\
Neither the University of Minnesota nor any of the researchers involved can guarantee the
correctness of the data, its suitability for any particular purpose, or the validity of results
based on its use. It may be used for any research purposes under these conditions:
- State or imply no endorsement from the University of Minnesota or the GroupLens Research Group.
- Acknowledge the use of the data set in publications that result from it.
- {redistribution}
- No commercial or revenue-bearing use without permission from a faculty member of the GroupLens
  Research Project at the University of Minnesota.
The full text is in the README of the archive."""
NO_REDISTRIBUTION = "Do not redistribute the data without separate permission."
REDISTRIBUTION = "Redistribute the data, also transformed, under these same conditions only."
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. doi:10.1145/2827872"
)


class Edition(NamedTuple):
    """What an archive must hold; the number of ratings is None where it changes with time.

    The MD5s are GroupLens's own; it publishes no SHA-256, and no fixed checksum of what changes.
    """

    format: Format
    scale: tuple[int, ...]
    num_ratings: int | None
    md5: str | None = None
    sha256: str | None = None


EDITIONS = {
    "ml-100k": Edition(TAB, WHOLE_STARS, 100_000, "0e33842e24a9c977be4e0107933c0723"),
    "ml-1m": Edition(
        DAT,
        WHOLE_STARS,
        1_000_209,
        "c4d9eecfca2ab87c1945afe126590906",
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    "ml-10m": Edition(DAT, HALF_STARS, 10_000_054, "ce571fd55effeba0271552578f2648bd"),
    "ml-20m": Edition(CSV, HALF_STARS, 20_000_263, "cd245b17a1ae2cc31bb14903e1204af3"),
    "ml-latest-small": Edition(CSV, HALF_STARS, None),
}
TITLES = {
    "ml-100k": "MovieLens 100K, 1998: 943 users, 1682 movies, 1 to 5 stars",
    "ml-1m": "MovieLens 1M, 2000: 6040 users, 3706 movies, 1 to 5 stars",
    "ml-10m": "MovieLens 10M, 2009: half stars",
    "ml-20m": "MovieLens 20M, 2015: half stars",
    "ml-latest-small": "MovieLens latest-small: some 100 000 half-star ratings, changes with time",
}


def describe(name: str) -> Dataset:
    """The description of one of them."""
    edition = EDITIONS[name]
    is_latest = name.startswith("ml-latest")
    return Dataset(
        name=name,
        title=TITLES[name],
        downloads=(Download(f"{ADDRESS}/{name}.zip", edition.sha256, edition.md5),),
        licence=TERMS.format(redistribution=REDISTRIBUTION if is_latest else NO_REDISTRIBUTION),
        citation=CITATION,
        kind=Ratings,
        read=partial(_read_as, name),
        summary=lambda ratings: (
            f"{ratings.num_ratings} ratings of {ratings.num_items} items by {ratings.num_users} "
            "users"
        ),
    )


def _read_as(name: str, path: Path) -> Ratings:
    """Read an archive, folder or file, and refuse what is not that data set."""
    edition = EDITIONS[name]
    ratings = read_source(find(path, FILENAMES), edition.scale, edition.format)
    count = ratings.num_ratings
    if edition.num_ratings not in (None, count):
        others = [other for other, its in EDITIONS.items() if its.num_ratings == count]
        hint = f"That is the number of {others[0]}." if others else ""
        raise DataError(
            f"{path}: {count} ratings, where {name} has {edition.num_ratings}. "
            f"{hint or 'Is it whole, and the right data set?'}"
        )
    return ratings


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


def published_scale(path: str | os.PathLike[str]) -> tuple[float, float] | None:
    """The least and the largest rating of a file that has MovieLens's header or its `::`.

    None for all others, whatever their ratings are.
    """
    with Path(path).open("rb") as stream:
        try:
            kind, _ = recognise(stream.readline(LONGEST_LINE), str(path))
        except DataError:
            return None
    return None if kind == TAB else (HALF_STARS[0] / 2, HALF_STARS[-1] / 2)


def read_source(source: Source, scale: tuple[int, ...], expected: Format | None = None) -> Ratings:
    """Read ratings of a known scale (in half stars) and, where given, a known format."""
    kind, parts = _parts(source, scale, expected)
    if not parts:
        raise DataError(f"{source.label}: there is no rating in it. Is it whole?")
    columns = _joined(parts)
    occurring = [half for half in HALF_STARS if np.any(columns.halves == half)]
    code_of = np.zeros(256, np.uint8)
    code_of[occurring] = np.arange(len(occurring))
    # Python's translate needs neither indices of 64 bits nor the memory for them.
    codes = np.frombuffer(bytearray(columns.halves).translate(code_of.tobytes()), np.uint8)
    user_ids, users = indexed(columns.users)
    item_ids, items = indexed(columns.items)
    levels = np.array(occurring, np.float32) / 2
    rows = Ratings(users, items, codes, levels, user_ids, item_ids)
    return in_order(rows, source.label, lambda row: row + kind.first_line)


def _parts(
    source: Source, scale: tuple[int, ...], expected: Format | None
) -> tuple[Format, list[Columns]]:
    kind, line = None, 0
    parts: list[Columns] = []
    with source.open() as stream:
        for block in blocks(stream, source.label):
            if kind is None:
                kind, block = recognise(block, source.label)
                line = kind.first_line
                _check_format(kind, source.label, expected)
            if block:
                parts.append(parse(block, kind, scale, source.label, line))
                line += len(parts[-1].users)
    if kind is None:
        raise DataError(f"{source.label}: the file is empty. Download it again.")
    return kind, parts


def _check_format(kind: Format, label: str, expected: Format | None) -> None:
    if expected is not None and kind != expected:
        raise DataError(
            f"{label}: ratings between {kind.separator.decode()!r}, as in {kind.filename}; expected"
            f" {expected.filename} with {expected.separator.decode()!r}. Is it another data set?"
        )


def _joined(parts: list[Columns]) -> Columns:
    """All lines of a file; uses the parts up, so that one column at a time is there twice."""
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    arrays = []
    for column in columns:
        arrays.append(np.concatenate(column))
        column.clear()
    return Columns(*arrays)


def write(ratings: Ratings, path: str | os.PathLike[str], format: str = "csv") -> Path:
    """Write ratings as MovieLens publishes them, some millions a second, with synthetic timestamps.

    Args:
        ratings: with whole numbers from 0 as ids and half stars as levels.
        path: the file; it is replaced in one step when all is written.
        format: `tab` (100K), `dat` (1M, 10M) or `csv` (20M and later).

    Raises:
        ValueError: ids or ratings that the format has no way to write.

    Examples:
        >>> import pathlib, tempfile, levymc_lab.data
        >>> ratings = levymc_lab.data.synthetic(30, 40, 500)
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "ratings.dat"
        >>> file = levymc_lab.data.write(ratings, file, "dat")
        >>> bool((levymc_lab.data.read(file).values == ratings.values).all())
        True
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(FORMATS)}, got {format!r}.")
    _check_writable(ratings)
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            _write_to(stream, ratings, FORMATS[format])
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _check_writable(ratings: Ratings) -> None:
    for name, ids in (("user_ids", ratings.user_ids), ("item_ids", ratings.item_ids)):
        if ids.dtype.kind not in "iu" or np.any(ids < 0):
            raise ValueError(f"`{name}` must be whole numbers from 0, got {ids[:3]}. Number them.")
    if not np.isin(2 * ratings.levels, HALF_STARS).all():
        raise ValueError(
            f"`levels` must be half stars from 0.5 to 5, got {ratings.levels}. Scale them."
        )


def _write_to(stream: IO[bytes], ratings: Ratings, kind: Format) -> None:
    if kind.header:
        stream.write(kind.header + b"\n")
    users, items = _characters(ratings.user_ids), _characters(ratings.item_ids)
    levels = ratings.levels.tolist()  # `4.0` in CSV; `4` in the other formats, and `3.5` in all
    stars = _characters(np.array([f"{one:.1f}" if kind.header else f"{one:g}" for one in levels]))
    for begin in range(0, ratings.num_ratings, WRITTEN_AT_ONCE):
        rows = slice(begin, begin + WRITTEN_AT_ONCE)
        count = len(ratings.users[rows])
        times = FIRST_TIME + (np.arange(begin, begin + count) * PRIME) % TIMES
        separator, line_break = (
            np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text)))
            for text in (kind.separator, b"\n")
        )
        fields = [
            users[ratings.users[rows]],
            separator,
            items[ratings.items[rows]],
            separator,
            stars[ratings.codes[rows]],
            separator,
            _characters(times),
            line_break,
        ]
        text = np.concatenate(fields, axis=1)
        stream.write(text[text != 0].tobytes())


def _characters(values: np.ndarray) -> np.ndarray:
    """A row of bytes per text or whole number; 0, which is no character, fills the short ones."""
    texts = values.astype("S")
    width = int(np.strings.str_len(texts).max())
    return texts.astype(f"S{width}").view(np.uint8).reshape(-1, width)
