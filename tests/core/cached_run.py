"""As a program: a run in a process of its own, which tells what it compiled and what it drew.

`python -m tests.core.cached_run CASE FOLDER` prints as JSON how many programs were asked for and
how many were found in the cache, and a digest of the draws.
"""

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import levymc

EVENTS = "/jax/compilation_cache/"
KEY = jax.random.key(0)


def stored(folder: Path) -> np.ndarray:
    starts = jnp.zeros((4, 2), jnp.float32)
    algorithm = levymc.ula(levymc.targets.four_modes, 0.1)
    return levymc.sample(algorithm, KEY, starts, 20, store=folder / "run").positions


def mafla(folder: Path) -> np.ndarray:
    starts = jnp.zeros((4, 2), jnp.float32)
    return levymc.sample(levymc.mafla(levymc.targets.four_modes, 0.1), KEY, starts, 20).positions


def auto(folder: Path) -> np.ndarray:
    starts = jnp.full((4, 2), 4.0)
    return levymc.auto(levymc.targets.four_modes, KEY, starts, budget=5000).positions


def kernel(folder: Path) -> np.ndarray:
    """A program that calls a kernel in C++."""
    rng = np.random.default_rng(0)
    fast = levymc.models.fast_factorization(
        rng.integers(0, 20, 300),
        rng.integers(0, 10, 300),
        rng.integers(1, 6, 300),
        20,
        10,
        rank=3,
        batch_size=50,
        step_size=1e-3,
    )
    sizes = {"users": (2, 20, 3), "items": (2, 10, 3)}
    starts = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    data = levymc.whole(fast.data)
    found = levymc.sample(fast.algorithm, KEY, starts, 20, minibatches=data).positions
    return np.asarray(jax.tree.leaves(found)[0])


CASES = {function.__name__: function for function in (stored, mafla, auto, kernel)}


def main(case: str, folder: str) -> None:
    levymc.enable_compilation_cache()
    heard: Counter[str] = Counter()
    jax.monitoring.register_event_listener(lambda event, **_: heard.update([event]))
    draws = CASES[case](Path(folder))
    print(
        json.dumps(
            {
                "asked": heard[EVENTS + "compile_requests_use_cache"],
                "found": heard[EVENTS + "cache_hits"],
                "draws": hashlib.sha256(np.ascontiguousarray(draws).tobytes()).hexdigest(),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
