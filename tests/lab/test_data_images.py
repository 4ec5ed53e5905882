"""Pictures: idx files, MNIST through files, cache and commands, and black and white ones."""

import gzip
import shutil
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from tests.lab.http_server import serving
from tests.lab.toy_images import TEST, TRAIN, expect, idx, packed, path_of, toy_images
from typer.testing import CliRunner

from levymc_lab import data
from levymc_lab.cli import app
from levymc_lab.data import _images
from levymc_lab.data._images import idx_bytes, read_idx
from levymc_lab.data._sources import Source

ARRAY = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
CONTENT = idx(2, 3, 4, body=ARRAY.tobytes())
MEGABYTE = 2**20
GREYS = np.arange(256)
BITS = ["011100000001", "010100111100"]


@pytest.fixture(scope="module")
def toy():
    return toy_images()


@pytest.fixture
def folder(toy, tmp_path):
    return data.write_images(toy, tmp_path / "mine")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "cache"


@pytest.fixture
def as_mnist(monkeypatch, toy):
    """The toy passes for MNIST, which has counts and checksums of its own."""
    expect(monkeypatch, toy)


def assert_equal(found, expected):
    assert isinstance(found, data.Images)
    for name, array in expected._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), array)
        assert getattr(found, name).dtype == np.uint8


def fault(path):
    """What is said of a copy that is not imported."""
    with pytest.raises(data.DataError) as caught:
        data.import_dataset("mnist", path)
    assert not data.cache_folder().exists()
    return str(caught.value)


def replace(folder, name, *sizes, body):
    path_of(folder, name).write_bytes(gzip.compress(idx(*sizes, body=body)))


# idx files: no byte missing, changed or added passes unseen.


def read_content(tmp_path, content, check_shape=lambda shape: None):
    file = tmp_path / "some-file"
    file.write_bytes(content)
    return read_idx(Source(file), check_shape)


def idx_fault(tmp_path, content):
    with pytest.raises(data.DataError) as caught:
        read_content(tmp_path, content)
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
    array = read_content(tmp_path, pack(CONTENT))
    np.testing.assert_array_equal(array, ARRAY)
    assert array.dtype == np.uint8
    assert array.flags.writeable


@pytest.mark.parametrize("shape", [(7,), (2, 3), (3, 1, 2), (2, 2, 2, 2)])
def test_what_is_written_is_read_content(tmp_path, shape):
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read_content(tmp_path, idx_bytes(array)), array)
    np.testing.assert_array_equal(read_content(tmp_path, idx_bytes(array.T)), array.T)


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
def test_faults_of_idx_files_are_named(tmp_path, content, message):
    assert message in idx_fault(tmp_path, content)
    assert message in idx_fault(tmp_path, gzip.compress(content))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_cut_and_every_addition_is_found(tmp_path, pack):
    whole = pack(CONTENT)
    for length in range(len(whole)):
        idx_fault(tmp_path, whole[:length])
    idx_fault(tmp_path, whole + b"x")


