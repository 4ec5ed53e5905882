"""Bounds with a stated false-alarm rate, for tests on random draws.

A check that compares an estimate with its exact value within ``bound`` fails on correct code with
probability at most ``false_alarm``.  A defect that moves the exact value by twice the bound is
seen with probability at least 1 - ``false_alarm``.
"""

import math

import numpy as np
from scipy import stats


def hoeffding_bound(count: int, false_alarm: float) -> float:
    """Bound on |mean - expectation| of independent values in [-1, 1] (Hoeffding 1963).

    >>> round(hoeffding_bound(1_000_000, 1e-9), 5)
    0.00654
    """
    return math.sqrt(2 * math.log(2 / false_alarm) / count)


def dkw_bound(count: int, false_alarm: float) -> float:
    """Bound on sup |empirical CDF - CDF| (Dvoretzky-Kiefer-Wolfowitz; constant: Massart 1990).

    >>> round(dkw_bound(1_000_000, 1e-9), 5)
    0.00327
    """
    return math.sqrt(math.log(2 / false_alarm) / (2 * count))


def binomial_range(count: int, probability: float, false_alarm: float) -> tuple[int, int]:
    """Smallest and largest plausible number of hits, by exact binomial tails.

    >>> binomial_range(20_000_000, 1e-5, 1e-9)
    (120, 292)
    """
    law = stats.binom(count, probability)
    return int(law.ppf(false_alarm / 2)), int(law.isf(false_alarm / 2))


def detected_rates(count: int, probability: float, false_alarm: float) -> tuple[float, float]:
    """Hit rates, as multiples of ``probability``, outside which a defect is almost surely seen.

    Beyond them a count inside ``binomial_range`` has probability at most ``false_alarm``.

    >>> low, high = detected_rates(20_000_000, 1e-5, 1e-9)
    >>> round(low, 2), round(high, 2)
    (0.33, 2.04)
    """
    fewest, most = binomial_range(count, probability, false_alarm)
    lowest = stats.beta.ppf(false_alarm, fewest, count - fewest + 1) if fewest else 0.0
    highest = stats.beta.isf(false_alarm, most + 1, count - most)
    return float(lowest / probability), float(highest / probability)


def distance_to(draws: np.ndarray, cdf) -> float:
    """Kolmogorov's distance of a sample to a law."""
    levels, count = cdf(np.sort(draws)), len(draws)
    above = np.arange(1, count + 1) / count - levels
    return float(max(np.max(above), np.max(1 / count - above)))


def balance_p_value(before: np.ndarray, after: np.ndarray, num_cells: int) -> float:
    """Compare the moves i → j of stationary chains with the moves j → i, by the cells they are in.

    Under detailed balance a move between the cells i and j is as likely to be the one as the
    other, whatever the number of both: exact binomial tests.  Returns the smallest of their
    p-values times their number (Bonferroni).
    """
    moves = np.zeros((num_cells, num_cells), int)
    np.add.at(moves, (before, after), 1)
    upper = np.triu_indices(num_cells, 1)
    there, back = moves[upper], moves.T[upper]
    p_values = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(there, back), there + back, 0.5))
    return float(np.min(p_values)) * p_values.size
