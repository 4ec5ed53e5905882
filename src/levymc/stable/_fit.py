r"""Maximum likelihood of the symmetric stable law, in NumPy, in float64.

Data are shifted and scaled by their quartiles first.  The parameters are (α, location, log scale);
of a point, its score is (∂/∂α, ∂/∂location, ∂/∂log scale) of the log density at each datum.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from levymc._checks import check_interval, check_one_number, check_positive, check_real

from . import _law, _tabulated
from ._frozen import SymmetricLaw, symmetric

LOWEST, HIGHEST = 0.5, 2.0
FIXED_REMEDY = "Give a number to hold it there, or None to estimate it."
DATA_REMEDY = "Remove such data first."
# Below, standard errors, which hold for many data, are too small.  Of 300 sets of 50 data, 95 %
# intervals covered the truth in 85 % at worst (location, α = 0.6), of 400 sets of 100 in 91 %.
FEW = 100
# The likelihood of few may have several maxima (of 240 sets of 20 it had in 2, of 50 in none), so
# that it is climbed from several α.
OTHER_STARTS = (0.7, 1.1, 1.5, 1.9)
START_RANGE = (0.6, 1.9)
LARGEST = 1e150  # datum, in units of the spread: its square is finite
MOST_STEPS = 200
MOST_NEWTON_STEPS = 20
ROUGHLY, FINELY = 1e-2, 1e-9  # nats that another step is expected to gain
SUFFICIENT = 1e-4  # of that gain, for a step to be taken
SHORTEST = 2.0**-30  # of a step
NEAR = 2.0  # standard errors, from an end of the range of α
CLOSE = 1e-3  # standard errors, to the maximum


class StandardErrors(NamedTuple):
    """Of the parameters: 0 for one that was held fixed, NaN where there is none to give."""

    alpha: float
    loc: float
    scale: float


@dataclass(frozen=True, eq=False)
class StableFit:
    """What a fit found.

    law: the law, a `SymmetricLaw`.  standard_errors: from the curvature of the likelihood.
    covariance: of the estimates of (alpha, loc, scale).
    log_likelihood: at its maximum.  num_data: how many there were.
    is_converged: whether it is a maximum, and no more than a thousandth of a standard error away.
    warnings: what to know before it is believed, in words; empty where nothing is.
    """

    law: SymmetricLaw
    standard_errors: StandardErrors
    covariance: np.ndarray
    log_likelihood: float
    num_data: int
    is_converged: bool
    warnings: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        return self.law.alpha

    @property
    def loc(self) -> float:
        return self.law.loc

    @property
    def scale(self) -> float:
        return self.law.scale

    def __repr__(self) -> str:
        estimates = zip(StandardErrors._fields, self.standard_errors, strict=True)
        shown = ", ".join(
            f"{name}={getattr(self, name):.6g} ± {error:.2g}" for name, error in estimates
        )
        flagged = "".join(f"\n  {sentence}" for sentence in self.warnings)
        return f"StableFit({shown}; {self.num_data} data){flagged}"


def fit(data: Any, *, alpha: Any = None, loc: Any = None, scale: Any = None) -> StableFit:
    r"""Maximum likelihood of SαS: the α, location and scale under which data are most probable,

    .. math:: \max_{α, μ, σ} \sum_i \log f_α\bigl((x_i - μ)/σ\bigr) - \log σ ,

    with α ∈ [0.5, 2].  Standard errors are those of the observed information.  It climbs from
    the estimates of quartiles and of the 5 % and 95 % quantiles, which no outlier moves far.

    Not valid when: data depend on each other, or are skewed: the law is symmetric.  Standard errors
    hold for many data: below 100 they are too small, which is flagged.  At α = 2 the likelihood
    is cut off: there is no standard error of α then, which is flagged, too.

    Args:
        data: finite numbers, of any shape.
        alpha, loc, scale: a number holds the parameter there; None estimates it.

    Returns:
        `StableFit`, with `alpha`, `loc`, `scale`, `standard_errors`, `law`, and `warnings`.

    Raises:
        ValueError, TypeError: data that are too few, not finite, or so often equal that the
            likelihood has no maximum; a parameter outside its range.

    Warns: RuntimeWarning: no maximum was reached, or α lies at 0.5, below which the law is not
        tabulated.

    Examples:
        >>> import levymc
        >>> data = levymc.stable.symmetric(1.5, loc=3.0).rvs(5000, random_state=0)
        >>> found = levymc.stable.fit(data)
        >>> abs(found.alpha - 1.5) < 4 * found.standard_errors.alpha
        True

    References: [dumouchel1973] for the law of the estimates, [mcculloch1986] for the start.
    Departures: quantiles of the law itself in the place of printed tables.
    """
    points = _checked_data(data)
    fixed = _checked_fixed(alpha, loc, scale)
    _check_ties(points, *fixed)
    problem = _standardised(points, fixed)
    best = max((_climbed(problem, start) for start in _starts(problem)), key=lambda at: at.value)
    return _finished(problem, best)


def _checked_data(data: Any) -> Float[np.ndarray, " datum"]:
    check_real("data", data, DATA_REMEDY)
    points = np.ravel(np.asarray(data, np.float64))
    if points.size == 0:
        raise ValueError("`data` must hold numbers, got none. Give an array that is not empty.")
    return points


def _checked_fixed(alpha: Any, loc: Any, scale: Any) -> tuple[float | None, ...]:
    for name, value in (("alpha", alpha), ("loc", loc), ("scale", scale)):
        if value is not None:
            check_one_number(name, value, FIXED_REMEDY)
    if alpha is not None:
        check_interval("alpha", alpha, LOWEST, HIGHEST, includes_low=True, remedy=_law.ALPHA_REMEDY)
    if loc is not None:
        check_real("loc", loc, FIXED_REMEDY)
    if scale is not None:
        check_positive("scale", scale, FIXED_REMEDY)
    return tuple(None if value is None else float(value) for value in (alpha, loc, scale))


def _check_ties(
    points: np.ndarray, alpha: float | None, loc: float | None, scale: float | None
) -> None:
    """Refuse data without a maximum: of n, k on one point, as the scale σ goes to 0 there.

    The density of those grows like 1/σ, that of the others, in the tail, falls like σ^α: the
    likelihood, like σ^{α(n-k) - k}, has no bound for k/n > α/(1 + α).
    """
    if scale is not None:
        return
    values, counts = np.unique(points, return_counts=True)
    if loc is not None:
        counts = np.where(values == loc, counts, 0)
    most, count = int(np.max(counts)), points.size
    least_alpha = LOWEST if alpha is None else alpha
    if most < least_alpha * (count - most):
        return
    allowed = least_alpha / (1 + least_alpha)
    raise ValueError(
        f"`data` must have less than {allowed:.3g} of its values equal, got {most} of {count} at "
        f"{values[np.argmax(counts)]:g}: with more, the likelihood has no maximum, as it grows "
        "without bound while the scale goes to 0. Give more data, or set the scale."
    )


class _Problem(NamedTuple):
    """Data in units of their spread; parameters that are held fixed as they were given."""

    points: np.ndarray
    given: tuple[float | None, ...]
    center: float
    unit: float

    @property
    def is_free(self) -> np.ndarray:
        return np.array([value is None for value in self.given])

    def held(self, place: tuple[float, ...]) -> np.ndarray:
        """A place in these units, with what is fixed in its place."""
        alpha, loc, scale = self.given
        fixed = (
            alpha,
            None if loc is None else (loc - self.center) / self.unit,
            None if scale is None else math.log(scale / self.unit),
        )
        both = zip(place, fixed, strict=True)
        return np.array([value if own is None else own for value, own in both], float)

    def law(self, place: np.ndarray) -> SymmetricLaw:
        alpha, loc, log_scale = map(float, place)
        found = (alpha, self.center + self.unit * loc, self.unit * math.exp(log_scale))
        both = zip(found, self.given, strict=True)
        return symmetric(*(value if own is None else own for value, own in both))


def _standardised(points: np.ndarray, given: tuple[float | None, ...]) -> _Problem:
    low, center, high = np.quantile(points, (0.25, 0.5, 0.75))
    unit = float((high - low) / 2 if given[2] is None else given[2])
    with np.errstate(all="ignore"):
        standard = (points - center) / unit
    if not np.all(np.abs(standard) < LARGEST):
        raise ValueError(
            f"`data` must have a spread that float64 can divide by, got quartiles {low:g} and "
            f"{high:g} for data from {points.min():g} to {points.max():g}. Rescale them."
        )
    return _Problem(standard, given, float(center), unit)


@cache
def _quantile_ratios() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponents, the upper quartile of each, and the 95 % quantile over it, which falls in α."""
    alphas = np.linspace(LOWEST, HIGHEST, 61)
    quartiles, outer = (_law.on_host("ppf", np.full(61, level), alphas) for level in (0.75, 0.95))
    return alphas, quartiles, outer / quartiles


