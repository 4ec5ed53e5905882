"""What is measured of an outcome: errors against the truth, and how much the draws are worth."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .peers import Outcome
from .problems import LEVELS, Problem

FEWEST_DRAWS = 8  # of a chain: with fewer nothing can be said of its worth
MOST_DRAWS = 100_000  # from which errors of marginals, and the worst coordinates, are seen
LOOKED_AT = 3  # coordinates of the smallest bulk sizes, and of the smallest tail sizes


@dataclass(frozen=True)
class Measures:
    """NaN wherever something does not apply.

    total_variation: of the weights of the modes, the mean over the ways to tell them apart.
    floor: its mean for as many independent draws as the budget has evaluations.
    kolmogorov: largest distance of a marginal's distribution function from the truth, over the
        line where that is known, else at the reference quantiles.
    quantile_error: largest error of a quantile at `LEVELS`, in robust standard deviations.
    bulk, tail: effective sample size per 1000 evaluations, of the worst coordinate.
    rhat: the largest, rank-normalised.
    z_weights, z_marginals: root mean square of error over standard error: the stated ones of the
        weights where the sampler states them, else those that the draws give.  Not the largest:
        that of 40 ratios is beyond two for nearly every sampler whose errors are right, while their
        root mean square is near √(7/5), eight independent systems being seven degrees of freedom.
    z_evidence: error of the log evidence over its stated standard error.
    """

    total_variation: float
    floor: float
    kolmogorov: float
    quantile_error: float
    bulk: float
    tail: float
    rhat: float
    z_weights: float
    z_marginals: float
    z_evidence: float


def measure(problem: Problem, outcome: Outcome, budget: int) -> Measures:
    """All of it."""
    flat = outcome.positions.reshape(-1, problem.dimension)
    bulk, tail, rhat = effective(outcome)
    distances, errors = _marginal_errors(problem, flat)
    return Measures(
        total_variation=total_variation(problem, flat),
        floor=floor(problem, budget),
        kolmogorov=max(distances, default=math.nan),
        quantile_error=max(errors, default=math.nan),
        bulk=bulk,
        tail=tail,
        rhat=rhat,
        z_weights=z_weights(problem, outcome),
        z_marginals=z_marginals(problem, outcome),
        z_evidence=z_evidence(problem, outcome),
    )


def total_variation(problem: Problem, positions: np.ndarray) -> float:
    """½ Σ |share - weight|, the mean over the ways to tell the modes apart."""
    if problem.mode_of is None:
        return math.nan
    labels = problem.mode_of(positions)
    return float(
        np.mean(
            [
                np.abs(_shares(labels[:, way], len(weights)) - weights).sum() / 2
                for way, weights in enumerate(problem.truth.weights)
            ]
        )
    )


def _shares(labels: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(labels, minlength=count) / labels.size


def floor(problem: Problem, budget: int) -> float:
    """The mean of the total variation for `budget` independent draws: E|N(0, s)| = s √(2/π)."""
    if problem.mode_of is None:
        return math.nan
    spreads = [np.sqrt(w * (1 - w) / budget).sum() for w in problem.truth.weights]
    return float(np.mean(spreads) / 2 * math.sqrt(2 / math.pi))


def _marginal_errors(problem: Problem, positions: np.ndarray) -> tuple[list[float], list[float]]:
    """For each marginal the Kolmogorov distance and the largest error of a quantile."""
    distances, errors = [], []
    for marginal in problem.truth.marginals:
        values = np.sort(marginal.of(positions))
        if marginal.cdf is not None:
            levels, steps = marginal.cdf(values), np.arange(values.size + 1) / values.size
            distance = max(np.max(steps[1:] - levels), np.max(levels - steps[:-1]))
        else:
            below = np.searchsorted(values, marginal.quantiles, side="right") / values.size
            distance = np.max(np.abs(below - LEVELS))
        distances.append(float(distance))
        found = np.quantile(values, LEVELS)
        errors.append(float(np.max(np.abs(found - marginal.quantiles)) / marginal.scale))
    return distances, errors


def _thinned(positions: np.ndarray) -> np.ndarray:
    """At most `MOST_DRAWS` draws, evenly."""
    chains, draws = positions.shape[:2]
    step = max(1, -(-chains * draws // MOST_DRAWS))
    return positions[:, ::step]


def effective(outcome: Outcome) -> tuple[float, float, float]:
    """Bulk and tail size per 1000 evaluations, and R̂; of the worst coordinate.

    Which coordinates are the worst is seen from a part of the draws; their sizes are those of all
    draws: nearly independent ones, thinned, would be worth no more than are left of them.
    """
    if not outcome.is_chain or outcome.positions.shape[1] < FEWEST_DRAWS:
        return math.nan, math.nan, math.nan
    import arviz

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that never moved; their numbers say so
        draws = _thinned(outcome.positions)
        first = np.array([_sizes(draws[:, :, index]) for index in range(draws.shape[2])])
        looked = np.unique(np.argsort(_known(first), axis=0)[:LOOKED_AT])
        sizes = first[looked]
        if len(draws[0]) < outcome.positions.shape[1]:
            sizes = np.array([_sizes(outcome.positions[:, :, index]) for index in looked])
        rhat = math.nan
        if len(draws) > 1:
            each = [arviz.rhat(np.ascontiguousarray(one)) for one in np.moveaxis(draws, -1, 0)]
            rhat = np.max(each)
    bulk, tail = _known(sizes).min(axis=0) * 1000 / outcome.evaluations
    return float(bulk), float(tail), float(rhat)


def _sizes(one: np.ndarray) -> tuple[float, float]:
    """Bulk and tail size of draws of a coordinate, of shape (chain, draw)."""
    import arviz

    one = np.ascontiguousarray(one)
    bulk = arviz.ess(one, method="bulk")
    return float(bulk), float(arviz.ess(one, method="tail", prob=(0.05, 0.95)))


def _known(sizes: np.ndarray) -> np.ndarray:
    """A coordinate that never moved is worth nothing."""
    return np.where(np.isfinite(sizes), sizes, 0.0)


def _standard_error(indicator: np.ndarray) -> float:
    """Of the mean of a function of the draws, of shape (chain, draw), by its effective size."""
    import arviz

    if indicator.shape[1] < FEWEST_DRAWS:
        return math.nan
    if np.all(indicator == indicator.flat[0]):
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        size = float(arviz.ess(indicator, method="mean"))
    return float(np.std(indicator) / math.sqrt(max(size, 1.0)))


def z_weights(problem: Problem, outcome: Outcome) -> float:
    """Root mean square over the modes of error / standard error."""
    if problem.mode_of is None or not outcome.is_chain:
        return math.nan
    stated = _stated_weights(problem, outcome)
    if stated is not None:
        return _root_mean_square(*stated)
    draws = _thinned(outcome.positions)
    labels = problem.mode_of(draws.reshape(-1, problem.dimension))
    errors, scales = [], []
    for way, weights in enumerate(problem.truth.weights):
        own = labels[:, way].reshape(draws.shape[:2])
        for mode, weight in enumerate(weights):
            indicator = (own == mode).astype(float)
            errors.append(indicator.mean() - weight)
            scales.append(_standard_error(indicator))
    return _root_mean_square(np.array(errors), np.array(scales))


def _stated_weights(problem: Problem, outcome: Outcome) -> tuple[np.ndarray, np.ndarray] | None:
    """Errors and standard errors of the weights that the sampler itself reports.

    Its modes are told apart by where they lie.  Where one of ours is one of theirs, weight and
    standard error are the stated ones.  Where several of theirs make up one of ours, as the arcs of
    a ring do, their errors go together, so that the stated ones cannot be added as if they were
    independent: the share of the draws is taken, with its spread over the chains, which is how the
    sampler finds its own.  Where there is none, the sampler is sure that there is no such mode.
    """
    modes = outcome.modes
    if modes is None or problem.mode_of is None or len(problem.truth.weights) > 1:
        return None
    groups = problem.truth.groups
    weights = np.bincount(groups, problem.truth.weights[0])
    labels = groups[problem.mode_of(modes.location)[:, 0]]
    counts = np.bincount(labels, minlength=len(weights))
    found = np.bincount(labels, modes.weight, minlength=len(weights))
    scales = np.bincount(labels, modes.standard_error, minlength=len(weights))
    if np.any(counts > 1):
        shares, spreads = _shares_of_chains(problem, outcome, len(weights))
        found, scales = np.where(counts > 1, (shares, spreads), (found, scales))
    return found - weights, scales


def _shares_of_chains(
    problem: Problem, outcome: Outcome, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of each group of modes the share of the draws, and its standard error over the chains."""
    assert problem.mode_of is not None
    labels = [problem.truth.groups[problem.mode_of(one)[:, 0]] for one in outcome.positions]
    each = np.stack([_shares(one, count) for one in labels])
    return each.mean(axis=0), each.std(axis=0, ddof=1) / math.sqrt(len(each))


