"""Malformed files of ratings, from a seed, and what readers may do with them.

There are two outcomes: a right parse, or our error with the line and a remedy.  `fuzz` makes files,
gives each to all readers and lists every other outcome.
"""

import csv
import io
import itertools
import random
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from levymc_lab import data
from levymc_lab.factorize import Reading, _table

DELIMITERS = (",", ";", "\t", "::")
HEADERS = (("user", "item", "rating"), ("userId", "movieId", "rating"), ("Reader", "ISBN", "Stars"))
BAD_RATINGS = ("", "good", "nan", "inf", "-inf", "1e999", "1_0", "--3", "0x1p3", "4..5", "3 stars")
ODD_RATINGS = (" 4", "4.0", "+3", "1e0", "00002", ".5", "-7", "1e-30")  # numbers all the same
SCALE = (0.5, 5.0)
# Faults of a whole file have no line.
WHOLE_FILE = re.compile(
    r"empty|no rating in it|no pair|archive|holds |damaged|zip|unpacks|outside the scale"
)

Triple = tuple[str, str, float]


class Case(NamedTuple):
    """A file.

    kind: how it was made.
    first_fault: the line of its first fault, 0 for none, None where nobody knows.
    rows: what is right in it, by line; None where nobody knows.
    num_bad: how many rows are not.
    """

    kind: str
    content: bytes
    first_fault: int | None = None
    rows: list[Triple] | None = None
    num_bad: int = 0
    suffix: str = ".csv"


class Outcome(NamedTuple):
    """How many files were tried, by kind, and what went wrong: kind, reader, fault and content."""

    tries: Counter
    failures: list[str]


# Tables whose faults are known.


class Table(NamedTuple):
    """A table as it should be, one line for each row below the header."""

    header: list[str]
    lines: list[list[str]]
    delimiter: str
    places: tuple[int, int, int]
    line_end: str
    mark: str

    def text(self) -> str:
        rows = [*([self.header] if self.header else []), *self.lines]
        return self.mark + "".join(self.delimiter.join(row) + self.line_end for row in rows)

    def triple(self, row: list[str]) -> Triple:
        user, item, rating = (row[place] for place in self.places)
        return user.strip().strip('"'), item.strip().strip('"'), float(rating.strip('"'))


def table(random: random.Random) -> Table:
    """Small and right, in one of many styles."""
    is_text = random.random() < 0.5
    pairs = random.sample([(u, i) for u in range(9) for i in range(9)], random.randint(22, 40))
    names = HEADERS[random.randrange(len(HEADERS))]
    extra = random.choice([[], ["remark"], ["time"]])
    order = random.sample(range(3 + len(extra)), 3 + len(extra))
    has_header = random.random() < 0.6
    if not has_header:
        order = list(range(3 + len(extra)))
    lines = []
    for user, item in pairs:
        rating = random.choice(["1", "2", "3.5", "4", "5"])
        row = [f"u{user}" if is_text else str(user), f"i{item}" if is_text else str(item), rating]
        row += ["7"] * len(extra)
        lines.append([row[k] for k in order])
    header = [[*names, *extra][k] for k in order] if has_header else []
    places = order.index(0), order.index(1), order.index(2)
    delimiter = random.choice(DELIMITERS)
    ends, marks = random.choice(["\n", "\n", "\r\n"]), random.choice(["", "", "\ufeff"])
    return Table(header, lines, delimiter, places, ends, marks)


Fault = Callable[[random.Random, Table, int], list[str] | None]


def _bad_rating(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[2]] = random.choice(BAD_RATINGS)
    return row


def _outside(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[2]] = random.choice(["0", "5.5", "-1", "1e30"])
    return row


def _missing_field(random: random.Random, given: Table, number: int) -> list[str]:
    return given.lines[number][:-1]


def _further_field(random: random.Random, given: Table, number: int) -> list[str]:
    return [*given.lines[number], "more"]


def _no_id(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[random.randrange(2)]] = random.choice(["", "  "])
    return row


