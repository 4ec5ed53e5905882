"""idx files: read as written; no byte missing, changed or added passes unseen."""

import gzip
import tracemalloc

import numpy as np
import pytest
from tests.lab.toy_images import idx

from levymc_lab.data import DataError
from levymc_lab.data._idx import idx_bytes, read_idx
from levymc_lab.data._source import find

ARRAY = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
CONTENT = idx(2, 3, 4, body=ARRAY.tobytes())
MEGABYTE = 2**20


def read(tmp_path, content, check_shape=lambda label, shape: None):
    file = tmp_path / "some-file"
    file.write_bytes(content)
    return read_idx(find(file, []), check_shape)


def fault(tmp_path, content):
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'some-file'}: ")
    assert message.endswith((".", "?"))
    return message


def peak_memory(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_content_tells_whether_it_is_packed(tmp_path, pack):
    array = read(tmp_path, pack(CONTENT))
    np.testing.assert_array_equal(array, ARRAY)
    assert array.dtype == np.uint8
    assert array.flags.writeable


@pytest.mark.parametrize("shape", [(7,), (2, 3), (3, 1, 2), (2, 2, 2, 2)])
def test_what_is_written_is_read(tmp_path, shape):
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read(tmp_path, idx_bytes(array)), array)
    np.testing.assert_array_equal(read(tmp_path, idx_bytes(array.T)), array.T)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is no idx file: it begins with b''"),
        (b"\0\0\x08", "this is no idx file"),
        (b"\x89PNG\r\n", "it begins with b'\\x89PNG', where two zero bytes are expected"),
        (b"<!DOCTYPE html>", "it begins with b'<!DO'"),
        (idx(2, body=b"ab", begin=b"\0\0\x0d"), "holds float32 (type 0x0d), where unsigned bytes"),
        (idx(2, body=b"ab", begin=b"\0\0\x09"), "holds int8"),
        (idx(2, body=b"ab", begin=b"\0\0\x77"), "holds unknown numbers (type 0x77)"),
        (idx(body=b""), "declares 0 dimensions"),
        (b"\0\0\x08\xff" + bytes(2000), "declares 255 dimensions"),
        (idx(5, body=b"abcd"), "ends after 4 of 5 = 5 bytes. It is cut short"),
        (idx(2, 2, body=b"abcde"), "goes on after the 2 × 2 = 4 bytes that its header declares"),
        (idx(2**32 - 1, 2**32 - 1, body=b"a"), "more than the 1 GB"),
        (idx(*[2**32 - 1] * 8, body=b"a"), "more than the 1 GB"),
    ],
)
def test_faults_are_named(tmp_path, content, message):
    assert message in fault(tmp_path, content)
    assert message in fault(tmp_path, gzip.compress(content))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_cut_and_every_addition_is_found(tmp_path, pack):
    whole = pack(CONTENT)
    for length in range(len(whole)):
        fault(tmp_path, whole[:length])
    fault(tmp_path, whole + b"x")


def test_damage_of_a_packed_file_is_found(tmp_path):
    whole = gzip.compress(CONTENT, mtime=0)
    assert "gzip file is cut short or damaged (CRC check failed" in fault(
        tmp_path, whole[:-8] + bytes(4) + whole[-4:]
    )
    for place in range(10, len(whole)):  # after gzip's header, which holds time and system
        with pytest.raises(DataError):
            read(tmp_path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def test_memory_grows_with_what_is_there_not_what_is_claimed(tmp_path):
    claim = idx(2**29, body=b"few")
    assert peak_memory(lambda: fault(tmp_path, claim)) < 4 * MEGABYTE
    assert peak_memory(lambda: fault(tmp_path, gzip.compress(claim))) < 4 * MEGABYTE


def test_a_bomb_is_not_unpacked(tmp_path):
    bomb = gzip.compress(idx(10, body=bytes(64 * MEGABYTE)), 1)
    file = tmp_path / "bomb"
    file.write_bytes(bomb)

    def refused():
        with pytest.raises(DataError, match="goes on after the 10 = 10 bytes"):
            read_idx(find(file, []), lambda label, shape: None)

    assert peak_memory(refused) < 4 * MEGABYTE


def test_a_shape_is_refused_before_the_body_is_read(tmp_path):
    def refuse(label, shape):
        raise DataError(f"{label}: not {shape}")

    with pytest.raises(DataError, match=r"not \(5, 6\)"):
        read(tmp_path, idx(5, 6, body=b""), refuse)
