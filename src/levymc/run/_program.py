"""The compiled program of a run: chains side by side, a chunk of draws a call.

A step's random numbers come from fold_in(fold_in(key, chain), n), n the number of the step: they
depend on neither the chunks nor the other chains.  The program takes and gives lists of arrays,
the leaves of states and draws, so that a store can keep it without knowing their structure.

Steps are made in blocks, for each of which the random bits are drawn at once (see `_hoist`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._hoist import hoist_bits
from ._plan import Cut
from ._step import Carry, Recipe, merge_info, variable_leaves

Leaves = list[Array]


class Program(NamedTuple):
    """The compiled functions of a run, all over all chains.

    advance: make steps and keep nothing, (states, keys, data, first, count) -> states.
    draw: keep every thin-th step of a chunk, of which observers count as many as are wanted,
        (states, keys, data, first, count) -> (states, draws).
    finish: what was observed, states -> leaves.

    `keys` are the raw data of the chains' keys, `first` is the number of the first step, `data`
    what minibatches are drawn from, or are, or [].
    """

    advance: Any
    draw: Any
    finish: Any


class Layout(NamedTuple):
    """How arguments are put together and how steps are cut; a key of compiled programs.

    states, data: structures of the pytrees whose leaves the program takes.
    constants: for each leaf of the draws, whether it is a constant, and not returned.
    is_loaded: `data` are minibatches from outside, one for each step along their first axis.
    """

    states: Any
    data: Any
    constants: tuple[bool, ...]
    is_loaded: bool
    key_kind: str
    cut: Cut


class Machine(NamedTuple):
    """The parts of a loop over steps, which are numbered from the first of the call.

    prepare: (offset, size) -> keys and random bits of `size` steps.
    step: (what was prepared for the step, its offset, carry) -> (carry, draws).
    nothing: draws all zero, to begin with.
    """

    prepare: Callable[..., Any]
    step: Callable[..., Any]
    nothing: Any


@jax.jit
def _chain_keys(key: Array, chains: Array) -> Array:
    return jax.random.key_data(jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains))


def chain_keys(key: Array, num_chains: int) -> Array:
    """The raw data of a key for each chain."""
    return _chain_keys(key, jnp.arange(num_chains))


@lru_cache(maxsize=32)
def compile_init(recipe: Recipe) -> Callable[[Any], Any]:
    """The states of all chains at their initial positions."""
    return jax.jit(jax.vmap(recipe.init))


@lru_cache(maxsize=32)  # so that a second run of the same algorithm compiles nothing
def compile_program(recipe: Recipe, layout: Layout) -> Program:
    cut = layout.cut

    def advance(states: Leaves, keys: Array, data: Leaves, first: Array, count: Array) -> Leaves:
        carry = jax.tree.unflatten(layout.states, states)
        unseen = Carry(carry.state, ())  # observers do not see the burn-in
        machine = _machine(recipe.blind(), layout, keys, data, first, count, unseen)

        def one_block(number: Array, both: Any) -> Any:
            return _block_of_steps(machine, cut.block, both, number * cut.block, count)

        num_blocks = -(-count // cut.block)
        moved, _ = jax.lax.fori_loop(0, num_blocks, one_block, (unseen, machine.nothing))
        return jax.tree.leaves(Carry(moved.state, carry.observed))

    def draw(
        states: Leaves, keys: Array, data: Leaves, first: Array, count: Array
    ) -> tuple[Leaves, Leaves]:
        carry = jax.tree.unflatten(layout.states, states)
        machine = _machine(recipe, layout, keys, data, first, count, carry)
        make = _draws_by_block if cut.block >= cut.thin else _draws_by_many_blocks
        carry, draws = make(machine, cut, carry, layout.constants)
        return jax.tree.leaves(carry), draws

    def finish(states: Leaves) -> Leaves:
        return jax.tree.leaves(jax.vmap(recipe.finish)(jax.tree.unflatten(layout.states, states)))

    return Program(jax.jit(advance), jax.jit(draw), jax.jit(finish))


def _machine(
    recipe: Recipe,
    layout: Layout,
    keys: Array,
    data: Leaves,
    first: Array,
    count: Array,
    carry: Carry,
) -> Machine:
    chains = jax.random.wrap_key_data(keys, impl=layout.key_kind)
    source = jax.tree.unflatten(layout.data, data)

    def batch_at(offset: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[offset], source) if layout.is_loaded else source

    def all_chains(step_keys: Array, rest: tuple[Any, Any, Carry]) -> Any:
        return recipe.step_all(step_keys, *rest)

    example = (batch_at(0), count > 0, carry)
    collect, replay = hoist_bits(all_chains, chains, example)
    _, shapes = jax.eval_shape(all_chains, chains, example)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def is_counted(offset: Any) -> Any:
        if recipe.seen.every == 1:
            return offset < count
        return (offset < count) & recipe.seen.includes(first + offset)

    def prepare(offset: Any, size: int) -> Any:
        numbers = first + offset + jnp.arange(size, dtype=jnp.int32)
        keys_of_step = jax.vmap(jax.random.fold_in, in_axes=(0, None))
        step_keys = jax.vmap(keys_of_step, in_axes=(None, 0))(chains, numbers)
        return step_keys, jax.vmap(collect)(step_keys)

    def step(prepared: Any, offset: Array, carry: Carry) -> Any:
        step_keys, bits = prepared
        return replay(bits, step_keys, (batch_at(offset), is_counted(offset), carry))

    return Machine(prepare, step, nothing)


def _some_steps(machine: Machine, prepared: Any, both: Any, offset: Any, count: Any) -> Any:
    """`count` steps; the draws' info is that of all of them together with that in `both`."""

    def once(i: Array, both: Any) -> Any:
        carry, earlier = both
        own = jax.tree.map(lambda leaf: leaf[i], prepared)
        carry, draws = machine.step(own, offset + i, carry)
        return carry, draws._replace(info=merge_info(earlier.info, draws.info))

    return jax.lax.fori_loop(0, count, once, both)


