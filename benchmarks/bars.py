"""A measured number beside the bar it must clear."""

import math
import statistics
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax


class Bar(NamedTuple):
    """One line of the table.

    limit: None where a number is only reported.
    absent: why there is no number, where nothing could be measured.
    """

    subject: str
    measured: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    absent: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether it counts among the bars that are met or missed."""
        return not self.absent and self.limit is not None

    @property
    def is_met(self) -> bool:
        if self.absent:
            return True
        if self.limit is None:
            return math.isfinite(self.measured)
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def line(bar: Bar) -> str:
    """A line of the table."""
    if bar.absent:
        return f"  {bar.subject:<48} not measured: {bar.absent}"
    if bar.limit is None:
        verdict = ""
    else:
        verdict = (
            f"{'≥' if bar.at_least else '≤'} {bar.limit:g}  {'met' if bar.is_met else 'MISSED'}"
        )
    return f"  {bar.subject:<48} {bar.measured:>10.3g} {bar.unit:<11} {verdict}"


def missing(subject: str, why: str) -> Bar:
    """The line of a bar for which something is not installed."""
    return Bar(subject, math.nan, "", absent=why)


def show(bars: Iterable[Bar]) -> list[Bar]:
    """Print bars as they are measured, and give all of them."""
    found = []
    for bar in bars:
        print(line(bar), flush=True)
        found.append(bar)
    return found


def count(bars: list[Bar]) -> str:
    """How many were met and missed, and which were not measured."""
    judged, absent = [bar for bar in bars if bar.is_judged], [bar for bar in bars if bar.absent]
    met = sum(bar.is_met for bar in judged)
    said = f"{met} of {len(judged)} bars met, {len(judged) - met} missed"
    return f"{said}, {len(absent)} not measured" if absent else said


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
