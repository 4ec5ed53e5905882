"""Jumps between modes beside another algorithm: exact by themselves, and computed only when due.

Statistical bounds: false-alarm rate at most 1e-8 each, seven of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

import levymc
from levymc import schedules, targets
from levymc._trees import module
from levymc.algorithms import Info, SamplingAlgorithm, State, start_at
from levymc.run import _create, _store

FALSE_ALARM = 1e-8
KEY = jax.random.key(5)

# Skewed, with modes of unequal width: nothing cancels by symmetry.
WEIGHTS, MEANS, SCALES = np.array([0.7, 0.3]), np.array([0.0, 3.0]), np.array([0.5, 1.5])
CELLS = np.array([-0.8, -0.4, 0.0, 0.4, 0.8, 1.6, 2.6, 3.6, 4.8])
skewed = targets.gaussian_mixture(WEIGHTS, MEANS, SCALES)


@module()
class Still(SamplingAlgorithm[State]):
    """An algorithm that stays where it is, and counts."""

    takes_minibatch = False
    is_exact = True

    def init(self, position, rng_key=None):
        return start_at(position)

    def step(self, key, state, *minibatch):
        one = jnp.ones(())
        info = Info(one, one, jnp.bool_(False), 0 * one, 0 * one)
        return state._replace(step=state.step + 1), info


def skewed_draws(key, count):
    key_component, key_normal = jax.random.split(key)
    component = jax.random.choice(key_component, 2, (count,), p=jnp.asarray(WEIGHTS))
    normal = jax.random.normal(key_normal, (count,))
    draws = jnp.asarray(MEANS)[component] + jnp.asarray(SCALES)[component] * normal
    return draws.astype(jnp.float32)


def final(algorithm, starts, num_steps):
    """Where chains are after some steps, and the share of jumps that was accepted."""

    def chain(key, start):
        def step(state, step_key):
            state, info = algorithm.step(step_key, state)
            return state, (info.jumps_tried, info.jumps_accepted)

        state, counts = jax.lax.scan(step, algorithm.init(start), jax.random.split(key, num_steps))
        return state.position, jax.tree.map(jnp.sum, counts)

    keys = jax.random.split(KEY, len(jax.tree.leaves(starts)[0]))
    ends, (tried, accepted) = jax.jit(jax.vmap(chain))(keys, starts)
    return jax.tree.map(np.asarray, ends), float(jnp.sum(accepted) / jnp.sum(tried))


# The jump by itself.


def most_unlikely_pair(target, count=200_000):
    """One jump from exact draws: are moves i → j between cells as frequent as those j → i?

    Exact binomial tests; the smallest p-value times their number (Bonferroni).  The jump comes
    with the second of three steps of an algorithm that does not move.
    """
    starts = skewed_draws(jax.random.key(11), count)
    ends, rate = final(levymc.jumping(Still(), target, 2, scale=1.0), starts, 3)
    moves = np.zeros((CELLS.size + 1, CELLS.size + 1), int)
    np.add.at(moves, (np.searchsorted(CELLS, starts), np.searchsorted(CELLS, ends)), 1)
    upper = np.triu_indices(len(moves), 1)
    there, back = moves[upper], moves.T[upper]
    p_values = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(there, back), there + back, 0.5))
    return float(np.min(p_values)) * p_values.size, rate


def test_a_jump_satisfies_detailed_balance():
    """Of 2e5 jumps, those between any two of ten cells go both ways alike.

    A pair of cells with 4000 moves shows an asymmetry of 60 to 40; see the next test for a defect.
    """
    p_value, rate = most_unlikely_pair(skewed)
    assert 0.2 < rate < 0.9  # the test has something to do
    assert p_value > FALSE_ALARM


@pytest.mark.nightly
def test_detailed_balance_sees_a_wrong_density():
    """A fifth too little of the log density."""
    assert most_unlikely_pair(lambda x: 0.8 * skewed(x))[0] < FALSE_ALARM


def distance_to(draws, cdf):
    """Kolmogorov's distance of a sample to a law."""
    levels, count = cdf(np.sort(draws)), len(draws)
    above = np.arange(1, count + 1) / count - levels
    return float(max(np.max(above), np.max(1 / count - above)))


