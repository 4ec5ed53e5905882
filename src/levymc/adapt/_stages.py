"""Stages of a run, kept in a folder as they end, so that a killed one goes on from there.

Processes that share a run make the same stages in the same order: one of them makes a stage, under
a lock that ends with its process, and the others wait for what it keeps.  A stage in parts is made
by all of them, each part by one.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from levymc._workdir import (
    InUseError,
    differences,
    lock,
    make_folder,
    parse_json,
    read_arrays,
    remove_partial,
    versions,
    waiting_lock,
    write_arrays,
)
from levymc.run import AUTO, StoreError, fingerprint

from ._local import program_of
from ._target import Target

T = TypeVar("T")
FOLDER, NAME = AUTO  # the second of the file that tells the run from others
REMEDY = "Remove the folder and run again."
SPENT = ":spent"  # no name of a field
PAUSE = 0.2  # seconds between two looks at what another process does
SECONDS_TO_DOUBT = 180.0  # until it is told that another process is waited for


class Stages:
    """What stages gave, by their names; nowhere if there is no folder.

    A stage is computed anew only if it did not end before the process did: all of them depend on
    the arguments alone.

    is_shared: other processes make the same run; else the folder is this one's.
    waits: for a stage that another process is at; else that is an `InUseError`.
    """

    def __init__(self, folder: Path | None, *, is_shared: bool = False, waits: bool = True) -> None:
        self.folder, self.is_shared, self.waits = folder, is_shared, waits

    def of(
        self, name: str, target: Target, compute: Callable[[], T], example: Callable[[Any], T]
    ) -> T:
        """What the stage `name` gives; `example` makes it of the arrays that were kept.

        The evaluations that it took are counted either way.
        """
        if self.folder is None:
            return compute()
        file = self.folder / f"{name}.npz"
        with self.claimed(name, file.exists):
            if file.exists():
                arrays = read_arrays(file, REMEDY)
                target.evaluations = int(arrays.pop(SPENT))
                return example(_nested(arrays))
            found = compute()
            arrays = dict(_flattened(found))
            write_arrays(file, {**arrays, SPENT: np.int64(target.evaluations)})
            return found

    def of_parts(
        self,
        name: str,
        count: int,
        target: Target,
        compute: Callable[[int], T],
        example: Callable[[Any], T],
    ) -> list[T]:
        """What all parts of the stage `name` give, each begun with the evaluations of before it.

        Those that another process is at are left to it, and taken over if it dies.
        """
        begun, spent, found = target.evaluations, 0, dict[int, T]()
        waiting = _patiently(name)
        while len(found) < count:
            known = len(found)
            for part in (one for one in range(count) if one not in found):
                target.evaluations = begun
                with suppress(InUseError):
                    found[part] = self._part(f"{name}-{part}").of(
                        f"{name}-{part}", target, partial(compute, part), example
                    )
                    spent += target.evaluations - begun
            if len(found) > known:
                waiting = _patiently(name)
            next(waiting)
        target.evaluations = begun + spent
        return [found[part] for part in range(count)]

    def _part(self, name: str) -> "Stages":
        """In a folder of its own, whose lock is that of the part."""
        if self.folder is None:
            return self
        make_folder(self.folder / name)
        return Stages(self.folder / name, is_shared=self.is_shared, waits=False)

    @contextmanager
    def claimed(self, name: str, is_done: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Let one process at a time make a stage; once it is done, nobody waits."""
        with ExitStack() as held:
            waiting = _patiently(name)
            while self.folder is not None and self.is_shared and not is_done():
                next(waiting)
                try:
                    held.enter_context(lock(self.folder))
                    remove_partial(self.folder)
                    break
                except InUseError:
                    if not self.waits:
                        raise
            yield


def _patiently(name: str) -> Iterator[None]:
    """At once, then after pauses; it is told, once, that another process is waited for."""
    yield
    since = time.monotonic()
    while True:
        time.sleep(PAUSE)
        if time.monotonic() > since + SECONDS_TO_DOUBT:
            _warn_of_waiting(name)
            since = float("inf")
        yield


@contextmanager
def working_in(
    store: Path | None, identity: Callable[[], dict[str, Any]], *, is_shared: bool = False
) -> Iterator[Stages]:
    """The stages of a run, for one process at a time unless it is shared."""
    if store is None:
        yield Stages(None)
        return
    folder, wanted = store / FOLDER, identity()
    if is_shared:
        if not (folder / NAME).exists():
            make_folder(store)
            with waiting_lock(store):
                _begin(store, folder, wanted)
        _check(folder, wanted)
        yield Stages(folder, is_shared=True)
        return
    make_folder(store)
    with lock(store):
        _begin(store, folder, wanted)
        remove_partial(folder)
        _check(folder, wanted)
        yield Stages(folder)


def _begin(store: Path, folder: Path, identity: dict[str, Any]) -> None:
    """Write down whose folder it is, unless that is known."""
    if (folder / NAME).exists():
        return
    remove_partial(folder)
    ours = {folder.name, ".lock"}
    if any(place.name not in ours for place in store.iterdir()) or any(folder.glob("*")):
        raise StoreError(_something_else(store))
    write_arrays(folder / NAME, {"identity": _text(identity)})


def _check(folder: Path, identity: dict[str, Any]) -> None:
    """Refuse a folder that another run was begun in."""
    found = parse_json(_bytes(read_arrays(folder / NAME, REMEDY)["identity"]))
    changes = differences(found, identity)
    if changes:
        raise StoreError(
            f"`store` must be a new folder, or that of this run, got {folder.parent}, which "
            f"holds another: {', '.join(changes)}. Name another folder, or remove it."
        )


def _warn_of_waiting(name: str) -> None:
    warnings.warn(
        f"Another process has been at the stage {name!r} for {SECONDS_TO_DOUBT:.0f} s, and this "
        "one waits for it. One that is stopped keeps its claim: let it go on, or end it, and the "
        "stage is taken over.",
        stacklevel=6,
    )


def identity_of(
    target: Target,
    key: Any,
    starts: np.ndarray,
    budget: int,
    shards: int | None = None,
    search_parts: int = 1,
) -> dict[str, Any]:
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
        **({} if shards is None else {"shards": shards}),
        **({} if search_parts == 1 else {"parts of the search": search_parts}),
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
