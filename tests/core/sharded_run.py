"""A run in shards in a process of its own: python sharded_run.py FOLDER [PAUSE].

It prints a checksum of the draws.  The pause follows each call, so that there is time to kill it.
"""

import hashlib
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tests.core import stored_run

import levymc
from levymc.run import _store, _work

CHAINS, SHARDS = 5, 3  # of 2, 2 and 1 chains
STEPS = 1000
STARTS = {"x": jnp.zeros((CHAINS, 2), jnp.float32)}


def begin(store, num_steps=STEPS, **options):
    """The run, whose chains are in shards if there is a store."""
    observe = {"mean": levymc.observe.mean(stored_run.first)}
    given = {"thin": 5, "burn_in": 3, "observe": observe, "keep": True, "progress": False}
    given |= {"shards": None if store is None else SHARDS, **options}
    return levymc.sample(
        stored_run.WALK, jax.random.key(5), STARTS, num_steps, store=store, **given
    )


def checksum(result):
    """Of all bytes of draws, info, what was observed and steps."""
    leaves = jax.tree.leaves((result.positions, result.info, result.observed, result.steps))
    return hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()


def slow_down(pause):
    append = _store._Sink.append

    def slowly(self, part):
        append(self, part)
        time.sleep(pause)

    _store._Sink.append = slowly


if __name__ == "__main__":
    stored_run.commit_often()
    _work.PAUSE = 0.05
    slow_down(float(sys.argv[2]) if sys.argv[2:] else 0.0)
    print(checksum(begin(Path(sys.argv[1]))))
