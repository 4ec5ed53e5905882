"""The targets are the densities that they say they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from levymc import drifts, targets

POINTS = jnp.linspace(-30.0, 30.0, 13)


def moment(power, low=-9.0, high=9.0):
    """∫ x^power φ of the double well."""
    value, _ = integrate.quad(
        lambda x: x**power * np.exp(float(targets.double_well(x))), low, high, points=(-3.6, 3.6)
    )
    return value


def test_the_double_well_has_its_known_moments_and_masses():
    total = moment(0)
    mean = moment(1) / total
    assert mean == pytest.approx(-0.30140, abs=5e-6)
    assert moment(2) / total - mean**2 == pytest.approx(12.716, abs=5e-4)
    assert moment(0, high=0.0) / total == pytest.approx(0.54263, abs=5e-6)


@pytest.mark.parametrize("minimum", [-3.6042, 3.6096])
def test_the_double_well_has_its_minima(minimum):
    slope = jax.grad(targets.double_well)
    assert float(slope(minimum - 1e-4)) > 0 > float(slope(minimum + 1e-4))


@pytest.mark.parametrize("degrees", [0.5, 1.5, 30])
def test_student_is_scipys(degrees):
    found = jax.vmap(targets.student_t(degrees))(POINTS)
    np.testing.assert_allclose(found, stats.t.logpdf(POINTS, degrees), rtol=1e-13)


def test_cauchy_is_scipys_and_a_vector_is_a_product():
    found = jax.vmap(targets.cauchy)(POINTS)
    np.testing.assert_allclose(found, stats.cauchy.logpdf(POINTS), rtol=1e-13)
    np.testing.assert_allclose(targets.cauchy(POINTS), jnp.sum(found), rtol=1e-13)


@pytest.mark.parametrize("scale", [0.7, [0.5, 2.0]])
def test_a_mixture_is_the_sum_of_its_components(scale):
    weights, means = [3.0, 1.0], [[0.0, 1.0], [-2.0, 4.0]]
    at = np.array([0.3, 1.7])
    covariances = np.broadcast_to(scale, 2) ** 2
    parts = [
        stats.multivariate_normal(mean, variance).pdf(at)
        for mean, variance in zip(means, covariances, strict=True)
    ]
    found = targets.gaussian_mixture(weights, means, scale)(at)
    np.testing.assert_allclose(found, np.log(0.75 * parts[0] + 0.25 * parts[1]), rtol=1e-13)


def test_the_closed_form_drift_belongs_to_the_mixture():
    weights, means, scale = targets.FOUR_MODES_WEIGHTS, targets.FOUR_MODES_MEANS, 0.8
    assert scale == targets.FOUR_MODES_SCALE
    at = jnp.array([-3.1, 0.4])
    exact = drifts.gaussian_mixture(1.5, weights, means, scale)(at)
    found = drifts.quadrature(targets.four_modes, 1.5, radius=16.0)(at)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize(
    ("target", "shape"),
    [
        (targets.double_well, ()),
        (targets.four_modes, (2,)),
        (targets.student_t(1.5), (3,)),
        (targets.cauchy, ()),
    ],
)
def test_the_dtype_that_comes_in_goes_out(target, shape, dtype):
    value = target(jnp.ones(shape, dtype))
    assert (value.shape, value.dtype) == ((), dtype)
    assert jnp.isfinite(value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: targets.student_t(0.0), ("degrees", "0.0")),
        (lambda: targets.student_t([1.0, 2.0]), ("degrees", "one number")),
        (lambda: targets.gaussian_mixture([1.0, -1.0], [0.0, 1.0], 1.0), ("weights", "-1.0")),
        (lambda: targets.gaussian_mixture([1.0], [0.0, 1.0], 1.0), ("means", "(1,)", "(2,)")),
        (lambda: targets.gaussian_mixture([1.0], [jnp.inf], 1.0), ("means", "inf")),
        (lambda: targets.gaussian_mixture([1.0], [0.0], 0.0), ("scale", "0.0")),
        (lambda: targets.gaussian_mixture([1.0], [0.0], [1.0, 2.0]), ("scale", "(2,)")),
        (lambda: targets.four_modes(jnp.zeros(3)), ("position", "(3,)", "vmap")),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
