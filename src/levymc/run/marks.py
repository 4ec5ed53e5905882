"""At which steps a run is looked at: regularly, ever more rarely, or as listed.

`levymc.sample(..., thin=...)` and the like take a number k for every k-th step, a list of steps, or
what the functions here return.  Steps are counted from 1, after the burn-in.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from levymc._checks import check_count


@runtime_checkable
class Marks(Protocol):
    """Some of the steps 1, 2, …"""

    def within(self, begin: int, end: int, most: int) -> np.ndarray:
        """Those in (begin, end], in increasing order, but at most so many."""
        ...

    def count_until(self, end: int) -> int:
        """How many there are up to `end`."""
        ...

    def numbered(self, first: int, most: int) -> np.ndarray:
        """Those from the one with the number `first` = 0, 1, … on, but at most so many."""
        ...


class Every(NamedTuple):
    """The steps k, 2k, …"""

    k: int

    def within(self, begin: int, end: int, most: int) -> np.ndarray:
        first = begin // self.k + 1
        return self.k * np.arange(first, min(end // self.k, first + most - 1) + 1)

    def count_until(self, end: int) -> int:
        return end // self.k

    def numbered(self, first: int, most: int) -> np.ndarray:
        return self.k * np.arange(first + 1, first + most + 1)


class At(NamedTuple):
    """The steps that are listed."""

    steps: tuple[int, ...]

    def within(self, begin: int, end: int, most: int) -> np.ndarray:
        first, last = (bisect_right(self.steps, bound) for bound in (begin, end))
        return np.asarray(self.steps[first : min(last, first + most)], np.int64)

    def count_until(self, end: int) -> int:
        return bisect_right(self.steps, end)

    def numbered(self, first: int, most: int) -> np.ndarray:
        return np.asarray(self.steps[first : first + most], np.int64)


class Logarithmic(NamedTuple):
    """See `logarithmic`."""

    num_marks: int


MarksLike = int | Sequence[int] | np.ndarray | Every | At | Logarithmic


def logarithmic(count: int) -> Logarithmic:
    """About `count` steps that are evenly spaced in their logarithm; the first and last are there.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> rare = levymc.marks.logarithmic(4)
        >>> run = levymc.sample(
        ...     walk, jax.random.key(0), jnp.zeros(2), 1000, thin=rare, progress=False
        ... )
        >>> run.steps.tolist()
        [1, 10, 100, 1000]
    """
    return Logarithmic(check_count("count", count, "It is the number of steps to look at."))


def as_marks(name: str, given: Any, num_steps: int) -> Every | At:
    """Understand an argument that tells at which of `num_steps` steps to look."""
    if isinstance(given, Every | At):
        return given
    if isinstance(given, Logarithmic):
        spaced = np.geomspace(1, num_steps, given.num_marks)
        return At(tuple(np.unique(np.round(spaced).astype(int)).tolist()))
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return _listed(name, given, num_steps)
    every = check_count(name, given, "Every k-th step is looked at; or list the steps.")
    if every > num_steps:
        raise ValueError(
            f"`{name}` must be at most `num_steps` = {num_steps}, got {every}. "
            "There would be nothing to look at."
        )
    return Every(every)


def _listed(name: str, given: Any, num_steps: int) -> At:
    steps = np.asarray(given)
    if steps.ndim != 1 or steps.size == 0 or steps.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must list steps as integers, got {given!r}. Such as [10, 100].")
    if steps.min() < 1 or steps.max() > num_steps or np.any(np.diff(steps) < 1):
        raise ValueError(
            f"`{name}` must list steps from 1 to `num_steps` = {num_steps} in increasing order, "
            f"got {given!r}. Such as [10, 100]."
        )
    return At(tuple(steps.tolist()))


def to_json(marks: Every | At) -> dict[str, Any]:
    return {"every": marks.k} if isinstance(marks, Every) else {"at": list(marks.steps)}


def from_json(content: dict[str, Any]) -> Every | At:
    return Every(int(content["every"])) if "every" in content else At(tuple(content["at"]))
