"""`levymc.iterate` with a store: watched as it goes, stopped anywhere, the same bytes."""

import pickle
import shutil
from contextlib import closing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.run import _compare, _programs

KEY = jax.random.key(3)
STARTS = {"x": jnp.linspace(-1, 1, 4).reshape(2, 2)}
DATA = jnp.linspace(0.0, 1.0, 10)
OBSERVE = {"mean": levymc.observe.mean(), "divergent": levymc.observe.divergences()}
STEPS, BURN_IN, AT = 60, 5, 12


def gradient(position, minibatch):
    return {"x": jnp.mean(minibatch) - position["x"]}


def watch(store=None, **changes):
    arguments = {
        "algorithm": levymc.sgfla(gradient, 0.1, 1.7),
        "key": KEY,
        "initial_positions": STARTS,
        "num_steps": STEPS,
        "at": AT,
        "burn_in": BURN_IN,
        "minibatches": levymc.batches(DATA, 3),
        "observe": OBSERVE,
        "observe_every": 2,
    }
    return closing(levymc.iterate(**(arguments | changes), store=store))


def assert_same(one, other):
    assert one.step == other.step
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.fixture(scope="module")
def undisturbed():
    with watch() as visits:
        return list(visits)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A store, its visits, and its folder as a kill would have left it in the third of them."""
    folder = tmp_path_factory.mktemp("iterate")
    found = []
    with watch(folder / "run", commit_seconds=0.0) as visits:
        for visit in visits:
            found.append(visit)
            if len(found) == 3:
                shutil.copytree(folder / "run", folder / "killed")
    return folder, found


def test_a_store_changes_no_visit(undisturbed, complete):
    assert [visit.step for visit in complete[1]] == [12, 24, 36, 48, 60]
    for one, other in zip(undisturbed, complete[1], strict=True):
        assert_same(one, other)
    states = complete[1][0].states
    assert jax.tree.structure(states) == jax.tree.structure(undisturbed[0].states)


def test_a_killed_run_goes_on_with_the_visit_it_was_in(undisturbed, complete, tmp_path):
    shutil.copytree(complete[0] / "killed", tmp_path / "run")
    with watch(tmp_path / "run") as visits:
        found = list(visits)
    for one, other in zip(undisturbed[2:], found, strict=True):
        assert_same(one, other)


def test_a_complete_run_gives_its_last_visit_again(undisturbed, complete):
    for _ in range(2):
        with watch(complete[0] / "run") as visits:
            (last,) = visits
        assert_same(last, undisturbed[-1])
    with watch(complete[0] / "run", at=[1, 2]) as visits:  # at its end there is no stop
        assert list(visits) == []


def stop_at(step, visits):
    for visit in visits:
        if visit.step >= step:
            raise KeyboardInterrupt


def test_an_exception_loses_the_visit_it_came_in_at_most(undisturbed, tmp_path):
    """However long the time between commits; and `at` may change."""
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), watch(tmp_path / "run") as visits:
            stop_at(36, visits)
    with watch(tmp_path / "run", at=[30, 36, STEPS]) as visits:
        found = list(visits)
    assert [visit.step for visit in found[-2:]] == [36, STEPS]
    assert len(found) == 2 or found[0].step == 30
    assert_same(found[-2], undisturbed[2])
    assert_same(found[-1], undisturbed[-1])


def test_without_a_commit_a_killed_run_begins_anew(complete, tmp_path):
    with watch(tmp_path / "run", commit_seconds=600.0) as visits:
        next(visits)
        next(visits)
        assert [file.name for file in (tmp_path / "run/levymc").glob("state-*")] == ["state-0.npz"]
    assert [file.name for file in (complete[0] / "run/levymc").glob("state-*")] == ["state-65.npz"]


def test_a_store_is_resumed_without_its_visits(undisturbed, complete, tmp_path):
    shutil.copytree(complete[0] / "killed", tmp_path / "run")
    result = levymc.resume(tmp_path / "run", progress=False)
    assert result.steps.tolist() == [STEPS]
    np.testing.assert_array_equal(
        result.observed["mean"]["x"], undisturbed[-1].observed["mean"]["x"]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": jax.random.key(4)}, "its key is"),
        ({"num_steps": 72}, "its num_steps is 60, not 72"),
        ({"burn_in": 0}, "its burn_in is 5, not 0"),
        ({"initial_positions": {"x": jnp.zeros((2, 2))}}, "its starts is"),
        ({"algorithm": levymc.sgfla(gradient, 0.2, 1.7)}, "its numbers is"),
        ({"minibatches": levymc.batches(DATA + 1, 3)}, "its data is"),
        ({"observe_every": 3}, "its marks is"),
        ({"observe": {"other": levymc.observe.mean()}}, "its observe is"),
    ],
)
@pytest.mark.often(
    "change0-its key is", "change4-its numbers is", "change5-its data is", "change7-its observe is"
)
def test_the_store_of_another_run_is_refused(complete, change, message):
    with pytest.raises(ValueError, match=rf"holds another: .*{message}.* Name another folder"):
        watch(complete[0] / "run", **change)


def another_gradient(position, minibatch):
    return {"x": jnp.mean(minibatch) - 2 * position["x"]}


def test_another_function_is_refused(complete, monkeypatch):
    """Nothing else differs, and without a look at the program it would go on with the old one."""
    other = levymc.sgfla(another_gradient, 0.1, 1.7)
    with pytest.raises(ValueError, match=r"its program is .* levymc\.resume\(store\) goes"):
        watch(complete[0] / "run", algorithm=other)
    monkeypatch.setattr(_compare, "versions", lambda: {"jax": "0.1"})  # it may be written otherwise
    with watch(complete[0] / "run", algorithm=other, at=[1]) as visits:
        assert list(visits) == []


def test_another_kind_of_algorithm_is_named(complete):
    other = levymc.augmented(
        levymc.sgfla(lambda position, mean: {"x": mean - position["x"]}, 0.1, 1.7),
        lambda key, position, data, memory: (jnp.mean(data), memory),
    )
    with pytest.raises(ValueError, match="its algorithm is sgfla, not augmented sgfla"):
        watch(complete[0] / "run", algorithm=other)


def test_a_strangers_store_is_read_without_executing_any_of_it(complete, monkeypatch):
    """Neither its program, which the observers' summaries came from, nor pickles."""

    def refuse(*_, **__):
        raise AssertionError("executed")

    for module, name in ((jax.export, "deserialize"), (pickle, "loads"), (pickle, "load")):
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(_programs, "_compiled", refuse)
    monkeypatch.setattr(jax, "jit", refuse)
    result = levymc.load(complete[0] / "run")
    assert result.steps.tolist() == [STEPS]
    np.testing.assert_array_equal(
        result.observed["mean"]["x"], complete[1][-1].observed["mean"]["x"]
    )


def test_one_process_at_a_time_runs_it(complete):
    with watch(complete[0] / "run") as visits, watch(complete[0] / "run") as others:
        next(visits)
        with pytest.raises(RuntimeError, match="in use"):
            next(others)
