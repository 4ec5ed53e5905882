"""Run an algorithm and keep its draws: in memory, or in a store that others can go on with."""

import math
import mmap
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh

from levymc._checks import check_count, check_folder, check_function, check_mesh
from levymc._workdir import HAS_LOCKS
from levymc.algorithms import Algorithm, Info

from ._engine import Leaves
from ._iterate import Part, Run, Started, march, observed_by, placed_run, start
from ._minibatches import Batches, Whole
from ._progress import progress_bar
from ._result import Result, from_leaves, load_saved, placed
from .marks import At, MarksLike
from .observe import Observer

Rule = Callable[[Result], Any]
_RULE = "It takes the Result so far, and tells whether the run may end."
LARGE_PAGE = 2**21  # bytes, on most systems


def sample(
    algorithm: Algorithm | Sequence[Algorithm],
    key: Any,
    initial_positions: Any,
    num_steps: int,
    *,
    thin: MarksLike = 1,
    burn_in: int = 0,
    minibatches: Batches | Whole | Any = None,
    observe: Mapping[str, Observer] | None = None,
    observe_every: MarksLike = 1,
    keep: bool | Callable[[Any], Any] | None = None,
    progress: bool = True,
    store: str | Path | None = None,
    mesh: Mesh | None = None,
    until: Rule | None = None,
    shards: int | None = None,
) -> Result:
    r"""Run chains of an algorithm, one from each of the initial positions.

    A chain's random numbers depend on `key` and on the chain's index only.  The draws are the same
    bit for bit however the run is cut into calls, stored, interrupted and resumed, and to rounding
    whatever runs beside them.  Ctrl-C returns what there is.

    The first run of an algorithm compiles a program; later ones with other numbers (step size, α,
    number of steps …) compile nothing, as long as its functions are the same objects.

    Args:
        algorithm: one of levymc's or of BlackJAX's; or a list with one for each chain, which differ
            in their numbers alone, for a sweep over step sizes or α.
        key: a JAX random key.
        initial_positions: a pytree whose leaves have the chains along their first axis.
        num_steps: steps of each chain after burn-in.
        thin: keep every thin-th step; or the steps that are listed, or
            `levymc.marks.logarithmic(count)`.
        burn_in: steps made before, and not kept.
        minibatches: for algorithms whose step takes one.  `levymc.batches(data, size)` draws them
            inside the compiled program, for each chain its own.  An iterable of minibatches, or a
            function of the step's number 0, 1, …, gives one per step to all chains.
            `levymc.whole(data)` gives all of the data to every step.
        observe: summaries by name, such as {"mean": levymc.observe.mean()}, of every step.
        observe_every: show observers every k-th step only, counted after burn-in, or those that
            are listed; in the others they cost nothing.
        keep: what to keep of a position, by a function of it; or whether to keep the positions; if
            not given, they are kept where nothing is observed.
        progress: show a bar, in a terminal.
        store: a folder that does not exist yet, or is empty, for draws, state and program as the
            run proceeds; `levymc.resume(store)` goes on from it, also after the process was killed.
            It is a Zarr group that xarray and ArviZ read.
        mesh: a `jax.sharding.Mesh` with one axis, over which the chains are spread.  Each device
            runs its own, and waits for no other within a call.  Where it is over several processes,
            each returns the chains of its own devices, see `levymc.distributed.own_chains`.  With a
            `store` there is a shard for each device, unless `shards` says otherwise, and each
            process returns all of it.
        until: a function of the `Result` so far that returns whether the run may end; `num_steps`
            is then the most steps that are made.  It is asked at no more than 128 draws, spread
            evenly over `num_steps`: where a run ends depends on its draws alone, not on time.
        shards: with a `store`, cut the chains into at most so many parts of equal size, but for the
            last, which processes share: the same call in any number of processes, on all machines
            that see the folder, or `levymc work STORE` beside it.  Each makes shards that nobody
            has, takes over those of processes that ended, waits for those of others, and returns
            all of it.  The draws are the same bytes however many processes there are, and to
            rounding those of a run without shards.

    Returns:
        A `Result` with num_steps // thin draws of each chain, or fewer where `until` ended it.

    Raises:
        ValueError, TypeError: an argument outside its range; starts that are not finite.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> starts = jnp.zeros(4)
        >>> result = levymc.sample(walk, jax.random.key(0), starts, 100, progress=False)
        >>> result.positions.shape
        (4, 100)
    """
    keeper = _keeper(keep, is_observed=observe is not None)
    check_rule(until, keeps=keeper is not None)
    folder = None if store is None else check_folder("store", store)
    started = start(
        algorithm,
        key,
        initial_positions,
        num_steps,
        thin=thin,
        burn_in=burn_in,
        minibatches=minibatches,
        observe=observe,
        observe_every=observe_every,
        keep=keeper,
        is_stored=store is not None,
        mesh=mesh,
    )
    if shards is not None or (mesh is not None and folder is not None):
        return warned(_in_shards(folder, started, shards, mesh, progress=progress, until=until))
    if until is not None and mesh is not None and mesh.is_multi_process:
        raise _rule_of_parts(until)
    run = placed_run(started, mesh)
    if folder is None:
        return warned(_in_memory(run, progress=progress, until=until))
    from ._create import create
    from ._store import go_on

    made = go_on(create(folder, run), run.feed, progress=progress, until=until)
    return warned(made.result())


