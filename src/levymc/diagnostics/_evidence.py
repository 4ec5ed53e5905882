"""What `check` looks at: the draws and the info of a run, and the density beside them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from levymc.algorithms import Info
from levymc.drifts import LogDensity
from levymc.run import Result

from ._convergence import KINDS, ess_of, has_arviz, rhat_of
from ._draws import (
    column,
    coordinate_name,
    even_in_time,
    flat_draws,
    flat_logdensity,
    variables,
)
from ._tails import TailIndex, hill, tail_index
from ._trend import normal_scores

FEWEST_DRAWS = 20  # of a chain: below, no test of the draws means anything
FEWEST_POOLED = 1000  # draws of all chains, for a tail index, or for a gap between them to count
NUM_PEAKS = 2000
FAR = np.array([1e3, 1e4, 1e5])  # widths of the draws
STEADY = 1.5  # how much the slope of log φ in log x may change over a decade of a power law
NUM_PROBES = 8192
DECADES = 3.0  # jumps from one to a thousand widths of the draws
UNVISITED = 2.0  # widths: a place farther than this from all draws is unvisited
MOST_LOSS = 3.0  # of log φ: a place less probable than that beside the draws is no mode
UNKNOWN = TailIndex(np.inf, np.inf, 0)


class Coordinate(NamedTuple):
    """Draws of one coordinate, and ArviZ's numbers; NaN where it cannot tell, or is missing.

    number: that of the coordinate among all of the position's.
    even: draws at even distances in the sum of the weights, as many.
    """

    name: str
    number: int
    values: Float[np.ndarray, "chain draw"]
    even: Float[np.ndarray, "chain draw"]
    rhat: float
    ess: dict[str, float]

    @property
    def separation(self) -> float:
        """Distance between the chains' medians, over the range of a typical chain."""
        low, medians, high = np.quantile(self.even, [0.05, 0.5, 0.95], axis=1)
        distance = float(np.ptp(medians))
        width = float(np.median(high - low))
        return distance / width if width else (np.inf if distance else 0.0)

    def increment_tail(self, is_tested: Bool[np.ndarray, "chain later_draw"]) -> TailIndex:
        """It tells of the noise with little error, as increments are all but independent.

        Those with a jump that has passed a Metropolis test are left out.
        """
        increments = np.where(is_tested, 0.0, np.diff(self.values))
        return UNKNOWN if increments.size < FEWEST_POOLED else _known(tail_index, increments)

    @property
    def peak_tail(self) -> TailIndex:
        """Of the maxima of blocks, whose index is that of the draws.

        The way back from one far jump can make up all of the largest draws; of the peaks it is a
        few.
        """
        sizes = np.abs(self.values - np.median(self.values))
        count = max(1, min(NUM_PEAKS // len(sizes), sizes.shape[1]))
        blocks = np.array_split(sizes, count, axis=1)
        peaks = np.stack([block.max(axis=1) for block in blocks], axis=1)
        return _known(hill, peaks, math.isqrt(peaks.size))

    @property
    def far_share(self) -> float:
        """Of draws three times as far from the median as a tenth of them, five sigmas if normal."""
        sizes = np.abs(self.values - np.median(self.values))
        return float(np.mean(sizes > 3 * np.quantile(sizes, 0.9)))


class Evidence(NamedTuple):
    """A run, as the tests of `check` want it.

    coordinates: a selection, if there are many.
    is_moved: whether any coordinate differs from the draw before.
    """

    result: Result
    logdensity_fn: LogDensity | None
    coordinates: list[Coordinate]
    num_coordinates: int
    is_finite: bool
    is_moved: Bool[np.ndarray, "chain later_draw"]

    def info(self, name: str) -> np.ndarray | None:
        """A number per draw from levymc's, BlackJAX's or another info; None where there is none."""
        info = self.result.info
        found: Any = info.get(name) if isinstance(info, dict) else getattr(info, name, None)
        if found is None or np.shape(found) != self.result.weights.shape:
            return None
        return np.asarray(found)

    @property
    def is_levymc(self) -> bool:
        """The algorithm is one of ours, and so is the meaning of the info."""
        return isinstance(self.result.info, Info)

    @property
    def is_exact(self) -> bool | None:
        """What is known of the algorithm, unless a bound that it was given was seen to be none."""
        return False if self.result.num_above_bound else self.result.is_exact

    @property
    def is_unadjusted(self) -> bool:
        """There is no Metropolis test: it is known, or every step was accepted for certain."""
        if self.result.is_exact is not None:
            return not self.result.is_exact
        acceptance = self.info("acceptance_rate")
        return acceptance is not None and bool(np.all(acceptance == 1))

    @property
    def is_tested(self) -> Bool[np.ndarray, "chain later_draw"]:
        """Whether a jump that has passed a Metropolis test led from the draw before to this."""
        accepted = self.info("jumps_accepted")
        return np.zeros_like(self.is_moved) if accepted is None else accepted[:, 1:] > 0

    @property
    def thinning(self) -> int | None:
        """Steps from a draw to the next, if they are known and always the same."""
        steps = self.result.steps
        if len(steps) != self.result.num_draws or len(steps) < 2:
            return None
        apart = np.unique(np.diff(steps))
        return int(apart[0]) if len(apart) == 1 else None

    @property
    def correlation(self) -> float:
        """The largest between the ranks of two coordinates, without its sign."""
        moving = [c.values for c in self.coordinates if np.ptp(c.values) > 0]
        if len(moving) < 2:
            return 0.0
        found = np.corrcoef([normal_scores(values).ravel() for values in moving])
        return float(np.max(np.abs(found - np.eye(len(found)))))


def gather(result: Result, logdensity_fn: LogDensity | None, max_coordinates: int) -> Evidence:
    leaves = variables(result)
    places = [(name, at) for name, leaf in leaves.items() for at in np.ndindex(leaf.shape[2:])]
    spread = np.linspace(0, len(places) - 1, min(max_coordinates, len(places)))
    is_finite = all(bool(np.all(np.isfinite(leaf))) for leaf in leaves.values())
    wants_arviz = is_finite and has_arviz() and result.num_draws >= FEWEST_DRAWS
    coordinates = []
    for number in np.round(spread).astype(int).tolist():
        name, place = places[number]
        values = column(leaves[name], place)
        even = even_in_time(values, result.weights)
        rhat = rhat_of(even) if wants_arviz else np.nan
        ess = {kind: ess_of(even, kind) if wants_arviz else np.nan for kind in KINDS}
        label = coordinate_name(name, place)
        coordinates.append(Coordinate(label, number, values, even, rhat, ess))
    moved = [
        np.any(leaf[:, 1:] != leaf[:, :-1], axis=tuple(range(2, leaf.ndim)))
        for leaf in leaves.values()
    ]
    is_moved = np.any(moved, axis=0)
    return Evidence(result, logdensity_fn, coordinates, len(places), is_finite, is_moved)


def heavy_axis(seen: Evidence, logdensity_fn: LogDensity) -> int | None:
    """A coordinate along which log φ falls like a multiple of log x, from the medians outwards."""
    evaluate = flat_logdensity(seen.result, logdensity_fn)
    low, center, high = np.quantile(flat_draws(seen.result), [0.25, 0.5, 0.75], axis=0)
    axes = np.unique(np.linspace(0, center.size - 1, len(seen.coordinates)).astype(int))
    for sign in (-1, 1):
        probes = np.tile(center, (axes.size, FAR.size, 1))
        probes[np.arange(axes.size), :, axes] += sign * FAR * (high - low)[axes, None]
        values = evaluate(probes.reshape(-1, center.size)).reshape(axes.size, -1)
        with np.errstate(invalid="ignore"):
            first, second = -np.diff(values, axis=1).T
            is_steady = (first > 0) & (second < STEADY * first) & np.isfinite(second)
        if np.any(is_steady):
            return int(axes[np.argmax(is_steady)])
    return None


class Unvisited(NamedTuple):
    """A place as probable as the draws, and how far from them all in one coordinate."""

    axis: int
    value: float
    distance: float


def unvisited_place(result: Result, logdensity_fn: LogDensity) -> Unvisited | None:
    """Jump from draws along one coordinate, at all scales, and look at log φ there.

    The jumps start where that coordinate is in the middle half of its draws.  A place without
    draws at which log φ is hardly lower is another mode, or a part of this one that the chains
    have not reached.  What is not found may still be there, most of all where modes differ in
    several coordinates.
    """
    if result.num_chains * result.num_draws < FEWEST_POOLED:
        return None
    evaluate, draws = flat_logdensity(result, logdensity_fn), flat_draws(result)
    random = np.random.default_rng(0)  # the same report for the same run
    axes = random.integers(0, draws.shape[1], NUM_PROBES)
    starts = draws[random.integers(0, len(draws), NUM_PROBES)]
    low, high = np.quantile(draws, [0.25, 0.75], axis=0)
    here = starts[np.arange(NUM_PROBES), axes]
    # A coordinate that is stuck tells nothing.
    fit = (low[axes] <= here) & (here <= high[axes]) & (low[axes] < high[axes])
    axes, starts, here, widths = axes[fit], starts[fit], here[fit], (high - low)[axes][fit]
    sizes = 10 ** random.uniform(0, DECADES, here.size) * random.choice([-1, 1], here.size)
    probes = starts.copy()
    probes[np.arange(here.size), axes] = here + sizes * widths
    before, after = evaluate(starts), evaluate(probes)
    likely = np.flatnonzero(after >= before - MOST_LOSS)
    for i in likely[np.argsort(-after[likely])]:  # the most probable first
        axis, value = int(axes[i]), float(probes[i, axes[i]])
        distance = float(np.min(np.abs(draws[:, axis] - value)))
        if distance > UNVISITED * widths[i]:
            return Unvisited(axis, value, distance)
    return None


def _known(estimate: Callable[..., TailIndex], *arguments: Any) -> TailIndex:
    try:
        return estimate(*arguments)
    except ValueError:  # the chain hardly moved
        return UNKNOWN
