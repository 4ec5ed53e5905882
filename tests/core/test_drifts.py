"""Drifts against 25-digit references, closed forms and the paper's table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from tests.core.drift_cases import (
    double_well,
    double_well_slope,
    every_alpha,
    gradient_over,
    log_reference,
    mixture,
    mixture_parameters,
    normal,
    normal_drift,
    over,
    plane_mixture,
    plane_parameters,
    reference,
    scaled_normal_drift,
    size_over,
    student_two,
    worst,
)

from levymc import drifts, riesz, stable

# --- accuracy: quadrature -----------------------------------------------------------------------


@pytest.mark.parametrize("radius", [11.0, 12.0, 13.0, None])
@every_alpha
def test_quadrature_on_the_double_well(alpha, radius):
    positions, exact = reference("double_well", alpha)
    drift = drifts.quadrature(double_well, alpha, radius=radius, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-8


@every_alpha
def test_quadrature_within_130_evaluations(alpha):
    """1e-6 from at most 130 evaluations, and of the density only.

    The radius is the least that serves all of [−5, 5]: from x = −5 the far well ends at 5.2.
    """
    positions, exact = reference("double_well", alpha)
    drift = drifts.quadrature(double_well, alpha, radius=10.2, num_nodes=64)
    assert drift.evaluations.density <= 130
    assert drift.evaluations.gradient == 0
    assert worst(over(drift, positions), exact) <= 1e-6


@every_alpha
def test_centered_difference_spends_more_and_gets_less(alpha):
    """341 gradients at the paper's setting: an error of some 1e-3 where the drift is not small."""
    positions, exact = reference("double_well", alpha)
    drift = drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170)
    assert drift.evaluations.gradient == 341
    error = np.abs(over(drift, positions) - exact) / np.abs(exact)
    assert 1e-4 < np.median(error) < 3e-3


@every_alpha
def test_quadrature_to_infinity_on_student(alpha):
    positions, exact = reference("student_two", alpha)
    drift = drifts.quadrature(student_two, alpha, radius=jnp.inf, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-6


@every_alpha
def test_center_and_scale_move_the_nodes_with_the_target(alpha):
    positions, exact = reference("student_two", alpha)
    center, scale = 700.0, 30.0
    drift = drifts.quadrature(
        student_two, alpha, radius=jnp.inf, num_nodes=96, center=center, scale=scale
    )
    computed = over(drift, center + scale * positions, center, scale)
    assert worst(computed, scale ** (1 - alpha) * exact) <= 1e-6


@pytest.mark.parametrize("scale", [1.0, 3.0])
@every_alpha
def test_quadrature_is_linear_on_a_stable_target(alpha, scale):
    """The exact drift of SαS(s) under its own α is −x/(α s^α), whatever x."""
    positions = np.concatenate([np.linspace(-50, -0.5, 25), np.linspace(0.5, 50, 25)])
    drift = drifts.quadrature(stable.logpdf, alpha, radius=jnp.inf, num_nodes=96, scale=scale)
    computed = over(drift, positions, alpha, scale)
    assert worst(computed, -positions / (alpha * scale**alpha)) <= 1e-8


@pytest.mark.parametrize("radius", [14.0, None])
@every_alpha
def test_quadrature_on_the_normal(alpha, radius):
    positions, exact = reference("normal", alpha)
    drift = drifts.quadrature(normal, alpha, radius=radius, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-8


@pytest.mark.parametrize(
    ("mean", "std"), [(0.0, 1e-4), (0.0, 1e-2), (0.0, 1e2), (0.0, 1e5), (1e3, 1.0), (-50.0, 0.1)]
)
def test_own_radius_at_any_place_and_width(mean, std):
    """Without a word about where the target lies or how wide it is."""
    alpha, unit = 1.5, np.array([-4.0, -1.0, 0.5, 2.0, 4.0])
    positions = mean + std * unit
    exact = [scaled_normal_drift(x, alpha, mean, std) for x in positions.tolist()]
    target = jax.tree_util.Partial(normal, mean=mean, std=std)
    computed = over(drifts.quadrature(target, alpha), positions)
    assert worst(computed, np.array(exact)) <= 1e-8


@every_alpha
def test_quadrature_on_a_mixture(alpha):
    positions, exact = reference("mixture", alpha)
    for radius in (None, 16.0):
        drift = drifts.quadrature(mixture, alpha, radius=radius, num_nodes=96)
        assert worst(over(drift, positions), exact) <= 1e-7


@every_alpha
def test_quadrature_ignores_the_normalising_constant(alpha):
    positions, _ = reference("double_well", alpha)
    plain = over(drifts.quadrature(double_well, alpha, radius=11.0), positions)
    shifted = over(drifts.quadrature(double_well, alpha, radius=11.0), positions, 3.0)
    assert worst(shifted, plain) <= 1e-9


# --- accuracy: closed forms and the leading term ------------------------------------------------


@every_alpha
def test_gaussian(alpha):
    positions, exact = reference("normal", alpha)
    assert worst(over(drifts.gaussian(alpha), positions), exact) <= 1e-12
    mean, std = 2.0, 0.3
    moved = drifts.gaussian(alpha, mean=mean, std=std)
    stretched = std ** (1 - alpha) * exact
    assert worst(over(moved, mean + std * positions), stretched) <= 1e-11


@every_alpha
def test_gaussian_between_the_bulk_and_the_tail(alpha):
    """Where a power series has to hand over to an asymptotic one."""
    positions = np.array([6.5, 7.0, 7.25, 7.5, 7.7, 7.8, 8.0, 8.5, 9.0])
    exact = np.array([normal_drift(x, alpha) for x in positions.tolist()])
    assert worst(over(drifts.gaussian(alpha), positions), exact) <= 1e-11


@every_alpha
def test_gaussian_far_out(alpha):
    positions, sign, log_size = log_reference("normal_far", alpha)
    computed = size_over(drifts.gaussian(alpha), positions)
    np.testing.assert_array_equal(computed.sign, sign)
    np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-12)
    near = np.abs(positions) <= 20
    value = over(drifts.gaussian(alpha), positions[near])
    assert worst(value, sign[near] * np.exp(log_size[near])) <= 1e-11


@every_alpha
def test_gaussian_mixture(alpha):
    positions, exact = reference("mixture", alpha)
    drift = drifts.gaussian_mixture(alpha, *mixture_parameters())
    assert worst(over(drift, positions), exact) <= 1e-11


@every_alpha
def test_gaussian_mixture_in_the_plane(alpha):
    positions, exact = reference("plane_mixture", alpha)
    drift = drifts.gaussian_mixture(alpha, *plane_parameters())
    assert worst(over(drift, positions), exact) <= 1e-11
    by_quadrature = drifts.quadrature(plane_mixture, alpha, radius=14.0, num_nodes=96)
    values = over(by_quadrature, positions)
    assert worst(values, exact) <= 1e-7


@every_alpha
def test_gaussian_mixture_far_out(alpha):
    """Where every component has underflowed the drift still has a sign and a size."""
    drift = drifts.gaussian_mixture(alpha, *mixture_parameters())
    positions = np.array([-60.0, 60.0, 1e4])
    size = size_over(drift, positions)
    np.testing.assert_array_equal(size.sign, -np.sign(positions))
    assert np.all(np.isfinite(size.log_size))


def test_mixture_of_one_is_a_gaussian():
    x = np.linspace(-3, 4, 9)
    one = drifts.gaussian_mixture(1.6, jnp.array([1.0]), jnp.array([0.5]), jnp.array([0.8]))
    single = drifts.gaussian(1.6, mean=0.5, std=0.8)
    np.testing.assert_allclose(over(one, x), over(single, x), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.2, 7.0])
