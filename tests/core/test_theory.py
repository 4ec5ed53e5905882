"""The paper's hypotheses, Corollary 2 and Table 1; and the rate of Euler's chain."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from levymc import drifts, riesz, schedules, stable, targets, theory

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
POINTS = np.linspace(-5, 5, 201)
TABLE_1 = {1.5: 19.31, 1.6: 14.12, 1.7: 12.72, 1.8: 8.65, 1.9: 7.03}


def normal(x):
    return -x * x / 2


def hyperbolic_secant(x):
    return -jnp.logaddexp(x, -x)


def like_a_power(q):
    """A drift inwards, of size |x|^q far out."""
    return lambda x: -x * (1 + x * x) ** ((q - 1) / 2)


# H1


@pytest.mark.parametrize(
    ("schedule", "holds"),
    [
        (schedules.polynomial(1.0, 0.6), True),
        (schedules.polynomial(1.0, 1.0), True),
        (schedules.polynomial(1.0, 1.001), False),
        (schedules.polynomial(1.0, 3.0), False),
        (schedules.constant(0.1), False),
        (0.1, False),
        (schedules.cyclical(1.0, 10), False),
    ],
)
def test_our_own_schedules_are_known(schedule, holds):
    answer = theory.check_schedule(schedule)
    assert answer.holds is holds
    assert answer.looks is holds


def test_the_sum_of_steps_that_fall_too_fast_is_named():
    answer = theory.check_schedule(schedules.polynomial(2.0, 2.0))
    assert answer.numbers["total"] == pytest.approx(4 * np.pi**2 / 6)
    assert "Take b ≤ 1" in str(answer)


@pytest.mark.parametrize(
    ("schedule", "looks"),
    [
        (lambda n: 0.1 / n**0.5, True),
        (lambda n: 1.0 / n, True),
        (lambda n: 1.0 / jnp.log(n + 2.0), True),
        (lambda n: 1.0 / n**1.5, False),
        (lambda n: jnp.exp(-1e-3 * n), False),
        (lambda n: 0.1 + 0.05 * jnp.sin(1.0 * n), False),
        (lambda n: 1.0 / (n * jnp.log(n + 1.0)), None),  # infinite, and 1/(n log² n) is not
    ],
)
def test_of_a_function_it_is_said_what_it_looks_like(schedule, looks):
    answer = theory.check_schedule(schedule)
    assert answer.holds is None
    assert answer.looks is looks


def test_a_sampled_polynomial_looks_like_what_it_is():
    for b in (0.3, 0.9, 1.3):
        made = schedules.polynomial(0.5, b)
        answer = theory.check_schedule(lambda n, made=made: made(n))
        assert answer.looks is theory.check_schedule(made).holds
        assert answer.numbers["size"] == pytest.approx(-b, abs=1e-3)


def test_a_traced_schedule_is_not_known():
    answers = []

    def ask(b):
        answers.append(theory.check_schedule(schedules.polynomial(1.0, b)))
        return b

    jax.jit(ask)(0.5)
    assert answers[0].holds is None
    assert answers[0].looks is None


def test_an_answer_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"Ask for one of them"):
        bool(theory.check_schedule(0.1))


@pytest.mark.parametrize("logdensity_fn", [lambda x: x - jnp.exp(x), lambda x: -jnp.cosh(x)])
def test_smooth_targets_whose_slopes_overflow_look_smooth(logdensity_fn):
    """Log-Weibull and cosh.  Before, 0 · inf far out was "none" of a derivative of f, and a
    warning of NumPy's."""
    assert theory.check_smoothness(logdensity_fn).looks
    assert theory.check_tail(logdensity_fn).looks


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (lambda n: 0.1 - 0.002 * n, "got -0.0.* at step 5"),
        (lambda n: jnp.where(n > 100, jnp.nan, 0.1), "got nan at step 1"),
        (lambda n: 1.1**n, "got inf at step"),
    ],
)
def test_steps_that_no_sampler_takes_are_refused(schedule, shown):
    """Before, a warning of NumPy's, and "η_n changes like n^inf"."""
    with pytest.raises(ValueError, match=f"`schedule` must be positive and finite.*{shown}"):
        theory.check_schedule(schedule)


# H2, Lipschitz, A1


