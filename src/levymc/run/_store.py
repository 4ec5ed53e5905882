"""A run on disk, which a killed process leaves whole and other tools can open.

::

    zarr.json                  a Zarr group, whose metadata list the draws that there are
    posterior/NAME/            an array for each leaf of the positions, with axes (chain, draw, …)
    sample_stats/NAME/         likewise for the info; a constant has no chunks
    levymc/run.json            the plan, the structure of the draws, versions, checksums
    levymc/*.bin, *.npz        the exported program, and its inputs: all that the run needs
    levymc/state-N.npz         the chains' exact states after N steps, burn-in and all
    levymc/progress.json       how far the run is, with checksums; replaced atomically

Draws count once progress.json says so; what a killed process left beyond them is written over.
The last chunk is written again as it grows, each time whole: its first draws stay the same bytes.
"""

import hashlib
import io
import json
import os
import shutil
import time
import warnings
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from levymc import _native
from levymc._checks import check_count
from levymc._trees import leaf_names
from levymc._workdir import (
    ResultsError,
    atomic_bytes,
    differences,
    flush,
    flush_folder,
    lock,
    make_folder,
    parse_json,
    remove_partial,
    versions,
    write_arrays,
    write_json,
)

from . import _zarr, marks
from ._engine import Call, Draws, Feed, Fixed, Leaves, Marks, Program, position_of
from ._iterate import Part, Plan, Run, check_total, march, observed_by
from ._result import STATISTICS, Constant, Result, from_json, from_leaves, placed, to_json
from ._sample import follow, structure_of

FORMAT = 3
COMMIT_SECONDS = 30.0  # what a kill loses at most
COMMIT_BYTES = 256 * 2**20
CHUNK_BYTES = 16 * 2**20
MOST_IN_CHUNK = 4096
LARGEST_IN_MEMORY = 2**30  # bytes of draws; more are read when they are asked for
NUM_TRIES = 5  # to read while another process writes
KINDS = "biuf"  # of dtypes that Zarr knows
COORDINATES = ("chain", "draw")


class StoreError(ResultsError, ValueError):
    """A store that is not one, or is damaged."""


class Leaf(NamedTuple):
    """One array of draws: its place, and what a draw of one chain looks like."""

    group: str
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Store(NamedTuple):
    """An open store.

    structure, observed: trees with the leaves' numbers, or constants.
    progress: what counts, as it was when the store was opened.
    state: the content of the state file, read at the same time; None to read it when needed.
    """

    path: Path
    plan: Plan
    leaves: tuple[Leaf, ...]
    chunk: int  # draws in a chunk
    structure: Draws
    observed: tuple[Any, ...]
    header: dict[str, Any]
    progress: dict[str, Any]
    state: bytes | None = None

    @property
    def folder(self) -> Path:
        return self.path / "levymc"

    @property
    def done(self) -> int:
        """Steps that count."""
        return self.progress["done"]

    @property
    def num_draws(self) -> int:
        return self.plan.num_kept(self.done)

    def chunk_file(self, leaf: Leaf, chunk: int) -> Path:
        place = ["0", str(chunk), *["0"] * len(leaf.shape)]
        return self.path.joinpath(leaf.group, leaf.name, "c", *place)

    def state_file(self, done: int) -> Path:
        return self.folder / f"state-{done}.npz"


# Beginning a run.


def create(path: Path, run: Run) -> Store:
    """Write all that the run needs into a new folder, which appears whole or not at all."""
    if path.exists() or path.is_symlink():
        raise StoreError(
            f"`store` must be a new folder, got {path}, which exists. "
            "Go on with levymc.resume(store), or name another."
        )
    if find_spec("flatbuffers") is None:
        raise ImportError("`store` needs flatbuffers: pip install 'levymc[store]'.")
    make_folder(path.parent)
    _remove_abandoned(path)
    building = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        store = _build(building, run)
        flush([file for file in building.rglob("*") if file.is_file()], building)
        building.rename(path)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    flush_folder(path.parent)
    return store._replace(path=path)


def _remove_abandoned(path: Path) -> None:
    """Remove what processes left that were killed while they created this store."""
    for other in path.parent.glob(f".{path.name}.*.partial"):
        owner = other.name.split(".")[-2]
        if owner.isdigit() and Path("/proc").exists() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(other, ignore_errors=True)


