"""What a drift is: values, and the same as signs and logarithms, which never overflow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Position = Any  # a pytree of floating arrays
LogDensity = Callable[[Position], Array]

ALPHA_REMEDY = "Below 1 the process has no mean; at 2 the drift is the gradient of log density."


class SignedLog(NamedTuple):
    """Numbers as sign · exp(log_size), leaf by leaf; zero is sign 0 and log_size -inf."""

    sign: Position
    log_size: Position

    def value(self) -> Position:
        """The numbers themselves, ±inf where they overflow."""
        return jax.tree.map(lambda sign, size: sign * jnp.exp(size), self.sign, self.log_size)


class Evaluations(NamedTuple):
    """What one drift costs: evaluations of the density and of its gradient a coordinate.

    A gradient that serves all coordinates at once counts as one.  The counts are those in float64.
    """

    density: int
    gradient: int


@dataclass(frozen=True, eq=False)  # not a NamedTuple: jax.jit(drift) must be able to refer to it
class Drift:
    """A drift b: call it for b(position), a pytree like the position.

    The exact drift grows like 1/φ and overflows every float at barriers and in tails; `signed_log`
    gives sign(b) and log|b| there, for an integrator that bounds its step.
    """

    value: Callable[[Position], Position]
    signed_log: Callable[[Position], SignedLog]
    evaluations: Evaluations

    def __call__(self, position: Position) -> Position:
        return self.value(position)


def as_drift(drift: Any) -> Drift:
    """A `Drift` as it is; a function that gives the values as one."""
    if isinstance(drift, Drift):
        return drift
    if not callable(drift):
        raise TypeError(
            f"`drift` must be a Drift or a function of the position, got {drift!r}. "
            "Make one with levymc.drifts.quadrature, for instance."
        )
    return from_value(drift, Evaluations(density=0, gradient=0))


def from_value(value: Callable[[Position], Position], evaluations: Evaluations) -> Drift:
    """A drift whose values do not overflow."""

    def signed_log(position: Position) -> SignedLog:
        values = value(position)
        sizes = jax.tree.map(lambda leaf: jnp.log(jnp.abs(leaf)), values)
        return SignedLog(jax.tree.map(jnp.sign, values), sizes)

    return Drift(value, signed_log, evaluations)


def from_signed_log(signed_log: Callable[[Position], SignedLog], evaluations: Evaluations) -> Drift:
    """A drift whose values may overflow; compiled, as step by step it would be slow."""
    compiled = jax.jit(signed_log)
    return Drift(lambda position: compiled(position).value(), compiled, evaluations)


def signed_log_sum(
    sign: Float[Array, "... n"], log_size: Float[Array, "... n"]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Sign and log-size of Σ sign · exp(log_size) over the last axis."""
    largest = jnp.max(log_size, axis=-1)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    total = jnp.sum(sign * jnp.exp(log_size - shift[..., None]), axis=-1)
    return jnp.sign(total), shift + jnp.log(jnp.abs(total))
