"""A run in a folder, read again and extended."""

import jax
import jax.numpy as jnp

import levymc

walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 50, store="run")
assert levymc.load("run").positions.shape == (2, 50)
assert levymc.resume("run", num_steps=80).positions.shape == (2, 80)
