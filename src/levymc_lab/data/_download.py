"""One published file over HTTP, with its checksums."""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from ._errors import DataError, DownloadError

TIMEOUT = 60.0  # seconds without a byte
CHUNK = 2**18
MOST_BYTES = 2 * 2**30
AGENT = "levymc"

Progress = Callable[[int, int | None], None]


class Checksums(NamedTuple):
    """Of a file that has arrived."""

    sha256: str
    md5: str


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, request: Any, *rest: Any) -> Any:
        target = super().redirect_request(request, *rest)
        if target is not None and request.type == "https" and target.type != "https":
            raise DownloadError(
                f"{request.full_url} redirects to {target.full_url}, which is not encrypted."
            )
        return target


def download(url: str, path: Path, on_progress: Progress | None = None) -> Checksums:
    """Load `url` down into `path`.

    Args:
        url: http or https.
        path: the file to write.
        on_progress: is given the bytes so far, and all of them where the server says so.

    Raises:
        DataError: an address that is none.
        DownloadError: it did not arrive, or not whole.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise DataError(f"`url` must begin with https:// or http://, got {url!r}.")
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})
    opener = urllib.request.build_opener(_SecureRedirects)
    try:
        with opener.open(request, timeout=TIMEOUT) as response, path.open("wb") as file:
            return _receive(url, response, file, on_progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{url}: the server answers {error.code} {error.reason}.") from None
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise DownloadError(
            f"{url} cannot be reached ({reason}). Try again later, or import a copy with "
            "levymc data import."
        ) from None


def _receive(url: str, response: Any, file: IO[bytes], on_progress: Progress | None) -> Checksums:
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    done = 0
    while chunk := response.read(CHUNK):
        done += len(chunk)
        if done > MOST_BYTES:
            raise DownloadError(f"{url} sends more than {MOST_BYTES // 2**30} GB.")
        file.write(chunk)
        sha256.update(chunk)
        md5.update(chunk)
        if on_progress is not None:
            on_progress(done, total)
    if total is not None and done != total:
        raise DownloadError(f"{url} broke off after {done} of {total} bytes. Try again.")
    return Checksums(sha256.hexdigest(), md5.hexdigest())
