"""The stable proximal sampler keeps heavy and light tails, by rejection and by Metropolis' steps.

Statistical bounds: false-alarm rate at most 1e-8 each, 12 of them in the file.
"""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound, hoeffding_bound

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
@pytest.mark.often("normal-options0", "t2-options5")
def test_it_keeps_the_law(name, options):
    """12 steps from exact draws: DKW at 2e4 chains detects 0.022 in the CDF."""
    law, logdensity = LAWS[name]
    x, info = ends(levymc.proximal(logdensity, 1.5, **options), law)
    assert 0.3 < float(jnp.mean(info.acceptance_rate)) < 0.98  # the test has something to do
    assert not bool(jnp.any(info.is_divergent))
    assert (info.is_above_bound is None) == ("upper_bound" not in options)
    assert not any(np.any(flags) for flags in jax.tree.leaves(info.is_above_bound))
    assert distance_to(x, law.cdf) < dkw_bound(COUNT, FALSE_ALARM)


def test_a_bound_that_is_too_low_is_told(tmp_path):
    """By the run, what is stored of it, the result and its check, which call it exact no more."""
    algorithm = levymc.proximal(lambda x: 0.5 - x * x / 2, 1.0, upper_bound=0.0)
    with pytest.warns(UserWarning, match=r"above `upper_bound`.*too low.*larger bound, or none"):
        run = levymc.sample(
            algorithm,
            jax.random.key(0),
            jnp.zeros(4),
            500,
            thin=2,
            store=tmp_path / "run",
            progress=False,
        )
    stored = levymc.load(tmp_path / "run")
    for result in (run, stored):
        assert result.num_above_bound == np.sum(result.info.is_above_bound) > 500
        assert result.num_divergent == 0
        assert "log φ above its bound" in repr(result)
    report = levymc.diagnostics.check(run)
    assert "bound too low" in report.kinds
    assert str(report).startswith("proximal, not exact")
    assert "exact:" in str(levymc.diagnostics.check(quiet(algorithm, 0.5)))


def quiet(algorithm, bound):
    """A run with another bound, which must not warn."""
    algorithm = dataclasses.replace(algorithm, upper_bound=bound)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return levymc.sample(algorithm, jax.random.key(0), jnp.zeros(4), 500, progress=False)


def test_a_bound_that_is_too_low_cuts_the_law_off_there():
    """At e^-0.5 of a normal law, which is flat up to 1 then; DKW detects 0.022 in the CDF."""
    grid = np.linspace(-6, 6, 40_001)
    mass = np.cumsum(np.minimum(np.exp(-(grid**2) / 2), np.exp(-0.5)))
    levels = mass / mass[-1]
    algorithm = levymc.proximal(lambda x: -x * x / 2, 1.0, upper_bound=-0.5, num_tries=4)
    x, info = ends(algorithm, Tabulated(grid, levels))
    assert float(jnp.mean(info.is_above_bound)) > 0.3
    assert distance_to(x, Tabulated(grid, levels).cdf) < dkw_bound(COUNT, FALSE_ALARM)


class Tabulated:
    """A law by its distribution function on a grid."""

    def __init__(self, grid, levels):
        self.cdf = lambda x: np.interp(x, grid, levels)
        self.ppf = lambda p: np.interp(p, levels, grid)


@pytest.mark.parametrize(("height", "dtype"), [(1e4, jnp.float32), (0.1, jnp.float64)])
@pytest.mark.often("10000.0-float32")
def test_a_tight_bound_may_be_exceeded_by_rounding(height, dtype):
    """A constant, summed in another order: 4 units in the last place above the bound are none."""
    eps = float(jnp.finfo(dtype).eps)
    bound = jnp.asarray(height, dtype)

    def step(excess):
        def flat(x):
            return bound + jnp.asarray(excess * eps * max(1, height), dtype) + 0 * x

        algorithm = levymc.proximal(flat, 1.0, upper_bound=height)
        return algorithm.step(jax.random.key(0), algorithm.init(jnp.zeros((), dtype)))[1]

    assert not bool(step(4).is_above_bound)
    assert bool(step(20).is_above_bound)
    assert float(step(4).acceptance_rate) == 1.0


@pytest.mark.parametrize("bound", [None, 0.0])
@pytest.mark.often("None")
def test_acceptance_is_the_probability_of_a_move(bound):
    """Over 2e4 chains the mean rate is the share that moved, to 0.044: a mean over tries is not.

    Hoeffding: moved less rate is in [-1, 1] with mean 0, independent over chains.
    """
    algorithm = levymc.proximal(lambda x: -x * x / 2, 3.0, upper_bound=bound, num_tries=3)
    starts = jax.random.normal(jax.random.key(1), (COUNT,), jnp.float32)
    step = jax.vmap(lambda key, start: algorithm.step(key, algorithm.init(start)))
    states, info = jax.jit(step)(jax.random.split(jax.random.key(2), COUNT), starts)
    excess = np.asarray(states.position != starts) - np.asarray(info.acceptance_rate)
    assert 0.3 < np.mean(info.acceptance_rate) < 0.9
    assert abs(np.mean(excess)) < hoeffding_bound(COUNT, FALSE_ALARM)


@pytest.mark.parametrize("bound", [None, 0.0])
@pytest.mark.often("None")
def test_a_chain_does_not_move_to_infinity(bound):
    """Where log φ is clipped a jump that overflows looks as likely as any other place."""

    def clipped(x):
        return jnp.maximum(-jnp.abs(x), -1.0)

    algorithm = levymc.proximal(clipped, 1e30, 0.5, upper_bound=bound, num_tries=4)
    step = jax.vmap(lambda key: algorithm.step(key, algorithm.init(jnp.zeros((), jnp.float32))))
    states, info = jax.jit(step)(jax.random.split(jax.random.key(0), 200))
    assert bool(jnp.all(jnp.isfinite(states.position)))
    assert bool(jnp.any(info.is_divergent))


@pytest.mark.parametrize("bound", [None, 0.0])
@pytest.mark.often("0.0")
def test_a_point_that_cannot_be_judged_is_refused_alone(bound):
    """NaN for x < 0: half of the points; a later one may be accepted, and the law is kept.

    Γ(3, 1), whose log φ is at most 2 log 2 - 2 < 0; DKW detects 0.022 in the CDF.
    """
    algorithm = levymc.proximal(lambda x: 2 * jnp.log(x) - x, 1.5, upper_bound=bound, num_tries=4)
    x, info = ends(algorithm, stats.gamma(3))
    assert float(jnp.mean(info.is_divergent)) > 0.2
    assert distance_to(x, stats.gamma(3).cdf) < dkw_bound(COUNT, FALSE_ALARM)


def test_steps_of_many_tries_that_nearly_always_move_do_not_creep():
    result = quiet(levymc.proximal(lambda x: -x * x / 2, 0.5, 1.9, num_tries=20), 0.0)
    assert np.mean(result.info.acceptance_rate) > 0.95
    assert "step too small" not in levymc.diagnostics.check(result).kinds


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
            lambda: levymc.proximal(lambda x: -x * x, 0.1, 0.3, noise=noises.truncated(9.0)),
            ("alpha", "0.3", "independent()"),
        ),
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