def check_shards(count: Any, store: Any, num_chains: int, what: str = "chains") -> int:
    """The number of parts that processes share; refused where they cannot."""
    if store is None:
        raise ValueError(
            "`store` must be given with `shards`, got None. It is the folder that processes share."
        )
    number = check_count("shards", count, f"It is a number of parts that the {what} are cut into.")
    if number > num_chains:
        raise ValueError(
            f"`shards` must be at most the number of {what}, {num_chains}, got {number}. Each is "
            "made by one process: take fewer shards."
        )
    if not HAS_LOCKS:
        raise ValueError(
            f"`shards` must be None on this system, got {number}: it has no locks that end with "
            "the process, by which processes claim them. Leave it out."
        )
    return number


def _in_shards(
    folder: Path | None,
    started: Started,
    shards: Any,
    mesh: Mesh | None,
    *,
    progress: bool,
    until: Rule | None,
) -> Result:
    """Make the chains in parts, with other processes, and one device for each that is made here."""
    from ._divide import begin_or_join
    from ._work import complete

    num_chains = started.plan.num_chains
    parts = shards if mesh is None or shards is not None else min(mesh.size, num_chains)
    count = check_shards(parts, folder, num_chains)
    if until is not None:
        raise _rule_of_parts(until)
    assert folder is not None
    path, feed = begin_or_join(folder, started, count), started.source.feed
    return complete(path, feed, progress=progress, mesh=mesh)


