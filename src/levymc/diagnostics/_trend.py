r"""Whether the draws of a run change from its start to its end."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

FALSE_ALARM = 1e-3  # for all comparisons of a run
# A first part of a chain and a last: halves; and the start against the end [geweke1992].
PARTS = ((0.5, 0.5), (0.1, 0.5))
SMALLEST_SHIFT = 0.1  # in standard deviations: less does no harm, however certain
FEWEST_EFFECTIVE = 10  # of a part in all chains together, for its mean to be about normal


class Shift(NamedTuple):
    """How far the last part of the chains lies from the first.

    measure: "middle" or "spread".
    size: in standard deviations of the draws' normal scores.
    z: the same in standard errors, autocorrelation included.
    part: the share of a chain that the first part is.
    """

    measure: str
    size: float
    z: float
    part: float


def shifts(values: Float[np.ndarray, "chain draw"]) -> list[Shift]:
    """Of the ranks' normal scores, and of those of the distances from the median."""
    center = np.median(values)
    found = []
    for measure, seen in (("middle", values), ("spread", np.abs(values - center))):
        scores = normal_scores(seen)
        variance = _within_halves(scores)
        found += [
            shift
            for first, last in PARTS
            if (shift := _shift(measure, scores, variance, first, last)) is not None
        ]
    return found


def is_shift(shift: Shift, num_comparisons: int) -> bool:
    """Whether chance makes it in fewer than one of a thousand good runs, by Bonferroni's bound."""
    return abs(shift.z) > largest_z(FALSE_ALARM, num_comparisons) and (
        abs(shift.size) > SMALLEST_SHIFT
    )


def largest_z(false_alarm: float, num_comparisons: int) -> float:
    """The |z| that so many standard normals all stay below, but for `false_alarm` (Bonferroni)."""
    return -NormalDist().inv_cdf(false_alarm / (2 * max(num_comparisons, 1)))


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Ranks of all values together as quantiles of the normal law: they always have moments."""
    from scipy.special import ndtri  # only here, as it takes a third of a second

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # of equal values their mean
    return ndtri((ranks - 0.375) / (values.size + 0.25))[places].reshape(values.shape)


def long_run_variance(segments: Float[np.ndarray, "segment draw"]) -> float:
    r"""σ² of the means' law, Var(mean of n draws) ≈ σ²/n: Σ_t γ_t over all lags,

    by Geyer's initial monotone sequence of the autocovariances, averaged over segments, each
    around its own mean.
    """
    length = segments.shape[1]
    centered = segments - segments.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centered, 2 * length, axis=1)
    power = np.mean(np.abs(spectrum) ** 2, axis=0)
    gamma = np.fft.irfft(power, 2 * length)[:length] / length
    pairs = gamma[: length - length % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: negative[0]] if negative.size else pairs
    total = -gamma[0] + 2 * float(np.sum(np.minimum.accumulate(kept)))
    # Alternating chains may seem better than they are; the bound is ArviZ's.
    return max(total, float(gamma[0]) / max(1.0, math.log10(segments.size)))


def _within_halves(scores: Float[np.ndarray, "chain draw"]) -> float:
    """The long-run variance, to which a difference between the halves does not add."""
    half = scores.shape[1] // 2
    return long_run_variance(np.concatenate([scores[:, :half], scores[:, -half:]]))


def _shift(
    measure: str, scores: np.ndarray, variance: float, first: float, last: float
) -> Shift | None:
    num_chains, num_draws = scores.shape
    begin, end = int(first * num_draws), int(last * num_draws)
    spread = float(np.var(scores))
    if spread == 0 or begin * num_chains * spread < FEWEST_EFFECTIVE * variance:
        return None
    difference = float(scores[:, -end:].mean() - scores[:, :begin].mean())
    error = math.sqrt(variance / num_chains * (1 / begin + 1 / end))
    return Shift(measure, difference / math.sqrt(spread), difference / error, first)
