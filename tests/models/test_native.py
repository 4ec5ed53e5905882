"""The native kernels: how they are built and chosen, and the batches that they draw."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from levymc import native
from levymc.native import _backend, _build

NUM_USERS, NUM_RATINGS = 1000, 70_001
FALSE_ALARM = 1e-9


def has_native() -> bool:
    try:
        native.load()
    except native.BuildError:
        return False
    return True


needs_native = pytest.mark.skipif(not has_native(), reason="no C++ compiler, and no library")


@pytest.fixture(scope="module")
def offsets():
    """Where users' ratings begin; their numbers differ, and some users have none."""
    shares = np.random.default_rng(0).exponential(size=NUM_USERS) ** 2
    shares[::7] = 0
    counts = np.random.default_rng(1).multinomial(NUM_RATINGS, shares / shares.sum())
    return jnp.asarray(np.append(0, np.cumsum(counts)), jnp.int32)


def draw(offsets, batch_size, num_batches):
    """How often each rating is in each batch."""
    keys = np.random.default_rng(2).integers(0, 2**32, (num_batches, 2), dtype=np.uint32)
    one = partial(
        native.batch_counts, offsets=offsets, num_ratings=NUM_RATINGS, batch_size=batch_size
    )
    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(keys))


def assert_chi_square(statistic, degrees):
    """Neither too large nor too small to be of χ², but for a chance of FALSE_ALARM."""
    law = stats.chi2(degrees)
    assert law.ppf(FALSE_ALARM / 2) < statistic < law.isf(FALSE_ALARM / 2)


@needs_native
def test_every_rating_is_drawn_as_often(offsets):
    """χ² of the numbers of draws of all ratings together, some 30 expected of each.

    False alarm: 1e-9 (the statistic is a sum of 70 001 terms, and normal to good precision).
    Detects: rates that differ by 3 % between ratings, or one rating in 1000 never drawn.
    """
    counts = draw(offsets, 20_000, 100)
    assert np.all(counts.sum(axis=1) == 20_000)
    expected = counts.sum() / NUM_RATINGS
    statistic = np.sum((counts.sum(axis=0) - expected) ** 2) / expected
    assert_chi_square(statistic, NUM_RATINGS - 1)


@needs_native
@pytest.mark.parametrize(("batch_size", "num_batches"), [(30, 600), (20_000, 100)])
def test_parts_of_the_data_get_binomial_counts(offsets, batch_size, num_batches):
    """χ² of the draws in ten parts of the data, batch by batch: their variance and correlation.

    False alarm: 1e-9.  Detects: a variance of the counts that is off by 30 %, or by 12 %
    in the batches of 30, which are drawn by inversion.
    """
    counts = draw(offsets, batch_size, num_batches)
    edges = np.linspace(0, NUM_RATINGS, 11).astype(int)
    parts = np.add.reduceat(counts, edges[:-1], axis=1, dtype=np.int64)
    expected = batch_size * np.diff(edges) / NUM_RATINGS
    statistic = np.sum((parts - expected) ** 2 / expected)
    assert_chi_square(statistic, 9 * num_batches)


@needs_native
def test_duplicates_are_as_frequent_as_with_replacement(offsets):
    """Pairs of draws that meet: n(n-1)/2 pairwise independent ones, each with probability 1/N.

    False alarm: 1e-9 (six standard deviations of a sum of many).  Detects: 1.2 % fewer or more
    duplicates; without replacement there would be none.
    """
    size, repeats = 20_000, 100
    counts = draw(offsets, size, repeats).astype(np.int64)
    meetings = np.sum(counts * (counts - 1)) / 2
    pairs = repeats * size * (size - 1) / 2
    spread = math.sqrt(pairs / NUM_RATINGS * (1 - 1 / NUM_RATINGS))
    assert abs(meetings - pairs / NUM_RATINGS) < 6 * spread


@needs_native
def test_batches_depend_on_the_key_alone(offsets):
    assert np.array_equal(draw(offsets, 500, 3), draw(offsets, 500, 3))
    one, other, _ = draw(offsets, 500, 3)
    assert not np.array_equal(one, other)


def test_without_a_compiler_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(native.BuildError, match=r"no C\+\+ compiler.*LEVYMC_NATIVE"):
        _build.build_library(tmp_path)


def test_a_compiler_that_fails_leaves_nothing(monkeypatch, tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'fatal error: nothing works' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(native.BuildError, match="nothing works"):
        _build.build_library(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _build.cache_folder() == tmp_path / "levymc"


def test_a_library_of_another_source_is_not_loaded(monkeypatch, tmp_path):
    changed = tmp_path / "factorization.cpp"
    changed.write_text("// changed\n", "utf-8")
    monkeypatch.setattr(_build, "SOURCES", (changed, *_build.SOURCES[1:]))
    assert _build.find_library() is None


def test_the_variable_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("LEVYMC_NATIVE", "jax")
    assert native.backend() == "jax"
    monkeypatch.setenv("LEVYMC_NATIVE", "fortran")
    with pytest.raises(ValueError, match=r"LEVYMC_NATIVE.*'fortran'"):
        native.backend()
    with pytest.raises(ValueError, match="`backend` must be one of"):
        native.backend("fortran")


def test_backends_fall_back_in_order(monkeypatch):
    def fail():
        raise native.BuildError("no compiler")

    monkeypatch.delenv("LEVYMC_NATIVE", raising=False)
    monkeypatch.setattr(_backend, "load", fail)
    for has_numba, expected in ((True, "numba"), (False, "jax")):
        monkeypatch.setattr(_backend, "_has_numba", lambda answer=has_numba: answer)
        _backend._fastest.cache_clear()
        assert native.backend() == expected
    _backend._fastest.cache_clear()
    with pytest.raises(native.BuildError):
        native.backend("native")
    with pytest.raises(ImportError, match=r"levymc\[numba\]"):
        native.backend("numba")
