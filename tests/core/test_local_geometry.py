"""A preconditioner that is a function of the position: the drift it needs, and the steps it makes.

The one statistical bound has a false-alarm rate of 1e-8.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma
from scipy.stats import norm
from tests.bounds import distance_to, dkw_bound
from tests.core.drift_cases import fractional_laplacian

import levymc
from levymc import integrators

POINTS = np.linspace(-7, 7, 1401)  # a fortieth of a well's width apart: sums are exact
EULER = integrators.euler()


def fast_between(x):
    """4 on the barrier, 1 in the wells, a little more to the right: nothing cancels by symmetry."""
    return 1.0 + 3.0 * jnp.exp(-jnp.square(x) / 2) + 0.3 * jnp.tanh(x)


def imbalance(flow, log_density, alpha):
    """The largest |E[b g'] - E[m (-Δ)^{α/2} g]| over bumps g, relative to the second."""
    pace = np.asarray(fast_between(POINTS))
    found = []
    for center in (-3.6, -1.0, 0.0, 2.0, 3.6):
        u = (POINTS - center) / 0.6
        by_drift = np.sum(flow * -u / 0.6 * np.exp(-u * u / 2))
        jumps = pace * fractional_laplacian(alpha, POINTS, center, 0.6)
        by_jumps = np.sum(np.exp(log_density) * jumps)
        found.append(abs(by_drift / by_jumps - 1))
    return max(found)


def drift_times_density(algorithm, log_density):
    """b φ where the chain would start at each of the points."""
    known = jax.jit(jax.vmap(lambda x: algorithm.known_at(x, 0).drift.signed_log()))
    sign, log_size = known(jnp.asarray(POINTS))
    return np.asarray(sign) * np.exp(np.asarray(log_size) + log_density)


@pytest.mark.parametrize("alpha", [1.3, pytest.param(1.8, marks=pytest.mark.nightly)])
def test_the_target_is_stationary_under_the_generator(alpha):
    """∫ φ (b g' - m (-Δ)^{α/2} g) = 0 for bumps g all over the target, by other formulas.

    With the drift m b of a fixed m, the correction left out, it is not.
    """
    target = levymc.targets.double_well
    log_density = np.asarray(jax.vmap(target)(jnp.asarray(POINTS)))
    local = levymc.flmc(target, 0.1, alpha, preconditioner=fast_between)
    assert imbalance(drift_times_density(local, log_density), log_density, alpha) < 1e-6
    plain = drift_times_density(levymc.flmc(target, 0.1, alpha), log_density)
    uncorrected = np.asarray(fast_between(POINTS)) * plain
    assert imbalance(uncorrected, log_density, alpha) > 0.5


def skewed(position):
    a, b = position["a"], position["b"]
    return -(a**4) / 4 - jnp.sum((b - a) ** 2) + jnp.sin(b[0] * b[1])


def one_number(position):
    return 1 + position["a"] ** 2 + jnp.sum(jnp.cos(position["b"]) ** 2)


def diagonal(position):
    a, b = position["a"], position["b"]
    return {"a": 1 + a**2 * b[0] ** 2, "b": jnp.exp(a * b + jnp.sin(b[::-1]))}


def one_for_two(position):
    """The entries of b share one number."""
    return {"a": 2.0 + jnp.sin(position["a"]), "b": 1 + jnp.sum(position["b"] ** 2)}


def divergence_form(pace, position):
    """m_d ∂_d log φ + ∂_d m_d, from the whole Jacobian."""
    flat, unflatten = jax.flatten_util.ravel_pytree(position)

    def paces(vector):
        where = unflatten(vector)
        whole = jax.tree.broadcast(pace(where), where)
        filled = jax.tree.map(lambda m, x: jnp.broadcast_to(m, jnp.shape(x)), whole, where)
        return jax.flatten_util.ravel_pytree(filled)[0]

    slope = jax.grad(lambda vector: skewed(unflatten(vector)))(flat)
    return unflatten(paces(flat) * slope + jnp.diag(jax.jacfwd(paces)(flat)))


HERE = {"a": jnp.asarray(0.7), "b": jnp.asarray([0.4, -1.1])}


def same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), one, other)


@pytest.mark.parametrize("pace", [one_number, diagonal, one_for_two])
def test_the_drift_is_that_of_riemannian_langevin_dynamics(pace):
    """At α = 2 by the textbook's formula, and c_α times it for b̂."""
    c = gamma(1.6 - 1) / gamma(1.6 / 2) ** 2
    made = {
        "ula": (levymc.ula(skewed, 0.1, preconditioner=pace), 1.0),
        "fla": (levymc.fla(skewed, 0.1, 1.6, preconditioner=pace), c),
    }
    if pace is one_number:
        made["flmc"] = (levymc.flmc(skewed, 0.1, 2.0, preconditioner=pace), 1.0)
    known, expected = jax.jit(
        lambda here: (
            {name: algorithm.init(here).drift.value() for name, (algorithm, _) in made.items()},
            divergence_form(pace, here),
        )
    )(HERE)
    for name, (_, factor) in made.items():
        same(known[name], jax.tree.map(lambda b, factor=factor: factor * b, expected))


