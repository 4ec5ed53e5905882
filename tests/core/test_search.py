"""The search for modes in parts: counted as one search, and none found twice."""

import jax
import numpy as np
import pytest

from levymc import targets
from levymc.adapt._explore import begun, search
from levymc.adapt._search import SMALLEST_PART, Found, _explored, _joined, num_parts, searched
from levymc.adapt._stages import Stages
from levymc.adapt._target import Target

BUDGET = 25_000
STARTS = np.full((4, 2), 4.0)


def found_in(parts, key=0):
    target = Target(targets.four_modes, np.zeros(2))
    given = (target, jax.random.key(key), STARTS, BUDGET // 4, BUDGET)
    told = []
    modes = searched(*given, told.append, Stages(None), parts)
    return target, modes, told


def test_a_part_for_each_shard_if_it_is_worth_it():
    assert [num_parts(BUDGET, shards) for shards in (None, 1, 3, 4, 8)] == [1, 1, 3, 4, 4]
    assert num_parts(4000, 8) == 1
    assert num_parts(200_000, 8) == 8


def test_one_part_is_one_search():
    target = Target(targets.four_modes, np.zeros(2))
    one = search(target, jax.random.key(0), STARTS, BUDGET // 4, BUDGET)
    for found, wanted in zip(found_in(1)[1], one, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_several_parts_count_as_one_search(parts):
    """All relaxations and evaluations, and no mode twice; it ends after the same patience."""
    _, one, _ = found_in(1)
    target, modes, told = found_in(parts)
    assert modes.num_modes == 4
    np.testing.assert_allclose(modes.location, targets.FOUR_MODES_MEANS, atol=0.05)
    assert modes.times_found.sum() + modes.num_lost == modes.num_relaxations
    assert modes.evaluations == target.evaluations
    rounds = 2 * parts * SMALLEST_PART  # in which the last mode is found, and after it
    assert one.evaluations * 0.7 < modes.evaluations < one.evaluations + rounds
    assert told[-1] == 4


def test_modes_that_two_parts_found_are_one_with_the_hits_of_both():
    """Twice the same part: what it adds is added twice, but for the modes themselves."""
    target = Target(targets.four_modes, np.zeros(2))
    nothing = np.zeros(2)
    before = Found(begun(target, STARTS).whole(), nothing, nothing, 7)
    start = target.evaluations
    part = _explored(target, jax.random.key(1), before, 800, 0)
    target.evaluations = 2 * target.evaluations - start
    both = _joined(target, before, [part, part])
    assert before.modes.num_modes == 1
    assert both.modes.num_modes == part.modes.num_modes == 4
    np.testing.assert_array_equal(both.modes.location, part.modes.location)
    hits = part.modes.times_found.copy()
    hits[0] -= before.modes.times_found[0]
    np.testing.assert_array_equal(
        both.modes.times_found, 2 * hits + np.append(before.modes.times_found, [0, 0, 0])
    )
    for name in ("num_relaxations", "num_lost"):
        added = getattr(part.modes, name) - getattr(before.modes, name)
        assert getattr(both.modes, name) == getattr(before.modes, name) + 2 * added
    assert both.modes.evaluations == target.evaluations
    np.testing.assert_array_equal(both.spent, 2 * part.spent)
    assert both.quiet == 2 * part.quiet


def test_a_round_without_a_new_mode_adds_to_the_quiet():
    target = Target(lambda x: -x @ x, np.zeros(2))
    before = Found(begun(target, np.zeros((1, 2))).whole(), np.zeros(2), np.zeros(2), 7)
    start = target.evaluations
    part = _explored(target, jax.random.key(1), before, 300, 0)
    assert part.quiet == target.evaluations - start >= 300
    assert _joined(target, before, [part, part]).quiet == 7 + 2 * part.quiet
