"""The Gibbs sampler of matrix factorisation as a JAX function; see the top of gibbs.cpp."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._load import load


class GibbsSetting(NamedTuple):
    """What is fixed when a program is compiled.

    rank: columns that are not padding, at most 64.
    precision: τ.  spread: of the draws about their means; 0 is alternating least squares.
    user_frozen, item_frozen: bit k says that column k does not move.
    """

    rank: int
    precision: float = 1.0
    spread: float = 1.0
    user_frozen: int = 0
    item_frozen: int = 0
    num_threads: int = 1


def gibbs_sweep(
    setting: GibbsSetting, users: Array, items: Array, key_words: Array, data: Any
) -> tuple[Array, Array]:
    """All users, given the items, and then all items: the new tables.

    Args:
        setting: what is fixed.
        users, items: float32 tables with rows of a multiple of 16 columns.
        key_words: two random uint32.
        data: with fields levels, user_offsets, rated, user_codes, item_offsets, raters and
            item_codes, as the source says.
    """
    load()
    call = jax.ffi.ffi_call(
        "levymc_gibbs_sweep",
        (
            jax.ShapeDtypeStruct(users.shape, jnp.float32),
            jax.ShapeDtypeStruct(items.shape, jnp.float32),
        ),
        vmap_method="sequential",
        input_output_aliases={0: 0, 1: 1},
    )
    new_users, new_items = call(
        users,
        items,
        key_words,
        data.levels,
        data.user_offsets,
        data.rated,
        data.user_codes,
        data.item_offsets,
        data.raters,
        data.item_codes,
        rank=np.int64(setting.rank),
        precision=np.float64(setting.precision),
        spread=np.float64(setting.spread),
        user_frozen=np.int64(setting.user_frozen),
        item_frozen=np.int64(setting.item_frozen),
        num_threads=np.int64(setting.num_threads),
    )
    return new_users, new_items
