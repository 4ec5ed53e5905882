"""MNIST: its four files however they lie, what is refused, and the way through the cache."""

import gzip
import shutil

import numpy as np
import pytest
from tests.lab.test_data_fetch import Handler, serving
from tests.lab.toy_images import TEST, TRAIN, expect, idx, packed, path_of, toy_images
from typer.testing import CliRunner

from levymc_lab import data
from levymc_lab.cli import app
from levymc_lab.data import _images, _mnist


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
    shapes = [contents.shape for contents in _mnist.CONTENTS.values()]
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


class FilesHandler(Handler):
    """Serves the files of its server by name."""

    def do_GET(self):
        content = self.server.files.get(self.path.rpartition("/")[2])
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def served():
    with serving(FilesHandler) as server:
        yield server


@pytest.fixture
def address(served, toy):
    served.files = {f"{_images.FILES[name]}.gz": file for name, file in packed(toy)}
    return f"http://127.0.0.1:{served.server_port}/mnist"


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
def test_one_bad_file_of_four_keeps_nothing(as_mnist, served, address, cache, what):
    last = "t10k-labels-idx1-ubyte.gz"
    content = served.files.pop(last)
    if what != "absent":
        served.files[last] = content[:-1] + b"x" * (what == "changed")
    with pytest.raises(data.DownloadError, match="404" if what == "absent" else "Nothing was kept"):
        fetch(address)
    assert not (cache / "mnist").exists()


def test_a_fault_in_what_arrived_names_the_address(as_mnist, monkeypatch, address, cache):
    contents = {**_mnist.CONTENTS, "test_labels": _mnist.Contents((6,), "0" * 64)}
    monkeypatch.setattr(_mnist, "CONTENTS", contents)
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
