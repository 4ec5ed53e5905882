"""What makes a store trustworthy: checksums, errors that name the damage, and a patient reader."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from levymc._workdir import ResultsError, json_bytes, parse_json

T = TypeVar("T")

NUM_TRIES = 20  # to read while another process writes
PAUSE = 0.01  # seconds between them
AUTO = ("stages", "auto.npz")  # by which a folder of levymc.auto is known


class StoreError(ResultsError, ValueError):
    """A store that is not one, or is damaged."""


def damaged(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {what}. Restore it from a copy, or run again into a new folder."
    )


def not_a_store(path: Path, why: object) -> StoreError:
    if path.joinpath(*AUTO).exists():
        return StoreError(
            f"{path} is the folder of a run of levymc.auto, whose stages are not a program that "
            "another script could go on with. Call levymc.auto again, with the same arguments and "
            "this `store`: it goes on where it was; if it has `shards`, start that script as often "
            "as you like."
        )
    return StoreError(
        f"{path} is not a store of levymc, or a damaged one: {why}. "
        "Give the folder that levymc.sample(..., store=...) made."
    )


@contextmanager
def as_damage(path: Path, what: str) -> Iterator[None]:
    """Report whatever fails inside as damage of the store.

    What was made by a stranger, or by a failing disk, may make its reader stumble in any way.
    """
    try:
        yield
    except (StoreError, ImportError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise damaged(path, f"{what} cannot be read ({why[:200]})") from error


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest_of(arrays: Iterable[np.ndarray]) -> str:
    """One checksum of the values of arrays, whose shapes and types are known otherwise."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def fingerprint(arrays: Iterable[Any]) -> str:
    """Shapes and types of arrays for people to read, and a checksum of all of it.

    >>> fingerprint([np.zeros((2, 3), np.float32), np.arange(4)])
    'float32[2,3] int64[4] #6c7b3b8c4d603c7a'
    """
    plain = [np.asarray(array) for array in arrays]
    types = [f"{array.dtype}{list(array.shape)}".replace(" ", "") for array in plain]
    raw = [np.frombuffer(array.tobytes(), np.uint8) for array in plain]
    total = digest(f"{types} {digest_of(raw)}".encode())
    return " ".join([*_shortened(types), f"#{total[:16]}"])


def _shortened(types: list[str]) -> list[str]:
    return types if len(types) <= 4 else [*types[:3], f"and {len(types) - 3} more"]


def checked(path: Path, file: Path, expected: str) -> bytes:
    """The content of a file of the store, if it is as it was written."""
    name = file.relative_to(path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise damaged(path, f"{name} is missing") from None
    except OSError as error:
        raise damaged(path, f"{name} cannot be read ({error.strerror})") from error
    if digest(content) != expected:
        raise damaged(path, f"{name} is not as it was written")
    return content


# JSON that carries its own checksum.


def checksum(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True).encode())


def sealed(content: Mapping[str, Any]) -> bytes:
    """An object as a JSON file that carries its own checksum."""
    return json_bytes({**content, "checksum": checksum(content)})


def unsealed(text: bytes) -> tuple[dict[str, Any], bool]:
    """The object in such a file, and whether every byte of it is as it was written.

    A ValueError or KeyError tells why it is no such file.
    """
    content = parse_json(text)
    expected = content.pop("checksum")
    return content, expected == checksum(content) and text == sealed(content)


# Reading while another process writes.


def patiently(generation: Callable[[], bytes | None], read: Callable[[], T]) -> T:
    """Read a store; a process that writes at the same time is no damage.

    What is read was checked against the manifest that was read first.  Where that fails and the
    manifest is another meanwhile, all is read again.
    """
    for attempt in range(NUM_TRIES):
        before = generation()
        try:
            return read()
        except StoreError:
            if attempt == NUM_TRIES - 1 or generation() == before:
                raise
        time.sleep(PAUSE)
    raise AssertionError("unreachable")
