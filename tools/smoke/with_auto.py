"""Two modes with nothing to tune, and NUTS."""

import jax
import jax.numpy as jnp

import levymc


def two_modes(x):
    return jnp.logaddexp(-jnp.sum((x - 4) ** 2) / 2, -jnp.sum((x + 4) ** 2) / 2)


starts = jax.random.normal(jax.random.key(1), (4, 2))
assert levymc.auto(two_modes, jax.random.key(0), starts, budget=50_000).modes.num_modes == 2
nuts = levymc.adapt.nuts(two_modes, 0.5)
assert levymc.sample(nuts, jax.random.key(0), starts, 100).positions.shape == (4, 100, 2)
