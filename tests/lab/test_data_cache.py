"""The cache: whole or absent, verified, and silent about where things lay."""

import json

import numpy as np
import pytest
from tests.lab.toy_experiment import contents
from tests.lab.toy_ratings import DAT_TEXT, TAB_TEXT, register_toy, triples, zipped

from levymc._workdir import lock
from levymc_lab import data
from levymc_lab.data import _cache, _movielens


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    register_toy(monkeypatch)
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path):
    return zipped(tmp_path / "toy.zip", {"toy/ratings.dat": DAT_TEXT})


def test_what_is_imported_is_loaded(cache, source):
    imported = data.import_dataset("toy", source)
    loaded = data.load("toy")
    assert type(loaded) is data.Ratings
    for one, other in zip(imported, loaded, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    manifest = data.cached("toy")
    assert manifest["summary"] == "3 ratings"
    assert manifest["licence"] == "Play with it."
    assert manifest["source"]["file"] == "toy.zip"
    assert str(cache.parent) not in json.dumps(manifest)


def test_the_same_data_give_the_same_files(cache, source, tmp_path):
    data.import_dataset("toy", source)
    data.import_dataset("toy", source, tmp_path / "other")
    assert contents(cache) == contents(tmp_path / "other")


def test_what_is_missing_is_told_with_the_commands(cache):
    with pytest.raises(data.MissingDataError) as caught:
        data.load("ml-1m")
    assert "levymc data import ml-1m --from PATH" in str(caught.value)
    assert "levymc data fetch ml-1m" in str(caught.value)
    assert data.cached("ml-1m") is None
    with pytest.raises(data.DataError, match=r"Did you mean ml-1m\?"):
        data.load("ml1m")
    with pytest.raises(data.DataError, match="There are: ml-100k"):
        data.load("zzz")


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    assert data.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("LEVYMC_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.cache_folder() == tmp_path / "levymc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.cache_folder() == tmp_path / ".cache/levymc"


def test_a_bad_import_leaves_the_cache_as_it_was(cache, source, tmp_path):
    bad = tmp_path / "bad.dat"
    bad.write_text(DAT_TEXT + "1::2::9::4\n")
    with pytest.raises(data.DataError, match=r"bad.dat:4: unknown rating '9'"):
        data.import_dataset("toy", bad)
    assert not cache.exists()
    data.import_dataset("toy", source)
    before = contents(cache)
    with pytest.raises(data.DataError):
        data.import_dataset("toy", bad)
    assert contents(cache) == before


@pytest.mark.parametrize("step", ["savez", "flush", "atomic_bytes"])
def test_a_full_disk_leaves_the_old_data_set(cache, source, tmp_path, monkeypatch, step):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    def fail(patch):
        patch.setattr(np if step == "savez" else _cache, step, full)

    with monkeypatch.context() as patch:
        fail(patch)
        with pytest.raises(OSError, match="No space"):
            data.import_dataset("toy", source)
    assert not (cache / "toy").exists()
    data.import_dataset("toy", source)
    before = contents(cache)
    other = tmp_path / "other.dat"
    other.write_text("1::2::3::4\n")
    with monkeypatch.context() as patch:
        fail(patch)
        with pytest.raises(OSError, match="No space"):
            data.import_dataset("toy", other)
    assert contents(cache) == before
    assert data.load("toy").num_ratings == 3
    data.import_dataset("toy", other)
    assert data.load("toy").num_ratings == 1
    assert len(list((cache / "toy").iterdir())) == 2


def test_half_written_files_of_a_killed_process_are_removed(cache, source):
    leftovers = cache / "toy/abc.partial"
    leftovers.mkdir(parents=True)
    (leftovers / "toy.zip").write_text("half")
    (cache / "toy/12.npz.partial").write_text("half")
    data.import_dataset("toy", source)
    assert not list((cache / "toy").glob("*.partial"))


def test_two_imports_at_a_time_are_refused(cache, source):
    (cache / "toy").mkdir(parents=True)
    with lock(cache / "toy"), pytest.raises(data.CacheError, match="in use by another process"):
        data.import_dataset("toy", source)
    data.import_dataset("toy", source)


def test_changed_files_are_found(cache, source):
    data.import_dataset("toy", source)
    (file,) = (cache / "toy").glob("*.npz")
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(data.CacheError, match="is missing or not what was written"):
        data.load("toy")
    file.unlink()
    with pytest.raises(data.CacheError, match="Import the data set again"):
        data.load("toy")
    data.import_dataset("toy", source)
    manifest = cache / "toy/manifest.json"
    for text in ("{", "[]", '{"format": 99}', '{"format": 1}'):
        manifest.write_text(text)
        with pytest.raises(data.CacheError):
            data.load("toy")


def test_a_manifest_leads_nowhere_else(cache, source, tmp_path):
    data.import_dataset("toy", source)
    path = cache / "toy/manifest.json"
    manifest = json.loads(path.read_text())
    (tmp_path / "outside.npz").write_bytes((cache / "toy" / manifest["file"]).read_bytes())
    path.write_text(json.dumps(manifest | {"file": "../../outside.npz"}))
    with pytest.raises(data.CacheError):
        data.load("toy")


def test_python_objects_are_never_pickled(cache, source):
    folder = cache / "toy"
    folder.mkdir(parents=True)
    value = data.import_dataset("toy", source)._replace(levels=np.array([{}, {}, {}]))
    with pytest.raises(TypeError, match="`levels` must not hold Python objects"):
        _cache.store(folder, data.Ratings, value, {})


def test_another_data_set_is_refused(tmp_path, monkeypatch, cache):
    file = tmp_path / "u.data"
    file.write_text(TAB_TEXT)
    with pytest.raises(data.DataError, match=r"expected ratings.dat with '::'"):
        data.import_dataset("ml-1m", file)
    with pytest.raises(data.DataError, match=r"3 ratings, where ml-100k has 100000. Is it whole"):
        data.import_dataset("ml-100k", file)
    others = {"ml-other": _movielens.CONTENTS["ml-1m"]._replace(num_ratings=3)}
    monkeypatch.setattr(_movielens, "CONTENTS", _movielens.CONTENTS | others)
    with pytest.raises(data.DataError, match="That is the number of ml-other"):
        data.import_dataset("ml-100k", file)
    dat = tmp_path / "ratings.dat"
    dat.write_text("1::2::3.5::4\n")
    with pytest.raises(data.DataError, match=r"ratings.dat:1: unknown rating '3.5'.*are 1, 2"):
        data.import_dataset("ml-1m", dat)
    assert not cache.exists()


def test_what_may_change_with_time_may_have_any_size(tmp_path):
    made = data.synthetic(30, 40, 500)
    data.write(made, tmp_path / "ratings.csv")
    imported = data.import_dataset("ml-latest-small", tmp_path)
    assert triples(imported) == triples(made)
    assert data.cached("ml-latest-small")["summary"] == "500 ratings of 40 items by 30 users"