@pytest.mark.parametrize(
    ("q", "has_lyapunov", "is_lipschitz", "grows"),
    [
        (1.0, True, True, True),
        (0.5, True, True, False),
        (0.0, True, True, False),
        (-0.5, True, True, False),
        (-1.0, False, True, False),
        (1.5, False, False, True),
        (3.0, False, False, True),
    ],
)
def test_a_drift_that_grows_like_a_power(q, has_lyapunov, is_lipschitz, grows):
    """H2 with V = 1 + x² holds for -1 < q ≤ 1 and a = (1 + q)/2; A1 for q ≥ 1."""
    drift = like_a_power(q)
    lyapunov = theory.check_lyapunov(drift)
    assert lyapunov.looks is has_lyapunov
    if has_lyapunov:
        assert lyapunov.numbers["power"] == pytest.approx((1 + q) / 2, abs=0.01)
        assert lyapunov.numbers["test_functions"] == pytest.approx(q / 2 - 0.25, abs=0.01)
    assert theory.check_lipschitz(drift).looks is is_lipschitz
    assert theory.check_growth(drift).looks is grows


def test_the_constants_of_h2_serve():
    answer = theory.check_lyapunov(like_a_power(0.5))
    a, c, delta, beta = (answer.numbers[name] for name in ("power", "C", "delta", "beta"))
    x = np.linspace(-300, 300, 1001)
    b, v = like_a_power(0.5)(x), 1 + x * x
    assert np.all(b * b <= 1.001 * c * v**a)
    assert np.all(b * 2 * x <= beta - delta * v**a + 1e-3)
    assert delta > 0


def test_a_drift_outwards_fails():
    for check in (theory.check_lyapunov, theory.check_growth):
        assert check(lambda x: x).looks is False
    assert theory.check_lyapunov(lambda x: jnp.abs(x)).looks is False  # on the right


def test_a_power_that_is_given_is_tested():
    assert theory.check_lyapunov(like_a_power(0.0), power=0.5).looks is True
    assert theory.check_lyapunov(like_a_power(0.0), power=1.0).looks is False
    with pytest.raises(ValueError, match=r"`power` must lie in \(0, 1\], got 2"):
        theory.check_lyapunov(like_a_power(0.0), power=2.0)


@pytest.mark.parametrize(
    ("lyapunov", "fault"),
    [
        (lambda x: 1 + x**4, "must be bounded"),
        (lambda x: 1 + 0 * x, "must tend to infinity"),
        (lambda x: x, "must be positive"),
    ],
)
def test_a_lyapunov_function_of_another_kind_is_refused(lyapunov, fault):
    answer = theory.check_lyapunov(lambda x: -x, lyapunov)
    assert answer.looks is False
    assert fault in answer.words


def test_a_linear_drift_is_proved():
    drift = drifts.stable_target(1.5, 2.0)
    checks = (theory.check_lyapunov, theory.check_lipschitz, theory.check_growth)
    assert [check(drift).holds for check in checks] == [True, True, True]
    assert theory.check_lyapunov(drift, lambda x: 2 + x * x).holds is None


def test_a_jump_is_not_lipschitz():
    answer = theory.check_lipschitz(lambda x: -x - jnp.sign(x - 1.234))
    assert answer.looks is False
    assert "near x = 1.2" in answer.words
    assert theory.check_lipschitz(lambda x: -x - jnp.sign(x) * jnp.sqrt(jnp.abs(x))).looks is False
    assert theory.check_lipschitz(lambda x: -jnp.abs(x - 1.234)).looks is True


def test_rounding_is_no_slope():
    """b̃ of exponential tails is constant far out, up to rounding that changes with |x|."""
    drift = drifts.centered_difference(hyperbolic_secant, 1.5, spacing=0.06, num_terms=20)
    assert theory.check_lipschitz(drift).looks is True


def test_the_exact_drift_of_light_tails_is_not_lipschitz_and_that_of_b_hat_is():
    exact, leading = drifts.gaussian(1.5), drifts.leading_term(normal, 1.5)
    assert theory.check_lipschitz(exact).looks is False
    assert theory.check_lyapunov(exact).looks is False
    assert theory.check_growth(exact).looks is True
    assert theory.check_lipschitz(leading).looks is True
    assert theory.check_lyapunov(leading).looks is True


@pytest.mark.parametrize(("alpha", "looks"), [(1.7, True), (1.2, False)])
def test_a_heavy_tailed_target_meets_h2_for_alpha_above_its_index(alpha, looks):
    """In a tail of index ν = 1.5 the exact drift grows like |x|^{1 + ν - α}."""
    drift = drifts.quadrature(targets.student_t(1.5), alpha)
    answer = theory.check_lyapunov(drift)
    assert answer.looks is looks
    assert answer.numbers["growth"] == pytest.approx(2.5 - alpha, abs=0.03)


def test_a_drift_that_is_not_defined_everywhere_is_refused():
    with pytest.raises(ValueError, match="got NaN at x"):
        theory.check_lyapunov(lambda x: -jnp.sqrt(x))