def _starts(problem: _Problem) -> list[np.ndarray]:
    """Where to climb from: the estimate by quantiles, and for few data other α, too."""
    alphas, quartiles, ratios = _quantile_ratios()
    low, below, center, above, high = np.quantile(problem.points, (0.05, 0.25, 0.5, 0.75, 0.95))
    spread = max(float(above - below) / 2, np.finfo(float).tiny)
    # Not at an end: at 2 an outlier makes the likelihood as good as zero.
    found = np.clip(np.interp(-(high - low) / 2 / spread, -ratios, alphas), *START_RANGE)
    others = OTHER_STARTS if problem.points.size < FEW else ()
    wanted = (found, *others) if problem.given[0] is None else (problem.given[0],)
    scales = spread / np.interp(wanted, alphas, quartiles)
    return [
        problem.held((exponent, center, log_scale))
        for exponent, log_scale in zip(wanted, np.log(scales), strict=True)
    ]


class _Climber(NamedTuple):
    """A place on the likelihood: its height, slope, and the sum of the scores' squares."""

    place: np.ndarray
    value: float
    gradient: np.ndarray
    scatter: np.ndarray


def _value(problem: _Problem, place: np.ndarray) -> float:
    alpha, loc, log_scale = place
    standard = (problem.points - loc) * math.exp(-log_scale)
    return float(np.sum(_law.on_host("logpdf", standard, alpha)) - standard.size * log_scale)


