"""A stored call of levymc.auto that is killed: python auto_run.py FOLDER MOMENT.

MOMENT: adapting (in its second round) or sampling (when something of the draws is saved).
"""

import os
import signal
import sys

import jax
import jax.numpy as jnp

import levymc
from levymc.adapt import _ladder
from levymc.run import _create, _iterate, _store

BUDGET = 4000


def begin(store=None, seed=0, budget=BUDGET):
    return levymc.auto(
        levymc.targets.four_modes,
        jax.random.key(seed),
        jnp.full((4, 2), 4.0, jnp.float32),
        budget=budget,
        progress=False,
        store=store,
    )


def dies_at_call(function, number):
    """The same function, in whose n-th call the process is killed."""
    calls = []

    def fatal(*given, **named):
        calls.append(given)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)

    return fatal


if __name__ == "__main__":
    folder, moment = sys.argv[1:]
    if moment == "adapting":
        _ladder.sample = dies_at_call(_ladder.sample, 2)
    else:
        _store.COMMIT_SECONDS = 0.0
        _create.MOST_IN_CHUNK = 16
        _iterate.FIRST_STEPS = 20
        _iterate._next_length = lambda *given: 20
        _store._Sink.append = dies_at_call(_store._Sink.append, 4)
    begin(folder)
