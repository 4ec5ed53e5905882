"""A log density as a function of a flat vector, evaluated at many points at once, and counted."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc._checks import check_floating
from levymc._room import keeps_programs
from levymc._settled import settled
from levymc.drifts import LogDensity

SMALLEST_BATCH = 16
LARGE = 1e30  # numbers that logarithms need


class Target:
    """log φ of a flat vector; values are float64 on the host, whatever the target computes in.

    evaluations: how many densities were asked for so far, with or without their gradients.
    local: makes the sampler for local moves, if it is another than ours.
    """

    def __init__(
        self,
        logdensity_fn: LogDensity,
        position: Any,
        *,
        gradient: bool = True,
        local: Callable[[LogDensity, Any], Any] | None = None,
    ) -> None:
        leaves, structure = jax.tree.flatten(position)
        shapes = tuple((np.shape(leaf), jnp.asarray(leaf).dtype) for leaf in leaves)
        logdensity_fn = settled(logdensity_fn, _shaped(structure, shapes))
        self.flat_fn, self.unflatten = _flattened(logdensity_fn, structure, shapes)
        self.logdensity_fn = logdensity_fn
        self.dimension = sum(int(np.prod(shape)) for shape, _ in shapes)
        self.dtype = jnp.result_type(*(dtype for _, dtype in shapes))
        self.has_gradient, self.local = gradient, local
        self._has_hessian = True
        self.evaluations = 0

    def values(self, points: np.ndarray) -> np.ndarray:
        """log φ at each of some points; -inf where it is NaN."""
        self.evaluations += len(points)
        found = _in_batches(partial(_values, self.flat_fn), points, self.dtype)[0]
        return np.where(np.isnan(found), -np.inf, found)

    def gradients(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log φ and its gradient at each of some points."""
        self.evaluations += len(points)
        values, gradients = _in_batches(
            partial(_values_and_gradients, self.flat_fn), points, self.dtype
        )
        return np.where(np.isnan(values), -np.inf, values), gradients

    def hessian(self, point: np.ndarray) -> np.ndarray:
        """The second derivatives of log φ, counted as two gradients for each coordinate."""
        if self._has_hessian:
            try:
                found = np.asarray(_hessian(self.flat_fn, jnp.asarray(point, self.dtype)), float)
                self.evaluations += 2 * self.dimension
            except (TypeError, ValueError, NotImplementedError):
                # Reverse derivatives only, as those of many solvers of differential equations.
                self._has_hessian = False
        if not self._has_hessian:
            found = self._hessian_by_differences(point)
        return (found + found.T) / 2

    def _hessian_by_differences(self, point: np.ndarray) -> np.ndarray:
        """Central differences of the gradient, along one coordinate after the other."""
        steps = np.cbrt(float(jnp.finfo(self.dtype).eps)) * np.maximum(np.abs(point), 1.0)
        _, slopes = self.gradients(np.concatenate([point + np.diag(steps), point - np.diag(steps)]))
        above, below = np.split(slopes, 2)
        return (above - below) / (2 * steps[:, None])

    def flattened(self, positions: Any) -> np.ndarray:
        """Positions, with axes before those of one, as vectors along the last axis."""
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(positions)]
        own = [np.ndim(leaf) for leaf in jax.tree.leaves(self.example)]
        flat = [
            leaf.reshape(*leaf.shape[: leaf.ndim - axes], -1)
            for leaf, axes in zip(leaves, own, strict=True)
        ]
        return np.concatenate(flat, axis=-1)

    @property
    def example(self) -> Any:
        return jax.eval_shape(
            self.unflatten, jax.ShapeDtypeStruct((self.dimension,), jnp.dtype(self.dtype))
        )

    def positions(self, points: np.ndarray) -> Any:
        """Points, along the first axis, as positions."""
        return jax.vmap(self.unflatten)(jnp.asarray(points, self.dtype))


def checked_starts(positions: Any) -> Any:
    """Positions with the starts along the first axis, as arrays, or a refusal."""
    check_floating("initial_positions", positions)
    leaves = jax.tree.leaves(positions)
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "`initial_positions` must have the starts along the first axis of every leaf, "
            f"got first axes of {sorted(counts)}. For one start, add an axis: x[None]."
        )
    if not all(np.all(np.isfinite(leaf)) for leaf in leaves):
        raise ValueError(
            "`initial_positions` must be finite, got NaN or infinite numbers. "
            "Start inside the support of the target."
        )
    for dtype in {jnp.result_type(leaf) for leaf in leaves}:
        if float(jnp.finfo(dtype).max) < LARGE:
            raise TypeError(
                f"`initial_positions` must be in float32 or float64, got {dtype}: logarithms of "
                "densities are larger than its numbers. Convert them."
            )
    if not sum(np.size(leaf) for leaf in leaves):
        raise ValueError(
            "`initial_positions` must have coordinates, got none. Give a target with some."
        )
    return jax.tree.map(jnp.asarray, positions)


def check_support(target: Target, starts: np.ndarray) -> None:
    """Refuse starts at which log φ is not finite."""
    values = target.values(starts)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        where = starts[wrong[0]].tolist()
        raise ValueError(
            f"`initial_positions` must be where log φ is finite, got {values[wrong[0]]} at "
            f"{where!s:.200}. Start inside the support of the target."
        )


def _shaped(structure: Any, shapes: tuple[Any, ...]) -> Any:
    return jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*kind) for kind in shapes])


@keeps_programs
@lru_cache(maxsize=64)
def _flattened(
    logdensity_fn: LogDensity, structure: Any, shapes: tuple[Any, ...]
) -> tuple[Callable[[Array], Array], Callable[[Array], Any]]:
    """The same functions for the same target, so that what is compiled for one is found again."""
    leaves = [jnp.zeros(shape, dtype) for shape, dtype in shapes]
    _, unflatten = ravel_pytree(jax.tree.unflatten(structure, leaves))
    return (lambda flat: jnp.asarray(logdensity_fn(unflatten(flat)))), unflatten


def _in_batches(function: Any, points: np.ndarray, dtype: Any) -> tuple[np.ndarray, ...]:
    """In batches of sizes that are powers of two, so that few programs are compiled."""
    count = len(points)
    size = max(SMALLEST_BATCH, 1 << max(count - 1, 0).bit_length())
    padded = np.concatenate([points, np.repeat(points[:1], size - count, axis=0)])
    found = function(jnp.asarray(padded, dtype))
    return tuple(np.asarray(leaf, np.float64)[:count] for leaf in jax.tree.leaves(found))


@partial(jax.jit, static_argnums=0)
def _values(flat_fn: Any, points: Array) -> Array:
    return jax.vmap(flat_fn)(points)


@partial(jax.jit, static_argnums=0)
def _values_and_gradients(flat_fn: Any, points: Array) -> tuple[Array, Array]:
    return jax.vmap(jax.value_and_grad(flat_fn))(points)


@partial(jax.jit, static_argnums=0)
def _hessian(flat_fn: Any, point: Array) -> Array:
    return jax.hessian(flat_fn)(point)
