r"""What a drift is; and the simplest, b̂: the gradient of log φ times a number."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import (
    check_alpha,
    check_floating,
    check_like,
    check_scalar_output,
    is_traced,
    known_alpha,
    spread,
)
from levymc._settled import OfPositions
from levymc._trees import module
from levymc.riesz import leading_coefficient

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


class Estimated(NamedTuple):
    """Numbers with an estimate of their error, leaf by leaf, relative as their maker says."""

    numbers: SignedLog
    error: Position

    def value(self) -> Position:
        return self.numbers.value()

    def signed_log(self) -> SignedLog:
        return self.numbers

    def scaled(self, factors: Any) -> "Estimated":
        """Times positive factors."""
        return Estimated(self.numbers.scaled(factors), self.error)


Evaluation = Values | SignedLog | Estimated


class Evaluations(NamedTuple):
    """What one drift costs: evaluations of the density and of its gradient per coordinate.

    A gradient that serves all coordinates at once counts as one.  The counts are those in float64.
    """

    density: int
    gradient: int


class Drift(OfPositions):
    """A drift b: call it for b(position), a pytree like the position.

    The exact drift grows like 1/φ and overflows every float at barriers and in tails; `signed_log`
    gives sign(b) and log|b| there, for an integrator that bounds its step.  `evaluate` gives the
    drift in the form in which it was computed, which has both; some give an `Estimated`, with the
    error of each value.
    """

    evaluations: Evaluations

    def prepared(self, positions: Any) -> "Drift":
        """The drift as it is best for chains that start at positions, along their first axis."""
        return self

    def evaluate(self, position: Position) -> Evaluation:
        raise NotImplementedError

    def with_density(
        self, logdensity_fn: LogDensity, position: Position
    ) -> tuple[Array, Evaluation]:
        """log φ and the drift, at the cost of the drift alone where both are one computation."""
        return jnp.asarray(logdensity_fn(position)), self.evaluate(position)

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
        known = found if isinstance(found, Evaluation) else Values(found)
        for part in known:
            check_like("drift", part, position)
        return known


class Changed(Drift):
    """Another drift, of which `change` makes something else at every position."""

    drift: Any

    def change(self, drift: Evaluation, position: Position) -> Evaluation:
        raise NotImplementedError

    @property
    def evaluations(self) -> Evaluations:  # type: ignore[override]
        return self.drift.evaluations

    def with_density(
        self, logdensity_fn: LogDensity, position: Position
    ) -> tuple[Array, Evaluation]:
        logdensity, drift = self.drift.with_density(logdensity_fn, position)
        return logdensity, self.change(drift, position)

    def evaluate(self, position: Position) -> Evaluation:
        return self.change(self.drift.evaluate(position), position)


@module()
class Scaled(Changed):
    """A drift times positive factors, a pytree that broadcasts to the position."""

    drift: Any
    factors: Any

    def change(self, drift: Evaluation, position: Position) -> Evaluation:
        return drift.scaled(self.factors)


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


def widened(evaluate: Callable[[Position], Evaluation], position: Position) -> Any:
    """What `evaluate` gives in 32 bits at least, in the dtypes of the position.

    Sixteen bits neither number the terms of a long sum nor hold those that cancel in it.
    """
    check_floating("position", position)
    dtypes = jax.tree.map(jnp.result_type, position)
    wide = jax.tree.map(
        lambda x, own: jnp.asarray(x, jnp.promote_types(own, jnp.float32)), position, dtypes
    )

    def narrowed(part: Any) -> Any:
        if isinstance(part, SignedLog):
            return SignedLog(*map(narrowed, part))
        return jax.tree.map(lambda leaf, own: leaf.astype(own), part, dtypes)

    found = evaluate(wide)
    return type(found)(*map(narrowed, found))


def signed_log_sum(
    sign: Float[Array, "... n"], log_size: Float[Array, "... n"]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Sign and log-size of Σ sign · exp(log_size) over the last axis."""
    largest = jnp.max(log_size, axis=-1)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    total = jnp.sum(sign * jnp.exp(log_size - shift[..., None]), axis=-1)
    return jnp.sign(total), shift + jnp.log(jnp.abs(total))


def leading_term(logdensity_fn: LogDensity, alpha: Any) -> Drift:
    r"""The first term of the centred difference alone:

    .. math:: \hat b(x) = c_α ∇\log φ(x), \qquad c_α = Γ(α-1)/Γ(α/2)^2 .

    Targets: not φ, for α < 2.  The diffusion with this drift has another stationary law, whatever
    the step: on N(0, σ²) it is SαS with scale (σ²/(α c_α))^{1/α} and with tails |x|^{-α}.  Its
    width is right at σ = 1, and otherwise off by σ^{2/α-1}: at σ = 0.01 it is 0.6 of the right one
    at α = 1.8, and 0.2 at α = 1.5.  Its median relative error on a double well is near 100 %.

    Not valid when: the target is heavy-tailed; the gradient vanishes far out and cannot bring back
    a jump.

    Args:
        logdensity_fn: log φ up to a constant, of any pytree.
        alpha: in (1, 2], one number or a pytree like the position; may be traced.

    Raises:
        ValueError: alpha outside its range.  TypeError: when called, `logdensity_fn` not scalar.

    Examples:
        >>> import levymc
        >>> drift = levymc.drifts.leading_term(lambda x: -x * x / 2, 1.5)
        >>> round(float(drift(1.0)), 3)
        -1.18

    References: [simsekli2017], eq. (14).
    """
    check_alpha(alpha)
    return LeadingTerm(logdensity_fn, gradient_coefficients(alpha))


def gradient(logdensity_fn: LogDensity) -> Drift:
    """The drift at α = 2, by JAX's own differentiation."""
    return LeadingTerm(logdensity_fn, None)


@module(static=("logdensity_fn",))
class LeadingTerm(Drift):
    """c_α ∇log φ."""

    logdensity_fn: LogDensity
    coefficients: Any  # c_α; None for the gradient itself
    evaluations = Evaluations(density=0, gradient=1)

    def evaluate(self, position: Position) -> Values:
        return self._both(position)[1]

    def with_density(
        self, logdensity_fn: LogDensity, position: Position
    ) -> tuple[Array, Evaluation]:
        if logdensity_fn is not self.logdensity_fn:
            return super().with_density(logdensity_fn, position)
        return self._both(position)

    def _both(self, position: Position) -> tuple[Array, Values]:
        check_position(self.logdensity_fn, position)
        value, slopes = jax.value_and_grad(self.logdensity_fn)(position)
        return value, Values(scaled_gradient(self.coefficients, slopes, position))


def scaled_gradient(coefficients: Any, slopes: Position, position: Position) -> Position:
    """c_α times a gradient of log φ."""
    if coefficients is None:
        return slopes
    factors = spread("alpha", coefficients, position)
    return jax.tree.map(lambda c, slope: jnp.asarray(c, slope.dtype) * slope, factors, slopes)


def is_gaussian(alpha: Any) -> bool:
    """Whether every α is known to be 2."""
    return not is_traced(alpha) and all(np.all(np.asarray(a) == 2) for a in jax.tree.leaves(alpha))


def gradient_coefficients(alpha: Any) -> Any:
    """c_α of b̂ = c_α ∇log φ, in NumPy unless α is traced."""
    return jax.tree.map(gradient_coefficient, known_alpha(alpha))


def gradient_coefficient(alpha: Any) -> Any:
    """c_α of one α, exactly one at α = 2 also where it is traced."""
    xp: ModuleType = jnp if is_traced(alpha) else np
    return xp.where(alpha == 2, 1.0, leading_coefficient(alpha - 2))
