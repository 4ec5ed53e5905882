"""What a sampler leaves, and the time that it took without compilation."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np


class Modes(NamedTuple):
    """The modes that a sampler reports: places, weights, and the weights' standard errors."""

    location: np.ndarray
    weight: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True, eq=False)
class Outcome:
    """Draws of equal weight, and what they cost.

    positions: of shape (chain, draw, dimension).
    evaluations: of the density, alone or with its gradient, over all chains and warm-up.
    is_chain: whether a chain's draws follow each other in time; particles do not.
    is_flagged: whether the sampler itself warns of its answer; `notes` are its words.
    seconds, compiling: spent, the second while programs were compiled.
    """

    positions: np.ndarray
    evaluations: int
    is_chain: bool = True
    is_flagged: bool = False
    notes: tuple[str, ...] = ()
    modes: Modes | None = None
    log_evidence: tuple[float, float] | None = None
    seconds: float = float("nan")
    compiling: float = float("nan")


@dataclass
class Clock:
    """Seconds of a piece of work, and those of them in which JAX traced or compiled."""

    seconds: float = 0.0
    compiling: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)


_OPEN: list[Clock] = []
_LOCK = threading.Lock()


def _heard(event: str, duration_secs: float, **_: Any) -> None:
    """An event says its length when it ends; one may contain others."""
    if _OPEN and event.startswith("/jax/core/compile/"):
        now = time.perf_counter()
        with _LOCK:
            _OPEN[-1].spans.append((now - duration_secs, now))


jax.monitoring.register_event_duration_secs_listener(_heard)


@contextmanager
def clocked() -> Iterator[Clock]:
    """Measure what is done inside."""
    clock, start = Clock(), time.perf_counter()
    _OPEN.append(clock)
    try:
        yield clock
    finally:
        _OPEN.remove(clock)
        total = time.perf_counter() - start
        clock.compiling = min(total, _union(clock.spans))
        clock.seconds = total - clock.compiling


def _union(spans: list[tuple[float, float]]) -> float:
    """The length of the union of intervals.

    >>> _union([(0.0, 1.0), (0.5, 2.0), (3.0, 4.0)])
    3.0
    """
    length, end = 0.0, -float("inf")
    for first, last in sorted(spans):
        length += max(0.0, last - max(first, end))
        end = max(end, last)
    return length
