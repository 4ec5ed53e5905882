"""Loaders, saved results, meshes, and what the compiled program does for speed."""

import inspect
import io
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import schedules, stable
from levymc.run import _engine, _hoist, _iterate, _minibatches, marks

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)
sample = inspect.unwrap(levymc.sample)  # without the type checker, which would speak first


def normal(position):
    return -jnp.sum(position**2) / 2


FLA = levymc.fla(normal, 0.1, 1.7)


def run(algorithm=None, starts=STARTS, num_steps=60, **options):
    used = FLA if algorithm is None else algorithm
    return sample(used, KEY, starts, num_steps, progress=False, **options)


def primitives(jaxpr):
    """The names of all operations, also those of nested programs."""
    for operation in jaxpr.eqns:
        yield operation.primitive.name
        for value in operation.params.values():
            inner = getattr(value, "jaxpr", None)
            if inner is not None:
                yield from primitives(inner)


def test_what_is_taken_out_of_the_step_changes_none_of_its_results():
    """Random bits, and what depends on the algorithm's numbers alone."""
    algorithm = levymc.fla(normal, 0.3, 1.3)
    numbers, structure = jax.tree.flatten(algorithm)

    def step(keys, parameters, states):
        return jax.vmap(jax.tree.unflatten(structure, parameters).step)(keys, states)

    states = jax.vmap(algorithm.init)(STARTS)
    keys = jax.random.split(KEY, 4)
    parameters = [jnp.asarray(number) for number in numbers]
    hoisted = _hoist.hoist(step, keys, parameters, states)
    settled = hoisted.settle(parameters)
    collected = hoisted.collect(keys, hoisted.draw(keys), settled, parameters)
    assert settled
    given = (collected, settled, parameters, states)
    replay = lambda *parts: hoisted.replay(*parts)  # noqa: E731
    for one, other in zip(
        jax.tree.leaves(jax.jit(step)(keys, parameters, states)),
        jax.tree.leaves(jax.jit(replay)(*given)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    whole, rest = jax.make_jaxpr(step)(keys, parameters, states), jax.make_jaxpr(replay)(*given)
    assert {"random_bits", "pow", "gather"} <= set(primitives(whole.jaxpr))
    assert not {"random_bits", "pow", "gather"} & set(primitives(rest.jaxpr))


def test_bits_that_depend_on_the_state_are_drawn_in_the_step():
    def step(key, parameters, state):
        other = jax.random.fold_in(key, state.astype(jnp.int32))
        return state + jax.random.normal(key) + jax.random.normal(other)

    one = jnp.ones(())
    hoisted = _hoist.hoist(step, KEY, [], one)
    key, noise = hoisted.collect(KEY, hoisted.draw(KEY), [], [])
    assert (noise.shape, noise.dtype) == ((), one.dtype)
    assert key.dtype == KEY.dtype
    found = hoisted.replay([key, noise], [], [], one)
    np.testing.assert_allclose(found, step(KEY, [], one), rtol=1e-12)


def test_what_sums_up_the_noise_is_not_collected_beside_it():
    """Each value that is collected is a kernel, which makes the noise again."""

    def step(key, parameters, state):
        noise = jax.random.normal(key, (3,))
        return state + noise, jnp.max(jnp.abs(noise)), jnp.sum(noise)

    state = jnp.zeros(3)
    hoisted = _hoist.hoist(step, KEY, [], state)
    collected = hoisted.collect(KEY, hoisted.draw(KEY), [], [])
    assert [leaf.shape for leaf in collected] == [(3,), ()]  # the noise, and its sum
    found = hoisted.replay(collected, [], [], state)
    np.testing.assert_array_equal(found[1], step(KEY, [], state)[1])


def test_words_of_a_key_that_is_split_are_drawn_before_the_step():
    def step(key, parameters, state):
        return state + stable.sample(key, jnp.float32(1.7), (3,), dtype=jnp.float32)

    state = jnp.zeros(3, jnp.float32)
    hoisted = _hoist.hoist(step, KEY, [], state)
    (words,) = hoisted.draw(KEY)
    assert words.shape == (3, 2)
    (noise,) = hoisted.collect(KEY, [words], [], [])
    np.testing.assert_allclose(noise, step(KEY, [], state), rtol=1e-5)


@pytest.mark.parametrize("block", [32, 42])
def test_calls_end_with_blocks(block):
    plan = _iterate.Plan(1, 10_000, 0, marks.Every(1), None)
    done = 8
    for _ in range(3):
        done += int(plan.call(done, 10_000, 10 * block, block).count)
        assert done % block == 0


def test_bits_are_kept_where_what_is_made_of_them_is_large():
    def step(key, parameters, state):
        return state + jnp.outer(*jax.random.normal(key, (2, 100)))

    state = jnp.zeros((100, 100))
    hoisted = _hoist.hoist(step, KEY, [], state)
    collected = hoisted.collect(KEY, hoisted.draw(KEY), [], [])
    assert sum(leaf.size for leaf in collected) < 1000
    found = hoisted.replay(collected, [], [], state)
    np.testing.assert_allclose(found, step(KEY, [], state), rtol=1e-5)


def test_loops_and_conditions_on_random_numbers_are_left_to_the_step():
    """Mapped over steps they would compute for each what any of them needs."""

    def step(key, parameters, state):
        tries = jax.lax.while_loop(
            lambda n: jax.random.uniform(jax.random.fold_in(key, n)) < 0.9, lambda n: n + 1, 0
        )
        return state + tries

    hoisted = _hoist.hoist(step, KEY, [], jnp.zeros(()))
    found = jax.make_jaxpr(lambda key: hoisted.collect(key, hoisted.draw(key), [], []))(KEY)
    assert "while" not in set(primitives(found.jaxpr))
    collected = hoisted.collect(KEY, hoisted.draw(KEY), [], [])
    assert hoisted.replay(collected, [], [], jnp.zeros(())) == step(KEY, [], jnp.zeros(()))


def test_threefry_written_out_gives_the_bits_of_jax():
    """Of keys, their parts, and words of both widths, mapped over chains as in a run."""
    keys, numbers = jax.random.split(KEY, 5), jnp.arange(7, dtype=jnp.int32) * 1000

    def folded(keys, n):
        return jax.random.key_data(jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, n))

    found = jax.vmap(lambda n: jax.random.key_data(_hoist.folded(keys, n)))(numbers)
    np.testing.assert_array_equal(found, jax.vmap(folded, in_axes=(None, 0))(keys, numbers))

    def step(keys, parameters, state):
        parts = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
        draw = jax.vmap(lambda key, width: jax.random.bits(key, (2, 3), width), (0, None))
        return draw(parts[:, 1], "uint32"), draw(parts[:, 2], "uint64"), state

    hoisted = _hoist.hoist(step, keys, [], jnp.zeros(()))
    program = jax.make_jaxpr(hoisted.draw)(keys)
    assert not {"random_bits", "random_split"} & set(primitives(program.jaxpr))
    words, wide, _ = step(keys, [], None)
    np.testing.assert_array_equal(hoisted.draw(keys)[0], words)
    np.testing.assert_array_equal(hoisted.draw(keys)[1], wide)


def test_another_kind_of_key_keeps_the_bits_of_jax():
    with jax.threefry_partitionable(False):
        assert not _hoist.is_written_out(KEY)
    assert not _hoist.is_written_out(jax.random.key(0, impl="rbg"))
    assert _hoist.is_written_out(KEY)


@pytest.mark.parametrize("algorithm", [FLA, levymc.levy_walk(normal, 1.0)], ids=["fla", "walk"])
@pytest.mark.parametrize("num_chains", [4, 64])
@pytest.mark.often("64-walk")
def test_calls_that_begin_within_a_block_change_no_bit(monkeypatch, algorithm, num_chains):
    """The noise of a block of steps is made at once, wherever in it a call begins."""
    starts = jnp.zeros((num_chains, 2), jnp.float32)
    usual = run(algorithm, starts, 300)
    monkeypatch.setattr(_iterate, "FIRST_STEPS", 37)
    monkeypatch.setattr(_iterate, "SECONDS_PER_CALL", 0.0)
    cut = run(algorithm, starts, 300)
    np.testing.assert_array_equal(usual.positions, cut.positions)
    jax.tree.map(np.testing.assert_array_equal, usual.info, cut.info)


@pytest.fixture
def fresh_programs():
    """Compile anew in this test, and leave nothing of it to others."""
    _engine.compile_program.cache_clear()
    yield _engine.compile_program.cache_clear
    _engine.compile_program.cache_clear()


def test_a_program_that_cannot_be_walked_through_gives_the_same_draws(monkeypatch, fresh_programs):
    """As where a version of JAX writes programs in another form."""
    usual = run(num_steps=20, thin=2, burn_in=3)

    def refuse(*arguments):
        raise KeyError("another form")

    fresh_programs()
    monkeypatch.setattr(_hoist, "_listed", refuse)
    with pytest.warns(UserWarning, match=r"slower.*another form"):
        other = run(num_steps=20, thin=2, burn_in=3)
    np.testing.assert_array_equal(other.positions, usual.positions)
    jax.tree.map(np.testing.assert_array_equal, other.info, usual.info)
    np.testing.assert_array_equal(other.weights, usual.weights)


@pytest.mark.parametrize(("thin", "block_bytes"), [(1, 1), (3, 800), (7, 1)])
@pytest.mark.often("7-1")
def test_blocks_change_nothing(monkeypatch, fresh_programs, thin, block_bytes):
    """Blocks shorter than a draw, and of a few draws, against those of a whole call."""
    usual = run(num_steps=84, thin=thin, burn_in=5)
    fresh_programs()
    monkeypatch.setattr(_engine, "BLOCK_BYTES", block_bytes)
    other = run(num_steps=84, thin=thin, burn_in=5)
    np.testing.assert_array_equal(usual.positions, other.positions)
    np.testing.assert_array_equal(usual.info.largest_jump, other.info.largest_jump)


def test_many_marks_and_few_places_change_nothing(monkeypatch, fresh_programs):
    """Calls that end where the places for draws, or the marks, are used up."""
    options = {"thin": 3, "burn_in": 5, "observe": {"mean": levymc.observe.mean()}, "keep": True}
    usual = run(num_steps=84, observe_every=2, **options)
    for module, name, least in (
        (_engine, "DRAW_BYTES", 300),
        (_iterate, "MOST_MARKS", 8),
        (_engine, "MOST_MARKS", 8),  # that before it included
    ):
        fresh_programs()
        monkeypatch.setattr(module, name, least)
        other = run(num_steps=84, observe_every=2, **options)
        np.testing.assert_array_equal(usual.positions, other.positions)
        np.testing.assert_array_equal(usual.observed["mean"], other.observed["mean"])


def test_thinning_merges_the_info_of_all_steps():
    every, some = run(), run(thin=6)
    jumps = every.info.largest_jump.reshape(4, 10, 6).max(axis=2)
    np.testing.assert_allclose(some.info.largest_jump, jumps, rtol=1e-6)
    tamings = every.info.taming.reshape(4, 10, 6).max(axis=2)
    np.testing.assert_allclose(some.info.taming, tamings, rtol=1e-5)


class Told(NamedTuple):
    """What another library may tell of a step."""

    is_divergent: jax.Array
    energy: jax.Array


class Stumbling:
    """Its steps 3, 4 and 9 of each ten diverge."""

    def init(self, position):
        return levymc.algorithms.State(position, jnp.int32(0))

    def step(self, key, state):
        number = state.step + 1
        position = state.position + jax.random.normal(key, state.position.shape, jnp.float32)
        is_divergent = jnp.isin(number % 10, jnp.array([3, 4, 9]))
        return levymc.algorithms.State(position, number), Told(is_divergent, 1.0 * number)


STUMBLING = Stumbling()


def test_thinning_keeps_the_divergences_of_other_libraries(tmp_path, calls_of):
    """Before, those between two draws were lost; the rest of the info is that of the last step."""
    whole = run(STUMBLING)
    calls_of(7)
    for options in ({}, {"store": tmp_path / "run"}):
        some = run(STUMBLING, thin=5, **options)
        diverged = whole.statistics["diverging"].reshape(4, 12, 5).any(axis=2)
        np.testing.assert_array_equal(some.statistics["diverging"], diverged)
        np.testing.assert_array_equal(
            some.statistics["energy"], 5.0 * np.arange(1, 13) + 0 * diverged
        )
        assert some.num_divergent == 4 * 12


def test_divergences_of_other_libraries_are_observed():
    result = run(STUMBLING, observe={"count": levymc.observe.divergences()})
    np.testing.assert_array_equal(result.observed["count"], 18)


def test_what_is_constant_is_written_once():
    result = run(levymc.ula(normal, 0.25))
    assert result.weights.shape == (4, 60)
    assert result.weights.strides == (0, 0)
    assert np.all(result.weights == 0.25)
    assert np.all(run(levymc.ula(normal, 0.125)).weights == 0.125)  # of the same program
    falling = run(levymc.ula(normal, schedules.polynomial(0.25, 0.5)))
    assert falling.weights[0, 0] > falling.weights[0, 1]


def test_weakly_typed_starts_do_not_compile_the_program_twice():
    starts = jnp.full(4, -3.6)
    assert starts.weak_type
    ready = _iterate.ready(
        _iterate.start(
            levymc.levy_walk(normal, 1.0),
            KEY,
            starts,
            5,
            thin=1,
            burn_in=0,
            minibatches=None,
            observe=None,
            observe_every=1,
            keep=None,
        )
    )
    assert not any(leaf.weak_type for leaf in ready.carry)


def test_an_optax_schedule_serves():
    optax = pytest.importorskip("optax")
    schedule = optax.exponential_decay(0.1, transition_steps=10, decay_rate=0.5)
    result = run(levymc.fla(normal, schedule, 1.7))
    expected = 0.1 * 0.5 ** (np.arange(1, 61) / 10)
    np.testing.assert_allclose(result.weights[1], expected, rtol=1e-6)


def squared_distance(x, y):
    return -((x - y) ** 2) / 2


DATA = jnp.arange(40.0)


SGLD = levymc.sgld(levymc.grad_estimator(lambda x: 0.0 * x, squared_distance, 4), 0.05)


def noiseless(num_steps, **options):
    """A chain that follows the minibatches closely, so that one that is wrong shows."""
    return run(SGLD, jnp.zeros(3), num_steps, **options)


def batch_of(step):
    return np.asarray(DATA[step % 10 : step % 10 + 4])


def test_what_a_function_reports_is_reported_in_each_step():
    """As by jax.debug.print; before, what had no results was left out of the steps.

    A number that is asked for anew in each step was asked for once in a call, as no state is in it.
    """
    seen, asked = [], itertools.count()

    def target(position):
        jax.debug.callback(lambda value: seen.append(float(value)), position)
        return -(position**2) / 2

    walk = levymc.levy_walk(target, 1.0)
    run(walk, jnp.zeros(2), 20, thin=4, burn_in=10)
    jax.effects_barrier()
    assert len(set(seen) - {0.0}) == 2 * 30

    def anew(eta):
        return np.asarray(next(asked), float)

    class Reader:
        """An algorithm that reads its next position."""

        def init(self, position):
            return position

        def step(self, key, position):
            shape = jax.ShapeDtypeStruct((), float)
            return jax.experimental.io_callback(anew, shape, 0.0) + 0 * position, {}

    result = run(Reader(), jnp.zeros(1), 20)
    np.testing.assert_array_equal(result.positions, np.arange(20.0)[None])


def test_a_loader_gives_each_step_its_minibatch():
    by_hand, step_once = np.zeros((3, 25)), jax.jit(SGLD.step)
    for chain in range(3):
        state = SGLD.init(0.0)
        for step in range(25):
            step_key = jax.random.fold_in(jax.random.fold_in(KEY, chain), step)
            state, _ = step_once(step_key, state, batch_of(step))
            by_hand[chain, step] = state.position
    from_function = noiseless(25, minibatches=batch_of)
    np.testing.assert_allclose(from_function.positions, by_hand, rtol=1e-12)
    from_iterable = noiseless(25, minibatches=map(batch_of, itertools.count()))
    np.testing.assert_array_equal(from_iterable.positions, from_function.positions)
    later = noiseless(20, burn_in=5, minibatches=batch_of)
    np.testing.assert_allclose(later.positions, by_hand[:, 5:], rtol=1e-12)


@pytest.mark.parametrize("first", [np.float32, np.int64])
def test_minibatches_of_another_type_are_refused(first):
    """The program was made for the first; before, JAX said so, or it went on with others."""
    sgld = levymc.sgld(lambda x, batch: jnp.sum(batch - x), 0.05)
    other = np.int64 if first == np.float32 else np.float32
    batches = [np.ones(4, first)] * 9 + [np.ones(4, other)] * 9
    with pytest.raises(ValueError, match=rf"got .*{other.__name__}\[4\].* after .*convert all"):
        run(sgld, jnp.zeros(3), 18, minibatches=batches)


def test_a_loader_may_fill_the_same_array_again_and_again():
    array = np.zeros(4)

    def filled(step):
        array[:] = batch_of(step)
        return {"data": array}

    def reused(source):
        sgld = levymc.sgld(lambda x, batch: SGLD.grad_estimator(x, batch["data"]), 0.05)
        return run(sgld, jnp.zeros(3), 25, minibatches=source).positions

    expected = reused(lambda step: {"data": batch_of(step)})
    np.testing.assert_array_equal(reused(filled), expected)
    np.testing.assert_array_equal(reused(map(filled, itertools.count())), expected)


def test_a_loader_that_ends_ends_the_run():
    observe = {"mean": levymc.observe.mean()}
    with pytest.warns(UserWarning, match="ended after 17 of 60"):
        short = noiseless(
            60, minibatches=[batch_of(n) for n in range(17)], observe=observe, keep=True
        )
    assert short.is_interrupted
    assert short.num_draws == 17
    np.testing.assert_array_equal(
        short.positions, noiseless(60, minibatches=batch_of).positions[:, :17]
    )
    np.testing.assert_allclose(short.observed["mean"], short.mean(), rtol=1e-12)


def test_a_stored_run_with_a_loader_and_observers_resumes(tmp_path, calls_of, stopped_after):
    observe = {"mean": levymc.observe.mean()}
    whole = noiseless(60, minibatches=batch_of, observe=observe)
    calls_of(8)
    with stopped_after(3):
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
        thin=[3, 7, 50],
        keep=True,
    )
    result.save(tmp_path / "result.npz")
    back = levymc.load(tmp_path / "result.npz")
    assert jax.tree.structure(back.positions) == jax.tree.structure(result.positions)
    assert type(back.info) is type(result.info)
    for name in ("positions", "weights", "info", "observed", "steps"):
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
        (lambda: run(minibatches=np.ones(4)), ("minibatches", "ndarray", "levymc.whole")),
        (lambda: run(minibatches=3), ("minibatches", "3")),
        (lambda: noiseless(9, minibatches=[]), ("minibatches", "empty")),
        (lambda: noiseless(9, minibatches=[np.ones(4), np.ones(3)]), ("minibatches", "float64[3]")),
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
    monkeypatch.setattr(_minibatches, "_memory_bytes", lambda: 900)
    with pytest.raises(ValueError, match=r"`minibatches` must fit into memory.*fewer chains"):
        noiseless(9, minibatches=levymc.batches(DATA, 40))