def skewed_cdf(x):
    return sum(w * stats.norm.cdf(x, m, s) for w, m, s in zip(WEIGHTS, MEANS, SCALES, strict=True))


def both(position):
    """A target of two numbers that are independent, in a pytree."""
    return skewed(position["a"][0]) - position["b"] ** 2 / 2


@pytest.mark.nightly
@pytest.mark.parametrize("coordinatewise", [True, False])
def test_jumps_keep_the_law_of_a_pytree(coordinatewise):
    """20 jumps from exact draws, with a scale for each leaf; 2e4 chains detect 0.022 in a CDF."""
    count = 20_000
    starts = {
        "a": skewed_draws(jax.random.key(1), count)[:, None],
        "b": jax.random.normal(jax.random.key(2), (count,), jnp.float32),
    }
    algorithm = levymc.jumping(
        Still(), both, 1, scale={"a": 2.0, "b": 1.0}, coordinatewise=coordinatewise
    )
    ends, rate = final(algorithm, starts, 20)
    assert 0.1 < rate < 0.9
    assert np.mean(ends["a"] != starts["a"]) > 0.9  # the test has something to do
    bound = dkw_bound(count, FALSE_ALARM / 2)
    assert distance_to(ends["a"][:, 0], skewed_cdf) < bound
    assert distance_to(ends["b"], stats.norm.cdf) < bound


@pytest.mark.nightly
def test_jumps_beside_an_exact_algorithm_find_modes_that_it_does_not():
    """Chains with Gaussian steps from one of two modes 20 apart are in both by their weights.

    DKW at 2000 chains and 1e-8 detects 0.14 in the CDF; without jumps it would be off by 0.7.
    """
    weights, means = np.array([0.3, 0.7]), np.array([-10.0, 10.0])
    target = targets.gaussian_mixture(weights, means, np.ones(2))
    alone = levymc.levy_walk(target, 1.0, 2.0)
    together = levymc.jumping(alone, target, 1, scale=10.0)
    ends, _ = final(together, jnp.full(2000, -10.0, jnp.float32), 200)
    assert together.is_exact

    def cdf(x):
        return sum(w * stats.norm.cdf(x, m) for w, m in zip(weights, means, strict=True))

    assert distance_to(ends, cdf) < dkw_bound(len(ends), FALSE_ALARM)


# What an algorithm keeps, and what it does not.


def normal(position):
    return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)) / 2


def slopes(position, minibatch):
    return jax.tree.map(lambda leaf: -leaf + 0 * jnp.mean(minibatch), position)


SGLD = levymc.sgld(slopes, 0.1)


def test_the_scale_is_that_of_standard_coordinates_if_none_is_given():
    assert levymc.jumping(SGLD, normal, every=100).walk.scale == 1.0


JUMPING = levymc.jumping(SGLD, normal, 3, scale=1.0)
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)
BATCHES = levymc.batches(jnp.arange(20, dtype=jnp.float32), 5)


def run(algorithm=JUMPING, num_steps=60, starts=STARTS, minibatches=BATCHES, **options):
    given = {"minibatches": minibatches, "progress": False, **options}
    return levymc.sample(algorithm, KEY, starts, num_steps, **given)


@pytest.mark.nightly
def test_between_jumps_the_steps_are_those_of_the_algorithm():
    """With its own half of each key."""
    state, alone = JUMPING.init(STARTS[0]), SGLD.init(STARTS[0])
    for number in (1, 2):
        key = jax.random.key(number)
        state, info = JUMPING.step(key, state, jnp.ones(5))
        alone, _ = SGLD.step(jax.random.split(key)[0], alone, jnp.ones(5))
        np.testing.assert_array_equal(state.position, alone.position)
        assert (int(state.since), int(info.jumps_tried)) == (number, 0)
    state, info = JUMPING.step(jax.random.key(3), state, jnp.ones(5))
    assert (int(state.since), int(info.jumps_tried)) == (0, 1)