def _climber(problem: _Problem, place: np.ndarray) -> _Climber:
    scores = _scores(problem, place)
    return _Climber(place, _value(problem, place), scores.sum(axis=0), scores.T @ scores)


def _scores(problem: _Problem, place: np.ndarray) -> Float[np.ndarray, "datum 3"]:
    alpha, (loc, log_scale) = np.asarray(place[0]), place[1:]
    per_unit = math.exp(-log_scale)
    standard = (problem.points - loc) * per_unit
    with np.errstate(all="ignore"):
        slope = _tabulated.score(np, standard, alpha)
        by_alpha = _tabulated.alpha_score(np, standard, alpha)
    return np.stack([by_alpha, -slope * per_unit, -1 - standard * slope], axis=1)


def _information(problem: _Problem, climber: _Climber) -> np.ndarray:
    """Minus the second derivatives, by differences of the slope."""
    columns = []
    for number in range(3):
        step = np.zeros(3)
        # The cube root of the precision of the slope; α must stay where the law is tabulated.
        step[number] = 1e-4
        ends = [_clipped(climber.place + sign * step) for sign in (1, -1)]
        above, below = (_scores(problem, end).sum(axis=0) for end in ends)
        columns.append((below - above) / (ends[0] - ends[1])[number])
    matrix = np.stack(columns)
    return (matrix + matrix.T) / 2


def _clipped(place: np.ndarray) -> np.ndarray:
    return np.array([min(max(place[0], LOWEST), HIGHEST), *place[1:]])


def _movable(problem: _Problem, climber: _Climber) -> np.ndarray:
    """Parameters that are estimated, and that do not lean against an end of their range."""
    alpha, slope = climber.place[0], climber.gradient[0]
    leans = (alpha >= HIGHEST and slope >= 0) or (alpha <= LOWEST and slope <= 0)
    return problem.is_free & np.array([not leans, True, True])


def _climbed(problem: _Problem, start: np.ndarray) -> _Climber:
    """Uphill: first in the metric of the scores, which needs no curvature, then by Newton's."""
    climber = _climber(problem, start)
    climber = _uphill(problem, climber, lambda at: at.scatter, MOST_STEPS, ROUGHLY)
    return _uphill(
        problem, climber, lambda at: _information(problem, at), MOST_NEWTON_STEPS, FINELY
    )