def _long_id(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[random.randrange(2)]] = "x" * random.choice([201, 5000])
    return row


def _null(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[random.randrange(2)]] += "\0"
    return row


def _no_utf8(random: random.Random, given: Table, number: int) -> list[str]:
    row = list(given.lines[number])
    row[given.places[random.randrange(2)]] += "\udcff"  # written as the byte ff
    return row


def _open_quote(random: random.Random, given: Table, number: int) -> list[str] | None:
    if given.delimiter == "::" or number != len(given.lines) - 1:
        return None  # further up it would swallow rows that are right
    row = list(given.lines[number])
    row[0] = '"' + row[0]
    return row


def _repeated(random: random.Random, given: Table, number: int) -> list[str] | None:
    return list(given.lines[random.randrange(number)]) if number else None


FAULTS: tuple[Fault, ...] = (
    _bad_rating, _outside, _missing_field, _further_field, _no_id, _long_id, _null, _no_utf8,
    _open_quote, _repeated,
)  # fmt: skip


def known_faults(random: random.Random) -> Case:
    """Some rows below the first get a fault each, or a number that is written oddly."""
    given = table(random)
    lines = [list(row) for row in given.lines]
    bad: set[int] = set()
    for number in random.sample(range(2, len(lines)), random.randint(0, 4)):
        if random.random() < 0.3:
            lines[number][given.places[2]] = random.choice(ODD_RATINGS[:6])
            continue
        fault = random.choice(FAULTS)
        row = fault(random, given, number)
        if row is not None:
            lines[number] = row
            bad |= {number} - ({number} if fault is _repeated else set())
    kept: dict[tuple[str, str], Triple] = {}
    for number, row in enumerate(lines):
        if number not in bad:
            triple = given.triple(row)
            if triple[:2] in kept:
                bad.add(number)
            kept.setdefault(triple[:2], triple)
    first = min(bad) + (2 if given.header else 1) if bad else 0
    content = given._replace(lines=lines).text().encode("utf-8", "surrogateescape")
    return Case("known faults", content, first, list(kept.values()), len(bad))


def odd_but_right(random: random.Random) -> Case:
    """Nothing is wrong: quotes, blank lines, spaces, numbers that are written oddly."""
    given = table(random)
    lines = []
    for row in given.lines:
        row = list(row)
        row[given.places[2]] = random.choice([row[given.places[2]], *ODD_RATINGS])
        if given.delimiter != "::" and random.random() < 0.3:
            row = [f'"{field}"' for field in row]
        elif random.random() < 0.3:
            row[given.places[0]] = f" {row[given.places[0]]} "
        lines.append(row)
    rows = [given.triple(row) for row in lines]
    text = given._replace(lines=lines).text()
    if random.random() < 0.5:
        text = text.replace(given.line_end, given.line_end * 2)
    if random.random() < 0.3:
        text = text.rstrip("\r\n")
    return Case("odd but right", text.encode(), 0, rows)


def bad_first_row(random: random.Random) -> Case:
    """Without a header, with a first row that must not be taken for one."""
    given = table(random)
    while given.header:
        given = table(random)
    lines = [list(row) for row in given.lines]
    lines[0][given.places[2]] = random.choice(BAD_RATINGS)
    rows = [given.triple(row) for row in lines[1:]]
    text = given._replace(lines=lines).text()
    return Case("bad first row", text.encode(), 1, rows, 1)


# Files whose faults nobody knows.


