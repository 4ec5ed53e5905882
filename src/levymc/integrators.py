r"""The drift's part of a step of size η: from x to about the flow of dx/dt = b(x) at time η.

An integrator is a function of (drift, position, step size) that returns a `Move`; the noise is
the algorithm's.  The exact drift overflows every float where the target is small, so that all but
`euler` work with its sign and logarithm.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import as_parameter, check_count, check_function, check_positive
from levymc._trees import module
from levymc.drifts import Drift, Evaluation, SignedLog


class Move(NamedTuple):
    """A displacement, a pytree like the position, and how far it fell short of η b(x).

    `taming` is the largest, over the coordinates, of 1 - |displacement| / |η b(x)|: 0 where the
    step is Euler's, towards 1 where the drift was bounded.
    """

    displacement: Any
    taming: Float[Array, ""]


@runtime_checkable
class Integrator(Protocol):
    """A function of (drift, position, step size); see the module.

    `here` is the drift at the position, where it is already known.
    """

    def __call__(
        self, drift: Drift, position: Any, step_size: Array, here: Evaluation | None = None
    ) -> Move: ...


@module()
class Euler:
    """See `euler`."""

    def __call__(
        self, drift: Drift, position: Any, step_size: Array, here: Evaluation | None = None
    ) -> Move:
        slopes = (here or drift.evaluate(position)).value()
        displacement = jax.tree.map(lambda b: step_size.astype(b.dtype) * b, slopes)
        return Move(displacement, jnp.zeros_like(step_size))


def euler() -> Euler:
    r"""The paper's integrator,

    .. math:: x' = x + η\, b(x) .

    Not valid when: η |b'| > 2 anywhere that a jump may land: the chain then explodes.  That is
    soon so for b̂ on a quartic potential, and always so for the exact drift of light tails.

    References: [simsekli2017], eqs. (6), (11) and (15).
    """
    return Euler()


@module(static=("componentwise",))
class Tamed:
    """See `tamed`."""

    cap: Any
    componentwise: bool = True

    def __call__(
        self, drift: Drift, position: Any, step_size: Array, here: Evaluation | None = None
    ) -> Move:
        known = here or drift.evaluate(position)
        return (
            self._by_component(step_size, known)
            if self.componentwise
            else self._by_norm(step_size, known)
        )

    def _by_component(self, step_size: Array, here: Evaluation) -> Move:
        steps = jax.tree.map(lambda b: step_size.astype(b.dtype) * b, here.value())
        taming = jax.tree.map(
            lambda step: 1 / (1 + jnp.asarray(self.cap, step.dtype) / jnp.abs(step)), steps
        )
        displacement = jax.tree.map(
            lambda step, t: jnp.sign(step) * jnp.asarray(self.cap, step.dtype) * t, steps, taming
        )
        return Move(displacement, _largest(taming).astype(step_size.dtype))

    def _by_norm(self, step_size: Array, here: Evaluation) -> Move:
        # In logarithms: a ratio of two infinities would be NaN.
        sign, log_size = _signed_log(here)
        log_steps = jax.tree.map(lambda size: size + jnp.log(step_size), log_size)
        log_cap = jnp.log(jnp.asarray(self.cap, step_size.dtype))
        log_factor = jax.nn.log_sigmoid(log_cap - _log_norm(log_steps))
        displacement = jax.tree.map(lambda s, size: s * jnp.exp(size + log_factor), sign, log_steps)
        return Move(displacement, -jnp.expm1(log_factor))


def tamed(cap: ArrayLike = 1.0, *, componentwise: bool = True) -> Tamed:
    r"""Euler's step, tamed:

    .. math:: x' = x + \frac{η\, b(x)}{1 + |η\, b(x)|/c} = x + \mathrm{sign}(b)\, c\, t, \qquad
       t = \frac{1}{1 + c/|η b|},

    coordinate by coordinate, or with the Euclidean norm of ηb in the denominator.  The form on the
    right is the one computed: a drift that overflows to infinity makes a step of c.  The error that
    taming adds is O(η²).

    Args:
        cap: c > 0, the longest step; a few local standard deviations at most.
        componentwise: bound each coordinate by itself; otherwise the length of the whole step.

    Raises:
        ValueError: `cap` not positive.
    """
    check_positive("cap", cap, "It is the longest step that the drift may make.")
    return Tamed(as_parameter(cap), componentwise)


class _Flow(NamedTuple):
    position: Any
    remaining: Array  # of the time η
    substeps: Array


@module(static=("max_substeps",))
class Split:
    """See `split`."""

    cap: Any
    max_substeps: int

    def __call__(
        self, drift: Drift, position: Any, step_size: Array, here: Evaluation | None = None
    ) -> Move:
        log_cap = jnp.log(jnp.asarray(self.cap, step_size.dtype))

        def unfinished(flow: _Flow) -> Array:
            return (flow.remaining > 0) & (flow.substeps < self.max_substeps)

        def substep(flow: _Flow, known: Evaluation | None = None) -> _Flow:
            sign, log_size = _signed_log(known or drift.evaluate(flow.position))
            log_time = jnp.minimum(jnp.log(flow.remaining), log_cap - _largest(log_size))
            moved = jax.tree.map(
                lambda x, s, size: (x + s * jnp.exp(size + log_time)).astype(x.dtype),
                flow.position,
                sign,
                log_size,
            )
            whole = log_time >= jnp.log(flow.remaining)
            left = jnp.where(whole, 0.0, flow.remaining - jnp.exp(log_time))
            return _Flow(moved, jnp.maximum(left, 0.0), flow.substeps + 1)

        start = _Flow(position, step_size, jnp.int32(0))
        begun = start if here is None else substep(start, here)
        flow = jax.lax.while_loop(unfinished, substep, begun)
        last = Tamed(self.cap)
        rest = jax.lax.cond(
            flow.remaining > 0,
            lambda: last(drift, flow.position, flow.remaining),
            lambda: Move(jax.tree.map(jnp.zeros_like, position), jnp.zeros_like(step_size)),
        )
        displacement = jax.tree.map(
            lambda end, begin, extra: end - begin + extra,
            flow.position,
            position,
            rest.displacement,
        )
        return Move(displacement, rest.taming)


def split(cap: ArrayLike = 0.25, *, max_substeps: int = 32) -> Split:
    r"""Follow dx/dt = b(x) for time η by Euler's sub-steps of length

    .. math:: τ = \min\bigl(η_{\text{left}},\; c / \max_d |b_d(x)|\bigr),

    so that none moves a coordinate by more than c.  Where η|b| ≤ c, which is nearly everywhere,
    that is one Euler step.  After `max_substeps` the time that is left goes into one tamed step.

    The noise then follows undisturbed: this keeps moments that taming loses, and the flow's error
    near a mode is Euler's, O(η²).

    Args:
        cap: c > 0, the longest sub-step; a fraction of the local standard deviation.
        max_substeps: at least 1.

    Raises:
        ValueError, TypeError: an argument outside its range.
    """
    check_positive("cap", cap, "It is the longest sub-step of a coordinate.")
    most = check_count("max_substeps", max_substeps, "It bounds the work of a step.")
    return Split(as_parameter(cap), most)


@module(static=("function",))
class FromFunction:
    """A user's integrator, part of the compiled program."""

    function: Any

    def __call__(
        self, drift: Drift, position: Any, step_size: Array, here: Evaluation | None = None
    ) -> Move:
        return self.function(drift, position, step_size, here)


