"""The library alone: a run, a kernel in C++, and what it says of an extra that is not there."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

import levymc


def refusal(call):
    try:
        call()
    except ImportError as error:
        return str(error)


for name in ("arviz", "blackjax", "flatbuffers", "matplotlib", "numpyro", "optax", "rich"):
    assert importlib.util.find_spec(name) is None, f"{name} was installed without being asked for"

walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
result = levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 50)
assert result.positions.shape == (2, 50)
assert "levymc[arviz]" in refusal(result.to_arviz)

users, items = np.arange(100) % 20, np.arange(100) % 7
sizes = {"rank": 3, "batch_size": 50, "step_size": 1e-3}
fast = levymc.models.fast_factorization(
    users, items, (users + items) % 5, 20, 7, backend="native", **sizes
)
starts = {"users": jnp.zeros((1, 20, 3), "float32"), "items": jnp.ones((1, 7, 3), "float32")}
data = levymc.whole(fast.data)
factors = levymc.sample(fast.algorithm, jax.random.key(0), starts, 10, minibatches=data)
assert jnp.isfinite(factors.positions["users"]).all()
