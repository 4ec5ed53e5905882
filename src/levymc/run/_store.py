"""A run on disk, which a killed process leaves whole.

::

    run.json           the plan, the structure of the draws, versions, checksums of what follows
    *.bin, *.npy       the exported program, keys and data: all that the run needs, and no pickle
    draws.zarr/        an array for each leaf, with axes (chain, draw, …); a file for each chunk
    state-N.npz        the chains' exact states after N chunks
    progress.json      the chunks that count, with their checksums; replaced atomically, last

A chunk counts once progress.json says so.  What a killed process left of the next is written over.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import zarr
from jax import export

from levymc import _native
from levymc._files import atomic_bytes, digest, flush, lock

from ._execute import Inputs, any_divergences, execute
from ._feed import Feed, Fixed
from ._plan import Cut, Plan
from ._prepare import Prepared
from ._program import Leaves, Program
from ._result import Result, from_leaves
from ._step import Constant, Draws
from ._structure import draws_from_json, draws_to_json, from_json, numbered, to_json

FORMAT = 2


class StoreError(ValueError):
    """A store that is not one, or is damaged."""


class Store(NamedTuple):
    """An open store."""

    path: Path
    plan: Plan
    structure: Draws  # with the leaves' numbers
    observed: Any  # likewise
    header: dict[str, Any]

    @property
    def progress(self) -> dict[str, Any]:
        return json.loads((self.path / "progress.json").read_text())

    @property
    def num_done(self) -> int:
        """Chunks that count."""
        return len(self.progress["chunks"])

    def array(self, leaf: int, mode: Any = "r") -> Any:
        folder = str(self.path / "draws.zarr" / str(leaf))
        # Every chunk has its file, and its checksum, also where it is all zeros.
        with zarr.config.set({"array.write_empty_chunks": True}):
            return zarr.open_array(folder, mode=mode)

    def chunk_files(self, chunk: int) -> list[Path]:
        """The files of a chunk of draws, one for each leaf."""
        names = []
        for leaf, shape in enumerate(self.header["shapes"]):
            place = "/".join(["0", str(chunk), *["0"] * (len(shape) - 2)])
            names.append(self.path / "draws.zarr" / str(leaf) / "c" / place)
        return names


def create(path: Path, ready: Prepared) -> Store:
    """Write all that the run needs into a new folder, which appears whole or not at all."""
    if path.exists():
        raise StoreError(
            f"`store` must be a new folder, got {path}, which exists. "
            "Go on with levymc.resume(store), or name another."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_name(f".{path.name}.{os.getpid()}.partial")
    building.mkdir()
    plan, _, inputs, states, draws, observed = ready
    exported = _exported(ready)
    for name, function in exported.items():
        atomic_bytes(building / name, bytes(function.serialize()))
    np.save(building / "keys.npy", np.asarray(inputs.keys))
    data = inputs.feed.leaves if isinstance(inputs.feed, Fixed) else []
    for place, leaf in enumerate(data):
        np.save(building / f"data-{place}.npy", np.asarray(leaf))
    _save_state(building / "state-0.npz", states)
    shapes = _create_arrays(building, plan, draws)
    sealed = sorted(f.name for f in building.iterdir() if f.suffix in (".bin", ".npy", ".npz"))
    header = {
        "format": FORMAT,
        "jax": jax.__version__,
        "plan": plan._asdict() | {"cut": plan.cut._asdict()},
        "structure": draws_to_json(numbered(draws)),
        "observed": to_json(numbered(observed)),
        "shapes": shapes,
        "num_data": len(data),
        "is_fed": not isinstance(inputs.feed, Fixed),
        "is_native": any(_calls_kernels(function) for function in exported.values()),
        "digests": {name: digest([building / name]) for name in sealed},
    }
    atomic_bytes(building / "run.json", json.dumps(header, indent=1).encode())
    atomic_bytes(building / "progress.json", json.dumps({"chunks": []}).encode())
    building.rename(path)
    return open_store(path)


def open_store(path: Path) -> Store:
    """Open a store, having checked everything in it that counts."""
    try:
        header = json.loads((path / "run.json").read_text())
        _check_format(path, header)
        chunks = json.loads((path / "progress.json").read_text())["chunks"]
        plan = Plan(**header["plan"] | {"cut": Cut(**header["plan"]["cut"])})
        structure, observed = draws_from_json(header["structure"]), from_json(header["observed"])
    except StoreError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is not a store of levymc, or a damaged one: {error}") from error
    store = Store(path, plan, structure, observed, header)
    for name, expected in header["digests"].items():
        if not name.startswith("state-"):
            _check(store, [path / name], expected, name)
    for number, chunk in enumerate(chunks):
        _check(store, store.chunk_files(number), chunk["draws"], f"chunk {number} of the draws")
    name = f"state-{len(chunks)}.npz"
    expected = chunks[-1]["state"] if chunks else header["digests"][name]
    _check(store, [path / name], expected, name)
    return store


def run_store(store: Store, feed: Feed | None, *, progress: bool) -> Result:
    """Make the chunks that are missing, and read the draws."""
    with lock(store.path):
        begin = store.num_done
        outcome = execute(
            store.plan,
            _load_program(store),
            _load_inputs(store, feed),
            _load_state(store.path / f"state-{begin}.npz"),
            _Sink(store),
            begin=begin,
            progress=progress,
            count_divergences=any_divergences(store.structure),
        )
    if not store.num_done:
        raise KeyboardInterrupt("The run was stopped before its first chunk; there are no draws.")
    return read(store, is_interrupted=outcome.is_interrupted)


def read(store: Store, *, is_interrupted: bool = False) -> Result:
    """The draws that count."""
    num_done = store.num_done
    done = min(num_done * store.plan.cut.chunk, store.plan.num_draws)
    if not done:
        raise StoreError(f"{store.path} has no draws yet. Go on with levymc.resume.")
    leaves = [store.array(leaf)[:, :done] for leaf in range(len(store.header["shapes"]))]
    return from_leaves(
        leaves,
        store.structure,
        (store.plan.num_chains, done),
        is_interrupted=is_interrupted,
        observed=_observed(store, num_done),
    )


def _observed(store: Store, num_done: int) -> dict[str, Any]:
    if not store.observed:
        return {}
    states = _load_state(store.path / f"state-{num_done}.npz")
    summaries = _load_program(store).finish(states)
    return jax.tree.map(lambda place: summaries[place], store.observed)


class _Sink:
    """Writes chunks; each counts once progress.json has been replaced."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.arrays = [store.array(leaf, "r+") for leaf in range(len(store.header["shapes"]))]
        self.chunks = store.progress["chunks"]

    def append(self, chunk: int, draws: list[np.ndarray], states: Leaves) -> None:
        store, begin = self.store, chunk * self.store.plan.cut.chunk
        with _telling_where_it_stopped(store, begin):
            for array, leaf in zip(self.arrays, draws, strict=True):
                array[:, begin : begin + len(leaf)] = np.moveaxis(leaf, 0, 1)
            flush(store.chunk_files(chunk))
            state_file = store.path / f"state-{chunk + 1}.npz"
            _save_state(state_file, states)
            entry = {"draws": digest(store.chunk_files(chunk)), "state": digest([state_file])}
            self.chunks.append(entry)
            atomic_bytes(store.path / "progress.json", json.dumps({"chunks": self.chunks}).encode())
        if chunk > 0:
            (store.path / f"state-{chunk}.npz").unlink(missing_ok=True)


