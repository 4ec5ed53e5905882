r"""The evidence of a model from its power posteriors: an integral, or a product of ratios."""

import math
from typing import Any, NamedTuple

import numpy as np

from levymc._checks import check_count, check_interval, check_real

POWER = 5  # of the ladder (i/K)^5, dense where the curve is steep
FEWEST_RUNGS = 3
FALSE_ALARM = 1e-4  # of each test, where chains' means are normal
RATIO = 15.0  # an error of order four falls by 16 when the steps are halved: the rest is 1/15
LARGE_SHARE = 0.2  # of the sum of a stone's weights, carried by one draw


class PathEvidence(NamedTuple):
    r"""The log evidence log ∫ L dp of a likelihood L under a prior p.

    value, standard_error: by thermodynamic integration, and over the chains, C of them: of a t law
        with C − 1 degrees of freedom.
    trapezoid: the same without the correction by variances; its distance from `value` is what the
        correction is worth.
    discretisation_error: estimate of what is left after it, from every other rung; NaN where the
        number of intervals is odd or below four.  It is made for pairs of equal intervals: those of
        (i/K)^5 are not, and near β = 0, where they differ most, more may be left than it tells.
    stepping_stones, stepping_stones_error: the other estimate; NaN where log L is only estimated.
    betas, means, standard_errors, variances: the curve E_β[log L] and Var_β[log L], which is its
        slope.
    step_bias, step_bias_error: how far halving the steps of an unadjusted sampler moved `value`,
        which is that of the half steps; about the bias that is left in it, where that is of the
        order of the step.  NaN where nothing was halved.
    change: by how much more the second halves of the chains give than the first.  Where it is
        beyond a few standard errors the chains have not forgotten their starts, and about as much
        may still be missing: the standard error knows nothing of that.
    warnings: what is in doubt, in words.  Tests are at a rate of false alarms of 1e-4 by the t law
        of the chains, so that a few chains hardly ever speak: `change` is called one beyond 6400 of
        its standard errors with two chains, 28 with four, 7.9 with eight and 4.5 with 32.  Silence
        of fewer than eight is no evidence; run them from other starts, too.
    """

    value: float
    standard_error: float
    trapezoid: float
    discretisation_error: float
    stepping_stones: float
    stepping_stones_error: float
    betas: np.ndarray
    means: np.ndarray
    standard_errors: np.ndarray
    variances: np.ndarray
    step_bias: float = math.nan
    step_bias_error: float = math.nan
    change: float = math.nan
    warnings: tuple[str, ...] = ()


def ladder(betas: Any) -> np.ndarray:
    """Powers from 0 to 1: those that are given, or (i/K)^5 of a number K."""
    if np.ndim(betas) == 0:
        count = check_count("betas", betas, "20 is a good beginning.", least=FEWEST_RUNGS - 1)
        return (np.arange(count + 1) / count) ** POWER
    check_interval("betas", betas, 0.0, 1.0, includes_low=True, remedy="From 0 to 1.")
    powers = np.asarray(betas, float)
    is_whole = powers.ndim == 1 and len(powers) >= FEWEST_RUNGS
    if not (is_whole and powers[0] == 0 and powers[-1] == 1 and np.all(np.diff(powers) > 0)):
        raise ValueError(
            f"`betas` must increase from 0 to 1 in at least {FEWEST_RUNGS - 1} steps, got "
            f"{powers.tolist()}. Give a number K instead for (i/K)^{POWER}."
        )
    return powers


