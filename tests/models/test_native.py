"""The native kernels: how they are built and chosen, and the batches that they draw."""

import logging
import math
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.models.kernels import needs_native

import levymc
from levymc import _native
from levymc.models.factorization._fast import batch_counts

NUM_USERS, NUM_RATINGS = 1000, 70_001
FALSE_ALARM = 1e-9


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
    one = partial(batch_counts, offsets=offsets, num_ratings=NUM_RATINGS, batch_size=batch_size)
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
    with pytest.raises(_native.BuildError, match=r"no C\+\+ compiler.*LEVYMC_NATIVE"):
        _native.build_library(tmp_path)


def test_a_compiler_that_fails_leaves_nothing(monkeypatch, tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'fatal error: nothing works' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(_native.BuildError, match="nothing works"):
        _native.build_library(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_library_is_for_its_user_alone_to_write(monkeypatch, tmp_path):
    """Whatever the mask is that files are made with."""
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho library > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    before = os.umask(0)
    try:
        library = _native.build_library(tmp_path / "cache")
    finally:
        os.umask(before)
    assert library.stat().st_mode & 0o777 == 0o755
    assert library.parent.stat().st_mode & 0o777 == 0o700


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _native.cache_folder() == tmp_path / "levymc" / "kernels"


def test_a_library_of_another_source_is_not_loaded(monkeypatch, tmp_path):
    changed = tmp_path / "factorization.cpp"
    changed.write_text("// changed\n", "utf-8")
    monkeypatch.setattr(_native, "SOURCES", (changed, *_native.SOURCES[1:]))
    assert _native.find_library() is None


@pytest.fixture
def shelf(monkeypatch, tmp_path):
    """Makes empty libraries in a checkout's cache; there is none beside the source."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_native, "FOLDER", tmp_path / "nothing")
    monkeypatch.setattr(_native, "IS_CHECKOUT", True)
    _native.cache_folder().mkdir(mode=0o700, parents=True)

    def put(version):
        library = _native.cache_folder() / f"kernels-{_native._digest()}-{version}.so"
        library.touch(mode=0o644)
        _native._checksum_file(library).write_text(_native.digest([library]))
        return library

    return put


def test_the_newest_library_that_xla_takes_is_found(monkeypatch, shelf):
    monkeypatch.setattr(_native, "_ffi_version", lambda: (0, 10))
    shelf("0.11")
    shelf("1.0")
    assert _native.find_library() is None
    shelf("0.9")
    newest = shelf("0.10")
    assert _native.find_library() == newest


def test_a_library_without_its_checksum_is_passed_over(shelf):
    _native._checksum_file(shelf("0.0")).unlink()
    assert _native.find_library() is None


def test_an_installation_does_not_look_into_the_cache_nor_compile(monkeypatch, shelf):
    shelf("0.0")
    assert _native.find_library() is not None
    monkeypatch.setattr(_native, "IS_CHECKOUT", False)
    assert _native.find_library() is None
    with pytest.raises(_native.BuildError, match=r"no kernels for this machine.*pip install"):
        _native.load.__wrapped__()


@pytest.mark.parametrize("is_folder", [True, False])
@pytest.mark.parametrize("mode", [0o002, 0o020])
def test_what_others_can_write_is_not_loaded(shelf, is_folder, mode):
    library = shelf("0.0")
    path = library.parent if is_folder else library
    path.chmod(path.stat().st_mode | mode)
    with pytest.raises(_native.BuildError, match=r"others can write.*XDG_CACHE_HOME"):
        _native.find_library()


def test_what_belongs_to_others_is_not_loaded(monkeypatch, shelf):
    library = shelf("0.0")
    owner = os.stat_result((0o100644, 0, 0, 1, 4321, 0, 0, 0, 0, 0))
    monkeypatch.setattr(type(library), "stat", lambda self, **_: owner)
    with pytest.raises(_native.BuildError, match="belongs to another user"):
        _native._check_trust(library)


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(5_000), b"x" * 10_000])
def test_a_damaged_library_is_not_loaded_and_jax_does_its_work(monkeypatch, shelf, content):
    """Half a library would end the process by a bus error; the warning is given once."""
    library = shelf("0.0")
    library.write_bytes(b"\x7fELF" + bytes(10_000))
    _native._checksum_file(library).write_text(_native.digest([library]))
    assert _native._is_whole(library)
    library.write_bytes(content)
    loaded = []
    monkeypatch.setattr("ctypes.cdll.LoadLibrary", loaded.append)
    monkeypatch.setattr(_native, "load", _native.load.__wrapped__)
    monkeypatch.delenv("LEVYMC_NATIVE", raising=False)
    _native._fastest.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"is damaged: its checksum.*Remove it"):
            assert levymc.models.backend() == "jax"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert levymc.models.backend() == "jax"
    finally:
        _native._fastest.cache_clear()
    assert not loaded


def test_a_damaged_library_is_compiled_anew(monkeypatch, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho library > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    library = _native.build_library(tmp_path / "cache")
    assert _native._is_whole(library)
    library.write_bytes(b"lib")
    assert not _native._is_whole(library)
    assert _native.build_library(tmp_path / "cache").read_text() == "library\n"
    assert _native._is_whole(library)


def test_a_first_compilation_is_announced(monkeypatch, shelf, caplog):
    monkeypatch.setattr(_native, "_find_compiler", lambda: "g++")
    monkeypatch.setattr(_native, "build_library", lambda folder: folder / "library.so")
    with caplog.at_level(logging.WARNING, "levymc"):
        assert _native._build_at_first_use() == _native.cache_folder() / "library.so"
    assert f"compiles its kernels in C++ into {_native.cache_folder()}" in caplog.text


def test_the_variable_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("LEVYMC_NATIVE", "jax")
    assert levymc.models.backend() == "jax"
    monkeypatch.setenv("LEVYMC_NATIVE", "fortran")
    with pytest.raises(ValueError, match=r"LEVYMC_NATIVE.*'fortran'"):
        levymc.models.backend()
    with pytest.raises(ValueError, match="`backend` must be one of"):
        levymc.models.backend("fortran")


def test_an_instruction_set_that_there_is_not_is_refused(monkeypatch):
    monkeypatch.setenv("LEVYMC_NATIVE_ISA", "sse9")
    with pytest.raises(ValueError, match=r"LEVYMC_NATIVE_ISA.*one of 'avx512'.*'sse9'"):
        _native.load.__wrapped__()


def test_without_kernels_jax_is_used_which_is_reported_once(monkeypatch):
    def fail():
        raise _native.BuildError("There is no C++ compiler. Install one.")

    monkeypatch.delenv("LEVYMC_NATIVE", raising=False)
    monkeypatch.setattr(_native, "load", fail)
    _native._fastest.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"no C\+\+ compiler. Install one. .*LEVYMC_NATIVE=jax"):
        assert levymc.models.backend() == "jax"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert levymc.models.backend() == "jax"
        assert levymc.models.backend("jax") == "jax"
    _native._fastest.cache_clear()
    with pytest.raises(_native.BuildError):
        levymc.models.backend("native")


def test_a_build_needs_no_more_than_jax():
    """An isolated one has neither jaxtyping nor SciPy's users: the wheel would lack its kernels."""
    program = """
import sys, types
sys.modules["jaxtyping"] = None
package = types.ModuleType("levymc")
package.__path__ = [sys.argv[1]]
sys.modules["levymc"] = package
from levymc._native import build_library
"""
    folder = Path(levymc.__file__).parent
    subprocess.run([sys.executable, "-c", program, folder], check=True)
