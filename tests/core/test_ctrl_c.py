"""Ctrl-C before every line of what takes the draws of a call, in memory and in a store."""

import os
import shutil
import sys
from contextlib import contextmanager

import jax
import numpy as np
import pytest
from tests.core import stored_run

import levymc
from levymc.run import _sample, _store

STEPS = 60  # twelve draws
OBSERVE = {"mean": levymc.observe.mean(stored_run.first)}


def begin(store=None, num_steps=STEPS):
    return stored_run.begin(store, num_steps, observe=OBSERVE, keep=True)


def assert_same(one, other):
    trees = [(each.positions, each.info, each.weights, each.steps) for each in (one, other)]
    jax.tree.map(np.testing.assert_array_equal, *trees)


def first_of(result, count):
    """Its first draws, and the steps that they were kept at."""
    trees = result.positions, result.info, result.weights
    return jax.tree.map(lambda leaf: leaf[:, :count], trees), result.steps[:count]


def assert_is_beginning(part, whole):
    """All arrays have as many draws, which are those of the whole run."""
    found = (part.positions, part.info, part.weights), part.steps
    jax.tree.map(np.testing.assert_array_equal, found, first_of(whole, part.num_draws))
    np.testing.assert_array_equal(
        part.observed["mean"], begin(num_steps=5 * part.num_draws).observed["mean"]
    )


@contextmanager
def stopped_before(line, functions, call):
    """Ctrl-C before the so-manieth line that is executed in functions, in a call of the first.

    Gives a list, which then has that line's number, unless there are fewer.
    """
    codes, seen, stopped = [function.__code__ for function in functions], [0, 0], []

    def follow(frame, event, argument):
        if frame.f_code not in codes:
            return None
        seen[0] += frame.f_code is codes[0] and event == "call"
        return count if seen[0] == call else None

    def count(frame, event, argument):
        seen[1] += event == "line"
        if seen[1] == line:
            stopped.append(frame.f_lineno)
            raise KeyboardInterrupt
        return count

    sys.settrace(follow)
    try:
        yield stopped
    finally:
        sys.settrace(None)


@pytest.fixture(scope="module")
def whole():
    return begin()


def test_a_run_in_memory_is_whole_up_to_a_call(calls_of, whole):
    """Before, the steps of draws counted that had not been copied yet."""
    calls_of(10)
    sink = _sample._Memory
    for line in range(1, 1000):
        with stopped_before(line, [sink.append, sink._make_room], 3) as stopped:
            part = begin()
        if not stopped:
            break
        assert part.is_interrupted
        assert_is_beginning(part, whole)
    assert line > 10
    assert_same(part, whole)


@pytest.mark.parametrize("commit_seconds", [-1.0, 30.0])  # after every call; at the end alone
def test_a_store_is_whole_up_to_a_call(
    calls_of, stopped_after, whole, tmp_path, monkeypatch, commit_seconds
):
    """Before, one array had more draws than another, or all more than counted: it was damaged."""
    monkeypatch.setattr(_store, "COMMIT_SECONDS", commit_seconds)
    monkeypatch.setattr(os, "fsync", lambda file: None)  # the power stays on
    calls_of(10)
    with stopped_after(2):
        begin(tmp_path / "begun")
    sink, line, stopped = _store._Sink, 0, True
    while stopped:
        line += 1
        store = shutil.copytree(tmp_path / "begun", tmp_path / str(line))
        with stopped_before(line, [sink.append, sink.commit], 3) as stopped:
            levymc.resume(store, progress=False)
        assert_is_beginning(levymc.load(store), whole)
        assert_same(levymc.resume(store, progress=False), whole)
    assert line > 5
