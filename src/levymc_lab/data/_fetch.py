"""Data sets into the cache from their publishers.

Not by pooch: it shows no licence, trusts any file without a known checksum, and would put a
download into place before it has been read and found to be the data set.
"""

import http.client
import os
import re
import socket
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ._dataset import DataError, Dataset, Download, DownloadError
from ._store import cache_folder, digest_of, exclusive, get, keep

TIMEOUT = 60.0  # seconds without a byte
TOTAL_SECONDS = 2 * 3600.0  # of a file: 27 kB a second for the largest
CHUNK = 2**18
MOST_BYTES = 2 * 2**30
AGENT = "levymc"

Progress = Callable[[int, int | None], None]


def fetch(
    name: str,
    cache: str | os.PathLike[str] | None = None,
    url: str | None = None,
    *,
    sha256: str | None = None,
    trust_first_download: bool = False,
    tell: Callable[[str], None] = print,
    on_progress: Progress | None = None,
) -> Any:
    """Download a data set, verify its checksum, and keep it in the cache.

    The licence is shown first: to use the data is to accept it.  A file that takes longer than two
    hours is given up.

    Args:
        name: of the data set; `levymc_lab.data.names()` has them.
        cache: the folder to keep it in; see `levymc_lab.data.cache_folder`.
        url: another address than the official one; of the folder where there are several files.
        sha256: of the file, where none is known, or to go by instead of the known one.
        trust_first_download: where no checksum is known, take what comes, and show its SHA-256.
        tell: is given the licence, and what arrived.
        on_progress: is given the bytes so far, and all of them where the server reports these.

    Returns:
        What `levymc_lab.data.load` gives.

    Raises:
        DataError: no checksum to go by; a fault in the data.  The cache stays as it was.
        DownloadError: nothing arrived, or not what was published.  Likewise.
    """
    dataset = get(name)
    files = _with_choices(dataset, url, sha256)
    _check_trust(dataset, files, trust_first_download)
    tell(f"{dataset.title}\n\n{dataset.licence}\nPlease cite: {dataset.citation}\n")
    folder = cache_folder(cache) / name
    with (
        exclusive(folder),
        tempfile.TemporaryDirectory(suffix=".partial", dir=folder) as scratch,
    ):
        sources = [_arrived(file, Path(scratch), tell, on_progress) for file in files]
        whole = Path(scratch) / files[0].filename if len(files) == 1 else Path(scratch)
        value = _read(dataset, whole, files)
        keep(dataset, folder, value, sources[0] if len(files) == 1 else {"files": sources})
    return value


def _with_choices(dataset: Dataset, url: str | None, sha256: str | None) -> list[Download]:
    files = list(dataset.downloads)
    if sha256 is not None:
        if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
            raise DataError(f"`sha256` must have 64 hexadecimal digits, got {sha256!r}.")
        if len(files) > 1:
            raise DataError(
                f"`sha256` is for one file; {dataset.name} has {len(files)}, each with a checksum "
                "of its own. Leave it out."
            )
        files = [files[0]._replace(sha256=sha256.lower(), md5=None)]
    if url is None:
        return files
    if len(files) == 1:
        return [files[0]._replace(url=url)]
    return [file._replace(url=f"{url.rstrip('/')}/{file.filename}") for file in files]


def _check_trust(dataset: Dataset, files: list[Download], trust_first_download: bool) -> None:
    unknown = [file.filename for file in files if file.sha256 is None and file.md5 is None]
    if unknown and not trust_first_download:
        own = "Give one with --sha256, or take" if len(files) == 1 else "Take"
        raise DataError(
            f"No checksum is known for {', '.join(unknown)} of {dataset.name}. {own} what comes "
            "with --trust-first-download."
        )


def _arrived(
    file: Download, folder: Path, tell: Callable[[str], None], on_progress: Progress | None
) -> dict[str, Any]:
    tell(f"Downloading {file.url}")
    path = folder / file.filename
    download(file.url, path, on_progress)
    sha256 = digest_of(path)
    _verify(file.url, "SHA-256", sha256, file.sha256)
    _verify(file.url, "MD5", digest_of(path, "md5"), file.md5)
    verdict = "not verified: no checksum is known"
    if file.sha256 or file.md5:
        verdict = "SHA-256 verified" if file.sha256 else "published MD5 verified"
    tell(f"{file.filename}: {verdict}. SHA-256 {sha256}")
    return {"file": file.filename, "url": file.url, "sha256": sha256}


