"""Downloads from a server on this machine: verified, whole or nothing, the licence first."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.lab.toy_ratings import DAT_TEXT, describe_toy, register_toy, zipped

from levymc_lab import data
from levymc_lab.data import _download, _registry


class Handler(BaseHTTPRequestHandler):
    """Serves the archive as it is, cut short, or not at all."""

    def do_GET(self):
        archive = self.server.archive
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/toy.zip")
            self.end_headers()
        elif self.path in ("/toy.zip", "/short.zip", "/endless.zip"):
            self.send_response(200)
            if self.path != "/endless.zip":
                self.send_header("Content-Length", str(len(archive)))
            self.end_headers()
            self.wfile.write(archive[:-10] if self.path == "/short.zip" else archive)
        else:
            self.send_error(404)

    def log_message(self, *_):
        """Nothing."""


@contextmanager
def serving(handler):
    """A server on a free port of this machine."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With the archive at /toy.zip."""
    path = zipped(tmp_path_factory.mktemp("served") / "toy.zip", {"toy/ratings.dat": DAT_TEXT})
    with serving(Handler) as served:
        served.archive = path.read_bytes()
        yield served


@pytest.fixture
def address(server):
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    register_toy(monkeypatch)
    return tmp_path / "cache"


def fetch(url, **options):
    """What was told, and the data set."""
    told = []
    value = data.fetch("toy", url=url, tell=told.append, **options)
    return "\n".join(told), value


def checksums(server):
    archive = server.archive
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
    assert progress[-1] == (len(server.archive), len(server.archive))
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
    monkeypatch.setattr(_download, "MOST_BYTES", 100)
    with pytest.raises(data.DownloadError, match="sends more than"):
        fetch(f"{address}/endless.zip", trust_first_download=True)
    assert not (cache / "toy").exists()


def test_no_redirect_leaves_encryption():
    import urllib.request

    request = urllib.request.Request("https://127.0.0.1/a")
    handler = _download._SecureRedirects()
    with pytest.raises(data.DownloadError, match="which is not encrypted"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://127.0.0.1/b")
    target = handler.redirect_request(request, None, 302, "Found", {}, "https://127.0.0.1/b")
    assert target.full_url == "https://127.0.0.1/b"


def test_a_fault_in_what_arrived_names_the_address(server, address, monkeypatch, tmp_path, cache):
    bad = zipped(tmp_path / "bad.zip", {"toy/ratings.dat": DAT_TEXT + "1::2::9::4\n"})
    monkeypatch.setattr(server, "archive", bad.read_bytes())
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

    monkeypatch.setitem(_registry.DATASETS, "toy", describe)
    _, value = fetch(address, trust_first_download=True)
    assert value.num_ratings == 3
    files = data.cached("toy")["source"]["files"]
    assert [one["file"] for one in files] == ["toy.zip", "moved"]
    with pytest.raises(data.DataError, match="`sha256` is for one file"):
        fetch(address, sha256="0" * 64)
