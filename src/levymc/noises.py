r"""The noise of a step of size η: η^{1/α} ξ, with ξ of stable law.

A kind of noise, given as the option `noise` of an algorithm, becomes a `NoiseLaw` for its α.  Of a
fixed α the law holds the table of quantiles that its draws look up, so that α is an input of the
compiled program and costs no more than a constant would.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc import stable
from levymc._checks import (
    as_parameter,
    check_interval,
    check_one_number,
    check_positive,
    is_traced,
    spread,
)
from levymc._trees import module

_SMALLEST_TABULATED = 0.5  # α below it has no table


@runtime_checkable
class NoiseLaw(Protocol):
    """The noise for one α, or for those of a pytree like the position."""

    def draw(self, key: Array, position: Any, step_size: Array) -> Any:
        """η^{1/α} ξ, a pytree like the position."""
        ...


@runtime_checkable
class Noise(Protocol):
    """A kind of noise."""

    def law(self, alpha: Any) -> NoiseLaw: ...


@module(static=("kind",))
class Variable:
    """ξ of law SαS(1), perhaps on the condition |ξ| ≤ bound.

    kind: "normal" where α is known to be 2, "fixed" where it is a number with a table, or "any".
    table: quantiles at the start of each cell, and their changes over it.
    """

    kind: str
    alpha: Any
    table: Any = None
    bound: Any = None

    def draw(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        wide = jnp.promote_types(dtype, jnp.float32)
        if self.kind == "normal":
            return (math.sqrt(2.0) * jax.random.normal(key, shape, wide)).astype(dtype)
        if self.kind == "fixed" and wide == jnp.float32:
            words = jax.random.bits(key, shape, jnp.uint32)
            return stable.from_words(words, *self.table).astype(dtype)
        exponent = jnp.asarray(self.alpha, wide)
        if self.bound is None:
            return stable.sample(key, exponent, shape, dtype=dtype)
        return stable.sample_truncated(key, exponent, self.bound, shape, dtype=dtype)

    def tabulated(self) -> "Variable":
        """The same law in the form that all fixed α share."""
        return variable(self.alpha, always_tabulated=True) if self.kind == "normal" else self


def variable(alpha: Any, bound: float | None = None, *, always_tabulated: bool = False) -> Variable:
    """The variable of one α."""
    if is_traced(alpha) or isinstance(alpha, jax.Array) or np.ndim(alpha):
        return Variable("any", alpha, bound=bound)
    exponent = float(alpha)
    if exponent == 2 and bound is None and not always_tabulated:
        return Variable("normal", exponent)
    if exponent < _SMALLEST_TABULATED:
        return Variable("any", exponent, bound=bound)
    table = stable.quantile_table(exponent, bound)
    columns = tuple(np.ascontiguousarray(table[:, place]) for place in (0, 1))
    return Variable("fixed", exponent, columns, bound)


def is_variable(node: Any) -> bool:
    return isinstance(node, Variable)


def scale_of(step_size: Array, alpha: Any, dtype: Any) -> Array:
    """η^{1/α}."""
    return step_size.astype(dtype) ** (1 / jnp.asarray(alpha, dtype))


def _by_leaf(draw: Callable[..., Array], key: Array, parts: list[Any], position: Any) -> Any:
    """draw(key, part, leaf) for each leaf of the position, with a key and a part of its own."""
    leaves, structure = jax.tree.flatten(position)
    keys = [key] if len(leaves) == 1 else list(jax.random.split(key, len(leaves)))
    jumps = [draw(*given) for given in zip(keys, parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, jumps)


@module()
class IndependentLaw:
    """One variable per coordinate; `variables` is one, or a pytree like the position."""

    variables: Any

    def draw(self, key: Array, position: Any, step_size: Array) -> Any:
        def one(key: Array, v: Variable, x: Array) -> Array:
            return scale_of(step_size, v.alpha, x.dtype) * v.draw(key, x.shape, x.dtype)

        return _by_leaf(one, key, self.by_leaf(position), position)

    def logdensity(self, jump: Any, step_size: Array) -> Array:
        """log q of η^{1/α} ξ, up to a constant, summed over the coordinates."""
        terms = [
            jnp.sum(stable.logpdf(x / scale_of(step_size, v.alpha, x.dtype), v.alpha))
            for v, x in zip(self.by_leaf(jump), jax.tree.leaves(jump), strict=True)
        ]
        return sum(terms, start=jnp.zeros_like(step_size))

    def by_leaf(self, position: Any) -> list[Variable]:
        everywhere = jax.tree.broadcast(self.variables, position, is_leaf=is_variable)
        return jax.tree.leaves(everywhere, is_leaf=is_variable)


@module()
class IsotropicLaw:
    """One jump for all coordinates."""

    alpha: Any

    def draw(self, key: Array, position: Any, step_size: Array) -> Any:
        flat, unflatten = ravel_pytree(position)
        exponent = jnp.asarray(self.alpha, flat.dtype)
        direction = stable.sample_isotropic(key, exponent, flat.shape, dtype=flat.dtype)
        return unflatten(scale_of(step_size, exponent, flat.dtype) * direction)

    def logdensity(self, jump: Any, step_size: Array) -> Array:
        """log q of η^{1/α} ξ, up to a constant."""
        flat, _ = ravel_pytree(jump)
        unit = flat / scale_of(step_size, self.alpha, flat.dtype)
        return stable.isotropic_logpdf(unit, self.alpha).astype(step_size.dtype)


class Independent(NamedTuple):
    """See `independent`."""

    def law(self, alpha: Any) -> IndependentLaw:
        return IndependentLaw(jax.tree.map(variable, as_parameter(alpha)))


def independent() -> Independent:
    """The paper's noise, one SαS variable per coordinate."""
    return Independent()


