r"""How far the leading term b̂ is from the centred differences b̃: Corollary 2 and Table 1."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import (
    check_alpha,
    check_count,
    check_one_number,
    check_positive,
    check_real,
    check_scalar_output,
)
from levymc.drifts import LogDensity
from levymc.riesz import unchecked_coefficients

from ._line import compiled

PAPER_SPACING, PAPER_TERMS = 0.06, 170  # h and K* of Table 1


class Sums(NamedTuple):
    """Centred differences at points, over φ(x) and in units in which none overflows.

    partial: Σ_{|k| ≤ K} g_k f(x - kh) for K = 0, 1, …, along the last axis.
    log_terms: log |f(x - kh)| for k = 0, 1, …, the larger of both sides, φ as it is given.
    """

    partial: np.ndarray
    log_terms: np.ndarray


class LeadingTermBound(NamedTuple):
    """Corollary 2 at points x, arrays of the same length.

    radius: r(x), the spacing at which b̃ would be b̂.
    num_terms: K_x, NaN where none is large enough.
    bound: r² + 1/(r K_x), up to a constant that the paper leaves open; inf where it bounds nothing.
    """

    points: np.ndarray
    radius: np.ndarray
    num_terms: np.ndarray
    bound: np.ndarray

    @property
    def worst_point(self) -> float:
        """x*, among the points."""
        return float(self.points[np.argmax(self.bound)])

    @property
    def worst_bound(self) -> float:
        """The bound at x*, which is that of the weak error of FLA."""
        return float(np.max(self.bound))


def leading_term_bound(
    logdensity_fn: LogDensity,
    alpha: float,
    points: Any,
    *,
    spacing: float = PAPER_SPACING,
    num_terms: int | None = None,
    most_terms: int = 1000,
    constant: float | None = None,
) -> LeadingTermBound:
    r"""Corollary 2, how far b̂ is from b: up to a constant r²(x) + 1/(r(x) K_x), γ = α - 2, where

    .. math::
       r(x) = \Bigl| 1 + \sum_{0 < |k| ≤ K_x}
       \frac{g_{γ,k}\, f(x - kh)}{g_{γ,0}\, f(x)} \Bigr|^{1/γ}, \qquad f = -φ\, ∂U,

    and K_x is the least K that makes H4 true: |f(x - kh)| ≤ C e^{-|k|h} for all |k| > K.

    Not valid when: the target fails H3 or H4.  r is zero where b̂ is zero and the sum is not, and
    infinite the other way round: near such points, which every mode without symmetry has, the
    corollary bounds nothing.

    Args:
        logdensity_fn: log φ up to a constant, of one number.
        alpha: in (1, 2).
        points: where, finite numbers.
        spacing: h > 0.
        num_terms: K_x, the same for all points, instead of the least; it is not tested.
        most_terms: H4 is looked at for |k| up to this; a K_x that is not below it is none.
        constant: C, for φ as it is given; by default the largest |f| that is met, so that a
            constant factor of φ changes nothing.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import numpy as np
        >>> from levymc import targets, theory
        >>> found = theory.leading_term_bound(targets.double_well, 1.7, np.array([-5.0, -3.0]))
        >>> found.radius.shape, bool(np.all(found.num_terms < 200))
        ((2,), True)

    References: [simsekli2017], Corollary 2.  Departures: C and the least K_x are left open there.
    Its proof puts r in the place of h before the sum only: f is still taken at distances of h.
    """
    x = _checked_points(logdensity_fn, alpha, points, spacing)
    if num_terms is not None:
        count = check_count("num_terms", num_terms, "It is K_x.")
        sums = _sums(logdensity_fn, alpha, x, spacing, count)
        kept = np.full(x.shape, count)
        is_found = np.ones(x.shape, bool)
    else:
        most = check_count("most_terms", most_terms, "It is the largest k.", least=2)
        sums = _sums(logdensity_fn, alpha, x, spacing, most)
        kept = _least_terms(sums.log_terms, spacing, constant)
        is_found = kept < most
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = sums.partial[np.arange(x.size), kept] / sums.partial[:, 0]
        radius = np.where(is_found, np.abs(ratio) ** (1 / (alpha - 2)), np.nan)
        bound = radius**2 + 1 / (radius * kept)
    bound = np.where(np.isnan(bound), np.inf, bound)
    return LeadingTermBound(x, radius, np.where(is_found, kept, np.nan), bound)


def kappa_hat(
    logdensity_fn: LogDensity,
    alpha: float,
    points: Any,
    *,
    spacing: float = PAPER_SPACING,
    num_terms: int = PAPER_TERMS,
) -> float:
    r"""κ̂(α) of Table 1: the terms after which b̃ is as far off as b̂, in the mean over points:

    .. math:: \hat κ(α) = \operatorname{mean}_x \operatorname*{argmin}_{1 ≤ K ≤ K^*}
       \Bigl|\, |\tilde b_{h,K} - \tilde b_{h,K^*}| - |\hat b - \tilde b_{h,K^*}|\, \Bigr| .

    It measures agreement with a truncated sum, and not accuracy: on the double well, where it is 7
    to 19, the median relative error of b̂ is 80 to 100 %.

    Args:
        logdensity_fn: log φ up to a constant, of one number.
        alpha: in (1, 2).
        points: x, finite numbers.
        spacing: h > 0.
        num_terms: K*.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import numpy as np
        >>> from levymc import targets, theory
        >>> round(theory.kappa_hat(targets.double_well, 1.9, np.linspace(-5, 5, 201)), 1)
        7.0

    References: [simsekli2017], Table 1.  Departures: its numbers come out with 201 points; the text
    speaks of 200.
    """
    x = _checked_points(logdensity_fn, alpha, points, spacing)
    count = check_count("num_terms", num_terms, "It is K*, of the sum that is the reference.")
    partial = _sums(logdensity_fn, alpha, x, spacing, count).partial
    reference = partial[:, -1:]
    leading = partial[:, :1] * spacing ** (alpha - 2)
    errors, distance = np.abs(partial[:, 1:] - reference), np.abs(leading - reference)
    return float(np.mean(1 + np.argmin(np.abs(errors - distance), axis=1)))


def _checked_points(logdensity_fn: LogDensity, alpha: Any, points: Any, spacing: Any) -> np.ndarray:
    check_alpha(alpha)
    check_one_number("alpha", alpha, "Ask for one after the other.")
    if alpha == 2:
        raise ValueError("`alpha` must lie in (1, 2), got 2. There the leading term is the drift.")
    check_positive("spacing", spacing, "It is h, the distance between the points of the sum.")
    check_scalar_output("logdensity_fn", logdensity_fn, jnp.zeros(()))
    check_real("points", points, "Give the numbers x at which to look.")
    return np.atleast_1d(np.asarray(points, np.float64)).ravel()


def _sums(
    logdensity_fn: LogDensity, alpha: float, x: np.ndarray, spacing: float, count: int
) -> Sums:
    k = np.arange(-count, count + 1)
    places = x[:, None] - spacing * k
    values, slopes = compiled(jax.value_and_grad(logdensity_fn))(places.ravel())
    values, slopes = values.reshape(places.shape), slopes.reshape(places.shape)
    slopes = np.where(np.isneginf(values), 0.0, slopes)
    terms = slopes * np.exp(values - values.max(axis=1, keepdims=True))
    weights = unchecked_coefficients(np.float64(alpha - 2), count)
    pairs = weights[1:] * (terms[:, count + 1 :] + terms[:, :count][:, ::-1])
    leading = weights[0] * terms[:, count, None]
    with np.errstate(divide="ignore"):
        logs = values + np.log(np.abs(slopes))
    return Sums(
        np.concatenate([leading, leading + np.cumsum(pairs, axis=1)], axis=1),
        np.maximum(logs[:, count:], logs[:, count::-1]),
    )


def _least_terms(log_terms: np.ndarray, spacing: float, constant: float | None) -> np.ndarray:
    """The least K ≥ 1 with |f(x - kh)| ≤ C e^{-|k|h} for all larger |k| that were looked at."""
    if constant is not None:
        check_positive("constant", constant, "It is C of H4.")
    log_constant = np.max(log_terms) if constant is None else np.log(constant)
    k = np.arange(log_terms.shape[1])
    is_above = log_terms > log_constant - spacing * k
    return np.maximum(1, np.max(np.where(is_above, k, 0), axis=1))
