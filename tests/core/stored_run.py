"""A stored run in a process of its own, to be killed: python stored_run.py FOLDER STEPS."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

import levymc
from levymc.run import _iterate, _store

CHUNK = 64
BURN_IN = 3


def normal(position):
    return -jnp.sum(position["x"] ** 2) / 2


def first(position):
    return position["x"][0]


WALK = levymc.levy_walk(normal, 1.0)
STARTS = {"x": jnp.zeros((4, 2), jnp.float32)}


def begin(store, num_steps, **options):
    given = {"thin": 5, "burn_in": BURN_IN, "progress": False, **options}
    return levymc.sample(WALK, jax.random.key(5), STARTS, num_steps, store=store, **given)


def commit_often():
    """Many calls, each saved, and many chunks."""
    _store.COMMIT_SECONDS = 0.0
    _store.MOST_IN_CHUNK = CHUNK
    _iterate.SECONDS_PER_CALL = 0.01


if __name__ == "__main__":
    commit_often()
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    burn_in = int(sys.argv[3]) if len(sys.argv) > 3 else BURN_IN
    if folder.exists():
        levymc.resume(folder, progress=False)
    else:
        observe = {"mean": levymc.observe.mean(first)}
        begin(folder, steps, burn_in=burn_in, observe=observe, keep=True)
