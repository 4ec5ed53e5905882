"""BlackJAX both ways: its loop runs levymc's algorithms, and `levymc.sample` runs its samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
