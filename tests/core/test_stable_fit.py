"""`stable.fit`: a maximum of the likelihood, with honest errors, or a reason why not."""

import numpy as np
import pytest
from scipy import stats
from tests.bounds import binomial_range

import levymc
from levymc import stable
from levymc.stable import _tabulated
from levymc.stable._fit import StandardErrors

ALPHAS = (0.6, 1.0, 1.5, 1.9)


def draws(alpha, count, seed=0, loc=3.0, scale=2.0):
    """By another library's transform: one wrong idea of the law cannot hide in two places."""
    generator = np.random.default_rng(seed)
    return stats.levy_stable.rvs(alpha, 0.0, loc, scale, count, random_state=generator)


def log_likelihood(data, alpha, loc, scale):
    return float(np.sum(stable.symmetric(alpha, loc, scale).logpdf(data)))


@pytest.mark.parametrize("alpha", [0.5, 0.63, 1.0, 1.3, 1.9, 2.0])
def test_the_slope_in_alpha_is_that_of_the_density(alpha):
    """At the edges of the table's bands, at both ends of its range, and far out, too."""
    x = np.array([0.0, 1e-3, 0.3, 1.0, 4.0, 16.0, 1e4])
    inside = np.clip(alpha, 0.5 + 1e-4, 2.0 - 1e-4)
    if alpha == 2.0:
        x = x[:5]  # beyond, the density is not smooth in α there
    found = _tabulated.alpha_score(np, x, np.asarray(inside))
    above, below = (_tabulated.logpdf(np, x, np.asarray(inside + shift)) for shift in (1e-6, -1e-6))
    np.testing.assert_allclose(found, (above - below) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_place_beside_it_is_more_likely(alpha):
    data = draws(alpha, 2000)
    found = stable.fit(data)
    assert found.is_converged
    assert found.warnings == ()
    at_maximum = log_likelihood(data, found.alpha, found.loc, found.scale)
    assert found.log_likelihood == pytest.approx(at_maximum, rel=1e-12)
    for number, error in enumerate(found.standard_errors):
        for side in (-1, 1):
            place = np.array([found.alpha, found.loc, found.scale])
            place[number] += side * error / 10
            assert log_likelihood(data, *place) < at_maximum


@pytest.mark.parametrize("alpha", ALPHAS)
def test_estimates_are_near_the_truth(alpha):
    """False alarm below 1e-6 for normal estimates: five and a half standard errors, four times
    three of them.  Detects a bias of 0.05 in α at 1.5, and errors that are much too small."""
    found = stable.fit(draws(alpha, 10_000))
    for name, truth in (("alpha", alpha), ("loc", 3.0), ("scale", 2.0)):
        error = getattr(found.standard_errors, name)
        assert abs(getattr(found, name) - truth) < 5.5 * error
    assert found.standard_errors.alpha < 0.03


def test_cauchy_errors_are_those_of_theory():
    """The information of the Cauchy law on location and log scale is 1/2 a datum, each in its
    unit; with α = 1 held, errors are σ√(2/n) to within their own, n^{-1/2}, here to 6 of these."""
    found = stable.fit(draws(1.0, 20_000), alpha=1.0)
    expected = found.scale * (2 / 20_000) ** 0.5
    assert found.standard_errors == pytest.approx((0.0, expected, expected), rel=6 / 20_000**0.5)
    assert found.alpha == 1.0


def test_normal_data_lie_at_the_end_of_the_range():
    """Of a sample that is thinner in its tails than a normal one, so that it is no matter of luck:
    location and scale are mean and standard deviation then, with their errors."""
    data = 3.0 + 2.0 * stats.norm.ppf((np.arange(1000) + 0.5) / 1000)
    found = stable.fit(data)
    assert found.is_converged
    assert found.alpha == 2.0
    assert found.loc == pytest.approx(3.0, abs=1e-6)
    assert found.scale * 2**0.5 == pytest.approx(np.std(data), rel=1e-6)
    assert np.isnan(found.standard_errors.alpha)
    assert found.standard_errors.loc == pytest.approx(np.std(data) / 1000**0.5, rel=1e-4)
    assert found.standard_errors.scale == pytest.approx(found.scale / 2000**0.5, rel=1e-4)
    assert ["alpha is at 2" in sentence for sentence in found.warnings] == [True]


def test_an_outlier_among_normal_data_is_no_trouble():
    """At α = 2, where the search may begin, its density is e^-1000000."""
    data = np.append(stats.norm.ppf((np.arange(500) + 0.5) / 500), 2000.0)
    found = stable.fit(data)
    assert found.is_converged
    assert 1.8 < found.alpha < 2.0
    assert abs(found.loc) < 0.1


def test_alpha_below_the_range_is_flagged():
    with pytest.warns(RuntimeWarning, match="alpha is at 0.5, below which the law is not"):
        found = stable.fit(draws(0.35, 2000))
    assert found.alpha == 0.5
    assert found.warnings
    assert "alpha is at 0.5" in repr(found)


def test_few_data_and_the_neighbourhood_of_an_end_are_flagged():
    found = stable.fit(draws(1.9, 50, seed=4))
    assert any("There are 50 data" in sentence for sentence in found.warnings)
    near = stable.fit(draws(1.99, 300, seed=3))
    assert any("end of its range" in sentence for sentence in near.warnings)


def test_what_does_not_converge_is_flagged(monkeypatch):
    monkeypatch.setattr("levymc.stable._fit.MOST_STEPS", 1)
    monkeypatch.setattr("levymc.stable._fit.MOST_NEWTON_STEPS", 0)
    with pytest.warns(RuntimeWarning, match="No maximum of the likelihood was reached"):
        found = stable.fit(draws(1.5, 300))
    assert not found.is_converged


def test_parameters_can_be_held():
    data = draws(1.5, 2000)
    held = {"alpha": 1.4, "loc": 3.1, "scale": 1.9}
    for name, value in held.items():
        found = stable.fit(data, **{name: value})
        assert getattr(found, name) == value
        assert getattr(found.standard_errors, name) == 0.0
        assert found.is_converged
        errors = found.standard_errors
        others = [error for other, error in zip(held, errors, strict=True) if other != name]
        assert min(others) > 0
        assert found.log_likelihood < stable.fit(data).log_likelihood
    nothing = stable.fit(data, **held)
    assert nothing.log_likelihood == pytest.approx(log_likelihood(data, 1.4, 3.1, 1.9))
    assert nothing.standard_errors == StandardErrors(0.0, 0.0, 0.0)


def test_units_do_not_matter():
    data = draws(1.5, 1000)
    plain = stable.fit(data)
    for unit in (1e-150, 1e150):
        found = stable.fit(unit * data)
        assert found.alpha == pytest.approx(plain.alpha, abs=1e-6)
        assert found.scale / unit == pytest.approx(plain.scale, rel=1e-6)
        ratio = np.divide(found.standard_errors, plain.standard_errors)
        np.testing.assert_allclose(ratio, [1, unit, unit], rtol=1e-4)


def test_shapes_kinds_and_the_law_s_own_method():
    data = draws(1.5, 200)
    expected = stable.fit(data)
    assert stable.fit(data.reshape(2, 100)).alpha == expected.alpha
    assert stable.fit(levymc.stable.symmetric(1.1).fit(list(data)).law.rvs(200, 0)).num_data == 200
    assert stable.fit(data.astype(np.float32)).alpha == pytest.approx(expected.alpha, abs=1e-4)
    assert stable.fit(np.round(data * 4).astype(int)).is_converged


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stable.fit([]), "`data` must hold numbers, got none. Give"),
        (lambda: stable.fit([1.0, np.nan, 2.0]), "`data` must be finite, got nan.* Remove"),
        (lambda: stable.fit(np.array([1.0, np.inf])), "`data` must be finite, got inf at index 1"),
        (lambda: stable.fit(["a"]), "`data` must be real, got 'a'"),
        (lambda: stable.fit([1.0, 2.0, 4.0]), "`data` must have less than 0.333 .* got 1 of 3 at"),
        (lambda: stable.fit(np.full(100, 7.0)), "`data` must have less .* got 100 of 100 at 7: "),
        (
            lambda: stable.fit([0.0] * 40 + list(range(60)), alpha=0.6),
            "`data` must have less than 0.375 of its values equal, got 41 of 100 at 0",
        ),
        (lambda: stable.fit([1.0, 2.0], alpha=3), r"`alpha` must lie in \[0.5, 2\], got 3. The"),
        (lambda: stable.fit([1.0, 2.0], scale=0), "`scale` must be positive and finite, got 0. Gi"),
        (lambda: stable.fit([1.0, 2.0], loc=np.inf), "`loc` must be finite, got inf. Give"),
        (lambda: stable.fit([1.0, 2.0], loc=np.ones(2)), "`loc` must be one number, got an array"),
        (
            lambda: stable.fit(np.array([-1.7e308, -1.0, 0.0, 1.0, 1.7e308, 2.0, 3.0]) * 1e-310),
            "`data` must have a spread that float64 can divide by, got .* Rescale",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


def test_equal_data_do_no_harm_where_the_scale_is_held():
    found = stable.fit(np.full(100, 7.0), alpha=1.5, scale=1.0)
    assert found.loc == pytest.approx(7.0)
    assert found.is_converged


@pytest.mark.nightly
@pytest.mark.parametrize("alpha", [0.6, 0.8, 1.0, 1.3, 1.6, 1.8])
def test_bias_and_coverage(alpha):
    """500 sets of 1000 data.  Intervals of 1.96 standard errors must cover the truth in 0.95 of
    them: false alarm 1e-7 each (exact binomial), detects a coverage below 0.80.
    The mean of the estimates must be within 6 of its standard errors of the truth, and what is of
    the order 1/n (a tenth of a standard error): false alarm 1e-8 each, by normality; detects a bias
    of 0.6 of the standard error of one estimate."""
    count = 500
    truth = np.array([alpha, 3.0, 2.0])
    data = draws(alpha, (count, 1000), seed=int(10 * alpha))
    fits = [stable.fit(one) for one in data]
    assert all(found.is_converged for found in fits)
    estimates = np.array([[found.alpha, found.loc, found.scale] for found in fits])
    standard = (estimates - truth) / np.array([found.standard_errors for found in fits])
    fewest, most = binomial_range(count, 0.95, 1e-7)
    for covered in np.sum(np.abs(standard) < 1.959964, axis=0):
        assert fewest <= covered <= most
    bias = (estimates.mean(axis=0) - truth) / estimates.std(axis=0)
    assert np.all(np.abs(bias) < 6 / count**0.5 + 0.1)