def resume(
    store: str | Path,
    *,
    num_steps: int | None = None,
    minibatches: Any = None,
    progress: bool = True,
    until: Rule | None = None,
    mesh: Mesh | None = None,
) -> Result:
    """Go on with a run that `levymc.sample(..., store=...)` began, and return the whole of it.

    Needs nothing but the folder: the compiled program is in it, and is executed.  Only resume a
    store that you trust; `levymc.load` executes nothing.  The draws are the same bytes as those of
    a run that nothing interrupted; but of one that `levymc.iterate(..., mesh=...)` began on several
    devices, which goes on on one, they are the same to rounding, with a warning.  What is stored is
    checked before the first step is made.

    Args:
        store: the folder.
        num_steps: steps of each chain after burn-in, those that are made included: more than the
            run was begun with extend it, also if it is complete.
        minibatches: the function that the run was begun with, where it was begun with one: its
            first minibatch is compared with the one of then.  Data are in the store; if they are
            given all the same, they are compared.
        progress: show a bar, in a terminal.
        until: the rule that the run was begun with, which is a function and not stored: the run
            then ends where it would have ended.  Without it all steps are made; but a run that its
            rule has ended is complete, and only `num_steps` makes more of it.
        mesh: devices of which each makes shards, of a run that has some; not necessarily those
            that it was begun with.

    A run in shards is gone on with by any number of processes at once, as by the call that began
    it; `num_steps` is at least what the run has, and holds for all of them.

    Raises:
        StoreError: no store, or one that is damaged, or was begun with other minibatches; what is
            wrong is named.
        RuntimeError: another process is running it, and it has no shards.
    """
    from ._shards import is_sharded
    from ._store import go_on

    folder = check_folder("store", store)
    if mesh is not None:
        check_mesh(mesh)
    if is_sharded(folder):
        from ._work import complete, extend

        if until is not None:
            raise _rule_of_parts(until)
        extend(folder, num_steps)
        return warned(complete(folder, minibatches, progress=progress, mesh=mesh))
    if mesh is not None:
        raise ValueError(
            f"`mesh` must be None for a run without shards, got {mesh!r}: its program is for one "
            "device. Leave it out; levymc.sample(..., store=..., mesh=...) begins one for several."
        )
    made = go_on(folder, minibatches, progress=progress, num_steps=num_steps, until=until)
    return warned(made.result())


def load(path: str | Path) -> Result:
    """Read what `Result.save` wrote, or the draws that a stored run has so far.

    The run may still be going on.  All that is read is checked, and nothing of it is executed: the
    store may be a stranger's.  Of a run in shards there are the draws that all of its chains have;
    what observers say is of the steps that each of them has made.

    Raises:
        StoreError, ValueError: a file or folder that is neither, or is damaged.
    """
    place = check_folder("path", path)
    if place.is_file():
        return load_saved(place)
    from ._shards import is_sharded, load_shards
    from ._store import load_store

    return load_shards(place) if is_sharded(place) else load_store(place)


class Tally(NamedTuple):
    """What a process did for a run: shards that it made, how many there are, which are left."""

    made: int
    num_shards: int
    left: tuple[int, ...]


def work(
    store: str | Path, *, minibatches: Any = None, progress: bool = True, mesh: Mesh | None = None
) -> Tally:
    """Make shards of a run that `levymc.sample(..., shards=...)` began; leave when none is free.

    It waits for nobody and reads no draws: for processes beside the one that wants the result.
    Like `levymc.resume` it executes the program that is stored: only for a store that you trust.

    Args:
        store: the folder.
        minibatches: the function that the run was begun with, where it was begun with one.
        progress: show a bar, in a terminal.
        mesh: devices of which each makes shards; if not given, one does.

    Returns:
        A `Tally`; other processes have the shards that are left.

    Raises:
        StoreError: no run in shards, or one that is damaged.
        KeyboardInterrupt: it was stopped; what was made is safe.
    """
    from ._work import help_with

    if mesh is not None:
        check_mesh(mesh)
    return help_with(check_folder("store", store), minibatches, progress=progress, mesh=mesh)


def _rule_of_parts(until: Any) -> ValueError:
    return ValueError(
        f"`until` must be None for a run in shards, or over several processes, got {until!r:.100}. "
        "It is a function of all draws, and these are made apart. Run some steps, look at the "
        "result, and make more with levymc.resume(store, num_steps=...)."
    )


def _keeper(keep: Any, *, is_observed: bool) -> Callable[[Any], Any] | None:
    """The function of a position that is kept, if any."""
    if callable(keep):
        return keep
    if not (keep is None or isinstance(keep, bool)):
        raise TypeError(
            f"`keep` must be a function of a position, True or False, got {keep!r}. "
            "Leave it out, and positions are kept where nothing is observed."
        )
    return _itself if keep or (keep is None and not is_observed) else None


def _itself(position: Any) -> Any:
    return position


