"""Draws as NumPy arrays: by the names that ArviZ shows, as flat vectors, and with their weights."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from levymc._checks import check_floating, check_real, check_scalar_output
from levymc._trees import named_leaves
from levymc.drifts import LogDensity
from levymc.run import Result

CHAIN_AXES = "Give a Result, or arrays with the axes (chain, draw, …); for one chain, x[None]."
NOT_FINITE = "`levymc.diagnostics.check` reports what went wrong."
ONE_COORDINATE = "Give the draws of one coordinate."
WEIGHTS_REMEDY = "Give one for each draw, such as `result.weights`."


def variables(draws: Any) -> dict[str, np.ndarray]:
    """The leaves of a result's positions, or of a pytree: a dictionary's keys, or x."""
    positions = draws.positions if isinstance(draws, Result) else draws
    return {name: np.asarray(leaf) for name, leaf in named_leaves(positions).items()}


def checked_variables(draws: Any) -> dict[str, np.ndarray]:
    """The same, refused where there is no chain or draw, or something is not finite."""
    found = variables(draws)
    check_floating("draws", found)
    for name, leaf in found.items():
        if leaf.ndim < 2 or 0 in leaf.shape[:2]:
            raise ValueError(
                f"`draws` must have chains and draws, got {name} of {leaf.shape}. {CHAIN_AXES}"
            )
        check_real(f"draws[{name}]", leaf, NOT_FINITE)
    return found


def column(leaf: np.ndarray, place: tuple[int, ...]) -> Float[np.ndarray, "chain draw"]:
    """One coordinate, in double precision."""
    index: Any = (..., *place)
    return np.asarray(leaf[index], np.float64)


def columns(leaf: np.ndarray) -> Iterator[np.ndarray]:
    """All coordinates of a variable, in the order in which they are stored."""
    return (column(leaf, place) for place in np.ndindex(leaf.shape[2:]))


def coordinate_name(name: str, place: tuple[int, ...]) -> str:
    return name + (f"[{', '.join(str(i) for i in place)}]" if place else "")


def shares(weights: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Weights that sum to one; all equal if `weights` is None."""
    if weights is None:
        return np.full(shape, 1 / np.prod(shape))
    check_real("weights", weights, WEIGHTS_REMEDY)
    given = np.asarray(weights, np.float64)
    if given.shape != shape:
        raise ValueError(
            f"`weights` must have the shape {shape} of the draws, got {given.shape}. "
            f"{WEIGHTS_REMEDY}"
        )
    if np.any(given < 0) or given.sum() == 0:
        raise ValueError(
            f"`weights` must not be negative nor all zero, got {given.min()} as the least. "
            f"{WEIGHTS_REMEDY}"
        )
    return given / given.sum()


def flat_draws(result: Result) -> Float[np.ndarray, "draw coordinate"]:
    """The draws of all chains as vectors, in double precision."""
    count = result.num_chains * result.num_draws
    leaves = [np.reshape(leaf, (count, -1)) for leaf in jax.tree.leaves(result.positions)]
    return np.concatenate(leaves, axis=1).astype(np.float64)


def flat_logdensity(
    result: Result, logdensity_fn: LogDensity
) -> Callable[[np.ndarray], Float[np.ndarray, " point"]]:
    """log φ of many positions that are vectors."""
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), result.positions)
    check_scalar_output("logdensity_fn", logdensity_fn, one)
    flat, unflatten = ravel_pytree(one)
    compiled = jax.jit(jax.vmap(lambda position: logdensity_fn(unflatten(position))))
    return lambda points: np.asarray(compiled(jnp.asarray(points, flat.dtype)), np.float64)
