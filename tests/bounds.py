"""Bounds with a stated false-alarm rate, for tests on random draws.

A check that compares an estimate with its exact value within ``bound`` fails on correct code with
probability at most ``false_alarm``.  A defect that moves the exact value by twice the bound is
seen with probability at least 1 - ``false_alarm``.
"""

import math

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