def _build(path: Path, run: Run) -> Store:
    structure, folder = structure_of(run), path / "levymc"
    leaves = _leaves_of(structure, run.program.draws)
    draw_bytes = run.plan.num_chains * sum(leaf.nbytes for leaf in leaves)
    exported = _exported(run)
    for name, function in exported.items():
        atomic_bytes(folder / name, bytes(function.serialize()))
    data = run.feed.leaves if isinstance(run.feed, Fixed) else []
    _write_leaves(folder / "inputs.npz", [run.keys, *run.parameters])
    _write_leaves(folder / "data.npz", data)
    _write_leaves(folder / "state-0.npz", run.carry)
    header = {
        "format": FORMAT,
        "versions": versions(),
        "plan": _plan_to_json(run.plan),
        "structure": to_json(tuple(structure)),
        "leaves": [leaf._asdict() for leaf in leaves],
        "chunk": max(1, min(MOST_IN_CHUNK, CHUNK_BYTES // max(draw_bytes, 1))),
        "observed": to_json(placed(run.program.observed)),
        "names": list(run.names),
        "block": run.program.block,
        "slots": run.program.slots,
        "is_fed": not isinstance(run.feed, Fixed),
        "is_native": any(_calls_kernels(function) for function in exported.values()),
        "given": _given(run),
        "digests": {file.name: _digest(file) for file in sorted(folder.iterdir())},
    }
    header = json.loads(json.dumps(header))  # as it will be read
    write_json(folder / "run.json", header)
    progress = {
        "num_steps": run.plan.num_steps,
        "done": 0,
        "chunks": [],
        "state": header["digests"]["state-0.npz"],
        "run": _digest(folder / "run.json"),
    }
    _write_progress(folder, progress)
    store = _store(path, header, progress)
    _publish(store)
    return store


def _given(run: Run) -> dict[str, Any]:
    """What tells a run from another, but the functions of its algorithm."""
    starts = position_of(run.program.states(run.carry))
    marks_of_run = [marks.to_json(one) for one in (run.plan.kept, run.plan.seen) if one is not None]
    leaves = {
        "key": [run.keys],
        "numbers": run.parameters,
        "starts": jax.tree.leaves(starts),
        "data": run.feed.leaves if isinstance(run.feed, Fixed) else [],
    }
    return {
        "num_steps": run.plan.num_steps,
        "burn_in": run.plan.burn_in,
        "marks": hashlib.sha256(json.dumps(marks_of_run).encode()).hexdigest(),
        "observe": list(run.names),
        **{name: _digest_of(list(map(np.asarray, arrays))) for name, arrays in leaves.items()},
    }


def _leaves_of(structure: Draws, shapes: Draws) -> tuple[Leaf, ...]:
    """The arrays to write, in the order of their numbers."""
    found = {}
    for group, tree, shape in (
        ("posterior", structure.positions, shapes.positions),
        ("sample_stats", structure.info, shapes.info),
    ):
        for name, place, leaf in zip(
            leaf_names(tree), jax.tree.leaves(tree), jax.tree.leaves(shape), strict=True
        ):
            if np.dtype(leaf.dtype).kind not in KINDS:
                raise TypeError(
                    f"A store keeps real numbers and truth values, got {leaf.dtype} for {name}. "
                    "Run in float32 or float64, or without a store."
                )
            if isinstance(place, int):
                known = STATISTICS.get(name, name) if group == "sample_stats" else name
                found[place] = Leaf(group, known, leaf.shape, str(leaf.dtype))
    leaves = tuple(found[place] for place in sorted(found))
    _check_names(leaves)
    return leaves


def _check_names(leaves: tuple[Leaf, ...]) -> None:
    """Refuse names that cannot be those of folders side by side."""
    taken = {(leaf.group, name) for leaf in leaves for name in COORDINATES}
    for leaf in leaves:
        is_path = "/" in leaf.name or leaf.name.startswith((".", "__")) or leaf.name == "zarr.json"
        if is_path or (leaf.group, leaf.name) in taken:
            raise ValueError(
                f"A store needs names that can be those of folders, all different, and neither "
                f"chain nor draw; got {leaf.name!r} in the {leaf.group}. Rename it."
            )
        taken.add((leaf.group, leaf.name))


def _exported(run: Run) -> dict[str, export.Exported]:
    """The compiled functions, for another process."""
    data, _ = run.feed.take(0, 0)
    call = run.plan.call(0, 1, run.program.slots)
    # JAX refuses calls that it does not know; ours are found again when the program is loaded.
    ours = [export.DisabledSafetyCheck.custom_call(name) for name in _native.TARGETS]
    advance = export.export(jax.jit(_flat(run.program.advance)), disabled_checks=ours)
    arguments = (run.parameters, run.carry, run.keys, data, call[:3], tuple(call.marks))
    found = {"advance.bin": advance(*arguments)}
    if run.names:
        found["finish.bin"] = export.export(run.program.finish)(run.carry)
    return found


def _flat(advance: Any) -> Any:
    """Without our own types, which another process would have to know to read the program."""

    def plain(
        parameters: Leaves, carry: Leaves, keys: Any, data: Leaves, call: Any, where: Any
    ) -> Any:
        first, count, is_fresh = call
        return advance(parameters, carry, keys, data, Call(first, count, is_fresh, Marks(*where)))

    return plain


def _calls_kernels(function: export.Exported) -> bool:
    """Whether a program needs levymc's native kernels, which are not in it."""
    text = function.mlir_module()
    return any(name in text for name in _native.TARGETS)


# Opening one.


def open_store(path: Path) -> Store:
    """Open a store, having checked everything in it that counts.

    A process that writes at the same time is no damage: what it replaced is read again.
    """
    for attempt in range(NUM_TRIES):
        store = _opened(path)
        try:
            return store._replace(state=_read_state(store))
        except StoreError:
            if attempt == NUM_TRIES - 1 or _opened(path).progress == store.progress:
                raise
    raise AssertionError("unreachable")


def _opened(path: Path) -> Store:
    folder = path / "levymc"
    try:
        header = parse_json((folder / "run.json").read_bytes())
        _check_format(path, header)
        progress = parse_json((folder / "progress.json").read_bytes())
        checksum = progress.pop("checksum")
        store = _store(path, header, progress)
    except StoreError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{path} is not a store of levymc, or a damaged one: {error}. "
            "Give the folder that levymc.sample(..., store=...) made."
        ) from error
    if checksum != _checksum(progress):
        raise _damaged(path, "progress.json is not as it was written")
    _checked(path, folder / "run.json", progress["run"])
    for name, expected in header["digests"].items():
        if not name.startswith("state-"):
            _checked(path, folder / name, expected)
    return store


def _store(path: Path, header: dict[str, Any], progress: dict[str, Any]) -> Store:
    plan = header["plan"]
    return Store(
        path,
        Plan(
            plan["num_chains"],
            progress["num_steps"],
            plan["burn_in"],
            marks.from_json(plan["kept"]),
            None if plan["seen"] is None else marks.from_json(plan["seen"]),
        ),
        tuple(
            Leaf(leaf["group"], leaf["name"], tuple(leaf["shape"]), leaf["dtype"])
            for leaf in header["leaves"]
        ),
        header["chunk"],
        Draws(*from_json(header["structure"])),
        from_json(header["observed"]),
        header,
        progress,
    )


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "num_chains": plan.num_chains,
        "burn_in": plan.burn_in,
        "kept": marks.to_json(plan.kept),
        "seen": None if plan.seen is None else marks.to_json(plan.seen),
    }


