"""A measured number beside the bar it must clear."""

import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import jax


class Bar(NamedTuple):
    """One line of the table; `limit` None where a number is only reported."""

    subject: str
    measured: float
    unit: str
    limit: float | None = None
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.limit is None:
            return math.isfinite(self.measured)
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def line(bar: Bar) -> str:
    """A line of the table."""
    if bar.limit is None:
        verdict = ""
    else:
        verdict = (
            f"{'≥' if bar.at_least else '≤'} {bar.limit:g}  {'met' if bar.is_met else 'MISSED'}"
        )
    return f"  {bar.subject:<48} {bar.measured:>10.3g} {bar.unit:<11} {verdict}"


def interleaved_seconds(
    functions: dict[str, Callable[[], object]],
    rounds: int = 31,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time every function once a round, so that all share whatever else the machine is doing."""
    for function in functions.values():
        jax.block_until_ready(function())
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            jax.block_until_ready(function())
            times[name].append(clock() - start)
    return times


def ratio(times: dict[str, list[float]], name: str, peer: str) -> float:
    """The median over the rounds of name/peer."""
    return statistics.median(a / b for a, b in zip(times[name], times[peer], strict=True))