def check_rule(until: Any, *, keeps: bool) -> None:
    """Refuse what is no rule to end a run by, and a rule for a run that keeps no draws."""
    if until is None:
        return
    check_function("until", until, _RULE)
    if not keeps:
        raise ValueError(
            f"`until` must be None where no draws are kept, got {until!r:.100}. It is a function "
            "of draws: run with keep=True, or use levymc.iterate, which may be left at any step."
        )


@runtime_checkable
class Sink(Protocol):
    """Where draws go."""

    def append(self, part: Part) -> None: ...

    def result(self) -> Result:
        """What there is so far."""
        ...


def follow(
    run: Run,
    carry: list[Any],
    done: int,
    sink: Sink,
    *,
    structure: Any,
    progress: bool,
    until: Rule | None = None,
    is_halted: Callable[[], bool] = lambda: False,
) -> bool:
    """March through a run into a sink, to its end or that of its rule; whether it got there.

    is_halted: asked after each call, whether to stop as at Ctrl-C, which one thread hears.
    """
    plan, place = run.plan, getattr(structure.info, "is_divergent", None)
    counted = "refused" if run.is_exact else "divergences"
    is_shown = progress and sys.stderr.isatty()
    shown = progress_bar(plan.total, plan.num_chains, counted, done) if is_shown else None
    looks = None if until is None else plan.looks()
    with shown or nullcontext(lambda steps, divergent: None) as report:
        try:
            # Also before the first step: a killed process may have had no time to ask.
            if _is_met(until, looks, done - plan.burn_in, sink):
                return True
            for part in march(run, carry, done, looks):
                sink.append(part)
                divergent = np.count_nonzero(part.draws[place]) if isinstance(place, int) else 0
                report(part.done - done, int(divergent))
                done = part.done
                if _is_met(until, looks, done - plan.burn_in, sink):
                    return True
                if is_halted():
                    break
        except KeyboardInterrupt:
            pass  # what there is, is returned
    return done == plan.total


def _is_met(until: Rule | None, looks: At | None, step: int, sink: Sink) -> bool:
    """Whether a run may end after a step; the rule is asked where it is to look."""
    if until is None or looks is None or not len(looks.within(step - 1, step, 1)):
        return False
    answer = until(_read_only(sink.result()))
    found = np.asarray(answer)
    if found.ndim or found.dtype.kind not in "biu":  # a float would nearly always be true
        raise TypeError(f"`until` must return True or False, got {answer!r:.100}. {_RULE}")
    return bool(found)


def _read_only(result: Result) -> Result:
    """Whose arrays refuse to be changed in their place, as draws go on to be added to them."""
    for leaf in jax.tree.leaves((result.positions, result.info, result.weights)):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    return result


def _empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """As `np.empty`, a large one in large pages: to get a page costs as much as to fill it."""
    count = math.prod(shape)
    if not hasattr(mmap, "MADV_HUGEPAGE") or count * dtype.itemsize < LARGE_PAGE:
        return np.empty(shape, dtype)
    memory = mmap.mmap(-1, count * dtype.itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # where the system has none
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count).reshape(shape)


class _Reached(NamedTuple):
    """How far a run has come: with it count the first `num_draws`."""

    num_draws: int
    done: int
    carry: Leaves
    is_over: bool = False


