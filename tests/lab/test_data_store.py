"""The cache: whole or absent, verified, silent about where things lay; downloads and commands."""

import hashlib
import json
import os
import time
import urllib.request

import numpy as np
import pytest
from tests.lab.http_server import serving
from tests.lab.toy_experiment import contents
from tests.lab.toy_ratings import DAT_TEXT, TAB_TEXT, describe_toy, register_toy, triples, zipped
from typer.testing import CliRunner

from levymc._workdir import lock
from levymc_lab import data
from levymc_lab.cli import app
from levymc_lab.data import _fetch, _movielens, _store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    register_toy(monkeypatch)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
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


def test_other_files_in_the_folder_and_odd_names_of_sources_are_let_be(cache, source):
    """Where --cache is the folder that the data came in, arrays of one's own were removed."""
    own = cache / "toy" / "mine.npz"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"mine")
    data.import_dataset("toy", source.rename(source.parent / os.fsdecode(b"t\xffy.zip")))
    assert own.read_bytes() == b"mine"
    assert data.cached("toy")["source"]["file"] == "t?y.zip"


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
        patch.setattr(np if step == "savez" else _store, step, full)

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
        _store.keep(describe_toy("toy"), folder, value, {})


def test_another_data_set_is_refused(tmp_path, monkeypatch, cache):
    file = tmp_path / "u.data"
    file.write_text(TAB_TEXT)
    with pytest.raises(data.DataError, match=r"expected ratings.dat with '::'"):
        data.import_dataset("ml-1m", file)
    with pytest.raises(data.DataError, match=r"3 ratings, where ml-100k has 100000. Is it whole"):
        data.import_dataset("ml-100k", file)
    other = _movielens.EDITIONS["ml-1m"]._replace(num_ratings=3)
    monkeypatch.setitem(_movielens.EDITIONS, "ml-other", other)
    with pytest.raises(data.DataError, match="That is the number of ml-other"):
        data.import_dataset("ml-100k", file)
    dat = tmp_path / "ratings.dat"
    dat.write_text("1::2::3.5::4\n")
    with pytest.raises(data.DataError, match=r"ratings.dat:1: unknown rating '3.5'.*are 1, 2"):
        data.import_dataset("ml-1m", dat)
    assert not cache.exists()


def test_what_may_change_with_time_may_have_any_size(tmp_path):
    ratings = data.synthetic(30, 40, 500)
    data.write(ratings, tmp_path / "ratings.csv")
    imported = data.import_dataset("ml-latest-small", tmp_path)
    assert triples(imported) == triples(ratings)
    assert data.cached("ml-latest-small")["summary"] == "500 ratings of 40 items by 30 users"


