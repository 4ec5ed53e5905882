r"""A search for places as probable as those visited, at which no chain has been."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from levymc.run import Result

from ._flat import flat_draws, flat_logdensity
from ._report import Finding

NUM_PROBES = 8192
DECADES = 3.0  # jumps from one to a thousand widths of the draws
FAR = 2.0  # widths: a place farther than this from all draws is unvisited
MOST_LOSS = 3.0  # of log φ: a place less probable than that beside the draws is no mode
FEWEST_DRAWS = 1000  # so that gaps between draws of a heavy tail do not count as unvisited


class _Probes(NamedTuple):
    """Draws, and the same with one coordinate moved elsewhere."""

    starts: Float[np.ndarray, "probe coordinate"]
    positions: Float[np.ndarray, "probe coordinate"]
    axes: np.ndarray
    values: np.ndarray
    widths: np.ndarray


def unvisited(result: Result, logdensity_fn: Callable[[Any], Any]) -> Iterator[Finding]:
    """Jump from draws along one coordinate, at all scales, and look at log φ there.

    The jumps start where that coordinate is in the middle half of its draws.  A place without
    draws at which log φ is hardly lower is another mode, or a part of this one that the chains
    have not reached.  What is not found may still be there, most of all where modes differ in
    several coordinates.
    """
    if result.num_chains * result.num_draws < FEWEST_DRAWS:
        return
    evaluate = flat_logdensity(result, logdensity_fn)
    draws = flat_draws(result)
    probes = _jump(draws)
    here, there = evaluate(probes.starts), evaluate(probes.positions)
    likely = np.flatnonzero(there >= here - MOST_LOSS)
    yield from _missed(draws, probes, likely[np.argsort(-there[likely])])


def _missed(draws: np.ndarray, probes: _Probes, likely: np.ndarray) -> Iterator[Finding]:
    """The most probable place that is far from all draws."""
    for i in likely:
        axis, value = int(probes.axes[i]), float(probes.values[i])
        distance = float(np.min(np.abs(draws[:, axis] - value)))
        if distance > FAR * probes.widths[i]:
            yield Finding(
                "one mode only",
                f"Where coordinate {axis} of the position is {value:.4g} the density is as high as "
                f"at the draws, yet the nearest draw is {distance:.3g} away: the chains have "
                "missed a mode.",
                "levymc.levy_walk, whose jumps cross barriers; starts far apart, one of them "
                "there.",
            )
            return


def _jump(draws: Float[np.ndarray, "draw coordinate"]) -> _Probes:
    random = np.random.default_rng(0)  # the same report for the same run
    axes = random.integers(0, draws.shape[1], NUM_PROBES)
    starts = draws[random.integers(0, len(draws), NUM_PROBES)]
    low, high = np.quantile(draws, [0.25, 0.75], axis=0)
    here = starts[np.arange(NUM_PROBES), axes]
    # A coordinate that is stuck tells nothing.
    fit = (low[axes] <= here) & (here <= high[axes]) & (low[axes] < high[axes])
    axes, starts, here, widths = axes[fit], starts[fit], here[fit], (high - low)[axes][fit]
    sizes = 10 ** random.uniform(0, DECADES, here.size) * random.choice([-1, 1], here.size)
    values = here + sizes * widths
    positions = starts.copy()
    positions[np.arange(here.size), axes] = values
    return _Probes(starts, positions, axes, values, widths)
