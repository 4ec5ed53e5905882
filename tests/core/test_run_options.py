"""Observers, loaders, saved results, meshes, and what the compiled program does for speed."""

import io
import itertools
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import schedules
from levymc.run import _batches, _plan, _prepare, _step
from levymc.run._hoist import hoist_bits

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8).reshape(4, 2)


def normal(position):
    return -jnp.sum(position**2) / 2


def run(algorithm=None, starts=STARTS, num_steps=60, **options):
    used = levymc.fla(normal, 0.1, 1.7) if algorithm is None else algorithm
    return levymc.sample(used, KEY, starts, num_steps, progress=False, **options)


def primitives(jaxpr):
    """The names of all operations, also those of nested programs."""
    for operation in jaxpr.eqns:
        yield operation.primitive.name
        for value in operation.params.values():
            inner = getattr(value, "jaxpr", None)
            if inner is not None:
                yield from primitives(inner)


def test_bits_drawn_before_the_step_change_none_of_its_results():
    algorithm = levymc.mafla(normal, 0.3, 1.3)
    step = jax.vmap(algorithm.step)
    states = jax.vmap(algorithm.init)(STARTS)
    keys = jax.random.split(KEY, 4)
    collect, replay = hoist_bits(step, keys, states)
    bits = collect(keys)
    assert all(jnp.issubdtype(leaf.dtype, jnp.unsignedinteger) for leaf in bits)
    for one, other in zip(
        jax.tree.leaves(jax.jit(step)(keys, states)),
        jax.tree.leaves(jax.jit(replay)(bits, keys, states)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    replayed = jax.make_jaxpr(lambda *a: replay(*a))(bits, keys, states)
    assert "random_bits" in set(primitives(jax.make_jaxpr(step)(keys, states).jaxpr))
    assert "random_bits" not in set(primitives(replayed.jaxpr))


def test_bits_that_depend_on_the_state_are_drawn_in_the_step():
    def step(key, state):
        other = jax.random.fold_in(key, state.astype(jnp.int32))
        return state + jax.random.normal(key) + jax.random.normal(other)

    collect, replay = hoist_bits(step, KEY, jnp.ones(()))
    bits = collect(KEY)
    assert len(bits) == 1
    np.testing.assert_allclose(replay(bits, KEY, jnp.ones(())), step(KEY, jnp.ones(())), rtol=1e-12)


@pytest.mark.parametrize(("thin", "block_bytes"), [(1, 1), (3, 800), (7, 1)])
def test_blocks_change_nothing(monkeypatch, thin, block_bytes):
    """Blocks shorter than a draw, and of a few draws, against those of a whole chunk."""
    usual = run(num_steps=84, thin=thin, burn_in=5)
    monkeypatch.setattr(_plan, "BLOCK_BYTES", block_bytes)
    other = run(num_steps=84, thin=thin, burn_in=5)
    np.testing.assert_allclose(usual.positions, other.positions, rtol=1e-12)
    np.testing.assert_allclose(usual.info.largest_jump, other.info.largest_jump, rtol=1e-12)


def test_thinning_merges_the_info_of_all_steps():
    every, some = run(), run(thin=6)
    jumps = every.info.largest_jump.reshape(4, 10, 6).max(axis=2)
    np.testing.assert_allclose(some.info.largest_jump, jumps, rtol=1e-12)
    tamings = every.info.taming.reshape(4, 10, 6).max(axis=2)
    np.testing.assert_allclose(some.info.taming, tamings, rtol=1e-9)


def test_what_is_constant_is_written_once():
    result = run(levymc.ula(normal, 0.25))
    assert result.weights.shape == (4, 60)
    assert result.weights.strides == (0, 0)
    assert np.all(result.weights == 0.25)
    falling = run(levymc.ula(normal, schedules.polynomial(0.25, 0.5)))
    assert falling.weights[0, 0] > falling.weights[0, 1]


def test_a_run_compiles_once_and_a_second_not_at_all():
    traces = []

    def counted(position):
        traces.append(None)
        return normal(position)

    def count(num_steps):
        traces.clear()
        algorithm = levymc.ula(counted, 0.1)
        run(algorithm, num_steps=num_steps)
        first = len(traces)
        run(algorithm, num_steps=num_steps)
        assert len(traces) == first
        return first

    # Once for its shapes, once for the program; JAX may keep a trace of the first for the second.
    assert count(40) <= 3
    assert count(400) <= 3


def test_weakly_typed_starts_do_not_compile_the_program_twice():
    recipe = _step.Recipe(levymc.levy_walk(normal, 1.0))
    starts = jnp.full(4, -3.6)
    assert starts.weak_type
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(_prepare._start(recipe, starts)))


def test_an_optax_schedule_serves():
    optax = pytest.importorskip("optax")
    schedule = optax.exponential_decay(0.1, transition_steps=10, decay_rate=0.5)
    result = run(levymc.fla(normal, schedule, 1.7))
    expected = 0.1 * 0.5 ** (np.arange(1, 61) / 10)
    np.testing.assert_allclose(result.weights[1], expected, rtol=1e-6)


def test_observers_see_every_step_and_its_weight(monkeypatch):
    """Also where the last chunk makes more steps than were asked for."""
    monkeypatch.setattr(_plan, "FEWEST_CHUNKS", 4)
    algorithm = levymc.fla(normal, schedules.polynomial(0.1, 0.5), 1.7)
    observe = {
        "mean": levymc.observe.mean(),
        "square": levymc.observe.mean(lambda x: {"s": jnp.sum(x * x)}),
    }
    every = run(algorithm, num_steps=57)
    seen = run(algorithm, num_steps=57, thin=3, observe=observe)
    assert seen.positions is None
    np.testing.assert_allclose(seen.observed["mean"], every.mean(), rtol=1e-12)
    squares = every.expectation(lambda x: jnp.sum(x * x))
    np.testing.assert_allclose(seen.observed["square"]["s"], squares, rtol=1e-12)
    with pytest.raises(ValueError, match="observe"):
        seen.mean()
    assert "mean" in repr(seen)


def test_observers_do_not_see_the_burn_in_and_positions_may_be_kept():
    observe = {"mean": levymc.observe.mean()}
    seen = run(burn_in=20, observe=observe, keep_positions=True)
    np.testing.assert_allclose(seen.observed["mean"], seen.mean(), rtol=1e-12)
    np.testing.assert_array_equal(seen.positions, run(burn_in=20).positions)


def test_observers_may_see_every_kth_step_after_the_burn_in(tmp_path, monkeypatch):
    """Whatever the thinning, the chunks and the store, and in a run that resumes."""
    from levymc.run import _store

    algorithm = levymc.fla(normal, schedules.polynomial(0.1, 0.5), 1.7)
    options = {"burn_in": 6, "observe": {"mean": levymc.observe.mean()}, "observe_every": 4}
    every = run(algorithm, num_steps=57, burn_in=6)
    shown = every.positions[:, 3::4]
    expected = np.average(shown, axis=1, weights=every.weights[0, 3::4])
    whole = run(algorithm, num_steps=57, **options)
    np.testing.assert_allclose(whole.observed["mean"], expected, rtol=1e-12)
    monkeypatch.setattr(_plan, "FEWEST_CHUNKS", 4)
    thinned = run(algorithm, num_steps=57, thin=3, **options)
    np.testing.assert_allclose(thinned.observed["mean"], expected, rtol=1e-12)

    append = _store._Sink.append

    def interrupt(self, chunk, draws, states):
        if chunk == 2:
            raise KeyboardInterrupt
        append(self, chunk, draws, states)

    with monkeypatch.context() as patch:
        patch.setattr(_store._Sink, "append", interrupt)
        run(algorithm, num_steps=57, thin=3, store=tmp_path / "run", **options)
    resumed = levymc.resume(tmp_path / "run", progress=False)
    np.testing.assert_array_equal(resumed.observed["mean"], thinned.observed["mean"])


def test_steps_that_observers_do_not_see_do_not_compute_their_update():
    """A tangent, which nothing else needs, is found within the branches of a condition only."""
    observer = levymc.observe.mean(jnp.tan)
    algorithm = levymc.fla(normal, 0.1, 1.7)
    keys = jax.random.split(KEY, 4)

    def names(every):
        recipe = _step.Recipe(algorithm, (observer,), seen=_step.seen_after(0, every))
        carries = jax.vmap(recipe.init)(STARTS)
        traced = jax.make_jaxpr(recipe.step_all)(keys, None, True, carries)
        return set(primitives(traced.jaxpr)), str(traced)

    always, _ = names(1)
    assert "tan" in always
    assert "cond" not in always
    sometimes, text = names(3)
    assert "cond" in sometimes
    assert "tan" not in sometimes  # branches are not among the programs that `primitives` enters
    assert " tan " in text


def test_observed_quantiles_are_within_their_relative_error():
    levels = (0.05, 0.3, 0.5, 0.95)
    observe = {"q": levymc.observe.quantiles(levels, relative_error=0.03)}
    algorithm = levymc.fla(normal, schedules.polynomial(0.3, 0.3), 1.7)
    seen = run(algorithm, num_steps=4000, observe=observe, keep_positions=True)
    for chain, coordinate in itertools.product(range(4), range(2)):
        expected = np.quantile(
            seen.positions[chain, :, coordinate],
            levels,
            weights=seen.weights[chain],
            method="inverted_cdf",
        )
        np.testing.assert_allclose(seen.observed["q"][chain, coordinate], expected, rtol=0.0301)


def squared_distance(x, y):
    return -((x - y) ** 2) / 2


DATA = jnp.arange(40.0)


def noiseless(num_steps, **options):
    """A chain that follows the minibatches closely, so that one that is wrong shows."""
    estimate = levymc.grad_estimator(lambda x: 0.0 * x, squared_distance, 4)
    return run(levymc.sgld(estimate, 0.05), jnp.zeros(3), num_steps, **options)


def batch_of(step):
    return np.asarray(DATA[step % 10 : step % 10 + 4])


def test_a_loader_gives_each_step_its_minibatch():
    by_hand, key = np.zeros((3, 25)), levymc.run._program.chain_keys(KEY, 3)
    estimate = levymc.grad_estimator(lambda x: 0.0 * x, squared_distance, 4)
    algorithm = levymc.sgld(estimate, 0.05)
    for chain in range(3):
        state = algorithm.init(0.0)
        own = jax.random.wrap_key_data(key[chain])
        for step in range(25):
            step_key = jax.random.fold_in(own, step)
            state, _ = algorithm.step(step_key, state, batch_of(step))
            by_hand[chain, step] = state.position
    from_function = noiseless(25, minibatches=batch_of)
    np.testing.assert_allclose(from_function.positions, by_hand, rtol=1e-12)
    from_iterable = noiseless(25, minibatches=map(batch_of, itertools.count()))
    np.testing.assert_array_equal(from_iterable.positions, from_function.positions)
    later = noiseless(20, burn_in=5, minibatches=batch_of)
    np.testing.assert_allclose(later.positions, by_hand[:, 5:], rtol=1e-12)


def test_a_loader_that_ends_ends_the_run():
    observe = {"mean": levymc.observe.mean()}
    with pytest.warns(UserWarning, match="ended after 17 of 60"):
        short = noiseless(
            60, minibatches=[batch_of(n) for n in range(17)], observe=observe, keep_positions=True
        )
    assert short.is_interrupted
    assert short.num_draws == 17
    np.testing.assert_array_equal(
        short.positions, noiseless(60, minibatches=batch_of).positions[:, :17]
    )
    np.testing.assert_allclose(short.observed["mean"], short.mean(), rtol=1e-12)


def test_a_stored_run_with_a_loader_and_observers_resumes(tmp_path, monkeypatch):
    observe = {"mean": levymc.observe.mean()}
    whole = noiseless(60, minibatches=batch_of, observe=observe)
    from levymc.run import _store

    append = _store._Sink.append

    def interrupt(self, chunk, draws, states):
        if chunk == 7:
            raise KeyboardInterrupt
        append(self, chunk, draws, states)

    with monkeypatch.context() as patch:
        patch.setattr(_store._Sink, "append", interrupt)
        noiseless(60, minibatches=batch_of, observe=observe, store=tmp_path / "run")
    with pytest.raises(ValueError, match="minibatches"):
        levymc.resume(tmp_path / "run", progress=False)
    resumed = levymc.resume(tmp_path / "run", minibatches=batch_of, progress=False)
    np.testing.assert_array_equal(resumed.observed["mean"], whole.observed["mean"])
    np.testing.assert_array_equal(resumed.weights, whole.weights)


def test_a_saved_result_comes_back(tmp_path):
    starts = {"a": STARTS, "b": (STARTS[:, 0],)}
    result = run(
        levymc.levy_walk(lambda p: normal(p["a"]) + normal(p["b"][0]), 0.3),
        starts,
        observe={"a": levymc.observe.mean(lambda p: p["a"])},
        keep_positions=True,
    )
    result.save(tmp_path / "result.npz")
    back = levymc.load(tmp_path / "result.npz")
    assert jax.tree.structure(back.positions) == jax.tree.structure(result.positions)
    assert type(back.info) is type(result.info)
    for name in ("positions", "weights", "info", "observed"):
        jax.tree.map(np.testing.assert_array_equal, getattr(back, name), getattr(result, name))
    torn = (tmp_path / "result.npz").read_bytes()[:-100]
    (tmp_path / "torn.npz").write_bytes(torn)
    with pytest.raises(ValueError, match="damaged"):
        levymc.load(tmp_path / "torn.npz")


def test_a_result_shows_itself():
    from rich.console import Console

    walk = levymc.levy_walk(lambda p: normal(p["<theta>"]), 1.0)
    result = run(walk, {"<theta>": STARTS})
    html = result._repr_html_()
    assert "&lt;theta&gt;[1]" in html
    assert "median" in html
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(result)
    assert "95 %" in console.export_text()


def test_a_mesh_gives_the_same_draws_to_rounding():
    """In a process of its own, with two devices."""
    script = """
        import jax, jax.numpy as jnp, numpy as np, levymc
        walk = levymc.fla(lambda x: -jnp.sum(x * x) / 2, 0.5, 1.7)
        mesh = jax.make_mesh((2,), ("chains",))
        starts = jnp.zeros((4, 3))
        options = dict(progress=False, burn_in=7)
        one = levymc.sample(walk, jax.random.key(0), starts, 50, **options)
        two = levymc.sample(walk, jax.random.key(0), starts, 50, mesh=mesh, **options)
        np.testing.assert_allclose(one.positions, two.positions, rtol=1e-5, atol=1e-6)
        try:
            levymc.sample(walk, jax.random.key(0), starts[:3], 50, mesh=mesh)
        except ValueError as error:
            assert "divides the 3 chains" in str(error)
            print("fine")
    """
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_ENABLE_X64": "0"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=os.environ | flags,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run(observe={"mean": jnp.mean}), ("observe", "levymc.observe.mean()")),
        (lambda: run(observe=levymc.observe.mean()), ("observe", "by name")),
        (lambda: run(observe_every=0), ("observe_every", "0")),
        (lambda: run(observe_every=2), ("observe_every", "2", "thin")),
        (
            lambda: run(observe={"mean": levymc.observe.mean()}, observe_every=61),
            ("observe_every", "num_steps", "61"),
        ),
        (lambda: run(mesh="two"), ("mesh", "two")),
        (lambda: run(minibatches=3), ("minibatches", "3")),
        (lambda: noiseless(9, minibatches=[]), ("minibatches", "empty")),
        (lambda: noiseless(9, minibatches=[np.ones(4), np.ones(3)]), ("minibatches", "(3,)")),
        (lambda: noiseless(9, minibatches=[np.ones(4)], store="x"), ("minibatches", "function")),
        (lambda: levymc.observe.quantiles([1.5]), ("probabilities", "1.5")),
        (lambda: levymc.observe.quantiles([0.5], largest=1e-9), ("largest",)),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_minibatches_beyond_memory_are_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(_batches, "_memory_bytes", lambda: 900)
    with pytest.raises(ValueError, match=r"`minibatches` must fit into memory.*fewer chains"):
        noiseless(9, minibatches=levymc.batches(DATA, 40))
