"""Options of the step: preconditioner, curvature and truncated noise, each against its formula.

Statistical bounds: false-alarm rate at most 1e-8 each, four of them in the file.
"""

import inspect
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma
from tests.bounds import dkw_bound

import levymc
from levymc import algorithms, integrators, noises, stable
from levymc.models import matrix_factorization

FALSE_ALARM = 1e-8
KEY = jax.random.key(11)
ETA, ALPHA = 0.3, 1.7
START = {
    "a": jnp.array([[1.0, -2.0], [0.5, 3.0]], jnp.float32),
    "b": jnp.array([0.2, -0.1], jnp.float32),
}
SCALES = {"a": np.array([[0.5], [2.0]]), "b": np.array([0.1, 1.5])}
CURVATURE = {"a": jnp.array([[10.0], [0.5]], jnp.float32), "b": jnp.array(4.0, jnp.float32)}
EULER = integrators.euler()


def gradient(position, minibatch):
    return jax.tree.map(lambda leaf: -minibatch * leaf * leaf * leaf, position)


sgfla = inspect.unwrap(levymc.sgfla)  # without the type checker, which would speak first


def one_step(alpha=ALPHA, eta=ETA, integrator=EULER, **options):
    algorithm = sgfla(gradient, eta, alpha, integrator=integrator, **options)
    state, info = jax.jit(algorithm.step)(KEY, state_of(START), 1.5)
    return state.position, info


def state_of(position):
    return algorithms.State(position, jnp.int32(0))


@cache
def standard_noise(alpha):
    """ξ of the step, from one without a drift."""
    algorithm = levymc.sgfla(
        lambda x, _: jax.tree.map(jnp.zeros_like, x), 1.0, alpha, integrator=EULER
    )
    moved = jax.jit(algorithm.step)(KEY, state_of(START), 1.5)[0].position
    return jax.tree.map(lambda y, x: np.asarray(y) - np.asarray(x), moved, START)


def expected_step(alpha, scales, shortening):
    """x + η m κ c ∇ + (η m)^{1/α} ξ."""
    c = 1.0 if alpha == 2 else stable_c(alpha)
    return jax.tree.map(
        lambda x, m, k, g, xi: x + ETA * m * k * c * g + (ETA * m) ** (1 / alpha) * xi,
        jax.tree.map(np.asarray, START),
        scales,
        shortening,
        gradient(jax.tree.map(np.asarray, START), 1.5),
        standard_noise(alpha),
    )


def stable_c(alpha):
    return gamma(alpha - 1) / gamma(alpha / 2) ** 2


