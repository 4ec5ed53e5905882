r"""Whether samplers differ from one of them by more than chance, by few seeds that they share.

Runs of one seed begin alike and see the same minibatches, which moves all of them together:

.. math:: y_{as} = μ_a + b_s + e_{as}, \qquad e_{as} ∼ N(0, σ²)

for sampler a and seed s.  A difference of two samplers' means is free of b_s and has the variance
2σ²/S; σ² is pooled over the samplers, from what is left of y when the means of samplers and of
seeds are taken off, with (A − 1)(S − 1) degrees of freedom.  So the difference over its standard
error has a t law, and intervals at a level of `RATE` over m comparisons all hold at once with
probability 1 − `RATE` or more, by Bonferroni's inequality.

False alarms: at most `RATE` = 5 % of families, if all samplers are alike; of five with two seeds
3.3 %, as their comparisons share a sampler.  That errors are as large for all is assumed: of five
whose standard deviations grow evenly to 8 times the first's 6 % of families have one, and where one
sampler's alone is 2, 4 or 8 times the others', at most 7, 13 or 19 %.  Of two samplers it is the
paired t test.  Half of both ranges, which one might take instead, are crossed by a third of the
pairs that are alike where there are two seeds.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

RATE = 0.05  # of families of comparisons with a false alarm


class Spread(NamedTuple):
    """σ, its degrees of freedom, and over how many seeds the means are; NaN where none are left."""

    sigma: float
    freedom: int
    seeds: int

    def half_width(self, comparisons: int) -> float:
        """By how much two means may differ by chance, if so many pairs are compared."""
        if not self.freedom:
            return math.nan
        return _quantile(self.freedom, comparisons) * self.sigma * math.sqrt(2 / self.seeds)


@lru_cache
def _quantile(freedom: int, comparisons: int) -> float:
    return float(stats.t.isf(RATE / (2 * comparisons), freedom))


def spread(values: np.ndarray) -> Spread:
    """Of a number for each sampler (row) and seed (column)."""
    samplers, seeds = values.shape
    freedom = (samplers - 1) * (seeds - 1)
    if freedom < 1:
        return Spread(math.nan, 0, seeds)
    left = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    return Spread(math.sqrt((left**2).sum() / freedom), freedom, seeds)
