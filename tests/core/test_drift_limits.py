"""Drifts at α = 2 and near it, and where their values overflow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core.drift_cases import (
    ALPHAS,
    BUILDERS,
    FROM_DENSITY,
    GAPS,
    POINTS,
    by_traced_alpha,
    double_well,
    evaluated,
    every_builder,
    every_density_builder,
    gradient_over,
    log_reference,
    mixture,
    mixture_parameters,
    normal,
    normal_drift,
    normal_pair,
    over,
    size_over,
    value_and_size,
    worst,
)

from levymc import drifts

# --- α = 2 and its neighbourhood ----------------------------------------------------------------


@every_density_builder
def test_alpha_two_is_the_gradient_bit_for_bit(build):
    drift, gradient = build(double_well, 2.0), jax.grad(double_well)
    positions = np.concatenate([np.linspace(-5, 5, 41), [-40.0, -7.0, 7.0, 40.0]])
    np.testing.assert_array_equal(over(drift, positions), gradient_over(double_well, positions))
    np.testing.assert_array_equal(jax.vmap(drift)(positions), jax.vmap(gradient)(positions))
    one = jnp.asarray(1.1)
    np.testing.assert_array_equal(drift(one), gradient(one))


@functools.partial(jax.jit, static_argnums=0)
def over_double_well(build, alpha, positions):
    """A drift on the double well by the program for any α."""
    return jax.vmap(build(double_well, alpha))(positions)


@every_density_builder
def test_a_traced_alpha_two_is_the_gradient(build):
    positions = np.linspace(-5, 5, POINTS)
    gradients = gradient_over(double_well, positions)
    # Panels take no gradient: theirs is that of the interpolant, which rounding reaches.
    rtol = 1e-11 if build is drifts.quadrature else 1e-13
    np.testing.assert_allclose(over_double_well(build, 2.0, positions), gradients, rtol=rtol)


def test_alpha_two_of_the_closed_forms():
    x = np.linspace(-6, 6, 25)
    expected = -(x - 0.5) / 0.7**2
    gaussian = drifts.gaussian(2.0, mean=0.5, std=0.7)
    np.testing.assert_allclose(over(gaussian, x), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(over(drifts.stable_target(2.0, scale=3.0), x), -x / 18, rtol=1e-14)
    by_mixture = over(drifts.gaussian_mixture(2.0, *mixture_parameters()), x)
    np.testing.assert_allclose(by_mixture, gradient_over(mixture, x), rtol=1e-11, atol=1e-13)


LIMIT_POSITIONS = np.array([-3.0, -1.2, 0.4, 2.5])


def departures(build) -> np.ndarray:
    """|b_α − ∇log φ| for α = 2 − gap, a row for each gap, by one program with α traced."""
    rows, _ = by_traced_alpha(build)(2.0 - np.array([0.0, *GAPS]), LIMIT_POSITIONS)
    return np.abs(np.asarray(rows[1:] - rows[0]))


LIMIT_BUILDERS = {
    name: build
    for name, build in BUILDERS.items()
    if name not in ("leading_term", "quadrature_to_infinity")
}


@pytest.mark.parametrize("build", LIMIT_BUILDERS.values(), ids=LIMIT_BUILDERS.keys())
def test_limit_at_alpha_two_is_smooth(build):
    """The departure is proportional to 2 − α, from 1e-3 down to the rounding."""
    rows = departures(build)
    rate = rows[3] / GAPS[3]
    for gap, row in zip(GAPS, rows, strict=True):
        # A square term, sized by the widest gap, and rounding: 1e-10 is far under any bar on b.
        square = 2 * rows[0] * (gap / GAPS[0]) ** 2
        assert np.all(np.abs(row - rate * gap) <= 1e-10 + 0.01 * rate * gap + square), gap


def test_limit_of_the_leading_term_is_of_second_order():
    """d/dα log c_α = ψ(α−1) − ψ(α/2) vanishes at 2, and c_α − 1 ≈ (π²/24) (2−α)² … (1 + 2−α)."""
    for gap, row in zip(GAPS, departures(BUILDERS["leading_term"]), strict=True):
        excess = row / np.abs(LIMIT_POSITIONS)
        assert np.all(np.abs(excess - np.pi**2 / 24 * gap**2) <= gap**3 + 5e-15), gap


def test_limit_at_alpha_two_has_the_exact_rate():
    """d/dα of the normal's drift at α = 2, from its closed form by a difference in 30 digits."""
    positions, gap = LIMIT_POSITIONS, 1e-6
    exact = np.array([(normal_drift(x, 2 - gap) - (-x)) / gap for x in positions.tolist()])
    for name in ("quadrature", "quadrature_own_radius", "gaussian"):
        computed = (over(BUILDERS[name](2 - gap), positions) + positions) / gap
        np.testing.assert_allclose(computed, exact, rtol=1e-4)