def path_evidence(betas: Any, loglikelihoods: Any, noise_variances: Any = None) -> PathEvidence:
    r"""The log evidence from log L at draws of p L^β, for each β of a ladder from 0 to 1:

    .. math:: \log Z = \int_0^1 E_β[\log L]\, dβ ≈ \sum_k \frac{δ_k}{2} (E_k + E_{k-1})
       - \frac{δ_k^2}{12} (V_k - V_{k-1}), \qquad δ_k = β_k - β_{k-1},

    .. math:: \log Z = \sum_k \log E_{β_{k-1}}\bigl[L^{δ_k}\bigr],

    thermodynamic integration, whose rule uses the variances V as slopes, and stepping stones.

    Not valid when: the draws are of other laws, as of a sampler that has not forgotten its start
    (all chains' standard error then says nothing) or has missed a mode, or with a bias of its own.
    Stepping stones are too low on average, by about half the variance of their sum.

    Args:
        betas: from 0, the prior, to 1, the posterior; or K, for (i/K)^5.
        loglikelihoods: log L with all its constants, with the axes (β, chain, draw).
        noise_variances: if these are unbiased estimates of log L, unbiased estimates of the
            variance of each, of the same shape: it is taken from V, and there are no stepping
            stones.

    Returns: `PathEvidence`.

    Raises:
        ValueError, TypeError: an argument outside its range; log L that is not finite.

    Examples:
        One datum y = 1 of N(x, 1), x of N(0, 1): the evidence is N(1; 0, 2).

        >>> import numpy as np, levymc
        >>> betas, random = (np.arange(9) / 8) ** 5, np.random.default_rng(0)
        >>> x = np.stack([random.normal(b / (1 + b), (1 + b) ** -0.5, (8, 500)) for b in betas])
        >>> found = levymc.adapt.path_evidence(betas, -((1 - x) ** 2 + np.log(2 * np.pi)) / 2)
        >>> truth = -(1 / 2 + np.log(4 * np.pi)) / 2
        >>> bool(abs(found.value - truth) < 5 * found.standard_error)
        True
        >>> bool(abs(found.stepping_stones - truth) < 5 * found.stepping_stones_error)
        True

    References: [friel2008] for the ladder, [friel2014] for the rule, [xie2011] for the stones.
    """
    powers = ladder(betas)
    values = _checked(loglikelihoods, len(powers))
    noises = 0.0 if noise_variances is None else _checked_noises(noise_variances, values.shape)
    means = values.mean(axis=2)  # of each rung and chain
    middles = means.mean(axis=1)
    variances = np.mean((values - middles[:, None, None]) ** 2 - noises, axis=2)
    each = corrected(powers, means, variances)
    value, error = map(float, mean_and_error(each))
    coarse = corrected(powers[::2], means[::2], variances[::2]).mean()
    is_even = len(powers) % 2 == 1 and len(powers) > FEWEST_RUNGS + 1
    off = float(abs(coarse - value)) / RATIO if is_even else math.nan
    stones: tuple[float, float] = (math.nan, math.nan)
    notes: list[str] = []
    if noise_variances is None:
        stones, notes = _stepping_stones(powers, values)
    change, memory = _change(powers, values)
    notes += [*memory, *_doubts(powers, values, off, error)]
    return PathEvidence(
        value,
        error,
        float(corrected(powers, means, 0 * variances).mean()),
        off,
        *stones,
        powers,
        middles,
        mean_and_error(means.T)[1],
        variances.mean(axis=1),
        change=change,
        warnings=tuple(notes),
    )


def _checked(loglikelihoods: Any, wanted: int) -> np.ndarray:
    values = np.asarray(loglikelihoods, np.float64)
    if values.ndim != 3 or len(values) != wanted or min(values.shape[1:]) < 2:
        raise ValueError(
            f"`loglikelihoods` must have the axes (β, chain, draw), {wanted} powers and at least "
            f"two chains of two draws, got shape {values.shape}. Run more chains, or longer."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"`loglikelihoods` must be finite, got {values[~np.isfinite(values)][0]}. Where the "
            "prior reaches what the data exclude, its mean is infinite: begin with a prior on what "
            "they allow, or with levymc.adapt.log_evidence of posterior draws."
        )
    return values


