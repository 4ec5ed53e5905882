"""A store that begins: all that a run needs, in a folder that appears whole or not at all."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc import schedules
from levymc._trees import leaf_names
from levymc._workdir import (
    InUseError,
    atomic_bytes,
    flush,
    flush_folder,
    flushed_later,
    lock,
    make_folder,
    remove_abandoned,
    versions,
    write_json,
)

from . import _programs, marks
from ._chunks import KINDS, Leaf, check_names
from ._compare import check_same_run, given, given_data
from ._engine import Draws, Fixed
from ._integrity import StoreError, digest, sealed
from ._iterate import Plan, Run
from ._result import STATISTICS, placed, to_json
from ._sample import structure_of
from ._store import FORMAT, assembled, open_store, publish, state_bytes

CHUNK_BYTES = 16 * 2**20
MOST_IN_CHUNK = 4096


class TakenError(StoreError):
    """A place that was free, and is not any more."""


def begin_or_open(path: Path, run: Run) -> Path:
    """The folder of a new store, or that of the same run."""
    if is_free(path) or not path.exists():
        return create(path, run)
    check_same_run(path, open_store(path).header, run)
    return path


def create(path: Path, run: Run) -> Path:
    """Write all that the run needs into a new folder, which appears whole or not at all."""
    check_place(path)
    check_storable(run)
    put(path, lambda building: build(building, run, common_of(run)))
    return path


def check_storable(run: Run) -> None:
    """Refuse what a stored run would stumble over later, or a store cannot be made without."""
    if run.schedule is not None:  # all of it, as the function is not stored
        schedules.check_steps(run.schedule, 0, run.plan.total)
    if find_spec("flatbuffers") is None:
        raise ImportError("`store` needs flatbuffers: pip install 'levymc[store]'.")


def put(path: Path, build: Callable[[Path], None]) -> None:
    """Build a folder, which appears at a free place whole or not at all."""
    place = path.resolve()
    try:
        make_folder(place.parent)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreError(
            f"`store` must be a folder that can be made, got {path}: {error.filename} is no "
            "folder. Name another."
        ) from error
    remove_abandoned(place.parent.glob(f".{place.name}.*.partial"))
    with _building_beside(place) as building:
        with flushed_later():
            build(building)
        flush([file for file in building.rglob("*") if file.is_file()], building)
        _put_into_place(building, place)
    flush_folder(place.parent)


@contextmanager
def _building_beside(place: Path) -> Iterator[Path]:
    """A folder to build in, under its lock: others see by that that it is not abandoned."""
    with ExitStack() as held:
        building = _new_folder(place)
        # Between these two another process may take it for abandoned, and remove it.
        while not _is_held(building, held):
            building = _new_folder(place)
        try:
            yield building
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise


def _new_folder(place: Path) -> Path:
    building = place.with_name(f".{place.name}.{uuid.uuid4().hex}.partial")
    building.mkdir()
    return building


def _is_held(building: Path, held: ExitStack) -> bool:
    try:
        held.enter_context(lock(building))
    except (InUseError, FileNotFoundError):
        return False
    return building.exists()


def is_free(path: Path) -> bool:
    """Whether a store can be made here: there is nothing, or an empty folder."""
    if path.is_symlink() and not path.exists():
        return False
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def check_place(path: Path) -> None:
    """Refuse a place where there is something."""
    if is_free(path):
        return
    if not path.exists():
        raise StoreError(
            f"`store` must be a new folder, got {path}, which is a link to nothing. "
            "Remove the link, or name another."
        )
    remedy = "Name another, or remove it."
    if (path / "levymc").exists():
        remedy = "Go on with levymc.resume(store), or name another."
    raise StoreError(f"`store` must be a new folder, got {path}, which exists. {remedy}")


def _put_into_place(building: Path, place: Path) -> None:
    try:
        if os.name == "nt" and place.exists():
            place.rmdir()
        building.rename(place)
    except OSError as error:
        raise TakenError(
            f"`store` must be a new folder, got {place}, which cannot be put there "
            f"({error.strerror}). If it is a mounted volume, name a folder inside it; if another "
            "process made it meanwhile, name another."
        ) from error


class Common(NamedTuple):
    """What runs share that differ in their chains, but not in how many there are.

    files, digests: of the program and the data, by name.
    program, data: what tells these from others.
    """

    files: dict[str, bytes]
    digests: dict[str, str]
    is_native: bool
    program: str
    data: dict[str, Any]


def common_of(run: Run) -> Common:
    functions = _programs.exported(run)
    texts = _programs.texts_of(functions)
    data = run.feed.leaves if isinstance(run.feed, Fixed) else []
    files = {
        "data.npz": _programs.packed({"data": data}),
        **{name: bytes(function.serialize()) for name, function in functions.items()},
    }
    return Common(
        files,
        {name: digest(content) for name, content in files.items()},
        _programs.calls_kernels(texts),
        _programs.identity(texts),
        given_data(run.feed, run.batch_size),
    )


def build(
    path: Path,
    run: Run,
    common: Common,
    width: int | None = None,
    copies: dict[str, Path] | None = None,
) -> None:
    """Write all that a run needs.

    Args:
        width: chains that a file of draws has room for; all of them if not given.
        copies: files by their checksums, which stores beside this one may share; filled.
    """
    width, copies = width or run.plan.num_chains, {} if copies is None else copies
    structure, folder = structure_of(run), path / "levymc"
    leaves = _leaves_of(structure, run.program.draws)
    trees = {
        "structure": to_json(tuple(structure)),
        "observed": to_json(placed(run.program.observed)),
    }
    state = state_bytes(run, run.carry)
    inputs = {"keys": [run.keys], "parameters": run.parameters}
    draw_bytes = width * sum(leaf.nbytes for leaf in leaves)
    own = {"inputs.npz": _programs.packed(inputs), "state-0.npz": state}
    for name, content in own.items():
        atomic_bytes(folder / name, content)
    for name, content in common.files.items():
        _write_or_link(folder / name, content, common.digests[name], copies)
    digests = {**common.digests, **{name: digest(content) for name, content in own.items()}}
    header = {
        "format": FORMAT,
        "versions": versions(),
        "plan": _plan_to_json(run.plan),
        **trees,
        "leaves": [leaf._asdict() for leaf in leaves],
        "chunk": max(1, min(MOST_IN_CHUNK, CHUNK_BYTES // max(draw_bytes, 1))),
        "width": width,
        "names": list(run.names),
        "block": run.program.block,
        "slots": run.program.slots,
        "key_kind": run.key_kind,
        "is_fed": not isinstance(run.feed, Fixed),
        "is_native": common.is_native,
        "given": given(run, common.program, common.data),
        "digests": dict(sorted(digests.items())),
    }
    header = json.loads(json.dumps(header))  # as it will be read
    write_json(folder / "run.json", header)
    progress = {
        "num_steps": run.plan.num_steps,
        "done": 0,
        "before": 0,
        "chunks": [],
        "state": digest(state),
        "run": digest((folder / "run.json").read_bytes()),
    }
    atomic_bytes(folder / "progress.json", sealed(progress))
    publish(assembled(path, header, progress))


def _write_or_link(file: Path, content: bytes, checksum: str, copies: dict[str, Path]) -> None:
    """Write what is in no file yet: shards share their data, which may be large."""
    make_folder(file.parent)
    try:
        file.hardlink_to(copies[checksum])
    except (KeyError, OSError):  # some file systems have no links
        atomic_bytes(file, content)
        copies[checksum] = file


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
    check_names(leaves)
    return leaves


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "num_chains": plan.num_chains,
        "burn_in": plan.burn_in,
        "kept": marks.to_json(plan.kept),
        "seen": None if plan.seen is None else marks.to_json(plan.seen),
    }
