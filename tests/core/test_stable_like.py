"""The drift and the chain whose index α depends on the position.

The one statistical bound has a false-alarm rate of 1e-8.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from tests.bounds import distance_to, dkw_bound
from tests.core.drift_cases import fractional_laplacian

import levymc
from levymc import drifts

POINTS = np.linspace(-7, 7, 1401)  # a fortieth of a well's width apart: sums are exact


def heavy_between(x):
    """1.9 in the wells, 1.2 on the barrier."""
    return 1.9 - 0.7 * jnp.exp(-jnp.square(x) / 4)


def heavy_to_the_right(x):
    return 1.55 - 0.35 * jnp.tanh(x)


@pytest.mark.parametrize("alpha", [1.2, 1.9])
@pytest.mark.often("1.2")
def test_one_index_everywhere_is_the_exact_drift(alpha):
    points = jnp.linspace(-5, 5, 21)
    made = drifts.stable_like(levymc.targets.double_well, lambda x: alpha + 0 * x, radius=13.0)
    known = drifts.quadrature(levymc.targets.double_well, alpha)
    found, expected = jax.jit(lambda x: (jax.vmap(made)(x), jax.vmap(known)(x)))(points)
    np.testing.assert_allclose(found, expected, rtol=2e-7)


@pytest.mark.parametrize("alpha_fn", [heavy_between, heavy_to_the_right])
@pytest.mark.often("heavy_between")
def test_the_target_is_stationary_under_the_generator(alpha_fn):
    """∫ φ (b g' - (-Δ)^{α(x)/2} g) = 0 for bumps g all over the target, by other formulas."""
    drift = drifts.stable_like(levymc.targets.double_well, alpha_fn, radius=14.0)
    sign, log_size = jax.jit(jax.vmap(drift.signed_log))(jnp.asarray(POINTS))
    log_density = np.asarray(jax.vmap(levymc.targets.double_well)(jnp.asarray(POINTS)))
    flow = np.asarray(sign) * np.exp(np.asarray(log_size) + log_density)
    alpha = np.asarray(jax.vmap(alpha_fn)(jnp.asarray(POINTS)))
    for center in (-3.6, -1.0, 0.0, 2.0, 3.6):
        u = (POINTS - center) / 0.6
        by_drift = np.sum(flow * -u / 0.6 * np.exp(-u * u / 2))
        by_jumps = np.sum(np.exp(log_density) * fractional_laplacian(alpha, POINTS, center, 0.6))
        assert by_drift == pytest.approx(by_jumps, rel=1e-6)


def test_coordinates_are_driven_one_by_one():
    """On a product with one index everywhere, each coordinate has the drift of its own factor."""

    def product(position):
        return -jnp.square(position["a"]) / 2 - jnp.sum(jnp.square(position["b"])) / 8

    drift = drifts.stable_like(product, lambda position: 1.6, radius=25.0)
    found = jax.jit(drift)({"a": jnp.asarray(1.0), "b": jnp.asarray([0.5, -3.0])})
    narrow, wide = drifts.gaussian(1.6), drifts.gaussian(1.6, std=2.0)
    np.testing.assert_allclose(found["a"], narrow(1.0), rtol=1e-7)
    np.testing.assert_allclose(found["b"], jax.vmap(wide)(jnp.asarray([0.5, -3.0])), rtol=1e-7)


@pytest.mark.nightly
def test_long_runs_have_the_law_of_the_target():
    """Detects a shift of the distribution function by 0.1: the bound and the step's bias."""
    drift = drifts.stable_like(lambda x: -x * x / 2, heavy_to_the_right, radius=12.0, num_panels=8)
    algorithm = levymc.stable_like(lambda x: -x * x / 2, 1e-2, heavy_to_the_right, drift=drift)
    num_chains, start = 2000, jnp.zeros(2000)
    result = levymc.sample(algorithm, jax.random.key(3), start, 500, thin=500, progress=False)
    distance = distance_to(np.asarray(result.positions)[:, -1], norm.cdf)
    assert distance < dkw_bound(num_chains, 1e-8) + 0.02


def test_a_position_without_an_index_is_not_left():
    """α leaves (1, 2) beyond 0: a step there is not made, and flagged."""
    algorithm = levymc.stable_like(
        lambda x: -x * x / 2, 0.01, lambda x: 1.5 + jnp.where(x > 0, 1.0, 0.0), radius=12.0
    )
    state = jax.jit(algorithm.init)(1.0)
    state, info = jax.jit(algorithm.step)(jax.random.key(0), state)
    assert bool(info.is_divergent)
    assert float(state.position) == 1.0


def test_errors_name_the_remedy():
    with pytest.raises(ValueError, match="`radius` must be a positive number, got None"):
        levymc.stable_like(lambda x: -x * x, 0.1, lambda x: 1.5)
    with pytest.raises(TypeError, match="`alpha_fn` must be a function of 1 argument"):
        drifts.stable_like(lambda x: -x * x, lambda: 1.7, radius=1.0)
    with pytest.raises(ValueError, match="`radius` must be"):
        drifts.stable_like(lambda x: -x * x, lambda x: 1.5, radius=-1.0)
