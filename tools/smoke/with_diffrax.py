"""A path of diffrax."""

import diffrax
import jax
import jax.numpy as jnp

import levymc.interop.diffrax

motion = levymc.interop.diffrax.LevyMotion(0.0, 1.0, 1.5, jax.random.key(0), num_steps=10)
term = diffrax.ControlTerm(lambda t, x, args: jnp.asarray(1.0), motion)
solution = diffrax.diffeqsolve(term, diffrax.Euler(), 0.0, 1.0, dt0=0.1, y0=jnp.asarray(0.0))
assert jnp.isfinite(solution.ys).all()