def _root_mean_square(errors: np.ndarray, scales: np.ndarray) -> float:
    """Of the ratios; an error where none is stated counts as infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(np.abs(errors) > 0, np.abs(errors) / scales, 0.0)
    return float(np.sqrt(np.mean(ratios**2)))


def z_marginals(problem: Problem, outcome: Outcome) -> float:
    """Root mean square over marginals and levels of the error of P(X ≤ quantile)."""
    marginals = problem.truth.marginals
    if not marginals or not outcome.is_chain:
        return math.nan
    draws = _thinned(outcome.positions)
    flat = draws.reshape(-1, problem.dimension)
    ratios = []
    for marginal in marginals:
        values = marginal.of(flat).reshape(draws.shape[:2])
        density = _density(marginal.quantiles)
        for level, quantile, error, height in zip(
            LEVELS, marginal.quantiles, marginal.errors, density, strict=True
        ):
            indicator = (values <= quantile).astype(float)
            scale = math.hypot(_standard_error(indicator), height * error)
            gap = abs(indicator.mean() - level)
            ratios.append(gap / scale if scale else math.inf)
    return float(np.sqrt(np.mean(np.square(ratios))))


def _density(quantiles: np.ndarray) -> np.ndarray:
    """Roughly, at the quantiles: what turns an error of theirs into one of a probability."""
    return np.gradient(np.array(LEVELS), quantiles)


def z_evidence(problem: Problem, outcome: Outcome) -> float:
    if outcome.log_evidence is None or not math.isfinite(problem.truth.log_evidence):
        return math.nan
    value, error = outcome.log_evidence
    return abs(value - problem.truth.log_evidence) / error if error else math.inf


def as_row(measures: Measures) -> dict[str, Any]:
    return {name: float(value) for name, value in vars(measures).items()}
