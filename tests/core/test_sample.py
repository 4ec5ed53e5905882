"""The run: shapes, keys, thinning, chunks, interruption, BlackJAX's algorithms, ArviZ."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import integrators, schedules
from levymc.run import _execute, _plan


def normal(position):
    return -jnp.sum(position**2) / 2


STARTS = jnp.linspace(-1, 1, 8).reshape(4, 2)
KEY = jax.random.key(11)


def run(algorithm=None, starts=STARTS, num_steps=60, **options):
    used = levymc.fla(normal, 0.1, 1.7) if algorithm is None else algorithm
    return levymc.sample(used, KEY, starts, num_steps, progress=False, **options)


def test_shapes_and_weights():
    result = run(levymc.fla(normal, schedules.polynomial(0.1, 0.5), 1.7))
    assert result.positions.shape == (4, 60, 2)
    np.testing.assert_allclose(result.weights[2], (0.1 / np.arange(1, 61)) ** 0.5, rtol=1e-6)
    assert result.info.is_divergent.shape == (4, 60)


@pytest.mark.parametrize("fewest", [1, 60])
def test_chunks_do_not_change_a_bit(monkeypatch, fewest):
    whole = run(levymc.mafla(normal, 0.5))
    monkeypatch.setattr(_plan, "FEWEST_CHUNKS", fewest)
    cut = run(levymc.mafla(normal, 0.5))
    np.testing.assert_array_equal(whole.positions, cut.positions)


def test_a_chain_does_not_know_of_the_others():
    together, alone = run(), run(starts=STARTS[:2])
    np.testing.assert_allclose(together.positions[:2], alone.positions, rtol=1e-12)


def test_burn_in_and_thinning_drop_draws_only(monkeypatch):
    monkeypatch.setattr(_plan, "FEWEST_CHUNKS", 1)  # so that a chunk has several draws
    every, some = run(num_steps=60), run(num_steps=40, burn_in=20, thin=5)
    np.testing.assert_allclose(some.positions, every.positions[:, 24::5], rtol=1e-12)


def test_the_weighted_estimator():
    result = run(levymc.fla(normal, schedules.polynomial(0.1, 0.5), 1.7))
    expected = np.average(result.positions[1, :, 0], weights=result.weights[1])
    np.testing.assert_allclose(result.expectation(lambda x: x[0])[1], expected, rtol=1e-12)
    np.testing.assert_allclose(result.mean()[1, 0], expected, rtol=1e-12)


def test_divergences_are_kept_back_counted_and_told():
    explosive = levymc.flmc(
        normal, 1.0, 1.5, drift=lambda x: -(x**9) * 1e6, integrator=integrators.euler()
    )
    with pytest.warns(UserWarning, match="smaller step size"):
        result = run(explosive)
    assert result.num_divergent > 0
    assert np.all(np.isfinite(result.positions))


def test_an_interrupted_run_returns_what_there_is(monkeypatch):
    append = _execute.Memory.append

    def interrupt(self, chunk, draws, states):
        if chunk == 3:
            raise KeyboardInterrupt
        append(self, chunk, draws, states)

    monkeypatch.setattr(_execute.Memory, "append", interrupt)
    result = run()
    assert result.is_interrupted
    np.testing.assert_array_equal(result.positions.shape, (4, 9, 2))
    assert "interrupted" in repr(result)


def test_stochastic_gradients_with_batches():
    data = jax.random.normal(jax.random.key(0), (200,)) + 2.0
    estimate = levymc.grad_estimator(lambda x: -x * x / 200, lambda x, y: -((x - y) ** 2) / 2, 200)
    result = run(
        levymc.sgld(estimate, 1e-3),
        starts=jnp.zeros(3),
        num_steps=2000,
        burn_in=200,
        minibatches=levymc.batches(data, 20),
    )
    # Posterior sd 0.07; the chain forgets in about 5 steps: 0.1 is more than 20 standard errors.
    assert np.all(np.abs(result.mean() - float(jnp.mean(data))) < 0.1)


def test_blackjax_algorithms_run_too():
    blackjax = pytest.importorskip("blackjax")
    result = run(blackjax.mala(normal, 0.5))
    assert result.positions.shape == (4, 60, 2)
    np.testing.assert_array_equal(result.weights, 1.0)


def test_arviz_reads_the_draws():
    arviz = pytest.importorskip("arviz")
    summary = arviz.summary(run(levymc.mafla(normal, 0.8), num_steps=400).to_arviz())
    assert len(summary) == 2
    assert "r_hat" in summary.columns


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run(num_steps=0), ("num_steps", "0")),
        (lambda: run(thin=100), ("thin", "100")),
        (lambda: run(burn_in=-3), ("burn_in", "-3")),
        (lambda: run(starts=jnp.zeros(())), ("initial_positions", "x[None]")),
        (lambda: run(starts=jnp.full((4, 2), jnp.nan)), ("initial_positions", "finite")),
        (lambda: levymc.batches(jnp.arange(3.0), 10), ("batch_size", "10")),
        (lambda: levymc.sample(levymc.ula(normal, 0.1), 3, STARTS, 5), ("key", "3")),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
