r"""The drift's integral at one position, by panels: a value and an estimate of its error.

.. math:: b(x) = C_α \int_0^∞ \frac{φ(x+u) - φ(x-u)}{φ(x)}\, u^{-α}\, du .

Within a radius r of x, over which log φ changes little, both sides are taken together: the fraction
F(u) = [φ(x+u) - φ(x-u)]/(u φ(x)) is even and smooth, and interpolated at Chebyshev's points, its
integral with the weight u^{1-α} being exact for the interpolant.  As α → 2 that tends to F(0)/2,
the gradient of log φ, with no digit lost and no gradient taken.

Beyond r each side is cut into panels: at the breaks of a landscape, which resolve φ wherever x is,
and at rungs r q^k around x, which resolve the kernel.  In each panel there is a Gauss rule in
log u; the last panel of either side reaches to infinity.  How fast a panel's Legendre coefficients
fall gives its error.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from levymc._checks import is_traced
from levymc.riesz import kernel_constant, unchecked_rule

from ._coordinates import Coordinates

NUM_GAUSS = 15  # nodes of a panel
NUM_LOCAL = 10  # pairs of nodes near x
# Of log φ within the inner radius: ten pairs of nodes then give 1e-9 on Student's t.
_CHANGE = 0.7
_PROBE_RATIO = 3.0
_TAIL_POWER = 1.5  # u = a τ^{-3/2}: thins out the fractional powers that heavy tails have at τ = 0
# Coefficients that fall like ρ^{-k} give a tail of ρ^{-14} and an error of ρ^{-30}; those of a
# kink, like k^{-2}, a tail of 0.01 and an error of 0.004: fifty times the square bounds both.
_ERROR_POWER, _ERROR_FACTOR = 2, 50.0


def _gauss() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], and what gives the last two Legendre coefficients."""
    nodes, weights = np.polynomial.legendre.leggauss(NUM_GAUSS)
    orders = np.arange(NUM_GAUSS - 2, NUM_GAUSS)
    values = np.polynomial.legendre.legvander(nodes, NUM_GAUSS - 1)[:, orders]
    return (nodes + 1) / 2, weights / 2, (2 * orders + 1) * values * weights[:, None] / 2


def _chebyshev() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points in (0, 1), the matrix to coefficients of T_{2k}, and weights of ∫_0^1."""
    angles = np.pi * (2 * np.arange(NUM_LOCAL) + 1) / (4 * NUM_LOCAL)
    order = np.arange(NUM_LOCAL)
    matrix = np.cos(2 * order[:, None] * angles) * 2 / NUM_LOCAL
    matrix[0] /= 2
    return np.cos(angles), matrix, (1 / (1 - 4.0 * order**2)) @ matrix


GAUSS_NODES, GAUSS_WEIGHTS, GAUSS_TAIL = _gauss()
LOCAL_NODES, LOCAL_MATRIX, LOCAL_MASS = _chebyshev()


class Kernel(NamedTuple):
    """What depends on α alone: α, C_α/(2-α), and the weights at Chebyshev's points."""

    alpha: Float[Array, "... 1"] | np.ndarray
    constant: Float[Array, "... 1"] | np.ndarray
    local_weights: Float[Array, "... n"] | np.ndarray


def kernel(alpha: Array | np.ndarray | float) -> Kernel:
    r"""Make it for α, a scalar or an array; in NumPy unless it is traced."""
    xp = jnp if is_traced(alpha) else np
    rule = unchecked_rule(alpha, NUM_LOCAL, 1.0)
    order = np.arange(NUM_LOCAL)
    # (2-α) ∫ v^{1-α} T_{2k}(v) dv, exactly.
    moments = xp.einsum(
        "...i,...ik->...k", rule.weights, xp.cos(2 * order * xp.arccos(rule.nodes)[..., None])
    )
    exponent = xp.asarray(alpha, float)
    return Kernel(exponent[..., None], kernel_constant(alpha)[..., None], moments @ LOCAL_MATRIX)


class Panels(NamedTuple):
    """Offsets from x, coordinate by coordinate, between which there is one rule each.

    inner: the radius within which both sides are taken together.
    is_smooth: whether log φ changes little within it.
    near, far: distances of the panels' ends.
    side: 1 ahead, -1 behind.
    """

    inner: Float[Array, " d"]
    is_smooth: Bool[Array, " d"]
    near: Float[Array, "d p"]
    far: Float[Array, "d p"]
    side: Float[Array, "d p"]


class Integral(NamedTuple):
    """The drift by coordinates, its relative error, and log ∫φ along each."""

    sign: Float[Array, " d"]
    log_size: Float[Array, " d"]
    error: Float[Array, " d"]
    log_mass: Float[Array, " d"]


