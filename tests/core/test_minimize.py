"""Annealing by Lévy jumps: what it finds, that it keeps to its budget, and what it refuses."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.adapt import Minimum, minimize

BUDGET = 2000


def egg_box(x):
    """Twenty-five minima in [-5, 5]², on a bowl that makes the one at the origin the lowest."""
    return jnp.sum(x**2 / 20 + 1 - jnp.cos(jnp.pi * x))


def starts(seed, shape=(16, 2), half=5.0):
    return jax.random.uniform(jax.random.key(seed), shape, minval=-half, maxval=half)


def search(function, seed, positions=None, **options):
    chosen = starts(seed) if positions is None else positions
    return minimize(function, jax.random.key(seed + 1000), chosen, **{"budget": BUDGET, **options})


def test_the_lowest_of_many_minima_is_found():
    """From one start in a corner, in at least 13 of 20 runs.

    None of 200 runs with other seeds missed it, which tells of a probability below 0.03 (at 99.7 %
    confidence): eight or more of 20 do with one of at most C(20, 8) 0.03⁸ < 9e-8.  It detects that
    half of the runs miss it with a probability of 0.87.
    """
    corner = jnp.full((1, 2), 4.0)
    found = [search(egg_box, seed, corner) for seed in range(20)]
    assert sum(one.value < 1e-8 for one in found) >= 13


@pytest.mark.nightly
def test_rastrigin_in_ten_dimensions_is_solved():
    """In at least 6 of 20 runs of 20 000 evaluations.

    All of 60 runs with other seeds found it, which tells of a probability above 0.9 (at 99.8 %
    confidence): 15 or more miss it with one of at most C(20, 15) 0.1¹⁵ < 2e-11.
    """
    found = [
        search(_rastrigin, seed, starts(seed, (16, 10), 5.12), budget=20_000) for seed in range(20)
    ]
    assert sum(one.value < 1e-6 for one in found) >= 6


def _rastrigin(x):
    return jnp.sum(x**2 + 10 - 10 * jnp.cos(2 * jnp.pi * x))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.often("1e-09")
def test_the_units_of_the_function_do_not_matter(unit):
    """By powers of ten the roundings differ; the search is the same up to them."""
    plain, scaled = search(egg_box, 3), search(lambda x: unit * egg_box(x), 3)
    assert scaled.value == pytest.approx(unit * plain.value, abs=1e-9 * unit)
    np.testing.assert_allclose(scaled.position, plain.position, atol=1e-6)


@pytest.mark.parametrize("budget", [200, 777])
@pytest.mark.parametrize("dimension", [1, 7])
@pytest.mark.often("1-777", "7-200")
def test_the_budget_is_kept(budget, dimension):
    """Batches are cut to what is left."""
    found = search(egg_box, 0, starts(0, (16, dimension)), budget=budget)
    assert 0.7 * budget < found.evaluations <= budget


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.often("float32")
def test_positions_are_pytrees_and_keep_their_dtype(dtype):
    def function(position):
        return egg_box(position["a"]) + jnp.sum((position["b"] - 1.0) ** 2)

    positions = {"a": starts(0).astype(dtype), "b": jnp.zeros((16, 2, 2), dtype)}
    found = search(function, 0, positions)
    assert isinstance(found, Minimum)
    assert isinstance(found.value, float)
    assert {name: leaf.dtype for name, leaf in found.position.items()} == dict.fromkeys("ab", dtype)
    np.testing.assert_allclose(found.position["a"], 0.0, atol=2e-3)
    np.testing.assert_allclose(found.position["b"], np.ones((2, 2)), atol=2e-3)
    assert found.value == pytest.approx(float(function(found.position)), abs=1e-6)


def test_the_minimum_is_polished_to_rounding():
    """Of a narrow valley: what relaxations leave, a thousandth of the temperature, is made up."""

    def valley(x):
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    found = search(valley, 0)
    assert found.value < 1e-20
    np.testing.assert_allclose(found.position, 1.0, atol=1e-9)


def test_the_same_key_gives_the_same_minimum_and_it_is_counted():
    first, again = search(egg_box, 5), search(egg_box, 5)
    np.testing.assert_array_equal(first.position, again.position)
    assert first[1:] == again[1:]
    assert first.num_jumps >= 8
    assert 1 <= first.times_found <= 8


def test_a_flat_function_is_minimal_everywhere():
    assert search(lambda x: 3.0 + 0 * x[0], 0).value == 3.0


def test_where_it_is_not_finite_it_does_not_end():
    """A logarithm's wall, beyond which the function is NaN."""
    found = search(lambda x: jnp.sum(x - jnp.log(x)), 0, starts(0) + 4.0)
    np.testing.assert_allclose(found.position, 1.0, atol=1e-6)
    assert found.value == pytest.approx(2.0)


def test_a_hole_in_a_plain_that_is_nearly_flat_is_no_abyss():
    """At the starts values are below 1e-21: they tell nothing of how deep it may be."""
    found = search(lambda x: -jnp.exp(-jnp.sum(x**2) / 50), 0, starts(0) + 40.0)
    assert found.value == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"function": lambda x: x[0] - x[1]}, "must be bounded below, got"),
        ({"function": lambda x: -jnp.log1p(jnp.sum(x**2))}, "must be bounded below, got"),
        ({"function": lambda x: -jnp.sum(x**4)}, "must be bounded below, got"),
        (
            {"function": lambda x: jnp.sum(x) * math.nan},
            "must be finite at a start, got none of 16",
        ),
        ({"function": lambda x: x}, "`function` must return"),
        ({"budget": 100}, "`budget` must be at least 200, got 100"),
        ({"positions": jnp.zeros((16, 2), int)}, "`initial_positions`"),
        ({"positions": jnp.zeros((0, 2))}, "along the first axis of every leaf"),
        ({"positions": jnp.float32(0.0)}, "along the first axis of every leaf"),
        (
            {"positions": {"a": jnp.zeros((3, 2)), "b": jnp.zeros(2)}},
            "along the first axis of every leaf",
        ),
    ],
)
def test_what_is_wrong_is_named(change, message):
    options = {"function": egg_box, "positions": starts(0), **change}
    with pytest.raises((ValueError, TypeError), match=message):
        search(options.pop("function"), 0, **options)


def test_it_is_public():
    assert levymc.minimize is minimize