@pytest.mark.parametrize("name", ["quadrature", "quadrature_own_radius"])
def test_limit_at_alpha_two_on_the_double_well(name):
    """At the barrier b grows by e^17 a unit of 2 − α, and must still meet the gradient."""
    build, positions = FROM_DENSITY[name], np.array([-4.2, -3.0, -0.4, 0.6, 3.3])
    row_of = np.resize(positions, POINTS)

    at_two = over_double_well(build, 2.0, row_of)

    def departure_of_traced(gap):
        here = over_double_well(build, 2.0 - gap, row_of)
        return np.abs(np.asarray(here - at_two))[: len(positions)]

    rate = departure_of_traced(GAPS[3]) / GAPS[3]
    gradient = over(build(double_well, 2.0), positions)
    for gap in GAPS[2::2]:
        fixed = np.abs(over(build(double_well, 2.0 - gap), positions) - gradient)
        for departure in (departure_of_traced(gap), fixed):
            assert np.all(np.abs(departure - rate * gap) <= 0.02 * rate * gap + 1e-9), gap


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_quadrature_keeps_its_accuracy_next_to_alpha_two(gap):
    positions = np.array([-6.0, -4.0, -2.0, -0.5, 1.0, 3.0, 5.0])
    exact = np.array([normal_drift(x, 2 - gap) for x in positions.tolist()])
    for radius in (14.0, None):
        drift = drifts.quadrature(normal, 2 - gap, radius=radius)
        assert worst(over(drift, positions), exact) <= 1e-8


# --- sign and logarithm -------------------------------------------------------------------------


@every_builder
def test_signed_log_is_the_value(build):
    value, size = value_and_size(build(1.6), [-4.0, -1.0, 0.3, 2.0, 5.0])
    np.testing.assert_array_equal(size.sign, np.sign(value))
    np.testing.assert_allclose(size.sign * np.exp(size.log_size), value, rtol=1e-12)


@every_density_builder
@pytest.mark.parametrize("alpha", [1.2, 1.9])
def test_signed_log_is_finite_where_the_value_overflows(build, alpha):
    positions = np.array([-40.0, 40.0])
    value, size = value_and_size(build(double_well, alpha), positions)
    assert np.all(np.isfinite(size.log_size))
    np.testing.assert_array_equal(size.sign, -np.sign(positions))
    assert not np.any(np.isnan(value))


@pytest.mark.parametrize(
    ("num_nodes", "bar", "anchored"), [(96, 0.02, False), (96, 0.02, True), (320, 1e-8, True)]
)
def test_own_radius_reaches_the_wells_from_afar(num_nodes, bar, anchored):
    """At x = ±40 the drift is e^{250 000}; its logarithm is known to the rounding of U.

    Seen from there the wells, 0.3 wide, lie between nodes 0.7 apart if there are 96 of them, and b
    is good to two digits; with 320 the quadrature resolves them.
    """
    for alpha in ALPHAS:
        positions, sign, log_size = log_reference("double_well_far", alpha)
        drift = drifts.quadrature(double_well, alpha, num_nodes=num_nodes, anchored=anchored)
        computed = size_over(drift, positions)
        np.testing.assert_array_equal(computed.sign, sign)
        np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-13, atol=bar)


def test_signed_log_has_the_structure_of_the_position():
    position = {"a": jnp.asarray(0.3), "b": jnp.array([1.0, -2.0])}
    value, size = evaluated(drifts.quadrature(normal_pair, 1.5, radius=12.0), position)
    assert jax.tree.structure(size.sign) == jax.tree.structure(position)
    rebuilt = jax.tree.map(lambda sign, log: sign * jnp.exp(log), size.sign, size.log_size)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), rebuilt, value)
