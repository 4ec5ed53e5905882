"""Stages of a run, kept in a folder as they end, so that a killed one goes on from there."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from levymc._workdir import (
    differences,
    lock,
    make_folder,
    parse_json,
    read_arrays,
    remove_partial,
    versions,
    write_arrays,
)
from levymc.run import StoreError, fingerprint

from ._local import program_of
from ._target import Target

T = TypeVar("T")
REMEDY = "Remove the folder and run again."
SPENT = ":spent"  # no name of a field


class Stages:
    """What stages gave, by their names; nowhere if there is no folder.

    A stage is computed anew only if it did not end before the process did: all of them depend on
    the arguments alone.
    """

    def __init__(self, folder: Path | None, identity: dict[str, Any]) -> None:
        self.folder = folder
        if folder is not None:
            make_folder(folder)
            self._check(identity)

    def _check(self, identity: dict[str, Any]) -> None:
        """Refuse a folder that another run was begun in."""
        assert self.folder is not None
        file = self.folder / "auto.npz"
        remove_partial(self.folder)
        if not file.exists():
            if any(self.folder.iterdir()):
                raise StoreError(_something_else(self.folder))
            write_arrays(file, {"identity": _text(identity)})
            return
        found = parse_json(_bytes(read_arrays(file, REMEDY)["identity"]))
        changes = differences(found, identity)
        if changes:
            raise StoreError(
                f"`store` must be a new folder, or that of this run, got {self.folder}, which "
                f"holds another: {', '.join(changes)}. Name another folder, or remove it."
            )

    def of(
        self, name: str, target: Target, compute: Callable[[], T], example: Callable[[Any], T]
    ) -> T:
        """What the stage `name` gives; `example` makes it of the arrays that were kept.

        The evaluations that it took are counted either way.
        """
        if self.folder is None:
            return compute()
        file = self.folder / f"{name}.npz"
        if file.exists():
            arrays = read_arrays(file, REMEDY)
            target.evaluations = int(arrays.pop(SPENT))
            return example(_nested(arrays))
        found = compute()
        arrays = dict(_flattened(found))
        write_arrays(file, {**arrays, SPENT: np.int64(target.evaluations)})
        return found


@contextmanager
def working_in(store: Any, identity: Callable[[], dict[str, Any]]) -> Iterator[Stages]:
    """The stages of a run, for one process at a time."""
    if store is None:
        yield Stages(None, {})
        return
    path = Path(store)
    make_folder(path)
    if any(path.iterdir()) and not (path / "stages").exists():
        raise StoreError(_something_else(path))
    with lock(path):
        yield Stages(path / "stages", identity())


def identity_of(target: Target, key: Any, starts: np.ndarray, budget: int) -> dict[str, Any]:
    """What tells a run from another."""
    shape = jax.ShapeDtypeStruct((target.dimension,), jnp.dtype(target.dtype))
    program = jax.jit(target.flat_fn).lower(shape).as_text()
    given = {
        "key": fingerprint([jax.random.key_data(key)]),
        "starts": fingerprint([starts]),
        "budget": budget,
        "gradient": target.has_gradient,
        "dtype": str(target.dtype),
        "density": fingerprint([np.frombuffer(program.encode(), np.uint8)]),
        "versions": versions(),
    }
    if target.local is not None:
        given["local"] = fingerprint([np.frombuffer(program_of(target.local, shape), np.uint8)])
    return json.loads(json.dumps(given))


def _something_else(folder: Path) -> str:
    return (
        f"`store` must be a new folder, or that of this run, got {folder}, which holds something "
        "else. Name another."
    )


def _text(content: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def _bytes(array: np.ndarray) -> bytes:
    return bytes(np.asarray(array, np.uint8))


def _flattened(tree: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested named tuples by their paths; dictionaries, lists and texts as JSON."""
    for name, value in tree._asdict().items():
        path = f"{prefix}{name}"
        if hasattr(value, "_asdict"):
            yield from _flattened(value, f"{path}/")
        elif isinstance(value, tuple):
            yield from ((f"{path}/{place}", np.asarray(one)) for place, one in enumerate(value))
        elif isinstance(value, dict | list | str):
            yield f"{path}:json", _text(value)
        else:
            yield path, np.asarray(value)


def _nested(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The paths as dictionaries of dictionaries."""
    found: dict[str, Any] = {}
    for path, array in arrays.items():
        *outer, last = path.split("/")
        place = found
        for name in outer:
            place = place.setdefault(name, {})
        if last.endswith(":json"):
            place[last.removesuffix(":json")] = json.loads(_bytes(array))
        else:
            place[last] = array if array.ndim else array.item()
    return found
