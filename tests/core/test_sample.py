"""The run: shapes, keys, thinning, calls, interruption, ArviZ, and what it refuses."""

import inspect
import io
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import integrators, schedules


def normal(position):
    return -jnp.sum(position**2) / 2


sample = inspect.unwrap(levymc.sample)  # without the type checker, which would speak first
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)  # compiles in a third of the time
KEY = jax.random.key(11)
FLA = levymc.fla(normal, 0.1, 1.7)
FALLING = levymc.fla(normal, schedules.polynomial(0.1, 0.5), 1.7)
WALK = levymc.levy_walk(normal, 1.0)


def run(algorithm=None, starts=STARTS, num_steps=60, key=KEY, **options):
    used = FLA if algorithm is None else algorithm
    return sample(used, key, starts, num_steps, progress=False, **options)


def test_shapes_and_weights():
    result = run(FALLING)
    assert result.positions.shape == (4, 60, 2)
    np.testing.assert_allclose(result.weights[2], (0.1 / np.arange(1, 61)) ** 0.5, rtol=1e-6)
    assert result.info.is_divergent.shape == (4, 60)


@pytest.mark.parametrize("steps", [1, 7, 60])
def test_calls_do_not_change_a_bit(calls_of, steps):
    whole = run(WALK)
    calls_of(steps)
    np.testing.assert_array_equal(whole.positions, run(WALK).positions)


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
@pytest.mark.often("rbg")
def test_calls_do_not_change_a_bit_with_another_kind_of_key(calls_of, kind):
    """Its bits depend on which keys are drawn from together."""
    key = jax.random.key(3, impl=kind)
    whole = run(key=key, num_steps=20)
    calls_of(3)
    cut = run(key=key, num_steps=20)
    np.testing.assert_array_equal(whole.positions, cut.positions)
    assert len(np.unique(whole.positions)) == whole.positions.size


def test_a_chain_does_not_know_of_the_others():
    together, alone = run(), run(starts=STARTS[:2])
    np.testing.assert_allclose(together.positions[:2], alone.positions, rtol=1e-5)


def test_burn_in_and_thinning_drop_draws_only():
    every, some = run(num_steps=60), run(num_steps=40, burn_in=20, thin=5)
    np.testing.assert_allclose(some.positions, every.positions[:, 24::5], rtol=1e-5)
    np.testing.assert_array_equal(some.steps, np.arange(5, 41, 5))
    np.testing.assert_array_equal(every.steps, np.arange(1, 61))


def test_the_weighted_estimator():
    result = run(FALLING)
    expected = np.average(result.positions[1, :, 0], weights=result.weights[1])
    np.testing.assert_allclose(result.expectation(lambda x: x[0])[1], expected, rtol=1e-5)
    np.testing.assert_allclose(result.mean()[1, 0], expected, rtol=1e-5)


def test_divergences_are_kept_back_counted_and_told():
    explosive = levymc.flmc(
        normal, 1.0, 1.5, drift=lambda x: -(x**9) * 1e6, integrator=integrators.euler()
    )
    with pytest.warns(UserWarning, match="smaller step size"):
        result = run(explosive)
    assert result.num_divergent > 0
    assert np.all(np.isfinite(result.positions))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_vector_of_starts_is_said_to_be_chains(monkeypatch):
    """Where one vector was meant: by the bar as it begins, and by what is returned."""
    pytest.importorskip("rich")
    monkeypatch.setattr(sys, "stderr", Terminal())
    result = sample(FLA, KEY, jnp.zeros(3, jnp.float32), 5)
    assert "3 chains" in sys.stderr.getvalue()
    assert repr(result).startswith("Result(3 chains × 5 draws of {'x': ()}")


def test_an_interrupted_run_returns_what_there_is(calls_of, stopped_after):
    calls_of(3)
    with stopped_after(3):
        result = run()
    assert result.is_interrupted
    assert result.positions.shape == (4, 9, 2)
    np.testing.assert_array_equal(result.steps, np.arange(1, 10))
    np.testing.assert_array_equal(result.positions, run().positions[:, :9])
    assert "interrupted" in repr(result)


def test_a_run_that_is_stopped_before_its_first_draw_has_nothing_to_return(calls_of, stopped_after):
    calls_of(3)
    with stopped_after(2), pytest.raises(KeyboardInterrupt, match="before its first draw"):
        run(thin=10)


def test_stochastic_gradients_with_batches():
    data = jax.random.normal(jax.random.key(0), (200,), jnp.float32) + 2.0
    estimate = levymc.grad_estimator(lambda x: -x * x / 200, lambda x, y: -((x - y) ** 2) / 2, 200)
    result = run(
        levymc.sgld(estimate, 1e-3),
        starts=jnp.zeros(3, jnp.float32),
        num_steps=2000,
        burn_in=200,
        minibatches=levymc.batches(data, 20),
    )
    # Posterior sd 0.07; the chain forgets in about 5 steps: 0.1 is more than 20 standard errors.
    assert np.all(np.abs(result.mean() - float(jnp.mean(data))) < 0.1)


def test_arviz_reads_the_draws():
    arviz = pytest.importorskip("arviz")
    summary = arviz.summary(run(WALK, num_steps=400).to_arviz())
    assert len(summary) == 2
    assert "r_hat" in summary.columns


class Bare:
    """An algorithm that reports nothing of its steps, and whose state is a position."""

    def init(self, position):
        return position

    def step(self, key, state):
        return state + jax.random.normal(key, state.shape, state.dtype), None


BARE = Bare()


def test_a_run_of_which_nothing_is_kept_but_what_was_observed():
    kept = run(BARE)
    seen = run(BARE, observe={"mean": levymc.observe.mean()})
    assert (seen.num_chains, seen.num_draws, seen.positions) == (4, 60, None)
    np.testing.assert_allclose(
        seen.observed["mean"], kept.positions.mean(axis=1), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run(num_steps=0), ("num_steps", "0")),
        (lambda: run(thin=100), ("thin", "100")),
        (lambda: run(burn_in=-3), ("burn_in", "-3")),
        (lambda: run(burn_in=-1), ("burn_in", "at least 0", "-1")),
        (lambda: run(num_steps=2**63), ("num_steps", "2⁶²", "more chains")),
        (lambda: run(num_steps=2**62, burn_in=2**62), ("num_steps", "2⁶²", "burn-in")),
        (lambda: run(num_steps=2.5), ("num_steps", "integer", "2.5")),
        (lambda: run(normal), ("algorithm", "init", "levymc.mafla")),
        (lambda: run([FLA] * 3), ("algorithm", "4 chains", "list of 3")),
        (lambda: run([FLA, FLA, FLA, normal]), ("algorithm", "init", "levymc.mafla")),
        (lambda: run(keep=3), ("keep", "3", "function")),
        (
            lambda: run(minibatches=levymc.batches(jnp.ones(9), 3)),
            ("minibatches", "takes none", "levymc.sgfla"),
        ),
        (
            lambda: run(levymc.sgld(lambda x, y: -x, 0.1)),
            ("minibatches", "must be given", "levymc.batches"),
        ),
        (
            lambda: run(starts={"a": STARTS, "b": STARTS[0]}),
            ("initial_positions", "first axis", "[2, 4]"),
        ),
        (lambda: run(starts=jnp.zeros(())), ("initial_positions", "x[None]")),
        (lambda: run(starts=jnp.full((4, 2), jnp.nan)), ("initial_positions", "finite")),
        (lambda: levymc.batches(jnp.arange(3.0), 10), ("batch_size", "10")),
        (lambda: run(key=3), ("key", "3")),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
