"""MovieLens: every format read and written, faults with their line, hostile archives refused."""

import io
import re
import shutil
import stat
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.toy_ratings import CSV_HEADER, CSV_TEXT, DAT_TEXT, TAB_TEXT, triples, zipped

from levymc_lab import data
from levymc_lab.data import _sources
from levymc_lab.data._formats import (
    CSV,
    DAT,
    FORMATS,
    HALF_STARS,
    TAB,
    UnusualError,
    parse_carefully,
    parse_fast,
)

EXPECTED = [(3, 20, 1.0), (7, 20, 5.0), (7, 50, 3.0)]
TEXTS = {"u.data": TAB_TEXT, "ratings.dat": DAT_TEXT, "ratings.csv": CSV_TEXT}


def written(tmp_path, text, name="ratings"):
    file = tmp_path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(("name", "text"), TEXTS.items())
def test_a_format_is_recognised_by_its_content_wherever_the_file_lies(tmp_path, name, text):
    assert triples(data.read(written(tmp_path, text, "some-name"))) == EXPECTED
    folder = tmp_path / "set"
    (folder / "inner").mkdir(parents=True)
    file = written(folder / "inner", text, name)
    assert triples(data.read(folder)) == EXPECTED
    assert triples(data.read(str(folder / "inner"))) == EXPECTED
    file.unlink()
    zipped(folder / "set.zip", {"set/": "", f"set/{name}": text, "set/README": "no::t this one"})
    assert triples(data.read(folder / "set.zip")) == EXPECTED
    assert triples(data.read(folder)) == EXPECTED


def test_the_arrays_are_compact_and_keep_the_ids(tmp_path):
    ratings = data.read(written(tmp_path, CSV_TEXT))
    kinds = [array.dtype for array in ratings]
    assert kinds == [np.uint32, np.uint16, np.uint8, np.float32, np.int64, np.int64]
    assert ratings.levels.tolist() == [1.0, 3.0, 5.0]
    assert (ratings.num_ratings, ratings.num_users, ratings.num_items) == (3, 2, 2)
    assert ratings.values.dtype == np.float32
    assert all(array.flags.writeable for array in ratings)


def test_more_than_65536_items_need_wider_indices(tmp_path):
    count = 2**16 + 1
    text = "".join(f"1::{item}::4::0\n" for item in range(count))
    ratings = data.read(written(tmp_path, text))
    assert ratings.items.dtype == np.uint32
    assert ratings.items[-1] == count - 1


@pytest.mark.parametrize(
    "text",
    [
        CSV_TEXT.replace("\n", "\r\n"),
        "\ufeff" + CSV_TEXT,
        "\ufeff" + DAT_TEXT,
        CSV_TEXT.removesuffix("\n"),
        DAT_TEXT.replace("\n", "\r\n").removesuffix("\r\n"),
        CSV_TEXT.replace("5.0", "5").replace("3.0", "3.00"),
        DAT_TEXT.replace("7::20::5", "7::20::5.0"),
    ],
)
def test_other_ways_to_write_the_same(tmp_path, text):
    assert triples(data.read(written(tmp_path, text))) == EXPECTED


@pytest.mark.parametrize("rating", ["4", "4.00"])
def test_an_id_that_begins_with_a_zero_is_text(tmp_path, rating):
    """As a number it would be another's, and an ISBN would not be found again."""
    file = written(tmp_path, f"7\t0345391802\t{rating}\t0\n007\t12\t4\t0\n")
    with pytest.raises(data.DataError, match=":1: item '0345391802' begins with a zero"):
        data.read(file)
    assert data.read_table(file).user_ids.tolist() == ["007", "7"]
    with pytest.raises(data.DataError, match=":1: user '007' begins with a zero"):
        data.read(written(tmp_path, f"007\t12\t{rating}\t0\n"))


def test_ids_may_be_large_and_scattered(tmp_path):
    text = f"{2**63 - 1}::{10**9}::4::1\n12::{10**12}::3.5::1\n"
    expected = [(12, 10**12, 3.5), (2**63 - 1, 10**9, 4.0)]
    assert triples(data.read(written(tmp_path, text))) == expected


