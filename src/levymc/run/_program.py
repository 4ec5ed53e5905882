"""The compiled program of a run: chains side by side, a chunk of draws a call.

A step's random numbers come from fold_in(fold_in(key, chain), n), n the number of the step: they
depend on neither the chunks nor the other chains.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc.algorithms import Info

from ._batches import draw_batch


class Draws(NamedTuple):
    """What is kept of a chunk; the leading axes are (draw, chain)."""

    positions: Any
    info: Any


class Program(NamedTuple):
    """The compiled functions of a run, all over the states of all chains.

    init: of the initial positions.
    advance: make steps and keep nothing, (states, keys, data, first, count) -> states.
    draw: keep every thin-th step of a chunk, (states, keys, data, first) -> (states, draws).

    `first` is the number of the first step; `data` what minibatches are drawn from, or None.
    """

    init: Callable[[Any], Any]
    advance: Callable[..., Any]
    draw: Callable[..., tuple[Any, Draws]]


def chain_keys(key: Array, num_chains: int) -> Array:
    return jax.vmap(lambda chain: jax.random.fold_in(key, chain))(jnp.arange(num_chains))


@lru_cache(maxsize=32)  # so that a second run of the same algorithm compiles nothing
def compile_program(algorithm: Any, batch_size: int | None, thin: int, chunk: int) -> Program:
    def step(states: Any, keys: Array, data: Any, number: Array) -> tuple[Any, Any]:
        one = partial(_one, algorithm, batch_size, data, number)
        return jax.vmap(one)(keys, states)

    def advance(states: Any, keys: Array, data: Any, first: Array, count: Array) -> Any:
        return jax.lax.fori_loop(
            0, count, lambda i, current: step(current, keys, data, first + i)[0], states
        )

    def draw(states: Any, keys: Array, data: Any, first: Array) -> tuple[Any, Draws]:
        def one_draw(carry: tuple[Any, Array], _: None) -> tuple[tuple[Any, Array], Draws]:
            states, number = carry
            states, info = step(states, keys, data, number)

            def once_more(i: Array, both: tuple[Any, Any]) -> tuple[Any, Any]:
                moved, news = step(both[0], keys, data, number + i)
                return moved, _merge(both[1], news)

            if thin > 1:
                states, info = jax.lax.fori_loop(1, thin, once_more, (states, info))
            return (states, number + thin), Draws(_position(states), info)

        (states, _), draws = jax.lax.scan(one_draw, (states, first), length=chunk)
        return states, draws

    return Program(jax.jit(jax.vmap(algorithm.init)), jax.jit(advance), jax.jit(draw))


def _one(
    algorithm: Any,
    batch_size: int | None,
    data: Any,
    number: Array,
    key: Array,
    state: Any,
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
