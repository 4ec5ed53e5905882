"""Factorisation with users over all devices: python -m tests.models.spread_ratings WHAT.

It prints JSON, which `test_factorization_spread.py` looks at.
"""

import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import levymc

ETA, CHAINS = 1e-3, 4000
OPTIONS = {"biases": True, "curvature": True, "noise_precision": 2.0}


def small():
    """Seven users, of whom three devices have 3, 3 and 1, and five items: 2, 2 and 1."""
    generator = np.random.default_rng(0)
    users, items = generator.integers(0, 7, 60), generator.integers(0, 5, 60)
    values = generator.integers(1, 6, 60)
    rows = {"users": np.linspace(0.5, 2, 7), "items": np.linspace(1, 3, 5)}
    fast = levymc.models.fast_factorization(
        users,
        items,
        values,
        7,
        5,
        rank=2,
        batch_size=40,
        step_size=ETA,
        preconditioner=rows,
        **OPTIONS,
    )
    starts = {
        name: jnp.asarray(np.random.default_rng(1).normal(size=(count, 2)), jnp.float32)
        for name, count in (("users", 7), ("items", 5))
    }
    return fast, starts


def spread(fast):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one device has fewer ratings
        return levymc.models.spread_users(fast, jax.make_mesh((jax.device_count(),), ("users",)))


def sample(fast, starts, num_steps, **options):
    data = levymc.whole(fast.data)
    key, given = jax.random.key(5), {"minibatches": data, "progress": False, **options}
    return levymc.sample(fast.algorithm, key, starts, num_steps, **given)


def one_step():
    """Moments of a step from one start, by both algorithms."""
    fast, start = small()
    starts = jax.tree.map(lambda leaf: jnp.tile(leaf, (CHAINS, 1, 1)), start)
    found = {}
    for name, one in (("alone", fast), ("spread", spread(fast))):
        ends = sample(one, starts, 1).positions
        flat = np.concatenate(
            [np.asarray(ends[n], float).reshape(CHAINS, -1) for n in sorted(ends)], 1
        )
        centred = flat - flat.mean(0)
        found[name] = {
            "mean": flat.mean(0).tolist(),
            "variance": centred.var(0).tolist(),
            "fourth": (centred**4).mean(0).tolist(),
        }
    return found


def overflow():
    """A step whose numbers are not finite is not made, on any device."""
    fast, start = small()
    huge = jax.tree.map(lambda leaf: (leaf * 0 + 1e13)[None], start)
    run = sample(spread(fast), huge, 1)
    still = [np.ptp(np.asarray(leaf)[..., :2]) == 0 for leaf in run.positions.values()]
    return {"is_divergent": bool(run.info.is_divergent.all()), "is_still": bool(all(still))}


def cheap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the step that is not made
        return {"moments": one_step(), "overflow": overflow()}


def errors():
    """Of held-out ratings: the last draws' root mean squares, for several chains."""
    generator = np.random.default_rng(0)
    users, items = generator.integers(0, 300, 12_000), generator.integers(0, 101, 12_000)
    truth = generator.normal(size=(300, 4)), generator.normal(size=(101, 4))
    values = np.sum(truth[0][users] * truth[1][items], 1) + generator.normal(size=12_000)
    rated = np.clip(np.round(2 * values), -16, 16)
    fast = levymc.models.fast_factorization(
        *(array[:10_000] for array in (users, items, rated)),
        *(300, 101),
        rank=4,
        batch_size=2_000,
        step_size=5e-4,
    )
    held = [jnp.asarray(array[10_000:]) for array in (users, items, rated)]

    def error(position):
        predicted = jnp.sum(position["users"][held[0]] * position["items"][held[1]], -1)
        return jnp.sqrt(jnp.mean((predicted - held[2]) ** 2))

    starts = {
        name: 0.5 * jax.random.normal(jax.random.key(n), (4, count, 4), jnp.float32)
        for n, (name, count) in enumerate((("users", 300), ("items", 101)))
    }
    one = fast if jax.device_count() == 1 else spread(fast)
    return {"errors": sample(one, starts, 600, thin=[600], keep=error).positions.ravel().tolist()}


if __name__ == "__main__":
    if sys.argv[2:]:
        address, count, number = sys.argv[2:]
        jax.distributed.initialize(address, int(count), int(number))
    print(json.dumps(globals()[sys.argv[1]]()))
