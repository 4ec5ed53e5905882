"""The loop over steps that everything sits on: start a run, march through it, look at it."""

import dataclasses
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from levymc import noises, schedules
from levymc._checks import (
    check_count,
    check_folder,
    check_key,
    check_mesh,
)
from levymc._settled import Settling, computed_by, is_fixed, settled
from levymc.algorithms import Algorithm, Info, as_algorithm

from ._engine import (
    EPOCH,
    MOST_MARKS,
    NEVER,
    NO_DATA,
    Call,
    Carry,
    Feed,
    Fixed,
    Leaves,
    Marks,
    Program,
    Recipe,
    Shapes,
    Source,
    chain_keys,
    compile_init,
    compile_program,
    keys_of_epoch,
    observed_computed,
    rebuild,
    shape_of,
    step_computed,
)
from ._minibatches import source_of
from ._refused import (
    check_batch,
    check_finite,
    check_kept,
    check_keyless,
    check_observers,
    check_spread,
    check_support,
    count_chains,
    of_one_chain,
)
from ._spreading import agreed, check_same, on_mesh, warn_of_communication
from .marks import At, CycleEnds, Every, Known, MarksLike, as_marks
from .observe import Observer

FIRST_STEPS = 8
MOST_STEPS = 2**62
MOST_LOOKS = 128  # of a rule at its run: it ends at most a hundredth of the run late
SECONDS_PER_CALL = 0.25  # so that a progress bar moves, and Ctrl-C is heard
_ENDED = (
    "`minibatches` ended after {} of {} steps, and the run with them. "
    "Give an iterable that is long enough, such as itertools.cycle(...)."
)


