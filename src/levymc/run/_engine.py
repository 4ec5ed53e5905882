"""The compiled program of a run: chains side by side, as many steps per call as are asked for.

A step's random numbers come from fold_in(fold_in(key, chain), n), n the number of the step: they
depend on neither the calls nor the other chains.  (From 2³¹ on, see `keys_of_epoch`.)  The numbers
of the algorithm, how many steps are made and at which of them something is kept are inputs: one
program serves a whole sweep, and a second run compiles nothing.  The program takes and gives lists
of arrays, the leaves of pytrees, so that a store can keep it without knowing their structure.

Steps are made in blocks, for each of which the random bits are drawn at once (see `_hoist`).
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from levymc._room import keeps_programs, make_room
from levymc._settled import computed_by
from levymc.algorithms import Info, Layout, Spread

from ._hoist import THREEFRY, Hoisted, folded, hoist, is_written_out
from .observe import Observer

Leaves = list[Array]

MOST_MARKS = 1 << 14  # per call
DRAW_BYTES = 4 * 2**20  # of the draws that a call returns
BLOCK_BYTES = 2**19  # of random bits: larger blocks leave the core's own cache, and take longer
LONGEST_BLOCK = 256
COUNTER_BASED = THREEFRY  # the one kind of key whose bits are those of each key, also mapped
# Of states whose steps are made apart (see `_apart`): a loop over smaller ones is compiled in one
# piece, and beside larger ones the order of a step costs nothing, but a copy of them would.
APART_BYTES = range(129, 2**16)
NEVER = np.iinfo(np.int32).max
EPOCH = 2**31  # steps that a program can number
APART = 2**32 - 1


class Recipe(NamedTuple):
    """What makes a step: all that the compiled program depends on but shapes.

    algorithm: the structure of the algorithm as a pytree, its functions included.
    chain_axes: for each number of the algorithm 0, if there is one per chain, or None.
    keep: of a position, what is kept; None for nothing.
    batch_size: of minibatches that are drawn in the program; None where a step takes none, or is
        given one.
    layout: of data that are spread over devices, each of which draws a part of the minibatch.
    data: the structure of `data`; where it `is_loaded`, these are minibatches, one for each step.
    is_dense: something is kept or observed at every step.
    keeps_all: it is kept at every step, so that there is no info to merge.
    sees_all: whatever is kept is observed, too.
    computed: what functions compute that are not settled (see `_settled`); None if all are.
    """

    algorithm: Any
    chain_axes: tuple[int | None, ...]
    observers: tuple[Observer, ...]
    keep: Callable[[Any], Any] | None
    batch_size: int | None
    layout: Layout | None
    data: Any
    is_loaded: bool
    is_dense: bool
    keeps_all: bool
    sees_all: bool
    key_kind: str
    computed: Any = None


class Carry(NamedTuple):
    """What the next step needs; of one chain, or of all.

    observed: the summaries so far.  info: that of the steps since the last draw, if it is merged.
    """

    state: Any
    observed: Any
    info: Any = ()


class Draws(NamedTuple):
    """What is kept of a step."""

    positions: Any
    info: Any


class Marks(NamedTuple):
    """Where a call looks at the chains: after so many of its steps, in increasing order.

    Unused entries are `NEVER`.  What is not kept may be observed only.
    """

    at: Any
    kept: Any
    seen: Any


class Call(NamedTuple):
    """`count` steps from number `first` on; `is_fresh` if a draw was kept just before them."""

    first: Any
    count: Any
    is_fresh: Any
    marks: Marks


class Program(NamedTuple):
    """The compiled functions of a run, over all chains.

    advance: (parameters, carry, keys, data, call) -> (carry, draws); `draws` has `slots` places,
        filled in the order of the kept marks.
    begin: the leaves of the carry to begin with, given those of states and summaries.
    states: the chains' states in a carry.
    finish: what was observed, carry -> leaves.
    draws: shapes of what is kept of one chain, by a `Draws`.
    varying: whether each leaf of `draws` differs from step to step; `advance` returns those.
    fixed: parameters -> the other leaves of `draws`.
    observed: shapes of what each observer gives in the end, for one chain.
    block: a number of steps of which calls are best made up.
    """

    advance: Any
    begin: Callable[[Leaves], Leaves]
    states: Callable[[Leaves], Any]
    finish: Any
    fixed: Any
    draws: Draws
    varying: tuple[bool, ...]
    observed: tuple[Any, ...]
    block: int
    slots: int


class Shapes(NamedTuple):
    """Shapes and dtypes of all inputs; with a recipe, a key of compiled programs.

    places: the sharding of each leaf of the carry, where data are spread over devices.
    """

    parameters: tuple[Any, ...]
    carry: tuple[Any, ...]
    carry_structure: Any
    keys: Any
    data: tuple[Any, ...]
    places: tuple[NamedSharding, ...] = ()


@runtime_checkable
class Feed(Protocol):
    """Gives the program its `data`; at most `capacity` steps per call."""

    capacity: int

    def take(self, first: int, count: int) -> tuple[list[Any], int]:
        """The data of `count` steps from `first` on, and for how many of them there are any."""
        ...


class Fixed:
    """The same arrays for every step, or none."""

    capacity = 2**31 - 1

    def __init__(self, leaves: list[Any]) -> None:
        self.leaves = leaves

    def take(self, first: int, count: int) -> tuple[list[Any], int]:
        return self.leaves, count


class Source(NamedTuple):
    """Where minibatches come from.

    structure: of what the program takes.
    batch_size: of batches to be drawn from the data in the program.
    layout: of data that are spread over devices for minibatches.
    mesh: the devices that data are spread over.
    """

    feed: Feed
    structure: Any = jax.tree.structure(None)
    batch_size: int | None = None
    layout: Layout | None = None
    mesh: Mesh | None = None


NO_DATA = Source(Fixed([]))


def draw_batch(key: Array, data: Any, batch_size: int) -> Any:
    count = len(jax.tree.leaves(data)[0])
    chosen = jax.random.randint(key, (batch_size,), 0, count)
    return jax.tree.map(lambda leaf: leaf[chosen], data)


def position_of(state: Any) -> Any:
    """A state's position; a state without one, such as that of BlackJAX's sgld, is a position."""
    return getattr(state, "position", state)


@jax.jit
def _chain_keys(key: Array, chains: Array) -> Array:
    return jax.random.key_data(jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains))


def chain_keys(key: Array, num_chains: int) -> Array:
    """The raw data of a key for each chain."""
    return _chain_keys(key, np.arange(num_chains))


@partial(jax.jit, static_argnames="kind")
def _folded(keys: Array, epoch: Array, kind: str) -> Array:
    typed = jax.random.wrap_key_data(keys, impl=kind)
    fold = jax.vmap(jax.random.fold_in, in_axes=(0, None))
    return jax.random.key_data(fold(fold(typed, np.uint32(APART)), epoch))


def keys_of_epoch(keys: Array, epoch: int, kind: str) -> Array:
    """The chains' keys for the steps from epoch · 2³¹ on, within which steps are numbered anew.

    No step of the first epoch has a number of `APART`, so that no key is used twice.
    """
    return keys if epoch == 0 else _folded(keys, np.uint32(epoch), kind)


def shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.canonicalize_dtype(leaf.dtype))


def rebuild(recipe: Recipe, parameters: Leaves) -> Any:
    """The algorithm with these numbers."""
    return jax.tree.unflatten(recipe.algorithm, parameters)


def step_computed(recipe: Recipe, parameters: Leaves, position: Any, source: Source) -> Any:
    """What the start and a step of one chain compute, from all that they read at the moment."""
    each = [
        leaf if axis is None else leaf[0]
        for leaf, axis in zip(parameters, recipe.chain_axes, strict=True)
    ]
    return computed_by(partial(_first_step, recipe), each, source.feed.take(0, 0)[0], position)


def observed_computed(recipe: Recipe, parameters: Leaves, position: Any, source: Source) -> Any:
    """What the observers compute of a position and the info of a step, likewise."""
    given = (parameters, source.feed.take(0, 0)[0], jax.tree.leaves(position))
    shapes = (tuple(map(shape_of, leaves)) for leaves in given)
    try:
        info = _info_of_step(recipe, *shapes, jax.tree.structure(position), jnp.result_type(float))
    except Exception:  # who makes the step will see why
        return None

    def said(position: Any, info: Any) -> list[Any]:
        return [
            seen.finish(seen.update(seen.init(position), position, 1.0, info))
            for seen in recipe.observers
        ]

    return computed_by(said, position, info)


@lru_cache(maxsize=64)  # so that a second run does not trace the step for it
def _info_of_step(
    recipe: Recipe,
    parameters: tuple[Any, ...],
    data: tuple[Any, ...],
    position: tuple[Any, ...],
    structure: Any,
    _widest: Any,
) -> Any:
    each = [
        leaf if axis is None else _of_one_chain(leaf)
        for leaf, axis in zip(parameters, recipe.chain_axes, strict=True)
    ]
    start = jax.tree.unflatten(structure, position)
    return jax.eval_shape(partial(_first_step, recipe), each, list(data), start)[1]


def _first_step(recipe: Recipe, parameters: Leaves, data: Leaves, position: Any) -> tuple[Any, Any]:
    """That of one chain."""
    key = jax.random.key(0, impl=recipe.key_kind)
    state = rebuild(recipe, parameters).init(position, rng_key=key)
    batch = _batch_at(recipe, jax.tree.unflatten(recipe.data, data), 0)
    return _step(recipe)(key, parameters, batch, state)


@keeps_programs
@lru_cache(maxsize=64)
def compile_init(recipe: Recipe) -> Callable[[Leaves, Any, Array], Carry]:
    """The start of all chains, (parameters, positions, keys) -> carry."""

    def init(parameters: Leaves, position: Any, key: Array) -> Carry:
        wrapped = jax.random.wrap_key_data(key, impl=recipe.key_kind)
        state = rebuild(recipe, parameters).init(position, rng_key=wrapped)
        return Carry(state, tuple(o.init(position_of(state)) for o in recipe.observers))

    return jax.jit(jax.vmap(init, in_axes=(list(recipe.chain_axes), 0, 0)))


@keeps_programs
@lru_cache(maxsize=64)  # so that a second run of the same algorithm compiles nothing
def compile_program(recipe: Recipe, shapes: Shapes, _widest: Any) -> Program:
    make_room()
    machine = _machine(recipe, shapes)
    num_info = len(jax.tree.leaves(machine.merged))
    structure = machine.carry_structure
    carry = jax.tree.unflatten(shapes.carry_structure, shapes.carry)
    one_chain = _of_one_chain(carry)

    def advance(
        parameters: Leaves, carry: Leaves, keys: Array, data: Leaves, call: Call
    ) -> tuple[Leaves, Leaves]:
        moved, draws = _advance(machine, parameters, carry, keys, data, call)
        return jax.tree.leaves(moved), draws

    def begin(carry: Leaves) -> Leaves:
        return [*carry, *map(_zeros, jax.tree.leaves(machine.merged))]

    def finish(carry: Leaves) -> Leaves:
        ended = jax.tree.unflatten(structure, carry)
        return jax.tree.leaves(jax.vmap(lambda one: _finish(recipe, one))(ended))

    assert structure.num_leaves == len(shapes.carry) + num_info
    return Program(
        jax.jit(advance, out_shardings=_outcome(shapes.places, num_info)),
        begin,
        lambda carry: jax.tree.unflatten(structure, carry).state,
        jax.jit(
            finish, out_shardings=_outcome(shapes.places, num_info)[1] if shapes.places else None
        ),
        jax.jit(lambda parameters: _fixed(machine, parameters)),
        machine.draws,
        machine.varying,
        jax.eval_shape(lambda one: _finish(recipe, one), one_chain),
        machine.block,
        machine.slots,
    )


def _outcome(places: tuple[NamedSharding, ...], num_info: int) -> Any:
    """Where a program leaves carry and draws, if that is not left to the compiler.

    Chains stay where they are, and every process has all draws.
    """
    if not places:
        return None
    everywhere = NamedSharding(places[0].mesh, PartitionSpec())
    return [*places, *[everywhere] * num_info], everywhere


class Machine(NamedTuple):
    """The parts of a loop over steps.

    hoisted: a step of all chains, (keys, parameters, (data, states)) -> (states, info).
    draws: shapes of what is kept of one chain.
    info: shapes of that of all chains.  merged: of the part of it that is carried, by name.
    varying: for each leaf of `draws`, whether it differs from step to step.
    block: steps whose random bits are drawn at once.
    slots: draws that a call can return.
    """

    recipe: Recipe
    carry_structure: Any
    hoisted: Hoisted
    draws: Draws
    info: Any
    merged: dict[str, Any]
    varying: tuple[bool, ...]
    block: int
    slots: int


class Loop(NamedTuple):
    """What goes round: the chains, their info since the last draw if it is merged, and places.

    offset: steps made in this call.  mark, slot: the next mark, and the next place for a draw.
    """

    state: Any
    observed: Any
    merged: Any
    offset: Array
    mark: Array
    slot: Array
    kept: Leaves


def _machine(recipe: Recipe, shapes: Shapes) -> Machine:
    carry = jax.tree.unflatten(shapes.carry_structure, shapes.carry)
    num_chains = shapes.carry[0].shape[0]
    keys = jax.eval_shape(lambda raw: _wrapped(recipe, raw), shapes.keys)
    data = jax.tree.unflatten(recipe.data, shapes.data)
    batch = jax.eval_shape(lambda tree: _batch_at(recipe, tree, 0), data)

    def step_all(keys: Array, parameters: Leaves, rest: tuple[Any, Any]) -> tuple[Any, Any]:
        each = jax.vmap(_step(recipe), in_axes=(0, list(recipe.chain_axes), None, 0))
        return each(keys, parameters, *rest)

    examples = (keys, list(shapes.parameters), (batch, carry.state))
    hoisted = hoist(step_all, *examples)
    states, info = hoisted.shapes
    kept = jax.eval_shape(lambda states: _kept(recipe, states), states)
    draws = _of_one_chain(Draws(kept, info))
    varying = _varying(recipe, hoisted, states, draws)
    draw_bytes = num_chains * sum(
        math.prod(leaf.shape) * leaf.dtype.itemsize
        for leaf, varies in zip(jax.tree.leaves(draws), varying, strict=True)
        if varies
    )
    merged = {} if recipe.keeps_all else _to_merge(info, varying)
    whole = carry._replace(info=merged)
    step_bytes = shapes.keys.size * 4 + _size(hoisted.collected)
    slots = max(1, min(MOST_MARKS, DRAW_BYTES // max(draw_bytes, 1)))
    # Bits of other kinds, drawn for many keys at once, are those of the first: of the first step in
    # a block, and blocks begin wherever a call does.
    longest = LONGEST_BLOCK if recipe.key_kind == COUNTER_BASED else 1
    block = max(1, min(longest, BLOCK_BYTES // max(step_bytes, 1)))
    if recipe.keeps_all:  # then calls are of whole blocks, and no bits are drawn in vain
        block = min(block, slots)
        slots -= slots % block
    return Machine(
        recipe,
        jax.tree.structure(whole),
        hoisted,
        draws,
        info,
        merged,
        varying,
        block,
        slots,
    )


def _step_keys(chains: Array, step: Array) -> Array:
    """The keys of one step of all chains."""
    if is_written_out(chains):
        return folded(chains, step)
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(chains, step)


def _size(tree: Any) -> int:
    """Bytes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _of_one_chain(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tree)


