"""A log density along lines through positions, explored coordinate by coordinate."""

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array

from levymc._checks import is_in_program, is_traced
from levymc._settled import as_now

from ._landscape import MOST_POINTS, Landscape, explore, stacked

MOST_LINES = 8  # through different positions, along each coordinate
MOST_EVALUATIONS = 1 << 21  # by the linear scans of all lines
FEWEST_POINTS = 1 << 12  # of the linear scans of a line: with fewer, nothing is explored
MOST_CENTERS = 16
BATCH = 4096


class Line:
    """log φ along one coordinate through positions, summed over them: each has its largest at 0.

    Through one position, or where the position is one number, it is log φ as it is.
    """

    def __init__(self, logdensity: Partial, positions: Any, axis: int, size: int) -> None:
        self.logdensity, self.positions, self.axis = logdensity, positions, np.int32(axis)
        self.size = size
        self.dtype = np.dtype(jnp.result_type(*jax.tree.leaves(positions)))
        self.tops: np.ndarray | None = None

    def __call__(self, points: np.ndarray) -> np.ndarray:
        batch = BATCH // self.size
        parts = [
            self._batch(points[begin : begin + batch], batch)
            for begin in range(0, len(points), batch)
        ]
        each = np.concatenate(parts, axis=-1) if parts else np.zeros((self.size, 0))
        if self.size == 1:
            return each[0]
        each = np.where(np.isnan(each) | (each == np.inf), -np.inf, each)
        if self.tops is None:  # the first call is the scan
            tops = np.max(each, axis=1, keepdims=True, initial=-np.inf)
            self.tops = np.where(np.isfinite(tops), tops, 0.0)
        return np.logaddexp.reduce(each - self.tops, axis=0)

    def _batch(self, points: np.ndarray, batch: int) -> np.ndarray:
        padded = np.pad(points, (0, batch - len(points)), mode="edge")
        with np.errstate(over="ignore"):  # far out sixteen bits are infinite, and φ is zero
            points_there = padded.astype(self.dtype)
        logs = _heights(self.logdensity, self.positions, self.axis, points_there)
        if is_traced(logs):
            raise _Traced
        return np.asarray(logs, np.float64)[:, : len(points)]


class _Traced(Exception):
    """The log density holds a tracer, so that it cannot be looked at."""


@jax.jit
def _heights(logdensity: Partial, positions: Any, axis: Array, points: Array) -> Array:
    def along(position: Any) -> Array:
        flat, unflatten = ravel_pytree(position)
        # All but one coordinate stay.
        return jax.vmap(lambda t: logdensity(unflatten(flat.at[axis].set(t))))(points)

    return jax.vmap(along)(positions)


def explored_number(logdensity: Partial, centers: np.ndarray, scale: float) -> Landscape | None:
    """The landscape of a log density of one number; None where it is of something else."""
    positions = np.zeros(1, jnp.result_type(float))
    return explored(logdensity, positions, centers[None], np.array([scale]))


def explored(
    logdensity: Partial, positions: Any, centers: np.ndarray, scales: np.ndarray
) -> Landscape | None:
    """The landscape along each coordinate through positions, whose first axis is over them.

    `centers` has a row for each coordinate.  None where the log density cannot be looked at, or
    where there are too many coordinates.
    """
    if is_traced((logdensity, positions)):
        return None
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf)[1:], leaf.dtype), positions)
    if not _is_scalar(logdensity, one):
        return None
    logdensity = as_now(logdensity, one)
    leaves, structure = jax.tree.flatten(positions)
    arrays = tuple(_Frozen(np.asarray(leaf)) for leaf in leaves)
    arguments = (structure, arrays, _Frozen(centers), _Frozen(scales))
    is_alone = not (logdensity.args or logdensity.keywords)
    can_remember = is_alone and _is_hashable(logdensity.func)
    # Inside a program that is being traced, numbers are traced, too, unless they are asked not to.
    try:
        with jax.ensure_compile_time_eval() if is_in_program() else nullcontext():
            if can_remember:
                return _remembered(logdensity.func, *arguments)
            return _explored(logdensity, *arguments)
    except _Traced:
        return None


def _is_scalar(logdensity: Partial, position: Any) -> bool:
    """Whether it gives one real number for such a position; who calls the drift is told if not."""
    try:
        shape = jax.eval_shape(logdensity, position)
    except Exception:  # whatever it does with a position that it does not expect
        return False
    return getattr(shape, "shape", None) == () and jnp.issubdtype(shape.dtype, jnp.floating)


class _Frozen:
    """An array that can be looked up."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.key = (array.shape, str(array.dtype), array.tobytes())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.key == other.key


def _is_hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=32)
def _remembered(function: Any, *arguments: Any) -> Landscape | None:
    """A sweep over α explores one target once."""
    return _explored(Partial(function), *arguments)


def _explored(
    logdensity: Partial, structure: Any, arrays: tuple[_Frozen, ...], centers: Any, scales: Any
) -> Landscape | None:
    positions = jax.tree.unflatten(structure, [frozen.array for frozen in arrays])
    dimension = len(centers.array)
    count = 1 if dimension == 1 else min(MOST_LINES, len(arrays[0].array))
    chosen = np.linspace(0, len(arrays[0].array) - 1, count).round().astype(int)
    lines = jax.tree.map(lambda leaf: leaf[chosen], positions)
    num_points = min(MOST_POINTS, MOST_EVALUATIONS // (dimension * count))
    if num_points < FEWEST_POINTS:
        return None
    found = [
        explore(Line(logdensity, lines, axis, count), own, float(scale), num_points)
        for axis, (own, scale) in enumerate(zip(centers.array, scales.array, strict=True))
    ]
    return found[0] if dimension == 1 else stacked(found)
