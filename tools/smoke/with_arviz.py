"""Draws in ArviZ's form, and its effective sample sizes."""

import jax
import jax.numpy as jnp

import levymc

walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
result = levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 500)
assert result.to_arviz().posterior.sizes["draw"] == 500
assert levymc.diagnostics.check(result).findings is not None
