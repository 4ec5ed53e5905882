"""Readers of MovieLens: every official format, zipped or not, the same as a slow reference."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.toy_ratings import CSV_HEADER, CSV_TEXT, DAT_TEXT, TAB_TEXT, triples, zipped

from levymc_lab import data
from levymc_lab.data import _assemble, _blocks, _careful, _fast
from levymc_lab.data._columns import HALF_STARS
from levymc_lab.data._formats import CSV, DAT, FORMATS, TAB

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
        DAT_TEXT.replace("7::20::5", "007::0020::5.0"),
    ],
)
def test_other_ways_to_write_the_same(tmp_path, text):
    assert triples(data.read(written(tmp_path, text))) == EXPECTED


def test_ids_may_be_large_and_scattered(tmp_path):
    text = f"{2**63 - 1}::{10**9}::4::1\n12::{10**12}::3.5::1\n"
    expected = [(12, 10**12, 3.5), (2**63 - 1, 10**9, 4.0)]
    assert triples(data.read(written(tmp_path, text))) == expected


def test_a_file_that_is_sorted_and_one_that_is_not_give_the_same(tmp_path):
    made = data.synthetic(60, 50, 900, seed=3)
    file = data.write(made, tmp_path / "ratings.csv")
    lines = file.read_text().splitlines(keepends=True)
    rows = np.random.default_rng(0).permutation(lines[1:])
    shuffled = data.read(written(tmp_path, lines[0] + "".join(rows)))
    for one, other, planted in zip(data.read(file), shuffled, made, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, planted)
        assert one.dtype == planted.dtype


def test_sorting_by_words_and_by_order_agree():
    generator = np.random.default_rng(2)
    users = generator.permutation(np.arange(500, dtype=np.uint32) % 50)
    items = generator.integers(0, 40, 500).astype(np.uint32)
    codes = ((users * 40 + items) % 10).astype(np.uint8)
    for sizes in ((50, 40, 10), (2**32, 2**32, 10)):
        found = _assemble._sorted(users, items, codes, sizes)
        np.testing.assert_array_equal(found[0] * 40 + found[1], np.sort(users * 40 + items))
        np.testing.assert_array_equal((found[0] * 40 + found[1]) % 10, found[2])
        assert [one.dtype for one in found] == [np.uint32, np.uint32, np.uint8]


@pytest.mark.parametrize("block_bytes", [7, 1000])
@pytest.mark.parametrize("name", FORMATS)
def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch, name, block_bytes):
    file = data.write(data.synthetic(20, 30, 200), tmp_path / "ratings", name)
    whole = data.read(file)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
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
    fast = _fast.parse(text, kind, HALF_STARS)
    careful = _careful.parse(text, kind, HALF_STARS, "file", 1)
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
        fast = _fast.parse(bytes(text), kind, HALF_STARS)
    except _fast.UnusualError:
        return
    careful = _careful.parse(bytes(text), kind, HALF_STARS, "file", 1)
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