def extended(store: Store, num_steps: Any) -> Store:
    """The store with another number of steps to make."""
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    made = max(store.done - store.plan.burn_in, 0)
    if steps < made:
        raise ValueError(
            f"`num_steps` must be at least the {made} steps that were made, got {steps}."
        )
    check_total(steps + store.plan.burn_in)
    if steps != store.plan.num_steps and not isinstance(store.plan.kept, marks.Every):
        raise ValueError(
            f"`num_steps` must be {store.plan.num_steps}, got {steps}: the steps that are kept "
            "were listed for that number. Only a run with thin=k can be extended."
        )
    return store._replace(
        plan=store.plan._replace(num_steps=steps),
        progress={**store.progress, "num_steps": steps},
    )


def _check_format(path: Path, header: dict[str, Any]) -> None:
    if header["format"] != FORMAT:
        raise StoreError(f"{path} has format {header['format']}; this version reads {FORMAT}.")


def _read_state(store: Store) -> bytes:
    return _checked(store.path, store.state_file(store.done), store.progress["state"])


def _checked(path: Path, file: Path, expected: str) -> bytes:
    """The content of a file, if it is as it was written."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise _damaged(path, f"{file.name} is missing") from None
    if hashlib.sha256(content).hexdigest() != expected:
        raise _damaged(path, f"{file.name} is not as it was written")
    return content


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _damaged(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {what}. Restore it from a copy, or run again into a new folder."
    )


def _checksum(progress: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(progress, sort_keys=True).encode()).hexdigest()


def _write_progress(folder: Path, progress: dict[str, Any]) -> None:
    write_json(folder / "progress.json", {**progress, "checksum": _checksum(progress)})


# Going on with it.


def go_on(store: Store, feed: Feed | None, *, progress: bool) -> Result:
    """Make the steps that are missing, and read the draws."""
    with _working(store, feed, COMMIT_SECONDS) as (run, sink):
        _, is_interrupted = follow(
            run, run.carry, sink.done, sink, structure=store.structure, progress=progress
        )
    return read(sink.store, is_interrupted=is_interrupted)


def begin_or_open(path: Path, run: Run) -> Store:
    """A new store, or that of the same run."""
    if not path.exists():
        return create(path, run)
    store = open_store(path)
    changes = differences(store.header.get("given", {}), _given(run))
    if changes:
        raise StoreError(
            f"`store` must be a new folder, or that of this run, got {path}, which holds another: "
            f"{', '.join(changes)}. Name another folder, or remove it."
        )
    return store


def parts(
    store: Store, feed: Feed, stops: marks.Every | marks.At, seconds: float
) -> Generator[Part, None, None]:
    """Make the steps that are missing, with calls that end at the stops.

    A part counts once the caller asks for the next.  Of a complete run there is the last, again.
    """
    with _working(store, feed, seconds) as (run, sink):
        if sink.done == run.plan.total:
            yield Part(sink.done, run.carry, [], True)
        for part in march(run, run.carry, sink.done, stops):
            yield part
            sink.append(part)


@contextmanager
def _working(store: Store, feed: Feed | None, seconds: float) -> "Iterator[tuple[Run, _Sink]]":
    """The run from where it is, for one process at a time; the sink is committed in the end."""
    with lock(store.path):
        for folder in [path for path in store.path.rglob("*") if path.is_dir()]:
            remove_partial(folder)
        store = _newest(store)
        _publish(store)  # what a killed process had no time for
        run = _loaded_run(store, feed)
        sink = _Sink(store, run.carry, seconds)
        try:
            yield run, sink
        finally:
            sink.commit()


def _newest(store: Store) -> Store:
    """What counts now that no other process can write; the wanted steps are those of `store`."""
    found, num_steps = open_store(store.path), store.progress["num_steps"]
    return found._replace(
        plan=found.plan._replace(num_steps=num_steps),
        progress={**found.progress, "num_steps": num_steps},
    )


class _Sink:
    """Gathers draws, and commits them every so many seconds."""

    def __init__(self, store: Store, carry: Leaves, seconds: float) -> None:
        self.store, self.done, self.carry = store, store.done, carry
        self.seconds = seconds
        self.chunks: list[str] = list(store.progress["chunks"])
        begun = store.num_draws - store.num_draws % store.chunk
        # The draws of the chunk that is not full yet, and those that came after them.
        self.begin = begun
        self.pending = [[part] for part in _rows(store, begun, store.num_draws)]
        self.since = time.monotonic()

    def append(self, part: Part) -> None:
        for rows, leaf in zip(self.pending, part.draws, strict=True):
            rows.append(np.moveaxis(leaf, 0, 1))
        self.done, self.carry = part.done, part.carry
        held = sum(row.nbytes for rows in self.pending for row in rows)
        if time.monotonic() - self.since > self.seconds or held > COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Make all that came safe on disk, and let it count."""
        store = self.store
        if self.done == store.done and store.progress == _stored_progress(store):
            return
        with _telling_where_it_stopped(store):
            rows = [np.concatenate(part, axis=1) for part in self.pending]
            self.chunks[self.begin // store.chunk :] = self._write_chunks(rows)
            _write_leaves(store.state_file(self.done), self.carry)
            progress = {
                **store.progress,
                "done": self.done,
                "chunks": self.chunks,
                "state": _digest(store.state_file(self.done)),
            }
            _write_progress(store.folder, progress)
            self.store = store._replace(progress=progress, state=None)
            _publish(self.store)
        if self.done != store.done:
            store.state_file(store.done).unlink(missing_ok=True)
        full = len(rows[0][0]) // store.chunk * store.chunk if rows else 0
        self.begin += full
        self.pending = [[part[:, full:]] for part in rows]
        self.since = time.monotonic()

    def _write_chunks(self, rows: list[np.ndarray]) -> list[str]:
        """Write the draws from `begin` on; the checksum of each chunk."""
        store, count = self.store, rows[0].shape[1] if rows else 0
        found = []
        for first in range(0, count, store.chunk):
            parts = [part[:, first : first + store.chunk] for part in rows]
            number = (self.begin + first) // store.chunk
            for leaf, part in zip(store.leaves, parts, strict=True):
                whole = np.zeros((len(part), store.chunk, *leaf.shape), leaf.dtype)
                whole[:, : part.shape[1]] = part
                atomic_bytes(store.chunk_file(leaf, number), whole.tobytes())
            found.append(_digest_of(parts))
        return found


def _stored_progress(store: Store) -> dict[str, Any]:
    found = parse_json((store.folder / "progress.json").read_bytes())
    found.pop("checksum")
    return found


@contextmanager
def _telling_where_it_stopped(store: Store) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: the run stopped after {store.num_draws} draws, which are safe in "
            f"{store.path}. Make room, then go on with levymc.resume.",
        ) from error


