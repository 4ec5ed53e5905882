"""Runs that end when their time is up."""

import time
from collections.abc import Callable
from typing import Any

import jax

Chunk = Callable[[Any, Any, float], Any]


def run_for(seconds: float, chunk: Chunk, carry: Any, key: Any) -> Any:
    """Repeat `carry = chunk(carry, key, done)`, `done` being the share of the time that has passed.

    Time is that of the processor, which what else the machine does changes little.  Compilation
    does not count.
    """
    jax.block_until_ready(chunk(carry, key, 0.0))
    begin, done = time.process_time(), 0.0
    while done < 1:
        key, key_chunk = jax.random.split(key)
        carry = jax.block_until_ready(chunk(carry, key_chunk, done))
        done = (time.process_time() - begin) / seconds
    return carry
