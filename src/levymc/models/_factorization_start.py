"""Where a chain of matrix factorisation starts: factors, padded with zeros to whole cache lines."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_floating

LINE = 16  # floats of a cache line


def width_of(rank: int) -> int:
    """Columns with padding."""
    return -(-rank // LINE) * LINE


def moving_columns(rank: int, width: int, frozen: int) -> np.ndarray:
    """Which columns move: neither padding nor frozen."""
    return np.array([k < rank and not frozen >> k & 1 for k in range(width)])


def padded_start(position: Any, setting: Any, counts: tuple[int, int]) -> dict[str, Array]:
    """The position with its padding and, in frozen columns, ones.

    Args:
        position: {"users": …, "items": …} in float32, with the padding or without.
        setting: with fields rank, user_frozen and item_frozen.
        counts: of users and items.
    """
    frozen = {"users": setting.user_frozen, "items": setting.item_frozen}
    num_biases = (setting.user_frozen | setting.item_frozen).bit_count()
    shapes = dict(zip(frozen, counts, strict=True))
    _check(position, shapes, setting.rank - num_biases, width_of(setting.rank))
    return {name: _pad(position[name], setting.rank, frozen[name]) for name in frozen}


def _pad(table: Any, rank: int, frozen: int) -> Array:
    width = width_of(rank)
    wide = jnp.pad(jnp.asarray(table), ((0, 0), (0, width - table.shape[1])))
    ones = np.array([float(frozen >> k & 1) for k in range(width)], np.float32)
    return jnp.where(moving_columns(rank, width, frozen), wide, ones)


def _check(position: Any, shapes: dict[str, int], rank: int, width: int) -> None:
    if not isinstance(position, dict) or set(position) != set(shapes):
        raise TypeError(f'`position` must be {{"users": …, "items": …}}, got {position!r}.')
    check_floating("position", position)
    for name, count in shapes.items():
        shape, dtype = jnp.shape(position[name]), jnp.result_type(position[name])
        if shape not in ((count, rank), (count, width)):
            raise ValueError(
                f"`position[{name!r}]` must have shape ({count}, {rank}), or ({count}, {width}) "
                f"with its padding, got {shape}."
            )
        if dtype != jnp.float32:
            raise TypeError(
                f"`position[{name!r}]` must be float32, got {dtype}: the kernel knows no other. "
                "Convert it with .astype(jnp.float32)."
            )