def test_steps_by_minibatches_are_those_of_the_gradient():
    options = {"integrator": EULER, "preconditioner": diagonal}
    by_batches = levymc.sgfla(lambda x, _: jax.grad(skewed)(x), 0.1, 1.6, **options)
    whole = levymc.fla(skewed, 0.1, 1.6, **options)
    steps = jax.jit(
        lambda key, here: (
            by_batches.step(key, by_batches.init(here), None)[0].position,
            whole.step(key, whole.init(here))[0].position,
        )
    )
    same(*steps(jax.random.key(1), HERE))


def test_a_step_has_the_noise_of_where_it_begins():
    """x' = x + η c_α (m ∇log φ + ∇m) + (η m(x))^{1/α} ξ, with ξ that of a plain step."""
    eta, alpha, start = 0.1, 1.6, jnp.asarray(0.8)
    c = gamma(alpha - 1) / gamma(alpha / 2) ** 2
    key = jax.random.key(2)
    flat = levymc.fla(lambda x: 0.0 * x, 1.0, alpha, integrator=EULER)
    noise = flat.step(key, flat.init(start))[0].position - start
    for function in (fast_between, jax.tree_util.Partial(lambda s, x: s * fast_between(x), 1.0)):
        algorithm = levymc.fla(
            lambda x: -x * x / 2, eta, alpha, integrator=EULER, preconditioner=function
        )
        found = jax.jit(lambda made, x: made.step(key, made.init(x))[0])(algorithm, start).position
        m, slope = jax.value_and_grad(fast_between)(start)
        drift = c * (-m * start + slope)
        np.testing.assert_allclose(
            found, start + eta * drift + (eta * m) ** (1 / alpha) * noise, rtol=1e-12
        )


@pytest.mark.nightly
@pytest.mark.parametrize("alpha", [2.0, 1.6])
def test_long_runs_have_the_law_of_the_target(alpha):
    """Detects a shift of the distribution function by 0.12: the bound and the step's bias."""
    algorithm = levymc.flmc(lambda x: -x * x / 2, 1e-2, alpha, preconditioner=fast_between)
    num_chains, start = 1000, jnp.zeros(1000)
    result = levymc.sample(algorithm, jax.random.key(3), start, 400, thin=400, progress=False)
    distance = distance_to(np.asarray(result.positions)[:, -1], norm.cdf)
    assert distance < dkw_bound(num_chains, 1e-8) + 0.02


def test_a_run_and_its_report_cope():
    algorithm = levymc.ula(
        lambda x: -jnp.sum(x**2) / 2, 0.05, preconditioner=lambda x: 1 / (1 + jnp.abs(x))
    )
    start = jnp.zeros((2, 2), jnp.float32)
    result = levymc.sample(algorithm, jax.random.key(0), start, 60, progress=False)
    assert np.all(np.isfinite(result.positions))
    assert levymc.diagnostics.check(result) is not None


def test_where_it_is_not_positive_no_step_is_made():
    for algorithm in (
        levymc.ula(lambda x: -x * x / 2, 0.1, preconditioner=lambda x: x),
        levymc.flmc(lambda x: -x * x / 2, 0.1, 1.7, preconditioner=lambda x: x),
    ):
        state, info = algorithm.step(jax.random.key(0), algorithm.init(-1.0))
        assert bool(info.is_divergent)
        assert float(state.position) == -1.0


def test_errors_name_the_remedy():
    def normal(x):
        return -jnp.sum(x * x) / 2

    with pytest.raises(TypeError, match=r"`preconditioner` must be fixed numbers.*use fla"):
        levymc.mafla(normal, 0.1, preconditioner=lambda x: 1.0)
    with pytest.raises(ValueError, match=r"`drift` must not be given.*Leave it out"):
        levymc.flmc(normal, 0.1, drift=lambda x: -x, preconditioner=lambda x: 1.0)
    with pytest.raises(TypeError, match="`preconditioner` of flmc must return one number"):
        levymc.flmc(normal, 0.1, preconditioner=lambda x: 1 + x * x).init(jnp.ones(2))
    with pytest.raises(TypeError, match="`preconditioner` must be a function of 1 argument"):
        levymc.fla(normal, 0.1, preconditioner=lambda: 1.0)
    with pytest.raises(ValueError, match="`preconditioner` must broadcast"):
        levymc.fla(normal, 0.1, preconditioner=lambda x: jnp.ones((3, 2))).init(jnp.ones(2))
    with pytest.raises(TypeError, match="`preconditioner` must be of floating type"):
        levymc.fla(normal, 0.1, preconditioner=lambda x: 1j).init(jnp.ones(2))