def scrambled(random: random.Random) -> Case:
    """A right table with some bytes changed, put in or left out, or cut short."""
    content = bytearray(_right(random))
    for _ in range(random.randint(1, 8)):
        place = random.randrange(len(content))
        change = random.randrange(4)
        if change == 0:
            content[place] = random.randrange(256)
        elif change == 1:
            content[place:place] = random.choice(
                [
                    b'"',
                    b"\n",
                    b"\r",
                    b",",
                    b";",
                    b"\t",
                    b"::",
                    b"\0",
                    b"\xff",
                    b"\xc3",
                    b"1e999",
                    b"-",
                ]
            )
        elif change == 2:
            del content[place : place + random.randint(1, 5)]
        else:
            del content[random.randrange(len(content) // 2, len(content)) :]
        content = content or bytearray(b"x")
    return Case("scrambled", bytes(content))


def _right(random: random.Random) -> bytes:
    if random.random() < 0.5:
        return table(random).text().encode()
    separator = random.choice(["\t", "::", ","])
    pairs = random.sample([(u, i) for u in range(9) for i in range(9)], 30)
    lines = ["userId,movieId,rating,timestamp"] if separator == "," else []
    for user, item in pairs:
        rating = random.choice(["1", "3.5", "5.0"])
        lines.append(separator.join([str(user), str(item), rating, str(10**9 + user)]))
    return ("\n".join(lines) + "\n").encode()


def no_table(random: random.Random) -> Case:
    """Something else altogether."""
    text = table(random).text()
    contents = [
        b"",
        b"\n" * random.randint(1, 5),
        b"\xef\xbb\xbf",
        random.randbytes(random.randint(1, 3000)),
        text.encode("utf-16"),
        text.encode("utf-32"),
        zlib.compress(text.encode()),
        b"x" * 70_000,
        b"1,2,3" * 20_000,
        ('"' + "1,2,3\n" * random.randint(1, 3000)).encode(),
        ('"\n",' * random.randint(1, 3000)).encode(),
        b"user,item,rating\n",
        b"user\nann\n",
        b'{"user": 1, "item": 2, "rating": 3}\n',
        b"<html><body>404 not found</body></html>\n",
        struct.pack("<100d", *(random.random() for _ in range(100))),
    ]
    return Case("no table", random.choice(contents))


def broken_archive(random: random.Random) -> Case:
    """A zip archive of ratings, damaged."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml/ratings.dat", _right(random) * random.randint(1, 3))
    content = bytearray(stream.getvalue())
    for _ in range(random.randint(1, 4)):
        content[random.randrange(len(content))] = random.randrange(256)
    if random.random() < 0.3:
        del content[random.randrange(len(content)) :]
    return Case("broken archive", bytes(content), suffix=random.choice([".zip", ".csv"]))


KINDS = (known_faults, odd_but_right, bad_first_row, scrambled, no_table, broken_archive)


def cases(seed: int, count: int) -> Iterator[Case]:
    """The same ones for the same seed."""
    source = random.Random(seed)
    for number in range(count):
        yield KINDS[number % len(KINDS)](source)


# What readers may do.


def fuzz(folder: Path, count: int = 1000, seed: int = 0) -> Outcome:
    """Make files in a folder, one after the other, and give each to all readers."""
    tries: Counter = Counter()
    failures = []
    for case in cases(seed, count):
        path = folder / f"ratings{case.suffix}"
        path.write_bytes(case.content)
        tries[case.kind] += 1
        for name, fault in faults_of(case, path):
            failures.append(f"{case.kind}, {name}: {fault}: {case.content[:300]!r}")
        path.unlink()
    return Outcome(tries, failures)


def faults_of(case: Case, path: Path) -> Iterator[tuple[str, str]]:
    """What a reader did that it must not, by its name."""
    readers: dict[str, Callable[[], object]] = {
        "read": lambda: data.read(path),
        "read_table": lambda: data.read_table(path, scale=None),
        "read_table on a scale": lambda: data.read_table(path, scale=SCALE),
        "read_pairs": lambda: data.read_pairs(path),
        "factorize": lambda: _table._read(path, Reading(scale=SCALE), [].append),
    }
    for name, reader in readers.items():
        try:
            found: object = reader()
        except data.DataError as error:
            found = error
        except Exception as error:
            yield name, f"{type(error).__name__}: {error}"
            continue
        is_scaled = name in ("read_table on a scale", "factorize")
        fault = _wrong_error(found, path) or _wrong_parse(found, case, is_scaled)
        if fault:
            yield name, fault
    if case.rows is not None:
        fault = _wrong_skip(case, path)
        if fault:
            yield "skip_bad", fault


def _wrong_error(found: object, path: Path) -> str | None:
    """What an error lacks: the file, a line, or a remedy."""
    if not isinstance(found, data.DataError):
        return None
    message = str(found)
    if not re.match(rf"{re.escape(str(path))}[:/]", message):
        return f"no file: {message}"
    reason = message.removeprefix(str(path))
    if not re.match(r"(/[^:]*)?:\d+: ", reason) and not WHOLE_FILE.search(reason):
        return f"no line: {message}"
    return None if len(re.findall(r"[.?](?= |$)", reason)) > 1 else f"no remedy: {message}"


def _wrong_parse(found: object, case: Case, is_scaled: bool) -> str | None:
    """Where the faults are known, the first must be found, and what is right must be read."""
    if case.kind == "scrambled" and isinstance(found, data.Ratings):
        return _unlike_its_text(found, case.content)
    if case.rows is None or case.first_fault is None or isinstance(found, data.Pairs):
        return None
    if isinstance(found, data.DataError):
        return None if case.num_bad or not is_right_for(case, is_scaled) else f"refused: {found}"
    if not isinstance(found, data.Ratings):
        return f"gave {type(found).__name__}"
    if case.num_bad and is_scaled:
        return f"line {case.first_fault} passed for right"
    return None if case.num_bad else _differs(found, case.rows)


def _unlike_its_text(found: data.Ratings, content: bytes) -> str | None:
    """By Python's own reader: as many rows, but for a header, each with what was read of it."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "no text passed for right"
    first = next(line for line in text.splitlines() if line.strip())
    mark = next((one for one in ("::", "\t", ";", ",") if one in first), ",")
    stream = io.StringIO(text, newline="")
    rows = (
        [line.rstrip("\r\n").split(mark) for line in stream if line.strip()]
        if mark == "::"
        else [row for row in csv.reader(stream, delimiter=mark) if row]
    )
    if len(rows) - found.num_ratings not in (0, 1):
        return f"{found.num_ratings} ratings of {len(rows)} rows"
    users, items = found.user_ids[found.users], found.item_ids[found.items]
    read = set(zip(map(str, users), map(str, items), found.values.tolist(), strict=True))
    ways: set = set()
    for row in rows:
        fields = [(field.strip(), _number(field)) for field in row]
        ways.update(
            (u, i, value) for (u, _), (i, _), (_, value) in itertools.permutations(fields, 3)
        )
    lost = read - ways
    return f"{min(lost)} is not in the file" if lost else None


def _number(text: str) -> float | None:
    try:
        return _single(float(text))
    except (ValueError, OverflowError):
        return None


def is_right_for(case: Case, is_scaled: bool) -> bool:
    """Whether it is right on the scale, too; MovieLens's reader takes few tables."""
    return is_scaled and all(SCALE[0] <= value <= SCALE[1] for *_, value in case.rows or [])


def _wrong_skip(case: Case, path: Path) -> str | None:
    """With enough rows that may be bad, what is right is read, and the others are counted."""
    bad: list[str] = []
    scale = SCALE if case.num_bad else None
    try:
        found = data.read_table(path, scale=scale, skip_bad=100, on_bad=bad.append)
    except data.DataError as error:
        return f"refused: {error}"
    if len(bad) != case.num_bad:
        return f"{len(bad)} rows were left out, not {case.num_bad}: {bad}"
    lines = [int(re.search(r":(\d+): ", one).group(1)) for one in bad]  # type: ignore[union-attr]
    if lines and min(lines) != case.first_fault:
        return f"the first bad line is {case.first_fault}, got {lines}"
    return _differs(found, case.rows or [])


def _differs(found: data.Ratings, rows: list[Triple]) -> str | None:
    users, items = found.user_ids[found.users], found.item_ids[found.items]
    read = zip(map(str, users), map(str, items), found.values.tolist(), strict=True)
    wanted = [(user, item, float(_single(value))) for user, item, value in rows]
    return None if sorted(read) == sorted(wanted) else "other rows than those of the file"


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]
