"""The exact drift by one Gauss–Jacobi rule, as far as it is told to look."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import as_parameter, is_traced
from levymc._settled import as_now
from levymc._trees import module
from levymc.riesz import KernelQuadrature, KernelRule, kernel_quadrature

from ._coordinates import Coordinates, coordinates
from ._drift import Drift, Evaluations, LogDensity, Position, SignedLog, signed_log_sum, widened

WIDE = ("float32", "float64")


def fixed_reach(
    logdensity_fn: LogDensity,
    alpha: Any,
    radius: Any,
    count: int,
    center: Any,
    scale: Any,
    anchored: bool | None,
) -> Drift:
    """See `quadrature`, whose arguments these are, and which checks them."""
    kind = _kind_of(radius)
    fits = {dtype: _needs_anchor(alpha, dtype) if anchored is None else anchored for dtype in WIDE}
    return FixedReach(
        logdensity_fn,
        count,
        kind,
        radius if callable(radius) else None,
        tuple(fits.items()),
        None if callable(radius) else as_parameter(radius),
        as_parameter(center),
        as_parameter(scale),
        {anchor: _rules(alpha, count, kind, anchor) for anchor in sorted(set(fits.values()))},
    )


@module(static=("logdensity_fn", "num_nodes", "kind", "radius_fn", "anchored"))
class FixedReach(Drift):
    """The rules are made when the drift is, of α alone, and fitted to the radius at each position.

    kind: whether the radius is known to be "finite" or "infinite", or only where it is used.
    anchored: whether rules are, by dtype.
    rules: those within a radius and to infinity, by whether they are anchored.
    """

    logdensity_fn: LogDensity
    num_nodes: int
    kind: str
    radius_fn: Any
    anchored: tuple[tuple[str, bool], ...]
    radius: Any
    center: Any
    scale: Any
    rules: Any

    @property
    def evaluations(self) -> Evaluations:  # type: ignore[override]
        return Evaluations(2 * self.num_nodes + 1, int(dict(self.anchored)["float64"]))

    def evaluate(self, position: Position) -> SignedLog:
        return widened(partial(_evaluate, as_now(self, position)), position)


@jax.jit  # step by step it would be slow
def _evaluate(drift: FixedReach, position: Position) -> SignedLog:
    place = coordinates(drift.logdensity_fn, position)
    anchored = dict(drift.anchored)[str(place.flat.dtype)]
    within, to_infinity = (
        place.by_coordinate(KernelQuadrature, rules, position) for rules in drift.rules[anchored]
    )
    rule = _rule_at(place, drift, position, within, to_infinity)
    return place.signed_log(*_integrate(place, rule, anchored=anchored))


def _rule_at(
    place: Coordinates, drift: FixedReach, position: Position, within: Any, to_infinity: Any
) -> KernelRule:
    """The rule for each coordinate, where the radius is "finite", "infinite", or either."""
    dtype = place.flat.dtype
    scale = jnp.asarray(place.spread("scale", drift.scale, position), dtype)
    center = jnp.asarray(place.spread("center", drift.center, position), dtype)
    distance = jnp.abs(place.flat - center)
    if drift.kind == "infinite":
        return to_infinity.to_infinity(distance, scale)
    given = drift.radius if drift.radius_fn is None else drift.radius_fn(position)
    radius = jnp.asarray(place.spread("radius", given, position), dtype)
    is_finite = jnp.isfinite(radius)
    near = within.within(jnp.where(is_finite, radius, 1.0))
    if drift.kind == "finite":
        return near
    return jax.tree.map(
        lambda one, other: jnp.where(
            jnp.expand_dims(is_finite, tuple(range(1, one.ndim))), one, other
        ),
        near,
        to_infinity.to_infinity(distance, scale),
    )


def _rules(alpha: Any, count: int, kind: str, anchored: bool) -> tuple[Any, Any]:
    """For each α the rule within a radius and that to infinity; None for one that is not used."""
    near = max(1, count // 4)

    def made(num_near: int, num_far: int) -> Any:
        return jax.tree.map(
            lambda a: kernel_quadrature(a, num_near, num_far, anchored=anchored), alpha
        )

    within = None if kind == "infinite" else made(count, 0)
    return within, None if kind == "finite" else made(near, max(1, count - near))


def _integrate(
    place: Coordinates, rule: KernelRule, *, anchored: bool
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Sign and log-size of b = w_0 F(0) + Σ w_i F(u_i), coordinate by coordinate."""
    here = place.logdensity(place.flat)
    ahead, behind = place.along(rule.nodes) - here, place.along(-rule.nodes) - here
    larger = jnp.maximum(ahead, behind)
    gap = jnp.where(larger == -jnp.inf, 0.0, ahead - behind)
    # e^ahead - e^behind, with no digit lost where the two are close.
    log_terms = larger + jnp.log(-jnp.expm1(-jnp.abs(gap))) + jnp.log(rule.weights / rule.nodes)
    signs = jnp.sign(gap)
    if anchored:
        first = 2 * rule.weight_at_zero * place.gradient()
        signs = jnp.concatenate([jnp.sign(first)[:, None], signs], axis=-1)
        log_terms = jnp.concatenate([jnp.log(jnp.abs(first))[:, None], log_terms], axis=-1)
    return signed_log_sum(signs, log_terms)


def _kind_of(radius: Any) -> str:
    """Whether a radius is known, when the drift is made, to be finite or infinite everywhere."""
    if radius is None or callable(radius) or is_traced(radius):
        return "unknown"
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(radius)]
    if all(np.all(np.isfinite(leaf)) for leaf in leaves):
        return "finite"
    return "infinite" if all(np.all(np.isinf(leaf)) for leaf in leaves) else "unknown"


def _needs_anchor(alpha: Any, dtype: str) -> bool:
    """Whether the differences at the first node, which falls with 2 - α, would lose many digits."""
    if is_traced(alpha):
        return True
    closest = 1e-3 if dtype == "float64" else 0.15
    return any(np.any(np.asarray(leaf) > 2 - closest) for leaf in jax.tree.leaves(alpha))
