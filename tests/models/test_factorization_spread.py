"""Matrix factorisation with its users over devices: the same law as on one."""

import json

import jax
import numpy as np
import pytest
from tests.core import processes
from tests.models import spread_ratings
from tests.models.kernels import needs_native

import levymc

pytestmark = needs_native


def said(what, **options):
    command = ["-m", "tests.models.spread_ratings", what]
    lines = [output.splitlines()[-1] for output in processes.outputs(command, **options)]
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def found():
    """Of three devices in one process, which have unequal parts."""
    return said("cheap", devices=3)[0]


@pytest.mark.nightly
def test_a_step_has_the_moments_of_one_device(found):
    """False alarms: 2e-7, by the normal law of means and variances of 4000 chains, 48 each.

    Detects a mean that is off by 0.2 standard deviations of a step and a variance by a quarter, as
    of a part of the batch that is too large, items that do not hear of all devices, or noise of
    another size.
    """
    alone, spread = ({n: np.array(v) for n, v in one.items()} for one in found["moments"].values())
    moves = alone["variance"] > 0
    assert np.all(spread["variance"][~moves] == 0)  # padding, and columns of ones
    assert moves.sum() == 7 * 3 + 5 * 3
    count, both = spread_ratings.CHAINS, (alone, spread)
    error = np.sqrt(sum(one["variance"] for one in both) / count)
    assert np.all(np.abs(alone["mean"] - spread["mean"])[moves] < 6 * error[moves])
    error = np.sqrt(sum(one["fourth"] - one["variance"] ** 2 for one in both) / count)
    assert np.all(np.abs(alone["variance"] - spread["variance"])[moves] < 6 * error[moves])


def test_a_step_that_is_not_finite_is_made_on_no_device(found):
    assert found["overflow"] == {"is_divergent": True, "is_still": True}


def test_what_is_not_of_the_kernel_is_refused():
    ids = np.zeros(1, np.int32)
    fast = levymc.models.fast_factorization(
        ids, ids, ids, 1, 1, batch_size=1, step_size=0.1, backend="jax"
    )
    with pytest.raises(ValueError, match=r"'native', got .* of 'jax'"):
        levymc.models.spread_users(fast, jax.make_mesh((1,), ("users",)))


@pytest.mark.nightly
@pytest.mark.parametrize("count", [2, 4])
def test_processes_reach_the_error_of_one(count):
    """False alarms: below 1e-6, as 0.1 is six deviations between means of four chains.

    The chains' errors fall from 4.5 to 1.2; the deviation between chains is 0.03.
    """
    (alone,) = said("errors")
    several = said("errors", count=count)
    assert all(one == several[0] for one in several)
    assert abs(np.mean(several[0]["errors"]) - np.mean(alone["errors"])) < 0.1
