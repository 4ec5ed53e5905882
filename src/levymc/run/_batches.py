"""Minibatches drawn with replacement inside the compiled step, or all of the data for each."""

import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_count


class Batches(NamedTuple):
    """Data whose leaves share their first axis, and how many points make a batch."""

    data: Any
    batch_size: int

    def draw(self, key: Array) -> Any:
        """`batch_size` points, drawn uniformly with replacement."""
        return draw_batch(key, self.data, self.batch_size)

    @property
    def batch_bytes(self) -> int:
        return sum(
            self.batch_size * leaf.nbytes // len(leaf) for leaf in jax.tree.leaves(self.data)
        )


def draw_batch(key: Array, data: Any, batch_size: int) -> Any:
    count = len(jax.tree.leaves(data)[0])
    chosen = jax.random.randint(key, (batch_size,), 0, count)
    return jax.tree.map(lambda leaf: leaf[chosen], data)


def batches(data: Any, batch_size: Any) -> Batches:
    """Minibatches for `levymc.sample(..., minibatches=...)`.

    Args:
        data: a pytree of arrays with one first axis, that of the data points.
        batch_size: points a step.

    Raises:
        ValueError, TypeError: first axes that differ, or a batch larger than the data.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> levymc.batches(jnp.arange(100.0), 10).draw(jax.random.key(0)).shape
        (10,)
    """
    size = check_count("batch_size", batch_size, "It is the number of data points a step.")
    arrays = jax.tree.map(jnp.asarray, data)
    counts = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(arrays)}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            f"`data` must have one first axis in all leaves, got sizes {sorted(counts)}. "
            "Give arrays whose first axis is that of the data points."
        )
    if size > max(counts):
        raise ValueError(
            f"`batch_size` must be at most the {max(counts)} data points, got {size}. "
            "Use the full gradient instead."
        )
    return Batches(arrays, size)


class Whole(NamedTuple):
    """Data that every step is given, all of them and as they are."""

    data: Any


def whole(data: Any) -> Whole:
    """All of the data for every step of `levymc.sample(..., minibatches=...)`.

    For algorithms that draw minibatches themselves, such as `levymc.models.fast_factorization`
    makes, or that need none.  Nothing is copied or cut, and a store keeps the data.

    Args:
        data: a pytree of arrays, of any shapes.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> sgld = levymc.sgld(lambda x, data: jnp.sum(data["y"] - x) - x, 1e-3)
        >>> data = levymc.whole({"y": jnp.ones(100)})
        >>> run = levymc.sample(
        ...     sgld, jax.random.key(0), jnp.zeros(2), 50, minibatches=data, progress=False
        ... )
        >>> run.positions.shape
        (2, 50)
    """
    return Whole(jax.tree.map(jnp.asarray, data))


def check_memory(batch_bytes: int, copies: int) -> None:
    """Refuse minibatches that do not fit into the machine's memory."""
    needed, there = batch_bytes * copies, _memory_bytes()
    if needed > there:
        raise ValueError(
            f"`minibatches` must fit into memory, got {needed / 2**30:.1f} GB for {copies} chains "
            f"where the machine has {there / 2**30:.1f} GB. Take a smaller batch or fewer chains."
        )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
