"""A folder that work is kept in: files that are whole or absent, whose they are, one process.

A file is replaced in one step, after its content is safe on disk, and its folder's entry is made
safe after it: whatever ends the process or the machine, there is the old file or the new one.  JSON
is written and read without NaN and infinities, arrays without pickle.
"""

import errno
import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jax.typing import ArrayLike

HAS_LOCKS = find_spec("fcntl") is not None
PACKAGES = ("levymc", "jax", "jaxlib", "numpy", "scipy")
MOST_NESTED = 100  # levels of JSON: many more than ours has, far fewer than Python's stack
MOST_DIGITS = 20  # of a whole number in it: 64 bits
Fields = Mapping[str, type | tuple[type, ...]]


class ResultsError(Exception):
    """A folder of results that cannot be read or written."""


class InUseError(ResultsError, RuntimeError):
    """A folder that another process works in."""


class MismatchError(ValueError):
    """A folder of results that belongs to another run."""


# Files that are whole or absent.

_IS_LATER = ContextVar("_IS_LATER", default=False)


@contextmanager
def flushed_later() -> Iterator[None]:
    """Write files without waiting for the disk, of a folder that nobody sees before its `flush`."""
    token = _IS_LATER.set(True)
    try:
        yield
    finally:
        _IS_LATER.reset(token)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of a file; if that fails, the file is as it was."""
    make_folder(path.parent)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            if not _IS_LATER.get():
                os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    flush_folder(path.parent)


def atomic_bytes(path: Path, content: bytes) -> None:
    """Put `content` into place in one step, safe on disk before; folders are made."""
    with replacing(path) as stream:
        stream.write(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object for people to read, too; NaN and infinities are refused."""
    atomic_bytes(path, json_bytes(content))


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """An object as `write_json` writes it; ? where the name of a file is no text."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode(errors="replace")


def write_arrays(path: Path, arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays into one file by their names, without pickle; the same ones, the same bytes."""
    with replacing(path) as stream:
        save_arrays(stream, arrays)


def save_arrays(stream: BinaryIO, arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays into a stream, as `write_arrays` does."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:  # NumPy would pickle them
            raise TypeError(f"`{name}` must not hold Python objects, got {array.dtype}.")
    np.savez(stream, **plain)  # type: ignore[arg-type]


def read_arrays(path: Path, remedy: str) -> dict[str, np.ndarray]:
    """The arrays of a file by their names.

    Raises:
        ResultsError: they cannot be read; the message ends with the remedy.
    """
    try:
        # np.load itself leaves a damaged file open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive may make its reader stumble in any way
        raise ResultsError(f"{path} is damaged ({error}). {remedy}") from error


def read_json(path: Path, remedy: str, fields: Fields | None = None) -> dict[str, Any]:
    """The object that a JSON file holds.

    Args:
        path: the file.
        remedy: how the message ends if the file is broken.
        fields: what must be in it, and of which types.

    Raises:
        FileNotFoundError: there is none.
        ResultsError: it is broken.
    """
    try:
        content = parse_json(path.read_bytes())
        for name, kind in (fields or {}).items():
            if not isinstance(content.get(name), kind):
                raise ValueError(f"its {name} is wrong" if name in content else f"it has no {name}")
    except (ValueError, NotADirectoryError, IsADirectoryError) as error:
        raise ResultsError(f"{path} is broken ({error}). {remedy}") from error
    return content


def parse_json(text: bytes) -> dict[str, Any]:
    """An object with finite numbers, nested moderately; a ValueError says why it is none.

    >>> parse_json(b'{"steps": 1e999}')
    Traceback (most recent call last):
    ...
    ValueError: 1e999 is no finite number
    """
    try:
        found = json.loads(
            text.decode(), parse_float=_finite, parse_int=_whole, parse_constant=_finite
        )
        _check_nesting(found)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_NESTED} deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"it holds no object but a {type(found).__name__}")
    if b"\\u" in text:  # half of a pair of surrogates is no text, and cannot be written again
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:MOST_DIGITS]}… is too large a number")
    return int(text)


def _check_nesting(value: Any) -> None:
    """Raise what Python raises of what is nested too deeply, before those who use it have to."""
    level = [[value]]
    for _ in range(MOST_NESTED + 1):
        inner = [one for values in level for one in values if isinstance(one, dict | list)]
        level = [list(one.values()) if isinstance(one, dict) else one for one in inner]
    if level:
        raise RecursionError


# Folders.


