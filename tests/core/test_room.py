"""Compiled programs are let go before a process may have no more of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import _room
from levymc.run._engine import compile_program


def draws(scale):
    walk = levymc.levy_walk(lambda x: -jnp.sum(x**2) / scale, 1.0)
    key, starts = jax.random.key(0), jnp.zeros((2, 3))
    return levymc.sample(walk, key, starts, 20, progress=False).positions


@pytest.fixture
def maps(tmp_path, monkeypatch):
    """A function that sets how many of a hundred pieces of memory are mapped."""
    mapped, most = tmp_path / "maps", tmp_path / "most"
    monkeypatch.setattr(_room, "MAPS", mapped)
    monkeypatch.setattr(_room, "MOST_MAPS", most)
    most.write_text("100\n")
    return lambda count: mapped.write_text("a piece\n" * count)


def test_programs_are_let_go_where_there_is_little_room(maps):
    maps(10)
    expected = [draws(scale) for scale in (1.0, 2.0)]
    assert compile_program.cache_info().currsize >= 2
    maps(90)
    last = draws(3.0)
    assert compile_program.cache_info().currsize == 1
    maps(10)
    for scale, wanted in ((1.0, expected[0]), (2.0, expected[1]), (3.0, last)):
        np.testing.assert_array_equal(draws(scale), wanted)


def test_systems_without_such_a_bound_keep_all(tmp_path, monkeypatch):
    monkeypatch.setattr(_room, "MAPS", tmp_path / "missing")
    kept = compile_program.cache_info().currsize
    _room.make_room()
    assert compile_program.cache_info().currsize == kept
