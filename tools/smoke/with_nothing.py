"""The library alone: a run, its kernels in C++, and what it says of an extra that is not there."""

import importlib.util

import jax
import jax.numpy as jnp

import levymc


def refusal(call):
    try:
        call()
    except ImportError as error:
        return str(error)


for name in ("arviz", "blackjax", "flatbuffers", "matplotlib", "numpyro", "optax", "rich"):
    assert importlib.util.find_spec(name) is None, f"{name} was installed without being asked for"
walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
result = levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 50)
assert result.positions.shape == (2, 50)
assert levymc.models.backend("native") == "native"
assert "levymc[arviz]" in refusal(result.to_arviz)
