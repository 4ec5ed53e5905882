"""Seconds of `levymc.auto` on a cheap target of two dimensions, with and without compilation."""

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from bars import Bar, show

import levymc


def seconds(budget: int, seed: int) -> float:
    begin = time.perf_counter()
    starts = jnp.full((4, 2), 4.0)
    levymc.auto(
        levymc.targets.four_modes, jax.random.key(seed), starts, budget=budget, progress=False
    )
    return time.perf_counter() - begin


def auto_time() -> Iterator[Bar]:
    """The first call compiles; a small budget shows when draws begin to come."""
    first = seconds(5000, 0)
    yield Bar("auto, four modes: all of 5000 evaluations, compiling", first, "s", 10)
    yield Bar("the same, and 200 000 after it", first + seconds(200_000, 1), "s", 20)


if __name__ == "__main__":
    show(auto_time())
