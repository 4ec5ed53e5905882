"""Files that are written whole or not at all."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def atomic_bytes(path: Path, content: bytes) -> None:
    """Put `content` into place in one step, safe on disk before."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.rename(path)


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


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Let one process at a time run; the lock goes with the process, however that ends."""
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError(
                f"{path.parent} is in use by another process. Wait for it, or stop it."
            ) from None
        yield
