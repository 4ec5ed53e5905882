"""Gibbs sweeps of a belief network with Pólya–Gamma variables, against enumeration.

Each of the 9 checks compares the frequencies of the 2^4 hidden states with their probabilities and
would fail on correct code for at most 1e-8 of the keys (Dvoretzky–Kiefer–Wolfowitz over the states
in order), 9e-8 for the file.  A sum of probabilities over states that is wrong by twice the bound
is seen: 0.014 for one sweep, 0.062 for many.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import dkw_bound

from levymc.models.sbn._polya_gamma import sweep_polya_gamma as sweep

FALSE_ALARM = 1e-8
STATES = np.array(list(itertools.product((0, 1), repeat=4)))
VISIBLE, CHAINS, SWEEPS = 8, 10_000, 25
COPIES = 200_000


@functools.cache
def network():
    """Weights large enough for units that depend on each other, and three images."""
    rng = np.random.default_rng(3)
    position = {
        "weights": 1.5 * rng.standard_normal((VISIBLE, 4)),
        "hidden_bias": rng.standard_normal(4),
        "visible_bias": rng.standard_normal(VISIBLE),
    }
    return position, rng.integers(0, 2, (3, VISIBLE))


def posterior(image):
    """p(h | v) of all hidden states, by enumeration."""
    position, _ = network()
    activation = STATES @ position["weights"].T + position["visible_bias"]
    logjoint = STATES @ position["hidden_bias"] + np.sum(
        image * activation - np.logaddexp(0, activation), 1
    )
    weights = np.exp(logjoint - logjoint.max())
    return weights / weights.sum()


def position_in(dtype):
    return jax.tree.map(lambda array: jnp.asarray(array, dtype), network()[0])


def assert_frequencies(hidden, image):
    index = np.asarray(hidden) @ 2 ** np.arange(4)[::-1]
    found = np.bincount(index.astype(int), minlength=16) / len(index)
    error = np.abs(np.cumsum(found - posterior(image)))
    assert error.max() <= dkw_bound(len(index), FALSE_ALARM)


def test_the_states_are_in_play():
    """Else frequencies would prove little: the likeliest state has at most 0.6."""
    assert max(posterior(image).max() for image in network()[1]) < 0.6


@pytest.mark.parametrize("number", range(3))
@pytest.mark.often("0", "2")
def test_one_sweep_keeps_the_posterior(number):
    image = network()[1][number]
    start = np.random.default_rng(number).choice(16, COPIES, p=posterior(image))
    images = jnp.tile(jnp.asarray(image, jnp.uint8), (COPIES, 1))
    hidden = jnp.asarray(STATES[start], jnp.uint8)
    found = jax.jit(sweep)(jax.random.key(7 + number), position_in("float64"), images, hidden)
    assert found.dtype == hidden.dtype
    assert np.mean(np.any(np.asarray(found) != np.asarray(hidden), axis=1)) > 0.3
    assert_frequencies(hidden, image)
    assert_frequencies(found, image)


@pytest.mark.nightly
def test_many_sweeps_find_the_posterior():
    """From hidden units that are all off; images of three kinds side by side."""
    position, kinds = position_in("float32"), network()[1]
    images = jnp.asarray(np.repeat(kinds, CHAINS, 0), jnp.float32)

    @jax.jit
    def chain(key, hidden):
        keys = jax.random.split(key, SWEEPS)
        return jax.lax.scan(lambda h, k: (sweep(k, position, images, h), None), hidden, keys)[0]

    found = chain(jax.random.key(1), jnp.zeros((len(images), 4), jnp.float32))
    for number, image in enumerate(kinds):
        assert_frequencies(found[number * CHAINS : (number + 1) * CHAINS], image)