def test_a_schedule_goes_on_after_a_jump():
    algorithm = levymc.jumping(
        levymc.sgld(slopes, schedules.polynomial(0.1, 0.5)), normal, 2, scale=0.5
    )
    result = run(algorithm)
    assert 0 < np.sum(result.info.jumps_accepted) < np.sum(result.info.jumps_tried)
    expected = np.sqrt(0.1 / np.arange(1, 61))
    np.testing.assert_allclose(result.weights, np.tile(expected, (4, 1)), rtol=1e-6)


@pytest.mark.nightly
def test_what_an_algorithm_knows_of_its_place_is_that_of_the_new_one():
    algorithm = levymc.jumping(levymc.mafla(normal, 0.01, 2.0), normal, 1, scale=0.5)
    state, step, accepted = algorithm.init(jnp.ones(2)), jax.jit(algorithm.step), 0
    for seed in range(8):
        state, info = step(jax.random.key(seed), state)
        accepted += int(info.jumps_accepted)
        fresh = algorithm.init(state.position).inner
        np.testing.assert_allclose(state.inner.logdensity, fresh.logdensity, rtol=1e-12)
        for known, right in zip(
            *map(jax.tree.leaves, (state.inner.drift, fresh.drift)), strict=True
        ):
            np.testing.assert_allclose(known, right, rtol=1e-12)
        assert int(state.inner.step) == seed + 1
    assert 0 < accepted < 8


@pytest.mark.nightly
def test_the_memory_of_latent_variables_is_kept():
    def count_visits(key, position, minibatch, memory):
        return minibatch, memory + 1

    visited = levymc.augmented(SGLD, count_visits, jnp.zeros(()))
    algorithm = levymc.jumping(visited, normal, 1, scale=0.1)
    state, accepted = algorithm.init(STARTS[0]), 0
    for seed in range(4):
        state, info = algorithm.step(jax.random.key(seed), state, jnp.ones(5))
        accepted += int(info.jumps_accepted)
    assert accepted
    assert float(state.inner.memory) == 4


@pytest.mark.nightly
def test_a_jump_leads_back_into_the_support():
    """From where the density of all data is zero, as minibatches may not have told."""

    def bounded(x):
        return jnp.where(jnp.abs(x) < 1, 0.0, -jnp.inf)

    algorithm = levymc.jumping(Still(), bounded, 1, scale=1.0)
    begun = algorithm.init(0.5)
    outside = begun._replace(inner=begun.inner._replace(position=jnp.asarray(1.5)))
    step, states = jax.jit(algorithm.step), outside
    for seed in range(40):
        states, info = step(jax.random.key(seed), states)
        assert not bool(info.is_divergent)
    assert abs(float(states.position)) < 1


@pytest.mark.nightly
def test_dtypes_stay():
    starts = {"a": jnp.ones((4, 2), jnp.float64), "b": jnp.zeros(4, jnp.float32)}
    result = run(num_steps=6, starts=starts)
    assert {name: leaf.dtype.name for name, leaf in result.positions.items()} == {
        "a": "float64",
        "b": "float32",
    }
    assert np.all(np.sum(result.info.jumps_tried, axis=1) == 2)


@pytest.mark.nightly
def test_other_libraries_algorithms():
    blackjax = pytest.importorskip("blackjax")
    algorithm = levymc.jumping(blackjax.mala(normal, 0.1), normal, 2, scale=1.0)
    result = run(algorithm, starts=STARTS.astype(float), minibatches=None, thin=6)
    assert np.all(result.info.jumps_tried == 3)
    assert 0 < result.info.acceptance_rate.mean() < 1
    assert result.is_exact is None
    sgld = levymc.interop.blackjax.stochastic_gradient(blackjax.sgld(slopes), 0.1)
    result = run(levymc.jumping(sgld, normal, 2, scale=1.0), starts=STARTS.astype(float))
    assert np.sum(result.info.jumps_tried) == 4 * 30


