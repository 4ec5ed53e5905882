r"""Up the hill: many points at once by BFGS, each of which stops near a mode that is known."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._target import Target

ARMIJO = 1e-4
NEAR = 0.5  # whitened distance from a known mode at which a relaxation ends
FLAT = 1e-4  # the gain that is still to be had, gᵀp, below which it is at a top
SMALLEST_STEP = 1e-9  # of a line search: below, rounding is all that is left
LOST, TOP, KNOWN = 0, 1, 2  # how a relaxation ended


class Known(NamedTuple):
    """Modes that are known, with what makes a normal law around each a standard one.

    Unused places have NaN as their location, which nothing is near to.
    """

    location: Any
    whitening: Any


class Relaxed(NamedTuple):
    """Where relaxations ended.

    outcome: LOST, TOP or KNOWN.  mode: the number of the known mode it came to.
    """

    point: Any
    value: Any
    gradient: Any
    outcome: Any
    mode: Any
    evaluations: Any


class _Search(NamedTuple):
    """A point on its way: H approximates the inverse of the Hessian of -log φ."""

    point: Array
    value: Array
    gradient: Array
    inverse: Array
    length: Array
    is_scaled: Array
    evaluations: Array
    outcome: Array
    mode: Array
    is_over: Array


def relax(target: Target, points: np.ndarray, scales: np.ndarray, known: Known) -> Relaxed:
    """Climb from each point to a top of log φ, or into the neighbourhood of a known mode.

    `scales` are those of the first steps.
    """
    most = min(400, 60 + 10 * target.dimension)
    dtype = target.dtype
    found = _relax(
        target.flat_fn,
        most,
        jnp.asarray(points, dtype),
        jnp.asarray(scales, dtype),
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), known),
    )
    relaxed = Relaxed(*(np.asarray(leaf) for leaf in found))
    target.evaluations += int(relaxed.evaluations.sum())
    return relaxed._replace(
        point=relaxed.point.astype(np.float64),
        value=relaxed.value.astype(np.float64),
        gradient=relaxed.gradient.astype(np.float64),
    )


@partial(jax.jit, static_argnums=(0, 1))
def _relax(flat_fn: Any, most: int, points: Array, scales: Array, known: Known) -> Relaxed:
    def one(point: Array, scale: Array) -> Relaxed:
        ended = jax.lax.while_loop(
            lambda search: ~search.is_over,
            lambda search: _try_step(flat_fn, most, search, known),
            _begin(flat_fn, point, scale, known),
        )
        return Relaxed(
            ended.point, ended.value, ended.gradient, ended.outcome, ended.mode, ended.evaluations
        )

    return jax.vmap(one)(points, scales)


def _begin(flat_fn: Any, point: Array, scale: Array, known: Known) -> _Search:
    value, gradient = jax.value_and_grad(flat_fn)(point)
    is_usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    mode, is_near = _nearest(point, known)
    return _Search(
        point,
        value,
        gradient,
        scale**2 * jnp.eye(point.size, dtype=point.dtype),
        jnp.ones_like(value),
        jnp.bool_(False),
        jnp.int32(1),
        jnp.where(is_usable & is_near, KNOWN, LOST),
        mode,
        ~is_usable | is_near,
    )


def _nearest(point: Array, known: Known) -> tuple[Array, Array]:
    """The known mode that is nearest in its own metric, and whether the point is near to it."""
    whitened = jnp.einsum("kij,kj->ki", known.whitening, point - known.location)
    squares = jnp.sum(whitened**2, axis=-1)
    squares = jnp.where(jnp.isnan(squares), jnp.inf, squares)
    mode = jnp.argmin(squares)
    return mode, squares[mode] < NEAR**2


def _try_step(flat_fn: Any, most: int, search: _Search, known: Known) -> _Search:
    """One evaluation: at the end of a step uphill, which is made if it climbs, or else halved."""
    direction = search.inverse @ search.gradient
    slope = search.gradient @ direction
    move = search.length * direction
    there = search.point + move
    value, gradient = jax.value_and_grad(flat_fn)(there)
    is_usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    is_made = is_usable & (value >= search.value + ARMIJO * search.length * slope)
    updated, is_scaled = _updated(search, move, search.gradient - gradient)
    moved = search._replace(
        point=there,
        value=value,
        gradient=gradient,
        inverse=updated,
        length=jnp.ones_like(search.length),
        is_scaled=is_scaled,
    )
    gain = search.value - value + search.length * slope
    fitted = jnp.where(is_usable, search.length**2 * slope / (2 * gain), 0.0)
    shorter = jnp.clip(fitted, 0.1 * search.length, 0.5 * search.length)
    chosen = jax.tree.map(
        lambda new, old: jnp.where(is_made, new, old), moved, search._replace(length=shorter)
    )
    evaluations = search.evaluations + 1
    mode, is_near = _nearest(chosen.point, known)
    is_top = is_made & (gradient @ (updated @ gradient) < FLAT)
    is_stuck = ~is_made & (shorter < SMALLEST_STEP)
    outcome = jnp.where(is_near, KNOWN, jnp.where(is_top | is_stuck, TOP, LOST))
    is_over = is_near | is_top | is_stuck | (evaluations >= most)
    return chosen._replace(evaluations=evaluations, outcome=outcome, mode=mode, is_over=is_over)


def _updated(search: _Search, move: Array, change: Array) -> tuple[Array, Array]:
    """BFGS's inverse Hessian after a move; where log φ is not concave along it, longer steps."""
    curvature = move @ change
    is_concave = curvature > 1e-10 * jnp.sqrt((move @ move) * (change @ change))
    safe = jnp.where(is_concave, curvature, 1.0)
    size = jnp.where(search.is_scaled, 1.0, safe / jnp.maximum(change @ change, 1e-30))
    identity = jnp.eye(move.size, dtype=move.dtype)
    before = jnp.where(search.is_scaled, search.inverse, size * identity)
    projection = identity - jnp.outer(move, change) / safe
    after = projection @ before @ projection.T + jnp.outer(move, move) / safe
    inverse = jnp.where(is_concave, after, 4 * search.inverse)
    return inverse, search.is_scaled | is_concave