# H3, H4, A2, H5


@pytest.mark.parametrize(
    ("logdensity_fn", "is_smooth", "is_light"),
    [
        (normal, True, True),
        (targets.student_t(1.5), True, False),
        (hyperbolic_secant, True, True),
        (lambda x: hyperbolic_secant(x / 2), True, False),  # the rate is that of H4's units
        (lambda x: -(jnp.abs(x) ** 3), False, True),  # f'' jumps
        (lambda x: jnp.where(jnp.abs(x) < 1, 0.0, -jnp.inf), True, True),
    ],
)
@pytest.mark.often(
    "normal-True-True",
    "logdensity-True-False",
    "<lambda>-True-False",
    "<lambda>-False-True",
    "<lambda>-True-True",
)
def test_smoothness_and_tails(logdensity_fn, is_smooth, is_light):
    assert theory.check_tail(logdensity_fn).looks is is_light
    if is_smooth or logdensity_fn(0.5) < 0:
        assert theory.check_smoothness(logdensity_fn).looks is is_smooth


def test_the_integrals_are_those_of_f():
    """∫|f| = 2 and ∫|f'| = 4/√e of e^{-x²/2}."""
    numbers = theory.check_smoothness(normal).numbers
    assert numbers["integral_0"] == pytest.approx(2, rel=1e-3)
    assert numbers["integral_1"] == pytest.approx(4 / np.sqrt(np.e), rel=1e-3)


def test_a_density_that_is_nan_is_refused():
    with pytest.raises(ValueError, match="Give -inf outside of the support"):
        theory.check_tail(jnp.log)


def test_differences_settle_and_with_a1_give_ergodicity():
    assert theory.check_differences(targets.student_t(1.5), 1.5).looks is True
    assert theory.check_differences(lambda x: -(jnp.abs(x) ** 1.5), 1.5).looks is False
    linear = drifts.leading_term(normal, 1.5)
    assert theory.check_ergodicity(linear, normal, 1.5).looks is True
    weak = drifts.leading_term(hyperbolic_secant, 1.5)
    assert theory.check_ergodicity(weak, hyperbolic_secant, 1.5).looks is None


@pytest.mark.parametrize(
    "arguments", [{"reach": 10.0}, {"scale": 0.0}, {"center": np.nan}, {"reach": [1e3, 1e4]}]
)
def test_where_to_look_is_checked(arguments):
    with pytest.raises((ValueError, TypeError), match=f"`{next(iter(arguments))}` must"):
        theory.check_tail(normal, **arguments)


# Table 1 and Corollary 2


@pytest.mark.parametrize(("alpha", "published"), TABLE_1.items())
def test_table_one(alpha, published):
    assert abs(theory.kappa_hat(targets.double_well, alpha, POINTS) - published) <= 0.006


def test_table_one_in_float32():
    with jax.enable_x64(False):
        found = theory.kappa_hat(targets.double_well, 1.7, POINTS)
    assert abs(found - TABLE_1[1.7]) < 0.2


def test_kappa_forgets_a_factor_of_the_density():
    moved = theory.kappa_hat(lambda x: targets.double_well(x) + 300.0, 1.8, POINTS)
    assert moved == theory.kappa_hat(targets.double_well, 1.8, POINTS)


def test_the_radius_is_the_spacing_at_which_the_sum_would_be_the_leading_term():
    x = np.array([-4.2, -1.0, 0.5, 2.0])
    found = theory.leading_term_bound(targets.double_well, 1.8, x, num_terms=170)
    paper = {"spacing": 0.06, "num_terms": 170}
    truncated = jax.vmap(drifts.centered_difference(targets.double_well, 1.8, **paper))(x)
    leading = jax.vmap(drifts.leading_term(targets.double_well, 1.8))(x)
    expected = 0.06 * np.abs(leading / truncated) ** 5
    np.testing.assert_allclose(found.radius, expected, rtol=1e-8)
    np.testing.assert_allclose(found.bound, expected**2 + 1 / (expected * 170), rtol=1e-8)
    assert found.worst_bound == found.bound.max()
    assert found.worst_point == x[found.bound.argmax()]


def test_the_least_number_of_terms_makes_h4_true_and_one_fewer_does_not():
    x, h, c = np.array([0.3, 2.0]), 0.1, 0.5
    found = theory.leading_term_bound(normal, 1.5, x, spacing=h, constant=c, most_terms=300)
    for place, count in zip(x, found.num_terms, strict=True):
        k = np.arange(-300, 301)
        far = place - h * k
        is_below = np.abs(far) * np.exp(normal(far)) <= c * np.exp(-np.abs(k) * h)
        assert np.all(is_below[np.abs(k) > count])
        assert not np.all(is_below[np.abs(k) >= count])


