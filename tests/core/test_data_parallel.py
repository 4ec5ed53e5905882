"""Minibatches over devices and processes: unbiased, and of the same law as on one device."""

import json
import math

import jax
import numpy as np
import pytest
from tests.core import processes, spread_run

import levymc
from levymc.algorithms import _spread

DATA = np.arange(10.0)
DATA_MEAN = spread_run.DATA.mean()
SGLD = levymc.sgld(lambda x, batch: -x, 0.1)


def said(what, **options):
    command = ["-W", "error::RuntimeWarning", "-m", "tests.core.spread_run", what]
    lines = [output.splitlines()[-1] for output in processes.outputs(command, **options)]
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def found():
    """Of two devices in one process."""
    return said("estimates", devices=2)[0]


@pytest.fixture(scope="module")
def runs():
    """Of two devices in one process."""
    return said("laws", devices=2)[0]


def test_the_estimate_is_unbiased_on_shards_of_unequal_size(found):
    """Over all minibatches, each as likely as another; without the shards' weights it is not."""
    exhaustive = found["exhaustive"]
    assert exhaustive["count"] == 3**2 * 2**2
    np.testing.assert_allclose(exhaustive["means"], exhaustive["exact"], rtol=1e-6)


def test_gradients_of_many_data_have_the_right_mean(found):
    """False alarms: 5e-8, by the normal law of a mean of 20 000 sums of 64.

    Detects a bias of 0.08 of a gradient's standard deviation, as of a point that is never drawn if
    it is 0.3 deviations away from the mean.
    """
    gradients = found["gradients"]
    error = gradients["deviation"] / math.sqrt(gradients["count"])
    assert abs(gradients["mean"] - gradients["exact"]) < 5.45 * error


def test_devices_draw_apart():
    """Each has its own key; as many of 50 places of 1000 agree by chance with probability 1e-20."""
    one, other = (_spread.draw_places(jax.random.key(0), n, 1000, 50) for n in (0, 1))
    assert np.sum(np.asarray(one) == np.asarray(other)) < 12


@pytest.mark.nightly
def test_chains_have_the_law_of_one_device(runs):
    """False alarms: 1e-7, by Dvoretzky-Kiefer-Wolfowitz on both samples.

    Detects a distance of 0.18 between the laws: a shift by half a standard deviation, or noise of
    the minibatch that is left out (its part of the variance is 0.8).
    """
    alone, spread = (np.sort(runs[name]) for name in ("alone", "spread"))
    places = np.concatenate([alone, spread])
    levels = [np.searchsorted(ends, places, "right") / len(ends) for ends in (alone, spread)]
    bound = 2 * math.sqrt(math.log(4 / 1e-7) / (2 * len(alone)))
    assert np.max(np.abs(levels[0] - levels[1])) < bound


@pytest.mark.nightly
def test_other_algorithms_run_on_them(runs):
    """Jumps, functions that give gradients alone, and curvatures: the median is the data's mean.

    False alarms: below 1e-9, as 0.1 is ten standard deviations of a median of 256 chains.
    """
    for median in runs["others"].values():
        assert abs(median - DATA_MEAN) < 0.1


def test_what_does_not_fit_the_devices_is_refused(found):
    assert "multiple of the 2 devices of `mesh`" in found["refusals"]["multiple"]
    assert "Such as 62 or 64" in found["refusals"]["multiple"]
    assert "no more devices than there are data points" in found["refusals"]["few"]


def test_communication_that_dominates_is_warned_of(found):
    warning = found["refusals"]["warning"]
    assert "add up their gradients takes 4 ms, to compute them 1 ms" in warning
    assert "some 256 data points" in warning
    assert found["refusals"]["file"].endswith("spread_run.py")


def one_device():
    return levymc.batches(DATA, 5, mesh=jax.make_mesh((1,), ("data",)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"store": "never-made"}, "`store` must be None with data over a mesh"),
        ({"mesh": jax.make_mesh((1,), ("chains",))}, "`mesh` must be None with data over a mesh"),
    ],
)
def test_stores_and_chains_over_devices_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        levymc.sample(SGLD, jax.random.key(0), np.zeros(1), 5, minibatches=one_device(), **options)


def test_an_algorithm_that_adds_up_nothing_is_refused():
    ids = np.zeros(1, np.int32)
    fast = levymc.models.fast_factorization(ids, ids, ids, 1, 1, batch_size=1, step_size=0.1)
    starts = {name: np.ones((1, 1, 10), np.float32) for name in ("users", "items")}
    with pytest.raises(TypeError, match="must be on one device for an algorithm"):
        levymc.sample(fast.algorithm, jax.random.key(0), starts, 5, minibatches=one_device())


def test_a_minibatch_that_no_device_has_cannot_be_drawn():
    with pytest.raises(TypeError, match="`draw` must be of data on one device"):
        one_device().draw(jax.random.key(0))


@pytest.mark.nightly
@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_processes_have_the_same_chains(count, devices):
    """To rounding those of one process with four devices; to the last bit in all processes."""
    (alone,) = said("small_run", devices=4)
    several = said("small_run", count=count, devices=devices)
    assert len({one["checksum"] for one in several}) == 1
    np.testing.assert_allclose(several[0]["ends"], alone["ends"], rtol=1e-4)


@pytest.mark.nightly
def test_processes_with_other_data_are_refused():
    for one in said("different_data", count=2):
        assert "`data` must be the same in all 2 processes" in one["error"]
