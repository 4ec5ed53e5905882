"""Runs with data over all devices, in processes of their own: python -m tests.core.spread_run WHAT.

They print JSON, which `test_data_parallel.py` looks at.
"""

import hashlib
import itertools
import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc.algorithms import _spread
from levymc.run import _spreading

NUM_POINTS, BATCH = 1003, 64  # on four devices 251, 251, 251 and 250
DATA = np.random.default_rng(0).normal(1.0, 1.0, NUM_POINTS).astype(np.float32)
STEP = 2e-4


def log_prior(x):
    return -x * x / 2


def log_likelihood(x, y):
    return -((x - y) ** 2) / 2


ESTIMATOR = levymc.grad_estimator(log_prior, log_likelihood, NUM_POINTS)
SGLD = levymc.sgld(ESTIMATOR, STEP)


def mesh():
    return jax.make_mesh((jax.device_count(),), ("data",))


def mean_of_all_minibatches():
    """Of gradient and density, over all that can be drawn from 5 points on 2 devices: 3 and 2."""
    data = np.array([1.0, -2.0, 4.0, 8.0, 16.0], np.float32)
    batches = levymc.batches(data, 4, mesh=mesh())
    assert batches.layout.counts.tolist() == [3, 2]
    estimator = levymc.grad_estimator(log_prior, log_likelihood, 5)
    choices = [np.array(list(itertools.product(range(n), repeat=2))) for n in (3, 2)]
    pairs = list(itertools.product(*choices))  # one for each device
    table = jnp.asarray(np.array(pairs))  # (minibatch, device, place)
    drawn = _spread.draw_places

    def mean(function):
        def one(number):
            minibatch = _spread.Spread(batches.layout, number, batches.data)
            return _spread.estimated(function, jnp.float32(0.5), minibatch)

        values = np.asarray(jax.vmap(one)(jnp.arange(len(pairs))))
        return float(values.astype(np.float64).mean())

    _spread.draw_places = lambda number, device, count, size: table[number, device]
    try:
        means = [mean(function) for function in (estimator, estimator.logdensity)]
    finally:
        _spread.draw_places = drawn
    exact = (estimator(jnp.float32(0.5), data), estimator.logdensity(jnp.float32(0.5), data))
    return {"means": means, "exact": [float(value) for value in exact], "count": len(pairs)}


def many_gradients(count=20_000):
    """At one position, with independent keys."""
    batches = levymc.batches(DATA, BATCH, mesh=mesh())
    keys = jax.random.split(jax.random.key(1), count)

    def gradient(key):
        return _spread.estimated(
            ESTIMATOR, jnp.float32(0.0), _spread.Spread(batches.layout, key, batches.data)
        )

    found = np.asarray(jax.jit(jax.vmap(gradient))(keys), np.float64)
    exact = float(DATA.astype(np.float64).sum())  # the prior's is zero here
    return {"mean": found.mean(), "deviation": found.std(), "exact": exact, "count": count}


def ends(algorithm=SGLD, chains=4096, steps=60, *, is_spread=True):
    """Where chains are at the end, which is long after they forgot their start."""
    batches = levymc.batches(DATA, BATCH, mesh=mesh() if is_spread else None)
    starts = jnp.ones(chains, jnp.float32)
    options = {"minibatches": batches, "progress": False, "thin": [steps]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of communication
        return levymc.sample(algorithm, jax.random.key(2), starts, steps, **options).positions[:, 0]


def ends_of_others():
    """Of the other algorithms that take minibatches: means, which are about that of the data."""
    jumps = levymc.jumping(SGLD, lambda x: ESTIMATOR.logdensity(x, DATA), 10, scale=1.0)
    plain = levymc.sgld(lambda x, batch: -x + NUM_POINTS * jnp.mean(batch - x), STEP)
    clipped = levymc.sgfla(
        ESTIMATOR, STEP, 1.9, curvature=lambda x, batch: 1.0 + NUM_POINTS * jnp.mean(batch**0)
    )
    named = {"jumping": jumps, "plain": plain, "clipped": clipped}
    return {name: float(np.median(ends(one, 256, 60))) for name, one in named.items()}


def refusals():
    """The messages of what is refused, and of the warning."""
    calls = {
        "multiple": lambda: levymc.batches(DATA, 63, mesh=mesh()),
        "few": lambda: levymc.batches(DATA[:1], 1, mesh=mesh()),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
        except ValueError as error:
            found[name] = str(error)
    honest = _spreading.measured
    _spreading.measured = lambda *given: _spreading.Cost(0.001, 0.004)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = levymc.batches(DATA, BATCH, mesh=mesh())
            levymc.sample(
                SGLD, jax.random.key(0), jnp.zeros(1), 2, minibatches=batches, progress=False
            )
        found["warning"] = str(caught[0].message)
        found["file"] = caught[0].filename
    finally:
        _spreading.measured = honest
    return found


def small_run():
    """The draws of few chains, and a checksum of them: for several processes."""
    found = ends(chains=3, steps=40)
    return {"ends": found.tolist(), "checksum": hashlib.sha256(found.tobytes()).hexdigest()}


def estimates():
    return {
        "exhaustive": mean_of_all_minibatches(),
        "gradients": many_gradients(),
        "refusals": refusals(),
    }


def laws():
    alone, spread = ends(is_spread=False), ends()
    return {"alone": alone.tolist(), "spread": spread.tolist(), "others": ends_of_others()}


def different_data():
    """What is said if processes do not have the same data."""
    try:
        levymc.batches(DATA[jax.process_index() :][: NUM_POINTS - 2], BATCH, mesh=mesh())
    except ValueError as error:
        return {"error": str(error)}
    return {}


if __name__ == "__main__":
    if sys.argv[2:]:
        address, count, number = sys.argv[2:]
        jax.distributed.initialize(address, int(count), int(number))
    print(json.dumps(globals()[sys.argv[1]]()))