# In the engine.


def test_the_density_is_computed_only_when_a_jump_is_due():
    """Twice for each chain and jump, in a run as under jit, and never in other steps."""
    seen = []

    def counted(position):
        jax.debug.callback(lambda _: seen.append(None), position)
        return normal(position)

    def count(function):
        seen.clear()
        jax.block_until_ready(function())
        jax.effects_barrier()
        return len(seen)

    algorithm = levymc.jumping(SGLD, counted, 20, scale=1.0)
    state = algorithm.init(STARTS[0])

    @jax.jit
    def steps(state):
        keys = jax.random.split(KEY, 59)
        return jax.lax.scan(lambda s, k: algorithm.step(k, s, jnp.ones(5)), state, keys)[0]

    assert count(lambda: steps(state)) == 2 * 2
    run(algorithm, 19)  # compiles
    begun = count(lambda: run(algorithm, 19).positions)  # by the starts alone
    assert count(lambda: run(algorithm, 59).positions) - begun == 2 * 2 * len(STARTS)


@pytest.mark.nightly
def test_maps_within_maps_give_the_same():
    """Chains in two axes, as in one."""
    states = jax.vmap(JUMPING.init)(STARTS)
    keys = jax.random.split(KEY, 4)

    def three(key, state):
        keys = jax.random.split(key, 3)
        return jax.lax.scan(lambda s, k: JUMPING.step(k, s, jnp.ones(5)), state, keys)

    square = jax.tree.map(lambda leaf: leaf.reshape(2, 2, *leaf.shape[1:]), (keys, states))
    once = jax.jit(jax.vmap(three))(keys, states)
    twice = jax.jit(jax.vmap(jax.vmap(three)))(*square)
    for one, other in zip(jax.tree.leaves(once), jax.tree.leaves(twice), strict=True):
        np.testing.assert_allclose(one, other.reshape(one.shape), rtol=1e-6)
    assert int(jnp.sum(once[1].jumps_tried)) == 4


@pytest.mark.nightly
def test_counts_of_jumps_do_not_depend_on_thinning():
    whole, thinned = run(), run(thin=7)
    for name in ("jumps_tried", "jumps_accepted"):
        every, some = getattr(whole.info, name), getattr(thinned.info, name)
        sums = np.add.reduceat(every[:, :56], np.arange(0, 56, 7), axis=1)
        np.testing.assert_array_equal(some, sums)
    assert np.sum(whole.statistics["jumps_tried"]) == 4 * 20
    assert 0 < np.sum(whole.statistics["jumps_accepted"]) < 4 * 20


@pytest.mark.nightly
def test_a_sweep_over_scale_and_distance_of_jumps():
    """Chain c of the sweep is chain c of a run of its algorithm, though others jump before it."""
    algorithms = [
        levymc.jumping(SGLD, normal, every, scale=scale)
        for every, scale in ((1, 0.5), (2, 1.0), (3, 2.0), (50, 1.0))
    ]
    together = run(algorithms)
    np.testing.assert_array_equal(np.sum(together.info.jumps_tried, axis=1), [60, 30, 20, 1])
    for chain, algorithm in enumerate(algorithms):
        alone = run(algorithm)
        np.testing.assert_allclose(together.positions[chain], alone.positions[chain], rtol=1e-5)


