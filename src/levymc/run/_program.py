"""The compiled program of a run: chains side by side, a chunk of draws a call.

A step's random numbers come from fold_in(fold_in(key, chain), n), n the number of the step: they
depend on neither the chunks nor the other chains.  The program takes and gives lists of arrays,
the leaves of states and draws, so that a store can keep it without knowing their structure.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc.algorithms import Info

from ._batches import draw_batch

Leaves = list[Array]


class Draws(NamedTuple):
    """What is kept of a chunk; the leading axes are (draw, chain)."""

    positions: Any
    info: Any


class Program(NamedTuple):
    """The compiled functions of a run, all over all chains.

    advance: make steps and keep nothing, (states, keys, data, first, count) -> states.
    draw: keep every thin-th step of a chunk, (states, keys, data, first) -> (states, draws).

    `keys` are the raw data of the chains' keys, `first` is the number of the first step, `data`
    what minibatches are drawn from, or [].
    """

    advance: Any
    draw: Any


def chain_keys(key: Array, num_chains: int) -> Array:
    """The raw data of a key for each chain."""
    keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(jnp.arange(num_chains))
    return jax.random.key_data(keys)


@lru_cache(maxsize=32)
def compile_init(algorithm: Any) -> Callable[[Any], Any]:
    """The states of all chains at their initial positions."""
    return jax.jit(jax.vmap(algorithm.init))


@lru_cache(maxsize=32)  # so that a second run of the same algorithm compiles nothing
def compile_program(
    algorithm: Any,
    state_structure: Any,
    data_structure: Any,
    batch_size: int | None,
    thin: int,
    chunk: int,
    key_kind: str,
) -> Program:
    def step(states: Leaves, keys: Array, data: Leaves, number: Array) -> tuple[Leaves, Any]:
        batch_source = None if batch_size is None else jax.tree.unflatten(data_structure, data)
        one = partial(_one, algorithm, batch_size, batch_source, number)
        typed = jax.random.wrap_key_data(keys, impl=key_kind)
        moved, info = jax.vmap(one)(typed, jax.tree.unflatten(state_structure, states))
        return jax.tree.leaves(moved), info

    def advance(states: Leaves, keys: Array, data: Leaves, first: Array, count: Array) -> Leaves:
        return jax.lax.fori_loop(
            0, count, lambda i, current: step(current, keys, data, first + i)[0], states
        )

    def draw(states: Leaves, keys: Array, data: Leaves, first: Array) -> tuple[Leaves, Leaves]:
        def one_draw(carry: tuple[Leaves, Array], _: None) -> tuple[Any, Leaves]:
            states, number = carry
            states, info = step(states, keys, data, number)

            def once_more(i: Array, both: tuple[Leaves, Any]) -> tuple[Leaves, Any]:
                moved, news = step(both[0], keys, data, number + i)
                return moved, _merge(both[1], news)

            if thin > 1:
                states, info = jax.lax.fori_loop(1, thin, once_more, (states, info))
            position = _position(jax.tree.unflatten(state_structure, states))
            return (states, number + thin), jax.tree.leaves(Draws(position, info))

        (states, _), draws = jax.lax.scan(one_draw, (states, first), length=chunk)
        return states, draws

    return Program(jax.jit(advance), jax.jit(draw))


def draw_structure(algorithm: Any, states: Any, batch_size: int | None, data: Any) -> Any:
    """Shapes of the draws that one step of all chains leaves."""
    keys = jax.random.split(jax.random.key(0), len(jax.tree.leaves(states)[0]))
    moved, info = jax.eval_shape(_single_step(algorithm, batch_size), keys, states, data)
    return Draws(_position(moved), info)


@lru_cache(maxsize=32)
def _single_step(algorithm: Any, batch_size: int | None) -> Callable[..., Any]:
    """Only ever traced: once for each algorithm and shape."""

    def step(keys: Array, states: Any, data: Any) -> tuple[Any, Any]:
        return jax.vmap(partial(_one, algorithm, batch_size, data, jnp.int32(0)))(keys, states)

    return jax.jit(step)


def _one(
    algorithm: Any, batch_size: int | None, data: Any, number: Array, key: Array, state: Any
) -> tuple[Any, Any]:
    """A step of one chain."""
    own_key = jax.random.fold_in(key, number)
    if batch_size is None:
        return algorithm.step(own_key, state)
    key_batch, key_step = jax.random.split(own_key)
    return algorithm.step(key_step, state, draw_batch(key_batch, data, batch_size))


def _position(states: Any) -> Any:
    """A state's position; a state without one, such as that of BlackJAX's sgld, is a position."""
    return getattr(states, "position", states)


def _merge(earlier: Any, later: Any) -> Any:
    """The info of thinned steps: of ours the extremes, of other algorithms the last."""
    if not isinstance(later, Info):
        return later
    return later._replace(
        is_divergent=earlier.is_divergent | later.is_divergent,
        largest_jump=jnp.maximum(earlier.largest_jump, later.largest_jump),
        taming=jnp.maximum(earlier.taming, later.taming),
    )
