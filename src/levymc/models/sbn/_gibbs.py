r"""The Gibbs sampler of a belief network's hidden units: one unit after the other, given the rest.

.. math:: \text{log-odds}(h_j = 1) = b_j + \sum_d v_d W_{dj}
   - \sum_d \bigl[ ζ(a_d + W_{dj}) - ζ(a_d) \bigr], \qquad a = W h + c \text{ with } h_j = 0,

with ζ(x) = log(1 + eˣ).  Nothing is augmented: the sum over a unit's two values is exact.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt8, UInt32

from levymc import _native


class Sweeps(NamedTuple):
    """What some sweeps give.

    hidden: the units afterwards.
    before, after: Σ softplus(W h + c) over the pixels of each image, before and afterwards.
    """

    hidden: UInt8[Array, "image unit"]
    before: Float[Array, " image"]
    after: Float[Array, " image"]


@dataclass(frozen=True)
class Sweeper:
    """Draws all hidden units of all images, one after the other, some times.

    backend: "native", the kernel of belief.cpp, which is for float32 alone, or "jax" for that and
        the rest: the same law, other random numbers.
    num_threads: of the kernel; 1 is none but the caller's.  The draws are the same for any number.
    """

    backend: str
    num_threads: int = 1

    def __call__(
        self,
        weights: Float[Array, "pixel unit"],
        visible_bias: Float[Array, " pixel"],
        drive: Float[Array, "image unit"],
        hidden: UInt8[Array, "image unit"],
        key_words: UInt32[Array, "2"],
        *,
        num_sweeps: int,
    ) -> Sweeps:
        """Sweep over the units.

        Args:
            weights, visible_bias: W and c.
            drive: V W + b, the part of the log-odds that does not depend on the other units.
            hidden: the units to begin with, 0 or 1.
            key_words: two random words.
            num_sweeps: may be 0, for the sums alone.
        """
        if self.backend == "native" and weights.dtype == jnp.float32:
            sums = jax.ShapeDtypeStruct(hidden.shape[:1], jnp.float32)
            found = _native.call(
                "levymc_belief_sweeps",
                [jax.ShapeDtypeStruct(hidden.shape, jnp.uint8), sums, sums],
                [weights, visible_bias, drive, hidden, key_words],
                {"num_sweeps": num_sweeps, "num_threads": self.num_threads},
                vmap_method="sequential",
            )
            return Sweeps(*found)
        key = jax.random.wrap_key_data(key_words, impl="threefry2x32")
        total = partial(_total, weights, visible_bias)
        sweep = partial(_sweep, weights.T, visible_bias, drive)
        drawn, _ = jax.lax.scan(sweep, hidden, jax.random.split(key, num_sweeps))
        return Sweeps(drawn, total(hidden), total(drawn))


def sweeper(backend: str | None, num_threads: int) -> Sweeper:
    """Sweeps in C++ where that works, on a CPU."""
    is_native = _native.backend(backend) == "native" and jax.default_backend() == "cpu"
    return Sweeper("native", num_threads) if is_native else Sweeper("jax")


def _total(weights: Array, visible_bias: Array, hidden: Array) -> Array:
    """Σ ζ(a) of each image."""
    return jnp.sum(jax.nn.softplus(_activate(weights.T, visible_bias, hidden)), axis=1)


def _activate(rows: Array, visible_bias: Array, hidden: Array) -> Array:
    return hidden.astype(rows.dtype) @ rows + visible_bias


def _sweep(
    rows: Array, visible_bias: Array, drive: Array, hidden: Array, key: Array
) -> tuple[Array, None]:
    """All units once; the sum over ζ(a) is kept, so that a unit costs one ζ per pixel."""
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