def as_integrator(integrator: Any) -> Integrator:
    """`tamed()` if none is given; a function as one that programs can hold."""
    if integrator is None:
        return tamed()
    remedy = "Give levymc.integrators.euler(), tamed(cap) or split(cap), or a function like them."
    check_function("integrator", integrator, remedy, 4)
    is_pytree = not jax.tree_util.all_leaves([integrator])
    return integrator if is_pytree else FromFunction(integrator)


def _signed_log(here: Evaluation) -> SignedLog:
    """Of an infinite number as of the largest float: a ratio of two infinities would be NaN."""
    sign, log_size = here.signed_log()

    def bounded(size: Array) -> Array:
        return jnp.where(size == jnp.inf, jnp.log(jnp.finfo(size.dtype).max), size)

    return SignedLog(sign, jax.tree.map(bounded, log_size))


def _largest(tree: Any) -> Array:
    """The largest entry of a pytree of arrays, of which some may be empty."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if leaf.size]
    return jnp.max(jnp.stack([jnp.max(leaf) for leaf in leaves]))


def _log_norm(log_sizes: Any) -> Array:
    """Logarithm of the Euclidean norm, from the logarithms of the entries."""
    entries = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(log_sizes)])
    return jax.scipy.special.logsumexp(2 * entries) / 2