def test_a_file_that_is_sorted_and_one_that_is_not_give_the_same(tmp_path):
    ratings = data.synthetic(60, 50, 900, seed=3)
    file = data.write(ratings, tmp_path / "ratings.csv")
    lines = file.read_text().splitlines(keepends=True)
    rows = np.random.default_rng(0).permutation(lines[1:])
    shuffled = data.read(written(tmp_path, lines[0] + "".join(rows)))
    for one, other, planted in zip(data.read(file), shuffled, ratings, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, planted)
        assert one.dtype == planted.dtype


@pytest.mark.parametrize("block_bytes", [7, 1000])
@pytest.mark.parametrize("name", FORMATS)
def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch, name, block_bytes):
    file = data.write(data.synthetic(20, 30, 200), tmp_path / "ratings", name)
    whole = data.read(file)
    monkeypatch.setattr(_sources, "BLOCK_BYTES", block_bytes)
    for one, other in zip(whole, data.read(file), strict=True):
        np.testing.assert_array_equal(one, other)


ids = st.one_of(st.integers(0, 30), st.integers(0, 10**9 - 1))
stars = st.sampled_from(["0.5", "1", "1.0", "2.5", "3", "4.5", "5.0", "5"])
lines = st.lists(st.tuples(ids, ids, stars, st.integers(0, 10**12)), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(lines, st.sampled_from([TAB, DAT, CSV]), st.sampled_from(["\n", "\r\n"]))
def test_fast_and_careful_agree_on_good_lines(rows, kind, line_break):
    separator = kind.separator.decode()
    text = "".join(separator.join(map(str, row)) + line_break for row in rows).encode()
    (block,) = _sources.blocks(io.BytesIO(text), "file")
    fast = parse_fast(block, kind, HALF_STARS)
    careful = parse_carefully(block, kind, HALF_STARS, "file", 1)
    for one, other, column in zip(fast, careful, zip(*rows, strict=True), strict=False):
        np.testing.assert_array_equal(one, other)
        scale = 2 if one is fast.halves else 1
        assert one.tolist() == [scale * float(entry) for entry in column]


@settings(deadline=None)
@given(
    lines,
    st.sampled_from([TAB, DAT, CSV]),
    st.integers(0, 10**6),
    st.sampled_from(list(b"0.:,\t\r\n-+ e6\x00\xff")),
    st.booleans(),
)
def test_fast_takes_nothing_that_careful_refuses(rows, kind, place, byte, inserts):
    """One byte of good lines is replaced or put in; the fast parser may only say less."""
    separator = kind.separator.decode()
    text = bytearray("".join(separator.join(map(str, row)) + "\n" for row in rows).encode())
    place %= len(text)
    text[place : place + (not inserts)] = bytes([byte])
    if not text.endswith(b"\n"):
        text += b"\n"
    try:
        fast = parse_fast(bytes(text), kind, HALF_STARS)
    except UnusualError:
        return
    careful = parse_carefully(bytes(text), kind, HALF_STARS, "file", 1)
    for one, other in zip(fast, careful, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_folder_with_two_ratings_files_is_not_guessed_at(tmp_path):
    written(tmp_path, CSV_TEXT, "ratings.csv")
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "ratings.csv", tmp_path / "copy")
    with pytest.raises(data.DataError, match=r"Name the one to read"):
        data.read(tmp_path)


def test_only_a_header(tmp_path):
    with pytest.raises(data.DataError, match="there is no rating in it"):
        data.read(written(tmp_path, CSV_HEADER))


# Faults.


def fault(path):
    with pytest.raises(data.DataError) as caught:
        data.read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,2,3.5", "3 fields in '1,2,3.5'. Expected 4"),
        ("1,2,3.5,4,5", "5 fields"),
        ("1::2::3::4", "1 fields"),
        ("", "an empty line"),
        ("x,2,3.5,4", "user 'x' is no whole number"),
        ("-1,2,3.5,4", "user '-1' is no whole number"),
        (",2,3.5,4", "user '' is no whole number"),
        ("1,2.5,3.5,4", "item '2.5' is no whole number"),
        ("1, 2,3.5,4", "item ' 2' is no whole number"),
        ("1,99999999999999999999,3.5,4", "item '99999999999999999999' is larger than"),
        ("1,2,,4", "rating '' is no number"),
        ("1,2,nan,4", "rating 'nan' is no number"),
        ("1,2,1e0,4", "rating '1e0' is no number"),
        ("1,2,6,4", "unknown rating '6'. Known are 0.5, 1,"),
        ("1,2,0.0,4", "unknown rating '0.0'"),
        ("1,2,3.7,4", "unknown rating '3.7'"),
        ("1,2,3.5,", "timestamp '' is no whole number"),
        ("1,2,3.5,x", "timestamp 'x' is no whole number"),
        ("1,2,3.5,4.0", "timestamp '4.0' is no whole number"),
        ('"1","2","3.5","4"', "user '\"1\"' is no whole number"),
        ("1,2,3.5,4\r5", "timestamp '4\\r5' is no whole number"),
    ],
)
@pytest.mark.parametrize("block_bytes", [2**20, 16])
def test_a_bad_row_is_told_with_file_and_line(tmp_path, monkeypatch, line, reason, block_bytes):
    monkeypatch.setattr(_sources, "BLOCK_BYTES", block_bytes)
    file = tmp_path / "ratings.csv"
    good = "".join(f"{user},9,4.0,1\n" for user in range(10, 20))
    file.write_bytes((CSV_HEADER + good + line + "\n1,3,4.0,5\n").encode())
    message = fault(file)
    assert message.startswith(f"{file}:12: {reason}")


