r"""The noise of a step of size η: η^{1/α} ξ, with ξ of stable law."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from levymc import stable

Noise = Callable[[Array, Any, Any, Array], Any]
KINDS = ("independent", "isotropic")


def noise_of_kind(kind: str) -> Noise:
    """A function of (key, alpha, position, step size) that returns the noise.

    "independent" is the paper's, one SαS variable a coordinate.  "isotropic" is outside its
    theory: the exact drift does not make the target invariant under it.
    """
    if kind not in KINDS:
        raise ValueError(f"`noise` must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    return _independent if kind == "independent" else _isotropic


def _independent(key: Array, alpha: Any, position: Any, step_size: Array) -> Any:
    leaves, structure = jax.tree.flatten(position)
    alphas = jax.tree.leaves(jax.tree.broadcast(alpha, position))
    keys = [key] if len(leaves) == 1 else list(jax.random.split(key, len(leaves)))
    return jax.tree.unflatten(
        structure,
        [
            step_size.astype(x.dtype) ** (1 / jnp.asarray(a, x.dtype))
            * stable.sample(k, a, x.shape, dtype=x.dtype)
            for k, a, x in zip(keys, alphas, leaves, strict=True)
        ],
    )


def _isotropic(key: Array, alpha: Any, position: Any, step_size: Array) -> Any:
    flat, unflatten = ravel_pytree(position)
    direction = stable.sample_isotropic(key, alpha, flat.shape, dtype=flat.dtype)
    return unflatten(step_size ** (1 / jnp.asarray(alpha, flat.dtype)) * direction)


def largest_size(tree: Any) -> Array:
    """The largest |entry| of a pytree."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))