def _wrapped(recipe: Recipe, raw: Array) -> Array:
    return jax.random.wrap_key_data(raw, impl=recipe.key_kind)


def _batch_at(recipe: Recipe, data: Any, offset: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[offset], data) if recipe.is_loaded else data


def _step(recipe: Recipe) -> Callable[..., tuple[Any, Any]]:
    """A step of one chain; `data` is a minibatch, what to draw one from, or None."""

    def step(key: Array, parameters: Leaves, data: Any, state: Any) -> tuple[Any, Any]:
        key_step = key
        if recipe.batch_size is not None:
            key_batch, key_step = jax.random.split(key)
            data = _minibatch(recipe, key_batch, data)
        batch = () if data is None else (data,)
        return rebuild(recipe, parameters).step(key_step, state, *batch)

    return step


def _minibatch(recipe: Recipe, key: Array, data: Any) -> Any:
    if recipe.layout is not None:
        return Spread(recipe.layout, key, data)
    assert recipe.batch_size is not None
    return draw_batch(key, data, recipe.batch_size)


def _varying(recipe: Recipe, hoisted: Hoisted, states: Any, draws: Draws) -> tuple[bool, ...]:
    """Positions always; of the info what does not depend on the algorithm's numbers alone."""
    num_kept = len(jax.tree.leaves(draws.positions))
    num_info = len(jax.tree.leaves(draws.info))
    if any(axis is not None for axis in recipe.chain_axes):
        return (True,) * (num_kept + num_info)
    of_info = hoisted.is_fixed[len(jax.tree.leaves(states)) :]
    return (True,) * num_kept + tuple(not same for same in of_info)


