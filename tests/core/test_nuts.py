"""NUTS through a map: the law whatever the map is, a frozen step size, and what it counts.

Statistical bounds: false-alarm rate at most 1e-8 each, 10 of them in the file.
"""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

import levymc
from levymc import adapt
from levymc.adapt import TailMap, _nuts

pytest.importorskip("blackjax")

FALSE_ALARM = 1e-8
KEY = jax.random.key(3)
MANY = 10_000


def mixed(position):
    """A Cauchy coordinate, and a normal one whose mean is bent along it."""
    x, y = position["x"], position["y"]
    return -jnp.log1p(x * x) - (y - jnp.tanh(x)) ** 2 / 2


def exact_draws(count, dtype=np.float32):
    random = np.random.default_rng(11)
    x = random.standard_cauchy(count)
    return {"x": x.astype(dtype), "y": (np.tanh(x) + random.normal(size=count)).astype(dtype)}


BAD = TailMap(
    location=np.array([1.0, -0.5]),
    scale=np.array([0.4, 2.0]),
    upper=np.array([0.3, 0.1]),
    lower=np.array([0.1, 0.2]),
    skew=np.array([0.5, -0.7]),
    shift=np.array([0.2, 0.0]),
    factor=np.array([[1.0, 0.0], [0.6, 0.8]]),
    radial=np.asarray(0.1),
    turn=np.array([[1.2, 0.4], [-0.5, 2 / 3]]),
)
FEW_DOUBLINGS = 4


def algorithm(**changes):
    made = adapt.nuts(mixed, 0.4, BAD, max_num_doublings=FEW_DOUBLINGS)
    return dataclasses.replace(made, **changes)


def run(made, starts, num_steps, **options):
    return levymc.sample(made, KEY, starts, num_steps, progress=False, **options)


STARTS = exact_draws(4)


@pytest.mark.parametrize("tail_map", [BAD, adapt.identity(2)], ids=["bad map", "no map"])
@pytest.mark.often("bad map")
def test_the_law_is_kept_whatever_the_map_is(tail_map):
    """Exact draws, moved by three steps, are of the same law.

    DKW on x and on y - tanh x, at 10000 draws: a false alarm has probability 1e-8, and a law whose
    distribution function is off by 0.062 anywhere is found.  Without the log Jacobian it is off by
    more than 0.1 after three steps.
    """
    starts = exact_draws(MANY)
    moved = run(algorithm(tail_map=tail_map), starts, 3).positions
    x, y = (np.asarray(moved[name][:, -1], np.float64) for name in ("x", "y"))
    assert np.mean(x != starts["x"]) > 0.8
    bound = dkw_bound(MANY, FALSE_ALARM)
    assert stats.kstest(x, "cauchy").statistic < bound
    assert stats.kstest(y - np.tanh(x), "norm").statistic < bound
    # Together, too: what is bent is bent as before.
    assert stats.kstest(stats.cauchy.cdf(x)[y > np.tanh(x)], "uniform").statistic < dkw_bound(
        int(np.sum(y > np.tanh(x))), FALSE_ALARM
    )


def test_a_frozen_step_size_is_untouched_to_the_bit():
    frozen = run(algorithm(step_size=0.3), STARTS, 50)
    np.testing.assert_array_equal(frozen.info.step_size, 0.3)
    adapting = run(algorithm(step_size=0.3, gain=1.0), STARTS, 50)
    assert len(np.unique(adapting.info.step_size[0])) == 50
    later = adapting.info.acceptance_rate[:, 25:]
    assert 0.6 < np.mean(later) < 0.95


@pytest.mark.nightly
def test_an_allowance_is_kept_and_draws_before_its_end_are_the_same():
    free = run(algorithm(), STARTS, 50).info
    cut = run(algorithm(allowance=100.0), STARTS, 50).info
    totals = cut.num_integration_steps.sum(axis=1)
    assert np.all(totals <= 100)
    assert np.all(totals > 100 - 2 * (2**FEW_DOUBLINGS - 1))
    made = cut.num_integration_steps > 0
    assert np.all(np.diff(made.astype(int), axis=1) <= 0)
    np.testing.assert_array_equal(cut.logdensity[made], free.logdensity[made])
    assert not np.any(cut.is_divergent[~made])


@pytest.mark.nightly
def test_every_gradient_is_counted():
    """By a callback, in a chain alone: one at the start, then what the info says."""
    calls = []

    def counted(x):
        jax.debug.callback(lambda value: calls.append(1), x[0])
        return -jnp.sum(x * x) / 2

    made = adapt.nuts(counted, 0.3, max_num_doublings=FEW_DOUBLINGS)
    result = levymc.sample(made, KEY, jnp.ones((1, 2)), 20, progress=False)
    jax.effects_barrier()
    assert len(calls) == 1 + int(np.sum(result.info.num_integration_steps))


def test_the_statistics_reach_the_result():
    result = run(algorithm(), STARTS, 20)
    assert result.is_exact
    assert result.algorithm == "nuts"
    assert np.all(result.weights == 1)
    names = ("step_size", "acceptance_rate", "diverging", "energy", "lp", "n_steps", "tree_depth")
    assert set(result.statistics) == set(names)
    again = jax.vmap(jax.vmap(mixed))(result.positions)
    np.testing.assert_allclose(result.info.logdensity, again, rtol=1e-4, atol=1e-4)


@pytest.mark.nightly
def test_one_program_serves_all_numbers():
    traces = []

    def traced(x):
        traces.append(1)
        return -jnp.sum(x * x) / 2

    made = adapt.nuts(traced, 0.5, adapt.identity(2), max_num_doublings=3)
    starts = jnp.ones((2, 2))
    levymc.sample(made, KEY, starts, 5, progress=False)
    count = len(traces)
    other = dataclasses.replace(made, step_size=0.9, tail_map=BAD, gain=1.0, allowance=50.0)
    levymc.sample(other, KEY, starts, 9, progress=False)
    # The start alone is looked at again, as its output is checked.
    assert len(traces) <= count + 1


@pytest.mark.nightly
def test_a_store_resumes_to_the_same_draws(tmp_path):
    whole = run(algorithm(), STARTS, 60)
    run(algorithm(), STARTS, 25, store=tmp_path / "run")
    resumed = levymc.resume(tmp_path / "run", num_steps=60, progress=False)
    np.testing.assert_array_equal(resumed.positions["x"], whole.positions["x"])
    np.testing.assert_array_equal(resumed.info["energy"], whole.info.energy)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dtype_stays(dtype):
    result = run(algorithm(), exact_draws(4, dtype), 10)
    assert result.positions["x"].dtype == dtype


def test_starts_outside_the_support_are_refused():
    made = adapt.nuts(lambda x: jnp.log(x), 0.5)
    with pytest.raises(ValueError, match="finite at the start"):
        made.init(-1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"step_size": -1.0}, "positive"), ({"max_num_doublings": 0}, "at least 1")],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        adapt.nuts(mixed, **options)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    _nuts._kernel.cache_clear()
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"levymc\[auto\]"):
        adapt.nuts(mixed)
    monkeypatch.undo()
    _nuts._kernel.cache_clear()
