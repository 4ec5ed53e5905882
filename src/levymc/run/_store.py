"""A run on disk, which a killed process or a machine without power leaves whole.

::

    zarr.json                  a Zarr group, whose metadata list the draws that there are
    posterior/NAME/            an array for each leaf of the positions, with axes (chain, draw, …)
    sample_stats/NAME/         likewise for the info; a constant has no chunks
    levymc/run.json            the plan, the structure of the draws, versions, checksums
    levymc/*.bin, *.npz        the exported program, and its inputs: all that the run needs
    levymc/state-N.npz         the chains' exact states after N steps, and what observers say then
    levymc/progress.json       how far the run is, with checksums; replaced atomically

progress.json has a checksum of itself, of run.json, of the state and of each chunk of draws;
run.json those of all other files in its folder.  What is there for other tools, metadata and
coordinates, follows from these, and is compared with what it should be.

Draws count once progress.json says so; what a killed process left beyond them is written over.
The last chunk is written again as it grows, each time whole: its first draws stay the same bytes.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from levymc._checks import check_count
from levymc._trees import leaf_names
from levymc._workdir import (
    atomic_bytes,
    flush,
    lock,
    parse_json,
    remove_partial,
)
from levymc.algorithms import Info

from . import _programs, marks
from ._chunks import GROUPS, KINDS, Chunks, Leaf, Written, check_names, joined
from ._compare import check_minibatches, warn_of_devices, warn_of_versions
from ._engine import Draws, Feed, Fixed, Leaves, Program
from ._integrity import (
    StoreError,
    as_damage,
    checked,
    damaged,
    digest,
    not_a_store,
    patiently,
    sealed,
    unsealed,
)
from ._iterate import Part, Plan, Run, check_total, march
from ._result import STATISTICS, Constant, Result, from_json, from_leaves
from ._sample import Rule, check_rule, follow
from ._zarr import Shown

T = TypeVar("T")

FORMAT = 4
COMMIT_SECONDS = 30.0  # what a kill loses at most
COMMIT_BYTES = 256 * 2**20
FILES = {"inputs.npz", "data.npz", "state-0.npz", _programs.ADVANCE, _programs.FINISH}
HEADER = {
    "versions": dict,
    "names": list,
    "key_kind": str,
    "is_fed": bool,
    "is_native": bool,
    "given": dict,
    "digests": dict,
}
PROGRESS = {"chunks": list, "state": str, "run": str}


class Store(NamedTuple):
    """An open store.

    structure, observed: trees with the leaves' numbers, or constants.
    progress: what counts, as it was when the store was opened.
    state: the content of the state file, read at the same time.
    """

    path: Path
    plan: Plan
    chunks: Chunks
    structure: Draws
    observed: tuple[Any, ...]
    header: dict[str, Any]
    progress: dict[str, Any]
    state: bytes = b""

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

    @property
    def shown(self) -> Shown:
        info = self.structure.info
        pairs = zip(leaf_names(info), jax.tree.leaves(info), strict=True)
        constants = {
            STATISTICS.get(name, name): place.value
            for name, place in pairs
            if isinstance(place, Constant) and place.value.ndim == 0
        }
        return Shown(self.chunks, constants, self.plan.kept)

    @property
    def written(self) -> Written:
        return Written(self.chunks, self.num_draws, self.progress["chunks"])

    def observed_by_name(self) -> dict[str, Any]:
        """What the observers said when the state was written."""
        names = self.header["names"]
        if not names:
            return {}
        leaves = _programs.unpacked(self.state)["observed"]
        summaries = jax.tree.map(lambda place: leaves[place], self.observed)
        return dict(zip(names, summaries, strict=True))

    def state_file(self, done: int) -> Path:
        return self.folder / f"state-{done}.npz"


# Opening one.


def open_store(path: Path) -> Store:
    """Open a store, having checked everything in it that counts but the draws."""
    return patiently(lambda: _generation(path), lambda: _verified(path))


def load_store(path: Path) -> Result:
    """The draws that a store has, all of it checked, and nothing of it executed."""
    return patiently(lambda: _generation(path), lambda: read(_with_what_is_shown(path)))


def open_shown(path: Path) -> Store:
    """Open a store, having checked everything in it but the draws: what other tools see, too."""
    return patiently(lambda: _generation(path), lambda: _with_what_is_shown(path))


def _with_what_is_shown(path: Path) -> Store:
    store = _verified(path)
    store.shown.check(store.plan.counts(store.done, store.progress["before"]))
    return store


def _generation(path: Path) -> bytes | None:
    """What a writer replaces with each commit."""
    try:
        return (path / "levymc" / "progress.json").read_bytes()
    except OSError:
        return None


def _verified(path: Path) -> Store:
    store = glimpse(path)
    for name, expected in store.header["digests"].items():
        if not name.startswith("state-"):
            checked(path, store.folder / name, expected)
    state = checked(path, store.state_file(store.done), store.progress["state"])
    return store._replace(state=state)


def glimpse(path: Path) -> Store:
    """A store whose plan and progress are as they were written; nothing else is looked at."""
    progress, is_whole = _parsed(path, "progress.json", unsealed)
    header, found = _parsed(
        path, "run.json", lambda content: (parse_json(content), digest(content))
    )
    if header.get("format") != FORMAT:
        raise StoreError(
            f"{path} has format {header.get('format')}; this version reads {FORMAT}. Use the "
            f"version of levymc that wrote it, {_version_in(header)}, or run again."
        )
    if not is_whole:
        raise damaged(path, "progress.json is not as it was written")
    if found != progress.get("run"):
        raise damaged(path, "run.json is not as it was written")
    with as_damage(path, "its plan"):
        return assembled(path, header, progress)


def _parsed(path: Path, name: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse((path / "levymc" / name).read_bytes())
    except (OSError, ValueError, KeyError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise not_a_store(path, f"levymc/{name}: {why}") from error


def _version_in(header: dict[str, Any]) -> Any:
    found = header.get("versions")
    return found.get("levymc", "unknown") if isinstance(found, dict) else "unknown"


def assembled(path: Path, header: dict[str, Any], progress: dict[str, Any]) -> Store:
    given = header["plan"]
    plan = Plan(
        _whole("num_chains", given["num_chains"], 1),
        _whole("num_steps", progress["num_steps"], 1),
        _whole("burn_in", given["burn_in"], 0),
        marks.from_json(given["kept"]),
        None if given["seen"] is None else marks.from_json(given["seen"]),
    )
    leaves = tuple(
        Leaf(leaf["group"], leaf["name"], tuple(leaf["shape"]), leaf["dtype"])
        for leaf in header["leaves"]
    )
    width = _whole("width", header.get("width", plan.num_chains), plan.num_chains)
    chunks = Chunks(path, leaves, plan.num_chains, _whole("chunk", header["chunk"], 1), width)
    structure, observed = Draws(*from_json(header["structure"])), from_json(header["observed"])
    store = Store(path, plan, chunks, structure, observed, header, progress)
    _check_store(store)
    return store


def _whole(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"its {name} is {value!r}")
    return value


def _check_store(store: Store) -> None:
    """Refuse what does not fit together, as a stranger's store may have it."""
    for found, types in ((store.header, HEADER), (store.progress, PROGRESS)):
        for name, kind in types.items():
            if not isinstance(found[name], kind):
                raise ValueError(f"its {name} is {found[name]!r}")
    if not {"inputs.npz", "data.npz", _programs.ADVANCE} <= set(store.header["digests"]) <= FILES:
        raise ValueError(f"its files are {list(store.header['digests'])}")
    for name in ("block", "slots"):
        _whole(name, store.header[name], 1)
    _whole("done", store.done, 0, store.plan.total)
    _whole("before", store.progress["before"], 0, store.done)
    check_names(store.chunks.leaves)
    for leaf in store.chunks.leaves:
        for size in leaf.shape:
            _whole("shape", size, 0)
        if leaf.group not in GROUPS or np.dtype(leaf.dtype).kind not in KINDS:
            raise ValueError(f"it has {leaf.dtype} in {leaf.group}")
    places = [one for one in jax.tree.leaves(store.structure) if not isinstance(one, Constant)]
    if sorted(places) != list(range(len(store.chunks.leaves))):
        raise ValueError(f"its leaves are {places}")
    count = -(-store.num_draws // store.chunks.size) if places else 0
    if len(store.progress["chunks"]) != count:
        raise ValueError(f"it has {len(store.progress['chunks'])} chunks for {count}")


def extended(store: Store, num_steps: Any) -> Store:
    """The store with another number of steps to make; the same if None is given."""
    if num_steps is None:
        return store
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    made = max(store.done - store.plan.burn_in, 0)
    if steps < made:
        raise ValueError(
            f"`num_steps` must be at least the {made} steps that were made, got {steps}. "
            "levymc.load(store) reads what there is."
        )
    check_total(steps + store.plan.burn_in)
    _check_listed(store.plan, steps)
    return _of_length(store, steps)


def _check_listed(plan: Plan, steps: int) -> None:
    """Refuse steps beyond those that were listed: nothing would be kept there, or observed."""
    for what, name, listed in (
        ("kept", "thin", plan.kept),
        ("observed", "observe_every", plan.seen),
    ):
        if isinstance(listed, marks.At):
            most = max([plan.num_steps, *listed.steps[-1:]])
            if steps > most:
                raise ValueError(
                    f"`num_steps` must be at most {most}, got {steps}: the steps that are {what} "
                    f"were listed for that number. Only a run with {name}=k can be extended."
                )


def _of_length(store: Store, steps: int) -> Store:
    return store._replace(
        plan=store.plan._replace(num_steps=steps),
        progress={**store.progress, "num_steps": steps},
    )


# Going on with it.


def state_bytes(run: Run, carry: Leaves) -> bytes:
    """The chains' states, and what the observers say, which nobody has to compute who reads."""
    observed = run.program.finish(carry) if run.names else []
    return _programs.packed({"carry": carry, "observed": observed})


class Made(NamedTuple):
    """A store that a process went on with, and whether it came to the end."""

    store: Store
    is_whole: bool

    def result(self) -> Result:
        return read(self.store, is_interrupted=not self.is_whole)


def go_on(
    path: Path,
    minibatches: Any,
    *,
    progress: bool,
    num_steps: Any = None,
    until: Rule | None = None,
    is_halted: Callable[[], bool] = lambda: False,
) -> Made:
    """Make the steps that are missing; see `follow`."""
    with _working(path, minibatches, COMMIT_SECONDS, num_steps) as (run, sink):
        structure = sink.store.structure
        if sink.done < run.plan.total:
            warn_of_devices(path, sink.store.header)
        check_rule(until, keeps=structure.positions is not None)
        is_whole = follow(
            run,
            run.carry,
            sink.done,
            sink,
            structure=structure,
            progress=progress,
            until=until,
            is_halted=is_halted,
        )
        if is_whole:
            sink.end()
    return Made(sink.store, is_whole)


def parts(
    path: Path, feed: Feed, stops: marks.Known, seconds: float, maker: Run | None = None
) -> Generator[Part, None, None]:
    """Make the steps that are missing, with calls that end at the stops.

    A part counts once the caller asks for the next.  Of a complete run there is the last, again.

    Args:
        maker: the same run over several devices, which makes the steps; if not given, the program
            in the store does.
    """
    with _working(path, feed, seconds) as (run, sink):
        carry = run.carry if maker is None else _spread_like(maker.carry, run.carry)
        if sink.done == run.plan.total:
            yield Part(sink.done, carry, [], True)
        for part in march(maker or run, carry, sink.done, stops):
            yield part
            sink.append(part if maker is None else _on_host(part, run.plan.num_chains))


def _spread_like(example: Leaves, carry: Leaves) -> Leaves:
    """A carry over the devices of another, which may have the last chain several times."""

    def placed(like: Any, leaf: Any) -> Any:
        chains = np.minimum(np.arange(len(like)), len(leaf) - 1)
        return jax.device_put(np.asarray(leaf)[chains], like.sharding)

    return [placed(like, leaf) for like, leaf in zip(example, carry, strict=True)]


def _on_host(part: Part, num_chains: int) -> Part:
    """A part as one device would have left it."""
    kept: list[Any] = [np.asarray(leaf)[:num_chains] for leaf in part.carry]
    return part._replace(carry=kept)


@contextmanager
def _working(
    path: Path, minibatches: Any, seconds: float, num_steps: Any = None
) -> "Iterator[tuple[Run, _Sink]]":
    """The run from where it is, for one process at a time; the sink is committed in the end."""
    glimpse(path)  # is it one?
    with lock(path):
        store = extended(open_store(path), num_steps)
        feed = check_minibatches(path, store.header, minibatches)
        store.written.check()  # before hours are spent on going on with what is damaged
        _tidy(store)
        if store.done < store.plan.total:
            warn_of_versions(path, store.header)
        run = _loaded_run(store, feed)
        sink = _Sink(store, run, seconds)
        try:
            yield run, sink
        finally:
            sink.commit()


def _tidy(store: Store) -> None:
    """Finish what a killed process had no time for."""
    for folder in [store.path, *(path for path in store.path.rglob("*") if path.is_dir())]:
        remove_partial(folder)
    if not store.shown.is_published(store.done, store.num_draws):
        # It may have been killed before what it wrote last, and is read now, was safe on disk.
        size, before = store.chunks.size, store.plan.num_kept(store.progress["before"])
        recent = range(before // size, -(-store.num_draws // size))
        files = [store.chunks.file(leaf, one) for leaf in store.chunks.leaves for one in recent]
        flush([*files, store.state_file(store.done)], store.path)
    for file in store.folder.glob("state-*.npz"):
        if file != store.state_file(store.done):
            file.unlink(missing_ok=True)
    publish(store)


class _Sink:
    """Gathers draws, and commits them every so many seconds."""

    def __init__(self, store: Store, run: Run, seconds: float) -> None:
        self.store, self.run, self.seconds = store, run, seconds
        self.reached = store.done, run.carry
        self.digests: list[str] = list(store.progress["chunks"])
        # The draws of the chunk that is not full yet, and those of the calls after them.
        number, begun = divmod(store.num_draws, store.chunks.size)
        rows = store.chunks.none()
        if begun:
            rows = store.chunks.rows(number, begun, self.digests[number] if rows else None)
        self.begin = store.num_draws - begun
        self._hold(rows)
        self.since = time.monotonic()

    def _hold(self, rows: list[np.ndarray]) -> None:
        """The draws of a chunk that is not full, without those of calls after them."""
        self.rows, self.parts = rows, list[list[np.ndarray]]()
        self.held = sum(row.nbytes for row in rows)

    @property
    def done(self) -> int:
        """Steps that came; what was made of later ones does not count yet."""
        return self.reached[0]

    def _check_weights(self, part: Part) -> None:
        """Refuse draws whose step sizes are no weights.

        A schedule was looked at for the steps that the run was begun with, and is not stored.
        """
        info: Any = self.store.structure.info
        place: Any = info.step_size if isinstance(info, Info) else None
        plan = self.store.plan
        if not isinstance(place, int):  # of another library, or a constant, which was looked at
            return
        sizes = part.draws[place]
        wrong = np.argwhere(~(np.isfinite(sizes) & (sizes > 0)))
        if len(wrong):
            number = plan.num_kept(self.done) + int(wrong[0, 0])
            step, before = (int(plan.kept.numbered(n, 1)[0]) for n in (number, max(number - 1, 0)))
            raise ValueError(
                f"`num_steps` must be less than {step}, where the schedule's step size is "
                f"{sizes[tuple(wrong[0])]} and must be positive and finite, got {plan.num_steps}. "
                f"The draws before are safe in {self.store.path}: levymc.resume(store, "
                f"num_steps={max(before, self.done - plan.burn_in)}) makes the rest of them."
            )

    def append(self, part: Part) -> None:
        self._check_weights(part)
        if part.draws and len(part.draws[0]):
            self.parts.append([_own(leaf) for leaf in part.draws])
            self.held += sum(leaf.nbytes for leaf in part.draws)
        self.reached = part.done, part.carry  # at once, and last: Ctrl-C may come anywhere
        if time.monotonic() - self.since > self.seconds or self.held > COMMIT_BYTES:
            self.commit()

    def result(self) -> Result:
        self.commit()
        return read(self.store, is_interrupted=False)

    def end(self) -> None:
        """Let the run be complete with the steps that were made, as its rule may have it."""
        self.store = _of_length(self.store, self.done - self.store.plan.burn_in)

    def commit(self) -> None:
        """Make all that came safe on disk, and let it count."""
        store, size, (done, carry) = self.store, self.store.chunks.size, self.reached
        if done == store.done and sealed(store.progress) == _generation(store.path):
            return
        first = self.begin // size
        with _telling_where_it_stopped(store):
            rows = self._gathered(store.plan.num_kept(done) - self.begin)
            self.digests[first:] = self._write_chunks(rows)
            state = state_bytes(self.run, carry)
            atomic_bytes(store.state_file(done), state)
            progress = {
                **store.progress,
                "done": done,
                "before": store.done,
                "chunks": list(self.digests),
                "state": digest(state),
            }
            atomic_bytes(store.folder / "progress.json", sealed(progress))
            self.store = store._replace(progress=progress, state=state)
            publish(self.store, first)
        if done != store.done:
            store.state_file(store.done).unlink(missing_ok=True)
        full = rows[0].shape[1] // size * size if rows else 0
        self.begin += full
        self._hold([row[:, full:].copy() for row in rows])
        self.since = time.monotonic()

    def _gathered(self, count: int) -> list[np.ndarray]:
        """The draws from `begin` on, with axes (chain, draw, …): as many as count."""
        calls = [[np.moveaxis(leaf, 0, 1) for leaf in leaves] for leaves in self.parts]
        together = zip(self.rows, *calls, strict=True)
        return [np.concatenate(leaves, axis=1)[:, :count] for leaves in together]

    def _write_chunks(self, rows: list[np.ndarray]) -> list[str]:
        """Write the draws from `begin` on; the checksum of each chunk."""
        chunks, count = self.store.chunks, rows[0].shape[1] if rows else 0
        return [
            chunks.write(
                (self.begin + first) // chunks.size,
                [part[:, first : first + chunks.size] for part in rows],
            )
            for first in range(0, count, chunks.size)
        ]


def _own(leaf: np.ndarray) -> np.ndarray:
    """Draws without what a call had room for, all of which a view of a few would keep in memory."""
    room = leaf.base
    is_small = isinstance(room, np.ndarray) and room.nbytes > 2 * leaf.nbytes
    return leaf.copy() if is_small else leaf


def publish(store: Store, first: int = 0) -> None:
    """Let other tools see the draws that count; what is before the chunk `first`, they see."""
    store.shown.publish(store.done, store.num_draws, first)


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
    def content(name: str) -> bytes:
        return checked(store.path, store.folder / name, store.header["digests"][name])

    with as_damage(store.path, "its inputs"):
        inputs, data = (_programs.unpacked(content(name)) for name in ("inputs.npz", "data.npz"))
    with as_damage(store.path, "the state"):
        state = _programs.unpacked(store.state)
    with as_damage(store.path, "run.json"):
        program = _loaded_program(store, content)
        names, key_kind = tuple(store.header["names"]), store.header["key_kind"]
    return Run(
        store.plan,
        program,
        _programs.on_device(inputs.get("parameters", [])),
        _programs.on_device(inputs["keys"])[0],
        feed or Fixed(_programs.on_device(data.get("data", []))),
        _programs.on_device(state["carry"]),
        names,
        key_kind,
        store.header["given"]["algorithm"],
        store.header["given"]["is_exact"],
    )


def _loaded_program(store: Store, content: Any) -> Program:
    """The stored functions, of which nothing is read before it is called."""

    def function(name: str) -> Any:
        return _programs.when_called(partial(content, name), is_native=store.header["is_native"])

    advance, finish = function(_programs.ADVANCE), function(_programs.FINISH)

    def call(parameters: Leaves, carry: Leaves, keys: Any, data: list[Any], call: Any) -> Any:
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


# Reading its draws.


def read(store: Store, *, is_interrupted: bool | None = None) -> Result:
    """The draws that count."""
    count = store.num_draws
    if not count:
        raise StoreError(
            f"{store.path} has no draws yet. Go on with levymc.resume, which executes the program "
            "in it."
        )
    stopped = store.done < store.plan.total if is_interrupted is None else is_interrupted
    with as_damage(store.path, "it"):
        return from_leaves(
            joined([store.written]),
            store.structure,
            (store.plan.num_chains, count),
            is_interrupted=stopped,
            observed=store.observed_by_name(),
            steps=store.plan.steps_until(store.done),
            algorithm=store.header["given"]["algorithm"],
            is_exact=store.header["given"]["is_exact"],
        )