class _Memory:
    """A sink that keeps the draws.

    They are copied as they come, so that the program's own memory is used again for the next.
    """

    def __init__(self, run: Run, *, is_whole: bool) -> None:
        self.run, self.structure = run, structure_of(run)
        self.room = run.plan.num_kept(run.plan.total) if is_whole else 0
        self.kept: list[np.ndarray] = []
        self.reached = _Reached(0, 0, run.carry)

    def append(self, part: Part) -> None:
        begin = self.reached.num_draws
        end = begin + (len(part.draws[0]) if part.draws else 0)
        if end > begin:
            if not self.kept or end > self.room:
                self._make_room(part.draws, end)
            for place, leaf in zip(self.kept, part.draws, strict=True):
                place[begin:end] = leaf
        # All at once, and last: Ctrl-C may come anywhere.
        self.reached = _Reached(end, part.done, part.carry, part.is_last)

    def _make_room(self, draws: list[np.ndarray], count: int) -> None:
        """For all draws, or, where it is not known how many there will be, twice as many."""
        self.room = self.room if count <= self.room else 2 * count
        larger = [_empty((self.room, *leaf.shape[1:]), leaf.dtype) for leaf in draws]
        for place, earlier in zip(larger, self.kept, strict=False):
            place[: self.reached.num_draws] = earlier[: self.reached.num_draws]
        self.kept = larger

    def result(self, *, is_interrupted: bool = False) -> Result:
        reached = self.reached
        steps = self.run.plan.steps_until(reached.done)
        # The leaves with axes (chain, draw, …).
        leaves = [np.moveaxis(place[: reached.num_draws], 0, 1) for place in self.kept]
        return from_leaves(
            leaves,
            self.structure,
            (self.run.plan.num_chains, len(steps)),
            is_interrupted=is_interrupted,
            observed=observed_by(self.run, reached.carry),
            steps=steps,
            algorithm=self.run.algorithm,
            is_exact=self.run.is_exact,
        )


def _in_memory(run: Run, *, progress: bool, until: Rule | None) -> Result:
    memory = _Memory(run, is_whole=until is None)
    is_whole = follow(
        run, run.carry, 0, memory, structure=memory.structure, progress=progress, until=until
    )
    done, is_over = memory.reached.done, memory.reached.is_over
    has_draws = run.plan.num_kept(done) > 0
    if not has_draws and is_over:
        raise ValueError(
            f"`minibatches` must last until the first draw, got {done} of them. Give an "
            "iterable that is long enough, such as itertools.cycle(...), or keep earlier steps."
        )
    if not has_draws:
        raise KeyboardInterrupt("The run was stopped before its first draw.")
    return memory.result(is_interrupted=not is_whole)


def structure_of(run: Run) -> Any:
    """The tree of the draws, with the numbers of the leaves in their places."""
    values = run.program.fixed(run.parameters)
    return placed(run.program.draws, run.program.varying, values)


_SMALLER = (
    "Take a smaller step size, or levymc.integrators.tamed() or split() in the place of euler()."
)
_CAUSES = {
    "would have left the finite numbers": _SMALLER,
    "would have ended where log φ is not finite, outside the support or so far out that it "
    "overflows,": "On a bounded support take an exact sampler, such as levymc.mafla or "
    "levymc.levy_walk, to which a refusal does no harm, or a transform to the whole line; "
    "elsewhere t" + _SMALLER[1:],
}


def warned(result: Result) -> Result:
    """Report steps that make the law wrong, with advice.

    Of an exact sampler those that were not made do no harm, but a wrong bound does.
    """
    if result.num_above_bound:
        warnings.warn(
            f"{result.num_above_bound} of {result.num_draws * result.num_chains} draws had a step "
            "that met a point where log φ is above `upper_bound`: the bound is too low, and the "
            "draws are of the law that is cut off there, min(φ, exp(upper_bound)). Give a larger "
            "bound, or none: levymc.proximal needs none.",
            stacklevel=3,
        )
    if not isinstance(result.info, Info) or result.is_exact:
        return result
    counts = (result.num_divergent - result.num_outside, result.num_outside)
    for count, (cause, remedy) in zip(counts, _CAUSES.items(), strict=True):
        if count > 0:
            warnings.warn(
                f"{count} of {result.num_draws * result.num_chains} draws had a step that {cause} "
                "and was not made: the chain stayed where it was, so that the draws are biased. "
                + remedy,
                stacklevel=3,
            )
    if result.num_inexact:
        warnings.warn(
            f"{result.num_inexact} of {result.num_draws * result.num_chains} draws had a step "
            "whose drift is in doubt: its estimated error is above 1e-3 (info.drift_error), as "
            "where the chain is in a mode that the drift's exploration did not find. Give the "
            "modes, such as those of these draws, to levymc.drifts.quadrature(..., modes=...).",
            stacklevel=3,
        )
    return result
