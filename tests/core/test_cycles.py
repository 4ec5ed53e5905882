"""Cyclical steps, and marks at the ends of their cycles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import marks, schedules

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8, dtype=jnp.float32).reshape(4, 2)


def normal(position):
    return -jnp.sum(position**2) / 2


def run(algorithm, num_steps=60, **options):
    return levymc.sample(algorithm, KEY, STARTS, num_steps, progress=False, **options)


# Schedules.


@pytest.mark.parametrize("least", [0.0, 0.01])
def test_steps_follow_the_cosine_of_the_paper(least):
    numbers = np.arange(1, 61)
    expected = least + (0.1 - least) / 2 * (1 + np.cos(np.pi * ((numbers - 1) % 20) / 20))
    result = run(levymc.ula(normal, schedules.cyclical(0.1, 20, least=least)))
    np.testing.assert_allclose(result.weights, np.tile(expected, (4, 1)), rtol=1e-5)


def test_steps_are_positive_to_the_end_of_a_long_cycle():
    """In float32, in which 1 + cos of the last hundreds of angles is zero."""
    schedule, period = schedules.cyclical(1.0, 1_000_000), 1_000_000
    schedules.check_steps(schedule, period - 10_000, 20_000, np.float32)
    last = schedules.at(schedule, jnp.int32(period), jnp.float32)
    np.testing.assert_allclose(last, (np.pi / 2 / period) ** 2, rtol=1e-5)
    largest = jnp.iinfo(jnp.int32).max
    assert float(schedule(jnp.int32(largest))) > 0


def test_a_short_call_asks_for_few_step_sizes(monkeypatch):
    """Else many chains with schedules of their own pay more for the question than for the steps,
    calls are cut shorter for it, and end at one step each."""
    asked, sizes = [], schedules._sizes

    def counted(schedule, first, count):
        asked.append(count)
        return sizes(schedule, first, count)

    monkeypatch.setattr(schedules, "_sizes", counted)
    for count, most in [(1, 256), (300, 512), (40_000, 48_000)]:
        asked.clear()
        schedules.check_steps(schedules.polynomial(0.1, 0.5), 5, count)
        assert count <= sum(asked) <= most


@pytest.mark.parametrize("last", [1, 256, 257, 8193, 16_385, 17_000])
def test_no_step_of_a_call_is_left_unchecked(last):
    ends = schedules.as_schedule(lambda n: jnp.where(n <= 10 + last, 0.1, 0.0))
    schedules.check_steps(ends, 10, last)
    with pytest.raises(ValueError, match=f"at step {11 + last} in"):
        schedules.check_steps(ends, 10, last + 1)


def test_a_cycle_of_one_step_is_a_constant():
    assert [float(schedules.cyclical(0.1, 1)(n)) for n in (1, 2, 3)] == [0.1] * 3


def test_other_cycles_compile_nothing():
    traces = []

    def counted(position):
        traces.append(None)
        return normal(position)

    run(levymc.ula(counted, schedules.cyclical(0.1, 20)))
    first = len(traces)
    other = run(levymc.ula(counted, schedules.cyclical(0.2, 7, least=0.01)))
    assert len(traces) == first + 1  # to see that it computes the same
    np.testing.assert_allclose(other.weights[:, ::7], 0.2, rtol=1e-6)


def test_a_sweep_over_cycles():
    sweep = [levymc.ula(normal, schedules.cyclical(0.1 * k, 5 * k)) for k in (1, 2, 3, 4)]
    together = run(sweep)
    for chain, algorithm in enumerate(sweep):
        np.testing.assert_allclose(together.weights[chain], run(algorithm).weights[chain])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"a": 0.0}, ValueError, r"`a` must be positive.*got 0\.0"),
        ({"a": np.ones(2)}, TypeError, r"`a` must be one number"),
        ({"period": 0}, ValueError, r"`period` must be at least 1, got 0"),
        ({"period": 2.5}, TypeError, r"`period` must be an integer, got 2\.5"),
        ({"least": -0.1}, ValueError, r"`least` must lie in \[0, 0\.1\], got -0\.1"),
        ({"least": 0.2}, ValueError, r"`least` must lie in \[0, 0\.1\], got 0\.2"),
        ({"least": "no"}, TypeError, r"`least` must be"),
    ],
)
def test_bad_cycles_are_named(given, error, words):
    with pytest.raises(error, match=words):
        schedules.cyclical(**{"a": 0.1, "period": 10, **given})


# Marks.

CYCLES = [
    (10, 0.3, 1),
    (10, 0.3, 2),
    (7, 1.0, 1),
    (7, 1.0, 3),
    (5, 0.01, 1),
    (1, 0.5, 1),
    (20, 0.2, 9),
]


@pytest.mark.parametrize(("period", "share", "spacing"), CYCLES)
def test_marks_are_the_ends_of_cycles(period, share, spacing):
    """All questions about them, against the list."""
    length = max(1, round(share * period))
    ends = [
        step
        for step in range(1, 101)
        if (-step % period) < length and (-step % period) % spacing == 0
    ]
    found = marks.cycle_ends(period, share, spacing=spacing)
    assert found.within(0, 100, 1000).tolist() == ends
    for begin, end, most in ((0, 3, 9), (4, 50, 3), (10, 10, 5), (13, 97, 100), (99, 100, 1)):
        listed = [step for step in ends if begin < step <= end]
        assert found.within(begin, end, most).tolist() == listed[:most]
        assert found.count_until(end) == sum(step <= end for step in ends)
    assert found.numbered(2, 3).tolist() == ends[2:5]
    assert marks.from_json(marks.to_json(found)) == found


def test_a_run_keeps_the_ends_of_its_cycles():
    algorithm = levymc.ula(normal, schedules.cyclical(0.1, 10))
    whole, ends = run(algorithm, 50), run(algorithm, 30, burn_in=20, thin=marks.cycle_ends(10))
    np.testing.assert_array_equal(ends.steps, [9, 10, 19, 20, 29, 30])
    np.testing.assert_array_equal(ends.positions, whole.positions[:, ends.steps + 19])
    assert np.all(ends.weights < 0.01)


def test_observers_may_look_at_the_ends_of_cycles():
    algorithm = levymc.ula(normal, schedules.cyclical(0.1, 10))
    observe = {"mean": levymc.observe.mean()}
    ends = marks.cycle_ends(10)
    result = run(algorithm, observe=observe, observe_every=ends, keep=True, thin=ends)
    np.testing.assert_allclose(result.observed["mean"], result.mean(), rtol=1e-4, atol=1e-6)


def test_a_store_keeps_them_and_can_be_extended(tmp_path):
    algorithm = levymc.ula(normal, schedules.cyclical(0.1, 10))
    ends = marks.cycle_ends(10, spacing=2)
    run(algorithm, 35, thin=ends, store=tmp_path / "run")
    np.testing.assert_array_equal(levymc.load(tmp_path / "run").steps, [10, 20, 30])
    longer = levymc.resume(tmp_path / "run", num_steps=60, progress=False)
    whole = run(algorithm, 60, thin=ends)
    np.testing.assert_array_equal(longer.steps, whole.steps)
    np.testing.assert_array_equal(longer.positions, whole.positions)


@pytest.mark.parametrize("wrong", [[0, 1, 1], [10, 0, 1], [10, 11, 1], [10, 2, 0], [10, 5, 3]])
def test_marks_of_a_store_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="its cycles are"):
        marks.from_json({"cycle_ends": wrong})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"period": 0}, ValueError, r"`period` must be at least 1, got 0"),
        ({"share": 0.0}, ValueError, r"`share` must lie in \(0, 1\], got 0\.0"),
        ({"share": 1.5}, ValueError, r"`share` must lie in \(0, 1\], got 1\.5"),
        ({"share": "all"}, TypeError, r"`share` must be"),
        ({"spacing": 0}, ValueError, r"`spacing` must be at least 1, got 0"),
    ],
)
def test_bad_marks_are_named(given, error, words):
    with pytest.raises(error, match=words):
        marks.cycle_ends(**{"period": 10, **given})


def test_cycles_that_a_run_does_not_have_are_refused():
    algorithm = levymc.ula(normal, 0.1)
    with pytest.raises(ValueError, match=r"`thin` must look at one of `num_steps` = 60.*97"):
        run(algorithm, thin=marks.cycle_ends(100, 0.04))
    with pytest.raises(ValueError, match=r"`burn_in` must be of whole cycles.*got 15.*of 10"):
        run(algorithm, thin=marks.cycle_ends(10), burn_in=15)
