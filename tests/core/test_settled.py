"""A function is what it computes now: nothing that was compiled for it before is used for that."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import levymc
from levymc._settled import Computed, Settling, settled

STARTS = jnp.zeros((4, 2))


class Model:
    """A log density as a method, whose data may change."""

    def __init__(self, y):
        self.y = y

    def logdensity(self, x):
        return -0.5 * jnp.sum((x - self.y) ** 2)


@dataclasses.dataclass
class Distance:
    """Equal to others with the same data, and not hashable."""

    y: float

    def __call__(self, x):
        return -0.5 * jnp.sum((x - self.y) ** 2)


place = 0.0


def of_a_global(x):
    return -0.5 * jnp.sum((x - place) ** 2)


def method():
    model = Model(0.0)
    return model.logdensity, lambda y: setattr(model, "y", y)


def unhashable():
    model = Distance(0.0)
    return model, lambda y: setattr(model, "y", y)


def written_to():
    model = Model(np.zeros(2, np.float32))
    return model.logdensity, lambda y: model.y.fill(y)


def read_from_a_global():
    def change(y):
        global place
        place = y

    return of_a_global, change


KINDS = [method, unhashable, written_to, read_from_a_global]


def mean_of(algorithm, key=1, **how):
    run = levymc.sample(algorithm, jax.random.key(key), STARTS, 400, progress=False, **how)
    return float(np.mean(np.asarray(run.positions)[:, 100:]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_of_the_data_that_there_are(kind):
    """The draws of the second call are about 7; they were those of the first, about 0."""
    function, change = kind()
    change(0.0)
    assert abs(mean_of(levymc.mafla(function, 0.5, 1.8))) < 2
    change(7.0)
    assert abs(mean_of(levymc.mafla(function, 0.5, 1.8)) - 7) < 2


def test_an_algorithm_made_before_its_data_changed_has_those_of_the_run():
    function, change = method()
    walk = levymc.levy_walk(function, 1.0)
    mean_of(walk)
    change(7.0)
    assert mean_of(walk) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_of_the_data_that_there_are(kind):
    function, change = kind()
    for y in (0.0, 7.0, 0.0):
        change(y)
        modes = levymc.adapt.explore(function, jax.random.key(0), STARTS, budget=500)
        np.testing.assert_allclose(modes.location, [[y, y]], atol=1e-2)


def test_evidence_is_of_the_data_that_there_are():
    function, change = method()
    draws = jax.random.normal(jax.random.key(0), (4, 500, 2))
    found = []
    for y in (0.0, 1.0):
        change(y)
        found.append(levymc.adapt.log_evidence(function, jax.random.key(1), draws + y).value)
    np.testing.assert_allclose(found, np.log(2 * np.pi), atol=0.1)


def test_a_drift_by_quadrature_is_of_the_data_that_there_are():
    """Its own programs are found by the density, too, inside of the run's."""
    function, change = method()
    starts = jnp.zeros(8)
    for y in (0.0, 7.0):
        change(y)
        drift = levymc.drifts.quadrature(function, 1.5)
        algorithm = levymc.flmc(function, 0.05, 1.5, drift=drift)
        run = levymc.sample(algorithm, jax.random.key(1), starts + y, 400, progress=False)
        assert abs(np.median(run.positions) - y) < 1


def test_an_algorithm_of_another_library_is_of_the_data_that_there_are():
    blackjax = pytest.importorskip("blackjax")
    function, change = method()
    algorithm = blackjax.mala(function, 0.5)
    mean_of(algorithm)
    change(7.0)
    assert mean_of(algorithm) > 3


def test_what_is_kept_and_observed_is_of_the_data_that_there_are():
    model = Model(0.0)

    def shifted(x):
        return x * 0 + model.y

    walk, observe = levymc.levy_walk(of_a_global, 1.0), {"mean": levymc.observe.mean(shifted)}
    for y in (0.0, 7.0):
        model.y = y
        run = levymc.sample(
            walk, jax.random.key(0), STARTS, 8, progress=False, keep=shifted, observe=observe
        )
        assert np.all(np.asarray(run.positions) == y)
        assert np.all(np.asarray(run.observed["mean"]) == y)


def test_the_same_function_compiles_nothing_again():
    function, change = method()
    walk = levymc.levy_walk(function, 1.0)
    for y in (0.0, 7.0):
        change(y)
        mean_of(walk)
    before = levymc.run._engine.compile_program.cache_info().misses
    for y in (0.0, 7.0, 0.0):
        change(y)
        mean_of(levymc.levy_walk(function, 1.0))
    assert levymc.run._engine.compile_program.cache_info().misses == before


def test_the_same_function_with_numbers_compiles_nothing_again():
    function = Partial(lambda width, x: of_a_global(x / width), 2.0)
    for algorithm in (levymc.levy_walk(function, 1.0), levymc.flmc(function, 0.1, 1.5)):
        mean_of(algorithm)
        before = levymc.run._engine.compile_program.cache_info().misses
        mean_of(algorithm)
        assert levymc.run._engine.compile_program.cache_info().misses == before


def test_numbers_are_compared_bit_by_bit():
    def of(y):
        return Computed(lambda x: jnp.sum(x * y), jnp.zeros(3))

    assert of(np.full(3, np.nan)) == of(np.full(3, np.nan))
    assert of(np.zeros(3)) != of(np.array([0.0, 0.0, -0.0]))
    assert of(np.float32(1)) != of(np.float32(1 + 1e-7))
    key = jax.random.key(0)
    assert Computed(lambda x: jax.random.normal(key) * x, 1.0) != Computed(
        lambda x: jax.random.normal(jax.random.key(1)) * x, 1.0
    )


def test_a_function_that_cannot_be_traced_is_itself():
    def picky(x):
        raise ValueError("not today")

    assert settled(picky, 1.0) is picky


def test_a_function_of_ours_that_calls_itself_may_read_what_changes():
    def again(x):
        return again(x)

    again.__module__ = "levymc.somewhere"
    settling = Settling(1.0)
    assert settling.settle(again) is again
    assert settling.is_opaque
