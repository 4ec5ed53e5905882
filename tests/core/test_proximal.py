"""The stable proximal sampler keeps heavy and light tails, by rejection and by Metropolis' steps.

Statistical bounds: false-alarm rate at most 1e-8 each, 6 of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound

import levymc
from levymc import noises

FALSE_ALARM = 1e-8
COUNT = 20_000
LAWS = {
    "normal": (stats.norm(), lambda x: -x * x / 2),
    "cauchy": (stats.cauchy(), lambda x: -jnp.log1p(x * x)),
    "t2": (stats.t(2), lambda x: -1.5 * jnp.log1p(x * x / 2)),
}


def ends(algorithm, law, num_steps=12):
    """Where chains are that start in the law, and the last step's info."""
    uniforms = np.asarray(jax.random.uniform(jax.random.key(1), (COUNT,), jnp.float64))
    starts = jnp.asarray(law.ppf(uniforms), jnp.float32)

    def chain(key, start):
        def body(state, step_key):
            return algorithm.step(step_key, state)

        return jax.lax.scan(body, algorithm.init(start), jax.random.split(key, num_steps))

    states, info = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(2), COUNT), starts)
    return np.asarray(states.position, np.float64), info


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("normal", {"upper_bound": 0.0, "num_tries": 4}),
        ("normal", {"num_tries": 3, "alpha": 1.5}),
        ("cauchy", {"upper_bound": 0.0, "num_tries": 4}),
        ("cauchy", {"num_tries": 2}),
        ("t2", {"upper_bound": 0.0, "num_tries": 2, "alpha": 1.3}),
        ("t2", {"num_tries": 2, "noise": noises.isotropic()}),
    ],
)
def test_it_keeps_the_law(name, options):
    """12 steps from exact draws: DKW at 2e4 chains detects 0.022 in the CDF."""
    law, logdensity = LAWS[name]
    x, info = ends(levymc.proximal(logdensity, 1.5, **options), law)
    assert 0.2 < float(jnp.mean(info.acceptance_rate)) < 0.95  # the test has something to do
    assert not bool(jnp.any(info.is_divergent))
    assert distance_to(x, law.cdf) < dkw_bound(COUNT, FALSE_ALARM)


def test_a_bound_that_is_none_is_told():
    """log φ reaches 0.5: without the word, chains would be in a law cut off at e^0."""
    algorithm = levymc.proximal(lambda x: 0.5 - x * x / 2, 1.0, upper_bound=0.0)
    _, info = ends(algorithm, stats.norm(), 3)
    assert float(jnp.mean(info.is_divergent)) > 0.5


def test_one_try_is_a_levy_walk():
    """Of the scale (2η)^{1/α}: chains that start at 3 are in the same law after three steps.

    Two samples: their distance is below the sum of both bounds.
    """
    eta, alpha = 0.7, 1.5
    one = levymc.proximal(lambda x: -x * x / 2, eta, alpha, num_tries=1)
    other = levymc.levy_walk(lambda x: -x * x / 2, (2 * eta) ** (1 / alpha), alpha)
    point = stats.uniform(3.0, 1e-9)
    first, second = (np.sort(ends(algorithm, point, 3)[0]) for algorithm in (one, other))
    grid = np.linspace(-4, 6, 400)
    levels = [np.searchsorted(s, grid, side="right") / COUNT for s in (first, second)]
    assert np.max(np.abs(levels[0] - levels[1])) < 2 * dkw_bound(COUNT, FALSE_ALARM / 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: levymc.proximal(lambda x: -x * x, 0.1, 2.5), ("alpha", "2.5")),
        (lambda: levymc.proximal(lambda x: -x * x, 0.1, num_tries=0), ("num_tries", "0")),
        (
            lambda: levymc.proximal(lambda x: -x * x, 0.1, upper_bound=jnp.inf),
            ("upper_bound", "inf"),
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
