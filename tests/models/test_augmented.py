"""Algorithms that draw latent variables before each step: state, keys, runs and Fisher's identity.

The model is a mixture of two normal laws, at θ and -θ, whose latents are the components.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import hoeffding_bound
from tests.models.kernels import needs_native

import levymc
from levymc import algorithms
from levymc.algorithms import AugmentedState, Info, SamplingAlgorithm
from levymc.run import _iterate, _store

POINTS = jnp.array([3.0, -3.2, 2.9, -3.1, 0.1, -0.4])


def components(key, mean, minibatch, memory):
    """Exact draws of the signs; the memory counts calls and keeps the last signs of each point."""
    points = minibatch["points"]
    signs = 2 * jax.random.bernoulli(key, jax.nn.sigmoid(2 * mean * points)) - 1.0
    if memory is not None:
        last = memory["last"].at[minibatch["index"]].set(signs)
        memory = {"calls": memory["calls"] + 1, "last": last}
    return {**minibatch, "signs": signs}, memory


def logjoint(mean, minibatch):
    return -((minibatch["points"] - minibatch["signs"] * mean) ** 2) / 2


def gradient(mean, minibatch):
    """Of N = 6 points, by those of the minibatch."""
    each = minibatch["signs"] * (minibatch["points"] - minibatch["signs"] * mean)
    return len(POINTS) / len(each) * jnp.sum(each) - mean


def memory_of(num_points):
    return {"calls": 0, "last": np.zeros(num_points)}


DATA = {"points": POINTS, "index": jnp.arange(len(POINTS))}


class FromFunctions(NamedTuple):
    """An algorithm of another library."""

    init: Callable
    step: Callable


def test_the_state_holds_the_algorithm_s_own_and_the_memory():
    algorithm = levymc.augmented(levymc.sgld(gradient, 1e-2), components, memory_of(6))
    state = algorithm.init(jnp.float32(1.5))
    assert isinstance(algorithm, SamplingAlgorithm)
    assert isinstance(state, AugmentedState)
    assert isinstance(state.inner, algorithms.State)
    assert float(state.position) == 1.5
    assert state.position.dtype == jnp.float32
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state.memory))


def test_a_state_without_a_position_is_the_position():
    """As of algorithms from elsewhere whose state is bare."""
    assert AugmentedState({"x": 1.0}, None).position == {"x": 1.0}


@pytest.mark.parametrize("memory", [None, memory_of(6)], ids=["no memory", "a pytree"])
def test_a_step_keeps_the_structure_and_is_traced_once(memory):
    traces = []

    def counted(mean, minibatch):
        traces.append(mean)
        return gradient(mean, minibatch)

    algorithm = levymc.augmented(levymc.sgld(counted, 1e-2), components, memory)
    step, first = jax.jit(algorithm.step), algorithm.init(jnp.float64(1.0))
    state, after_one = first, None
    for number in range(4):
        state, info = step(jax.random.key(number), state, DATA)
        after_one = after_one or len(traces)
    assert len(traces) == after_one
    assert isinstance(info, Info)
    assert jax.tree.structure(state) == jax.tree.structure(first)
    for new, old in zip(jax.tree.leaves(state), jax.tree.leaves(first), strict=True):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
    if memory is not None:
        assert int(state.memory["calls"]) == 4
        assert np.all(np.abs(state.memory["last"]) == 1)


def test_latents_and_step_have_keys_of_their_own():
    """Neither is given the key of the whole, nor both the same: noise would depend on latents."""
    seen = {}

    def draw(key, position, minibatch, memory):
        seen["latents"] = jax.random.key_data(key).tolist()
        return minibatch, memory

    def step(key, state, minibatch):
        seen["step"] = jax.random.key_data(key).tolist()
        return state, None

    whole = jax.random.key(0)
    algorithm = levymc.augmented(FromFunctions(lambda x: x, step), draw)
    algorithm.step(whole, algorithm.init(0.0), None)
    assert seen["latents"] != seen["step"]
    assert jax.random.key_data(whole).tolist() not in seen.values()


def test_latents_are_drawn_where_the_chain_is_and_given_to_the_step():
    """The completed minibatch goes to the step, and the new memory to the next draw."""

    def draw(key, position, minibatch, memory):
        return (position, minibatch, memory), memory + 10

    algorithm = levymc.augmented(
        FromFunctions(lambda x: x, lambda key, state, complete: (state + 1, complete)), draw, 5
    )
    state = algorithm.init(2.0)
    state, first = algorithm.step(jax.random.key(0), state, "batch")
    state, second = algorithm.step(jax.random.key(0), state, "other")
    assert first == (2.0, "batch", 5)
    assert second == (3.0, "other", 15)
    assert (state.position, int(state.memory)) == (4.0, 25)


def run_chains(store=None):
    algorithm = levymc.augmented(levymc.sgld(gradient, 1e-2), components, memory_of(6))
    return levymc.sample(
        algorithm,
        jax.random.key(1),
        jnp.array([0.5, 1.0, 2.0]),
        60,
        minibatches=levymc.batches(DATA, 4),
        progress=False,
        store=store,
    )


def interrupted(monkeypatch, run, *arguments):
    """What a run leaves in its store when it is stopped after five parts."""
    append, seen = _store._Sink.append, []

    def stop(self, part):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(part)
        append(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(_store._Sink, "append", stop)
        patch.setattr(_iterate, "FIRST_STEPS", 4)
        patch.setattr(_iterate, "_next_length", lambda *given: 4)
        assert run(*arguments).is_interrupted


def assert_same_draws(one, other):
    for left, right in zip(
        jax.tree.leaves(one.positions), jax.tree.leaves(other.positions), strict=True
    ):
        assert np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes()


def test_a_stored_run_goes_on_with_its_memory(tmp_path, monkeypatch):
    """Three chains, stopped and resumed from the folder alone: the same bytes."""
    whole = run_chains()
    assert whole.positions.shape == (3, 60)
    interrupted(monkeypatch, run_chains, tmp_path / "run")
    assert_same_draws(levymc.resume(tmp_path / "run", progress=False), whole)


@needs_native
def test_a_stored_run_goes_on_with_the_kernel_s_latents(tmp_path, monkeypatch):
    """A belief network with a warm start: the exported program calls the kernel."""
    model = levymc.models.sbn(20, 4, sweeps=1, backend="native")
    position = model.init(jax.random.key(0), scale=1.0, dtype="float32")
    images, _ = model.simulate(jax.random.key(1), position, 12)
    algorithm = levymc.augmented(
        levymc.sgld(model.grad_estimator(12), 1e-2), model.latents, model.memory(12)
    )

    def run(store):
        return levymc.sample(
            algorithm,
            jax.random.key(2),
            jax.tree.map(lambda leaf: leaf[None], position),
            40,
            minibatches=levymc.batches({"images": images, "index": jnp.arange(12)}, 6),
            progress=False,
            store=store,
        )

    interrupted(monkeypatch, run, tmp_path / "run")
    assert_same_draws(levymc.resume(tmp_path / "run", progress=False), run(None))


def test_gradients_given_latents_average_to_the_marginal_one():
    """Fisher's identity, of 300 000 gradients of -(y - sθ)²/2 given exact draws of s.

    A gradient s y - θ lies within |y| of -θ: false alarm 1e-8 by Hoeffding's
    inequality.  Detects: a gradient that is off by 0.02, or a component's probability by 0.012.
    """
    count, mean, point = 300_000, 0.8, 0.9
    minibatch = {"points": jnp.full(count, point)}
    complete, _ = components(jax.random.key(3), mean, minibatch, None)
    given = jax.vmap(jax.grad(logjoint), (None, 0))(jnp.float64(mean), complete)

    def marginal(theta):
        ends = jnp.stack([-((point - theta) ** 2) / 2, -((point + theta) ** 2) / 2])
        return jax.nn.logsumexp(ends)

    error = float(jnp.mean(given) - jax.grad(marginal)(mean))
    assert abs(error) < point * hoeffding_bound(count, 1e-8)
    assert float(jnp.std(given)) > 0.3  # latents matter


def test_a_belief_network_s_gradient_averages_to_that_of_the_exact_likelihood():
    """Fisher's identity through `latents` after 30 sweeps, 20 000 copies of one image.

    Entries lie within 1 of each other: false alarm 1e-7 for all 14 by Hoeffding's inequality.
    Detects: an entry off by 0.045, such as of units drawn from the prior.
    """
    model, count = levymc.models.sbn(4, 2, sweeps=30), 20_000
    position = model.init(jax.random.key(0), scale=2.0, visible_bias=np.array([1, -1, 0, 2.0]))
    position = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), position)
    image = jnp.array([[1, 0, 1, 0]], jnp.uint8)
    batch = {"images": jnp.tile(image, (count, 1))}
    complete, _ = jax.jit(model.latents)(jax.random.key(1), position, batch)
    found = jax.jit(model.grad_estimator(1))(position, complete)

    def logdensity(x):
        return model.logprior(x) + model.exact_loglikelihood(x, image)[0]

    expected = jax.jit(jax.grad(logdensity))(position)
    bound = hoeffding_bound(count, 1e-7 / 14) / 2 + 1e-4  # and rounding
    for name, leaf in found.items():
        assert np.abs(np.asarray(leaf - expected[name])).max() < bound
