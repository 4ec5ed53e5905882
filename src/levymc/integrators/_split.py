r"""The drift's own flow, by sub-steps that are short where the drift is large."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_count, check_positive
from levymc.drifts import Drift

from ._move import Integrator, Move, largest
from ._tamed import tamed


class _Flow(NamedTuple):
    position: Any
    remaining: Array  # of the time η
    substeps: Array


def split(cap: Any = 0.25, *, max_substeps: Any = 32) -> Integrator:
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
    last = tamed(cap)

    def move(drift: Drift, position: Any, step_size: Array) -> Move:
        def unfinished(flow: _Flow) -> Array:
            return (flow.remaining > 0) & (flow.substeps < most)

        def substep(flow: _Flow) -> _Flow:
            sign, log_size = drift.signed_log(flow.position)
            log_time = jnp.minimum(jnp.log(flow.remaining), jnp.log(cap) - largest(log_size))
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
        flow = jax.lax.while_loop(unfinished, substep, start)
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

    return move