def test_the_sum_ends_where_terms_are_counted():
    """r from its definition, with the least K_x."""
    x, h = 0.7, 0.1
    found = theory.leading_term_bound(normal, 1.5, x, spacing=h)
    k = np.arange(-int(found.num_terms[0]), int(found.num_terms[0]) + 1)
    weights = np.asarray(riesz.coefficients(-0.5, k[-1]))[np.abs(k)]
    f = -(x - h * k) * np.exp(normal(x - h * k))
    ratio = np.sum(weights * f) / (weights[k == 0] * f[k == 0])
    assert found.radius[0] == pytest.approx(abs(ratio[0]) ** -2, rel=1e-9)


def test_corollary_2_bounds_nothing_without_h4_nor_near_a_mode():
    heavy = theory.leading_term_bound(targets.student_t(1.5), 1.5, [0.5], most_terms=100)
    assert np.isnan(heavy.num_terms[0])
    assert heavy.worst_bound == np.inf
    mode = np.roots([4, -0.06, -52.04, 0.5]).min()
    near = mode + np.array([1e-4, 1e-5])
    bounds = theory.leading_term_bound(targets.double_well, 1.7, near, num_terms=170).bound
    assert bounds[1] / bounds[0] == pytest.approx(10 ** (1 / 0.3), rel=0.15)


def test_at_alpha_two_there_is_nothing_to_compare():
    with pytest.raises(ValueError, match=r"`alpha` must lie in \(1, 2\), got 2"):
        theory.kappa_hat(normal, 2.0, [1.0])


# The rate of Euler's chain


@pytest.fixture
def euler_rate(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("euler_rate")


@pytest.mark.parametrize("alpha", [1.3, 1.5, 1.8])
def test_stable_noise_has_rate_one_and_pareto_noise_has_not(euler_rate, alpha):
    """No random numbers: laws are known by their characteristic functions."""
    for errors in euler_rate.stable_errors(alpha):
        assert euler_rate.fitted(euler_rate.STABLE_STEPS, errors) == pytest.approx(1, abs=0.01)
    pareto = euler_rate.fitted(euler_rate.PARETO_STEPS, euler_rate.pareto_errors(alpha))
    assert pareto == pytest.approx(2 / alpha - 1, abs=0.01)


def test_the_law_of_the_chain_with_pareto_noise(euler_rate):
    """Its pieces against integrals and products that are made the long way."""
    alpha, eta, u = 1.5, 0.05, np.array([0.3, 2.0])
    for place, excess in zip(u, euler_rate.pareto_excess(alpha, u), strict=True):
        mean, _ = quad(lambda z: alpha * z ** (-1 - alpha), 1, np.inf, weight="cos", wvar=place)
        assert excess == pytest.approx(mean - 1, abs=1e-6)
    unit = (eta / euler_rate.pareto_constant(alpha)) ** (1 / alpha)
    steps = (1 - eta / alpha) ** np.arange(2000)
    product = np.log1p(euler_rate.pareto_excess(alpha, unit * u[:, None] * steps)).sum(axis=1)
    found = euler_rate.log_characteristic(alpha, eta, u)
    np.testing.assert_allclose(found, product, rtol=1e-5)


def test_wasserstein_from_characteristic_functions(euler_rate):
    """That of N(0, 2s²) and N(0, 2) is |s - 1| E|ξ|, E|ξ| = 2/√π."""
    frequency, weights = 3 * (euler_rate.FREQUENCIES + 1), 3 * euler_rate.FREQUENCY_WEIGHTS
    difference = np.exp(-((1.1 * frequency) ** 2)) - np.exp(-(frequency**2))
    found = euler_rate.wasserstein(difference, frequency, weights)
    assert found == pytest.approx(0.1 * 2 / np.sqrt(np.pi), rel=1e-4)
    assert euler_rate.mean_size(2.0) == pytest.approx(2 / np.sqrt(np.pi))


def test_the_stationary_scale_is_that_of_the_chain(euler_rate):
    """σ^α = η + (1 - η/α)^α σ^α, and the mean size is that of the library's density."""
    alpha, eta = 1.5, 0.1
    scale = euler_rate.stationary_scale(eta, alpha)
    assert scale**alpha == pytest.approx(eta + (1 - eta / alpha) ** alpha * scale**alpha)
    x = np.linspace(0, 2000, 40_001)
    inside = 2 * np.trapezoid(x * np.asarray(stable.pdf(x, alpha)), x)
    assert 0.95 < inside / euler_rate.mean_size(alpha) < 1
