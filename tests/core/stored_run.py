"""A stored run in a process of its own, to be killed: python stored_run.py FOLDER STEPS [until]."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc.run import _create, _iterate, _store

CHUNK = 64
BURN_IN = 3
STEPS_PER_CALL = 100


def normal(position):
    return -jnp.sum(position["x"] ** 2) / 2


def first(position):
    return position["x"][0]


def often_far(result):
    """A rule that some 12000 of 20000 steps take to meet; it goes by the draws alone."""
    return np.sum(result.positions["x"][..., 0] > 2.5) >= 60


WALK = levymc.levy_walk(normal, 1.0)
STARTS = {"x": jnp.zeros((4, 2), jnp.float32)}


def begin(store, num_steps, **options):
    given = {"thin": 5, "burn_in": BURN_IN, "progress": False, **options}
    return levymc.sample(WALK, jax.random.key(5), STARTS, num_steps, store=store, **given)


def commit_often():
    """Calls of as many steps each, all of them saved, and many chunks."""
    _store.COMMIT_SECONDS = 0.0
    _create.MOST_IN_CHUNK = CHUNK
    _iterate.FIRST_STEPS = STEPS_PER_CALL
    _iterate._next_length = lambda *given: STEPS_PER_CALL


if __name__ == "__main__":
    commit_often()
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    rule = often_far if sys.argv[3:] else None
    if folder.exists():
        levymc.resume(folder, progress=False, until=rule)
    else:
        observe = {"mean": levymc.observe.mean(first)}
        begin(folder, steps, observe=observe, keep=True, until=rule)
