"""A run that shows its progress."""

import jax
import jax.numpy as jnp
import rich

import levymc

assert rich.print
walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 50, progress=True)
