"""Densities and places that are rounded where they are computed: it is said."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.adapt._rounding import rounding
from levymc.adapt._target import Target

NORMAL = np.random.default_rng(0).normal(size=(4, 500))


def reasons(offset=0.0, place=0.0, width=1.0, dtype=np.float32):
    target = Target(lambda x: -jnp.sum(x**2) / 2, jnp.zeros(1, dtype))
    draws = (place + width * NORMAL)[..., None].astype(dtype)
    info = SimpleNamespace(logdensity=(offset - NORMAL**2 / 2).astype(dtype))
    return rounding(target, levymc.Result(draws, np.ones(NORMAL.shape), info))


@pytest.mark.parametrize("sign", [-1, 1])
def test_values_that_are_coarse_are_flagged(sign):
    (reason,) = reasons(offset=sign * 1e7)
    assert f"log φ is about {sign * 1e7:.1g}" in reason
    assert "float32 are 1 apart" in reason
    assert not reasons(offset=sign * 1e5)
    assert not reasons(offset=sign * 1e7, dtype=np.float64)


def test_places_that_are_coarse_are_flagged():
    (reason,) = reasons(place=1e7)
    assert "The draws of coordinate 0 are about 1e+07" in reason
    assert not reasons(place=1e6)
    assert not reasons(place=1e7, dtype=np.float64)


def test_a_density_computed_in_less_than_its_positions_is_as_coarse_as_it_is():
    target = Target(lambda x: (1e7 - x @ x / 2).astype(jnp.float32), jnp.zeros(1, jnp.float64))
    info = SimpleNamespace(logdensity=1e7 - NORMAL**2 / 2)
    (reason,) = rounding(target, levymc.Result(NORMAL[..., None], np.ones(NORMAL.shape), info))
    assert "float32 are 1 apart" in reason


def test_auto_says_so():
    """Its evidence was off by 0.06, fifteen of its standard errors, without a word."""
    starts = jnp.zeros((4, 2), jnp.float32)
    run = levymc.auto(
        lambda x: 1e7 - jnp.sum(x**2) / 2, jax.random.key(0), starts, budget=2000, progress=False
    )
    assert "float32 are 1 apart" in " ".join(run.warnings)
