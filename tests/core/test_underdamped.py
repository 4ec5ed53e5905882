"""Fractional underdamped dynamics: its formula at α = 2, what it keeps, and the order of its bias.

Statistical bounds: false-alarm rate at most 1e-8 each, 5 of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound

import levymc
from levymc import stable

FALSE_ALARM = 1e-8


def normal(x):
    return -jnp.sum(x**2) / 2


def test_at_two_it_is_underdamped_langevin():
    """Of unit mass and temperature: OU for the momentum, then leapfrog, written out."""
    x, v, eta, kappa, key = (
        jnp.array([0.3, -2.0]),
        jnp.array([1.1, 0.2]),
        0.3,
        0.7,
        jax.random.key(5),
    )
    algorithm = levymc.underdamped(normal, eta, 2.0, friction=kappa)
    state, _ = algorithm.step(key, algorithm.init(x)._replace(momentum=v))
    noise = jax.random.normal(key, (2,), jnp.float64)
    v = np.exp(-kappa * eta) * v + np.sqrt(1 - np.exp(-2 * kappa * eta)) * noise
    v = v - eta / 2 * x
    x = x + eta * v
    v = v - eta / 2 * x
    np.testing.assert_allclose(state.position, x, rtol=1e-13)
    np.testing.assert_allclose(state.momentum, v, rtol=1e-13)


def ends(target, starts, alpha, eta, num_steps, scale=0.5**0.5):
    """Where chains are that start in φ ⊗ SαS(s)."""
    algorithm = levymc.underdamped(target, eta, alpha, friction=0.8, momentum_scale=scale)

    def chain(key, x):
        key_start, key_run = jax.random.split(key)
        momentum = stable.sample(key_start, alpha, scale=scale, dtype=x.dtype)
        state = algorithm.init(x)._replace(momentum=momentum)

        def body(state, step_key):
            return algorithm.step(step_key, state)[0], None

        return jax.lax.scan(body, state, jax.random.split(key_run, num_steps))[0]

    keys = jax.random.split(jax.random.key(8), len(starts))
    states = jax.jit(jax.vmap(chain))(keys, starts)
    return np.asarray(states.position, np.float64), np.asarray(states.momentum, np.float64)


COUNT = 20_000


@pytest.mark.parametrize(("alpha", "scale"), [(1.3, 0.5**0.5), (1.8, 1.5)])
def test_it_keeps_the_normal_law_and_the_momentum(alpha, scale):
    """After 4 units of time at η = 0.1: DKW at 2e4 chains detects 0.022 in the CDF."""
    starts = jax.random.normal(jax.random.key(1), (COUNT,), jnp.float32)
    x, v = ends(lambda x: -x * x / 2, starts, alpha, 0.1, 40, scale)
    assert distance_to(x, stats.norm.cdf) < dkw_bound(COUNT, FALSE_ALARM)
    off = distance_to(v, lambda u: np.asarray(stable.cdf(u, alpha, scale)))
    assert off < dkw_bound(COUNT, FALSE_ALARM)


def test_it_keeps_a_double_well():
    """A barrier of 2 between unequal wells; DKW as above."""

    def well(x):
        return -2 * (x * x - 1) ** 2 + 0.3 * x

    grid = np.linspace(-3, 3, 20_001)
    mass = np.cumsum(np.exp(well(grid)))
    levels = mass / mass[-1]
    uniforms = np.asarray(jax.random.uniform(jax.random.key(2), (COUNT,), jnp.float64))
    starts = jnp.asarray(np.interp(uniforms, levels, grid), jnp.float32)
    x, _ = ends(well, starts, 1.6, 0.05, 100)
    assert distance_to(x, lambda u: np.interp(u, grid, levels)) < dkw_bound(COUNT, FALSE_ALARM)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: levymc.underdamped(normal, 0.1, 0.9), ("alpha", "0.9")),
        (lambda: levymc.underdamped(normal, 0.1, friction=0.0), ("friction", "0.0")),
        (lambda: levymc.underdamped(normal, 0.1, momentum_scale=-1.0), ("momentum_scale", "-1.0")),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