def _checked_noises(variances: Any, shape: tuple[int, ...]) -> np.ndarray:
    remedy = "Give the estimated variance of each of `loglikelihoods`."
    check_real("noise_variances", variances, remedy)
    noises = np.asarray(variances, np.float64)
    if noises.shape != shape:
        raise ValueError(
            f"`noise_variances` must have the shape {shape} of `loglikelihoods`, got "
            f"{noises.shape}. {remedy}"
        )
    if np.any(noises < 0):
        raise ValueError(f"`noise_variances` must not be negative, got {noises.min()}. {remedy}")
    return noises


def corrected(powers: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The trapezoidal rule with its correction by slopes, along the first axis."""
    widths = np.diff(powers)
    heights = (means[1:] + means[:-1]) / 2
    return (
        np.tensordot(widths, heights, 1)
        - np.tensordot(widths**2, np.diff(variances, axis=0), 1) / 12
    )


def mean_and_error(each: np.ndarray) -> tuple[Any, Any]:
    """Over independent chains, along the first axis."""
    return each.mean(axis=0), each.std(axis=0, ddof=1) / math.sqrt(len(each))


def t_quantile(tail: float, num_chains: int) -> float:
    """Above which a mean over chains is, in its standard errors, with this probability."""
    from scipy import special  # only here, as it takes a third of a second

    return float(-special.stdtrit(num_chains - 1, tail))


def _stepping_stones(powers: np.ndarray, values: np.ndarray) -> tuple[Any, list[str]]:
    """The sum, its standard error over chains, and what is in doubt."""
    widths = np.diff(powers)[:, None, None]
    logs = widths * values[:-1]
    largest = logs.max(axis=(1, 2), keepdims=True)
    weights = np.exp(logs - largest)
    totals = weights.mean(axis=(1, 2), keepdims=True)
    value = float(np.sum(largest + np.log(totals)))
    _, error = mean_and_error(np.sum(weights.mean(axis=2, keepdims=True) / totals, axis=(0, 2)))
    share = float(np.max(weights / weights.sum(axis=(1, 2), keepdims=True)))
    notes = []
    if share > LARGE_SHARE:
        notes.append(
            f"One draw carries {share:.0%} of a stepping stone: its standard error is not to be "
            "trusted. Take more rungs or draws, or thermodynamic integration."
        )
    return (value, float(error)), notes


def _change(powers: np.ndarray, values: np.ndarray) -> tuple[float, list[str]]:
    """How much more the second halves of the chains give than the first, and whether that tells."""
    half = values.shape[2] // 2
    gain = values[:, :, -half:].mean(axis=2) - values[:, :, :half].mean(axis=2)
    change, spread = map(float, mean_and_error(corrected(powers, gain, np.zeros_like(gain))))
    if abs(change) <= t_quantile(FALSE_ALARM / 2, values.shape[1]) * spread:
        return change, []
    return change, [
        f"The second halves of the chains give {change:+.3g} more than the first: they have "
        "not forgotten their starts. Take a longer burn-in, or start nearer."
    ]


def _doubts(powers: np.ndarray, values: np.ndarray, off: float, error: float) -> list[str]:
    """What the draws themselves tell against the estimate."""
    notes, means = [], values.mean(axis=2)
    num_chains = means.shape[1]
    steps, errors = mean_and_error(np.diff(means, axis=0).T)
    if np.any(steps < -t_quantile(FALSE_ALARM / len(steps), num_chains) * errors):
        rung = int(np.argmin(steps / np.maximum(errors, 1e-300)))
        notes.append(
            f"The mean of log L falls from β = {powers[rung]:.3g} to {powers[rung + 1]:.3g}, and "
            "it can only rise: some chains are stuck, or biased."
        )
    if off > max(error, 1e-12):
        notes.append(
            f"The rule between rungs is off by about {off:.2g}, more than the standard error of "
            f"{error:.2g}. Take more rungs."
        )
    return notes
