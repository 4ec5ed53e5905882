r"""The Gibbs sampler of a belief network's hidden units: one unit after the other, given the rest.

.. math:: \text{log-odds}(h_j = 1) = b_j + \sum_d v_d W_{dj}
   - \sum_d \bigl[ ζ(a_d + W_{dj}) - ζ(a_d) \bigr], \qquad a = W h + c \text{ with } h_j = 0,

with ζ(x) = log(1 + eˣ).  Nothing is augmented: the sum over a unit's two values is exact.
"""

from collections.abc import Callable
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from levymc import native
from levymc.native import Sweeps

Sweeper = Callable[..., Sweeps]


def sweeper(backend: str | None, num_threads: int) -> Sweeper:
    """The function that makes sweeps: in C++ where it can, for float32 on a CPU."""
    is_native = native.backend(backend) == "native" and jax.default_backend() == "cpu"
    return _native(num_threads) if is_native else sweeps_in_jax


@lru_cache  # one function for all models, so that programs compiled with it are found again
def _native(num_threads: int) -> Sweeper:
    def choose(weights: Array, *arguments: Array, num_sweeps: int) -> Sweeps:
        if weights.dtype != jnp.float32:
            return sweeps_in_jax(weights, *arguments, num_sweeps=num_sweeps)
        return native.belief_sweeps(
            weights, *arguments, num_sweeps=num_sweeps, num_threads=num_threads
        )

    return choose


def sweeps_in_jax(
    weights: Float[Array, "pixel unit"],
    visible_bias: Float[Array, " pixel"],
    drive: Float[Array, "image unit"],
    hidden: Array,
    key_words: UInt32[Array, "2"],
    *,
    num_sweeps: int,
) -> Sweeps:
    """As `levymc.native.belief_sweeps`: the same law, other random numbers."""
    key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
    total = partial(_total, weights, visible_bias)
    sweep = partial(_sweep, weights.T, visible_bias, drive)
    drawn, _ = jax.lax.scan(sweep, hidden, jax.random.split(key, num_sweeps))
    return Sweeps(drawn, total(hidden), total(drawn))


def _total(weights: Array, visible_bias: Array, hidden: Array) -> Array:
    """Σ ζ(a) of each image."""
    return jnp.sum(jax.nn.softplus(_activate(weights.T, visible_bias, hidden)), axis=1)


def _activate(rows: Array, visible_bias: Array, hidden: Array) -> Array:
    return hidden.astype(rows.dtype) @ rows + visible_bias


def _sweep(
    rows: Array, visible_bias: Array, drive: Array, hidden: Array, key: Array
) -> tuple[Array, None]:
    """All units once; the sum over ζ(a) is kept, so that a unit costs one ζ a pixel."""
    activation = _activate(rows, visible_bias, hidden)
    logistic = jax.random.logistic(key, drive.T.shape, rows.dtype)

    def draw(carry: tuple[Array, Array], unit: tuple[Array, ...]) -> tuple[tuple, Array]:
        activation, current = carry
        row, push, was_on, threshold = unit
        other = activation + jnp.where(was_on, -1, 1).astype(row.dtype)[:, None] * row
        alternative = jnp.sum(jax.nn.softplus(other), axis=1)
        change = jnp.where(was_on, current - alternative, alternative - current)
        is_on = push - change > threshold
        flipped = is_on != was_on
        kept = (
            jnp.where(flipped[:, None], other, activation),
            jnp.where(flipped, alternative, current),
        )
        return kept, is_on

    start = activation, jnp.sum(jax.nn.softplus(activation), axis=1)
    _, drawn = jax.lax.scan(draw, start, (rows, drive.T, hidden.T > 0, logistic))
    return drawn.T.astype(hidden.dtype), None