class Plan(NamedTuple):
    """`burn_in` steps, then `num_steps`, some of which are kept and some observed."""

    num_chains: int
    num_steps: int
    burn_in: int
    kept: Known
    seen: Known | None

    @property
    def total(self) -> int:
        return self.burn_in + self.num_steps

    def steps_until(self, done: int) -> np.ndarray:
        """Those kept once `done` steps were made, burn-in and all; counted after the burn-in."""
        return self.kept.within(0, max(done - self.burn_in, 0), self.num_steps)

    def num_kept(self, done: int) -> int:
        """How many these are."""
        return self.kept.count_until(max(done - self.burn_in, 0))

    def counts(self, *done: int) -> list[tuple[int, int]]:
        """Numbers of steps, each with how many are kept by then."""
        return [(steps, self.num_kept(steps)) for steps in done]

    def looks(self) -> At:
        """Where a rule is asked: at the last draws before evenly spaced steps; not at the end."""
        ends = (-(-self.num_steps * look // MOST_LOOKS) for look in range(1, MOST_LOOKS + 1))
        counts = sorted({self.kept.count_until(end) for end in ends} - {0})
        steps = (int(self.kept.numbered(count - 1, 1)[0]) for count in counts)
        return At(tuple(step for step in steps if step < self.num_steps))

    def call(self, done: int, most: int, slots: int, block: int) -> Call:
        """The next call after `done` steps, of at most `most`, with at most `slots` draws.

        If not all draws fit it ends with a block, so that the next does not make one in vain.
        """
        most = min(most, EPOCH - done % EPOCH)
        if done < self.burn_in:
            nowhere = np.zeros(0, np.int64)
            return _call(done, min(most, self.burn_in - done), False, nowhere, nowhere)
        begin = done - self.burn_in
        end = min(begin + most, self.num_steps)
        kept = self.kept.within(begin, end, slots)
        if len(kept) == slots:
            end = begin + _in_whole_blocks(done, int(kept[-1]) - begin, block)
        seen = kept[:0] if self.seen is None else self.seen.within(begin, end, MOST_MARKS)
        places = _union(kept, seen)
        if len(places) >= MOST_MARKS:
            end = int(places[MOST_MARKS - 1])
        is_fresh = begin == 0 or len(self.kept.within(begin - 1, begin, 1)) > 0
        inside = [marks[marks <= end] - begin for marks in (kept, seen)]
        return _call(done, end - begin, is_fresh, *inside)


def _in_whole_blocks(done: int, length: int, block: int) -> int:
    """At most `length` steps after `done`, to the end of a block if one ends among them."""
    past = (done + length) % EPOCH % block
    return length - past if past < length else length


def _union(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """All of two increasing lists of steps; that of one, as is usual, costs no search."""
    if len(other) == 0 or np.array_equal(one, other):
        return one
    return np.union1d(one, other)


def _call(first: int, count: int, is_fresh: bool, kept: np.ndarray, seen: np.ndarray) -> Call:
    places = _union(kept, seen)
    at = np.full(MOST_MARKS, NEVER, np.int32)
    at[: len(places)] = places
    flags = []
    for marks in (kept, seen):
        flag = np.zeros(MOST_MARKS, bool)
        flag[slice(len(places)) if marks is places else np.searchsorted(places, marks)] = True
        flags.append(flag)
    within = first % EPOCH
    return Call(np.int32(within), np.int32(count), np.bool_(is_fresh), Marks(at, *flags))


class Run(NamedTuple):
    """A run that is ready.

    parameters: the algorithm's numbers.  carry: the chains at their starts.
    names: of the observers.  key_kind: of random keys, as JAX calls it.
    algorithm: its name.  is_exact: whether its target is φ at every step size; None: not known.
    schedule: its step sizes as a function of n, if it has one; they are of the `dtype`.
    batch_size: of minibatches that are drawn in the program.
    is_spread: over devices, also of other processes, which make the same calls.
    num_devices: over which the chains are spread.
    """

    plan: Plan
    program: Program
    parameters: Leaves
    keys: Array
    feed: Feed
    carry: Leaves
    names: tuple[str, ...]
    key_kind: str
    algorithm: str = ""
    is_exact: bool | None = None
    schedule: Callable[[Any], Any] | None = None
    batch_size: int | None = None
    dtype: Any = float
    is_spread: bool = False
    num_devices: int = 1


class Started(NamedTuple):
    """Chains at their starts, which have no program yet; fields as those of a `Run`.

    carry: states, and summaries of the observers, by the tree that the algorithm has.
    """

    recipe: Recipe
    plan: Plan
    parameters: Leaves
    keys: Array
    positions: Any
    carry: Carry
    source: Source
    names: tuple[str, ...]

    def of_chains(self, chains: np.ndarray) -> "Started":
        """Some of the chains, with the keys and the starts that they have among all."""

        def part(leaf: Any) -> Array:
            return jnp.asarray(leaf)[chains]

        axes = zip(self.parameters, self.recipe.chain_axes, strict=True)
        return self._replace(
            plan=self.plan._replace(num_chains=len(chains)),
            parameters=[leaf if axis is None else part(leaf) for leaf, axis in axes],
            keys=part(self.keys),
            positions=jax.tree.map(part, self.positions),
            carry=jax.tree.map(part, self.carry),
        )


class Part(NamedTuple):
    """What a call leaves: `done` steps of the run are made; `draws` has the axes (draw, chain, …).

    is_last: nothing follows, though perhaps not all steps were made.
    """

    done: int
    carry: Leaves
    draws: list[np.ndarray]
    is_last: bool


def march(
    run: Run, carry: Leaves, done: int = 0, stops: Known | None = None
) -> Generator[Part, None, None]:
    """Make the steps from `done` on, some per call; a loader that ends, ends the run.

    While a call is computed, the one before it is in the hands of the caller.  With `stops`, calls
    end there, and nothing is computed ahead.
    """
    total, length, ahead = run.plan.total, FIRST_STEPS, int(stops is None)
    if done < total:
        _compile(run, carry)
    clock, launched = time.perf_counter(), deque[_Launched]()
    while done < total:
        latest = _launch(run, carry, done, _most_steps(run.plan, done, length, stops))
        launched.append(latest)
        made, carry, done, is_cut = latest.done - done, latest.carry, latest.done, latest.is_cut
        while len(launched) > (0 if is_cut or done == total else ahead):
            yield launched.popleft().settle(done == total or is_cut)
        if is_cut:
            warnings.warn(_ENDED.format(done, total), stacklevel=5)
            return
        now = time.perf_counter()
        length, clock = _next_length(made, now - clock, done, run.program.block), now
        length = agreed(length) if run.is_spread else length


_COMPILED: WeakSet[Any] = WeakSet()  # programs, each of which is for arrays of given shapes


def _compile(run: Run, carry: Leaves) -> None:
    """Compile before the clock runs, by a call of no steps, which takes time of its own."""
    if run.program.advance in _COMPILED:
        return
    nowhere = np.zeros(0, np.int64)
    data, _ = run.feed.take(0, 0)
    call = _call(0, 0, False, nowhere, nowhere)
    run.program.advance(run.parameters, carry, run.keys, data, call)
    _COMPILED.add(run.program.advance)


def _most_steps(plan: Plan, done: int, length: int, stops: Known | None) -> int:
    """How many steps the next call may make."""
    after = done - plan.burn_in
    if stops is None or after < 0:
        return length
    following = stops.within(after, plan.num_steps, 1)
    return min(length, int(following[0]) - after) if len(following) else length


class _Launched(NamedTuple):
    """A part that is being computed; `is_cut` if the data ended before its steps did.

    num_chains: devices may compute more, for want of chains that are left.
    """

    done: int
    carry: Leaves
    draws: Leaves
    num_kept: int
    is_cut: bool
    num_chains: int

    def settle(self, is_last: bool) -> Part:
        """Wait for it."""
        jax.block_until_ready(self.carry)
        draws = [np.asarray(leaf)[: self.num_kept, : self.num_chains] for leaf in self.draws]
        return Part(self.done, self.carry, draws, is_last)


def _launch(run: Run, carry: Leaves, done: int, most: int) -> _Launched:
    call = run.plan.call(done, min(most, run.feed.capacity), run.program.slots, run.program.block)
    wanted = int(call.count)
    data, fed = run.feed.take(done, wanted)
    if run.schedule is not None:
        schedules.check_steps(run.schedule, done, fed, run.dtype)
    call = call._replace(count=np.int32(fed))
    keys = keys_of_epoch(run.keys, done // EPOCH, run.key_kind)
    moved, draws = run.program.advance(run.parameters, carry, keys, data, call)
    reached = np.searchsorted(call.marks.at, fed, "right")
    num_kept = int(np.count_nonzero(call.marks.kept[:reached]))
    return _Launched(done + fed, moved, draws, num_kept, fed < wanted, run.plan.num_chains)


def _next_length(made: int, seconds: float, done: int, block: int) -> int:
    """Steps for the time of a call, if the last made so many; to the end of a block if it can.

    A call after which another is computed already is timed by what is left of it: that is why the
    length grows step by step.
    """
    wanted = int(min(made * SECONDS_PER_CALL / max(seconds, 1e-9), 32 * made, 2**30))
    return _in_whole_blocks(done, max(1, wanted), block)


def start(
    algorithm: Any,
    key: Any,
    initial_positions: Any,
    num_steps: Any,
    *,
    thin: Any,
    burn_in: Any,
    minibatches: Any,
    observe: Any,
    observe_every: Any,
    keep: Callable[[Any], Any] | None,
    is_stored: bool = False,
    mesh: Any = None,
) -> Started:
    """From the arguments of a run to its chains, all checked."""
    num_chains, typed_key = count_chains(initial_positions), check_key(key)
    settling = Settling(of_one_chain(initial_positions))
    used = _prepared(algorithm, initial_positions, settling)
    structure, parameters, axes = _numbers_of(used, num_chains)
    plan = _plan(num_chains, num_steps, burn_in, thin, observe, observe_every)
    observers = check_observers(observe)
    if mesh is not None:
        check_mesh(mesh)
    source = NO_DATA
    if minibatches is not None:
        source = source_of(minibatches, num_chains, is_stored=is_stored)
    is_every = plan.kept == Every(1)
    recipe = Recipe(
        algorithm=structure,
        chain_axes=axes,
        observers=tuple(observers.values()),
        keep=keep,
        batch_size=source.batch_size,
        layout=source.layout,
        data=source.structure,
        is_loaded=not isinstance(source.feed, Fixed),
        is_dense=is_every or plan.seen == Every(1),
        keeps_all=is_every,
        sees_all=plan.seen in (Every(1), plan.kept),
        key_kind=str(jax.random.key_impl(typed_key)),
    )
    recipe = recipe._replace(computed=_computed(recipe, parameters, settling, source))
    check_batch(recipe, parameters, initial_positions, source)
    if source.mesh is not None or source.layout is not None:
        check_spread(source, rebuild(recipe, parameters), mesh, is_stored=is_stored)
        given = (parameters, initial_positions, jax.random.key_data(typed_key))
        check_same("levymc.sample", jax.tree.leaves(given))
    if keep is not None:
        check_kept(keep, initial_positions)
    keys, init = chain_keys(typed_key, num_chains), compile_init(recipe)
    begun = init(parameters, jax.tree.map(jnp.asarray, initial_positions), keys)
    check_keyless(begun)
    carry = jax.tree.map(_strong, begun)
    check_finite(carry.state, initial_positions)
    check_support(rebuild(recipe, parameters), initial_positions)
    if source.layout is not None:
        estimator = rebuild(recipe, parameters).grad_estimator
        data = jax.tree.unflatten(source.structure, source.feed.take(0, 0)[0])
        warn_of_communication(source.layout, estimator, initial_positions, data)
    names = tuple(observers)
    return Started(recipe, plan, parameters, keys, initial_positions, carry, source, names)


def ready(started: Started) -> Run:
    """The chains with a program for as many of them as they are."""
    recipe, plan, parameters, keys, positions, carry, source, names = started
    algorithm = rebuild(recipe, parameters)
    leaves, structure = jax.tree.flatten(carry)
    if source.mesh is not None:
        leaves = [on_mesh(source.mesh, leaf) for leaf in leaves]
    data, _ = source.feed.take(0, 0)
    shapes = Shapes(
        tuple(map(shape_of, parameters)),
        tuple(map(shape_of, leaves)),
        structure,
        shape_of(keys),
        tuple(map(shape_of, data)),
        () if source.mesh is None else tuple(leaf.sharding for leaf in leaves),
    )
    program = compile_program(recipe, shapes, jnp.result_type(float))
    if plan.total >= EPOCH and not any(axis == 0 for axis in recipe.chain_axes):
        _warn_of_counting(program)
    begun = program.begin(leaves)
    if source.mesh is not None:
        begun = [on_mesh(source.mesh, leaf) for leaf in begun]
    return Run(
        plan,
        program,
        parameters,
        keys,
        source.feed,
        begun,
        names,
        recipe.key_kind,
        algorithm.name,
        algorithm.is_exact,
        _as_now(algorithm.step_schedule),
        source.batch_size,
        jnp.result_type(*jax.tree.leaves(positions)),
        source.mesh is not None,
    )


def _as_now(schedule: schedules.Schedule | None) -> schedules.Schedule | None:
    """A schedule whose step sizes are looked at as they are now."""
    if not isinstance(schedule, schedules.FromFunction):
        return schedule
    step = jax.ShapeDtypeStruct((), jnp.int32)
    return dataclasses.replace(schedule, function=settled(schedule.function, step))


def placed_run(started: Started, mesh: Mesh | None) -> Run:
    """The chains with a program, spread over the devices of a mesh if there is one."""
    if mesh is None:
        return ready(started)
    from ._devices import spread  # which needs what is here

    return spread(started, mesh)


def _warn_of_counting(program: Program) -> None:
    """Tell that a schedule ends before the run does."""
    varying = jax.tree.unflatten(jax.tree.structure(program.draws), program.varying)
    if isinstance(varying.info, Info) and varying.info.step_size:
        warnings.warn(
            "`num_steps` is more than a schedule can count: from step 2³¹ on, the step size stays "
            "what it is then. The weights are those of the steps that are made.",
            stacklevel=4,
        )


def _strong(leaf: Array) -> Array:
    """Without JAX's weak type: steps lose it, and the program would be compiled anew for them."""
    return jax.lax.convert_element_type(leaf, leaf.dtype) if leaf.weak_type else leaf


def _numbers_of(algorithm: Any, num_chains: int) -> tuple[Any, Leaves, tuple[int | None, ...]]:
    """The structure of an algorithm, its numbers, and which of them differ between chains."""
    if not isinstance(algorithm, list | tuple) or hasattr(algorithm, "_fields"):
        leaves, structure = jax.tree.flatten(as_algorithm(algorithm))
        return structure, [_number(leaf) for leaf in leaves], (None,) * len(leaves)
    if len(algorithm) != num_chains:
        raise ValueError(
            f"`algorithm` must be one, or one for each of the {num_chains} chains, "
            f"got a list of {len(algorithm)}. Give as many of them as starts."
        )
    each = [as_algorithm(one) for one in algorithm]
    if len({jax.tree.structure(one) for one in each}) > 1:  # α = 2 among others
        each = [_tabulated(one) for one in each]
    structures = {jax.tree.structure(one) for one in each}
    if len(structures) > 1:
        raise ValueError(
            "`algorithm` must be a list of algorithms that differ in their numbers alone, got "
            f"{len(structures)} kinds. Build all of them from the same functions and options."
        )
    columns = list(zip(*map(jax.tree.leaves, each), strict=True))
    for column in columns:
        if len(shapes := set(map(np.shape, column))) > 1:
            raise ValueError(
                "`algorithm` must be a list of algorithms whose numbers have the same shapes, got "
                f"{sorted(shapes)} for one of them. Give each a number, or each an array."
            )
    are_same = [all(np.array_equal(column[0], other) for other in column) for column in columns]
    numbers = [
        _number(column[0] if same else np.stack([np.asarray(_number(leaf)) for leaf in column]))
        for column, same in zip(columns, are_same, strict=True)
    ]
    return structures.pop(), numbers, tuple(None if same else 0 for same in are_same)


def _prepared(algorithm: Any, positions: Any, settling: Settling) -> Any:
    """The algorithm, or each of several, for chains that start there."""
    if isinstance(algorithm, list | tuple) and not hasattr(algorithm, "_fields"):
        return [settling.settle(as_algorithm(one)).prepared(positions) for one in algorithm]
    return settling.settle(as_algorithm(algorithm)).prepared(positions)


def _computed(recipe: Recipe, parameters: Leaves, settling: Settling, source: Source) -> Any:
    """What the functions of a run compute now that nobody else has looked at."""
    parts = []
    if settling.is_opaque:
        parts.append(step_computed(recipe, parameters, settling.position, source))
    if recipe.keep is not None and not is_fixed(recipe.keep):
        parts.append(computed_by(recipe.keep, settling.position))
    if recipe.observers:
        parts.append(observed_computed(recipe, parameters, settling.position, source))
    return tuple(parts)


def _tabulated(algorithm: Any) -> Any:
    return jax.tree.map(
        lambda node: node.tabulated() if noises.is_variable(node) else node,
        algorithm,
        is_leaf=noises.is_variable,
    )


def _number(leaf: Any) -> Array:
    dtype = jnp.result_type(float) if isinstance(leaf, float) else None
    return jnp.asarray(leaf, dtype)


def _plan(
    num_chains: int, num_steps: Any, burn_in: Any, thin: Any, observe: Any, observe_every: Any
) -> Plan:
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    unkept = check_count("burn_in", burn_in, "It is a number of steps.", least=0)
    check_total(steps + unkept)
    kept = as_marks("thin", thin, steps)
    seen = as_marks("observe_every", observe_every, steps)
    if observe is None and seen != Every(1):
        raise ValueError(
            f"`observe_every` must be 1 without `observe`, got {observe_every!r}. "
            "To keep fewer draws, use `thin`."
        )
    for name, marks in (("thin", kept), ("observe_every", seen)):
        if isinstance(marks, CycleEnds) and unkept % marks.period:
            raise ValueError(
                f"`burn_in` must be of whole cycles with `{name}` at their ends, got {unkept} for "
                f"cycles of {marks.period}: a schedule counts these steps, too."
            )
    return Plan(num_chains, steps, unkept, kept, None if observe is None else seen)


def check_total(steps: int) -> None:
    """Refuse more steps than the program can count."""
    if steps > MOST_STEPS:
        raise ValueError(
            f"`num_steps` must be at most 2⁶² with the burn-in, got {steps}. "
            "Run more chains, or begin anew from the last positions."
        )


class Visit(NamedTuple):
    """What `iterate` gives.

    step: how many steps were made after the burn-in.
    states: of the algorithm; every leaf has the chains along its first axis.
    observed: what the observers give so far, by name, for each chain.
    """

    step: int
    states: Any
    observed: dict[str, Any]


def iterate(
    algorithm: Algorithm | Sequence[Algorithm],
    key: Any,
    initial_positions: Any,
    num_steps: int,
    *,
    at: MarksLike = 1,
    burn_in: int = 0,
    minibatches: Any = None,
    observe: Mapping[str, Observer] | None = None,
    observe_every: MarksLike = 1,
    store: str | Path | None = None,
    commit_seconds: float = 30.0,
    mesh: Mesh | None = None,
) -> Generator[Visit, None, None]:
    """Run chains, and stop at given steps to look at them, plot, end early or adapt.

    The chains are those of `levymc.sample` with the same arguments, which say what they mean.

    With a `store` the same call, made again, goes on where the last one ended, however that was:
    with the visit after the last whose loop came to its end and was committed, bit for bit as if
    nothing had happened.  Of a run that is complete, the visit at its last step is given again, if
    `at` has that step: states at earlier ones are not stored.  `at` may be another then; all else
    is compared with what the store holds, the functions of the algorithm by the program that they
    make.

    Args:
        at: the steps after which to stop: every k-th, a list of them, or
            `levymc.marks.logarithmic(count)`.
        store: a folder for state and program as the run proceeds: a new one, or that of this run.
        mesh: devices to spread the chains over; a run that is stored goes on with as many.  Over
            several processes there is no store, as visits are of all chains.
        commit_seconds: time between two commits to the store, the most that a killed process loses.
            The last is made when the iterator is closed: where an exception may end the loop, write
            `with contextlib.closing(levymc.iterate(…)) as visits:`.

    Raises:
        ValueError, TypeError: as by `levymc.sample`.
        StoreError: a store that is damaged, or of a run with other arguments.
        RuntimeError: another process is running it.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> observe = {"mean": levymc.observe.mean()}
        >>> starts = jnp.full(4, 10.0)
        >>> for step, states, observed in levymc.iterate(
        ...     walk, jax.random.key(0), starts, 1000, at=100, observe=observe
        ... ):
        ...     if jnp.all(jnp.abs(states.position) < 3):
        ...         break
        >>> step < 1000
        True
    """
    stops = as_marks("at", at, check_count("num_steps", num_steps, "Steps of each chain."))
    started = start(
        algorithm,
        key,
        initial_positions,
        num_steps,
        thin=[num_steps],
        burn_in=burn_in,
        minibatches=minibatches,
        observe=observe,
        observe_every=observe_every,
        keep=None,
        is_stored=store is not None,
        mesh=mesh,
    )
    if store is not None and mesh is not None and mesh.is_multi_process:
        raise ValueError(
            f"`mesh` must be of one process with `store` here, got {mesh!r}: visits are of all "
            "chains at a step, and processes store theirs apart. levymc.sample takes both."
        )
    run = placed_run(started, mesh)
    if store is None:
        return _visits(run, march(run, run.carry, stops=stops), stops)
    from ._create import begin_or_open
    from ._store import parts

    # What is stored is for one device, whatever makes the steps here.
    whole = run if mesh is None else ready(started)._replace(num_devices=mesh.size)
    path = begin_or_open(check_folder("store", store), whole)
    maker = None if mesh is None else run
    return _visits(run, parts(path, whole.feed, stops, commit_seconds, maker), stops)


def _visits(
    run: Run, parts: Generator[Part, None, None], stops: Known
) -> Generator[Visit, None, None]:
    with closing(parts):
        for part in parts:
            step = part.done - run.plan.burn_in
            if step > 0 and len(stops.within(step - 1, step, 1)):
                yield Visit(step, run.program.states(part.carry), observed_by(run, part.carry))


def observed_by(run: Run, carry: Leaves) -> dict[str, Any]:
    """What the observers say after some steps."""
    if not run.names:
        return {}
    structure = jax.tree.structure(run.program.observed)
    summaries = jax.tree.unflatten(structure, run.program.finish(carry))
    return dict(zip(run.names, summaries, strict=True))
