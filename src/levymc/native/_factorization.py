"""The kernels of matrix factorisation as JAX functions; see the top of factorization.cpp."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._load import TARGETS as TARGETS
from ._load import load

SEGMENTS = 4  # as in the source: more threads than this are of no use


class Setting(NamedTuple):
    """What is fixed when a program is compiled.

    rank: columns that are not padding.
    user_frozen, item_frozen: bit k says that column k does not move.
    precision: τ.  drift_scale: c_α.  cap: of the tamed step, or infinity.
    largest_step: the largest of all rows' m.
    has_clip: shorten the drift's step where the curvature asks for it.
    """

    batch_size: int
    rank: int
    alpha: float
    drift_scale: float
    precision: float = 1.0
    cap: float = np.inf
    largest_step: float = 1.0
    has_clip: bool = False
    user_frozen: int = 0
    item_frozen: int = 0
    num_threads: int = 1


def factorization_step(
    setting: Setting,
    users: Array,
    items: Array,
    key_words: Array,
    step_size: Array,
    largest: Array,
    data: Any,
) -> tuple[Array, Array, Array]:
    """One step: the new tables, and (largest jump, taming, is divergent, largest entry).

    Args:
        setting: what is fixed.
        users, items: float32 tables with rows of a multiple of 16 columns.
        key_words: two random uint32.
        step_size: η.
        largest: a bound on the size of the tables' entries.
        data: with fields rated, codes, levels, offsets, user_steps, user_noises, item_steps,
            item_noises and quantiles, as the source says.
    """
    load()
    num_items, row = items.shape
    call = jax.ffi.ffi_call(
        "levymc_factorization_step",
        (
            jax.ShapeDtypeStruct(users.shape, jnp.float32),
            jax.ShapeDtypeStruct(items.shape, jnp.float32),
            jax.ShapeDtypeStruct((4,), jnp.float32),
            jax.ShapeDtypeStruct((SEGMENTS, num_items, row), jnp.float32),
            jax.ShapeDtypeStruct((SEGMENTS + 1, num_items), jnp.float32),
        ),
        vmap_method="expand_dims",
        input_output_aliases={0: 0, 1: 1},
    )
    new_users, new_items, report, _, _ = call(
        users,
        items,
        key_words,
        step_size,
        largest,
        data.rated,
        data.codes,
        data.levels,
        data.offsets,
        data.user_steps,
        data.user_noises,
        data.item_steps,
        data.item_noises,
        data.quantiles,
        **_attributes(setting),
    )
    return new_users, new_items, report


def _attributes(setting: Setting) -> dict[str, Any]:
    """In the widths that the kernel expects, whatever JAX's own are."""
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    return {
        name: kinds[Setting.__annotations__[name]](value)
        for name, value in setting._asdict().items()
    }


def batch_counts(key_words: Array, offsets: Array, num_ratings: int, batch_size: int) -> Array:
    """How often each rating is in the batch that the kernel draws for a key; for tests."""
    load()
    shape = jax.ShapeDtypeStruct((num_ratings,), jnp.uint8)
    call = jax.ffi.ffi_call("levymc_factorization_batch", shape)
    return call(key_words, offsets, batch_size=np.int64(batch_size))
