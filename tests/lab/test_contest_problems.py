"""The problems of the contest: densities by other formulas, exact draws, weights of modes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.bounds import dkw_bound, hoeffding_bound

from levymc_lab.contest import problems
from levymc_lab.contest.problems import _grids

pytestmark = pytest.mark.nightly  # a test of the problems; the contest's own are daily

FALSE_ALARM = 1e-8  # of each statistical check
COUNT = 30_000
# One of each law; the others are made by the same code.
REPRESENTATIVES = (
    "double-well", "four-modes", "two-student-5", "two-bananas-10", "wells-16-rotated",
    "rings-shifted", "cauchy-rotated-10", "funnel-10",
)  # fmt: skip
SLOW = pytest.mark.nightly


def marked(names, quick):
    return [pytest.param(name, marks=() if name in quick else SLOW) for name in names]


ALL = problems.names()
EXACT = [name for name in ALL if problems.get(name).sample is not None]


def test_there_are_enough_problems_of_each_kind():
    assert len(ALL) >= 24
    assert len(problems.names("development")) == 19
    assert len(problems.names("final", "modes")) >= 15
    for kind in ("heavy", "light", "hard"):
        assert problems.names("final", kind)
    with pytest.raises(ValueError, match="Did you mean double-well"):
        problems.get("double-wel")


@pytest.mark.parametrize("name", marked(ALL, (*REPRESENTATIVES, "sensors", "network-5", "pumps")))
def test_density_and_gradient_are_finite_at_the_starts_in_both_precisions(name):
    problem = problems.get(name)
    starts = problem.starts(jax.random.key(3), 6)
    assert starts.shape == (6, problem.dimension)

    @jax.jit
    def both(x):
        found = jax.vmap(jax.value_and_grad(problem.logdensity_fn))
        return found(x), found(x.astype(jnp.float32))

    (value, gradient), (single, single_gradient) = both(starts)
    assert single.dtype == single_gradient.dtype == jnp.float32
    for one in (value, gradient, single, single_gradient):
        assert np.all(np.isfinite(one))
    np.testing.assert_allclose(single, value, rtol=1e-4, atol=1e-3)
    if problem.mode_of is not None:
        labels = problem.mode_of(np.asarray(starts))
        assert labels.shape == (6, len(problem.truth.weights))
        if name != "network-5":  # an output weight near zero may change its sign
            assert np.all(labels == labels[0])  # all in one mode
        for weights in problem.truth.weights:
            assert weights.sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("name", marked(EXACT, REPRESENTATIVES))
def test_exact_draws_have_the_stated_weights_and_marginals(name):
    """Dvoretzky–Kiefer–Wolfowitz and Hoeffding, false-alarm rate 1e-8 each.

    Detects a distribution function or a mode's weight that is off by 0.04.
    """
    problem = problems.get(name)
    draws = np.asarray(problem.sample(jax.random.key(7), COUNT))
    assert draws.shape == (COUNT, problem.dimension)
    for marginal in problem.truth.marginals:
        values = np.sort(marginal.of(draws))
        levels = marginal.cdf(values)
        steps = np.arange(COUNT + 1) / COUNT
        distance = max(np.max(steps[1:] - levels), np.max(levels - steps[:-1]))
        assert distance < dkw_bound(COUNT, FALSE_ALARM)
        np.testing.assert_allclose(marginal.cdf(marginal.quantiles), problems.LEVELS, atol=1e-6)
    if problem.mode_of is not None:
        labels = problem.mode_of(draws)
        for way, weights in enumerate(problem.truth.weights):
            shares = np.bincount(labels[:, way], minlength=len(weights)) / COUNT
            assert np.max(np.abs(shares - weights)) < hoeffding_bound(COUNT, FALSE_ALARM) / 2


@pytest.mark.nightly
@pytest.mark.parametrize("name", marked(EXACT, REPRESENTATIVES))
def test_exact_draws_are_invariant_under_a_metropolis_step_of_the_density(name):
    """Maurer and Pontil's empirical Bernstein bound on E g(X') - E g(X), false-alarm rate 1e-8.

    Detects, for instance, draws of the four modes whose scale is wrong by a tenth.
    """
    problem = problems.get(name)
    draws = problem.sample(jax.random.key(8), COUNT)
    spread = np.quantile(draws, 0.75, axis=0) - np.quantile(draws, 0.25, axis=0)
    if problem.kind == "modes":  # smaller than the distance of the modes
        spread = np.minimum(spread, 1.0)
    scale = jnp.asarray(spread) / math.sqrt(problem.dimension)

    @jax.jit
    def moved(key, x):
        def step(carry, key):
            x, value = carry
            key_noise, key_accept = jax.random.split(key)
            proposed = x + scale * jax.random.normal(key_noise, x.shape)
            there = jax.lax.map(problem.logdensity_fn, proposed, batch_size=5000)
            is_made = jnp.log(jax.random.uniform(key_accept, value.shape)) < there - value
            return (
                jnp.where(is_made[:, None], proposed, x),
                jnp.where(is_made, there, value),
            ), None

        start = jax.lax.map(problem.logdensity_fn, x, batch_size=5000)
        (_, end), _ = jax.lax.scan(step, (x, start), jax.random.split(key, 10))
        return start, end

    before, after = moved(jax.random.key(9), draws)
    middle, width = np.median(before), np.subtract(*np.quantile(before, [0.75, 0.25]))
    change = special.expit((after - middle) / width) - special.expit((before - middle) / width)
    logarithm = math.log(4 / FALSE_ALARM)
    bound = math.sqrt(2 * np.var(change) * logarithm / COUNT) + 14 * logarithm / (3 * (COUNT - 1))
    assert abs(np.mean(change)) < bound


@pytest.mark.parametrize("name", ["two-modes-20-rotated", "two-student-5", "gaussians-100"])
def test_mixtures_have_the_density_that_scipy_gives(name):
    problem = problems.get(name)
    law = problem.logdensity_fn.__self__
    points = np.asarray(problem.starts(jax.random.key(1), 4))
    scatters = law.factors @ np.swapaxes(law.factors, 1, 2)
    wanted = 0.0
    for weight, mean, scatter in zip(law.weights, law.means, scatters, strict=True):
        one = (
            stats.multivariate_normal(mean, scatter)
            if math.isinf(law.degrees)
            else stats.multivariate_t(mean, scatter, law.degrees)
        )
        wanted = wanted + weight * one.pdf(points)
    np.testing.assert_allclose(jax.vmap(problem.logdensity_fn)(points), np.log(wanted), rtol=1e-9)


def test_rings_and_bananas_integrate_to_one():
    """By the midpoint rule, which is exact to rounding here."""
    for name in ("rings-shifted", "rings-concentric"):
        box = _grids.Box([(-12.0, 12.0)] * 2, [600] * 2, problems.get(name).logdensity_fn)
        assert box.log_evidence == pytest.approx(0.0, abs=1e-6)
    law = type(problems.get("two-bananas-10").logdensity_fn.__self__)(2)
    box = _grids.Box([(-18.0, 18.0), (-20.0, 120.0)], [400, 1500], law.logdensity)
    assert box.log_evidence == pytest.approx(0.0, abs=1e-6)
