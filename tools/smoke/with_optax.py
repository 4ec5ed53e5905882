"""A step of an Optax transformation."""

import jax
import jax.numpy as jnp
import optax

import levymc

weights = jnp.ones(3)
langevin = levymc.optax.sgfla(1e-3, 1.7, key=jax.random.key(0))
update, state = langevin.update(weights, langevin.init(weights))
assert jnp.isfinite(optax.apply_updates(weights, update)).all()
