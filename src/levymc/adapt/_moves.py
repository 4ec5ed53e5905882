r"""The moves of a rung: one evaluation of log φ each, whichever kind is drawn.

All of them keep φ^β q^{1−β}: Metropolis and Hastings on the point, or on the point with the
component i of q that it is taken to belong to, drawn afresh with its share r_i(x) of q.
"""

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array

from levymc._trees import module

from ._reference import NO_WEIGHT, NUM_UNIFORMS, Reference, choose

NUM_CHOICES = 6  # uniform numbers of a move, beside those of a draw of the reference
ALONG_AXES = 6  # normal numbers of a jump along an axis
FAR = 6.0  # widths of a kernel: three standard deviations of a mode
LONGEST_DRIFT = 2.0  # of a local move, in units of √d


class Kernel(enum.IntEnum):
    """Kinds of moves."""

    LOCAL = 0
    INDEPENDENT = 1
    DETERMINISTIC = 2
    ALONG_AXIS = 3


class Point(NamedTuple):
    """A flat vector, log φ and its gradient there, and the same of q with its components.

    is_rough: the gradient of log φ is not finite.  Such entries of it are zero: they only propose,
        and as they depend on nothing but x, the way back is weighed by the same.
    """

    x: Array
    value: Array
    gradient: Array
    is_rough: Array
    log_reference: Array
    reference_gradient: Array
    components: Array

    @classmethod
    def at(
        cls, x: Array, value: Array, gradient: Array, reference: Any, is_mixture: bool
    ) -> "Point":
        is_known = jnp.isfinite(gradient)
        of_target = (value, jnp.where(is_known, gradient, 0.0), ~jnp.all(is_known))
        if not is_mixture:
            return cls(x, *of_target, reference.logdensity(x), jnp.zeros_like(x), x[:0])

        def log_reference(x: Array) -> tuple[Array, Array]:
            components = reference.log_components(x)
            return logsumexp(components), components

        (total, components), own = jax.value_and_grad(log_reference, has_aux=True)(x)
        return cls(x, *of_target, total, own, components)


class Made(NamedTuple):
    """What a move did.

    ratio: log φ − log q where it would have gone.  is_far: it went along an axis, and far.
    """

    kernel: Array
    rate: Array
    is_accepted: Array
    is_divergent: Array
    ratio: Array
    is_far: Array


@module()
class Axes:
    r"""Coordinates along which a point can be moved to where others have been.

    basis: columns b_j; `inverse` its inverse.  values: u of stored points, a row for each axis.
    widths: of the t₅ kernels around them.  log_chances: of the axes, up to a constant.
    """

    basis: Any
    inverse: Any
    values: Any
    widths: Any
    log_chances: Any

    def log_kernel(self, axis: Array, u: Array) -> Array:
        """log density of the kernel estimate along an axis."""
        scaled = (u - self.values[axis]) / self.widths[axis]
        logs = -3 * jnp.log1p(scaled**2 / 5)
        height = math.lgamma(3) - math.lgamma(2.5) - math.log(5 * math.pi) / 2
        return logsumexp(logs) + height - jnp.log(self.widths[axis] * self.values.shape[1])

    def draw(self, axis: Array, uniform: Array, normals: Array) -> Array:
        """A draw of it, made of a uniform number and six normal ones."""
        which = (uniform * self.values.shape[1]).astype(int)
        jump = normals[0] / jnp.sqrt(jnp.mean(normals[1:6] ** 2))
        return self.values[axis, which] + self.widths[axis] * jump


class Noise(NamedTuple):
    """All that is random in a move; drawn together, as each call compiles anew.

    Of the kinds of moves one is made, whichever the first uniform number says: they share the rest.
    """

    uniforms: Array
    normals: Array
    key: Array


def draw_noise(key: Array, shape: tuple[int, ...], dimension: int, dtype: Any) -> Noise:
    """The noise of moves along some axes."""
    key_uniform, key_normal, key_other = jax.random.split(key, 3)
    return Noise(
        jax.random.uniform(key_uniform, (*shape, NUM_CHOICES + NUM_UNIFORMS), dtype),
        jax.random.normal(key_normal, (*shape, max(dimension + 1, ALONG_AXES)), dtype),
        jax.random.split(key_other, shape),
    )


class Along(NamedTuple):
    """A place along an axis, and the log ratio of the proposals' densities."""

    x: Array
    log_ratio: Array
    is_far: Array


def move(
    noise: Noise,
    point: Point,
    beta: Array,
    step: Array,
    log_chances: Array,
    *,
    reference: Any,
    axes: Axes | None,
    evaluate: Callable[[Array], Point],
    foreign: Callable[[Array, Array], tuple[Array, Array]] | None,
    has_gradient: bool,
) -> tuple[Point, Made]:
    """Move by a kind that is drawn by its chance; one evaluation."""
    to_choose, to_accept, to_belong, to_leap, axis, value, *of_reference = noise.uniforms
    kind = choose(log_chances, to_choose)
    if foreign is not None:
        return _by_another(noise.key, to_accept, kind, point, beta, reference, evaluate, foreign)
    normals = noise.normals[: point.x.size]
    component = choose(point.components, to_belong)
    local = _Local(reference, beta, step, component, has_gradient)
    shift = local.drift(point) + step * normals
    leap = _deterministic(to_leap, point, reference, component)
    candidates = [
        point.x + reference.factors[component] @ shift,
        reference.draw(jnp.stack(of_reference), noise.normals),
        leap.x,
    ]
    if axes is not None:
        along = _along_axis(axis, value, noise.normals, point, axes)
        candidates.append(along.x)
    chosen = jnp.minimum(kind, len(candidates) - 1)
    there = evaluate(jnp.stack(candidates)[chosen])
    back = shift + local.drift(there)
    log_ratios = [
        jnp.sum(normals**2 - (back / step) ** 2) / 2
        + _share(there, component)
        - _share(point, component),
        point.log_reference - there.log_reference,
        leap.log_ratio(there),
    ]
    if axes is not None:
        log_ratios.append(along.log_ratio)
    is_far = jnp.bool_(False) if axes is None else along.is_far & (kind == Kernel.ALONG_AXIS)
    return _decide(to_accept, kind, point, there, beta, jnp.stack(log_ratios)[chosen], is_far)


