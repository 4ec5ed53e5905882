"""Positions as flat vectors, for searches that do not care for their structure."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from levymc._checks import check_scalar_output
from levymc.run import Result


def flat_draws(result: Result) -> Float[np.ndarray, "draw coordinate"]:
    """The draws of all chains, in double precision."""
    count = result.num_chains * result.num_draws
    leaves = [np.reshape(leaf, (count, -1)) for leaf in jax.tree.leaves(result.positions)]
    return np.concatenate(leaves, axis=1).astype(np.float64)


def flat_logdensity(
    result: Result, logdensity_fn: Callable[[Any], Any]
) -> Callable[[Any], Float[np.ndarray, " point"]]:
    """log φ of many flat positions."""
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), result.positions)
    check_scalar_output("logdensity_fn", logdensity_fn, one)
    flat, unflatten = ravel_pytree(one)
    compiled = jax.jit(jax.vmap(lambda position: logdensity_fn(unflatten(position))))
    return lambda points: np.asarray(compiled(jnp.asarray(points, flat.dtype)), np.float64)
