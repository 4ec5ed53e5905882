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
# By which log φ, and its gradient where the mode is standard normal, may be off what a known mode
# foretells.  Far out another mode of the same width differs little from it in proportion.
EXPLAINED = 0.5
FLAT = 1e-4  # the gain that is still to be had, gᵀp, below which it is at a top
SMALLEST_STEP = 1e-9  # of a line search: below, rounding is all that is left
HOPE = 4.0  # times the last gain, or that foreseen, which a relaxation may still be short of
LEAST_EVALUATIONS = 3  # before a relaxation is given up
LOST, TOP, KNOWN = 0, 1, 2  # how a relaxation ended


class Aim(NamedTuple):
    """How relaxations begin, and when they end; each leaf has the points along its first axis.

    inverse: of the Hessian of -log φ, nearly.  is_learned: whether it comes from a relaxation
        nearby; else it is made anew after the first step.
    flat: the gain still to be had, gᵀp, below which a point is at a top.
    level: of log φ.  A relaxation that is not foreseen to reach it is given up, LOST.
    most: evaluations.
    """

    inverse: Any
    is_learned: Any
    flat: Any
    level: Any
    most: Any


class Known(NamedTuple):
    """Modes that are known, with what makes a normal law around each a standard one.

    Unused places have NaN as their location, which nothing is near to.
    """

    location: Any
    whitening: Any
    value: Any


class Relaxed(NamedTuple):
    """Where relaxations ended.

    outcome: LOST, TOP or KNOWN.  mode: the number of the known mode it came to.
    inverse: of the Hessian of -log φ there, nearly.
    """

    point: Any
    value: Any
    gradient: Any
    outcome: Any
    mode: Any
    evaluations: Any
    inverse: Any


class _Search(NamedTuple):
    """A point on its way: H approximates the inverse of the Hessian of -log φ."""

    point: Array
    value: Array
    gradient: Array
    inverse: Array
    length: Array
    is_scaled: Array
    gained: Array
    evaluations: Array
    outcome: Array
    mode: Array
    is_over: Array


def steps_of(scales: np.ndarray, dimension: int) -> Aim:
    """The aim of relaxations of which no more is known than the scales of their first steps."""
    count = len(scales)
    return Aim(
        np.square(scales)[:, None, None] * np.eye(dimension),
        np.zeros(count, bool),
        np.full(count, FLAT),
        np.full(count, -np.inf),
        np.full(count, most_evaluations(dimension)),
    )


def most_evaluations(dimension: int) -> int:
    """Of one relaxation, before it is lost."""
    return min(400, 60 + 10 * dimension)


def relax(target: Target, points: np.ndarray, aim: Aim, known: Known) -> Relaxed:
    """Climb from each point to a top of log φ, or into the neighbourhood of a known mode."""
    dtype = target.dtype
    found = _relax(
        target.flat_fn,
        jnp.asarray(points, dtype),
        Aim(
            jnp.asarray(aim.inverse, dtype),
            jnp.asarray(aim.is_learned, bool),
            jnp.asarray(aim.flat, dtype),
            jnp.asarray(aim.level, dtype),
            jnp.asarray(aim.most, jnp.int32),
        ),
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), known),
    )
    evaluations = np.asarray(found.evaluations)
    target.evaluations += int(evaluations.sum())
    return Relaxed(
        np.asarray(found.point, np.float64),
        np.asarray(found.value, np.float64),
        np.asarray(found.gradient, np.float64),
        np.asarray(found.outcome),
        np.asarray(found.mode),
        evaluations,
        found.inverse,
    )


@partial(jax.jit, static_argnums=0)
def _relax(flat_fn: Any, points: Array, aims: Aim, known: Known) -> Relaxed:
    def one(point: Array, aim: Aim) -> Relaxed:
        ended = jax.lax.while_loop(
            lambda search: ~search.is_over,
            lambda search: _try_step(flat_fn, search, aim, known),
            _begin(flat_fn, point, aim, known),
        )
        return Relaxed(
            ended.point,
            ended.value,
            ended.gradient,
            ended.outcome,
            ended.mode,
            ended.evaluations,
            ended.inverse,
        )

    return jax.vmap(one)(points, aims)