def probe(
    place: Coordinates, here: Array, largest: Float[Array, " d"], count: int
) -> tuple[Float[Array, " d"], Float[Array, " d"], Bool[Array, " d"]]:
    """The radius within which log φ changes little, and that beyond which φ is negligible.

    Looked for among `largest` times powers of 1/3; the smallest where none is right, and whether
    one was.
    """
    powers = jnp.asarray(_PROBE_RATIO ** -np.arange(count - 1.0, -1, -1), largest.dtype)
    distances = largest[:, None] * powers
    sides = jnp.stack([place.along(distances), place.along(-distances)]) - here
    sides = jnp.where(jnp.isnan(sides), -jnp.inf, sides)
    is_flat = jnp.cumprod(jnp.max(jnp.abs(sides), axis=0) <= _CHANGE, axis=-1)
    inner = jnp.max(jnp.where(is_flat, distances, distances[:, :1]), axis=-1)
    height = jnp.max(sides, axis=0)
    is_bulk = height + jnp.log(distances) > jnp.max(height + jnp.log(distances), -1)[:, None] - 40
    reach = jnp.max(jnp.where(is_bulk, distances, 0.0), axis=-1) * _PROBE_RATIO
    return inner, reach, is_flat[:, 0] > 0


def panels(
    breaks: Float[Array, "d n"],
    inner: Float[Array, " d"],
    is_smooth: Bool[Array, " d"],
    reach: Float[Array, " d"],
    rungs: int,
) -> Panels:
    """Cut at the breaks, given as offsets from x, and at inner · q^k, k = 0, …, `rungs`."""
    dtype = breaks.dtype
    ratio = jnp.maximum((reach / inner) ** (1 / rungs), 1.5)
    ladder = inner[:, None] * ratio[:, None] ** jnp.arange(rungs + 1, dtype=dtype)
    outside = jnp.where(breaks < 0, -1, 1) * jnp.maximum(jnp.abs(breaks), inner[:, None])
    cuts = jnp.sort(jnp.concatenate([-ladder, outside, ladder], axis=-1), axis=-1)
    # All pairs of neighbours but that around x.
    middle = jnp.sum(cuts < 0, axis=-1, keepdims=True) - 1
    begin = jnp.arange(cuts.shape[-1] - 2)
    begin = begin + (begin >= middle)
    one = jnp.abs(jnp.take_along_axis(cuts, begin, axis=-1))
    other = jnp.abs(jnp.take_along_axis(cuts, begin + 1, axis=-1))
    side = jnp.where(begin < middle, -1.0, 1.0).astype(dtype)
    return Panels(inner, is_smooth, jnp.minimum(one, other), jnp.maximum(one, other), side)


class _Nodes(NamedTuple):
    """Of all panels, those to infinity last: distances, du, u^{-α} du; and the panels' sides."""

    distance: Float[Array, "d p g"]
    measure: Float[Array, "d p g"]
    kernel: Float[Array, "d p g"]
    side: Float[Array, "d p"]


def _nodes(cut: Panels, alpha: Float[Array, "... 1"]) -> _Nodes:
    """u = a (b/a)^s in a panel from a to b, and a s^{-3/2} in the last on either side."""
    dtype = cut.near.dtype
    power = (alpha - 1)[..., None]
    stretch = jnp.log(cut.far / cut.near)[..., None]
    middle = jnp.sqrt(cut.far * cut.near)[..., None]
    distance = middle * _mirrored(stretch)
    kernel = stretch * jnp.exp(-power * jnp.log(middle)) / _mirrored(power * stretch)
    ends = jnp.stack([_outermost(cut, -1), _outermost(cut, 1)], axis=-1)[..., None]
    gauss = jnp.asarray(GAUSS_NODES, dtype)
    tail = ends * gauss**-_TAIL_POWER
    slope = _TAIL_POWER / gauss
    sides = jnp.broadcast_to(jnp.array([-1, 1], dtype), ends.shape[:-1])
    return _Nodes(
        jnp.concatenate([distance, tail], axis=-2),
        jnp.concatenate([distance * stretch, tail * slope], axis=-2),
        jnp.concatenate([kernel, slope * jnp.exp(-power * jnp.log(tail))], axis=-2),
        jnp.concatenate([cut.side, sides], axis=-1),
    )