@every_alpha
def test_stable_target(alpha, scale):
    positions = np.array([-1e6, -3.0, 0.0, 0.1, 50.0])
    drift = drifts.stable_target(alpha, scale=scale)
    expected = -positions / (alpha * scale**alpha)
    np.testing.assert_allclose(over(drift, positions), expected, rtol=1e-14)


@every_alpha
def test_leading_term(alpha):
    positions = np.linspace(-5, 5, 21)
    constant = scipy.special.gamma(alpha - 1) / scipy.special.gamma(alpha / 2) ** 2
    expected = constant * gradient_over(double_well, positions)
    drift = drifts.leading_term(double_well, alpha)
    np.testing.assert_allclose(over(drift, positions), expected, rtol=1e-13)


# --- centred differences and the paper's table --------------------------------------------------


@every_alpha
def test_centered_difference_is_the_sum_of_the_paper(alpha):
    """Against the sum in 34 digits with Gamma-function coefficients, up to U = 1e6."""
    positions, sign, log_size = log_reference("centered_difference", alpha)
    assert np.max(-double_well(positions)) > 9.9e5
    drift = drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170)
    computed = size_over(drift, positions)
    np.testing.assert_array_equal(computed.sign, sign)
    # exp(U(x) − U(x − kh)) inherits the rounding of U, 1e6 times 1e-16.
    np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-12, atol=1e-11)
    near = np.abs(positions) <= 5
    assert worst(over(drift, positions[near]), sign[near] * np.exp(log_size[near])) <= 1e-10


def partial_sums(alpha: float, positions: np.ndarray, num_terms: int, spacing: float) -> np.ndarray:
    """b̃ for every K = 1 … num_terms at once, in the shape (positions, num_terms)."""
    coefficients = np.asarray(riesz.coefficients(alpha - 2, num_terms))
    indices = np.arange(-num_terms, num_terms + 1)
    shifted = positions[:, None] - spacing * indices
    ratio = np.exp(double_well(shifted) - double_well(positions)[:, None])
    terms = coefficients[np.abs(indices)] * double_well_slope(shifted) * ratio
    pairs = terms[:, num_terms + 1 :] + terms[:, :num_terms][:, ::-1]
    return spacing ** (2 - alpha) * (terms[:, [num_terms]] + np.cumsum(pairs, axis=1))


@pytest.mark.parametrize("num_terms", [1, 15, 170])
def test_partial_sums_are_the_library_drift(num_terms):
    """The table below adds up terms of its own; here they are tied to the library."""
    positions = np.linspace(-5, 5, 201)
    sums = partial_sums(1.6, positions, 170, 0.06)[:, num_terms - 1]
    drift = drifts.centered_difference(double_well, 1.6, spacing=0.06, num_terms=num_terms)
    np.testing.assert_allclose(over(drift, positions), sums, rtol=1e-9)


@pytest.mark.parametrize(
    ("alpha", "published"), [(1.5, 19.31), (1.6, 14.12), (1.7, 12.72), (1.8, 8.65), (1.9, 7.03)]
)
def test_table_one_of_the_paper(alpha, published):
    """κ̂(α) over the 201 points −5:0.05:5, h = 0.06, K* = 170; 8.64 is printed for α = 1.8."""
    positions = np.linspace(-5, 5, 201)
    sums = partial_sums(alpha, positions, 170, 0.06)
    best = over(
        drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170), positions
    )
    leading = over(drifts.leading_term(double_well, alpha), positions)
    errors = np.abs(sums - best[:, None])
    distance = np.abs(errors - np.abs(leading - best)[:, None])
    kappa = np.mean(1 + np.argmin(distance, axis=1))
    assert abs(kappa - published) <= 0.01
