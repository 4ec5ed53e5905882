r"""One random word through a table of quantiles: the fast way for a fixed α in float32.

The lowest bit of a word is the sign.  The other 31, converted to a float32 u, give the tail
probability q = u/2³² ∈ (0, 1/2].  The exponent of u and the top bits of its mantissa number a cell
of a table that is finer the smaller q is, and the remaining bits interpolate in it linearly: the
quantile's relative error is below 2e-5 for α ≥ 0.5, down to q = 2^-33.

For the law conditioned on |X| ≤ bound, the table is that of the quantiles at p + (1 - 2p) q, with
p = P(X > bound).
"""

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt

from . import _formulas
from ._quantile import solve_on_host

_CELLS_PER_OCTAVE_BITS = 8
_SHIFT = 23 - _CELLS_PER_OCTAVE_BITS  # 23: bits of a float32 mantissa
_FIRST = int(np.float32(0.5).view(np.uint32)) >> _SHIFT
_LAST = int(np.float32(2.0**31).view(np.uint32)) >> _SHIFT


def transform(
    words: UInt[Array, "..."], alpha: float, bound: float = math.inf
) -> Float[Array, "..."]:
    """SαS(1), given |X| ≤ bound, in float32 from one 32-bit word per draw."""
    return _look_up(words, *_table(alpha, bound))


def quantile_table(alpha: float, bound: float | None = None) -> Float[np.ndarray, "cell 2"]:
    """The table as pairs, a quantile and its change over the cell, for `from_words` and kernels.

    With a bound it is that of SαS(1) on the condition |X| ≤ bound.
    """
    return np.stack(_table(alpha, math.inf if bound is None else bound), axis=-1)


def from_words(words: UInt[Array, "..."], starts: Any, steps: Any) -> Float[Array, "..."]:
    """One draw per 32-bit word, by the columns of a `quantile_table`."""
    return _look_up(words, starts, steps)


def _look_up(words: Array, starts: Any, steps: Any) -> Array:
    uniform = (words >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5
    pattern = jax.lax.bitcast_convert_type(uniform, jnp.uint32)
    cell = (pattern >> _SHIFT).astype(jnp.int32) - _FIRST
    rest = (pattern & ((1 << _SHIFT) - 1)).astype(jnp.int32).astype(jnp.float32)
    size = _at(starts, cell) + _at(steps, cell) * (rest * np.float32(2.0**-_SHIFT))
    return jnp.where((words & 1) == 1, -size, size)


def _at(table: Any, index: Array) -> Array:
    return jnp.asarray(table).at[index].get(mode="promise_in_bounds")


@lru_cache(maxsize=64)
def _table(alpha: float, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantile at the start of each cell, and its change over the cell."""
    patterns = np.arange(_FIRST, _LAST + 1, dtype=np.uint32) << np.uint32(_SHIFT)
    tail = patterns.view(np.float32).astype(np.float64) / 2**32
    if math.isinf(bound):
        quantiles = -solve_on_host(tail, alpha)
    else:
        beyond = _formulas.sf(np, np.asarray(bound, float), np.asarray(alpha, float))
        quantiles = -solve_on_host(beyond + (1 - 2 * beyond) * tail, alpha)
        # Rounded to float32, the largest may lie beyond the bound by one unit.
        largest = np.nextafter(np.float32(bound), np.float32(0))
        quantiles = np.minimum(quantiles, largest)
    steps = np.append(np.diff(quantiles), 0.0)
    return quantiles.astype(np.float32), steps.astype(np.float32)
