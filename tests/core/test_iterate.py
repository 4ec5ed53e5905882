"""Stopping at given steps: `iterate`, and the marks at which `sample` keeps what is asked for."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import marks, schedules
from levymc.run import _iterate

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)


def normal(position):
    return -jnp.sum(position**2) / 2


ALGORITHM = levymc.ula(normal, schedules.polynomial(0.5, 0.5))
EVERY = {
    "every seventh": (7, list(range(7, 61, 7))),
    "all": (1, list(range(1, 61))),
    "listed": ([1, 2, 30, 60], [1, 2, 30, 60]),
    "an array": (np.array([5, 59]), [5, 59]),
    "a range": (range(10, 41, 10), [10, 20, 30, 40]),
    "logarithmic": (marks.logarithmic(4), [1, 4, 15, 60]),
}
every_kind = pytest.mark.parametrize(("given", "steps"), EVERY.values(), ids=EVERY)


def run(num_steps=60, **options):
    return levymc.sample(ALGORITHM, KEY, STARTS, num_steps, progress=False, **options)


@pytest.fixture(scope="module")
def everything():
    """All draws after a burn-in of five."""
    return run(burn_in=5)


@every_kind
def test_iterate_stops_where_it_is_told_to(given, steps, everything):
    visits = list(levymc.iterate(ALGORITHM, KEY, STARTS, 60, at=given, burn_in=5))
    assert [visit.step for visit in visits] == steps
    for visit in visits:
        np.testing.assert_array_equal(
            visit.states.position, everything.positions[:, visit.step - 1]
        )
        np.testing.assert_array_equal(visit.states.step, visit.step + 5)
        assert visit.observed == {}


@every_kind
def test_sample_keeps_what_it_is_told_to(given, steps, everything):
    result = run(thin=given, burn_in=5)
    np.testing.assert_array_equal(result.steps, steps)
    np.testing.assert_array_equal(result.positions, everything.positions[:, np.array(steps) - 1])
    np.testing.assert_array_equal(result.weights, everything.weights[:, np.array(steps) - 1])


def test_a_listed_mark_merges_the_info_since_the_one_before(everything):
    result, ends = run(thin=[4, 5, 60], burn_in=5), [0, 4, 5, 60]
    for place in range(3):
        jumps = everything.info.largest_jump[:, ends[place] : ends[place + 1]].max(axis=1)
        np.testing.assert_array_equal(result.info.largest_jump[:, place], jumps)


def test_calls_do_not_change_where_it_stops(calls_of):
    once = list(levymc.iterate(ALGORITHM, KEY, STARTS, 60, at=[3, 40], burn_in=5))
    calls_of(7)
    cut = list(levymc.iterate(ALGORITHM, KEY, STARTS, 60, at=[3, 40], burn_in=5))
    for one, other in zip(once, cut, strict=True):
        assert one.step == other.step
        jax.tree.map(np.testing.assert_array_equal, one.states, other.states)


def test_a_call_after_many_stops_is_short(monkeypatch):
    """Before, each stop let the next call be longer, up to 2³⁰ steps that nothing could end."""
    lengths, launch = [], _iterate._launch

    def note(run, carry, done, most):
        lengths.append(most)
        return launch(run, carry, done, most)

    monkeypatch.setattr(_iterate, "_launch", note)
    at = [*range(1, 21), 40_000]
    *_, last = levymc.iterate(ALGORITHM, KEY, STARTS, 40_000, at=at)
    assert last.step == 40_000
    assert lengths[:20] == [1] * 20
    assert lengths[20] <= 32


@pytest.mark.parametrize("observe_every", [1, 4])
def test_what_was_observed_so_far(everything, observe_every):
    observe = {"mean": levymc.observe.mean()}
    visits = levymc.iterate(
        ALGORITHM,
        KEY,
        STARTS,
        60,
        at=[2, 9, 60],
        burn_in=5,
        observe=observe,
        observe_every=observe_every,
    )
    for step, _, observed in visits:
        seen = slice(observe_every - 1, step, observe_every)
        weights = everything.weights[0, seen]
        expected = (
            np.average(everything.positions[:, seen], axis=1, weights=weights)
            if len(weights)
            else np.full((4, 2), np.nan)
        )
        np.testing.assert_allclose(observed["mean"], expected, rtol=1e-4, atol=1e-5)


def test_a_run_may_be_left_early():
    """No step is made beyond the one where it was left."""
    asked = []

    def batch(number):
        asked.append(number)
        return np.ones(3, np.float32)

    sgld = levymc.sgld(pull, 0.1)
    for step, _, _ in levymc.iterate(sgld, KEY, STARTS, 10**6, at=10, minibatches=batch):
        if step == 30:
            break
    assert max(asked) == 29


def pull(position, minibatch):
    return jnp.mean(minibatch) - position


def test_iterate_takes_minibatches():
    data = levymc.batches(jnp.arange(20, dtype=jnp.float32), 5)
    sgld, options = levymc.sgld(pull, 0.1), {"minibatches": data, "burn_in": 3}
    whole = levymc.sample(sgld, KEY, STARTS, 20, progress=False, **options)
    for step, states, _ in levymc.iterate(sgld, KEY, STARTS, 20, at=6, **options):
        np.testing.assert_array_equal(states.position, whole.positions[:, step - 1])


def test_iterate_takes_a_sweep():
    sweep = [levymc.ula(normal, 0.1 * n) for n in (1, 2, 3, 4)]
    whole = levymc.sample(sweep, KEY, STARTS, 12, progress=False)
    (visit,) = levymc.iterate(sweep, KEY, STARTS, 12, at=[12])
    np.testing.assert_array_equal(visit.states.position, whole.positions[:, -1])


def test_two_iterations_do_not_know_of_each_other():
    one, other = (iter(levymc.iterate(ALGORITHM, KEY, STARTS, 60, at=20)) for _ in range(2))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first.states.position, second.states.position)


def test_a_second_iteration_compiles_nothing():
    traces = []

    def counted(position):
        traces.append(None)
        return normal(position)

    for eta, at in ((0.1, 5), (0.2, [1, 19])):
        list(levymc.iterate(levymc.ula(counted, eta), KEY, STARTS, 20, at=at))
        first = len(traces) if eta == 0.1 else first
    assert len(traces) == first + 1  # to see that it computes the same


def first_coordinate(position):
    return {"first": position[0]}


def test_keep_is_a_function_of_the_position(everything):
    result = run(burn_in=5, thin=4, keep=first_coordinate)
    assert list(result.positions) == ["first"]
    np.testing.assert_array_equal(result.positions["first"], everything.positions[:, 3::4, 0])
    assert "first" in repr(result)
    np.testing.assert_allclose(
        result.expectation(lambda kept: kept["first"])[1],
        np.average(everything.positions[1, 3::4, 0], weights=everything.weights[1, 3::4]),
        rtol=1e-5,
    )


def test_what_a_function_keeps_may_be_observed_too(everything):
    observe = {"mean": levymc.observe.mean()}
    result = run(burn_in=5, keep=first_coordinate, observe=observe)
    np.testing.assert_array_equal(result.positions["first"], everything.positions[:, :, 0])
    np.testing.assert_allclose(result.observed["mean"], everything.mean(), rtol=1e-4, atol=1e-5)


def test_nothing_may_be_kept(everything):
    result = run(burn_in=5, keep=False)
    assert result.positions is None
    assert result.num_draws == 60
    np.testing.assert_array_equal(result.info.largest_jump, everything.info.largest_jump)
    with pytest.raises(ValueError, match="keep=True"):
        result.mean()


def test_logarithmic_marks_have_the_first_and_the_last():
    for count in (2, 3, 10, 100):
        found = _iterate.as_marks("thin", marks.logarithmic(count), 1000).steps
        assert (found[0], found[-1]) == (1, 1000)
        assert len(found) <= count
        assert np.all(np.diff(found) > 0)


@pytest.mark.parametrize("kind", [marks.Every(3), marks.At((2, 3, 9, 10, 40))])
def test_marks_count_themselves(kind):
    known = kind.within(0, 60, 60)
    for end in range(61):
        assert kind.count_until(end) == np.sum(known <= end)
    for first in range(len(known)):
        np.testing.assert_array_equal(
            kind.numbered(first, 2)[: len(known) - first], known[first : first + 2]
        )
    np.testing.assert_array_equal(kind.within(9, 40, 2), known[(known > 9) & (known <= 40)][:2])


sample, iterate = inspect.unwrap(levymc.sample), inspect.unwrap(levymc.iterate)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (0, ("at least 1", "0")),
        (61, ("num_steps", "61")),
        (2.5, ("integer", "2.5")),
        ("ten", ("integer", "ten")),
        ([], ("integers", "[]")),
        ([1.5], ("integers", "1.5")),
        ([[1, 2]], ("integers", "[[1, 2]]")),
        ([0, 5], ("from 1 to", "[0, 5]")),
        ([5, 61], ("60", "[5, 61]")),
        ([5, 4], ("increasing", "[5, 4]")),
        ([5, 5], ("increasing", "[5, 5]")),
        ([True, False], ("integers", "True")),
    ],
)
def test_bad_marks_are_refused(given, words):
    observe = {"mean": levymc.observe.mean()}
    calls = {
        "thin": lambda: sample(ALGORITHM, KEY, STARTS, 60, thin=given),
        "at": lambda: iterate(ALGORITHM, KEY, STARTS, 60, at=given),
        "observe_every": lambda: sample(
            ALGORITHM, KEY, STARTS, 60, observe=observe, observe_every=given
        ),
    }
    for name, call in calls.items():
        with pytest.raises((ValueError, TypeError), match=f"`{name}`") as caught:
            call()
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: marks.logarithmic(0), ("count", "0")),
        (lambda: iterate(ALGORITHM, KEY, STARTS, 0), ("num_steps", "0")),
        (lambda: iterate(ALGORITHM, KEY, STARTS, 2.5), ("num_steps", "2.5")),
        (lambda: iterate(normal, KEY, STARTS, 5), ("algorithm", "levymc.mafla")),
        (lambda: iterate(ALGORITHM, KEY, STARTS, 5, burn_in=-1), ("burn_in", "at least 0")),
    ],
)
def test_bad_input_is_named_when_iterate_is_called(call, words):
    """Not only when its first visit is asked for."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
