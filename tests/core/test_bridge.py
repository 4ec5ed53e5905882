"""The evidence by bridge sampling, against closed forms, and whether its standard error is one."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from levymc import adapt
from levymc.adapt import _bridge

FALSE_ALARM = 1e-6
PRECISION = np.linalg.inv(np.array([[1.0, 0.9], [0.9, 1.0]]))
FACTOR = np.linalg.cholesky(np.array([[1.0, 0.9], [0.9, 1.0]]))


def normal(x):
    return -jnp.sum(x**2) / 2


def cauchy(x):
    return -jnp.sum(jnp.log1p(x * x))


def student(x):
    return -2.0 * jnp.log1p(x @ jnp.asarray(PRECISION, x.dtype) @ x / 2)


def gumbel(x):
    """Skew, and with tails as light as those of a logistic regression."""
    return -jnp.sum(x + jnp.exp(-x))


def student_draws(random, shape):
    mixing = np.sqrt(random.chisquare(2, (*shape, 1)) / 2)
    return random.normal(size=(*shape, 2)) @ FACTOR.T / mixing


LOG_2_PI = math.log(2 * math.pi)
# Log density, independent draws, and the evidence.
CASES = {
    "normal, 10-D": (normal, lambda r, shape: r.normal(size=(*shape, 10)), 5 * LOG_2_PI),
    "Cauchy, 2-D": (
        cauchy,
        lambda r, shape: r.standard_cauchy((*shape, 2)),
        2 * math.log(math.pi),
    ),
    "t(2), correlated": (student, student_draws, LOG_2_PI + math.log(1 - 0.81) / 2),
    "Gumbel, 3-D": (gumbel, lambda r, shape: r.gumbel(size=(*shape, 3)), 0.0),
}


def sticky(draws, random, stay):
    """A chain that stays where it is with a given probability, otherwise moves to a new draw."""
    chains = draws.copy()
    for n in range(1, chains.shape[1]):
        stays = random.random(len(chains)) < stay
        chains[:, n] = np.where(stays[:, None], chains[:, n - 1], chains[:, n])
    return chains


def scores(name, problems, stay, count=200):
    """(estimate - truth)/standard error of so many problems."""
    logdensity_fn, draw, truth = CASES[name]
    found = []
    for seed in range(problems):
        random = np.random.default_rng(seed)
        draws = sticky(draw(random, (4, count)), random, stay).astype(np.float32)
        evidence = adapt.log_evidence(logdensity_fn, jax.random.key(seed), draws)
        found.append((evidence.value - truth) / evidence.standard_error)
        assert evidence.standard_error < 0.2
    return np.array(found)


def check_calibration(found):
    """At most 1 % beyond three standard errors, and a mean square of at most 1.3².

    False alarms: 1e-6 each, by the binomial and the χ² law.  A standard error that is too small by
    a factor of two is found with near certainty by ten scores or more.
    """
    most = stats.binom(len(found), 0.01).isf(FALSE_ALARM)
    assert np.sum(np.abs(found) > 3) <= most
    assert np.sum(found**2) < 1.3**2 * stats.chi2(len(found)).isf(FALSE_ALARM)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.often("normal, 10-D", "t(2), correlated")
def test_closed_forms_are_met(name):
    check_calibration(scores(name, 12, stay=0.0))


def test_the_standard_error_knows_autocorrelation():
    """Chains that move every tenth step only; without it the mean square of scores is near 10."""
    check_calibration(scores("Cauchy, 2-D", 30, stay=0.9, count=1000))


@pytest.mark.nightly
@pytest.mark.parametrize("stay", [0.0, 0.7])
def test_the_standard_error_is_one_in_many_problems(stay):
    """200 small problems, in each of which four chains of 400 draws are all there is."""
    check_calibration(np.concatenate([scores(name, 50, stay=stay, count=400) for name in CASES]))


def test_known_densities_are_not_computed_again():
    draws = np.random.default_rng(0).normal(size=(4, 300, 10)).astype(np.float32)
    key = jax.random.key(0)
    values = -np.sum(draws.astype(float) ** 2, axis=-1) / 2
    known = adapt.log_evidence(normal, key, draws, logdensities=values)
    computed = adapt.log_evidence(normal, key, draws)
    assert (known.evaluations, computed.evaluations) == (600, 1200)
    assert abs(known.value - computed.value) < 1e-4
    fewer = adapt.log_evidence(normal, key, draws, most_draws=100)
    assert fewer.evaluations <= 200


def test_a_constant_is_added():
    draws = {"a": np.random.default_rng(0).normal(size=(2, 200))}
    plain = adapt.log_evidence(lambda p: -(p["a"] ** 2) / 2, jax.random.key(0), draws)
    lifted = adapt.log_evidence(lambda p: 1e3 - p["a"] ** 2 / 2, jax.random.key(0), draws)
    assert abs(lifted.value - plain.value - 1e3) < 1e-9
    assert lifted.standard_error == pytest.approx(plain.standard_error)


def test_the_effective_size_is_that_of_an_autoregression():
    """To 25 %: more than six standard deviations over these lengths."""
    random = np.random.default_rng(0)
    values, rho = np.zeros((4, 5000)), 0.8
    noise = random.normal(size=values.shape)
    for n in range(1, values.shape[1]):
        values[:, n] = rho * values[:, n - 1] + noise[:, n]
    expected = values.size * (1 - rho) / (1 + rho)
    assert abs(_bridge.effective_size(values) / expected - 1) < 0.25
    assert _bridge.effective_size(noise) > 0.8 * noise.size


@pytest.mark.parametrize(
    ("draws", "options", "message"),
    [
        (np.zeros((4, 3)), {}, "at least 8 draws a chain"),
        (np.ones((4, 20)), {"logdensities": np.ones(4)}, "shape"),
        (-np.ones((4, 20)) - np.arange(20.0), {}, "finite at the draws"),
    ],
)
def test_bad_arguments_are_refused(draws, options, message):
    with pytest.raises(ValueError, match=message):
        adapt.log_evidence(lambda x: jnp.log(x), jax.random.key(0), draws, **options)
