r"""The exact drift b, by quadrature of the density."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import (
    as_parameter,
    check_alpha,
    check_count,
    check_positive,
    check_real,
    is_traced,
)
from levymc._trees import module
from levymc.riesz import KernelQuadrature, KernelRule, kernel_quadrature

from . import _reach
from ._coordinates import Coordinates, coordinates
from ._drift import (
    Drift,
    Evaluations,
    LogDensity,
    Position,
    SignedLog,
    gradient,
    is_gaussian,
    signed_log_sum,
)

WIDE = ("float32", "float64")


def quadrature(
    logdensity_fn: LogDensity,
    alpha: Any,
    *,
    radius: Any = None,
    num_nodes: Any = 96,
    center: Any = 0.0,
    scale: Any = 1.0,
    anchored: bool | None = None,
) -> Drift:
    r"""The exact drift, from the density alone:

    .. math::
       b(x) = C_α \int_0^∞ \frac{φ(x+u) - φ(x-u)}{u\,φ(x)}\, u^{1-α}\, du, \qquad
       C_α = \frac{α-1}{2\,Γ(2-α)\cos(π(2-α)/2)},

    along each coordinate, by Gauss–Jacobi quadrature, which converges spectrally.

    Targets: φ exactly, up to the quadrature's error.

    Not valid when: the target has modes that the nodes do not resolve.  With 96 nodes they are
    R/60 apart in the middle of their reach R.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.
        radius: how far from x to look: a number or a pytree like the position, or a function that
            gives one for a position, such as `lambda x: 6 + abs(x)` for a target that lives on
            [-6, 6].  `inf` places the nodes around `center`, and reaches to infinity: for heavy
            tails.  None finds the radius at each position, as where φ has dropped below the
            precision of the floats, at the cost of 50 more densities; it goes to infinity where
            that is nowhere near.
        num_nodes: the density is evaluated twice for each.
        center, scale: roughly where the bulk of the target lies and how wide it is, a number or a
            pytree like the position; not used with a finite radius.
        anchored: take the value at u = 0 from the gradient, which keeps all digits as α → 2.  None:
            only where the differences would lose many, which is within 1e-3 of α = 2 (within 0.15
            in float32), or where α is traced; elsewhere no gradient is taken.

    Raises:
        ValueError, TypeError: an argument outside its range; when called, `logdensity_fn` not
            scalar.

    Examples:
        >>> import levymc
        >>> drift = levymc.drifts.quadrature(lambda x: -x * x / 2, 1.5, radius=10.0)
        >>> round(float(drift(1.0)), 4)
        -0.9417

    References: [simsekli2017], eqs. (5) and (13).  Departures: the paper differentiates φ and then
    integrates; here the kernel is differentiated instead, so that no gradient is needed.
    """
    check_alpha(alpha)
    count = check_count("num_nodes", num_nodes, "96 give eight digits on a double well.")
    if radius is not None and not callable(radius):
        check_positive(
            "radius", radius, "Or None, to find it; or inf, for heavy tails.", infinity=True
        )
    check_real("center", center, "Give roughly where the bulk of the target lies.")
    check_positive("scale", scale, "Give roughly how wide the bulk of the target is.")
    if is_gaussian(alpha):
        return gradient(logdensity_fn)
    kind = _kind_of(radius)
    fits = {dtype: _needs_anchor(alpha, dtype) if anchored is None else anchored for dtype in WIDE}
    return Quadrature(
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
class Quadrature(Drift):
    """The rules are made when the drift is, of α alone, and fitted to a radius at each position.

    kind: whether the radius is known to be "finite" or "infinite", or only found where it is used.
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
        is_searched = self.radius is None and self.radius_fn is None
        searched = _reach.SEARCH_EVALUATIONS if is_searched else 0
        gradients = int(dict(self.anchored)["float64"])
        return Evaluations(2 * self.num_nodes + 1 + searched, gradients)

    def evaluate(self, position: Position) -> SignedLog:
        return _evaluate(self, position)


@jax.jit  # step by step it would be slow
def _evaluate(drift: Quadrature, position: Position) -> SignedLog:
    place = coordinates(drift.logdensity_fn, position)
    anchored = dict(drift.anchored).get(str(place.flat.dtype), True)
    reach = _reach.Reach(
        _radius_at(place, drift, position),
        place.spread("center", drift.center, position),
        place.spread("scale", drift.scale, position),
    )
    within, to_infinity = (
        _by_coordinate(place, rules, position) for rules in drift.rules[anchored]
    )
    rule = _reach.kernel_rule(place, reach, drift.kind, within, to_infinity)
    return place.signed_log(*_integrate(place, rule, anchored=anchored))


def _rules(alpha: Any, count: int, kind: str, anchored: bool) -> tuple[Any, Any]:
    """For each α the rule within a radius and that to infinity; None for one that is not used."""
    near = max(1, count // 4)

    def made(num_near: int, num_far: int) -> Any:
        return jax.tree.map(
            lambda a: kernel_quadrature(a, num_near, num_far, anchored=anchored), alpha
        )

    within = None if kind == "infinite" else made(count, 0)
    return within, None if kind == "finite" else made(near, max(1, count - near))


def _by_coordinate(place: Coordinates, rules: Any, position: Position) -> Any:
    """One rule for all coordinates as it is; rules of several α with a row for each coordinate."""
    dtype = place.flat.dtype
    if rules is None or isinstance(rules, KernelQuadrature):
        return jax.tree.map(lambda table: jnp.asarray(table, dtype), rules)
    each = jax.tree.leaves(rules, is_leaf=lambda node: isinstance(node, KernelQuadrature))
    structure = jax.tree.structure(rules, is_leaf=lambda node: isinstance(node, KernelQuadrature))
    tables = zip(*each, strict=True)
    return KernelQuadrature(
        *(
            jnp.asarray(place.rows(jax.tree.unflatten(structure, parts), position), dtype)
            for parts in tables
        )
    )


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


def _radius_at(place: Coordinates, drift: Quadrature, position: Position) -> Any:
    """The radius coordinate by coordinate; None where it is to be found."""
    if drift.radius is None and drift.radius_fn is None:
        return None
    given = drift.radius if drift.radius_fn is None else drift.radius_fn(position)
    return place.spread("radius", given, position)


def _needs_anchor(alpha: Any, dtype: str) -> bool:
    """Whether the differences at the first node, which falls with 2 - α, would lose many digits."""
    if is_traced(alpha):
        return True
    closest = 1e-3 if dtype == "float64" else 0.15
    return any(np.any(np.asarray(leaf) > 2 - closest) for leaf in jax.tree.leaves(alpha))
