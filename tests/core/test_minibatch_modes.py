"""The truth of benchmarks/minibatch_modes.py, and how it measures errors.

Statistical bounds: false-alarm rate at most 1e-8 each, three of them in the file.
"""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import dkw_bound, hoeffding_bound

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FALSE_ALARM = 1e-8


@pytest.fixture
def modes(monkeypatch):
    pytest.importorskip("blackjax")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("minibatch_modes")


def by_importance(modes, count):
    """Draws of the posterior: of four normals of its weights, of which the density chooses some."""
    random = np.random.default_rng(3)
    signs = np.array(list(modes.WEIGHTS))[random.choice(4, count, p=list(modes.WEIGHTS.values()))]
    offsets = random.normal(size=(count, 2))
    proposed = signs * modes.CENTER + 1.1 * modes.WIDTH * offsets
    density = jax.jit(jax.vmap(modes.all_data))(jnp.asarray(proposed, jnp.float32))
    weights = np.log(np.array([modes.WEIGHTS[tuple(one)] for one in signs]))
    ratio = np.asarray(density, float) + np.sum(offsets**2, axis=1) / 2 - weights
    return proposed[np.log(random.uniform(size=count)) < ratio - ratio.max()]


def test_draws_of_the_posterior_have_no_error(modes):
    """By rejection, of the density that jumps are tested by: the quadrature is another formula.

    Hoeffding for each of four weights detects 0.02 in one, DKW 0.02 in a distribution function.
    """
    truth, draws = modes.quadrature(), by_importance(modes, 200_000)
    assert len(draws) > 40_000
    weights = np.ones(len(draws))
    bound = 4 * hoeffding_bound(len(draws), FALSE_ALARM / 4) / 4  # half the sum of four errors
    assert modes.weight_error(draws, weights, truth) < bound
    assert modes.width_error(draws, weights, truth) < dkw_bound(len(draws), FALSE_ALARM / 2)
    np.testing.assert_allclose(truth.weights, list(modes.WEIGHTS.values()), atol=1e-3)
    only = draws[np.all(draws > 0, axis=1)]
    assert abs(modes.weight_error(only, np.ones(len(only)), truth) - 0.9) < 1e-3


def test_a_minibatch_estimates_the_gradient_of_all_data(modes):
    theta = jnp.array([3.0, -5.0])
    estimates = jax.jit(jax.vmap(lambda block: modes.ESTIMATOR(theta, block[None])))
    each, exact = np.asarray(estimates(modes.BLOCKS)), jax.jit(jax.grad(modes.all_data))(theta)
    np.testing.assert_allclose(each.mean(axis=0), exact, rtol=1e-3)
    # The spread of a minibatch's gradient: N/n times that of all data's information.
    expected = np.sqrt(modes.NUM_DATA / modes.BATCH_SIZE) / modes.WIDTH
    np.testing.assert_allclose(each.std(axis=0), expected, rtol=0.25)
