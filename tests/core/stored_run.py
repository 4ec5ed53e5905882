"""A stored run in a process of its own, to be killed: python stored_run.py FOLDER."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

import levymc
from levymc.run import _plan

STEPS = 200_000


def normal(position):
    return -jnp.sum(position["x"] ** 2) / 2


def begin(store, num_steps=STEPS):
    walk = levymc.levy_walk(normal, 1.0)
    starts = {"x": jnp.zeros((4, 2))}
    return levymc.sample(
        walk, jax.random.key(5), starts, num_steps, thin=50, burn_in=3, progress=False, store=store
    )


if __name__ == "__main__":
    _plan.FEWEST_CHUNKS = 400
    folder = Path(sys.argv[1])
    if folder.exists():
        levymc.resume(folder, progress=False)
    else:
        begin(folder)