def _mirrored(stretch: Float[Array, "d p 1"]) -> Float[Array, "d p g"]:
    """exp(stretch · (s - 1/2)) at Gauss's nodes s: they lie symmetrically, and half suffice."""
    half = jnp.asarray(0.5 - GAUSS_NODES[: NUM_GAUSS // 2], stretch.dtype)
    large = jnp.exp(stretch * half)
    return jnp.concatenate([1 / large, jnp.ones_like(stretch), large[..., ::-1]], axis=-1)


def integrate(place: Coordinates, here: Array, cut: Panels, rule: Kernel) -> Integral:
    """The drift from the panels, in units of the largest φ that is seen."""
    dtype = place.flat.dtype
    nodes = _nodes(cut, jnp.asarray(rule.alpha))
    local = _representable(place.flat, cut.inner[:, None] * jnp.asarray(LOCAL_NODES, dtype))
    offsets = (nodes.side[..., None] * nodes.distance).reshape(len(local), -1)
    # log φ(x) comes in last: far out, its rounding would wipe out what the others differ by.
    every = place.along(jnp.concatenate([offsets, local, -local], axis=-1))
    every = jnp.where(jnp.isnan(every), -jnp.inf, every)
    shift = jnp.max(every, axis=-1)
    shift = jnp.where(jnp.isfinite(shift), shift, 0.0)
    heights = jnp.exp(every - shift[:, None])
    far = heights[:, : offsets.shape[-1]].reshape(nodes.distance.shape)
    both = every[:, offsets.shape[-1] :].reshape(len(local), 2, NUM_LOCAL)

    values, errors = _of_panels(far * nodes.kernel)
    near, near_error = _near(both, shift, jnp.asarray(rule.local_weights), local)
    near_error += jnp.exp(here - shift) / cut.inner * _doubt(place.flat, here, cut)
    weight = cut.inner[:, None] ** (2 - rule.alpha)
    outer, outer_error = (
        (2 - rule.alpha) * jnp.sum(part, axis=-1, keepdims=True)
        for part in (nodes.side * values, errors)
    )
    total = (rule.constant * (outer + weight * near[:, None]))[:, 0]
    error = (rule.constant * (outer_error + weight * near_error[:, None]))[:, 0]
    masses = jnp.sum((far * nodes.measure) @ jnp.asarray(GAUSS_WEIGHTS, dtype), axis=-1)
    beside = heights[:, offsets.shape[-1] :] @ jnp.tile(jnp.asarray(LOCAL_MASS, dtype), 2)
    log_mass = jnp.log(masses + cut.inner * beside) + shift
    scale = jnp.exp((1 - rule.alpha[..., 0]) * (log_mass - here) - (shift - here))
    relative = error / (jnp.abs(total) + scale)
    is_known = jnp.isfinite(here) & jnp.isfinite(relative)
    return Integral(
        jnp.sign(total),
        shift - here + jnp.log(jnp.abs(total)),
        jnp.where(is_known, relative, jnp.inf),
        log_mass,
    )


def _representable(x: Float[Array, " d"], offsets: Float[Array, "d n"]) -> Float[Array, "d n"]:
    """Offsets as x + offset is rounded: a difference is divided by what it was taken over."""
    return (x[:, None] + offsets) - x[:, None]


def _doubt(x: Float[Array, " d"], here: Array, cut: Panels) -> Float[Array, " d"]:
    """The error of F times the inner radius, by rounding; more than all of it where φ is rough."""
    rounding = jnp.finfo(x.dtype).eps * (4 * (1 + jnp.abs(here)) + jnp.abs(x) / cut.inner / 4)
    return jnp.where(cut.is_smooth, rounding, 10.0)


def _outermost(cut: Panels, side: int) -> Float[Array, " d"]:
    return jnp.max(jnp.where(cut.side == side, cut.far, cut.inner[:, None]), axis=-1)


def _of_panels(integrand: Float[Array, "d p g"]) -> tuple[Float[Array, "d p"], Float[Array, "d p"]]:
    """The integral over each panel of something positive, and its error."""
    dtype = integrand.dtype
    size = integrand @ jnp.asarray(GAUSS_WEIGHTS, dtype)
    tail = jnp.sum(jnp.abs(integrand @ jnp.asarray(GAUSS_TAIL, dtype)), axis=-1)
    return size, _estimate(tail, size)


def _estimate(tail: Array, size: Array) -> Array:
    ratio = tail / jnp.where(size > 0, size, 1.0)
    return size * jnp.minimum(1.0, _ERROR_FACTOR * ratio**_ERROR_POWER)


def _near(
    both: Float[Array, "d 2 n"], shift: Array, weights: Array, local: Float[Array, "d n"]
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """(2-α) ∫ F(rv) v^{1-α} dv within the inner radius r, and its error."""
    ahead, behind = both[:, 0], both[:, 1]
    larger = jnp.maximum(ahead, behind)
    gap = jnp.where(larger == -jnp.inf, 0.0, ahead - behind)
    # e^ahead - e^behind, with no digit lost where the two are close.
    size = jnp.exp(larger - shift[:, None]) * -jnp.expm1(-jnp.abs(gap))
    fraction = jnp.sign(gap) * size / local
    last = jnp.asarray(LOCAL_MATRIX[-2:], both.dtype)
    tail = jnp.sum(jnp.abs(fraction @ last.T), axis=-1)
    return (
        jnp.sum(fraction * weights, axis=-1),
        _estimate(tail, jnp.max(jnp.abs(fraction), axis=-1)),
    )
