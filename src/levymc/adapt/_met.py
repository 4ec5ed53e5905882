r"""The mass of a target as the jumps of a search meet it: a check on what draws make of it.

A jump y = μ + L v with v = R z, z normal and R log-uniform on [1, b], has a density that is known,
so that φ(y) over it is ∫ φ in expectation, whichever mode it began from.  Such a mean is rough, but
it sees what no draw does: a wide mode around a narrow one, or a part that the kernel cannot enter.
"""

import math
from typing import Any

import numpy as np

from ._bridge import Evidence

SURE = 4.0  # standard errors, by which the jumps' mass is above that of the draws
MORE = 1.25  # times the mass of the draws; less is no matter
NOTHING = np.array([0.0, -np.inf, -np.inf])


def met(log_weights: np.ndarray) -> np.ndarray:
    """The number of jumps, and the logs of the sums of their weights and of the squares of these.

    >>> met(np.log([1.0, 3.0])).round(3).tolist()
    [2.0, 1.386, 2.303]
    """
    finite = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    sums = [np.logaddexp.reduce(power * finite, initial=-np.inf) for power in (1, 2)]
    return np.array([len(log_weights), *sums])


def together(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of two sets of jumps."""
    return np.array([first[0] + second[0], *np.logaddexp(first[1:], second[1:])])


def log_volumes(squares: np.ndarray, dimension: int, largest: float) -> np.ndarray:
    r"""−log of the density of v = R z at |v|², with R log-uniform on [1, b]:

    .. math:: g(v) = \frac{Γ(d/2)}{2 \log b\; π^{d/2} |v|^d}
       \bigl[P(d/2, |v|^2/2) − P(d/2, |v|^2/2b^2)\bigr], with P the regularised incomplete Γ.
    """
    from scipy.special import gammainc, gammaln  # here, so that importing levymc stays light

    half = dimension / 2
    shares = gammainc(half, squares / 2) - gammainc(half, squares / (2 * largest**2))
    log_constant = gammaln(half) - math.log(2 * math.log(largest)) - half * math.log(math.pi)
    return half * np.log(squares) - log_constant - np.log(np.maximum(shares, 1e-300))


def more_than(evidence: Evidence, seen: Any) -> str | None:
    """A reason not to trust draws that have less mass than the jumps met, or None."""
    count, log_sum, log_squares = np.asarray(seen, float)
    if not (count and np.isfinite(log_sum) and np.isfinite(evidence.value)):
        return None
    log_mass = log_sum - math.log(count)
    own = math.sqrt(max(math.exp(log_squares - 2 * log_sum) - 1 / count, 0.0))
    share = math.exp(min(evidence.value - log_mass, 0.0))  # of the jumps' mass, the draws have this
    error = math.hypot(own, share * evidence.standard_error)
    if share > 1 / MORE or 1 - share < SURE * error:
        return None
    return (
        f"The jumps of the search met more than the draws have: log ∫ φ is {log_mass:.2f} ± "
        f"{own:.2f} by the jumps, {evidence.value:.2f} by the draws. Some of the mass lies where "
        "no draw goes, as in a wide mode around a narrow one. Give starts there, or more budget."
    )