def _block_of_steps(machine: Machine, size: int, both: Any, begin: Any, end: Any) -> Any:
    """The steps from `begin` on, `size` of them or up to `end`."""
    prepared = machine.prepare(begin, size)
    return _some_steps(machine, prepared, both, begin, jnp.minimum(size, end - begin))


def _draws_by_block(machine: Machine, cut: Cut, carry: Carry, constants: Any) -> Any:
    """A chunk's draws, several from each block of steps."""
    per_block = cut.block // cut.thin

    def one_draw(both: Any, prepared: Any) -> Any:
        carry, offset = both
        if cut.thin == 1:
            own = jax.tree.map(lambda leaf: leaf[0], prepared)
            carry, draws = machine.step(own, offset, carry)
        else:
            start = (carry, machine.nothing)
            carry, draws = _some_steps(machine, prepared, start, offset, cut.thin)
        return (carry, offset + cut.thin), variable_leaves(draws, constants)

    def one_block(both: Any, _: None) -> Any:
        prepared = machine.prepare(both[1], cut.block)
        by_draw = jax.tree.map(
            lambda leaf: leaf.reshape(per_block, cut.thin, *leaf.shape[1:]), prepared
        )
        return jax.lax.scan(one_draw, both, by_draw)

    start = (carry, jnp.int32(0))
    (carry, _), draws = jax.lax.scan(one_block, start, length=cut.chunk // per_block)
    return carry, [leaf.reshape(cut.chunk, *leaf.shape[2:]) for leaf in draws]


def _draws_by_many_blocks(machine: Machine, cut: Cut, carry: Carry, constants: Any) -> Any:
    """A chunk's draws, each from several blocks of steps."""

    def one_draw(both: Any, _: None) -> Any:
        carry, offset = both

        def one_block(number: Array, both: Any) -> Any:
            begin = offset + number * cut.block
            return _block_of_steps(machine, cut.block, both, begin, offset + cut.thin)

        num_blocks = -(-cut.thin // cut.block)
        start = (carry, machine.nothing)
        carry, draws = jax.lax.fori_loop(0, num_blocks, one_block, start)
        return (carry, offset + cut.thin), variable_leaves(draws, constants)

    (carry, _), draws = jax.lax.scan(one_draw, (carry, jnp.int32(0)), length=cut.chunk)
    return carry, draws