def _share(point: Point, component: Array) -> Array:
    """log r_i(x)."""
    return point.components[component] - point.log_reference


class _Local(NamedTuple):
    """MALA in the metric of a component."""

    reference: Reference
    beta: Array
    step: Array
    component: Array
    has_gradient: bool

    def drift(self, point: Point) -> Array:
        """Whitened, and no longer than 2 √d before it is multiplied by step²/2."""
        if not self.has_gradient:
            return jnp.zeros_like(point.x)
        slope = self.beta * point.gradient + (1 - self.beta) * point.reference_gradient
        whitened = self.reference.factors[self.component].T @ slope
        whitened = jnp.where(jnp.all(jnp.isfinite(whitened)), whitened, 0.0)
        length = jnp.linalg.norm(whitened)
        longest = LONGEST_DRIFT * math.sqrt(point.x.size)
        return self.step**2 / 2 * whitened * jnp.minimum(1.0, longest / jnp.maximum(length, 1e-30))


class _Leap(NamedTuple):
    """x' = μ_j + L_j L_i⁻¹ (x − μ_i), from a component to another that is listed."""

    x: Array
    here: Array
    to: Array
    log_volume: Array
    is_possible: Array

    def log_ratio(self, there: Point) -> Array:
        ratio = _share(there, self.to) - self.here + self.log_volume
        return jnp.where(self.is_possible, ratio, -jnp.inf)


def _deterministic(uniform: Array, point: Point, reference: Reference, component: Array) -> _Leap:
    is_other = reference.is_listed & (jnp.arange(len(reference.is_listed)) != component)
    is_possible = reference.is_listed[component] & jnp.any(is_other)
    to = choose(jnp.where(is_other, 0.0, NO_WEIGHT), uniform)
    whitened = reference.inverses[component] @ (point.x - reference.means[component])
    logs = reference.log_determinants
    return _Leap(
        jnp.where(is_possible, reference.means[to] + reference.factors[to] @ whitened, point.x),
        _share(point, component),
        to,
        logs[to] - logs[component],
        is_possible,
    )


def _along_axis(which: Array, uniform: Array, normals: Array, point: Point, axes: Axes) -> Along:
    axis = choose(axes.log_chances, which)
    before = axes.inverse[axis] @ point.x
    after = axes.draw(axis, uniform, normals)
    log_ratio = axes.log_kernel(axis, before) - axes.log_kernel(axis, after)
    is_far = jnp.abs(after - before) > FAR * axes.widths[axis]
    return Along(point.x + (after - before) * axes.basis[:, axis], log_ratio, is_far)


def _decide(
    uniform: Array,
    kind: Array,
    point: Point,
    there: Point,
    beta: Array,
    log_ratio: Array,
    is_far: Array,
) -> tuple[Point, Made]:
    """The test of Metropolis and Hastings."""
    change = beta * (there.value - point.value)
    change = change + (1 - beta) * (there.log_reference - point.log_reference) + log_ratio
    # Whatever the gradient is: were points without one refused, φ would be cut there.
    is_finite = jnp.all(jnp.isfinite(there.x))
    is_divergent = jnp.isnan(change) | (there.value == jnp.inf)
    is_divergent = is_divergent | (~is_finite & (there.value > -jnp.inf))
    rate = jnp.where(is_divergent, 0.0, jnp.exp(jnp.minimum(change, 0.0)))
    is_accepted = uniform < rate
    chosen = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), there, point)
    ratio = there.value - there.log_reference
    ratio = jnp.where(is_divergent | jnp.isnan(ratio), -jnp.inf, ratio)
    return chosen, Made(kind, rate, is_accepted, is_divergent, ratio, is_far)


def _by_another(
    key: Array,
    to_accept: Array,
    kind: Array,
    point: Point,
    beta: Array,
    reference: Any,
    evaluate: Callable[[Array], Point],
    foreign: Callable[[Array, Array], tuple[Array, Array]],
) -> tuple[Point, Made]:
    """A step of another kernel, which has its own test, or an offer of the reference.

    The rate of the first is what the kernel says, NaN if it says none.
    """
    key_step, key_reference = jax.random.split(key)
    is_local = kind == Kernel.LOCAL
    stepped, rate = foreign(key_step, point.x)
    proposed = jnp.where(is_local, stepped, reference.sample(key_reference).astype(point.x.dtype))
    there = evaluate(proposed)
    # Its own test has been made: what it gives is accepted.
    own = point.log_reference - there.log_reference
    done = -beta * (there.value - point.value)
    done = done - (1 - beta) * (there.log_reference - point.log_reference)
    moved, made = _decide(
        to_accept, kind, point, there, beta, jnp.where(is_local, done, own), jnp.bool_(False)
    )
    return moved, made._replace(rate=jnp.where(is_local & ~made.is_divergent, rate, made.rate))
