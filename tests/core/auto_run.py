"""A stored call of levymc.auto that is killed: python auto_run.py FOLDER MOMENT [SHARDS].

MOMENT: adapting (in its second round) or sampling (when something of the draws is saved); stopping
is the first, where it is stopped in the place of being killed; never.  A call that ends prints a
checksum of what it gives.
"""

import hashlib
import os
import signal
import sys

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc.adapt import _ladder
from levymc.run import _create, _iterate, _store

BUDGET = 4000


def begin(store=None, seed=0, budget=BUDGET, **options):
    return levymc.auto(
        levymc.targets.four_modes,
        jax.random.key(seed),
        jnp.full((4, 2), 4.0, jnp.float32),
        budget=budget,
        progress=False,
        store=store,
        **options,
    )


def checksum(result):
    """Of draws and report."""
    found = np.ascontiguousarray(result.positions).tobytes() + result.report.encode()
    return hashlib.sha256(found).hexdigest()


def dies_at_call(function, number, how=signal.SIGKILL):
    """The same function, in whose n-th call the process is killed."""
    calls = []

    def fatal(*given, **named):
        calls.append(given)
        if len(calls) == number:
            os.kill(os.getpid(), how)
        return function(*given, **named)

    return fatal


if __name__ == "__main__":
    folder, moment, *shards = sys.argv[1:]
    if moment == "adapting":
        _ladder.sample = dies_at_call(_ladder.sample, 2)
    elif moment == "stopping":
        _ladder.sample = dies_at_call(_ladder.sample, 2, signal.SIGSTOP)
    elif moment == "sampling":
        _store.COMMIT_SECONDS = 0.0
        _create.MOST_IN_CHUNK = 16
        _iterate.FIRST_STEPS = 20
        _iterate._next_length = lambda length, seconds, block: 20
        _store._Sink.append = dies_at_call(_store._Sink.append, 4)
    print(checksum(begin(folder, shards=int(shards[0]) if shards else None)))
