"""From the arguments of a run to a program that is ready to go."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_count, check_floating

from ._execute import Inputs
from ._feed import Loader, Source
from ._plan import Plan, cut_run
from ._program import Layout, Leaves, Program, chain_keys, compile_init, compile_program
from ._step import Constant, Draws, Recipe, Seen, anatomy, seen_after
from .observe import Observer


class Prepared(NamedTuple):
    """A run that is ready: its plan and program, what they are given, and what they leave.

    draws: shapes of one draw of one chain, or constants.
    observed: shapes of what is observed of one chain, by name.
    """

    plan: Plan
    program: Program
    inputs: Inputs
    states: Leaves
    draws: Draws
    observed: dict[str, Any]


class Counts(NamedTuple):
    """What a user asked for, in steps."""

    steps: int
    thin: int
    burn_in: int


def check_counts(num_steps: Any, thin: Any, burn_in: Any) -> Counts:
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    every = check_count("thin", thin, "Every thin-th step is kept.")
    unkept = 0 if burn_in == 0 else check_count("burn_in", burn_in, "It is a number of steps.")
    if every > steps:
        raise ValueError(
            f"`thin` must be at most `num_steps` = {steps}, got {every}. Nothing would be kept."
        )
    return Counts(steps, every, unkept)


def count_chains(positions: Any) -> int:
    check_floating("initial_positions", positions)
    leaves = jax.tree.leaves(positions)
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "`initial_positions` must have the chains along the first axis of every leaf, "
            f"got first axes of {sorted(counts)}. For one chain, add an axis: x[None]."
        )
    return counts.pop()


def check_observers(observe: Any) -> dict[str, Observer]:
    if observe is None:
        return {}
    is_right = isinstance(observe, Mapping) and all(
        isinstance(name, str) and isinstance(observer, Observer)
        for name, observer in observe.items()
    )
    if not is_right:
        raise TypeError(
            f"`observe` must have observers by name, got {observe!r}. "
            'Such as {"mean": levymc.observe.mean()}.'
        )
    return dict(observe)


def check_seen(observe_every: Any, counts: Counts, observers: dict[str, Observer]) -> Seen:
    every = check_count("observe_every", observe_every, "Observers see every k-th step.")
    if every > 1 and not observers:
        raise ValueError(
            f"`observe_every` must be 1 without `observe`, got {every}. "
            "To keep fewer draws, use `thin`."
        )
    if every > counts.steps:
        raise ValueError(
            f"`observe_every` must be at most `num_steps` = {counts.steps}, got {every}. "
            "Nothing would be observed."
        )
    return seen_after(counts.burn_in, every)


def prepare(
    recipe: Recipe,
    names: tuple[str, ...],
    source: Source,
    key: Any,
    positions: Any,
    counts: Counts,
) -> Prepared:
    carries = _start(recipe, positions)
    leaves, structure = jax.tree.flatten(carries)
    num_chains, num_draws = len(leaves[0]), counts.steps // counts.thin
    parts = anatomy(recipe, carries, source.example)
    draw_bytes = num_chains * _bytes(parts.draws) + counts.thin * source.step_bytes
    keys = chain_keys(key, num_chains)
    cut = cut_run(num_draws, counts.thin, draw_bytes, parts.bits + keys.nbytes)
    layout = Layout(
        states=structure,
        data=jax.tree.structure(source.example),
        constants=tuple(isinstance(leaf, Constant) for leaf in jax.tree.leaves(parts.draws)),
        is_loaded=isinstance(source.feed, Loader),
        key_kind=str(jax.random.key_impl(key)),
        cut=cut,
    )
    return Prepared(
        Plan(num_chains, num_draws, counts.burn_in, cut),
        compile_program(recipe, layout),
        Inputs(keys, source.feed),
        leaves,
        parts.draws,
        dict(zip(names, parts.observed, strict=True)),
    )


def _start(recipe: Recipe, positions: Any) -> Any:
    """The states of all chains; refuse starts at which something is not finite."""
    carries = jax.tree.map(_strong, compile_init(recipe)(jax.tree.map(jnp.asarray, positions)))
    for path, leaf in jax.tree_util.tree_leaves_with_path(carries.state):
        values = np.asarray(leaf)
        if jnp.issubdtype(leaf.dtype, jnp.floating) and not np.all(np.isfinite(values)):
            wrong = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
            raise ValueError(
                f"`initial_positions` must give finite states, got a state whose "
                f"{jax.tree_util.keystr(path)} is not, in chains {np.flatnonzero(wrong).tolist()}. "
                "Start inside the support of the target."
            )
    return carries


def _strong(leaf: Any) -> Any:
    """Without JAX's weak type: steps lose it, and the program would be compiled anew for them."""
    return jax.lax.convert_element_type(leaf, leaf.dtype) if leaf.weak_type else leaf


def _bytes(draws: Draws) -> int:
    """Of one draw of one chain."""
    leaves = [leaf for leaf in jax.tree.leaves(draws) if not isinstance(leaf, Constant)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
