"""Nothing that a kernel gives depends on what its memory held before."""

import ctypes
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.models.kernels import needs_native

import levymc
from levymc.models.sbn._gibbs import Sweeper

NUM_USERS, NUM_ITEMS, NUM_RATINGS, STEPS = 40, 30, 700, 30
M_PERTURB, EVERY_BIT = -6, 0x100  # malloc fills memory with the complement of the low byte
LIBRARY = ctypes.CDLL(None)

pytestmark = [
    needs_native,
    pytest.mark.skipif(not hasattr(LIBRARY, "gnu_get_libc_version"), reason="not glibc's malloc"),
]


@contextmanager
def memory_full_of_nan():
    """What malloc gives has all bits set, and floats in it are NaN."""
    if not LIBRARY.mallopt(M_PERTURB, EVERY_BIT):
        pytest.skip("another malloc has taken the place of glibc's")
    try:
        assert np.isnan(np.empty(1000, np.float32)).all()
        yield
    finally:
        LIBRARY.mallopt(M_PERTURB, 0)


def start(rank):
    generator = np.random.default_rng(1)
    counts = {"users": NUM_USERS, "items": NUM_ITEMS}
    return {
        name: jnp.asarray(0.1 * generator.standard_normal((count, rank)), jnp.float32)
        for name, count in counts.items()
    }


def ratings(levels):
    generator = np.random.default_rng(0)
    users, items = (generator.integers(0, count, NUM_RATINGS) for count in (NUM_USERS, NUM_ITEMS))
    return users, items, generator.integers(0, levels, NUM_RATINGS) / levels, NUM_USERS, NUM_ITEMS


def states(model, rank):
    """After each of some steps, all batches of which differ in length."""
    state, found = model.algorithm.init(start(rank)), []
    for key in jax.random.split(jax.random.key(2), STEPS):
        state, _ = model.algorithm.step(key, state, model.data)
        found.append(jax.tree.map(np.array, state.position))
    return found


def assert_same(one, two):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "portable"])
@pytest.mark.parametrize("levels", [5, 40])
@pytest.mark.parametrize("options", [{}, {"curvature": True}, {"rank": 20}], ids=str)
def test_steps(monkeypatch, instructions, levels, options):
    """Ratings are gone through four at a time: the last four reach beyond the list."""
    monkeypatch.setenv("LEVYMC_NATIVE_ISA", instructions)
    options = {"rank": 3, **options}
    model = levymc.models.fast_factorization(
        *ratings(levels), **options, batch_size=300, step_size=1e-3, backend="native"
    )
    expected = states(model, options["rank"])
    with memory_full_of_nan():
        assert_same(states(model, options["rank"]), expected)


def test_sweeps_of_factors():
    model = levymc.models.gibbs_factorization(*ratings(5), rank=3, backend="native")
    expected = states(model, 3)
    with memory_full_of_nan():
        assert_same(states(model, 3), expected)


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "portable"])
def test_sweeps_of_hidden_units(monkeypatch, instructions):
    monkeypatch.setenv("LEVYMC_NATIVE_ISA", instructions)
    generator = np.random.default_rng(3)

    def swept():
        return Sweeper("native")(
            weights=jnp.asarray(4 * generator.standard_normal((50, 7)), jnp.float32),
            visible_bias=jnp.zeros(50, jnp.float32),
            drive=jnp.asarray(generator.standard_normal((9, 7)), jnp.float32),
            hidden=jnp.zeros((9, 7), jnp.uint8),
            key_words=jnp.arange(2, dtype=jnp.uint32),
            num_sweeps=3,
        )

    expected, generator = swept(), np.random.default_rng(3)
    with memory_full_of_nan():
        assert_same(swept(), expected)