@contextmanager
def _telling_where_it_stopped(store: Store, num_draws: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: the run stopped after {num_draws} draws, which are safe in "
            f"{store.path}. Make room, then go on with levymc.resume.",
        ) from error


def _exported(ready: Prepared) -> dict[str, export.Exported]:
    """The compiled functions, for another process."""
    plan, program, inputs, states, _, observed = ready
    zero = jnp.int32(0)
    data, _ = inputs.feed.take(0, 1, plan.chunk_steps)
    arguments = (states, inputs.keys, data, zero, zero)
    # JAX refuses calls that it does not know; ours are found again when the program is loaded.
    ours = [export.DisabledSafetyCheck.custom_call(name) for name in _native.TARGETS]
    exported = {"draw.bin": export.export(program.draw, disabled_checks=ours)(*arguments)}
    if plan.burn_in:
        exported["advance.bin"] = export.export(program.advance, disabled_checks=ours)(*arguments)
    if observed:
        exported["finish.bin"] = export.export(program.finish)(states)
    return exported


def _calls_kernels(function: export.Exported) -> bool:
    """Whether a program needs levymc's native kernels, which are not in it."""
    text = function.mlir_module()
    return any(name in text for name in _native.TARGETS)


def _check_format(path: Path, header: dict[str, Any]) -> None:
    if header["format"] != FORMAT:
        raise StoreError(f"{path} has format {header['format']}; this version reads {FORMAT}.")


def _create_arrays(folder: Path, plan: Plan, structure: Draws) -> list[list[int]]:
    shapes = []
    kept = [leaf for leaf in jax.tree.leaves(structure) if not isinstance(leaf, Constant)]
    for number, leaf in enumerate(kept):
        shape = (plan.num_chains, plan.num_draws, *leaf.shape)
        zarr.create_array(
            str(folder / "draws.zarr" / str(number)),
            shape=shape,
            chunks=(plan.num_chains, plan.cut.chunk, *leaf.shape),
            dtype=np.dtype(leaf.dtype),
            compressors=None,  # draws are noise: compressing them costs time and saves little
        )
        shapes.append(list(shape))
    return shapes


def _load_program(store: Store) -> Program:
    """The stored functions; one that the run does not need is not there."""
    if store.header.get("is_native", False):
        _native.load()
    loaded = [
        _compiled((store.path / name).read_bytes()) if (store.path / name).exists() else None
        for name in ("advance.bin", "draw.bin", "finish.bin")
    ]
    return Program(*loaded)


@lru_cache(maxsize=32)  # so that a second run of the same program compiles nothing
def _compiled(serialized: bytes) -> Any:
    return jax.jit(export.deserialize(bytearray(serialized)).call)


def _load_inputs(store: Store, feed: Feed | None) -> Inputs:
    if store.header["is_fed"] and feed is None:
        raise ValueError(
            f"`minibatches` must be given, as {store.path} was begun with a function of the "
            "step's number. Give the same function to levymc.resume."
        )
    names = [f"data-{place}.npy" for place in range(store.header["num_data"])]
    keys, *data = (
        jnp.asarray(np.load(store.path / name, allow_pickle=False)) for name in ["keys.npy", *names]
    )
    return Inputs(keys, Fixed(data) if feed is None or not store.header["is_fed"] else feed)


def _save_state(path: Path, states: Leaves) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as stream:
        np.savez(stream, *(np.asarray(leaf) for leaf in states))
    flush([partial])
    partial.rename(path)


def _load_state(path: Path) -> Leaves:
    with np.load(path, allow_pickle=False) as archive:
        return [jnp.asarray(archive[f"arr_{place}"]) for place in range(len(archive.files))]


def _check(store: Store, files: list[Path], expected: str, what: str) -> None:
    missing = [file.name for file in files if not file.exists()]
    if missing or digest(files) != expected:
        state = "missing" if missing else "not as it was written"
        raise StoreError(
            f"{store.path} is damaged: {what} is {state}. "
            "Restore it from a copy, or run again into a new folder."
        )