def _begin(flat_fn: Any, point: Array, aim: Aim, known: Known) -> _Search:
    value, gradient = jax.value_and_grad(flat_fn)(point)
    is_usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    mode, is_near = _nearest(point, value, known)
    return _Search(
        point,
        value,
        gradient,
        aim.inverse,
        jnp.ones_like(value),
        aim.is_learned,
        jnp.zeros_like(value),
        jnp.int32(1),
        jnp.where(is_usable & is_near, KNOWN, LOST),
        mode,
        ~is_usable | is_near,
    )


def _nearest(point: Array, value: Array, known: Known) -> tuple[Array, Array]:
    """The known mode that is nearest in its own metric, and whether the point is near to it.

    Where log φ is higher than at that mode, it is on the way to another, narrower one.
    """
    whitened = jnp.einsum("kij,kj->ki", known.whitening, point - known.location)
    squares = jnp.sum(whitened**2, axis=-1)
    squares = jnp.where(jnp.isnan(squares), jnp.inf, squares)
    mode = jnp.argmin(squares)
    return mode, (squares[mode] < NEAR**2) & (value < known.value[mode] + EXPLAINED)


def _try_step(flat_fn: Any, search: _Search, aim: Aim, known: Known) -> _Search:
    """One evaluation: at the end of a step uphill, which is made if it climbs, or else halved."""
    direction = search.inverse @ search.gradient
    slope = search.gradient @ direction
    move = search.length * direction
    there = search.point + move
    value, gradient = jax.value_and_grad(flat_fn)(there)
    is_usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    is_made = is_usable & (value >= search.value + ARMIJO * search.length * slope)
    updated, is_scaled = _updated(search, move, search.gradient - gradient, aim.is_learned)
    moved = search._replace(
        point=there,
        value=value,
        gradient=gradient,
        inverse=updated,
        length=jnp.ones_like(search.length),
        is_scaled=is_scaled,
        gained=value - search.value,
    )
    gain = search.value - value + search.length * slope
    fitted = jnp.where(is_usable, search.length**2 * slope / (2 * gain), 0.0)
    shorter = jnp.clip(fitted, 0.1 * search.length, 0.5 * search.length)
    chosen = jax.tree.map(
        lambda new, old: jnp.where(is_made, new, old), moved, search._replace(length=shorter)
    )
    evaluations = search.evaluations + 1
    mode, is_near = _nearest(chosen.point, chosen.value, known)
    to_come = gradient @ (updated @ gradient)
    is_top = is_made & (to_come < aim.flat)
    is_stuck = ~is_made & (shorter < SMALLEST_STEP)
    foreseen = value + HOPE * jnp.maximum(to_come, chosen.gained)
    is_hopeless = is_made & (evaluations >= LEAST_EVALUATIONS) & (foreseen < aim.level)
    outcome = jnp.where(is_near, KNOWN, jnp.where(is_top | is_stuck, TOP, LOST))
    is_over = is_near | is_top | is_stuck | is_hopeless | (evaluations >= aim.most)
    return chosen._replace(evaluations=evaluations, outcome=outcome, mode=mode, is_over=is_over)


def _updated(search: _Search, move: Array, change: Array, is_learned: Array) -> tuple[Array, Array]:
    """BFGS's inverse Hessian after a move; where log φ is not concave along it, longer steps.

    A learned one is lengthened along the move alone: it holds for the other directions.
    """
    curvature = move @ change
    is_concave = curvature > 1e-10 * jnp.sqrt((move @ move) * (change @ change))
    safe = jnp.where(is_concave, curvature, 1.0)
    size = jnp.where(search.is_scaled, 1.0, safe / jnp.maximum(change @ change, 1e-30))
    identity = jnp.eye(move.size, dtype=move.dtype)
    before = jnp.where(search.is_scaled, search.inverse, size * identity)
    projection = identity - jnp.outer(move, change) / safe
    after = projection @ before @ projection.T + jnp.outer(move, move) / safe
    slope = jnp.maximum(move @ search.gradient * search.length, jnp.finfo(move.dtype).tiny)
    along = search.inverse + 3 * jnp.outer(move, move) / slope
    longer = jnp.where(is_learned, along, 4 * search.inverse)
    return jnp.where(is_concave, after, longer), search.is_scaled | is_concave
