"""What the compiled program is fed with: data that stay, or minibatches from a loader."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from ._batches import Batches, Whole, check_memory


@runtime_checkable
class Feed(Protocol):
    """Gives the program its `data`."""

    def take(self, first: int, count: int, size: int) -> tuple[list[Any], int]:
        """The data of `count` steps from `first` on, in arrays for `size`; for how many it is."""
        ...


class Fixed:
    """The same arrays for every step, or none."""

    def __init__(self, leaves: list[Any]) -> None:
        self.leaves = leaves

    def take(self, first: int, count: int, size: int) -> tuple[list[Any], int]:
        return self.leaves, count


class Loader:
    """Minibatches from outside: an iterable of them, or a function of the step's number.

    All chains of a step share its minibatch.
    """

    def __init__(self, source: Any) -> None:
        self.by_number: Callable[[int], Any] | None = source if callable(source) else None
        self.rest: Iterator[Any] = iter(()) if callable(source) else iter(source)
        self.pending: list[Any] = []
        self.example = self._next(0)
        if self.example is None:
            raise ValueError("`minibatches` must hold at least one, got an empty iterable.")
        self.pending.append(self.example)

    @property
    def batch_bytes(self) -> int:
        return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(self.example))

    def _next(self, number: int) -> Any:
        """The minibatch of a step, or None where there are no more."""
        if self.by_number is not None:
            return self.by_number(number)
        return self.pending.pop() if self.pending else next(self.rest, None)

    def take(self, first: int, count: int, size: int) -> tuple[list[np.ndarray], int]:
        """The leaves of `count` minibatches along a first axis of `size`, and how many came.

        What is missing is filled up, and not to be used.
        """
        found: list[Any] = []
        while len(found) < count:
            batch = self._next(first + len(found))
            if batch is None:
                break
            found.append(jax.tree.leaves(batch))
            self._check(batch)
        filler = found[-1] if found else jax.tree.leaves(self.example)
        padded = found + [filler] * (size - len(found))
        return [np.stack(leaves) for leaves in zip(*padded, strict=True)], len(found)

    def _check(self, batch: Any) -> None:
        """Refuse a minibatch unlike the first, as the compiled program takes one shape."""
        shapes, expected = _shapes(batch), _shapes(self.example)
        if shapes != expected:
            raise ValueError(
                f"`minibatches` must all be alike, got leaves of {shapes} after {expected}. "
                "Drop or fill up a last batch that is smaller."
            )


def _shapes(batch: Any) -> dict[str, tuple[int, ...]]:
    """The shape of each leaf, by its path: equal for batches that are alike."""
    leaves = jax.tree_util.tree_leaves_with_path(batch)
    return {jax.tree_util.keystr(path): np.shape(leaf) for path, leaf in leaves}


class Source(NamedTuple):
    """Where minibatches come from.

    example: a pytree like that which the program takes, but for the steps' axis of a loader's.
    batch_size: of batches to be drawn from the data in the program.
    step_bytes: what a step's minibatch takes in memory on its way in.
    """

    feed: Feed
    example: Any = None
    batch_size: int | None = None
    step_bytes: int = 0


def source_of(minibatches: Any, num_chains: int, *, is_stored: bool) -> Source:
    """Understand the argument `minibatches`."""
    if minibatches is None:
        return Source(Fixed([]))
    if isinstance(minibatches, Whole):
        return Source(Fixed(jax.tree.leaves(minibatches.data)), minibatches.data)
    if isinstance(minibatches, Batches):
        check_memory(minibatches.batch_bytes, num_chains)
        data = minibatches.data
        return Source(Fixed(jax.tree.leaves(data)), data, minibatches.batch_size)
    if not callable(minibatches) and not hasattr(minibatches, "__iter__"):
        raise TypeError(
            f"`minibatches` must be an iterable or a function of the step, got {minibatches!r}. "
            "levymc.batches(data, size) draws them from arrays; levymc.whole(data) gives all."
        )
    if is_stored and not callable(minibatches):
        raise TypeError(
            f"`minibatches` must be a function of the step's number with `store`, got "
            f"{type(minibatches).__name__}: a run that resumes has to find its place in it."
        )
    loader = Loader(minibatches)
    check_memory(loader.batch_bytes, 1)
    example = jax.tree.map(np.asarray, loader.example)
    return Source(loader, example, None, loader.batch_bytes)