def _loaded_run(store: Store, feed: Feed | None) -> Run:
    if store.header["is_fed"] and feed is None:
        raise ValueError(
            f"`minibatches` must be given, as {store.path} was begun with a function of the "
            "step's number. Give the same function to levymc.resume."
        )
    if store.done < store.plan.total:
        _compare_versions(store)
    keys, *parameters = _leaves_in(store, (store.folder / "inputs.npz").read_bytes())
    data = _leaves_in(store, (store.folder / "data.npz").read_bytes())
    used = feed if store.header["is_fed"] and feed is not None else Fixed(data)
    carry = _leaves_in(store, _read_state(store) if store.state is None else store.state)
    names = tuple(store.header["names"])
    return Run(store.plan, _loaded_program(store), parameters, keys, used, carry, names)


def _compare_versions(store: Store) -> None:
    """Tell of a program that was made by another version, which may round otherwise."""
    found, here = store.header["versions"], versions()
    others = [f"{name} {found.get(name)}" for name in here if found.get(name) != here[name]]
    if others:
        warnings.warn(
            f"{store.path} was begun with {', '.join(others)}: what is left of the run may differ "
            "in rounding from what an undisturbed run would have given.",
            stacklevel=7,
        )


def _loaded_program(store: Store) -> Program:
    """The stored functions; one that the run does not need is not there."""
    if store.header["is_native"]:
        _native.load()
    advance, finish = (
        _compiled((store.folder / name).read_bytes()) if (store.folder / name).exists() else None
        for name in ("advance.bin", "finish.bin")
    )

    def call(parameters: Leaves, carry: Leaves, keys: Any, data: list[Any], call: Any) -> Any:
        assert advance is not None
        return advance(parameters, carry, keys, data, tuple(call[:3]), tuple(call.marks))

    return Program(
        advance=call,
        begin=lambda carry: carry,
        states=lambda carry: carry,
        finish=finish,
        fixed=None,
        draws=store.structure,
        varying=(),
        observed=store.observed,
        block=store.header["block"],
        slots=store.header["slots"],
    )


