"""At which steps a run is looked at: regularly, ever more rarely, or as listed.

`levymc.sample(..., thin=...)` and the like take a number k for every k-th step, a list of steps, or
what the functions here return.  Steps are counted from 1, after the burn-in.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from levymc._checks import check_count, check_interval, check_one_number


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


class CycleEnds(NamedTuple):
    """See `cycle_ends`: `length` steps at the end of each cycle of `period`, `spacing` apart."""

    period: int
    length: int
    spacing: int = 1

    @property
    def first(self) -> int:
        """The first of a cycle."""
        return self.period - (self.length - 1) * self.spacing

    def within(self, begin: int, end: int, most: int) -> np.ndarray:
        first = self.count_until(begin)
        return self.numbered(first, min(self.count_until(end) - first, most))

    def count_until(self, end: int) -> int:
        cycles, rest = divmod(end, self.period)
        return cycles * self.length + max(0, (rest - self.first) // self.spacing + 1)

    def numbered(self, first: int, most: int) -> np.ndarray:
        cycles, places = np.divmod(np.arange(first, first + most), self.length)
        return cycles * self.period + self.first + places * self.spacing


class Logarithmic(NamedTuple):
    """See `logarithmic`."""

    num_marks: int


Known = Every | At | CycleEnds
MarksLike = int | Sequence[int] | np.ndarray | Known | Logarithmic


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


def cycle_ends(period: int, share: float = 0.2, *, spacing: int = 1) -> CycleEnds:
    """The last steps of every cycle of so many, as `levymc.schedules.cyclical` makes them.

    Steps are counted after the burn-in: let that be of whole cycles.

    Args:
        period: steps of a cycle.
        share: of a cycle, in (0, 1]; at least its last step.
        spacing: look at every so manieth of these only, counted back from the last.

    Examples:
        >>> import levymc
        >>> ends = levymc.marks.cycle_ends(10, 0.3)
        >>> ends.within(0, 25, 100).tolist()
        [8, 9, 10, 18, 19, 20]

    References: [zhang2020] keeps the end of a cycle, where steps are small.
    """
    steps = check_count("period", period, "It is the number of steps of a cycle.")
    apart = check_count("spacing", spacing, "Of the last steps, every so manieth is looked at.")
    check_one_number("share", share, "It is the part of a cycle that is looked at.")
    check_interval("share", share, 0.0, 1.0, includes_low=False, remedy="Such as 0.2.")
    last = max(1, round(float(share) * steps))
    return CycleEnds(steps, -(-last // apart), apart)


def as_marks(name: str, given: Any, num_steps: int) -> Known:
    """Understand an argument that tells at which of `num_steps` steps to look."""
    if isinstance(given, CycleEnds) and given.first > num_steps:
        raise ValueError(
            f"`{name}` must look at one of `num_steps` = {num_steps} steps, got {given}, whose "
            f"first is {given.first}. Make whole cycles."
        )
    if isinstance(given, Every | At | CycleEnds):
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


def to_json(marks: Known) -> dict[str, Any]:
    if isinstance(marks, CycleEnds):
        return {"cycle_ends": list(marks)}
    return {"every": marks.k} if isinstance(marks, Every) else {"at": list(marks.steps)}


def from_json(content: dict[str, Any]) -> Known:
    if "cycle_ends" in content:
        ends = CycleEnds(*map(int, content["cycle_ends"]))
        if not (min(ends) > 0 and ends.first > 0):
            raise ValueError(f"its cycles are {ends}")
        return ends
    return Every(int(content["every"])) if "every" in content else At(tuple(content["at"]))
