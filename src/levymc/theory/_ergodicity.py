r"""H5, geometric ergodicity, by the supplement's sufficient conditions A1 and A2."""

from typing import Any

import numpy as np

from levymc._checks import check_alpha, check_one_number, check_positive
from levymc.drifts import LogDensity
from levymc.riesz import unchecked_coefficients

from ._answer import Answer, seen
from ._drift import check_growth
from ._line import TOLERANCE, line, slope
from ._target import f_and_derivatives, highest_logdensity

COMPACT = np.linspace(-5.0, 5.0, 21)  # in units of `scale`
MOST = 2048
DOUBLINGS = 2 ** np.arange(4, 12)  # up to it
LIMITS = f"Seen for i = 1, 2, 3, up to K = {MOST}, at {COMPACT.size} points."
SETTLED = 1e-6  # of the largest sum: it has converged


def check_differences(
    logdensity_fn: LogDensity,
    alpha: float,
    *,
    spacing: float = 0.06,
    center: float = 0.0,
    scale: float = 1.0,
) -> Answer:
    r"""A2: on compact sets the sums of the centred differences converge uniformly as K grows:

    .. math:: S_K^{(i)}(x) = \sum_{k=-K}^{K} g_{α-2,k}\, f^{(i)}(x - kh), \qquad i ≥ 1 .

    Looked at are i = 1, 2, 3, 21 points within five `scale` of the center, and K = 16, 32, …,
    2048.  `looks` means that the largest change from K to 2K has died out, or falls as a power.

    Args:
        logdensity_fn: log φ up to a constant, of one number.
        alpha: in (1, 2].
        spacing: h > 0.
        center, scale: roughly where the bulk of the target lies, and how wide it is.

    Returns:
        `change_1`, …, `change_3`: the last change over the largest sum.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import targets, theory
        >>> theory.check_differences(targets.student_t(2.0), 1.5).looks
        True

    References: [simsekli2017], the supplement's remark after Theorem 3.
    """
    check_alpha(alpha)
    check_one_number("alpha", alpha, "The hypotheses are about one number.")
    check_positive("spacing", spacing, "It is h, the distance between the points of the sum.")
    where = line(center, scale, 1e4)
    k = np.arange(-MOST, MOST + 1)
    places = where.center + where.scale * COMPACT[:, None] - spacing * k
    weights = unchecked_coefficients(np.float64(alpha - 2), MOST)[np.abs(k)]
    numbers, looks = {}, True
    derivatives = f_and_derivatives(logdensity_fn, highest_logdensity(logdensity_fn, where))
    for order, values in enumerate(derivatives(places.ravel())[1:], start=1):
        if not np.all(np.isfinite(values)):
            words = f"The derivative of order {order} of f is not finite everywhere."
            return seen("A2", False, words, LIMITS)
        terms = weights * values.reshape(places.shape)
        sums = np.stack([terms[:, np.abs(k) <= most].sum(axis=1) for most in DOUBLINGS])
        changes = np.abs(np.diff(sums, axis=0)).max(axis=1) / np.abs(sums[-1]).max()
        numbers[f"change_{order}"] = float(changes[-1])
        looks &= bool(changes[-1] < SETTLED or _falls(changes))
    words = "The sums over k settle." if looks else "The sums over k do not settle."
    return seen("A2", looks, words, LIMITS, **numbers)


def _falls(changes: np.ndarray) -> bool:
    with np.errstate(divide="ignore"):
        return slope(np.log(DOUBLINGS[4:-1]), np.log(changes[4:])) < -TOLERANCE


def check_ergodicity(
    drift: Any,
    logdensity_fn: LogDensity,
    alpha: float,
    *,
    spacing: float = 0.06,
    center: float = 0.0,
    scale: float = 1.0,
    reach: float = 1e4,
) -> Answer:
    r"""H5: is dX = b(X) dt + dL^α geometrically ergodic?  The paper's remark: A1 and A2 suffice.

    They are not necessary: `looks` is True where both look so, and otherwise None.  Theorem 3 asks
    H5 of the exact drift and of b̃, Corollary 2 of b̂: ask for each.

    Args:
        drift: whose diffusion it is, of one number.
        logdensity_fn, alpha, spacing, center, scale, reach: as in the checks of A1 and A2.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import drifts, theory
        >>> normal = lambda x: -x * x / 2
        >>> theory.check_ergodicity(drifts.leading_term(normal, 1.7), normal, 1.7).looks
        True

    References: [simsekli2017], H5 and the supplement's remark after Theorem 3.
    """
    growth = check_growth(drift, center=center, scale=scale, reach=reach)
    sums = check_differences(logdensity_fn, alpha, spacing=spacing, center=center, scale=scale)
    looks = True if growth.looks and sums.looks else None
    limits = "A1 and A2 suffice and are not necessary: without them nothing is known."
    words = f"{growth} {sums}"
    return seen("H5", looks, words, limits, **growth.numbers, **sums.numbers)
