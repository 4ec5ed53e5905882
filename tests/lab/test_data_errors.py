"""What is wrong with a file is told with its line; damaged and hostile archives are refused."""

import re
import stat
import struct
import zipfile

import pytest
from tests.lab.toy_ratings import CSV_HEADER, CSV_TEXT, DAT_TEXT, zipped

from levymc_lab import data
from levymc_lab.data import _blocks, _zip


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
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
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
        (b"\x00" * 100_000, ": no line break in 65536 bytes"),
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
    monkeypatch.setattr(_zip, "MOST_BYTES", len(DAT_TEXT) + 1)
    assert "the archive unpacks to" in fault(path)
    monkeypatch.setattr(_zip, "MOST_BYTES", len(DAT_TEXT) - 1)
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
    monkeypatch.setattr(_zip, "MOST_MEMBERS", 1)
    path = zipped(tmp_path / "a.zip", {"ratings.dat": DAT_TEXT, "b": ""})
    assert "2 files in one archive" in fault(path)
