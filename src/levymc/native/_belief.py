"""Sweeps of a belief network's Gibbs sampler as a JAX function; see the top of belief.cpp."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, UInt8, UInt32

from ._load import load


class Sweeps(NamedTuple):
    """What some sweeps give.

    hidden: the units afterwards.
    before, after: Σ softplus(W h + c) over the pixels of each image, before and afterwards.
    """

    hidden: UInt8[Array, "image unit"]
    before: Float32[Array, " image"]
    after: Float32[Array, " image"]


def belief_sweeps(
    weights: Float32[Array, "pixel unit"],
    visible_bias: Float32[Array, " pixel"],
    drive: Float32[Array, "image unit"],
    hidden: UInt8[Array, "image unit"],
    key_words: UInt32[Array, "2"],
    *,
    num_sweeps: int,
    num_threads: int = 1,
) -> Sweeps:
    """Draw all hidden units of all images, one after the other, `num_sweeps` times.

    Args:
        weights, visible_bias: W and c.
        drive: V W + b, the part of the log-odds that does not depend on the other units.
        hidden: the units to begin with, 0 or 1.
        key_words: two random words.
        num_sweeps: may be 0, for the sums alone.
        num_threads: 1 is none but the caller's; the draws are the same for any number.
    """
    load()
    count = hidden.shape[0]
    call = jax.ffi.ffi_call(
        "levymc_belief_sweeps",
        (
            jax.ShapeDtypeStruct(hidden.shape, jnp.uint8),
            jax.ShapeDtypeStruct((count,), jnp.float32),
            jax.ShapeDtypeStruct((count,), jnp.float32),
        ),
        vmap_method="sequential",
    )
    return Sweeps(
        *call(
            weights,
            visible_bias,
            drive,
            hidden,
            key_words,
            num_sweeps=np.int64(num_sweeps),
            num_threads=np.int64(num_threads),
        )
    )