def _verify(url: str, name: str, measured: str, expected: str | None) -> None:
    if expected not in (None, measured):
        raise DownloadError(
            f"{url}: the {name} is {measured}, expected {expected}. Nothing was kept. "
            "Try again; if it stays so, the file is not the one that was published."
        )


def _read(dataset: Dataset, path: Path, files: list[Download]) -> Any:
    """Read what arrived; in messages its address stands for the scratch file."""
    try:
        return dataset.read(path)
    except DataError as error:
        address = files[0].url if len(files) == 1 else files[0].url.rpartition("/")[0]
        raise DataError(str(error).replace(str(path), address)) from None


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, request: Any, *rest: Any) -> Any:
        target = super().redirect_request(request, *rest)
        if target is not None and request.type == "https" and target.type != "https":
            raise DownloadError(
                f"{request.full_url} redirects to {target.full_url}, which is not encrypted."
            )
        return target


class _Deadline:
    """Cuts all connections off when the time is over, wherever they wait: for headers, or data.

    A server that sends a byte a minute keeps within every limit on silence.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.is_over = seconds, False
        self.sockets: list[socket.socket] = []
        self.lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        timer = threading.Timer(self.seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def opener(self) -> urllib.request.OpenerDirector:
        """One whose connections end then."""
        handlers = (_Plain(), _Encrypted())
        for handler in handlers:
            handler.deadline = self
        return urllib.request.build_opener(_SecureRedirects, *handlers)

    def watch(self, kind: type[http.client.HTTPConnection], *given: Any, **options: Any) -> Any:
        connection = kind(*given, **options)
        connect = connection.connect

        def watched() -> None:
            connect()
            with self.lock:
                self.sockets.append(connection.sock)
            if self.is_over:
                self._end()

        connection.connect = watched  # type: ignore[method-assign]
        return connection

    def _end(self) -> None:
        self.is_over = True
        with self.lock, suppress(OSError):  # closed already
            for one in self.sockets:
                # Of the plain socket: that of an encrypted one is in use by the other thread.
                socket.socket.shutdown(one, socket.SHUT_RDWR)


class _Plain(urllib.request.HTTPHandler):
    deadline: _Deadline

    def http_open(self, request: Any) -> Any:
        return self.do_open(partial(self.deadline.watch, http.client.HTTPConnection), request)


class _Encrypted(urllib.request.HTTPSHandler):
    deadline: _Deadline

    def https_open(self, request: Any) -> Any:
        return self.do_open(partial(self.deadline.watch, http.client.HTTPSConnection), request)


def download(url: str, path: Path, on_progress: Progress | None = None) -> None:
    """Load `url`, http or https, down into `path`, in two hours at most.

    Raises:
        DataError: an address that is none.
        DownloadError: it did not arrive, or not whole.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise DataError(f"`url` must begin with https:// or http://, got {url!r}.")
    deadline = _Deadline(TOTAL_SECONDS)
    try:
        with deadline.running():
            _load(url, path, on_progress, deadline.opener())
    except Exception:
        if not deadline.is_over:
            raise
    if deadline.is_over:  # also where the end of a connection passes for that of the file
        raise DownloadError(
            f"{url} took longer than {TOTAL_SECONDS / 60:g} minutes. Download it by other means, "
            "and import the copy with levymc data import."
        )


def _load(
    url: str, path: Path, on_progress: Progress | None, opener: urllib.request.OpenerDirector
) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})
    try:
        with opener.open(request, timeout=TIMEOUT) as response, path.open("wb") as file:
            _receive(url, response, file, on_progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{url}: the server answers {error.code} {error.reason}.") from None
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise DownloadError(
            f"{url} cannot be reached ({reason}). Try again later, or import a copy with "
            "levymc data import."
        ) from None


def _receive(url: str, response: Any, file: IO[bytes], on_progress: Progress | None) -> None:
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    done = 0
    while chunk := response.read(CHUNK):
        done += len(chunk)
        if done > MOST_BYTES:
            raise DownloadError(f"{url} sends more than {MOST_BYTES // 2**30} GB.")
        file.write(chunk)
        if on_progress is not None:
            on_progress(done, total)
    if total is not None and done != total:
        raise DownloadError(f"{url} broke off after {done} of {total} bytes. Try again.")
