r"""JAX's random bits by threefry, to the last of them, written out for the CPU.

There JAX makes the rounds of threefry by a loop, which takes less time to compile, but goes over
memory in every turn; as one expression they take half as long.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

KIND = "threefry2x32"
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
MOST_PARTS = 8  # of a key, each of which is an expression of its own


def serves(keys: Array) -> bool:
    """Whether the bits of such keys are those that are made here."""
    return (
        jax.default_backend() == "cpu"
        and bool(getattr(jax.config, "jax_threefry_partitionable", False))
        and str(jax.random.key_impl(keys)) == KIND
    )


def fold_in(keys: Array, data: Any) -> Array:
    """As `jax.random.fold_in`, of each key; the data broadcast against the keys."""
    return _wrapped(_of_keys(keys, jnp.asarray(data).astype(jnp.uint32)))


def operation(name: str, keys: Any, parameters: dict[str, Any]) -> Callable[..., Array] | None:
    """What does the same as an operation of JAX on keys, and what goes with them; None: nothing."""
    if name not in ("random_fold_in", "random_split", "random_bits") or not serves(keys):
        return None
    if name == "random_fold_in":
        return fold_in
    shape = parameters["shape"]
    if name == "random_split":
        is_short = len(shape) == 1 and shape[0] <= MOST_PARTS
        return (lambda keys: _split(keys, shape[0])) if is_short else None
    if parameters["bit_width"] not in (32, 64):
        return None
    return lambda keys: _bits(keys, shape, parameters["bit_width"])


def _split(keys: Array, count: int) -> Array:
    return jnp.stack([fold_in(keys, part) for part in range(count)], axis=-1)


def _bits(keys: Array, shape: tuple[int, ...], width: int) -> Array:
    number = jax.lax.iota(jnp.uint32, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    apart = keys.reshape(*keys.shape, *(1 for _ in shape))
    first, second = _of_keys(apart, number)
    if width == 32:
        return first ^ second
    return (first.astype(jnp.uint64) << 32) | second.astype(jnp.uint64)


def _of_keys(keys: Array, number: Array) -> tuple[Array, Array]:
    words = jax.random.key_data(keys)
    return threefry(words[..., 0], words[..., 1], jnp.zeros_like(number), number)


def _wrapped(words: tuple[Array, Array]) -> Array:
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl=KIND)


def threefry(key_0: Any, key_1: Any, word_0: Any, word_1: Any) -> tuple[Any, Any]:
    """Two words for each two, by the twenty rounds of Threefry-2x32.

    References: [salmon2011].
    """
    keys = (key_0, key_1, key_0 ^ key_1 ^ PARITY)
    word_0, word_1 = word_0 + key_0, word_1 + key_1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            word_0 = word_0 + word_1
            word_1 = (word_1 << rotation) | (word_1 >> (32 - rotation))
            word_1 = word_0 ^ word_1
        word_0 = word_0 + keys[(group + 1) % 3]
        word_1 = word_1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return word_0, word_1
