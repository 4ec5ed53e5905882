"""BlackJAX both ways: its loop runs levymc's algorithms, and `levymc.sample` runs its samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound
from tests.core import mixtures

import levymc

blackjax = pytest.importorskip("blackjax")

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8).reshape(4, 2)


def normal(position):
    return -jnp.sum(position**2) / 2


OURS = {
    "fla": levymc.fla(normal, 0.1, 2.0),
    "mafla": levymc.mafla(normal, 0.5),
    "levy_walk": levymc.levy_walk(normal, 1.0),
}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.often("fla", "mafla")
def test_its_loop_runs_our_algorithms(name):
    """With the keys that it splits, and from a position or a state."""
    algorithm = OURS[name]
    start = jnp.ones(2, jnp.float32)
    final, (states, info) = blackjax.util.run_inference_algorithm(
        rng_key=KEY, inference_algorithm=algorithm, num_steps=10, initial_position=start
    )
    assert states.position.shape == (10, 2)
    assert info.acceptance_rate.shape == (10,)
    np.testing.assert_array_equal(final.position, states.position[-1])
    again, _ = blackjax.util.run_inference_algorithm(
        rng_key=jax.random.split(KEY)[1],  # what is left of the key after a state was made
        inference_algorithm=algorithm,
        num_steps=10,
        initial_state=algorithm.init(start),
    )
    assert jnp.shape(again.position) == (2,)
    assert len(np.unique(states.position)) > 3


MASS = jnp.ones(2)
NUTS = blackjax.nuts(normal, step_size=0.5, inverse_mass_matrix=MASS)
THEIRS = {
    "nuts": NUTS,
    "hmc": blackjax.hmc(normal, 0.5, MASS, 4),
    "mala": blackjax.mala(normal, 0.5),
}


def run(algorithm, num_steps=20, **options):
    return levymc.sample(algorithm, KEY, STARTS, num_steps, progress=False, **options)


@pytest.fixture(scope="module")
def results():
    return {name: run(algorithm) for name, algorithm in THEIRS.items()}


@pytest.mark.parametrize("name", THEIRS)
def test_our_run_takes_its_samplers(name, results):
    """The draws are those of its own kernel with the keys of ours."""
    result, algorithm = results[name], THEIRS[name]
    assert result.positions.shape == (4, 20, 2)
    assert f"by {name}" in repr(result)
    np.testing.assert_array_equal(result.weights, 1.0)
    state, step = algorithm.init(STARTS[2]), jax.jit(algorithm.step)
    for number in range(3):
        key = jax.random.fold_in(jax.random.fold_in(KEY, 2), number)
        state, _ = step(key, state)
        np.testing.assert_allclose(result.positions[2, number], state.position, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "statistics"),
    [
        ("nuts", {"diverging", "acceptance_rate", "energy", "tree_depth", "n_steps"}),
        ("hmc", {"diverging", "acceptance_rate", "energy", "n_steps"}),
        ("mala", {"acceptance_rate"}),
    ],
)
def test_statistics_have_the_names_that_arviz_knows(name, statistics, results):
    result = results[name]
    assert statistics <= set(result.statistics)
    for values in result.statistics.values():
        assert values.shape == (4, 20)
    assert result.statistics["acceptance_rate"].min() >= 0
    assert result.statistics["acceptance_rate"].max() <= 1
    pytest.importorskip("arviz")
    assert statistics <= set(result.to_arviz().sample_stats.data_vars)


def steep(position):
    return -jnp.sum(position**4) * 1e6


def test_its_divergences_are_counted():
    result = run(blackjax.nuts(steep, step_size=10.0, inverse_mass_matrix=MASS))
    assert result.num_divergent == int(result.statistics["diverging"].sum()) > 0
    assert "divergent" in repr(result)


def test_its_samplers_are_stored_and_resumed(tmp_path, calls_of, stopped_after, results):
    calls_of(5)
    with stopped_after(2):
        run(NUTS, store=tmp_path / "run")
    resumed = levymc.resume(tmp_path / "run", progress=False)
    np.testing.assert_array_equal(resumed.positions, results["nuts"].positions)
    for name, values in results["nuts"].statistics.items():
        np.testing.assert_array_equal(resumed.statistics[name], values)


def test_its_samplers_are_thinned_observed_and_visited(results):
    whole = results["hmc"].positions
    some = run(THEIRS["hmc"], thin=5, observe={"mean": levymc.observe.mean()}, keep=True)
    np.testing.assert_allclose(some.positions, whole[:, 4::5], rtol=1e-6)
    np.testing.assert_allclose(some.observed["mean"], whole.mean(axis=1), rtol=1e-6)
    (visit,) = levymc.iterate(THEIRS["hmc"], KEY, STARTS, 20, at=[9])
    np.testing.assert_allclose(visit.states.position, whole[:, 8], rtol=1e-6)


KERNELS = {
    "mafla": (levymc.mafla, {"alpha": 1.5}, "step_size", 0.5),
    "levy_walk": (levymc.levy_walk, {"alpha": 1.2, "coordinatewise": False}, "scale", 1.5),
    "fla": (levymc.fla, {"integrator": levymc.integrators.euler()}, "step_size", 0.1),
}


@pytest.mark.parametrize("name", KERNELS)
def test_ours_have_the_form_of_its_samplers(name):
    """An object, a state and a kernel that make the same steps as the algorithm itself."""
    make, options, number, value = KERNELS[name]
    api = levymc.interop.blackjax.sampling_api(make, **options)
    assert isinstance(api, blackjax.GenerateSamplingAPI)
    algorithm = make(normal, value, **options)
    state, _ = algorithm.step(KEY, algorithm.init(STARTS[0]))
    begun, kernel = api.init(STARTS[0], normal), api.build_kernel()
    whole = api(normal, value)
    assert isinstance(whole, blackjax.SamplingAlgorithm)
    for found, _ in (
        kernel(KEY, begun, normal, value),
        kernel(KEY, begun, normal, **{number: value}),
        whole.step(KEY, whole.init(STARTS[0])),
    ):
        jax.tree.map(np.testing.assert_array_equal, found, state)


@pytest.mark.parametrize("name", ["mafla", "levy_walk"])
@pytest.mark.often("mafla")
def test_our_kernels_leave_a_tempered_target_as_it_is(name):
    """As SMC uses them: a state made of particles, then steps with a traced number.

    DKW on 50 000 particles that are exact before, N(0, 1/β), false-alarm rate 1e-8.  Detects
    what moves the distribution function by 0.028.
    """
    make, options, number, value = KERNELS[name]
    api, count, beta = levymc.interop.blackjax.sampling_api(make, **options), 50_000, 0.25
    kernel = api.build_kernel()

    @jax.jit
    def moved(position, keys, size):
        def tempered(x):
            return beta * normal(x)

        state = api.init(position, tempered)
        for key in keys:
            state, _ = kernel(key, state, tempered, **{number: size})
        return state.position

    begun = 2 * jax.random.normal(jax.random.key(1), (count, 1))
    keys = jax.random.split(KEY, (count, 3))
    ended = np.asarray(jax.vmap(moved, in_axes=(0, 0, None))(begun, keys, value))[:, 0]
    assert np.mean(ended != np.asarray(begun)[:, 0]) > 0.5
    assert distance_to(ended, stats.norm(scale=2).cdf) < dkw_bound(count, 1e-8)


def two_modes(x):
    return jnp.sum(jnp.logaddexp(-((x - 4) ** 2), -((x + 4) ** 2)))


def test_its_tempered_smc_moves_particles_by_our_kernels():
    """From a prior to two modes, of which each keeps about a half."""
    api = levymc.interop.blackjax.sampling_api(levymc.mafla, alpha=1.5)
    smc = blackjax.adaptive_tempered_smc(
        lambda x: -jnp.sum(x * x) / 200,
        two_modes,
        api.build_kernel(),
        api.init,
        {"step_size": jnp.array([0.5])},
        blackjax.smc.resampling.systematic,
        target_ess=0.5,
        num_mcmc_steps=3,
    )
    state = smc.init(10 * jax.random.normal(jax.random.key(2), (400, 1)))
    step, num_steps = jax.jit(smc.step), 0
    while state.tempering_param < 1 and num_steps < 30:
        state, info = step(jax.random.fold_in(KEY, num_steps), state)
        num_steps += 1
    assert state.tempering_param == 1
    assert 0.1 < np.mean(info.update_info.acceptance_rate) <= 1
    assert 0.25 < np.mean(state.particles > 0) < 0.75
    assert np.mean(np.abs(np.abs(state.particles) - 4) < 2) > 0.9


@pytest.mark.nightly
def test_its_nuts_moves_the_rungs_of_our_ladder():
    """Every rung, by its own log density; test_tempered.py tests the law."""
    algorithm = levymc.adapt.tempered(
        mixtures.logdensity,
        mixtures.misfit(jnp.float64),
        (0.4, 1.0),
        kernel=lambda f: blackjax.nuts(f, step_size=0.5, inverse_mass_matrix=MASS),
    )
    result = run(algorithm)
    assert len(np.unique(result.positions[..., 0])) > 40
    assert np.nanmean(result.info.local_rates) > 0.5


@pytest.mark.parametrize("make", [levymc.sgfla, "mafla", lambda position: None])
def test_what_makes_no_sampler_of_a_density_is_refused(make):
    with pytest.raises(TypeError, match="`make` must"):
        levymc.interop.blackjax.sampling_api(make)


def test_a_state_with_a_key_in_it_is_refused():
    with pytest.raises(TypeError, match="`algorithm` must have numbers alone in its state, got a"):
        run(blackjax.dynamic_hmc(normal, 0.5, MASS))


@pytest.mark.parametrize("make", [blackjax.sgnht, lambda slope: blackjax.csgld(normal, slope)])
def test_stochastic_gradients_that_want_more_are_refused(make):
    with pytest.raises(
        TypeError, match=r"must be a function of \d arguments?, got .* Give blackjax"
    ):
        levymc.interop.blackjax.stochastic_gradient(make(lambda x, data: -x), 0.1)


@pytest.mark.parametrize("given", [{}, {"scale": 1.0}, {"step_size": 1.0, "alpha": 1.2}])
def test_a_kernel_takes_its_number_alone(given):
    """Another α than that of the state would be another drift, and no longer exact."""
    api = levymc.interop.blackjax.sampling_api(levymc.mafla)
    with pytest.raises(TypeError, match="`step_size` must be all that a kernel is given"):
        api.build_kernel()(KEY, api.init(STARTS[0], normal), normal, **given)
