"""Files that are written whole or not at all."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def atomic_bytes(path: Path, content: bytes) -> None:
    """Put `content` into place in one step, safe on disk before; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def flush(files: list[Path]) -> None:
    """Wait until files are safe on disk."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def digest(files: list[Path]) -> str:
    """One checksum of the contents of files."""
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


class InUseError(RuntimeError):
    """A folder that another process works in."""


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Let one process at a time run; the lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows: there two runs into one folder are not told apart
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(
                f"{folder} is in use by another process. Wait for it, or stop it."
            ) from None
        yield
    finally:
        os.close(descriptor)