def test_damage_of_a_packed_file_is_found(tmp_path):
    whole = gzip.compress(CONTENT, mtime=0)
    assert "gzip file is cut short or damaged (CRC check failed" in idx_fault(
        tmp_path, whole[:-8] + bytes(4) + whole[-4:]
    )
    for place in range(10, len(whole)):  # after gzip's header, which holds time and system
        with pytest.raises(data.DataError):
            read_content(tmp_path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def test_memory_grows_with_what_is_there_not_what_is_claimed(tmp_path):
    claim = idx(2**29, body=b"few")
    assert peak_memory(lambda: idx_fault(tmp_path, claim)) < 4 * MEGABYTE
    assert peak_memory(lambda: idx_fault(tmp_path, gzip.compress(claim))) < 4 * MEGABYTE


def test_a_bomb_is_not_unpacked(tmp_path):
    bomb = gzip.compress(idx(10, body=bytes(64 * MEGABYTE)), 1)
    file = tmp_path / "bomb"
    file.write_bytes(bomb)

    def refused():
        with pytest.raises(data.DataError, match="goes on after the 10 = 10 bytes"):
            read_idx(Source(file), lambda shape: None)

    assert peak_memory(refused) < 4 * MEGABYTE


def test_a_shape_is_refused_before_the_body_is_read_content(tmp_path):
    def refuse(shape):
        raise ValueError(f"not {shape}")

    with pytest.raises(data.DataError, match=r"not \(5, 6\)"):
        read_content(tmp_path, idx(5, 6, body=b""), refuse)


# Reading and writing.


@pytest.mark.parametrize("compress", [True, False])
def test_what_is_written_is_read(toy, tmp_path, compress):
    folder = data.write_images(toy, tmp_path / "new/folder", compress)
    assert_equal(data.read_images(folder), toy)
    names = {file.name for file in folder.iterdir()}
    assert names == {name + ".gz" * compress for name in _images.FILES.values()}
    before = [file.read_bytes() for file in sorted(folder.iterdir())]
    data.write_images(toy, folder, compress)
    assert [file.read_bytes() for file in sorted(folder.iterdir())] == before


def test_only_pictures_are_written(toy, tmp_path):
    for field, wrong in (
        ("train_images", toy.train_images / 255),
        ("test_images", toy.test_images.reshape(TEST, -1)),
        ("test_labels", toy.test_labels[:, None]),
    ):
        with pytest.raises(ValueError, match=f"`{field}` must be uint8 with . dimensions?, got"):
            data.write_images(toy._replace(**{field: wrong}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_other_spellings_and_a_folder_deeper(toy, folder, tmp_path):
    for name in _images.FILES:
        _, plain, dotted, dotted_packed = _images.spellings(name)
        packed_file = path_of(folder, name)
        if name.startswith("train"):
            (folder / "raw").mkdir(exist_ok=True)
            (folder / "raw" / dotted).write_bytes(gzip.decompress(packed_file.read_bytes()))
            packed_file.unlink()
        else:
            packed_file.rename(folder / (plain if name == "test_images" else dotted_packed))
    assert (folder / "raw/train-images.idx3-ubyte").exists()
    assert_equal(data.read_images(folder), toy)
    archive = shutil.make_archive(str(tmp_path / "mnist"), "zip", folder)
    assert_equal(data.read_images(archive), toy)


def test_a_folder_of_the_same_name_is_no_file(toy, folder, tmp_path):
    for name, plain in _images.FILES.items():
        (folder / plain).mkdir()
        path_of(folder, name).rename(folder / plain / plain)
    assert_equal(data.read_images(folder), toy)
    assert_equal(data.read_images(shutil.make_archive(str(tmp_path / "a"), "zip", folder)), toy)


def test_copies_have_to_be_equal(toy, folder):
    data.write_images(toy, folder, compress=False)
    assert_equal(data.read_images(folder), toy)
    data.write_images(toy_images(seed=5), folder, compress=False)
    with pytest.raises(data.DataError, match=r"ubyte.gz and .*ubyte differ. Remove the one"):
        data.read_images(folder)


# What is refused.


def test_a_file_that_is_missing(as_mnist, folder, tmp_path):
    path_of(folder, "test_labels").unlink()
    message = fault(folder)
    assert "holds no t10k-labels-idx1-ubyte.gz, nor t10k-labels-idx1-ubyte," in message
    assert "All 4 files are needed" in message
    one = path_of(folder, "train_images")
    assert f"{one}: this is one file. Name the folder" in fault(one)
    with pytest.raises(FileNotFoundError):
        data.import_dataset("mnist", tmp_path / "none")


def test_files_under_each_others_names(as_mnist, folder):
    images, labels = path_of(folder, "train_images"), path_of(folder, "train_labels")
    images.rename(folder / "x")
    labels.rename(images)
    (folder / "x").rename(labels)
    assert (
        f"{images}: holds 12 labels, where 12 pictures of 28 × 28 are expected. Are files under "
        "each other's names"
    ) in fault(folder)
    with pytest.raises(data.DataError, match=r"holds 12 labels, where pictures are expected"):
        data.read_images(folder)


def test_training_and_test_files_exchanged(toy, monkeypatch, folder):
    exchanged = data.Images(*toy[2:], *toy[:2])
    expect(monkeypatch, exchanged)
    assert f"holds {TRAIN} pictures of 28 × 28, where {TEST} pictures" in fault(folder)


def test_the_true_numbers_are_asked_for(folder):
    assert "holds 12 pictures of 28 × 28, where 60000 pictures of 28 × 28 are expected" in fault(
        folder
    )
    shapes = [published.shape for published in _images.MNIST.values()]
    assert shapes == [(60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,)]


def test_counts_and_sizes_have_to_agree(folder):
    replace(folder, "test_labels", 4, body=bytes(4))
    with pytest.raises(data.DataError, match=r"t10k-images-idx3-ubyte holds 5 pictures and .* 4 l"):
        data.read_images(folder)
    replace(folder, "test_labels", 5, body=bytes(5))
    replace(folder, "test_images", 5, 27, 28, body=bytes(5 * 27 * 28))
    with pytest.raises(data.DataError, match=r"are 28 × 28, those to test on 27 × 28"):
        data.read_images(folder)
    replace(folder, "test_images", 0, 28, 28, body=b"")
    with pytest.raises(data.DataError, match=r"holds 0 pictures of 28 × 28, where pictures are"):
        data.read_images(folder)
    replace(folder, "test_images", 5, 28, body=bytes(140))
    with pytest.raises(data.DataError, match=r"holds an array of 2 dimensions, where pictures"):
        data.read_images(folder)


def test_another_size(as_mnist, folder):
    replace(folder, "train_images", TRAIN, 27, 28, body=bytes(TRAIN * 27 * 28))
    assert "holds 12 pictures of 27 × 28, where 12 pictures of 28 × 28" in fault(folder)


def test_a_label_that_is_no_digit(as_mnist, folder):
    replace(folder, "test_labels", TEST, body=bytes([0, 9, 10, 1, 255]))
    assert "t10k-labels-idx1-ubyte has the label 10 at 2, where 0 to 9 are" in fault(folder)


def test_another_data_set_of_the_same_shape(as_mnist, tmp_path):
    other = data.write_images(toy_images(seed=9), tmp_path / "fashion")
    message = fault(other)
    assert "train-images-idx3-ubyte has the shape of MNIST's, but other contents" in message
    assert "Fashion-MNIST" in message


def test_a_damaged_file_leaves_the_cache_as_it_was(as_mnist, toy, folder, cache):
    file = path_of(folder, "test_images")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert f"{file}: the gzip file is cut short or damaged" in fault(folder)
    file.write_bytes(whole)
    data.import_dataset("mnist", folder)
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    file.write_bytes(whole[:-20])
    with pytest.raises(data.DataError, match="cut short or damaged"):
        data.import_dataset("mnist", folder)
    assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == before
    assert_equal(data.load("mnist"), toy)


# The cache, downloads and commands.


@pytest.fixture(scope="module")
def server():
    with serving({}) as running:
        yield running


@pytest.fixture
def address(server, toy):
    server.files = {f"{_images.FILES[name]}.gz": file for name, file in packed(toy)}
    return f"{server.address}/mnist"


def fetch(url):
    told = []
    return data.fetch("mnist", url=url, tell=told.append), "\n".join(told)


def test_what_is_imported_is_loaded(as_mnist, toy, folder):
    assert_equal(data.import_dataset("mnist", folder), toy)
    assert_equal(data.load("mnist"), toy)
    manifest = data.cached("mnist")
    assert manifest["kind"] == "Images"
    assert manifest["summary"] == "12 pictures, and 5 to test on"
    assert "LeCun" in manifest["citation"]


def test_four_files_are_fetched_and_verified(as_mnist, toy, address):
    value, told = fetch(address + "/")
    assert_equal(value, toy)
    assert_equal(data.load("mnist"), toy)
    assert told.index("Attribution-ShareAlike") < told.index("Downloading")
    assert told.count("SHA-256 verified") == 4
    files = data.cached("mnist")["source"]["files"]
    assert [one["url"] for one in files] == [
        f"{address}/{name}.gz" for name in _images.FILES.values()
    ]


@pytest.mark.parametrize("what", ["absent", "changed", "cut"])
def test_one_bad_file_of_four_keeps_nothing(as_mnist, server, address, cache, what):
    last = "t10k-labels-idx1-ubyte.gz"
    content = server.files.pop(last)
    if what != "absent":
        server.files[last] = content[:-1] + b"x" * (what == "changed")
    with pytest.raises(data.DownloadError, match="404" if what == "absent" else "Nothing was kept"):
        fetch(address)
    assert not (cache / "mnist").exists()


def test_a_fault_in_what_arrived_names_the_address(as_mnist, monkeypatch, address, cache):
    other = _images.MNIST["test_labels"]._replace(shape=(6,), contents="0" * 64)
    monkeypatch.setitem(_images.MNIST, "test_labels", other)
    with pytest.raises(data.DataError) as caught:
        fetch(address)
    assert str(caught.value).startswith(f"{address}/t10k-labels-idx1-ubyte.gz: holds 5 labels")
    assert not (cache / "mnist").exists()


def test_the_published_files_are_known():
    dataset = data.get("mnist")
    assert [file.filename for file in dataset.downloads] == [
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ]
    for file in dataset.downloads:
        assert file.url.startswith("https://")
        assert len(file.sha256) == 64
        assert len(file.md5) == 32


def levymc_data(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_the_commands(as_mnist, folder, address, cache):
    assert "MNIST, 1998" in levymc_data("list").stdout
    result = levymc_data("import", "mnist", "--from", folder)
    assert result.exit_code == 0
    assert result.stdout == f"mnist: 12 pictures, and 5 to test on, in {cache / 'mnist'}\n"
    assert "12 pictures, and 5 to test on" in levymc_data("list").stdout
    result = levymc_data("fetch", "mnist", "--force", "--url", address)
    assert result.exit_code == 0
    assert result.stdout.count("Downloading") == 4
    assert "levymc data import mnist" in levymc_data("import", "--help").stdout


def test_commands_that_cannot_be_done(as_mnist, folder, address):
    refused = levymc_data("fetch", "mnist", "--url", address, "--sha256", "0" * 64)
    assert refused.exit_code == 2
    assert "`sha256` is for one file; mnist has 4" in refused.stderr
    assert "Leave it out" in refused.stderr
    path_of(folder, "train_labels").unlink()
    refused = levymc_data("import", "mnist", "--from", folder)
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"levymc: {folder}: holds no train-labels-idx1-ubyte.gz")
    assert levymc_data("import", "mnist", "--from", folder / "none").exit_code == 3


# Binary pictures.


@pytest.fixture(scope="module")
def greys():
    return data.synthetic_images(300, seed=3)


def test_the_law_of_the_bits():
    """Each grey's share of ones, that of all, and that of equal neighbours.

    False-alarm rate 1e-6 in all, by Hoeffding's inequality with a third each.  Detects a share
    that is off by 0.033 at one grey or by 0.0018 for all together (as when one divides by 256),
    and successive pictures whose bits agree more often than in half the cases by 0.0063.
    """
    count, pixels = 50, 784
    pictures = np.broadcast_to(GREYS.astype(np.uint8)[:, None], (256, count * pixels))
    ones = data.binarize(pictures, seed=4).mean(axis=1)
    assert ones[0] == 0
    assert ones[255] == 1
    rate = 1e-6 / 3
    deviation = np.sqrt(np.log(2 * 256 / rate) / (2 * count * pixels))
    assert np.max(np.abs(ones - GREYS / 255)) < deviation
    deviation = np.sqrt(np.log(2 / rate) / (2 * 256 * count * pixels))
    assert abs(ones.mean() - 0.5) < deviation
    half = data.binarize(np.full((1001, pixels), 0.5), seed=5)
    assert abs(np.mean(half[1:] == half[:-1]) - 0.5) < np.sqrt(np.log(2 / rate) / 2e3 / pixels)


def test_the_bits_are_the_same_everywhere():
    picture = np.full((2, 3, 4), 128, np.uint8)
    assert data.binarize(picture).tolist() == data.binarize(picture, seed=0).tolist()
    assert ["".join(map(str, row)) for row in data.binarize(picture)] == BITS


def test_a_picture_depends_on_seed_and_place_only(greys, monkeypatch):
    images, _ = greys
    whole = data.binarize(images, seed=7)
    np.testing.assert_array_equal(data.binarize(images[:41], seed=7), whole[:41])
    changed = images.copy()
    changed[:41] = 255 - changed[:41]
    np.testing.assert_array_equal(data.binarize(changed, seed=7)[41:], whole[41:])
    monkeypatch.setattr("levymc_lab.data._images.WORDS_AT_ONCE", 5 * 784)
    np.testing.assert_array_equal(data.binarize(images, seed=7), whole)
    assert np.any(data.binarize(images, seed=8) != whole)


def test_shares_of_ink_give_the_same(greys):
    images, _ = greys
    expected = data.binarize(images, seed=2)
    np.testing.assert_array_equal(data.binarize(images / 255, seed=2), expected)
    np.testing.assert_array_equal(data.binarize(images.reshape(300, -1), seed=2), expected)
    assert expected.shape == (300, 784)
    assert expected.dtype == np.uint8
    ink = jnp.asarray([[0.0, 1.0]] * 3, jnp.float32)
    assert data.binarize(ink).tolist() == [[0, 1]] * 3
    assert data.binarize(ink.astype(jnp.bfloat16)).tolist() == [[0, 1]] * 3


def test_a_threshold():
    row = GREYS.astype(np.uint8)[None]
    np.testing.assert_array_equal(data.binarize(row, threshold=0.5)[0], GREYS > 127)
    np.testing.assert_array_equal(data.binarize(row / 255, None, 0.25)[0], GREYS > 63)
    assert data.binarize(np.array([[0.5, 0.51]]), threshold=0.5).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (np.zeros((2, 3), np.int64), {}, TypeError, "must be uint8 or floating, got int64"),
        (np.zeros((2, 3), bool), {}, TypeError, "must be uint8 or floating, got bool"),
        (np.zeros(3), {}, ValueError, r"shape \(count, …\), got \(3,\)"),
        (np.zeros((3, 0)), {}, ValueError, r"got \(3, 0\)"),
        (np.ones((2, 3), np.uint8), {}, ValueError, "which are binary already"),
        (np.array([[0, 1.5]]), {}, ValueError, r"lie in \[0, 1\], got 1.5 at index \(0, 1\)"),
        (np.array([[0, -0.1]]), {}, ValueError, r"got -0.1"),
        (np.array([[0, np.nan]]), {}, ValueError, r"got nan"),
        (np.zeros((2, 3)), {"seed": -1}, ValueError, "`seed` must not be negative, got -1"),
        (np.zeros((2, 3)), {"seed": None}, TypeError, "Give a whole number from 0, or a threshold"),
        (np.zeros((2, 3)), {"threshold": 0.0}, ValueError, r"must lie in \(0, 1\), got 0.0"),
        (np.zeros((2, 3)), {"threshold": 1.0}, ValueError, r"must lie in \(0, 1\), got 1.0"),
        (np.zeros((2, 3)), {"threshold": float("nan")}, ValueError, "got nan. It is a share"),
    ],
)
def test_what_cannot_be_binarised(images, options, error, message):
    with pytest.raises(error, match=message):
        data.binarize(images, **options)


def test_no_pictures_are_no_pictures():
    assert data.binarize(np.zeros((0, 28, 28), np.uint8)).shape == (0, 784)
