"""Ratings in order, and splits: exact, disjoint, the same for the same seed, and fair."""

import hashlib
import math

import jax
import numpy as np
import pytest

from levymc_lab import data
from levymc_lab.data import _ratings

# Of 1000 ratings and seed 0: the first of the test part, and its SHA-256.
FIRST = [5, 9, 26, 27, 38]
DIGEST = "46ccd8cbec3d7e18"


@pytest.fixture(scope="module")
def whole():
    return data.synthetic(80, 60, 1501, seed=5)


def numbers(ratings):
    """Each rating as one number, without its value."""
    return ratings.users.astype(int) * ratings.num_items + ratings.items


def test_sorting_by_words_and_by_order_agree(monkeypatch):
    generator = np.random.default_rng(2)
    users = generator.permutation(np.arange(500, dtype=np.uint32) % 50)
    items = generator.integers(0, 40, 500).astype(np.uint32)
    codes = ((users * 40 + items) % 10).astype(np.uint8)
    rows = data.Ratings(users, items, codes, np.arange(10.0), np.arange(50), np.arange(40))
    for word_bits in (64, 15):  # 16 are needed
        monkeypatch.setattr(_ratings, "WORD_BITS", word_bits)
        found = _ratings._sorted(rows)
        pairs = found.users * 40 + found.items
        np.testing.assert_array_equal(pairs, np.sort(users * 40 + items))
        np.testing.assert_array_equal(pairs % 10, found.codes)
        assert [one.dtype for one in found[:3]] == [np.uint32, np.uint32, np.uint8]


@pytest.mark.parametrize("fractions", [(0.9, 0.1), (0.8, 0.1, 0.1), (1.0,), (0.7, 0.2, 0.1)])
def test_the_parts_make_up_the_whole(whole, fractions):
    parts = data.split(whole, 0, fractions)
    for part, fraction in zip(parts, fractions, strict=True):
        assert abs(part.num_ratings - fraction * whole.num_ratings) <= 1
        assert np.all(np.diff(numbers(part)) > 0)
        assert (part.num_users, part.num_items) == (whole.num_users, whole.num_items)
        place = np.searchsorted(numbers(whole), numbers(part))
        np.testing.assert_array_equal(part.values, whole.values[place])
    together = np.sort(np.concatenate([numbers(part) for part in parts]))
    np.testing.assert_array_equal(together, numbers(whole))


def test_the_seed_decides(whole):
    def test_part(seed):
        return numbers(data.split(whole, seed)[1]).tolist()

    assert test_part(1) == test_part(np.int64(1))
    key = jax.random.key(1)
    assert test_part(key) == test_part(jax.random.key_data(key))
    others = [test_part(seed) for seed in (0, 1, 2, key, jax.random.key(2))]
    assert len({tuple(part) for part in others}) == len(others)


def test_the_division_does_not_change_with_versions():
    """A published result must find its test ratings again."""
    count = 1000
    rows = data.Ratings(
        np.arange(count, dtype=np.uint32),
        np.zeros(count, np.uint16),
        np.zeros(count, np.uint8),
        np.ones(1, np.float32),
        np.arange(count),
        np.zeros(1, np.int64),
    )
    test = data.split(rows, 0)[1].users
    assert test[:5].tolist() == FIRST
    assert hashlib.sha256(test.astype("<u4").tobytes()).hexdigest()[:16] == DIGEST


def test_every_rating_is_as_likely_as_any_other():
    """False alarms: 20 ratings, Hoeffding at 1000 seeds: 40 exp(-2 · 1000 t²) = 1e-6.

    It detects a rating whose chance to fall into the tenth is off by t = 0.094 or more.
    """
    num_seeds, whole = 1000, data.synthetic(10, 8, 20)
    hits = np.zeros(whole.num_users * whole.num_items)
    for seed in range(num_seeds):
        hits[numbers(data.split(whole, seed)[1])] += 1
    bound = math.sqrt(math.log(40 / 1e-6) / (2 * num_seeds))
    assert np.all(np.abs(hits[numbers(whole)] / num_seeds - 0.1) < bound)


@pytest.mark.parametrize(
    ("seed", "fractions", "error", "message"),
    [
        (0, (0.9, 0.2), ValueError, "must have the sum 1"),
        (0, (0.5,), ValueError, "must have the sum 1"),
        (0, (1.1, -0.1), ValueError, "must be positive"),
        (0, (1.0, 0.0), ValueError, "must be positive"),
        (0, (), ValueError, "must be positive"),
        (0, (math.nan, 1.0), ValueError, "must be positive"),
        (0, (0.9999, 0.0001), ValueError, "part of 1501 ratings empty"),
        (-1, (0.9, 0.1), ValueError, "must not be negative, got -1"),
        (0.5, (0.9, 0.1), TypeError, "an integer or a JAX key, got 0.5"),
        ("0", (0.9, 0.1), TypeError, "an integer or a JAX key"),
    ],
)
def test_bad_arguments(whole, seed, fractions, error, message):
    with pytest.raises(error, match=message):
        data.split(whole, seed, fractions)