def _fixed(machine: Machine, parameters: Leaves) -> list[Any]:
    """The leaves of the info that are the same in all steps and chains, in their order."""
    outs = machine.hoisted.fixed(parameters)
    of_info = outs[len(outs) - len(jax.tree.leaves(machine.info)) :]
    varying = machine.varying[len(machine.varying) - len(of_info) :]
    return [leaf[0] for leaf, varies in zip(of_info, varying, strict=True) if not varies]


def _advance(
    machine: Machine, parameters: Leaves, carry: Leaves, keys: Array, data: Leaves, call: Call
) -> tuple[Carry, Leaves]:
    recipe, block = machine.recipe, machine.block
    chains = _wrapped(recipe, keys)
    source = jax.tree.unflatten(recipe.data, data)
    settled = machine.hoisted.settle(parameters)
    has_steps = call.count > 0

    def prepare(number: Array) -> Leaves:
        steps = number * block + jnp.arange(block, dtype=jnp.int32)

        def draw() -> Leaves:
            return jax.vmap(lambda step: machine.hoisted.draw(_step_keys(chains, step)))(steps)

        def collect(step: Array, bits: Leaves) -> Leaves:
            return machine.hoisted.collect(_step_keys(chains, step), bits, settled, parameters)

        no_bits = [jnp.zeros((block, *one.shape), one.dtype) for one in machine.hoisted.bits]
        return jax.vmap(collect)(steps, _apart(has_steps, draw, no_bits))

    def make_step(prepared: Leaves, begin: Array, loop: Loop) -> tuple[Loop, Any]:
        own = [leaf[loop.offset - begin] for leaf in prepared]
        rest = (_batch_at(recipe, source, loop.offset), loop.state)

        def move() -> tuple[Any, Any]:
            return machine.hoisted.replay(own, settled, parameters, rest)

        is_apart = _size(loop.state) in APART_BYTES
        state, info = _apart(has_steps, move, (loop.state, nothing)) if is_apart else move()
        merged = _merged(loop.merged, info)
        return loop._replace(state=state, merged=merged, offset=loop.offset + 1), info

    def one_block(number: Array, loop: Loop) -> Loop:
        begin = number * block - call.first
        end = jnp.minimum(begin + block, call.count)
        prepared = prepare(number)

        def one_step(loop: Loop) -> Loop:
            return _look(machine, call.marks, *make_step(prepared, begin, loop))

        def one_stretch(loop: Loop) -> Loop:
            until = jnp.minimum(call.marks.at[loop.mark], end)
            return _look(
                machine,
                call.marks,
                *jax.lax.while_loop(
                    lambda both: both[0].offset < until,
                    lambda both: make_step(prepared, begin, both[0]),
                    (loop, nothing),
                ),
            )

        body = one_step if recipe.is_dense else one_stretch
        return jax.lax.while_loop(lambda loop: loop.offset < end, body, loop)

    nothing = jax.tree.map(_zeros, machine.info)
    loop = _start(machine, jax.tree.unflatten(machine.carry_structure, carry), call)
    # Blocks begin at multiples of their length, wherever a call does: what is collected for a step
    # is then computed in the same place of the same kernel, to the same bits.
    last = call.first + (call.count - 1)
    loop = jax.lax.fori_loop(call.first // block, last // block + 1, one_block, loop)
    return Carry(loop.state, loop.observed, loop.merged), loop.kept


def _apart(always: Array, make: Callable[[], Any], otherwise: Any) -> Any:
    """What `make` gives, in kernels of its own.

    The compiler does not know that the condition always holds.  It would make random bits anew for
    every use of them, and run more than eight kernels in a row by a queue, which takes longer than
    small ones do.
    """
    if jax.default_backend() != "cpu":
        return make()
    return jax.lax.cond(always, make, lambda: otherwise)


def _start(machine: Machine, carry: Carry, call: Call) -> Loop:
    zero, leaves = jnp.int32(0), jax.tree.leaves(machine.draws)
    num_chains = jax.tree.leaves(carry.state)[0].shape[0]
    # One place more than are asked for, as what is not kept is written, too.
    kept = [
        jnp.zeros((machine.slots + 1, num_chains, *leaf.shape), leaf.dtype)
        for leaf, varies in zip(leaves, machine.varying, strict=True)
        if varies
    ]
    merged = _zero_if(call.is_fresh, carry.info)
    return Loop(carry.state, carry.observed, merged, zero, zero, zero, kept)


def _look(machine: Machine, marks: Marks, loop: Loop, info: Any) -> Loop:
    """Keep and observe the chains, if a mark is here; the next draw is written over what is not.

    `info` is that of the last step.
    """
    recipe = machine.recipe
    is_mark, is_kept, is_seen = _flags(recipe, marks, loop)
    positions = _kept(recipe, loop.state)
    leaves = jax.tree.leaves(Draws(positions, _with_merged(info, loop.merged)))
    written = [leaf for leaf, varies in zip(leaves, machine.varying, strict=True) if varies]
    return loop._replace(
        observed=_observe(recipe, is_seen, loop, info),
        merged=_zero_if(is_kept, loop.merged),
        mark=loop.mark + is_mark,
        slot=loop.slot + is_kept,
        kept=[
            jax.lax.dynamic_update_index_in_dim(place, leaf, loop.slot, 0)
            for place, leaf in zip(loop.kept, written, strict=True)
        ],
    )


def _kept(recipe: Recipe, states: Any) -> Any:
    """What is kept of all chains' positions."""
    return None if recipe.keep is None else jax.vmap(recipe.keep)(position_of(states))


def _flags(recipe: Recipe, marks: Marks, loop: Loop) -> tuple[Any, Any, Any]:
    """Whether a mark is here, what is to be kept, and what to be observed.

    Where all steps are alike, those of the first mark are those of the call: nothing is looked up.
    """
    if recipe.keeps_all and (recipe.sees_all or not recipe.observers):
        return 0, 1, marks.seen[0]
    is_mark = loop.offset == marks.at[loop.mark]
    return is_mark, is_mark & marks.kept[loop.mark], is_mark & marks.seen[loop.mark]


def _observe(recipe: Recipe, is_seen: Array, loop: Loop, info: Any) -> Any:
    """The summaries after a look; what observers do not see, they do not compute."""
    if not recipe.observers:
        return loop.observed

    def one_chain(is_seen: Any, state: Any, info: Any, observed: Any) -> tuple[Any, ...]:
        weight = jnp.where(is_seen, info.step_size if isinstance(info, Info) else 1.0, 0.0)
        return tuple(
            observer.update(summary, position_of(state), weight, info)
            for observer, summary in zip(recipe.observers, observed, strict=True)
        )

    each = jax.vmap(one_chain, in_axes=(None, 0, 0, 0))
    if recipe.sees_all:
        return each(is_seen, loop.state, info, loop.observed)
    # Outside the map over chains, within which both branches would be computed.
    return jax.lax.cond(
        is_seen,
        lambda *given: each(True, *given),
        lambda _state, _info, earlier: earlier,
        loop.state,
        info,
        loop.observed,
    )


# How the info of several steps becomes one; of what is not here, it is that of the last.
JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "is_divergent": jnp.logical_or,
    "largest_jump": jnp.maximum,
    "taming": jnp.maximum,
    "is_outside": jnp.logical_or,
    "drift_error": jnp.maximum,
    "jumps_tried": jnp.add,
    "jumps_accepted": jnp.add,
    "is_above_bound": jnp.logical_or,
}


