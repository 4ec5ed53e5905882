r"""The exact drift where the stability index is a function of the position."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float

from levymc._checks import as_parameter, check_count, check_function, check_positive
from levymc._trees import module

from ._coordinates import Coordinates, coordinates
from ._drift import Drift, Evaluations, LogDensity, Position, SignedLog, signed_log_sum, widened

AlphaFunction = Callable[[Any], Any]  # of a position, one number in (1, 2)
_NUM_GAUSS = 12  # nodes of a panel
_NUM_OCTAVES = 10  # of panels that halve, from the first of equal length on towards x
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_NUM_GAUSS)


def stable_like(
    logdensity_fn: LogDensity, alpha_fn: AlphaFunction, *, radius: Any, num_panels: Any = 24
) -> Drift:
    r"""The drift that keeps φ invariant under jumps whose index is that of where they start:

    .. math::
       b(x) = \frac{1}{φ(x)} \int_0^∞ \bigl[ (Tφ)(x+u, u) - (Tφ)(x-u, u) \bigr] du, \qquad
       (Tφ)(z, u) = \frac{Γ(α(z)) \sin(πα(z)/2)}{π}\, u^{-α(z)}\, φ(z),

    along each coordinate.  T(z, u) is the rate at which a process at z jumps further than u to one
    side, so that the integral is the mass that jumps to the left over x, less that to the right:
    the drift brings it back.  With α the same everywhere it is `quadrature`.

    Targets: φ exactly, up to the quadrature's error: 1e-6 and less where φ and α are smooth on the
    scale of a panel.  Not valid when: φ has mass beyond the radius, or modes or steps of α that are
    narrower than a panel: nothing is explored, and there is no estimate of the error.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        alpha_fn: a differentiable function of the position, one number in (1, 2) for all
            coordinates.
        radius: how far from x to look along each coordinate, a positive number.
        num_panels: those of equal length within the radius, of 12 nodes each.

    Raises:
        ValueError, TypeError: an argument outside its range; when called, `logdensity_fn` or
            `alpha_fn` not scalar.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> drift = levymc.drifts.stable_like(
        ...     lambda x: -x * x / 2, lambda x: 1.5 + 0.3 * jnp.tanh(x), radius=12.0
        ... )
        >>> bool(drift(2.0) < 0 < drift(-2.0))
        True

    References: [bass1988], for the process.  Departures: the paper names the extension and derives
    nothing; see docs/directions.md.
    """
    check_function("alpha_fn", alpha_fn, "Give a function of the position, such as lambda x: 1.7.")
    check_positive("radius", radius, "It is how far the target reaches from any position.")
    count = check_count("num_panels", num_panels, "24 resolve a double well.")
    return StableLike(logdensity_fn, alpha_fn, count, as_parameter(radius))


@module(static=("logdensity_fn", "alpha_fn", "num_panels"))
class StableLike(Drift):
    """Panels of equal length within the radius, of which the first is halved towards x."""

    logdensity_fn: LogDensity
    alpha_fn: AlphaFunction
    num_panels: int
    radius: Any

    @property
    def evaluations(self) -> Evaluations:  # type: ignore[override]
        nodes = _NUM_GAUSS * (self.num_panels + _NUM_OCTAVES)
        return Evaluations(density=2 * nodes + 1, gradient=1)

    def evaluate(self, position: Position) -> SignedLog:
        return widened(self._evaluate, position)

    def _evaluate(self, position: Position) -> SignedLog:
        place = coordinates(self.logdensity_fn, position)
        index = coordinates(
            lambda where: jnp.asarray(self.alpha_fn(where), place.flat.dtype), position
        )
        return place.signed_log(*_integrate(place, index, self.num_panels, self.radius))


def _integrate(
    place: Coordinates, index: Coordinates, num_panels: int, radius: Any
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Sign and log-size of the drift, coordinate by coordinate."""
    dtype = place.flat.dtype
    unit_nodes, unit_weights = _panels(num_panels)
    nodes = jnp.asarray(radius * unit_nodes, dtype)
    offsets = jnp.broadcast_to(nodes, (place.flat.size, nodes.size))
    here = place.logdensity(place.flat)

    def log_flux(side: float) -> Array:
        return (
            log_tail_rate(index.along(side * offsets), offsets) + place.along(side * offsets) - here
        )

    ahead, behind = log_flux(1.0), log_flux(-1.0)
    larger = jnp.maximum(ahead, behind)
    gap = jnp.where(larger == -jnp.inf, 0.0, ahead - behind)
    # e^ahead - e^behind, with no digit lost where the two are close.
    log_weights = jnp.log(jnp.asarray(radius * unit_weights, dtype))
    log_terms = larger + jnp.log(-jnp.expm1(-jnp.abs(gap))) + log_weights
    first = _innermost(place, index, jnp.asarray(radius * _inner_edge(num_panels), dtype))
    return signed_log_sum(
        jnp.concatenate([jnp.sign(first)[:, None], jnp.sign(gap)], axis=-1),
        jnp.concatenate([jnp.log(jnp.abs(first))[:, None], log_terms], axis=-1),
    )


def log_tail_rate(alpha: Array, distance: Array) -> Array:
    """log of the rate of jumps further than a distance, to one side, of a process of index α."""
    constant = gammaln(alpha) + jnp.log(jnp.sin(jnp.pi * alpha / 2)) - jnp.log(jnp.pi)
    return constant - alpha * jnp.log(distance)


def _innermost(place: Coordinates, index: Coordinates, edge: Array) -> Float[Array, " d"]:
    r"""The integral up to the edge ε, where the flux is linear in the distance up to O(ε²).

    With k(α) = Γ(α) sin(πα/2)/π and L = ∂(log φ + log k), the integrand is
    2 k u^{1-α} (L - α' log u).
    """
    alpha, slope = index.logdensity(index.flat), index.gradient()
    log_constant_slope = digamma(alpha) + jnp.pi / 2 / jnp.tan(jnp.pi * alpha / 2)
    level = place.gradient() + log_constant_slope * slope
    power = 2 - alpha
    moment = jnp.exp(power * jnp.log(edge) + log_tail_rate(alpha, jnp.ones_like(edge))) / power
    return 2 * moment * (level - slope * (jnp.log(edge) - 1 / power))


def _inner_edge(num_panels: int) -> float:
    """Of the panels, in units of the radius."""
    return 2.0**-_NUM_OCTAVES / num_panels


def _panels(num_panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights between the inner edge and one."""
    octaves = _inner_edge(num_panels) * 2.0 ** np.arange(_NUM_OCTAVES)
    edges = np.concatenate([octaves, np.arange(1, num_panels + 1) / num_panels])
    begin, length = edges[:-1, None], np.diff(edges)[:, None]
    nodes = begin + length * (_NODES + 1) / 2
    return nodes.ravel(), (length * _WEIGHTS / 2).ravel()
