"""Steps of the shape of a covariance: those of the sampler on the linearly transformed target.

Those of `mafla` and `levy_walk` are exact by tests/core/test_exactness.py; φ(L y) is φ(x) up to a
constant, so that nothing but the transformation is left to test.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import levymc

START = {"a": jnp.asarray(0.3), "b": jnp.asarray([-1.0, 2.0])}
COVARIANCE = np.array([[4.0, 1.9, 0.3], [1.9, 1.0, 0.1], [0.3, 0.1, 9.0]])
FACTOR = np.linalg.cholesky(COVARIANCE)


def curved(position):
    """Not Gaussian: its gradient is not that of any quadratic."""
    a, b = position["a"], position["b"]
    return -(a**4) / 8 - (b[0] - a) ** 2 / 2 - jnp.log1p(b[1] ** 2) + jnp.sin(a * b[1]) / 2


def transformed(y):
    return curved(x_of(y))


def x_of(y):
    flat, unflatten = ravel_pytree(y)
    return unflatten(FACTOR @ flat)


MAKERS = {
    "mafla": lambda target, **options: levymc.mafla(
        target, 0.4, 1.6, preconditioner={"a": 0.5, "b": 2.0}, **options
    ),
    "levy_walk": lambda target, **options: levymc.levy_walk(target, 0.7, 1.3, **options),
    "levy_walk, all coordinates": lambda target, **options: levymc.levy_walk(
        target, 0.5, 1.3, coordinatewise=False, **options
    ),
}


def path(algorithm, start, num_steps=30):
    """The positions and rates of acceptance of one chain."""

    def step(state, key):
        state, info = algorithm.step(key, state)
        return state, (state.position, state.logdensity, info.acceptance_rate)

    keys = jax.random.split(jax.random.key(4), num_steps)
    return jax.jit(lambda start: jax.lax.scan(step, algorithm.init(start), keys)[1])(start)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.often("mafla")
def test_steps_are_those_on_the_transformed_target(name):
    flat, unflatten = ravel_pytree(START)
    dense, logdensities, rates = path(MAKERS[name](curved, covariance=COVARIANCE), START)
    y = unflatten(jnp.linalg.solve(FACTOR, flat))
    plain, _, plain_rates = path(MAKERS[name](transformed), y)
    np.testing.assert_allclose(rates, plain_rates, rtol=1e-9)
    assert 0.1 < np.mean(rates) < 0.95  # the test has something to do
    expected = jax.vmap(x_of)(plain)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9), dense, expected)
    np.testing.assert_allclose(logdensities, jax.vmap(curved)(dense), rtol=1e-9)


def test_a_run_keeps_positions_and_names_the_sampler():
    def normal(x):
        return -x @ jnp.asarray(np.linalg.inv(COVARIANCE), x.dtype) @ x / 2

    algorithm = levymc.mafla(normal, 0.5, covariance=COVARIANCE)
    start = jnp.asarray([[2.0, 1.0, -3.0]], jnp.float32)
    result = levymc.sample(algorithm, jax.random.key(0), start, 5, progress=False)
    assert (result.algorithm, result.is_exact) == ("mafla", True)
    assert result.positions.shape == (1, 5, 3)
    state = algorithm.init(start[0])
    np.testing.assert_allclose(state.position, start[0], rtol=1e-5)
    later = state._replace(inner=state.inner._replace(step=jnp.int32(7)))
    assert int(algorithm.moved(later, start[0] + 1).inner.step) == 7


def test_errors_name_the_remedy():
    def normal(x):
        return -jnp.sum(x * x) / 2

    for wrong, words in (
        (np.ones(3), "`covariance` must be a square matrix"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "`covariance` must be symmetric"),
        (np.ones((2, 2)), "`covariance` must be positive definite"),
        (np.full((2, 2), np.nan), "`covariance` must be finite"),
    ):
        with pytest.raises(ValueError, match=words):
            levymc.levy_walk(normal, 1.0, covariance=wrong)
    with pytest.raises(ValueError, match="a row and a column for each of the 3 coordinates"):
        levymc.mafla(normal, 1.0, covariance=np.eye(2)).init(jnp.ones(3))
    with pytest.raises(ValueError, match="`drift` must not be given with a covariance"):
        levymc.mafla(normal, 1.0, drift=lambda x: -x, covariance=np.eye(2))
    with pytest.raises(TypeError, match="`algorithm` must be without a `covariance`"):
        levymc.adapt.warm_up(
            levymc.mafla(normal, 1.0, covariance=np.eye(2)),
            jax.random.key(0),
            jnp.ones((2, 2)),
            budget=1000,
        )
