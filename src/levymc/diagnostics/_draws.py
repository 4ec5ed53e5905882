"""Draws as NumPy arrays: by the names that ArviZ shows, as flat vectors, and with their weights."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from levymc._checks import check_floating, check_real, check_scalar_output
from levymc._trees import named_leaves
from levymc.drifts import LogDensity
from levymc.run import Result

AT_ONCE = 256  # points
CHAIN_AXES = "Give a Result, or arrays with the axes (chain, draw, …); for one chain, x[None]."
NOT_FINITE = "`levymc.diagnostics.check` reports what went wrong."
ONE_COORDINATE = "Give the draws of one coordinate."
WEIGHTS_REMEDY = "Give one for each draw, such as `result.weights`."


def variables(draws: Any) -> dict[str, np.ndarray]:
    """The leaves of a result's positions, or of a pytree: a dictionary's keys, or x."""
    positions = draws.positions if isinstance(draws, Result) else draws
    if positions is None:
        raise ValueError(
            "`draws` must have positions, got None: none were kept, as `observe` was given. "
            "Run with keep=True, or observe what you need."
        )
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
    chains = flat_chains(result)
    return chains.reshape(-1, chains.shape[2])


def flat_chains(result: Result) -> Float[np.ndarray, "chain draw coordinate"]:
    """The draws as vectors, in double precision; coordinates in the order of ravel_pytree."""
    counts = result.num_chains, result.num_draws
    leaves = [np.reshape(leaf, (*counts, -1)) for leaf in jax.tree.leaves(result.positions)]
    return np.concatenate(leaves, axis=2).astype(np.float64)


def even_in_time(
    values: Float[np.ndarray, "chain draw"], weights: Float[np.ndarray, "chain draw"]
) -> Float[np.ndarray, "chain draw"]:
    """As many draws of each chain, evenly spaced in the sum of its weights; their order is kept.

    Weights are step sizes, their sum the time of the diffusion: in that time the draws of a
    decreasing step are about stationary.  A draw of large weight is there several times, which
    R-hat and the effective sample size understand: of independent draws the latter becomes
    (Σ w)²/Σ w².  Equal weights change nothing.
    """
    if not np.ptp(weights):
        return values
    count = values.shape[1]
    times = np.cumsum(weights, axis=1, dtype=np.float64)
    wanted = (np.arange(count) + 0.5) / count
    places = [np.searchsorted(time, wanted * time[-1]) for time in times]
    return np.take_along_axis(values, np.minimum(places, count - 1), axis=1)


class OfVectors(NamedTuple):
    """A function of a position as one of vectors of this dtype."""

    function: Callable[[jax.Array], Any]
    dtype: Any


def flat_function(result: Result, function: Callable[[Any], Any]) -> OfVectors:
    """A function of positions such as those of a result, for vectors."""
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), result.positions)
    flat, unflatten = ravel_pytree(one)
    return OfVectors(lambda vector: function(unflatten(vector)), flat.dtype)


def flat_logdensity(
    result: Result, logdensity_fn: LogDensity
) -> Callable[[np.ndarray], Float[np.ndarray, " point"]]:
    """log φ of many positions that are vectors."""
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), result.positions)
    check_scalar_output("logdensity_fn", logdensity_fn, one)
    return at_points(*flat_function(result, logdensity_fn))


def at_points(
    function: Callable[[jax.Array], Any], dtype: Any
) -> Callable[[np.ndarray], np.ndarray]:
    """A function of a vector at many of them, so many at a time that all data fit beside them."""
    compiled = jax.jit(lambda points: jax.lax.map(function, points, batch_size=AT_ONCE))
    return lambda points: np.asarray(compiled(jnp.asarray(points, dtype)), np.float64)
