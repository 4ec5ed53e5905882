"""Integrators: bounded where they say so, and Euler's as the step vanishes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc import drifts, integrators

INTEGRATORS = {
    "tamed": integrators.tamed(0.5),
    "tamed, normed": integrators.tamed(0.5, componentwise=False),
    "split": integrators.split(0.25),
}


def double_well(x):
    return -((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_the_difference_to_euler_is_of_second_order(name):
    """Slope of log |error| against log η, from 1e-2 to 1e-4; split's error is zero there."""
    drift = drifts.as_drift(lambda x: -x - jnp.sin(x))
    position = jnp.array([1.0, -2.0])
    etas = np.array([1e-2, 1e-3, 1e-4])
    errors = []
    for eta in etas:
        euler = integrators.euler()(drift, position, jnp.asarray(eta)).displacement
        other = INTEGRATORS[name](drift, position, jnp.asarray(eta)).displacement
        errors.append(float(jnp.max(jnp.abs(other - euler))))
    if name == "split":
        assert max(errors) < 1e-15
        return
    slope = np.polyfit(np.log(etas), np.log(errors), 1)[0]
    assert abs(slope - 2) < 0.1


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("x", [-40.0, -6.0, 0.1, 6.0, 40.0])
def test_the_exact_drift_makes_no_step_beyond_its_bound(name, x):
    """The drift at 40 overflows every float; the sum of 32 sub-steps and a last one is bounded."""
    drift = drifts.quadrature(double_well, 1.7, radius=lambda y: jnp.abs(y) + 5.7)
    move = jax.jit(INTEGRATORS[name], static_argnums=0)(drift, jnp.asarray(x), jnp.asarray(0.1))
    bound = 33 * 0.25 if name == "split" else 0.5
    assert abs(float(move.displacement)) <= bound * (1 + 1e-9)
    assert float(move.displacement) * x < 0 or x == 0.1


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("other", [0.0, 1.0, -np.inf])
def test_an_infinite_drift_makes_a_bounded_step(name, other):
    """As the docstring says; before, NaN by all but the first, in user's drifts that overflow."""
    drift = drifts.as_drift(lambda x: jnp.array([np.inf, other]) * jnp.ones_like(x))
    move = INTEGRATORS[name](drift, jnp.zeros(2), jnp.asarray(0.1)).displacement
    assert np.all(np.isfinite(move))
    assert 0.25 <= float(move[0]) <= (33 * 0.25 if name == "split" else 0.5) * (1 + 1e-9)
    assert float(move[1]) == (-float(move[0]) if np.isinf(other) else pytest.approx(0, abs=0.1))


def test_split_follows_the_flow():
    """dx/dt = -10 x: Euler's sub-steps of at most 0.05 follow e^{-10 t} to their order."""
    drift = drifts.as_drift(lambda x: -10 * x)
    move = integrators.split(0.05, max_substeps=200)(drift, jnp.asarray(3.0), jnp.asarray(0.2))
    end = 3.0 + float(move.displacement)
    assert abs(end - 3.0 * np.exp(-2.0)) < 0.05


def test_normed_taming_keeps_the_direction():
    drift = drifts.as_drift(lambda x: jnp.array([30.0, -40.0]))
    move = integrators.tamed(1.0, componentwise=False)(drift, jnp.zeros(2), jnp.asarray(1.0))
    np.testing.assert_allclose(move.displacement, np.array([30.0, -40.0]) / 51, rtol=1e-12)
    np.testing.assert_allclose(move.taming, 50 / 51, rtol=1e-12)


def test_taming_is_its_formula():
    """η b / (1 + |η b|/c), coordinate by coordinate, with c other than one."""
    slopes = np.array([30.0, -0.2, 0.0])
    drift = drifts.as_drift(lambda x: jnp.asarray(slopes))
    move = integrators.tamed(0.5)(drift, jnp.zeros(3), jnp.asarray(0.1))
    steps = 0.1 * slopes
    np.testing.assert_allclose(move.displacement, steps / (1 + np.abs(steps) / 0.5), rtol=1e-12)
