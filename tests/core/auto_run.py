"""A stored call of levymc.auto that is killed: python auto_run.py FOLDER MOMENT [SHARDS [TARGET]].

MOMENT: exploring (in one of its parts), adapting (in its second round) or sampling (when something
of the draws is saved); stopping is the second, where it is stopped in the place of being killed;
never.  TARGET: the name of one of these.  A call that ends prints a checksum of what it gives.
"""

import hashlib
import os
import signal
import sys

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc.adapt import _explore, _ladder
from levymc.run import _create, _iterate, _store

BUDGET = 4000
SHARED = 25_000  # of which a search in four parts is worth it; NUTS is the choice for less only


def curved(x):
    """One mode, for NUTS: no mixture of few t laws fits it."""
    return -(x[0] ** 2) / 8 - 2 * (x[1] - x[0] ** 2 / 2) ** 2


TARGETS = {"four": levymc.targets.four_modes, "curved": curved}


def begin(store=None, seed=0, budget=BUDGET, target="four", **options):
    return levymc.auto(
        TARGETS[target],
        jax.random.key(seed),
        jnp.full((4, 2), 4.0, jnp.float32),
        budget=budget,
        progress=False,
        store=store,
        **options,
    )


def begin_shared(store, shards, target="four"):
    budget = SHARED if target == "four" else BUDGET
    return begin(store, budget=budget, target=target, shards=shards)


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
    folder, moment, *rest = sys.argv[1:]
    if moment == "exploring":
        _explore.relax = dies_at_call(_explore.relax, 4)
    elif moment == "adapting":
        _ladder.sample = dies_at_call(_ladder.sample, 2)
    elif moment == "stopping":
        _ladder.sample = dies_at_call(_ladder.sample, 2, signal.SIGSTOP)
    elif moment == "sampling":
        _store.COMMIT_SECONDS = 0.0
        _create.MOST_IN_CHUNK = 16
        _iterate.FIRST_STEPS = 20
        _iterate._next_length = lambda *given: 20
        _store._Sink.append = dies_at_call(_store._Sink.append, 4)
    result = begin_shared(folder, int(rest[0]), *rest[1:]) if rest else begin(folder)
    print(checksum(result))