# Downloads: the licence first, then verified, whole or nothing.


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With the archive at /toy.zip."""
    path = zipped(tmp_path_factory.mktemp("served") / "toy.zip", {"toy/ratings.dat": DAT_TEXT})
    with serving({"toy.zip": path.read_bytes()}) as running:
        yield running


@pytest.fixture
def address(server):
    return server.address


def fetch(url, **options):
    """What was told, and the data set."""
    told = []
    value = data.fetch("toy", url=url, tell=told.append, **options)
    return "\n".join(told), value


def checksums(server):
    archive = server.files["toy.zip"]
    return {
        "sha256": hashlib.sha256(archive).hexdigest(),
        "md5": hashlib.md5(archive).hexdigest(),
    }


@pytest.mark.parametrize("known", [("sha256",), ("md5",), ("sha256", "md5")])
def test_a_known_checksum_is_verified(server, address, monkeypatch, known):
    right = checksums(server)
    register_toy(monkeypatch, **{name: right[name] for name in known})
    progress = []
    told, value = fetch(f"{address}/toy.zip", on_progress=lambda *step: progress.append(step))
    assert value.num_ratings == data.load("toy").num_ratings == 3
    assert told.index("Play with it.") < told.index("Nobody. 2000") < told.index("Downloading")
    assert f"verified. SHA-256 {right['sha256']}" in told
    assert progress[-1] == (len(server.files["toy.zip"]), len(server.files["toy.zip"]))
    source = data.cached("toy")["source"]
    assert source["sha256"] == right["sha256"]
    assert source["url"] == f"{address}/toy.zip"


@pytest.mark.parametrize(("kind", "digits"), [("sha256", 64), ("md5", 32)])
def test_another_checksum_keeps_nothing(address, monkeypatch, cache, kind, digits):
    register_toy(monkeypatch, **{kind: "0" * digits})
    with pytest.raises(data.DownloadError, match=f"expected {'0' * digits}. Nothing was kept"):
        fetch(f"{address}/toy.zip")
    assert not (cache / "toy").exists()


def test_without_a_known_checksum_one_has_to_say_what_to_trust(server, address, cache):
    with pytest.raises(data.DataError, match="--sha256, or take what comes with --trust-first"):
        fetch(f"{address}/toy.zip")
    with pytest.raises(data.DataError, match="`sha256` must have 64 hexadecimal digits"):
        fetch(f"{address}/toy.zip", sha256="123")
    with pytest.raises(data.DownloadError, match="expected 000"):
        fetch(f"{address}/toy.zip", sha256="0" * 64)
    assert not (cache / "toy").exists()
    right = checksums(server)["sha256"]
    assert "SHA-256 verified" in fetch(f"{address}/toy.zip", sha256=right.upper())[0]
    told, _ = fetch(f"{address}/moved", trust_first_download=True)
    assert f"not verified: no checksum is known. SHA-256 {right}" in told


@pytest.mark.parametrize(
    ("path", "message"),
    [("/short.zip", r"broke off after \d+ of \d+ bytes"), ("/none.zip", "answers 404 Not Found")],
)
def test_what_does_not_arrive_keeps_nothing(address, cache, path, message):
    with pytest.raises(data.DownloadError, match=message):
        fetch(address + path, trust_first_download=True)
    assert not (cache / "toy").exists()


def test_a_server_that_is_not_there(server, monkeypatch, cache):
    with pytest.raises(data.DownloadError, match=r"cannot be reached .*levymc data import"):
        fetch("http://127.0.0.1:1/toy.zip", trust_first_download=True)
    for url in ("file:///etc/passwd", "ftp://127.0.0.1/toy.zip", "toy.zip", "https://"):
        with pytest.raises(data.DataError, match="must begin with https:// or http://"):
            fetch(url, trust_first_download=True)
    assert not (cache / "toy").exists()


def test_a_download_that_does_not_end(address, monkeypatch, cache):
    monkeypatch.setattr(_fetch, "MOST_BYTES", 100)
    with pytest.raises(data.DownloadError, match="sends more than"):
        fetch(f"{address}/endless.zip", trust_first_download=True)
    assert not (cache / "toy").exists()


@pytest.mark.parametrize("name", ["slow.zip", "slow-headers"])
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(address, cache, monkeypatch, name):
    """No pause is long: what is too long is the whole."""
    monkeypatch.setattr(_fetch, "TOTAL_SECONDS", 0.3)
    begun = time.monotonic()
    with pytest.raises(data.DownloadError, match=r"took longer than .* minutes.*data import"):
        fetch(f"{address}/{name}", trust_first_download=True)
    assert time.monotonic() - begun < 60  # it would go on for ever
    assert not (cache / "toy").exists()


def test_no_redirect_leaves_encryption():
    request = urllib.request.Request("https://127.0.0.1/a")
    handler = _fetch._SecureRedirects()
    with pytest.raises(data.DownloadError, match="which is not encrypted"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://127.0.0.1/b")
    target = handler.redirect_request(request, None, 302, "Found", {}, "https://127.0.0.1/b")
    assert target.full_url == "https://127.0.0.1/b"


def test_a_fault_in_what_arrived_names_the_address(server, address, monkeypatch, tmp_path, cache):
    bad = zipped(tmp_path / "bad.zip", {"toy/ratings.dat": DAT_TEXT + "1::2::9::4\n"})
    monkeypatch.setitem(server.files, "toy.zip", bad.read_bytes())
    with pytest.raises(data.DataError) as caught:
        fetch(f"{address}/toy.zip", trust_first_download=True)
    assert str(caught.value).startswith(f"{address}/toy.zip/toy/ratings.dat:4: unknown rating")
    assert not (cache / "toy").exists()


def test_an_interrupt_keeps_the_old_data_set(address, cache):
    fetch(f"{address}/toy.zip", trust_first_download=True)
    before = sorted(path.name for path in (cache / "toy").iterdir())

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{address}/toy.zip", trust_first_download=True, on_progress=interrupt)
    assert sorted(path.name for path in (cache / "toy").iterdir()) == before
    assert data.load("toy").num_ratings == 3


def test_several_files_are_read_as_a_folder(address, monkeypatch):
    def describe(name):
        toy = describe_toy(name)
        files = (toy.downloads[0], toy.downloads[0]._replace(url="https://nowhere.invalid/moved"))
        return toy._replace(downloads=files)

    monkeypatch.setitem(_store.DATASETS, "toy", describe)
    _, value = fetch(address, trust_first_download=True)
    assert value.num_ratings == 3
    files = data.cached("toy")["source"]["files"]
    assert [one["file"] for one in files] == ["toy.zip", "moved"]
    with pytest.raises(data.DataError, match="`sha256` is for one file"):
        fetch(address, sha256="0" * 64)


# What the commands print, and how they end.


def levymc_data(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_import_and_list(cache, source):
    before = levymc_data("list").stdout
    assert "ml-20m" in before
    assert "3 ratings" not in before
    result = levymc_data("import", "toy", "--from", source)
    assert result.exit_code == 0
    assert result.stdout == f"toy: 3 ratings, in {cache / 'toy'}\n"
    after = levymc_data("list").stdout
    assert "3 ratings" in after
    assert str(cache) in after
    (cache / "toy/manifest.json").write_text("{")
    assert "broken: import it again" in levymc_data("list").stdout


def test_a_cache_of_ones_own(source, tmp_path, cache):
    own = tmp_path / "own"
    assert levymc_data("import", "toy", "--from", source, "--cache", own).exit_code == 0
    assert (own / "toy/manifest.json").exists()
    assert not cache.exists()


def test_bad_input_ends_with_2_and_one_sentence(source, tmp_path, cache):
    bad = tmp_path / "ratings.dat"
    bad.write_text(DAT_TEXT + "1::2::9::4\n")
    for arguments, message in (
        (["import", "toy", "--from", bad], f"{bad}:4: unknown rating '9'"),
        (["import", "tyo", "--from", source], "Did you mean toy?"),
        (["fetch", "toy"], "--trust-first-download"),
        (["fetch", "ml-latest-small"], "--trust-first-download"),
        (["fetch", "toy", "--url", "file:///etc/passwd", "--trust-first-download"], "https://"),
    ):
        result = levymc_data(*arguments)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("levymc: ")
        assert message in line
    assert levymc_data("import", "toy").exit_code == 2
    assert not list(cache.glob("*/*"))


def test_io_problems_end_with_3(source, tmp_path, cache):
    result = levymc_data("import", "toy", "--from", tmp_path / "none")
    assert result.exit_code == 3
    assert "No such file" in result.stderr
    cache.write_text("a file where the folder should be")
    assert levymc_data("import", "toy", "--from", source).exit_code == 3


def test_fetch_shows_the_licence_and_does_not_load_twice(address):
    options = ["--url", f"{address}/toy.zip", "--trust-first-download"]
    result = levymc_data("fetch", "toy", *options)
    assert result.exit_code == 0
    assert result.stdout.index("Play with it.") < result.stdout.index("Downloading")
    assert "toy: 3 ratings" in result.stdout
    again = levymc_data("fetch", "toy", *options)
    assert again.exit_code == 0
    assert "Downloading" not in again.stdout
    failed = levymc_data("fetch", "toy", "--force", "--url", f"{address}/none", *options[2:])
    assert failed.exit_code == 3
    assert "404" in failed.stderr
    assert levymc_data("fetch", "toy").exit_code == 0


def test_help_has_examples_and_exit_codes():
    assert "levymc data fetch ml-1m" in levymc_data("fetch", "--help").stdout
    assert "130" in levymc_data("fetch", "--help").stdout
    assert "import" in levymc_data("--help").stdout
