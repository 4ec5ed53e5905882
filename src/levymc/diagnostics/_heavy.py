"""Lévy noise without a Metropolis test: what it leaves in the draws, and where FLA is not valid."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from ._agreement import HIGHEST_RHAT
from ._evidence import Evidence
from ._flat import flat_draws, flat_logdensity
from ._report import Finding
from ._tails import TailIndex, hill, tail_index

FEWEST_VALUES = 1000
LEVY_INDEX = 3.0  # two standard errors above the estimate; Gaussian increments give 6 and more
HEAVY_INDEX = 3.0  # a stable law gives its α or little more, an exponential tail 6 and more
NUM_PEAKS = 2000
FAR = np.array([1e3, 1e4, 1e5])  # widths of the draws
UNKNOWN = TailIndex(np.inf, np.inf, 0)
STEADY = 1.5  # how much the slope of log φ in log x may change over a decade of a power law

INVALID = (
    "on a heavy-tailed target fla and sgfla are not valid at all, as the gradient there is too "
    "weak to pull a jump back"
)
REMEDY = (
    "levymc.mafla or levymc.levy_walk, which are exact, and compare; levymc.flmc with its exact "
    "drift is right as the step goes to 0."
)


def heavy_tails(
    seen: Evidence, logdensity_fn: Callable[[Any], Any] | None = None
) -> Iterator[Finding]:
    """What jumps that no test holds back have done, or may have."""
    if not seen.is_unadjusted or not seen.is_levymc:
        return
    # The increments tell of the noise with little error, as they are all but independent.
    noise = [(c, _tail(np.diff(c.values))) for c in seen.coordinates]
    driven = [c for c, tail in noise if tail.index + 2 * tail.standard_error < LEVY_INDEX]
    if not driven:
        return
    axis = None if logdensity_fn is None else _heavy_axis(seen, logdensity_fn)
    tail, name = min((_peak_tail(c.values), c.name) for c in driven)
    worst = max(driven, key=lambda c: c.rhat)
    if axis is not None:
        yield Finding(
            "heavy tails",
            f"The target has heavy tails along coordinate {axis} of the position, the noise makes "
            f"jumps, and no Metropolis test was made: {INVALID}.",
            REMEDY,
        )
    elif tail.index < HEAVY_INDEX:
        yield Finding(
            "heavy tails",
            f"The draws of {name} have heavy tails (index {tail.index:.1f} ± "
            f"{tail.standard_error:.1f}) and no Metropolis test was made. Jumps leave such tails "
            "behind whatever the target: under fla and sgfla however small the step, under flmc "
            f"until it is small; {INVALID}.",
            REMEDY,
        )
    elif logdensity_fn is None and worst.rhat > HIGHEST_RHAT:
        yield Finding(
            "jumps",
            f"Jumps have carried the chains to places on which they do not agree (R-hat of "
            f"{worst.name} {worst.rhat:.2f}), and no Metropolis test was made: {INVALID}.",
            f"for heavy tails {REMEDY} For light ones, more steps: hops between modes are rare.",
        )


def _tail(values: np.ndarray) -> TailIndex:
    """Infinite where there are too few values to tell, or too many equal ones."""
    return UNKNOWN if values.size < FEWEST_VALUES else _tail_of(lambda: tail_index(values))


def _tail_of(estimate: Callable[[], TailIndex]) -> TailIndex:
    try:
        return estimate()
    except ValueError:  # the chain hardly moved
        return UNKNOWN


def _peak_tail(values: np.ndarray) -> TailIndex:
    """Of the maxima of blocks, whose index is that of the draws.

    The way back from one far jump can make up all of the largest draws; of the peaks it is a few.
    """
    sizes = np.abs(values - np.median(values))
    count = max(1, min(NUM_PEAKS // len(sizes), sizes.shape[1]))
    blocks = np.array_split(sizes, count, axis=1)
    peaks = np.stack([block.max(axis=1) for block in blocks], axis=1)
    return _tail_of(lambda: hill(peaks, math.isqrt(peaks.size)))


def _heavy_axis(seen: Evidence, logdensity_fn: Callable[[Any], Any]) -> int | None:
    """A coordinate along which log φ falls like a multiple of log x, from the medians outwards."""
    draws = flat_draws(seen.result)
    evaluate = flat_logdensity(seen.result, logdensity_fn)
    low, center, high = np.quantile(draws, [0.25, 0.5, 0.75], axis=0)
    axes = np.unique(np.linspace(0, center.size - 1, len(seen.coordinates)).astype(int))
    for sign in (-1, 1):
        probes = np.tile(center, (axes.size, FAR.size, 1))
        lengths = sign * FAR * (high - low)[axes, None]
        probes[np.arange(axes.size), :, axes] += lengths
        values = evaluate(jnp.asarray(probes.reshape(-1, center.size))).reshape(axes.size, -1)
        with np.errstate(invalid="ignore"):
            first, second = -np.diff(values, axis=1).T
            is_steady = (first > 0) & (second < STEADY * first) & np.isfinite(second)
        if np.any(is_steady):
            return int(axes[np.argmax(is_steady)])
    return None