def make_folder(path: Path) -> None:
    """Make a folder, and those it lies in, if they are not there; safe on disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        flush_folder(folder.parent)


def flush(files: Iterable[Path], within: Path | None = None) -> None:
    """Wait until files and their folders are safe on disk, and those that these lie in `within`."""
    folders = set()
    for file in files:
        _synchronise(file)
        folders |= {one for one in file.parents if within and one.is_relative_to(within)}
        folders.add(file.parent)
    for folder in folders:
        flush_folder(folder)


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are safe on disk, where folders have that."""
    if os.name == "nt" or _IS_LATER.get():
        return
    try:
        _synchronise(path)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_partial(folder: Path, names: str = "*") -> None:
    """Remove what killed processes left half written of files; `names` is a pattern of these."""
    for partial in list(folder.glob(f"{names}.[0-9]*.partial")):
        if partial.is_file():
            partial.unlink(missing_ok=True)


def digest(files: Iterable[Path]) -> str:
    """One checksum of the contents of files."""
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Let one process at a time run; the lock goes with the process, however that ends."""
    if not HAS_LOCKS:  # Windows: there two runs into one folder are not told apart
        yield
        return
    try:
        descriptor = _locked(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        # On a network file system only what is open for writing can be locked, which no folder is.
        descriptor = _locked(folder / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, flags: int) -> int:
    """A descriptor that holds the lock."""
    import fcntl

    descriptor = os.open(path, flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        folder = path if path.is_dir() else path.parent
        raise InUseError(
            f"{folder} is in use by another process. Wait for it, or stop it."
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise OSError(
            error.errno,
            f"{error.strerror}: the file system of {path} has no locks, by which one process at a "
            "time writes. Take a folder of another.",
        ) from error
    return descriptor


@contextmanager
def waiting_lock(folder: Path, pause: float = 0.02) -> Iterator[None]:
    """The lock of a folder that others hold for moments only."""
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(lock(folder))
                break
            except InUseError:
                time.sleep(pause)
        yield


def remove_abandoned(folders: Iterable[Path]) -> None:
    """Remove folders that processes worked in, each under its lock, and that are none's now."""
    for folder in folders:
        with suppress(InUseError, OSError), lock(folder):
            shutil.rmtree(folder, ignore_errors=True)


# What work was: enough to do it again, and nothing about whose machine it was.


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """How what was found differs from what is wanted, a phrase for each name.

    >>> differences({"seed": 0, "rank": 3}, {"seed": 1, "rank": 3})
    ['its seed is 0, not 1']
    """
    return [
        f"its {name} is {_short(found.get(name))}, not {_short(wanted.get(name))}"
        for name in dict.fromkeys([*found, *wanted])
        if found.get(name) != wanted.get(name)
    ]


def _short(value: Any) -> str:
    """A value as text; of a checksum the beginning."""
    return f"{value[:8]}…" if isinstance(value, str) and len(value) == 64 else str(value)


def provenance() -> dict[str, Any]:
    """The fields with which the manifest of work that begins now tells of its circumstances."""
    return {
        "versions": versions(),
        "host_cores": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "started": now(),
        "finished": None,
        "wall_seconds": 0.0,
        "status": "running",
    }


@contextmanager
def clocked(
    path: Path, manifest: dict[str, Any], session: dict[str, Any] | None = None
) -> Iterator[Callable[[], None]]:
    """Keep the status and the time of work in its manifest, whatever ends it.

    Args:
        path: the file of the manifest.
        manifest: written as it is at that moment; time is added to that of earlier sessions.
        session: a part of the manifest that is given the time of this session alone.

    Yields: a function that writes the manifest while the work goes on.
    """
    begun, before = time.perf_counter(), manifest["wall_seconds"]

    def record(status: str = "running") -> None:
        seconds = time.perf_counter() - begun
        if session is not None:
            session["wall_seconds"] = round(seconds, 3)
        manifest.update(status=status, wall_seconds=round(before + seconds, 3))
        write_json(path, manifest)

    try:
        record()
        yield record
        manifest["finished"] = now()
        record("finished")
    except BaseException:
        manifest["finished"] = None
        with suppress(OSError):  # a full disk must not hide why it stopped
            record("stopped")
        raise


def versions() -> dict[str, str]:
    """Versions of Python and the packages that numbers depend on."""
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in PACKAGES}}


def now() -> str:
    """The time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@lru_cache
def git_state() -> dict[str, Any] | None:
    """The revision of the checkout that levymc runs from, None if it is installed elsewhere.

    ``dirty``: the source is not as committed.
    """
    package = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", f"{package.name}/__init__.py")  # else another project's
        return {"revision": git("rev-parse", "HEAD"), "dirty": bool(git("status", "-s", "."))}
    except (OSError, subprocess.SubprocessError):
        return None