def test_the_line_is_right_with_no_header_and_at_the_end(tmp_path):
    file = tmp_path / "ratings.dat"
    file.write_text(DAT_TEXT + "1::2")
    assert fault(file).startswith(f"{file}:4: 2 fields in '1::2'. Expected 4, separated by '::'")
    file.write_bytes(DAT_TEXT.encode() + b"1::2::\xff\xfe::4\n")
    assert f"{file}:4: rating '\\\\xff\\\\xfe' is no number" in fault(file)


@pytest.mark.parametrize("line", ["1:0:2::3::4", "1::2:0:3::4", "1::2::3:0:4", "1:2:3::::4"])
def test_colons_that_stand_apart(tmp_path, line):
    file = tmp_path / "ratings.dat"
    file.write_text(f"{DAT_TEXT}{line}\n")
    assert fault(file).startswith(f"{file}:4: ")


def test_a_pair_that_comes_again_is_told_with_both_lines(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text(CSV_TEXT + "9,9,1.0,1\n7,20,4.0,1\n3,20,1.0,2\n")
    assert fault(file) == (f"{file}:6: user 7 rates item 20 again, after line 3. Keep one of them.")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ": the file is empty"),
        (b"movieId,title\n1,Toys\n", ":1: this is no MovieLens file"),
        (b"\x89PNG\r\n\x1a\n", ":1: this is no MovieLens file"),
        (b"\x00" * 100_000, ":1: no line break in 65536 bytes"),
        (CSV_TEXT.encode("utf-16"), ":1: this is no MovieLens file"),
    ],
)
def test_a_foreign_file(tmp_path, content, reason):
    file = tmp_path / "ratings.csv"
    file.write_bytes(content)
    assert fault(file).startswith(f"{file}{reason}")


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        data.read(tmp_path / "none")
    assert "holds none of u.data, ratings.dat, ratings.csv" in fault(tmp_path)
    assert "holds none of" in fault(zipped(tmp_path / "a.zip", {"x/y/ratings.csv": CSV_TEXT}))


def test_a_fault_in_an_archive_names_the_member(tmp_path):
    path = zipped(tmp_path / "a.zip", {"ml/ratings.dat": DAT_TEXT + "1::2::9::4\n"})
    assert fault(path).startswith(f"{path}/ml/ratings.dat:4: unknown rating '9'")


def test_archives_cut_short_anywhere(tmp_path):
    rows = "".join(f"{user}::1::4::{user * 7919 % 1000}\n" for user in range(300))
    whole = zipped(tmp_path / "whole.zip", {"ratings.dat": rows}).read_bytes()
    cut = tmp_path / "cut.zip"
    for length in range(4, len(whole), 97):
        cut.write_bytes(whole[:length])
        assert "the archive is cut short or damaged" in fault(cut)


def test_a_flipped_byte_is_found_by_the_checksum(tmp_path):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT * 1})
    with zipfile.ZipFile(path) as archive:
        (info,) = archive.infolist()
    content = bytearray(path.read_bytes())
    content[info.header_offset + 30 + len(info.filename) + 5] ^= 0xFF
    path.write_bytes(content)
    assert re.search(r"ratings\.dat is damaged|unknown|no whole number|fields", fault(path))


