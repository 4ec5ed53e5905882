"""Numbers are inputs of the compiled program: later runs compile nothing, lists of them are sweeps.

Statistical bounds: false-alarm rate at most 1e-8 each, two of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import dkw_bound

import levymc
from levymc import drifts, integrators, schedules, stable
from levymc.run import _engine

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)
TRACES = []


def counted(position):
    """A target that notes when it is traced."""
    TRACES.append(None)
    return -jnp.sum(position**2) / 2


def gradient(position, minibatch):
    TRACES.append(None)
    return -position + 0 * jnp.mean(minibatch)


def run(algorithm, num_steps=12, starts=STARTS, **options):
    return levymc.sample(algorithm, KEY, starts, num_steps, progress=False, **options)


def assert_compiled_once(*runs, looks=1):
    """That the first of some runs compiles it; others look whether the target is as it was."""
    runs[0]()
    first, programs = len(TRACES), _engine.compile_program.cache_info().misses
    results = [one() for one in runs[1:]]
    assert len(TRACES) - first <= looks * len(results)
    assert _engine.compile_program.cache_info().misses == programs
    return results


def test_a_first_run_traces_the_target_few_times():
    """To look at it; then for the shapes and for the program, each with a check of its shape."""
    TRACES.clear()
    run(levymc.ula(counted, 0.1), num_steps=40)
    assert 1 <= len(TRACES) <= 7


def test_other_numbers_of_steps_and_marks_compile_nothing():
    algorithm = levymc.ula(counted, 0.1)
    results = assert_compiled_once(
        lambda: run(algorithm, 60, thin=3),
        lambda: run(algorithm, 60, thin=5),
        lambda: run(algorithm, 400, thin=3, burn_in=11),
        lambda: run(algorithm, 60, thin=[2, 3, 59]),
        lambda: run(algorithm, 60, thin=levymc.marks.logarithmic(5)),
        lambda: run(levymc.ula(counted, 0.2), 60, thin=60),
    )
    assert [result.num_draws for result in results] == [12, 133, 3, 5, 1]


MAKERS = {
    "fla": lambda a: levymc.fla(counted, 0.1 * a, a),
    "fla, falling": lambda a: levymc.fla(counted, schedules.polynomial(a, a / 4), a),
    "fla, tamed": lambda a: levymc.fla(counted, 0.1, integrator=integrators.tamed(a)),
    "fla, preconditioned": lambda a: levymc.fla(
        counted, 0.1, preconditioner=np.array([a, 1.0], np.float32)
    ),
    "fla, truncated": lambda a: levymc.fla(counted, 0.1, a, noise=levymc.noises.truncated(9 * a)),
    "fla, isotropic": lambda a: levymc.fla(counted, 0.1, a, noise=levymc.noises.isotropic()),
    "flmc": lambda a: levymc.flmc(
        counted, 0.1, a, drift=drifts.quadrature(counted, a, radius=6 * a, num_nodes=8)
    ),
    "mafla": lambda a: levymc.mafla(counted, 0.2 * a, a),
    "levy_walk": lambda a: levymc.levy_walk(counted, a, a),
    "levy_walk, all": lambda a: levymc.levy_walk(counted, np.array([a, 1.0]), coordinatewise=False),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.often("fla", "mafla", "levy_walk")
def test_other_numbers_of_an_algorithm_compile_nothing(name):
    make = MAKERS[name]
    one, other = [], []
    assert_compiled_once(
        lambda: one.append(run(make(1.7), thin=2)), lambda: other.append(run(make(1.6), thin=2))
    )
    assert np.max(np.abs(one[0].positions - other[0].positions)) > 1e-4  # they are used


def test_other_numbers_with_minibatches_compile_nothing():
    data = jnp.arange(20, dtype=jnp.float32)

    def sgfla(alpha, eta, batches):
        algorithm = levymc.sgfla(gradient, eta, alpha)
        return lambda: run(algorithm, minibatches=batches, starts=STARTS[:, 0])

    assert_compiled_once(
        sgfla(1.7, 0.1, levymc.batches(data, 5)),
        sgfla(1.6, 0.2, levymc.batches(data, 5)),
        sgfla(1.7, 0.1, levymc.batches(data + 1, 5)),
        looks=2,
    )


def test_another_sweep_compiles_nothing():
    def sweep(*etas):
        return lambda: run([levymc.fla(counted, eta, 1.5 + eta) for eta in etas])

    assert_compiled_once(sweep(0.1, 0.2, 0.3, 0.4), sweep(0.2, 0.05, 0.1, 0.3))


def assert_each_is_alone(algorithms, starts=STARTS, rtol=1e-5, **options):
    """Chain c of the sweep is chain c of a run in which all chains have its algorithm."""
    together = run(algorithms, starts=starts, **options)
    for chain, algorithm in enumerate(algorithms):
        alone = run(algorithm, starts=starts, **options)
        for one, other in (
            (together.positions, alone.positions),
            (together.weights, alone.weights),
            (together.info.largest_jump, alone.info.largest_jump),
        ):
            np.testing.assert_allclose(one[chain], other[chain], rtol=rtol, atol=rtol / 10)


SWEEPS = {
    "step sizes": [levymc.ula(counted, eta) for eta in (0.1, 0.2, 0.05, 0.3)],
    "schedules": [
        levymc.fla(counted, schedules.polynomial(0.1, b), 1.7) for b in (0.1, 0.5, 0.9, 0.2)
    ],
    "alphas": [levymc.fla(counted, 0.1, alpha) for alpha in (1.2, 1.5, 1.7, 1.9)],
    "both": [levymc.mafla(counted, 0.1 * n, 1.9 - 0.2 * n) for n in (1, 2, 3, 4)],
    "scales": [levymc.levy_walk(counted, 0.3 * n) for n in (1, 2, 3, 4)],
    "preconditioners": [
        levymc.fla(counted, 0.1, 1.7, preconditioner=np.array([n, 1.0], np.float32))
        for n in (1, 2, 3, 4)
    ],
}


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.often("schedules", "both", "scales")
def test_a_chain_of_a_sweep_is_as_if_alone(name):
    assert_each_is_alone(SWEEPS[name], thin=2, burn_in=3)


def test_a_sweep_with_minibatches():
    algorithms = [levymc.sgfla(gradient, 0.02 * n, 1.5 + 0.1 * n) for n in (1, 2, 3, 4)]
    data = levymc.batches(jnp.arange(20, dtype=jnp.float32), 5)
    assert_each_is_alone(algorithms, starts=STARTS[:, 0], minibatches=data)


def test_algorithms_that_are_all_alike_are_one():
    algorithm = levymc.ula(counted, 0.1)
    together = run([levymc.ula(counted, 0.1) for _ in range(4)])
    np.testing.assert_array_equal(together.positions, run(algorithm).positions)
    assert together.weights.strides == (0, 0)  # what is constant is known to be


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.often("float32")
def test_alpha_two_among_others(dtype):
    """Its noise is drawn as that of the others, so that its draws are not those of a run alone.

    They have their law: one step from 0 of 20 000 coordinates with α = 2 is N(0, 2η), as the drift
    vanishes there.  DKW at 1e-8 detects 0.022 in the CDF: a scale that is wrong by 5 %.  The other
    chain is as if alone.
    """
    count, eta = 20_000, 0.3
    two, other = levymc.fla(counted, eta, 2.0), levymc.fla(counted, eta, 1.5)
    starts = jnp.zeros((2, count), dtype)
    result, alone = run([other, two], 1, starts), run(other, 1, starts)
    np.testing.assert_allclose(result.positions[0], alone.positions[0], rtol=1e-5)
    ordered = np.sort(result.positions[1, 0])
    levels = np.asarray(stable.cdf(jnp.asarray(ordered, jnp.float64), 2.0, eta**0.5))
    above = np.arange(1, count + 1) / count - levels
    found = max(np.max(above), np.max(1 / count - above))
    assert found < dkw_bound(count, 1e-8)


@pytest.mark.parametrize(
    "make",
    [
        lambda alpha: levymc.mafla(counted, 0.3, alpha),
        lambda alpha: levymc.sgfla(gradient, 0.1, alpha),
        lambda alpha: levymc.levy_walk(counted, 1.0, alpha),
        lambda alpha: levymc.fla(counted, 0.1, alpha, noise=levymc.noises.isotropic()),
        lambda alpha: levymc.fla(counted, 0.1, alpha, noise=levymc.noises.truncated(5.0)),
    ],
)
@pytest.mark.often("<lambda>0", "<lambda>3")
def test_every_algorithm_takes_alpha_two_among_others(make):
    algorithms = [make(alpha) for alpha in (1.5, 2.0)]
    options = {}
    if algorithms[0].takes_minibatch:
        options["minibatches"] = levymc.whole(jnp.ones(3, jnp.float32))
    assert np.all(np.isfinite(run(algorithms, 4, STARTS[:2], **options).positions))


def other_target(position):
    return -jnp.sum(position**4)


@pytest.mark.parametrize(
    ("algorithms", "words"),
    [
        ([levymc.ula(counted, 0.1)] * 3, ("4 chains", "list of 3")),
        ([], ("4 chains", "list of 0")),
        ([levymc.ula(counted, 0.1)] * 3 + [levymc.levy_walk(counted, 0.1)], ("2 kinds", "same")),
        (
            [levymc.levy_walk(counted, 1.0)] * 3 + [levymc.levy_walk(counted, np.ones(2))],
            ("[(), (2,)]", "same shapes"),
        ),
        ([levymc.ula(counted, 0.1)] * 3 + [levymc.ula(other_target, 0.1)], ("2 kinds", "same")),
        (
            [levymc.fla(counted, 0.1)] * 3
            + [levymc.fla(counted, 0.1, integrator=integrators.euler())],
            ("2 kinds", "options"),
        ),
    ],
)
def test_lists_that_are_no_sweep_are_refused(algorithms, words):
    with pytest.raises(ValueError, match="`algorithm` must be") as caught:
        run(algorithms)
    for word in words:
        assert word in str(caught.value)


def test_a_stored_sweep_resumes(tmp_path, calls_of, stopped_after):
    algorithms = SWEEPS["step sizes"]
    calls_of(5)
    with stopped_after(2):
        run(algorithms, 20, store=tmp_path / "run")
    resumed = levymc.resume(tmp_path / "run", progress=False)
    np.testing.assert_array_equal(resumed.positions, run(algorithms, 20).positions)
    np.testing.assert_array_equal(resumed.weights, run(algorithms, 20).weights)