class Isotropic(NamedTuple):
    """See `isotropic`."""

    def law(self, alpha: Any) -> IsotropicLaw:
        check_one_number("alpha", alpha, "With several, use levymc.noises.independent().")
        return IsotropicLaw(as_parameter(alpha))


def isotropic() -> Isotropic:
    """One jump for all coordinates, in a uniform direction; see `levymc.stable.sample_isotropic`.

    Outside the paper's theory: the exact drift does not make the target invariant under it.  The
    test of `levymc.mafla` does, by `levymc.stable.isotropic_logpdf`.
    """
    return Isotropic()


class Truncated(NamedTuple):
    """Independent noise whose ξ is conditioned on |ξ| ≤ bound; see `truncated`."""

    bound: float

    def law(self, alpha: Any) -> IndependentLaw:
        remedy = "The law is tabulated there; levymc.noises.independent() has every alpha."
        low = _SMALLEST_TABULATED
        check_interval("alpha", alpha, low, 2.0, includes_low=True, remedy=remedy)
        return IndependentLaw(jax.tree.map(lambda a: variable(a, self.bound), as_parameter(alpha)))


def truncated(bound: float) -> Truncated:
    r"""Noise of SαS law conditioned on |ξ| ≤ bound.

    No coordinate then jumps further than bound·η^{1/α} in one step.  This is another process, not
    a better approximation of the same one: its variance is finite, so that over many steps its
    sum tends to a Gaussian, and what long jumps bring, hops between far modes and power-law tails,
    is lost beyond the bound.  At a bound fixed in units of η^{1/α} the longest jump shrinks with η.
    The share of jumps that is cut off is 2 `levymc.stable.sf(bound, alpha)` per coordinate and
    step.

    Targets: neither φ nor what the stable noise targets.  With v the variance of ξ, near enough
    φ^{1/T} at T = v η^{2/α-1}/(2 c_α), which for α < 2 vanishes with η (see docs/ledger.md).

    Args:
        bound: positive, in units of the noise of one step.

    Raises:
        ValueError, TypeError: `bound` not positive and finite.

    Examples:
        >>> import jax, levymc
        >>> noise = levymc.noises.truncated(20.0)
        >>> algorithm = levymc.fla(lambda x: -x * x / 2, 0.1, 1.5, noise=noise)
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.largest_jump <= 20 * 0.1 ** (1 / 1.5))
        True

    References: [mantegna1994].
    """
    check_positive("bound", bound, "For the whole law, use levymc.noises.independent().")
    return Truncated(float(bound))


