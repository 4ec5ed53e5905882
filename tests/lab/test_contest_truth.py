"""The truth of the contest's problems: symmetries, and quadrature over the right densities."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from levymc_lab.contest import problems
from levymc_lab.contest.problems import _grids, _hard, _heavy, _light, _posteriordb, _posteriors

pytestmark = pytest.mark.nightly  # a test of the problems; the contest's own are daily


def test_label_switching_does_not_change_the_density():
    for name in ("label-switching", "galaxies"):
        problem = problems.get(name)
        point = np.asarray(problem.starts(jax.random.key(2), 1))[0]
        copies = np.stack(
            [point.reshape(3, 3)[:, order].ravel() for order in itertools.permutations(range(3))]
        )
        values = jax.vmap(problem.logdensity_fn)(copies)
        np.testing.assert_allclose(values, values[0], rtol=1e-12)
        assert sorted(problem.mode_of(copies)[:, 0]) == list(range(6))


def test_the_galaxies_are_those_of_roeder():
    data = _posteriors.GALAXIES
    assert data.size == 82
    assert np.all(np.diff(data) > 0)
    assert data.mean() == pytest.approx(20.8315, abs=1e-4)


def test_units_of_the_network_may_change_sign_and_place():
    problem = problems.get("network-5")
    point = np.random.default_rng(0).normal(size=16)
    signs = np.tile(np.array([1, -1, 1, -1, -1]), 3)
    flipped = np.append(point[:15] * signs, point[15])
    places = np.array([3, 0, 4, 2, 1])
    moved = np.append(point[:15].reshape(3, 5)[:, places].ravel(), point[15])
    values = jax.vmap(problem.logdensity_fn)(np.stack([point, flipped, moved]))
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    first, second, third = problem.mode_of(np.stack([point, flipped, moved]))
    np.testing.assert_array_equal(first[:5] ^ second[:5], (signs[:5] < 0).astype(int))
    assert places[third[5]] == first[5]


def test_groups_of_sensors_may_be_mirrored():
    problem = problems.get("sensors")
    point = np.random.default_rng(1).normal(0.5, 0.3, 8)
    mirrors = [
        np.ones(8),
        np.array([1, -1, 1, -1, 1, 1, 1, 1.0]),
        np.array([1, 1] * 2 + [1, -1] * 2),
    ]
    values = jax.vmap(problem.logdensity_fn)(point * np.stack(mirrors))
    np.testing.assert_allclose(values, values[0], rtol=1e-10)
    assert len(set(problem.mode_of(point * np.stack(mirrors))[:, 0])) == 3
    heard = problem.logdensity_fn.__self__.links[2]
    assert 4 <= heard.sum() < heard.size  # some distances, but not all, are known


@pytest.mark.parametrize("is_centred", [True, False])
def test_the_schools_evidence_is_that_of_the_joint_density(is_centred):
    """log p(y, μ, τ, θ) - log p(θ | μ, τ, y) - log p(μ | τ, y) = log p(y, τ), at any point."""
    mean, log_scale = 2.0, 0.7
    theta = np.linspace(-3, 9, 8)
    tau2, sigma2 = math.exp(2 * log_scale), _hard.EFFECT_ERRORS**2
    z = (theta - mean) / math.exp(log_scale)
    point = np.concatenate([[mean, log_scale], theta if is_centred else z])
    name = "eight-schools-centred" if is_centred else "eight-schools-noncentred"
    joint = float(problems.get(name).logdensity_fn(jnp.asarray(point)))
    joint -= 0.0 if is_centred else 8 * log_scale
    pull = tau2 / (tau2 + sigma2)
    centre = pull * _hard.EFFECTS + (1 - pull) * mean
    joint -= stats.norm.logpdf(theta, centre, np.sqrt(pull * sigma2)).sum()
    middle, variance, wanted = _hard._mean_given_scale(jnp.asarray([log_scale]))
    joint -= stats.norm.logpdf(mean, middle[0], np.sqrt(variance[0]))
    assert joint == pytest.approx(float(wanted[0]), rel=1e-9)
    first = problems.get(name).truth.marginals[2]
    assert first.of(point[None])[0] == pytest.approx(theta[0])


@pytest.mark.nightly
def test_the_horseshoe_integrates_to_its_evidence():
    """With λ fixed the means are normal: the joint density over theirs is what is integrated."""
    log_tau, log_lambda = -0.3, np.linspace(-2, 2, 10)
    beta = np.linspace(-1, 4, 10)
    spread = np.exp(2 * (log_tau + log_lambda))
    point = np.concatenate([[log_tau], log_lambda, beta])
    pull = spread / (1 + spread)
    joint = float(_hard.horseshoe_centred(jnp.asarray(point)))
    joint -= stats.norm.logpdf(beta, pull * _hard.OBSERVED_MEANS, np.sqrt(pull)).sum()
    priors = [_hard.log_half_cauchy(x, 1.0) for x in (log_tau, *log_lambda)]
    wanted = float(sum(priors))
    wanted += stats.norm.logpdf(_hard.OBSERVED_MEANS, 0, np.sqrt(1 + spread)).sum()
    assert joint == pytest.approx(wanted, rel=1e-9)
    log_half_cauchy = stats.halfcauchy.logpdf(math.exp(log_tau)) + log_tau
    assert float(priors[0]) == pytest.approx(log_half_cauchy)
    z = beta / np.sqrt(spread)
    other = float(_hard.horseshoe_noncentred(jnp.asarray(np.concatenate([point[:11], z]))))
    there = float(_hard.horseshoe_centred(jnp.asarray(point)))
    assert other - np.log(spread).sum() / 2 == pytest.approx(there)


@pytest.mark.nightly
def test_dugongs_and_pumps_are_integrated_over_the_right_density():
    """The joint density less that of the inner parameters is the outer density, at any point."""
    c, s, a, b = -1.8, -2.2, 2.6, 0.9
    mean, covariance, _ = _light._conditional_of_dugongs(c, s)
    inner = stats.multivariate_normal(np.asarray(mean), np.asarray(covariance)).logpdf([a, b])
    joint = float(_light.dugongs_logdensity(jnp.array([a, b, c, s])))
    outer = float(_light._hyper_of_dugongs(jnp.array([c, s])))
    assert joint - inner == pytest.approx(outer, rel=1e-9)
    hyper = np.array([-0.4, 0.2])
    rates = np.linspace(0.1, 2.0, 10)
    shape, rate = np.exp(hyper)
    laws = stats.gamma(shape + _light.FAILURES, scale=1 / (rate + _light.HOURS))
    inner = (laws.logpdf(rates) + np.log(rates)).sum()
    point = np.concatenate([hyper, np.log(rates)])
    joint = float(_light.pumps_logdensity(jnp.asarray(point)))
    outer = float(_light._hyper_of_pumps(jnp.asarray(hyper)))
    assert joint - inner == pytest.approx(outer, rel=1e-9)


@pytest.mark.nightly
def test_surgery_is_integrated_over_the_right_density():
    """Against the binomial law of SciPy, one hospital after the other by adaptive quadrature."""
    mean, log_scale = -2.4, -1.0
    wanted = stats.norm.logpdf(mean, -2, 2) + stats.norm.logpdf(log_scale, -1, 1)
    for deaths, operations in zip(_light.DEATHS, _light.OPERATIONS, strict=True):

        def integrand(z, deaths=deaths, operations=operations):
            chance = special.expit(mean + math.exp(log_scale) * z)
            return stats.binom.pmf(deaths, operations, chance) * stats.norm.pdf(z)

        wanted += math.log(integrate.quad(integrand, -9, 9, points=[-2, 0, 2])[0])
    found = float(_light._hyper_of_surgical(jnp.array([mean, log_scale])))
    assert found == pytest.approx(wanted, rel=1e-7)
    z = np.linspace(-1, 1, 12)
    joint = float(_light.surgical_logdensity(jnp.asarray(np.concatenate([[mean, log_scale], z]))))
    chances = special.expit(mean + math.exp(log_scale) * z)
    wanted = stats.norm.logpdf(mean, -2, 2) + stats.norm.logpdf(log_scale, -1, 1)
    wanted += stats.norm.logpdf(z).sum()
    wanted += stats.binom.logpmf(_light.DEATHS, _light.OPERATIONS, chances).sum()
    assert joint == pytest.approx(wanted, rel=1e-9)


@pytest.mark.nightly
def test_the_gradient_of_the_stable_noise_in_alpha_is_right():
    point = jnp.array([1.4, -0.8, 0.1])
    gradient = jax.grad(_light.stable_regression_logdensity)(point)
    for axis, step in enumerate((1e-4, 1e-4, 1e-3)):
        ends = [_light.stable_regression_logdensity(point.at[axis].add(s)) for s in (step, -step)]
        assert float(gradient[axis]) == pytest.approx(
            float(ends[0] - ends[1]) / (2 * step), rel=2e-3
        )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("logdensity_fn", "reaches", "counts"),
    [
        (_posteriors.flip_flop_logdensity, [(-2.2, 1.6), (-2.2, 1.6), (-1.0, 2.8)], 61),
        (_heavy._compact_separated, [(-math.pi / 2, math.pi / 2)] * 3, 60),
    ],
    ids=["flip-flop", "cauchy-logistic"],
)
def test_half_of_the_cells_give_the_same_integrals(logdensity_fn, reaches, counts):
    """So that the error of the truth, with twice as many along each axis, is smaller still."""
    name = "flip-flop-ode" if counts == 61 else "cauchy-logistic"
    truth = problems.get(name).truth
    box = _grids.Box(reaches, [counts] * 3, logdensity_fn)
    assert box.log_evidence == pytest.approx(truth.log_evidence, abs=2e-3)
    if truth.weights:
        swapped = box.masses[box.points[..., 0] < box.points[..., 1]].sum()
        assert swapped == pytest.approx(truth.weights[0][1], abs=1e-3)
        assert box.rim < 1e-6


@pytest.mark.nightly
def test_the_long_run_agrees_with_importance_sampling():
    """From a wide Student law at the maximum; false-alarm rate below 1e-8 by the wide bound.

    Detects quantiles that are wrong by a tenth of a standard deviation.
    """
    problem = problems.get("logistic-20")
    value = jax.jit(jax.value_and_grad(problem.logdensity_fn))
    hessian = jax.jit(jax.hessian(problem.logdensity_fn))
    x = jnp.zeros(20)
    for _ in range(12):
        x = x - jnp.linalg.solve(hessian(x), value(x)[1])
    law = stats.multivariate_t(np.asarray(x), np.linalg.inv(-np.asarray(hessian(x))), 20)
    draws = law.rvs(40_000, random_state=np.random.default_rng(0))
    logs = np.asarray(jax.vmap(problem.logdensity_fn)(jnp.asarray(draws))) - law.logpdf(draws)
    weights = np.exp(logs - logs.max())
    for marginal in problem.truth.marginals:
        found = np.quantile(
            marginal.of(draws), problems.LEVELS, weights=weights, method="inverted_cdf"
        )
        assert np.max(np.abs(found - marginal.quantiles)) < 0.1 * marginal.scale
        assert np.all(marginal.errors < 0.01 * marginal.scale)


# Means and mean squares that posteriordb publishes, each with its Monte Carlo standard error.
REFERENCE_MOMENTS = {
    "gaussian-process": (
        [6.8743, 2.44240, 1.82873], [0.01276, 0.00776, 0.00503],
        [48.8586, 6.57652, 3.59927], [0.18296, 0.04434, 0.02046],
    ),
    "kilpisjarvi": (
        [-60.7123, 0.0175836, 1.13167], [0.30659, 7.697e-5, 0.00106],
        [4583.77, 3.65792e-4, 1.29229], [39.1026, 2.808e-6, 0.00247],
    ),
    "mesquite": (
        [5.17085, 0.722009, 0.426670], [0.000873, 0.000564, 0.000480],
        [26.7451, 0.524454, 0.184331], [0.00906, 0.000815, 0.000428],
    ),
    "autoregression-5": (
        [-0.000719, 0.692163, 0.439043, 0.105816, -0.035435, -0.301512, 0.150567],
        [0.000106, 0.000722, 0.000908, 0.000923, 0.000854, 0.000700, 7.97e-5],
        [1.15171e-4, 0.484067, 0.200381, 0.0198605, 0.00865810, 0.0957927, 0.0227308],
        [1.657e-6, 0.001011, 0.000810, 0.000237, 0.000123, 0.000434, 2.437e-5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCE_MOMENTS)
def test_posteriors_have_the_moments_that_posteriordb_publishes(name):
    """Within six of their standard errors: false-alarm rate 1e-8 for all, if they are normal.

    Detects a mean that is off by a twentieth of a standard deviation.
    """
    means, errors, squares, square_errors = map(np.array, REFERENCE_MOMENTS[name])
    marginals = problems.get(name).truth.marginals
    for i, marginal in enumerate(marginals):
        reach = marginal.quantiles[-1] - marginal.quantiles[0]
        low, high = marginal.quantiles[0] - 4 * reach, marginal.quantiles[-1] + 4 * reach
        edges = np.linspace(low, high, 20_001)
        masses, values = np.diff(marginal.cdf(edges)), (edges[1:] + edges[:-1]) / 2
        if name == "gaussian-process" or i == len(marginals) - 1:
            values = np.exp(values)  # ours are logarithms
        assert abs(masses @ values - means[i]) < 6 * errors[i]
        assert abs(masses @ values**2 - squares[i]) < 6 * square_errors[i]


@pytest.mark.parametrize("name", ["kilpisjarvi", "mesquite", "autoregression-5"])
def test_regressions_are_integrated_over_the_right_density(name):
    """The joint density less that of the coefficients is the evidence given σ, at any point."""
    law = problems.get(name).logdensity_fn.__self__
    mean, _, wanted = law.given_scale(-0.4)
    precision = math.exp(0.8) * law.design.T @ law.design + np.diag(law.precisions)
    offset = 0.3 / np.sqrt(np.diag(precision))
    point = jnp.asarray(np.append(mean + offset, -0.4))
    inner = np.linalg.slogdet(precision)[1] / 2 - offset @ precision @ offset / 2
    inner -= law.count / 2 * math.log(2 * math.pi)
    assert float(law.logdensity(point)) - inner == pytest.approx(wanted, rel=1e-9)


def test_the_gaussian_process_has_the_density_that_scipy_gives():
    point = np.array([1.7, 0.6, 0.3])
    length, height, noise = np.exp(point)
    places = np.linspace(-10, 10, 11)
    gaps = np.subtract.outer(places, places)
    covariance = height**2 * np.exp(-(gaps**2) / (2 * length**2)) + noise * np.eye(11)
    wanted = stats.multivariate_normal(np.zeros(11), covariance).logpdf(_posteriordb.OBSERVED)
    wanted += stats.gamma(25, scale=1 / 4).logpdf(length) + point.sum()
    wanted += stats.halfnorm(scale=2).logpdf(height) + stats.halfnorm().logpdf(noise)
    found = float(_posteriordb.gaussian_process_logdensity(jnp.asarray(point)))
    assert found == pytest.approx(wanted, rel=1e-9)


def test_turned_problems_are_the_same_law():
    for name in ("two-bananas-10", "student-1.5-scales", "label-switching", "sensors"):
        base, other = problems.get(name), problems.get(f"{name}-rotated")
        key = jax.random.key(3)
        x, turned = base.starts(key, 4), other.starts(key, 4)
        assert not np.allclose(x, turned)
        np.testing.assert_allclose(
            jax.vmap(other.logdensity_fn)(turned), jax.vmap(base.logdensity_fn)(x), rtol=1e-9
        )
        for own, theirs in zip(base.truth.marginals, other.truth.marginals, strict=True):
            np.testing.assert_allclose(theirs.of(turned), own.of(np.asarray(x)), rtol=1e-9)
        if base.mode_of is not None:
            np.testing.assert_array_equal(other.mode_of(turned), base.mode_of(np.asarray(x)))
