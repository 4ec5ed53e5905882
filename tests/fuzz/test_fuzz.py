"""A slice of what `make fuzz` tries; that of the malformed files is in tests/lab."""

from tests.fuzz import samples, stores

NUM_SETUPS = 2  # from the third on, which compile quickly


def test_sampling_at_random_is_right_or_refused_in_words():
    tries, failures = samples.fuzz(NUM_SETUPS, seed=1, first=2)
    assert tries.total() == NUM_SETUPS * samples.TRIES_PER_SETUP
    assert min(tries["sampled"], tries["refused"]) > 0
    assert failures == []


def test_damaged_stores_are_read_or_refused_in_words():
    tries, failures = stores.fuzz(10, seed=1)
    assert tries.total() > 10
    assert failures == []


def test_the_same_seed_makes_the_same_tries():
    assert samples.setups(5, 8) == samples.setups(5, 8)
    assert samples.setups(5, 8) != samples.setups(6, 8)
