"""What all algorithms share: state, info, and the step that ends at a finite position."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_floating, is_traced

ALPHA_REMEDY = "Below 1 the process has no mean; 2 is plain Langevin dynamics."


class State(NamedTuple):
    """Where the chain is, and how many steps it has made."""

    position: Any
    step: Array


class Info(NamedTuple):
    """What a person may ask of a step.

    step_size: η.
    acceptance_rate: probability of acceptance; 1 for algorithms without a test.
    is_divergent: the step would have left the finite numbers, and was not made.
    largest_jump: the largest coordinate of the noise.
    taming: how much the drift's step was shortened, from 0 (not) to 1.
    """

    step_size: Array
    acceptance_rate: Array
    is_divergent: Array
    largest_jump: Array
    taming: Array


class SamplingAlgorithm(NamedTuple):
    """`init(position)` gives a state; `step(key, state)` the next, and what to know of it.

    Stochastic-gradient algorithms take a minibatch, too: `step(key, state, minibatch)`.
    """

    init: Callable[..., Any]
    step: Callable[..., tuple[Any, Any]]


def check_start(position: Any) -> None:
    """Refuse a start that is no pytree of finite floating arrays."""
    check_floating("position", position)
    if is_traced(position):
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(position):
        if not bool(jnp.all(jnp.isfinite(leaf))):
            where = "position" + jax.tree_util.keystr(path)
            raise ValueError(f"`{where}` must be finite, got {leaf}. Start where log φ is finite.")


def init(position: Any) -> State:
    check_start(position)
    return State(jax.tree.map(jnp.asarray, position), jnp.int32(0))


def position_dtype(position: Any) -> Any:
    return jnp.result_type(*jax.tree.leaves(position))


def keep_finite(proposed: Any, current: Any) -> tuple[Any, Array]:
    """`proposed` where all of it is finite, otherwise `current`; and whether it was not."""
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(proposed)])
    is_finite = jnp.all(finite)
    kept = jax.tree.map(lambda new, old: jnp.where(is_finite, new, old), proposed, current)
    return kept, ~is_finite


def add(position: Any, *moves: Any) -> Any:
    """position + Σ moves, each leaf in its own precision."""
    return jax.tree.map(lambda x, *parts: (x + sum(parts)).astype(x.dtype), position, *moves)
