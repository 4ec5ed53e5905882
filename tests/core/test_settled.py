"""A function is what it computes now: nothing that was compiled for it before is used for that."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import levymc
from levymc import _settled, diagnostics, drifts, theory
from levymc._settled import Computed, Settling, as_now, settled

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


class Sums(levymc.observe.Observer):
    """An observer that looks at info, and whose numbers may change."""

    def __init__(self):
        self.each, self.all = 1.0, 1.0

    def init(self, position):
        return jnp.zeros(())

    def update(self, so_far, position, weight, info=None):
        return so_far + self.each * info.acceptance_rate * (weight > 0)

    def finish(self, so_far):
        return so_far * self.all


def test_an_observer_is_what_it_is_now():
    """Before, what one made of its sums, or of info, was what it had made of them first."""
    ula, sums = levymc.ula(of_a_global, 0.1), Sums()
    for sums.each, sums.all in ((1.0, 1.0), (2.0, 1.0), (2.0, 5.0), (1.0, 1.0)):
        run = levymc.sample(
            ula, jax.random.key(0), STARTS, 8, progress=False, observe={"sums": sums}
        )
        assert np.all(np.asarray(run.observed["sums"]) == 8 * sums.each * sums.all)


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


MAKERS = {
    "panels": lambda function: drifts.quadrature(function, 1.5),
    "fixed reach": lambda function: drifts.quadrature(function, 1.5, radius=20.0),
    "centered": lambda function: drifts.centered_difference(
        function, 1.5, spacing=0.1, num_terms=50
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_drift_that_is_called_is_of_the_data_that_there_are(kind, make):
    """It moves with them: one made before they changed, and one made anew."""
    function, change = kind()
    change(0.0)
    old = make(function)
    expected = float(old(0.25))
    for y in (2.0, 0.0):
        change(y)
        for drift in (old, make(function)):
            np.testing.assert_allclose(drift(0.25 + y), expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["panels", "fixed reach"])
@pytest.mark.parametrize("named", [False, True])
def test_numbers_of_a_function_leave_it_what_it_reads(named, name):
    def of(x, width):
        return of_a_global(x / width)

    function = Partial(of, width=2.0) if named else Partial(lambda width, x: of(x, width), 2.0)
    _, change = read_from_a_global()
    change(0.0)
    drift = MAKERS[name](function)
    expected = float(drift(0.5))
    change(2.0)
    np.testing.assert_allclose(drift(4.5), expected, rtol=1e-4)


def test_the_radius_of_a_drift_is_of_the_data_that_there_are():
    model = Model(0.01)

    def radius(x):
        return model.y + 0 * x

    drift = drifts.quadrature(of_a_global, 1.5, radius=radius)
    near = float(drift(0.5))
    model.y = 20.0
    far = drifts.quadrature(of_a_global, 1.5, radius=20.0)(0.5)
    assert drift(0.5) == far != near


def test_exploration_is_of_the_data_that_there_are():
    """A function that nobody has seen is explored anew."""
    function, change = method()
    starts = np.zeros((3, 2))
    for y in (0.0, 3.0):
        change(y)
        for made, seen in (
            (drifts.quadrature(function, 1.5), drifts.quadrature(lambda x: function(x), 1.5)),
            (
                drifts.quadrature(function, 1.5).prepared(starts),
                drifts.quadrature(lambda x: function(x), 1.5).prepared(starts),
            ),
        ):
            np.testing.assert_array_equal(made.breaks, seen.breaks)
            assert np.max(made.breaks) > y + 1


def test_what_is_seen_of_a_drift_on_a_line_is_of_the_data_that_there_are():
    function, change = method()
    drift = drifts.leading_term(function, 1.5)
    for look in (theory.check_growth, theory.check_lyapunov, theory.check_lipschitz):
        for y in (0.0, 30.0):
            change(y)
            anew = drifts.leading_term(lambda x: function(x), 1.5)
            assert look(drift, reach=100.0).numbers == look(anew, reach=100.0).numbers


def test_stationarity_is_of_the_data_that_there_are():
    function, change = method()
    draws = np.random.default_rng(0).normal(size=(4, 200))
    result = levymc.Result(draws, np.ones((4, 200)), None)
    given = MAKERS["centered"](function)
    for drift in (None, given):
        for y in (0.0, 3.0):
            change(y)
            assert bool(diagnostics.stationarity(result, function, 1.5, drift=drift)) == (y == 0)


def test_step_sizes_are_looked_at_as_they_are():
    model = Model(0.1)

    def step_size(n):
        return jnp.where(n > 3, model.y, 0.1)

    def run():
        algorithm = levymc.fla(of_a_global, step_size, 1.7)
        return levymc.sample(algorithm, jax.random.key(0), STARTS, 8, progress=False)

    run()
    model.y = -0.1
    with pytest.raises(ValueError, match="positive and finite at every step"):
        run()


def test_in_a_program_nothing_is_settled():
    drift = MAKERS["centered"](of_a_global)
    assert as_now(drift, 0.5) is not drift
    for mapped in (jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(jnp.ones(2) * x)):

        @mapped
        def call(x):
            assert as_now(drift, x) is drift
            return x

        call(0.5)

    @jax.jit
    def of_a_constant(x):
        assert as_now(drift, 0.5) is drift
        return x

    of_a_constant(0.5)


def test_a_function_that_holds_a_tracer_is_not_kept():
    kept = dict(_settled._KEPT)

    def at(width):
        return MAKERS["centered"](lambda x: -(x**2) / width)(0.53)

    assert jax.grad(at)(2.0) > 0  # no node is at the mode
    assert kept == _settled._KEPT