def close(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


ONES = {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize("alpha", [ALPHA, 2.0])
@pytest.mark.often("1.7")
def test_a_preconditioner_scales_time_in_drift_and_noise(alpha):
    found, _ = one_step(alpha, preconditioner=SCALES)
    close(found, expected_step(alpha, SCALES, ONES))


@pytest.mark.parametrize(
    ("integrator", "noise"),
    [
        (EULER, noises.isotropic()),
        (integrators.tamed(0.5), noises.independent()),
        (integrators.split(), None),
    ],
)
@pytest.mark.often("integrator0-noise0", "integrator2-None")
def test_a_preconditioner_of_one_number_is_another_step_size(integrator, noise):
    found, _ = one_step(preconditioner=0.4, integrator=integrator, noise=noise)
    close(found, one_step(eta=0.4 * ETA, integrator=integrator, noise=noise)[0])


def test_all_makers_know_the_preconditioner():
    """One number is another step size, for each of them."""

    def normal(position):
        return -jnp.sum(position**2) / 2

    step = jax.jit(lambda algorithm, key, state: algorithm.step(key, state))
    makers = (
        lambda eta, m: levymc.fla(normal, eta, ALPHA, preconditioner=m),
        lambda eta, m: levymc.ula(normal, eta, preconditioner=m),
        lambda eta, m: levymc.flmc(normal, eta, ALPHA, drift=lambda x: -x, preconditioner=m),
        lambda eta, m: levymc.mafla(normal, eta, ALPHA, preconditioner=m),
    )
    for make in makers:
        moved = []
        for algorithm in (make(ETA, 0.4), make(0.4 * ETA, None), make(ETA, None)):
            state = algorithm.init(jnp.ones(2, jnp.float32))
            moved.append(step(algorithm, KEY, state)[0].position)
        np.testing.assert_allclose(moved[0], moved[1], rtol=1e-5)
        assert np.max(np.abs(moved[0] - moved[2])) > 1e-3


@pytest.mark.parametrize("scales", [None, SCALES])
def test_curvature_shortens_the_step_of_the_drift_alone(scales):
    used = ONES if scales is None else scales
    shortening = jax.tree.map(
        lambda m, s: np.minimum(1, 1 / (ETA * m * stable_c(ALPHA) * np.asarray(s))), used, CURVATURE
    )
    found, info = one_step(preconditioner=scales, curvature=lambda x, batch: CURVATURE)
    close(found, expected_step(ALPHA, used, shortening))
    least = min(float(np.min(leaf)) for leaf in jax.tree.leaves(shortening))
    assert least < 1
    np.testing.assert_allclose(info.taming, 1 - least, rtol=1e-6)


def test_curvature_sees_the_position_and_the_minibatch_and_sgld_takes_it():
    algorithm = levymc.sgld(
        lambda x, batch: -batch * x, 1.0, preconditioner=0.5, curvature=lambda x, batch: batch
    )
    start = jnp.array([100.0, -3.0])
    moved = jax.jit(algorithm.step)(KEY, state_of(start), 64.0)[0].position
    noise = jax.random.normal(KEY, (2,), jnp.float64)  # the drift alone leads to 0
    np.testing.assert_allclose(moved, noise, rtol=1e-12)


def test_steps_without_options_have_the_operations_of_the_formula_only():
    def names(**options):
        algorithm = levymc.sgfla(gradient, ETA, ALPHA, integrator=EULER, **options)
        return str(jax.make_jaxpr(algorithm.step)(KEY, state_of(START), 1.5))

    plain = names()
    assert plain == names(preconditioner=None, curvature=None, noise=noises.independent())
    assert len(names(preconditioner=SCALES)) > len(plain)


def truncated_cdf(x, alpha, bound):
    beyond = float(stable.sf(bound, alpha))
    return (np.asarray(stable.cdf(jnp.asarray(x, jnp.float64), alpha)) - beyond) / (1 - 2 * beyond)


@pytest.mark.parametrize(
    ("alpha", "bound", "dtype", "count"),
    [
        (1.5, 4.0, jnp.float32, 400_000),
        (1.2, 50.0, jnp.float32, 400_000),
        (1.5, 4.0, jnp.float64, 40_000),  # by Newton's method, as where α is traced
        (2.0, 1.0, jnp.float32, 400_000),
    ],
)
@pytest.mark.often("1.2-50.0-float32-400000", "1.5-4.0-float64-40000", "2.0-1.0-float32-400000")
def test_truncated_draws_have_the_conditional_law(alpha, bound, dtype, count):
    """DKW: false alarms 1e-8.  4e5 draws detect 0.0098 in the distribution function, 4e4 0.031;
    the law that is not truncated is 0.02 off at α = 1.5 and bound 4.
    """
    draws = np.asarray(stable.sample_truncated(KEY, alpha, bound, (count,), dtype=dtype))
    assert draws.dtype == dtype
    assert np.max(np.abs(draws)) <= bound
    ordered = np.sort(draws)
    levels = truncated_cdf(ordered, alpha, bound)
    ranks = np.arange(count + 1) / count
    found = max(np.max(ranks[1:] - levels), np.max(levels - ranks[:-1]))
    assert found < dkw_bound(count, FALSE_ALARM)


def test_truncated_draws_share_their_words_with_all_of_the_law():
    """So that nothing but the tail changes."""
    shape = (1000,)
    whole = stable.sample(KEY, 1.5, shape, dtype=jnp.float32)
    cut = stable.sample_truncated(KEY, 1.5, 1e6, shape, dtype=jnp.float32)
    np.testing.assert_allclose(cut, whole, rtol=1e-4)


def test_truncated_noise_bounds_the_jump():
    algorithm = levymc.sgfla(gradient, ETA, ALPHA, noise=noises.truncated(0.05))
    start = jnp.ones(50, jnp.float32)
    _, info = jax.jit(algorithm.step)(KEY, state_of(start), jnp.float32(1.5))
    assert 0.9 * 0.05 < float(info.largest_jump) / ETA ** (1 / ALPHA) <= 0.05 * (1 + 1e-6)


NUM_SEEDS, NUM_STEPS, NUM_PAIRS = 12, 300, 600


@pytest.fixture(scope="module")
def factorization():
    """A made factorisation of 40 × 30: the model, where to start, and minibatches."""
    generator = np.random.default_rng(0)
    model = matrix_factorization(40, 30, rank=3)
    users, items = generator.integers(40, size=NUM_PAIRS), generator.integers(30, size=NUM_PAIRS)
    truth = {
        "users": jnp.asarray(generator.normal(size=(40, 3)), jnp.float32),
        "items": jnp.asarray(generator.normal(size=(30, 3)), jnp.float32),
    }
    exact = jnp.sum(truth["users"][users] * truth["items"][items], axis=1)
    values = (exact + generator.normal(size=NUM_PAIRS)).astype(jnp.float32)
    chosen = generator.integers(NUM_PAIRS, size=(NUM_STEPS, 100))
    return model, truth, (users[chosen], items[chosen], values[chosen])


def divergent_seeds(factorization, alpha, **options):
    """How many seeds leave the finite numbers."""
    model, truth, minibatches = factorization
    algorithm = levymc.sgfla(
        model.grad_estimator(NUM_PAIRS), 0.01, alpha, integrator=EULER, **options
    )

    @jax.jit
    def diverges(key):
        def body(state, given):
            state, info = algorithm.step(given[0], state, given[1])
            return state, info.is_divergent

        keys = jax.random.split(key, NUM_STEPS)
        return jnp.any(jax.lax.scan(body, state_of(truth), (keys, minibatches))[1])

    keys = [jax.random.key(seed, impl="rbg") for seed in range(NUM_SEEDS)]  # quick to compile
    return sum(bool(diverges(key)) for key in keys)


def test_a_jump_explodes_plain_steps_and_not_those_that_know_the_curvature(factorization):
    """Margins: of 32 seeds all exploded with plain steps and none with the curvature's, for
    α = 1.4, 1.5 and 1.6 alike; at α = 2 none did either way.
    """
    model, _, _ = factorization
    assert divergent_seeds(factorization, 1.5) >= 0.75 * NUM_SEEDS
    curvature = model.row_curvature(NUM_PAIRS)
    assert divergent_seeds(factorization, 1.5, curvature=curvature) == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: one_step(preconditioner=-1.0), ("preconditioner", "-1.0")),
        (lambda: one_step(preconditioner={"a": 1.0}), ("preconditioner", "structure")),
        (lambda: one_step(preconditioner=np.ones((3, 1, 2))), ("preconditioner", "(3, 1, 2)")),
        (lambda: one_step(curvature=3.0), ("curvature", "3.0")),
        (lambda: one_step(curvature=lambda x, b: np.ones(5)), ("curvature", "(5,)")),
        (lambda: one_step(noise="pink"), ("noise", "truncated", "pink")),
        (lambda: noises.truncated(0.0), ("bound", "0.0")),
        (lambda: noises.truncated(np.inf), ("bound", "inf")),
        (lambda: stable.sample_truncated(KEY, 0.3, 1.0), ("alpha", "0.3")),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