@pytest.mark.nightly
def test_a_store_changes_no_byte(tmp_path, calls_of, stopped_after, monkeypatch):
    monkeypatch.setattr(_create, "MOST_IN_CHUNK", 8)
    monkeypatch.setattr(_store, "COMMIT_SECONDS", -1.0)
    whole = run(thin=2)
    calls_of(7)
    with stopped_after(3):
        part = run(thin=2, store=tmp_path / "run")
    assert part.is_interrupted
    resumed = levymc.resume(tmp_path / "run", progress=False)
    for again in (resumed, levymc.load(tmp_path / "run")):
        for one, other in zip(
            jax.tree.leaves((whole.positions, whole.info)),
            jax.tree.leaves((again.positions, again.info)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.nightly
def test_check_does_not_blame_jumps_that_were_tested():
    """Nor for their size beside the noise; chains that hop rarely, it says, do not agree."""

    def apart(x):
        return jnp.logaddexp(-((x - 20) ** 2) / 2, -((x + 20) ** 2) / 2)

    def slope(x, minibatch):
        return 20 * jnp.tanh(20 * x) - x + 0 * jnp.mean(minibatch)

    algorithm = levymc.jumping(levymc.sgld(slope, 0.05), apart, 5, scale=20.0)
    result = run(algorithm, 4000, jnp.full(4, 20.0, jnp.float32))
    assert np.all(np.sum(np.diff(np.sign(result.positions)) != 0, axis=1) > 0)
    kinds = set(levymc.diagnostics.check(result).kinds)
    assert kinds <= {"not converged", "few effective draws", "drifting"}


def test_names_and_what_is_targeted():
    assert JUMPING.name == "jumping sgld"
    assert run(num_steps=3).algorithm == "jumping sgld"
    assert JUMPING.is_exact is False
    assert JUMPING.takes_minibatch
    walk = levymc.levy_walk(normal, 1.0)
    assert levymc.jumping(walk, normal, scale=1.0).is_exact
    assert levymc.jumping(walk, lambda x: normal(x), scale=1.0).is_exact is None


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"every": 0}, ValueError, r"`every` must be at least 1, got 0"),
        ({"every": 2.5}, TypeError, r"`every` must be an integer, got 2\.5"),
        ({"scale": 0.0}, ValueError, r"`scale` must be positive.*got 0\.0"),
        ({"scale": None}, TypeError, r"`scale` must be real, got None"),
        ({"alpha": 2.5}, ValueError, r"`alpha` must lie in \(0, 2\], got 2\.5"),
        ({"algorithm": normal}, TypeError, r"`algorithm` must have `init` and `step`"),
    ],
)
def test_bad_arguments_are_named(given, error, words):
    with pytest.raises(error, match=words):
        levymc.jumping(**{"algorithm": SGLD, "logdensity_fn": normal, "scale": 1.0, **given})


def test_a_start_where_the_drift_vanishes_is_one():
    """There the drift's logarithm is -∞: before, a state inside the state was refused for it."""
    drift = levymc.drifts.quadrature(normal, 1.5, radius=6.0)
    algorithm = levymc.jumping(levymc.flmc(normal, 0.05, 1.5, drift=drift), normal, 5, scale=1.0)
    result = levymc.sample(
        algorithm, KEY, jnp.zeros((2, 1), jnp.float32), 6, progress=False, thin=3
    )
    assert np.all(np.isfinite(result.positions))


def test_bad_densities_and_starts_are_named():
    def vector(x):
        return -(x**2) / 2

    def bounded(x):
        return jnp.where(jnp.all(jnp.abs(x) < 0.5), 0.0, -jnp.inf)

    with pytest.raises(TypeError, match=r"`logdensity_fn` must return a scalar, got shape \(2,\)"):
        run(levymc.jumping(SGLD, vector, scale=1.0))
    with pytest.raises(ValueError, match=r"`initial_positions`.*not finite, in chains"):
        run(levymc.jumping(SGLD, bounded, scale=1.0))
    with pytest.raises(TypeError, match=r"`minibatches` must be given, as jumping sgld takes one"):
        run(minibatches=None)
    with pytest.raises(ValueError, match=r"`scale` must broadcast"):
        run(levymc.jumping(SGLD, normal, scale=np.ones(3)))
