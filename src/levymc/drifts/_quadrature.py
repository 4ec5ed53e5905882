r"""The exact drift b, by quadrature of the density."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import check_count, check_interval, check_positive, check_real, is_traced
from levymc.riesz import KernelRule

from . import _reach
from ._coordinates import Coordinates, coordinates
from ._drift import (
    ALPHA_REMEDY,
    Drift,
    Evaluations,
    LogDensity,
    Position,
    SignedLog,
    from_signed_log,
    signed_log_sum,
)
from ._gradient import gradient, is_gaussian


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
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=False, remedy=ALPHA_REMEDY)
    count = check_count("num_nodes", num_nodes, "96 give eight digits on a double well.")
    if radius is not None and not callable(radius):
        check_positive(
            "radius", radius, "Or None, to find it; or inf, for heavy tails.", infinity=True
        )
    check_real("center", center, "Give roughly where the bulk of the target lies.")
    check_positive("scale", scale, "Give roughly how wide the bulk of the target is.")
    if is_gaussian(alpha):
        return gradient(logdensity_fn)

    def signed_log(position: Position) -> SignedLog:
        place = coordinates(logdensity_fn, position)
        anchor = _needs_anchor(alpha, place.flat.dtype) if anchored is None else anchored
        exponent = alpha if _is_number(alpha) else place.spread("alpha", alpha, position)
        reach = _reach.Reach(
            _radius_at(place, radius, position),
            place.spread("center", center, position),
            place.spread("scale", scale, position),
        )
        rule = _reach.kernel_rule(place, exponent, reach, count, anchored=anchor)
        return place.signed_log(*_integrate(place, rule, anchored=anchor))

    searched = _reach.SEARCH_EVALUATIONS if radius is None else 0
    gradients = int(_needs_anchor(alpha, jnp.float64) if anchored is None else anchored)
    return from_signed_log(signed_log, Evaluations(2 * count + 1 + searched, gradients))


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


def _radius_at(place: Coordinates, radius: Any, position: Position) -> Any:
    """The radius coordinate by coordinate; None where it is to be found."""
    if radius is None:
        return None
    return place.spread("radius", radius(position) if callable(radius) else radius, position)


def _is_number(alpha: Any) -> bool:
    return jax.tree.leaves(alpha)[0] is alpha and jnp.ndim(alpha) == 0


def _needs_anchor(alpha: Any, dtype: Any) -> bool:
    """Whether the differences at the first node, which falls with 2 - α, would lose many digits."""
    if is_traced(alpha):
        return True
    closest = 1e-3 if dtype == jnp.float64 else 0.15
    return any(np.any(np.asarray(leaf) > 2 - closest) for leaf in jax.tree.leaves(alpha))
