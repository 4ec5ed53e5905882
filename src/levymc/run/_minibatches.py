"""What a step is given beside its key: minibatches drawn in the program or loaded, or all data."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from levymc._checks import check_count
from levymc.algorithms import Layout

from ._engine import Fixed, Source, draw_batch
from ._spreading import layout_of, mesh_of, spread_over

NUMERIC = (jnp.number, jnp.bool_)
LOADED_BYTES = 64 * 2**20  # of the minibatches of one call
MOST_LOADED = 1024


class Batches(NamedTuple):
    """Data whose leaves share their first axis, and how many points make a batch.

    layout: how they are spread over devices, if they are.
    """

    data: Any
    batch_size: int
    layout: Layout | None = None

    def draw(self, key: Array) -> Any:
        """`batch_size` points, drawn uniformly with replacement."""
        if self.layout is not None:
            raise TypeError(
                "`draw` must be of data on one device, got data on "
                f"{self.layout.mesh.size}: no device has a minibatch as a whole. "
                "Leave out `mesh`, or give the batches to levymc.sample."
            )
        return draw_batch(key, self.data, self.batch_size)

    @property
    def batch_bytes(self) -> int:
        return sum(
            self.batch_size * leaf.nbytes // len(leaf) for leaf in jax.tree.leaves(self.data)
        )


def batches(data: Any, batch_size: int, *, mesh: Mesh | None = None) -> Batches:
    """Minibatches for `levymc.sample(..., minibatches=...)`.

    With a `mesh` the data are spread over its devices.  At each step every device draws its part of
    the minibatch from the data that it has and estimates the gradient with it; the mean of these,
    weighted by the numbers of data points, is the gradient of the step, and the chains move alike
    everywhere.  The estimate is unbiased.  Its variance is that of strata, at most that of the same
    minibatch on one device, and as good as equal where the data are in no order.

    Several processes under `jax.distributed` all make the same calls with the same data, and have
    the same draws; each reads of the data what its devices need, so that they may be a
    `numpy.memmap`.  Their machines must be of one kind, as every device moves the chains itself.

    Args:
        data: a pytree of arrays with one first axis, that of the data points.
        batch_size: points per step; with a `mesh` a multiple of its devices.
        mesh: a `jax.sharding.Mesh` with one axis, for `levymc.sgld`, `levymc.sgfla` and
            `levymc.jumping` of them.  A run warns if adding up the gradients takes it longer than
            computing them.

    Raises:
        ValueError, TypeError: first axes that differ, or a batch larger than the data; data that
            differ between processes.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> levymc.batches(jnp.arange(100.0), 10).draw(jax.random.key(0)).shape
        (10,)
    """
    size = check_count("batch_size", batch_size, "It is the number of data points per step.")
    arrays = jax.tree.map(jnp.asarray if mesh is None else _as_given, data)
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
    if mesh is None:
        return Batches(arrays, size)
    layout = layout_of(mesh, max(counts), size)
    return Batches(spread_over(layout, arrays), size, layout)


def _as_given(leaf: Any) -> Any:
    """An array that is copied no earlier than its parts go to devices."""
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)


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


class Loader:
    """Minibatches from outside: an iterable of them, or a function of the step's number.

    All chains of a step share its minibatch.  Each is copied as soon as it is there, as loaders may
    fill the same arrays again and again.
    """

    def __init__(self, source: Any) -> None:
        self.by_number: Callable[[int], Any] | None = source if callable(source) else None
        self.rest: Iterator[Any] = iter(()) if callable(source) else iter(source)
        self.pending: list[Any] = []
        self.example = self._next(0)
        if self.example is None:
            raise ValueError(
                f"`minibatches` must give at least one, got an empty {type(source).__name__}. "
                "levymc.batches(data, size) draws them from arrays."
            )
        _check_numeric(self.example)
        self.example = _copied(self.example)
        self.pending.append(self.example)
        self.capacity = max(1, min(MOST_LOADED, LOADED_BYTES // max(self.batch_bytes, 1)))

    @property
    def batch_bytes(self) -> int:
        return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(self.example))

    def _next(self, number: int) -> Any:
        """The minibatch of a step, or None where there are no more."""
        if self.by_number is not None:
            return self.by_number(number)
        return self.pending.pop() if self.pending else next(self.rest, None)

    def take(self, first: int, count: int) -> tuple[list[np.ndarray], int]:
        """The leaves along a first axis of `capacity`; what is missing there is not to be used."""
        found: list[Any] = []
        while len(found) < count:
            batch = self._next(first + len(found))
            if batch is None:
                break
            copied = _copied(batch)
            self._check(copied)
            found.append(jax.tree.leaves(copied))
        filler = found[-1] if found else jax.tree.leaves(self.example)
        padded = found + [filler] * (self.capacity - len(found))
        return [np.stack(leaves) for leaves in zip(*padded, strict=True)], len(found)

    def _check(self, batch: Any) -> None:
        """Refuse a minibatch unlike the first, as the compiled program takes one shape and type."""
        found, expected = _shapes(batch), _shapes(self.example)
        if found != expected:
            raise ValueError(
                f"`minibatches` must all be alike, got leaves of {found} after {expected}. "
                "Drop or fill up a last batch that is smaller, and convert all to the same types."
            )


def _copied(batch: Any) -> Any:
    return jax.tree.map(np.array, batch)


def _check_numeric(batch: Any) -> None:
    """Refuse a minibatch that programs cannot take."""
    for leaf in jax.tree.leaves(batch):
        dtype = leaf.dtype if isinstance(leaf, jax.Array) else np.asarray(leaf).dtype
        if jnp.issubdtype(dtype, jax.dtypes.prng_key):
            raise TypeError(
                f"`minibatches` must give pytrees of numbers, got a random key of {dtype}. "
                "Give jax.random.key_data(key), of which jax.random.wrap_key_data makes it again."
            )
        if not any(jnp.issubdtype(dtype, kind) for kind in NUMERIC):
            raise TypeError(
                f"`minibatches` must give pytrees of numbers, got {leaf!r:.100}. "
                "levymc.batches(data, size) draws them from arrays."
            )


def _shapes(batch: Any) -> dict[str, str]:
    """Type and shape of each leaf as a program has it, by its path: equal for batches alike."""
    leaves = jax.tree_util.tree_leaves_with_path(batch)
    return {
        jax.tree_util.keystr(path): f"{jax.dtypes.canonicalize_dtype(leaf.dtype)}{list(leaf.shape)}"
        for path, leaf in leaves
    }


def source_of(minibatches: Any, num_chains: int, *, is_stored: bool) -> Source:
    """Understand the argument `minibatches`."""
    if isinstance(minibatches, Whole | Batches):
        if isinstance(minibatches, Batches):
            _check_memory(minibatches.batch_bytes, num_chains)
        leaves, structure = jax.tree.flatten(minibatches.data)
        return Source(
            Fixed(leaves),
            structure,
            getattr(minibatches, "batch_size", None),
            getattr(minibatches, "layout", None),
            mesh_of(leaves),
        )
    if not callable(minibatches) and not hasattr(minibatches, "__iter__"):
        raise TypeError(
            f"`minibatches` must be an iterable or a function of the step, got {minibatches!r}. "
            "levymc.batches(data, size) draws them from arrays; levymc.whole(data) gives all."
        )
    if isinstance(minibatches, jax.Array | np.ndarray | dict):
        raise TypeError(
            f"`minibatches` must tell how the data are used, got {type(minibatches).__name__}. "
            "levymc.batches(data, size) draws them from arrays; levymc.whole(data) gives all."
        )
    if is_stored and not callable(minibatches):
        raise TypeError(
            f"`minibatches` must be a function of the step's number with `store`, got "
            f"{type(minibatches).__name__}: a run that resumes has to find its place in it."
        )
    loader = Loader(minibatches)
    _check_memory(loader.batch_bytes, 1)
    return Source(loader, jax.tree.structure(loader.example))


def _check_memory(batch_bytes: int, copies: int) -> None:
    """Refuse minibatches that do not fit into the machine's memory."""
    needed, there = batch_bytes * copies, _memory_bytes()
    if needed > there:
        raise ValueError(
            f"`minibatches` must fit into memory, got {needed / 2**30:.1f} GB for {copies} chains "
            f"where the machine has {there / 2**30:.1f} GB. Take a smaller batch or fewer chains."
        )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