def _uphill(
    problem: _Problem,
    climber: _Climber,
    metric: Callable[[_Climber], np.ndarray],
    most: int,
    gain: float,
) -> _Climber:
    """Steps in a metric until another one is expected to gain less than `gain` nats."""
    for _ in range(most):
        direction = _direction(problem, climber, metric(climber))
        expected = float(climber.gradient @ direction)
        if not expected > gain:
            break
        higher = _along(problem, climber, direction, expected)
        if higher is None:
            break
        climber = higher
    return climber


def _direction(problem: _Problem, climber: _Climber, metric: np.ndarray) -> np.ndarray:
    """The step; in the metric of the scores where the one that is given is not positive."""
    moves = np.flatnonzero(_movable(problem, climber))
    direction = np.zeros(3)
    if not moves.size:
        return direction
    own = metric[np.ix_(moves, moves)]
    if not _is_positive(own):
        own = climber.scatter[np.ix_(moves, moves)]
    direction[moves] = np.linalg.lstsq(own, climber.gradient[moves], rcond=None)[0]
    return direction


def _is_positive(matrix: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(matrix)) and np.all(np.linalg.eigvalsh(matrix) > 0))


def _along(
    problem: _Problem, climber: _Climber, direction: np.ndarray, expected: float
) -> _Climber | None:
    """The longest of a step, its half, its quarter, … that leads up by what may be expected."""
    length = 1.0
    while length > SHORTEST:
        place = _clipped(climber.place + length * direction)
        if _value(problem, place) > climber.value + SUFFICIENT * length * expected:
            higher = _climber(problem, place)
            if np.all(np.isfinite(higher.scatter)):
                return higher
        length /= 2
    return None


def _finished(problem: _Problem, climber: _Climber) -> StableFit:
    covariance, is_converged = _covariance(problem, climber)
    law, count = problem.law(climber.place), problem.points.size
    units = np.array([1.0, problem.unit, law.scale])
    covariance = covariance * np.outer(units, units)
    errors = StandardErrors(*map(float, np.sqrt(np.diag(covariance))))
    value = climber.value - count * math.log(problem.unit)
    doubts = _doubts(problem, law, is_converged)
    for sentence in doubts:
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)
    notes = (*doubts, *_limits(problem, law, errors))
    return StableFit(law, errors, covariance, value, count, is_converged, notes)


def _covariance(problem: _Problem, climber: _Climber) -> tuple[np.ndarray, bool]:
    """The inverse of the information; whether what is left to climb is nothing."""
    is_estimated = np.outer(problem.is_free, problem.is_free)
    covariance = np.where(is_estimated, np.nan, 0.0)
    moves = np.flatnonzero(_movable(problem, climber))
    if not moves.size:
        return covariance, True
    information = _information(problem, climber)[np.ix_(moves, moves)]
    if not _is_positive(information):
        return covariance, False
    own = np.linalg.inv(information)
    covariance[np.ix_(moves, moves)] = own
    slope = climber.gradient[moves]
    return covariance, bool(slope @ own @ slope < CLOSE**2)


def _doubts(problem: _Problem, law: SymmetricLaw, is_converged: bool) -> list[str]:
    """Why the estimates may be wrong."""
    found = []
    if not is_converged:
        found.append(
            "No maximum of the likelihood was reached: do not use these estimates. Look at the "
            "data: they may have several clusters, or hold few values that repeat."
        )
    if problem.is_free[0] and law.alpha <= LOWEST:
        found.append(
            f"alpha is at {LOWEST:g}, below which the law is not tabulated: that of the data may "
            "be smaller, and the other estimates hold for this one."
        )
    return found


def _limits(problem: _Problem, law: SymmetricLaw, errors: StandardErrors) -> list[str]:
    """What not to make of the standard errors."""
    found = []
    ends = (law.alpha - LOWEST, HIGHEST - law.alpha)
    if problem.is_free[0] and law.alpha >= HIGHEST:
        found.append(
            f"alpha is at {HIGHEST:g}, the end of its range: the tails of the data are no heavier "
            "than normal ones. It has no standard error; the others' hold for a normal law."
        )
    elif problem.is_free[0] and min(ends) < NEAR * errors.alpha:
        found.append(
            "alpha is within two standard errors of the end of its range, where an interval of "
            "them is not to be trusted. Compare the likelihoods of several: fit(data, alpha=...)."
        )
    if problem.points.size < FEW:
        found.append(
            f"There are {problem.points.size} data: below {FEW} the standard errors are too small."
        )
    return found