@module()
class TemperedLaw:
    """One variable per coordinate, α one number or a pytree like the position."""

    alpha: Any
    rate: Any

    def draw(self, key: Array, position: Any, step_size: Array) -> Any:
        def one(key: Array, alpha: Any, x: Array) -> Array:
            return stable.sample_tempered(
                key, alpha, self.rate, x.shape, time=step_size, dtype=x.dtype
            )

        alphas = jax.tree.leaves(jax.tree.broadcast(self.alpha, position))
        return _by_leaf(one, key, alphas, position)


class Tempered(NamedTuple):
    """See `tempered`."""

    rate: float

    def law(self, alpha: Any) -> TemperedLaw:
        remedy = "Give one number, or a pytree like the position with one for each leaf."
        for leaf in jax.tree.leaves(alpha):
            check_one_number("alpha", leaf, remedy)
        return TemperedLaw(as_parameter(alpha), self.rate)


def tempered(rate: float) -> Tempered:
    r"""Tempered stable noise: stable jumps up to about 1/rate, damped exponentially beyond,

    .. math:: E\, e^{iωX} = \exp\bigl(-η\,[(λ^2 + ω^2)^{α/2} - λ^α]\bigr) .

    It knows the step: over η it is exactly what the process adds, and as η → 0 each step's noise
    is η^{1/α} ξ, with ξ nearly stable, while the process stays the same.  That is what
    `truncated` lacks, whose longest jump shrinks with η.  With a preconditioner m the rate is that
    of x/m^{1/α}.  Draws are by rejection, and cost several times those of stable noise.

    Targets: not φ.  With b̂, where the target is wider than 1/λ the noise acts as Gaussian and
    the law is about φ^{1/T} at T = αλ^{α-2}/(2 c_α); where it is narrower, as `fla`.  No drift of
    ours makes φ invariant under it; see docs/ledger.md for how far off it is.

    Args:
        rate: λ > 0, one over the length from which on jumps are damped.

    Raises:
        ValueError, TypeError: `rate` not positive and finite.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.fla(
        ...     lambda x: -x * x / 2, 0.1, 1.5, noise=levymc.noises.tempered(0.5)
        ... )
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.is_divergent)
        False

    References: [rosinski2007]; see `levymc.stable.sample_tempered`.
    """
    check_positive("rate", rate, "For noise that is not damped, use levymc.noises.independent().")
    return Tempered(float(rate))


def as_law(noise: Any, alpha: Any) -> NoiseLaw:
    """The law of a kind of noise, `independent()` if none is given."""
    if noise is None:
        return independent().law(alpha)
    if not isinstance(noise, Noise):
        raise TypeError(
            f"`noise` must be a kind of noise, got {noise!r}. Give levymc.noises.independent(), "
            "isotropic(), truncated(bound) or tempered(rate)."
        )
    return noise.law(alpha)


def stretched(jump: Any, preconditioner: Any, alpha: Any) -> Any:
    """m^{1/α} times the noise: with that of η, the noise over a time η m."""
    factors = spread("preconditioner", preconditioner, jump)

    def stretch(m: Any, a: Any, noise: Array) -> Array:
        power = 1 / jnp.asarray(a, noise.dtype)
        return jnp.asarray(m, noise.dtype) ** power * noise

    return jax.tree.map(stretch, factors, jax.tree.broadcast(alpha, jump), jump)


def largest_size(tree: Any) -> Array:
    """The largest |entry| of a pytree, some leaves of which may be empty."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if leaf.size]
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in leaves]))
