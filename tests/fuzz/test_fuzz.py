"""A slice of what `make fuzz` tries; that of the malformed files is in tests/lab."""

import pytest
from tests.fuzz import samples


def test_sampling_at_random_is_right_or_refused_in_words():
    tries, failures = samples.fuzz(12, seed=1)
    assert tries.total() == 12 * samples.TRIES_PER_SETUP
    assert min(tries["sampled"], tries["refused"]) > 0
    assert failures == []


def test_damaged_stores_are_read_or_refused_in_words():
    pytest.importorskip("tests.core.store_damage")
    from tests.fuzz import stores

    tries, failures = stores.fuzz(10, seed=1)
    assert tries.total() > 10
    assert failures == []


def test_the_same_seed_makes_the_same_tries():
    assert samples.setups(5, 8) == samples.setups(5, 8)
    assert samples.setups(5, 8) != samples.setups(6, 8)
