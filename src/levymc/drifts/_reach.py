"""How far from a position the quadrature looks: given, found, or to infinity."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from levymc.riesz import KernelRule

from ._coordinates import Coordinates

_FIRST_OCTAVE, _LAST_OCTAVE = -10, 7  # of the probes, in units of the distance to the bulk
_HALVINGS = 7
SEARCH_EVALUATIONS = 2 * (_LAST_OCTAVE - _FIRST_OCTAVE + 1) + 2 * _HALVINGS


class Reach(NamedTuple):
    """Coordinate by coordinate: the radius (None: to be found), and where the bulk lies."""

    radius: Any
    center: Any
    scale: Any


def kernel_rule(
    place: Coordinates, reach: Reach, kind: str, within: Any, to_infinity: Any
) -> KernelRule:
    """The rule for each coordinate, where the radius is "finite", "infinite", or either."""
    dtype = place.flat.dtype
    scale = jnp.asarray(reach.scale, dtype)
    distance = jnp.abs(place.flat - jnp.asarray(reach.center, dtype))
    if kind == "infinite":
        return to_infinity.to_infinity(distance, scale)
    if reach.radius is None:
        radius, is_finite = _find_radius(place, distance + scale)
    else:
        radius = jnp.asarray(reach.radius, dtype)
        is_finite = jnp.isfinite(radius)
    near = within.within(jnp.where(is_finite, radius, 1.0))
    if kind == "finite":
        return near
    return jax.tree.map(
        lambda one, other: jnp.where(
            jnp.expand_dims(is_finite, tuple(range(1, one.ndim))), one, other
        ),
        near,
        to_infinity.to_infinity(distance, scale),
    )


def _find_radius(
    place: Coordinates, unit: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Bool[Array, " d"]]:
    """Where φ has dropped, on both sides, below the floats' precision times its largest value.

    Probes at distances of `unit` times powers of two find the largest value and the last distance
    at which φ has not dropped; halving the interval beyond it then finds the radius.  A mode is
    overlooked where it falls between two probes: where it is narrower, at that precision, than
    half its distance.
    """
    drop = -math.log(float(jnp.finfo(place.flat.dtype).eps))
    octaves = jnp.arange(_FIRST_OCTAVE, _LAST_OCTAVE + 1, dtype=place.flat.dtype)
    probes = unit[:, None] * 2.0**octaves
    heights = jnp.maximum(place.along(probes), place.along(-probes))
    here = place.logdensity(place.flat)
    floor = jnp.maximum(jnp.max(heights, axis=-1), here) - drop
    inside = heights > floor[:, None]
    # One past the last probe inside; 0 where none is.
    beyond = probes.shape[-1] - jnp.argmax(inside[:, ::-1], axis=-1)
    beyond = jnp.where(jnp.any(inside, axis=-1), beyond, 0)
    found = beyond < probes.shape[-1]
    rows = jnp.arange(unit.size)
    high = probes[rows, jnp.minimum(beyond, probes.shape[-1] - 1)]
    low = jnp.where(beyond > 0, probes[rows, jnp.maximum(beyond - 1, 0)], 0.0)

    def halve(_: Any, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        height = jnp.maximum(place.along(middle[:, None]), place.along(-middle[:, None]))[:, 0]
        is_inside = height > floor
        return jnp.where(is_inside, middle, low), jnp.where(is_inside, high, middle)

    _, radius = jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))
    return radius, found