def test_a_wrong_checksum_of_readable_rows(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("ratings.dat", DAT_TEXT)
    path.write_bytes(path.read_bytes().replace(b"7::50::3", b"7::50::4"))
    assert "ratings.dat is damaged (Bad CRC-32" in fault(path)


@pytest.mark.parametrize(
    "name", ["../ratings.dat", "/etc/ratings.dat", "a/../../b", "..\\ratings.dat", "C:/ratings.dat"]
)
def test_names_that_lead_out_of_the_archive(tmp_path, name):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT, name: "x"})
    assert f"the name {name!r} leads out of the archive" in fault(path)


def test_links_in_an_archive(tmp_path):
    path = tmp_path / "a.zip"
    link = zipfile.ZipInfo("ratings.dat")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "'ratings.dat' is a link" in fault(path)


def test_encrypted_members(tmp_path):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT})
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1
    path.write_bytes(content)
    assert "'ratings.dat' is encrypted" in fault(path)


def test_a_zip_bomb_by_its_ratio(tmp_path):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT, "b": b"0" * 3_000_000})
    assert "this is a zip bomb" in fault(path)


def test_a_zip_bomb_by_its_size(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT, "b": DAT_TEXT})
    monkeypatch.setattr(_sources, "MOST_BYTES", len(DAT_TEXT) + 1)
    assert "the archive unpacks to" in fault(path)
    monkeypatch.setattr(_sources, "MOST_BYTES", len(DAT_TEXT) - 1)
    assert "'ratings.dat' unpacks to" in fault(path)


def test_a_member_that_is_longer_than_declared_is_not_read_on(tmp_path):
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT * 1})
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    shorter = len(DAT_TEXT.splitlines(keepends=True)[0])
    content[directory + 24 : directory + 28] = struct.pack("<I", shorter)
    path.write_bytes(content)
    assert "ratings.dat is damaged" in fault(path)


def test_too_many_members(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "MOST_MEMBERS", 1)
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT, "b": ""})
    assert "2 files in one archive" in fault(path)


# Writing.


@pytest.fixture(scope="module")
def synthetic():
    return data.synthetic(*data.SIZES["ml-100k"], seed=1)


@pytest.mark.parametrize("name", ["tab", "dat", "csv"])
def test_the_writer_writes_what_the_reader_reads(tmp_path, synthetic, name):
    part = data.split(synthetic, 0, (0.95, 0.05))[1]
    file = data.write(part, tmp_path / "ratings", name)
    found = data.read(file)
    np.testing.assert_array_equal(found.values, part.values)
    np.testing.assert_array_equal(found.user_ids[found.users], part.user_ids[part.users])
    np.testing.assert_array_equal(found.item_ids[found.items], part.item_ids[part.items])
    assert [one.name for one in tmp_path.iterdir()] == ["ratings"]


@pytest.mark.parametrize(
    ("name", "line"), [("tab", "1\t7\t4\t"), ("dat", "1::7::4::"), ("csv", "1,7,4.0,")]
)
def test_the_text_is_that_of_the_official_files(tmp_path, name, line):
    one = data.Ratings(
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint16),
        np.zeros(1, np.uint8),
        np.array([4.0], np.float32),
        np.array([1]),
        np.array([7]),
    )
    text = data.write(one, tmp_path / "ratings", name).read_text()
    assert text.splitlines()[-1].startswith(line)
    assert text.startswith("userId,movieId,rating,timestamp\n") == (name == "csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": np.float32(np.arange(10))}, "`levels` must be half stars"),
        ({"levels": np.float32(np.arange(10) / 3)}, "`levels` must be half stars"),
        ({"user_ids": np.array(["a"])}, "`user_ids` must be whole numbers"),
    ],
)
def test_what_the_formats_cannot_hold_is_refused(tmp_path, synthetic, change, message):
    with pytest.raises(ValueError, match=message):
        data.write(synthetic._replace(**change), tmp_path / "ratings")
    with pytest.raises(ValueError, match="`format` must be one of tab, dat, csv"):
        data.write(synthetic, tmp_path / "ratings", "xml")
    assert not list(tmp_path.iterdir())


def test_an_archive_of_an_unknown_version_is_refused(tmp_path):
    """Python's own reader gives up with NotImplementedError."""
    path = zipped(tmp_path / "ml.zip", {"ml/ratings.dat": DAT_TEXT})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 200  # what is needed to extract
    path.write_bytes(content)
    with pytest.raises(data.DataError, match="cut short or damaged"):
        data.read(path)
