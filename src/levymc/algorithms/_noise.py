r"""The noise of a step of size η: η^{1/α} ξ, with ξ of stable law."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc import stable
from levymc._checks import check_positive

Noise = Callable[[Array, Any, Any, Array], Any]
KINDS = ("independent", "isotropic")


class Truncated(NamedTuple):
    """Independent noise whose ξ is conditioned on |ξ| ≤ bound."""

    bound: float


NoiseKind = str | Truncated


def truncated(bound: Any) -> Truncated:
    r"""Noise of SαS law conditioned on |ξ| ≤ bound, for the option `noise` of an algorithm.

    No coordinate then jumps further than bound·η^{1/α} in one step.  This is another process, not
    a better approximation of the same one: its variance is finite, so that over many steps its
    sum tends to a Gaussian, and what long jumps bring, hops between far modes and power-law tails,
    is lost beyond the bound.  At a bound fixed in units of η^{1/α} the longest jump shrinks with η.
    The share of jumps that is cut off is 2 `levymc.stable.sf(bound, alpha)` a coordinate and step.

    Targets: neither φ nor what the stable noise targets.  With v the variance of ξ, near enough
    φ^{1/T} at T = v η^{2/α-1}/(2 c_α), which for α < 2 vanishes with η (see docs/ledger.md).

    Args:
        bound: positive, in units of the noise of one step.

    Raises:
        ValueError, TypeError: `bound` not positive and finite.

    Examples:
        >>> import jax, levymc
        >>> algorithm = levymc.fla(lambda x: -x * x / 2, 0.1, 1.5, noise=levymc.truncated(20.0))
        >>> state, info = algorithm.step(jax.random.key(0), algorithm.init(0.5))
        >>> bool(info.largest_jump <= 20 * 0.1 ** (1 / 1.5))
        True

    References: [mantegna1994].
    """
    check_positive("bound", bound, "For the whole law, use noise='independent'.")
    return Truncated(float(bound))


def noise_of_kind(kind: NoiseKind) -> Noise:
    """A function of (key, alpha, position, step size) that returns the noise.

    "independent" is the paper's, one SαS variable a coordinate.  "isotropic" is outside its
    theory: the exact drift does not make the target invariant under it.
    """
    if isinstance(kind, Truncated):
        return _by_coordinate(
            lambda key, alpha, shape, dtype: stable.sample_truncated(
                key, alpha, kind.bound, shape, dtype=dtype
            )
        )
    if kind not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ValueError(f"`noise` must be one of {known} or truncated(bound), got {kind!r}.")
    return _independent if kind == "independent" else _isotropic


def _by_coordinate(sample: Callable[[Array, Any, Any, Any], Array]) -> Noise:
    """Noise of variables that are drawn by themselves, as sample(key, alpha, shape, dtype)."""

    def noise(key: Array, alpha: Any, position: Any, step_size: Array) -> Any:
        leaves, structure = jax.tree.flatten(position)
        alphas = jax.tree.leaves(jax.tree.broadcast(alpha, position))
        keys = [key] if len(leaves) == 1 else list(jax.random.split(key, len(leaves)))
        return jax.tree.unflatten(
            structure,
            [
                step_size.astype(x.dtype) ** (1 / jnp.asarray(a, x.dtype))
                * sample(k, a, x.shape, x.dtype)
                for k, a, x in zip(keys, alphas, leaves, strict=True)
            ],
        )

    return noise


_independent = _by_coordinate(
    lambda key, alpha, shape, dtype: stable.sample(key, alpha, shape, dtype=dtype)
)


def _isotropic(key: Array, alpha: Any, position: Any, step_size: Array) -> Any:
    flat, unflatten = ravel_pytree(position)
    direction = stable.sample_isotropic(key, alpha, flat.shape, dtype=flat.dtype)
    return unflatten(step_size ** (1 / jnp.asarray(alpha, flat.dtype)) * direction)


def largest_size(tree: Any) -> Array:
    """The largest |entry| of a pytree."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))