@lru_cache(maxsize=32)  # so that a second run of the same program compiles nothing
def _compiled(serialized: bytes) -> Any:
    return jax.jit(export.deserialize(bytearray(serialized)).call)


def _write_leaves(path: Path, leaves: Leaves) -> None:
    write_arrays(path, {str(place): np.asarray(leaf) for place, leaf in enumerate(leaves)})


def _leaves_in(store: Store, content: bytes) -> Leaves:
    """Onto the device, as what the program returns is: it would be compiled anew for the others."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            found = [jnp.asarray(archive[str(place)]) for place in range(len(archive.files))]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _damaged(store.path, f"arrays of it cannot be read ({error})") from error
    return jax.device_put(found, jax.devices()[0])


# Reading its draws.


def read(store: Store, *, is_interrupted: bool | None = None) -> Result:
    """The draws that count."""
    count = store.num_draws
    if not count:
        raise StoreError(f"{store.path} has no draws yet. Go on with levymc.resume.")
    stopped = store.done < store.plan.total if is_interrupted is None else is_interrupted
    observed = _observed(store)
    return from_leaves(
        _draws(store, count),
        store.structure,
        (store.plan.num_chains, count),
        is_interrupted=stopped,
        observed=observed,
        steps=store.plan.steps_until(store.done),
    )


def _draws(store: Store, count: int) -> list[Any]:
    """Every chunk is checked; large draws stay on disk."""
    size = store.plan.num_chains * count * sum(leaf.nbytes for leaf in store.leaves)
    is_large = size > LARGEST_IN_MEMORY
    parts: list[list[np.ndarray]] = [[] for _ in store.leaves]
    for number, expected in enumerate(store.progress["chunks"]):
        begin = number * store.chunk
        rows = _rows(store, begin, min(begin + store.chunk, count))
        if _digest_of(rows) != expected:
            raise _damaged(store.path, f"chunk {number} of the draws is not as it was written")
        for kept, row in zip(parts, rows, strict=True):
            if not is_large:
                kept.append(row)
    if is_large:
        return [_on_disk(store, leaf) for leaf in store.leaves]
    return [np.concatenate(part, axis=1) for part in parts]


def _rows(store: Store, begin: int, end: int) -> list[np.ndarray]:
    """Draws of one chunk, from its beginning."""
    found = []
    for leaf in store.leaves:
        shape = (store.plan.num_chains, store.chunk, *leaf.shape)
        if begin == end:
            found.append(np.zeros((shape[0], 0, *leaf.shape), leaf.dtype))
            continue
        try:
            content = store.chunk_file(leaf, begin // store.chunk).read_bytes()
            whole = np.frombuffer(content, leaf.dtype).reshape(shape)
        except (OSError, ValueError) as error:
            what = f"chunk {begin // store.chunk} of the draws of {leaf.name} cannot be read"
            raise _damaged(store.path, f"{what} ({error})") from error
        found.append(whole[:, : end - begin])
    return found


def _digest_of(rows: list[np.ndarray]) -> str:
    total = hashlib.sha256()
    for part in rows:
        total.update(np.ascontiguousarray(part).data)
    return total.hexdigest()


def _on_disk(store: Store, leaf: Leaf) -> Any:
    try:
        import zarr
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{store.path} is too large for memory, and to read it in parts needs Zarr: "
            "pip install 'levymc[store]'."
        ) from error
    return zarr.open_array(str(store.path / leaf.group / leaf.name), mode="r")


def _observed(store: Store) -> dict[str, Any]:
    names = tuple(store.header["names"])
    if not names:
        return {}
    run = _loaded_run(store, Fixed([]))
    return observed_by(run, run.carry)


# Its metadata, for other tools.


def _publish(store: Store) -> None:
    """Let the draws that count be seen."""
    count, num_chains = store.num_draws, store.plan.num_chains
    arrays: dict[str, Any] = {}
    for group in ("posterior", "sample_stats"):
        _write_coordinates(store, group)
        for name, size, chunk in (("chain", num_chains, num_chains), ("draw", count, store.chunk)):
            arrays[f"{group}/{name}"] = _zarr.array((size,), (chunk,), np.dtype(np.int64), [name])
    for leaf in store.leaves:
        dims = [f"{leaf.name}_dim_{axis}" for axis in range(len(leaf.shape))]
        arrays[f"{leaf.group}/{leaf.name}"] = _zarr.array(
            (num_chains, count, *leaf.shape),
            (num_chains, store.chunk, *leaf.shape),
            np.dtype(leaf.dtype),
            ["chain", "draw", *dims],
        )
    info = store.structure.info
    for name, place in zip(leaf_names(info), jax.tree.leaves(info), strict=True):
        if isinstance(place, Constant) and place.value.ndim == 0:
            arrays[f"sample_stats/{STATISTICS.get(name, name)}"] = _zarr.array(
                (num_chains, count),
                (num_chains, store.chunk),
                place.value.dtype,
                ["chain", "draw"],
                place.value.item(),
            )
    attributes = {"inference_library": "levymc", "sampling_steps": store.done}
    _zarr.publish(store.path, arrays, attributes)


def _write_coordinates(store: Store, group: str) -> None:
    """Write the numbers of the chains, and of the steps that draws are kept at, where missing.

    A chunk has those of draws to come, too, so that it never changes under who reads it.
    """
    chains = store.path / group / "chain" / "c" / "0"
    if not chains.exists():
        atomic_bytes(chains, np.arange(store.plan.num_chains).tobytes())
    for number in range(-(-store.num_draws // store.chunk)):
        file = store.path / group / "draw" / "c" / str(number)
        if not file.exists():
            steps = np.zeros(store.chunk, np.int64)
            coming = store.plan.kept.numbered(number * store.chunk, store.chunk)
            steps[: len(coming)] = coming
            atomic_bytes(file, steps.tobytes())
