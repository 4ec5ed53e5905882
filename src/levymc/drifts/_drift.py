"""What a drift is: values, and the same as signs and logarithms, which never overflow."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from levymc._checks import check_floating, check_scalar_output
from levymc._trees import module

Position = Any  # a pytree of floating arrays
LogDensity = Callable[[Any], Any]  # of a position, one real number
P = TypeVar("P")


class SignedLog(NamedTuple):
    """Numbers as sign · exp(log_size), leaf by leaf; zero is sign 0 and log_size -inf."""

    sign: Position
    log_size: Position

    def value(self) -> Position:
        """The numbers themselves, ±inf where they overflow."""
        return jax.tree.map(lambda sign, size: sign * jnp.exp(size), self.sign, self.log_size)

    def signed_log(self) -> "SignedLog":
        return self

    def scaled(self, factors: Any) -> "SignedLog":
        """Times positive factors."""
        sizes = jax.tree.map(lambda m, s: s + jnp.log(m).astype(s.dtype), factors, self.log_size)
        return SignedLog(self.sign, sizes)


class Values(NamedTuple):
    """Numbers that do not overflow, as they are."""

    numbers: Position

    def value(self) -> Position:
        return self.numbers

    def signed_log(self) -> SignedLog:
        sizes = jax.tree.map(lambda leaf: jnp.log(jnp.abs(leaf)), self.numbers)
        return SignedLog(jax.tree.map(jnp.sign, self.numbers), sizes)

    def scaled(self, factors: Any) -> "Values":
        """Times positive factors."""
        return Values(jax.tree.map(lambda m, b: m.astype(b.dtype) * b, factors, self.numbers))


Evaluation = Values | SignedLog


class Evaluations(NamedTuple):
    """What one drift costs: evaluations of the density and of its gradient per coordinate.

    A gradient that serves all coordinates at once counts as one.  The counts are those in float64.
    """

    density: int
    gradient: int


class Drift:
    """A drift b: call it for b(position), a pytree like the position.

    The exact drift grows like 1/φ and overflows every float at barriers and in tails; `signed_log`
    gives sign(b) and log|b| there, for an integrator that bounds its step.  `evaluate` gives the
    drift in the form in which it was computed, which has both.
    """

    evaluations: Evaluations

    def evaluate(self, position: Position) -> Evaluation:
        raise NotImplementedError

    def __call__(self, position: P) -> P:
        return self.evaluate(position).value()

    def signed_log(self, position: Position) -> SignedLog:
        return self.evaluate(position).signed_log()


@module(static=("function", "evaluations"))
class FromFunction(Drift):
    """A drift given by a function of the position."""

    function: Callable[[Any], Any]
    evaluations: Evaluations = Evaluations(density=0, gradient=0)

    def evaluate(self, position: Position) -> Evaluation:
        found = self.function(position)
        return found if isinstance(found, Evaluation) else Values(found)


@module()
class Scaled(Drift):
    """A drift times positive factors, a pytree that broadcasts to the position."""

    drift: Any
    factors: Any

    @property
    def evaluations(self) -> Evaluations:  # type: ignore[override]
        return self.drift.evaluations

    def evaluate(self, position: Position) -> Evaluation:
        return self.drift.evaluate(position).scaled(self.factors)


def as_drift(drift: Any) -> Drift:
    """A `Drift` as it is; a function that gives the values, or a `SignedLog` of them, as one."""
    if isinstance(drift, Drift):
        return drift
    if not callable(drift):
        raise TypeError(
            f"`drift` must be a Drift or a function of the position, got {drift!r}. "
            "Make one with levymc.drifts.quadrature, for instance."
        )
    return FromFunction(drift)


def check_position(logdensity_fn: LogDensity, position: Position) -> None:
    """Refuse what is no position, and a log density that is no scalar there."""
    check_floating("position", position)
    check_scalar_output("logdensity_fn", logdensity_fn, position)


def signed_log_sum(
    sign: Float[Array, "... n"], log_size: Float[Array, "... n"]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Sign and log-size of Σ sign · exp(log_size) over the last axis."""
    largest = jnp.max(log_size, axis=-1)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    total = jnp.sum(sign * jnp.exp(log_size - shift[..., None]), axis=-1)
    return jnp.sign(total), shift + jnp.log(jnp.abs(total))
