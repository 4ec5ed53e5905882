"""The exact drift with default arguments: right where one rule was off by factors, or in doubt.

Numbers of the targets are inputs, by `jax.tree_util.Partial`, so that few programs are compiled.
"""

import warnings

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from jax.tree_util import Partial

import levymc
from levymc import _settled, drifts, targets
from levymc.riesz import kernel_constant
from levymc.run import _iterate

ALPHAS = (1.05, 1.9)
POINTS = 16


def mixture(weights, means, stds, x):
    heights = jnp.log(weights / stds) - ((x - means) / stds) ** 2 / 2
    return jax.scipy.special.logsumexp(heights)


def several(which, x):
    """Exp(1) on a half-line, Laplace, uniform on (-1, 1), t(2) centred at 300."""
    densities = (
        jnp.where(x >= 0, -x, -jnp.inf),
        -jnp.abs(x),
        jnp.where(jnp.abs(x) < 1, 0.0, jnp.nan),
        -1.5 * jnp.log1p((x - 300) ** 2 / 2),
    )
    return jnp.stack(densities)[which]


def mixture_of(*parts):
    return Partial(mixture, *(jnp.asarray(part) for part in parts))


@jax.jit
def evaluated(drift, positions):
    return jax.vmap(drift.evaluate)(positions)


@jax.jit
def closed_form(drift, positions):
    return jax.vmap(drift)(positions)


def checked(drift, positions, exact, bar):
    """The errors are below the bar, relative to |b| + median |b|, and said to be small."""
    found = evaluated(drift, jnp.asarray(np.resize(positions, POINTS)))
    value = np.asarray(found.value())[: len(positions)]
    error = np.abs(value - exact) / (np.abs(exact) + np.median(np.abs(exact)))
    assert np.max(error) <= bar
    assert np.max(found.error) <= 1e-3
    return found


# --- the cases in which one rule within a radius was wrong ---------------------------------------

MIXTURES = {
    "two modes": ([0.9, 0.1], [-30.0, 30.0], [0.5, 0.5]),
    "narrow": ([0.9, 0.1], [-3.0, 3.0], [0.05, 0.05]),
    "far": ([0.9, 0.1], [-300.0, 300.0], [0.5, 0.5]),
    "wide": ([0.4, 0.6], [-2000.0, 3000.0], [500.0, 800.0]),
}