def _to_merge(info: Any, varying: tuple[bool, ...]) -> dict[str, Any]:
    """The part of the info that is carried from draw to draw: where steps differ in it."""
    leaves, structure = jax.tree.flatten(info)
    varies = jax.tree.unflatten(structure, varying[len(varying) - len(leaves) :])
    return {name: getattr(info, name) for name in _to_join(info) if getattr(varies, name)}


def _to_join(info: Any) -> Iterable[str]:
    """All that is joined of ours, and of BlackJAX's named tuples whether a step diverged."""
    if isinstance(info, Info):
        return JOINS
    is_flag = getattr(getattr(info, "is_divergent", None), "dtype", None) == np.dtype(bool)
    return ("is_divergent",) if is_flag and hasattr(info, "_replace") else ()


def _merged(earlier: dict[str, Any], info: Any) -> dict[str, Any]:
    """With the info of one more step; nothing merged is zero."""
    return {name: JOINS[name](earlier[name], getattr(info, name)) for name in earlier}


def _with_merged(info: Any, merged: dict[str, Any]) -> Any:
    """The info of the last step and of those before it."""
    return info._replace(**merged) if merged else info


def _zero_if(condition: Any, merged: dict[str, Any]) -> dict[str, Any]:
    """What is merged after a draw."""
    return jax.tree.map(lambda leaf: jnp.where(condition, jnp.zeros_like(leaf), leaf), merged)


def _zeros(shape: Any) -> Array:
    return jnp.zeros(shape.shape, shape.dtype)


def _finish(recipe: Recipe, carry: Carry) -> tuple[Any, ...]:
    """What the observers of one chain say."""
    pairs = zip(recipe.observers, carry.observed, strict=True)
    return tuple(observer.finish(summary) for observer, summary in pairs)