@pytest.mark.parametrize(
    "name",
    [
        "narrow",
        "wide",
        pytest.param("two modes", marks=pytest.mark.nightly),
        pytest.param("far", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.often("narrow")
def test_modes_far_apart_and_wide_ones(name):
    weights, means, stds = map(np.array, MIXTURES[name])
    near = (means[:, None] + stds[:, None] * np.linspace(-2.5, 3, 7)).ravel()
    positions = np.append(near, [1e-3, 0.5]) if name == "wide" else near
    for alpha in ALPHAS:
        form = drifts.gaussian_mixture(alpha, weights, means, stds)
        exact = np.asarray(closed_form(form, jnp.asarray(positions)))
        drift = drifts.quadrature(mixture_of(weights, means, stds), alpha)
        checked(drift, positions, exact, 1e-6)


def test_the_flow_between_two_modes():
    """b φ between the modes balances the jumps across: it decides the weights of FLMC's law.

    It is the same number as far as floats tell, though b itself overflows.
    """
    parts = tuple(map(np.array, MIXTURES["two modes"]))
    positions = np.resize([-25.0, -10.0, 0.0, 7.0, 20.0, 28.0], POINTS)
    found = evaluated(drifts.quadrature(mixture_of(*parts), 1.5), jnp.asarray(positions))
    exact = jax.jit(jax.vmap(drifts.gaussian_mixture(1.5, *parts).signed_log))(positions)
    np.testing.assert_array_equal(found.signed_log().sign, exact.sign)
    np.testing.assert_allclose(found.signed_log().log_size, exact.log_size, rtol=0, atol=1e-6)
    assert np.max(found.error) <= 1e-3


def constant(alpha):
    return kernel_constant(alpha) * (2 - alpha)


def behind_exponential(x, alpha):
    """The finite part of ∫_0^x e^u u^{-α} du."""
    return mp.nsum(lambda k: x ** (k + 1 - alpha) / (mp.factorial(k) * (k + 1 - alpha)), [0, 60])


def exponential_drift(x, alpha):
    return float(constant(alpha) * (mp.gamma(1 - alpha) - behind_exponential(x, alpha)))


def laplace_drift(x, alpha):
    beyond = mp.exp(2 * x) * mp.gammainc(1 - alpha, x)
    whole = mp.gamma(1 - alpha) - behind_exponential(x, alpha) - beyond
    return float(constant(alpha) * whole)


def uniform_drift(x, alpha):
    power = 1 - alpha
    return float(constant(alpha) / power * ((1 - x) ** power - (1 + x) ** power))


EDGES = {
    "exponential": (0, exponential_drift, [1e-3, 0.05, 0.4, 1.0, 3.0]),
    "laplace": (1, laplace_drift, [1e-3, 0.05, 0.4, 1.0, 3.0]),
    "uniform": (2, uniform_drift, [-0.99, -0.3, 0.05, 0.5, 0.999]),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.often("exponential", "laplace")
def test_half_lines_bounded_supports_and_kinks(name):
    which, reference, positions = EDGES[name]
    for alpha in ALPHAS:
        exact = np.array([reference(x, alpha) for x in positions])
        checked(drifts.quadrature(Partial(several, which), alpha), positions, exact, 1e-6)
    if name == "exponential":
        np.testing.assert_allclose(exponential_drift(0.05, 1.9), -0.073, atol=5e-4)


def test_heavy_tails_far_from_the_center():
    """Student's t(2) at 300, in the units of the one at 0."""
    positions = np.array([-8.0, -1.0, 0.4, 2.0, 30.0])
    here = drifts.quadrature(lambda x: -1.5 * jnp.log1p(x * x / 2), 1.5, radius=jnp.inf)
    exact = np.asarray(closed_form(here, jnp.asarray(positions)))
    checked(drifts.quadrature(Partial(several, 3), 1.5), 300 + positions, exact, 1e-6)


def test_the_double_well_costs_at_most_twice_what_it_did():
    assert drifts.quadrature(targets.double_well, 1.7).evaluations.density <= 2 * 243


def test_single_precision():
    weights, means, stds = map(np.array, MIXTURES["two modes"])
    positions = np.array([-31.0, -30.25, -29.0, 29.5, 30.5, 31.0])
    form = drifts.gaussian_mixture(1.5, weights, means, stds)
    exact = np.asarray(closed_form(form, jnp.asarray(positions)))
    single = (part.astype(np.float32) for part in (weights, means, stds))
    drift = drifts.quadrature(mixture_of(*single), 1.5)
    found = evaluated(drift, jnp.asarray(positions, jnp.float32))
    assert found.value().dtype == found.error.dtype == jnp.float32
    np.testing.assert_allclose(found.value(), exact, rtol=1e-5)
    assert np.max(found.error) <= 1e-3


# --- what exploration cannot see ----------------------------------------------------------------

HIDDEN = ([0.5, 0.5], [0.0, 777.7826], [300.0, 1e-4])  # between the points of the scan


def test_a_mode_that_exploration_missed_is_seen_where_the_chain_is():
    drift = drifts.quadrature(mixture_of(*HIDDEN), 1.5)
    found = evaluated(drift, jnp.asarray(np.resize([777.7826], POINTS)))
    assert np.all(found.error > 0.1)


def test_given_modes_are_explored():
    positions = np.array([-100.0, 50.0, *(777.7826 + 1e-4 * np.array([-1.0, 0.5]))])
    exact = closed_form(drifts.gaussian_mixture(1.5, *HIDDEN), jnp.asarray(positions))
    drift = drifts.quadrature(mixture_of(*HIDDEN), 1.5, modes=np.array([777.7826]))
    checked(drift, positions, np.asarray(exact), 1e-5)
    started = drifts.quadrature(mixture_of(*HIDDEN), 1.5).prepared(np.array([0.0, 777.7826]))
    np.testing.assert_array_equal(started.breaks, drift.breaks)


def test_given_breaks_are_taken_as_they_are():
    weights, means, stds = map(np.array, MIXTURES["two modes"])
    looks = []

    def watched(x):
        looks.append(x)
        return mixture(weights, means, stds, x)

    cuts = (means[:, None] + np.linspace(-4, 4, 9)).ravel()
    drift = drifts.quadrature(watched, 1.5, breaks=cuts)
    assert not looks
    positions = np.array([-30.5, -29.0, 30.2])
    form = drifts.gaussian_mixture(1.5, weights, means, stds)
    exact = np.asarray(closed_form(form, jnp.asarray(positions)))
    checked(drift, positions, exact, 1e-6)
    assert drift.prepared(np.zeros(3)) is drift
    with pytest.raises(ValueError, match=r"`breaks` must be finite"):
        drifts.quadrature(watched, 1.5, breaks=[0.0, np.nan])


def hopeless(which, x):
    """No number, no density, no bound, no end."""
    return jnp.stack([x * jnp.nan, 0 * x - jnp.inf, x * x, 0 * x])[which]


@pytest.mark.parametrize("which", range(4))
def test_what_is_no_law_is_in_doubt(which):
    drift = drifts.quadrature(Partial(hopeless, which), 1.5)
    assert np.all(evaluated(drift, jnp.full(POINTS, 0.3)).error > 1e-3)


def test_a_traced_target_is_in_doubt():
    """Nothing can be explored then; right where the panels around x suffice."""

    @jax.jit
    def at_mean(mean):
        return drifts.quadrature(lambda x: -((x - mean) ** 2) / 2, 1.5).evaluate(mean + 1.0)

    found = at_mean(7.0)
    np.testing.assert_allclose(found.value(), -0.9417, atol=1e-4)
    assert np.isinf(found.error)


# --- runs ---------------------------------------------------------------------------------------


def test_kinks_along_several_coordinates():
    drift = drifts.quadrature(lambda x: -jnp.abs(x["a"]) - jnp.abs(x["b"] - 1), 1.5)
    prepared = drift.prepared({"a": np.array([0.3, -2.0]), "b": np.array([0.5, 3.0])})
    found = jax.jit(prepared.evaluate)({"a": jnp.asarray(0.05), "b": jnp.asarray(2.0)})
    exact = {"a": laplace_drift(0.05, 1.5), "b": laplace_drift(1.0, 1.5)}
    for name, value in found.value().items():
        np.testing.assert_allclose(value, exact[name], rtol=1e-6)
        assert found.error[name] <= 1e-3


def plane(position):
    """Two modes along the first coordinate, whose place shifts the second."""
    first = mixture(np.array([0.9, 0.1]), np.array([-30.0, 30.0]), 0.5, position["a"][0])
    return first - (position["a"][1] - position["a"][0] / 10) ** 2 / 2


def test_a_run_explores_along_all_coordinates_through_its_starts():
    starts = {"a": np.array([[-30.0, -3.0], [30.0, 3.0]])}
    algorithm = levymc.flmc(plane, 1e-3, 1.5)
    assert algorithm.drift.kind == "open"
    settling = _settled.Settling({"a": starts["a"][0]})
    drift = _iterate._prepared([algorithm], starts, settling)[0].drift
    assert drift.breaks.shape[0] == 2
    found = jax.jit(drift.evaluate)({"a": jnp.array([-30.5, -2.0])})
    assert np.max(found.error["a"]) <= 1e-3
    # Along the second coordinate the law is normal.
    np.testing.assert_allclose(found.value()["a"][1], drifts.gaussian(1.5, mean=-3.05)(-2.0), 1e-6)
    with pytest.raises(ValueError, match="the 2 coordinates that the drift was prepared for"):
        jax.eval_shape(drift, {"a": jnp.zeros(1)})


def test_the_largest_error_since_the_last_draw_is_kept():
    """Breaks far too coarse for two narrow modes, which the estimate sees."""
    target = Partial(mixture, np.array([0.5, 0.5]), np.array([-3.0, 3.0]), np.array([0.05, 0.05]))
    doubtful = drifts.quadrature(target, 1.5, breaks=[-4.0, 4.0])
    algorithm = levymc.flmc(target, 1e-3, 1.5, drift=doubtful)
    with pytest.warns(UserWarning, match="draws had a step whose drift is in doubt"):
        run = levymc.sample(
            algorithm, jax.random.key(0), np.full(2, 2.9), 8, thin=4, progress=False
        )
    assert run.statistics["drift_error"].shape == (2, 2)
    assert run.num_inexact == np.sum(run.info.drift_error > 1e-3) > 0
    assert "with a drift in doubt" in repr(run)


def test_other_algorithms_report_no_error_of_the_drift():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for drift in (None, drifts.gaussian(1.7)):
            algorithm = levymc.flmc(targets.double_well, 1e-3, 1.7, drift=drift)
            info = jax.eval_shape(algorithm.step, jax.random.key(0), algorithm.init(0.5))[1]
            assert (info.drift_error is None) == (drift is not None)
    algorithm = levymc.mafla(
        targets.double_well, 0.1, drift=drifts.quadrature(targets.double_well, 1.8)
    )
    assert jax.eval_shape(algorithm.step, jax.random.key(0), algorithm.init(0.5))[1] is not None


def _normal(x):
    return -x * x / 2


IN_SIXTEEN_BITS = {
    "panels": drifts.quadrature(_normal, 1.5),
    "radius": drifts.quadrature(_normal, 1.5, radius=12.0),
    "infinite radius": drifts.quadrature(_normal, 1.5, radius=np.inf),
    "centered": drifts.centered_difference(_normal, 1.5, spacing=0.02, num_terms=3000),
    "stable-like": drifts.stable_like(_normal, lambda x: 1.5 + 0 * x, radius=12.0),
    "gaussian": drifts.gaussian(1.5),
    "mixture": drifts.gaussian_mixture(1.5, [0.5, 0.5], [0.0, 0.0], 1.0),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", list(IN_SIXTEEN_BITS))
def test_sixteen_bits_are_widened(name, dtype):
    """Two of their last digits, of the drift and of its logarithm; up to 23 % and inf before."""
    drift, digits = IN_SIXTEEN_BITS[name], 2 * float(jnp.finfo(dtype).eps)
    for x in (0.5, 2.0, 6.5):
        found = drift.signed_log(jnp.asarray(x, dtype))
        assert found.log_size.dtype == dtype
        assert float(found.sign) == -1
        size = (
            mp.mpf(2) ** 0.75
            * mp.gamma(1.25)
            / mp.sqrt(mp.pi)
            * x
            * mp.hyp1f1(0.25, 1.5, x * x / 2)
        )
        np.testing.assert_allclose(float(found.log_size), float(mp.log(size)), digits, digits)
    if name == "panels":
        assert float(drift.evaluate(jnp.asarray(1.0, dtype)).error) < 1e-3
