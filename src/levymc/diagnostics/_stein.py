r"""Kernel Stein discrepancy: how far draws are from a density, in any dimension, from its score."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from levymc._checks import check_floating, check_positive, check_real
from levymc.drifts import LogDensity

from ._draws import NOT_FINITE, shares

BLOCK_ENTRIES = 2**22  # of a block of kernel rows times coordinates: 32 MB in double precision


def kernel_stein_discrepancy(
    draws: Any,
    logdensity_fn: LogDensity | None = None,
    *,
    score: Callable[[Any], Any] | None = None,
    weights: Any = None,
    length_scale: Any = 1.0,
) -> float:
    r"""Kernel Stein discrepancy with the inverse multiquadric kernel,

    .. math:: \mathrm{KSD}^2 = \sum_{n,m} w_n w_m\, κ(X_n, X_m), \qquad
       k(x, y) = (ℓ^2 + |x - y|^2)^{-1/2},

    .. math:: κ = s(x)·s(y)\,k + s(x)·∇_y k + s(y)·∇_x k + ∇_x·∇_y k, \qquad s = ∇\log φ .

    It needs no normalising constant and no reference draws; it is the exact discrepancy of the
    empirical law (the V-statistic, diagonal and all).  N independent draws of φ are at
    √(E[|s|² / ℓ + D / ℓ³] / N), not at 0: compare at equal N.  The cost is N² kernels.

    Not valid when: modes lie far apart, as the score does not know their weights: draws of one mode
    alone look as good as draws of all.  On heavy-tailed targets the score vanishes far out, so that
    mass that has escaped there goes unseen.  In many dimensions everything looks alike.

    Args:
        draws: a pytree of arrays with the draws along their first axis; pool the chains first.
        logdensity_fn: log φ of one position, up to a constant; or give `score`.
        score: ∇ log φ of one position, a pytree like it.
        weights: (draw,), none negative; all equal if not given.
        length_scale: ℓ > 0, some distance between typical draws.

    Raises:
        ValueError, TypeError: an argument outside its range; a score that is not finite.

    Examples:
        >>> import jax.numpy as jnp
        >>> from levymc import diagnostics
        >>> normal = lambda x: -jnp.sum(x**2) / 2
        >>> diagnostics.kernel_stein_discrepancy(jnp.zeros(1), normal)
        1.0

    References: [gorham2017], section 3.
    """
    if (logdensity_fn is None) == (score is None):
        raise TypeError("Give either `logdensity_fn` or `score`, got both or neither.")
    check_positive("length_scale", length_scale, "It is a distance between typical draws.")
    count = _count(draws)
    share = shares(weights, (count,))
    score_fn: Any = score if logdensity_fn is None else jax.grad(logdensity_fn)
    positions = jax.vmap(_flat)(jax.tree.map(jnp.asarray, draws))
    scores = jax.vmap(lambda position: _flat(score_fn(position)))(jax.tree.map(jnp.asarray, draws))
    check_real("score", scores, "The draws must lie where the density is positive and smooth.")
    dtype = positions.dtype
    block = max(1, BLOCK_ENTRIES // positions.size)
    rows = _row_sums(
        positions, scores.astype(dtype), jnp.asarray(share, dtype), length_scale, block=block
    )
    total = float(np.dot(np.asarray(rows, np.float64), share))
    return float(np.sqrt(max(total, 0.0)))  # rounding alone makes it negative


@partial(jax.jit, static_argnames="block")
def _row_sums(
    positions: Float[Array, "draw coordinate"],
    scores: Float[Array, "draw coordinate"],
    share: Float[Array, " draw"],
    length_scale: Any,
    *,
    block: int,
) -> Float[Array, " draw"]:
    r"""Σ_m w_m κ(X_n, X_m) for each n, `block` of them at a time."""
    dimension = positions.shape[1]

    def row(own: tuple[Array, Array]) -> Array:
        x, s = own
        difference = x - positions
        squared = jnp.sum(difference**2, axis=1)
        kernel = jax.lax.rsqrt(jnp.asarray(length_scale, x.dtype) ** 2 + squared)
        # With q = ℓ² + r² and k = q^{-1/2}: ∇_x k = -q^{-3/2} (x - y) = -∇_y k.
        cross = jnp.sum((s - scores) * difference, axis=1)
        trace = dimension - 3 * squared * kernel**2
        terms = (scores @ s) * kernel + (cross + trace) * kernel**3
        return jnp.sum(terms * share)

    return jax.lax.map(row, (positions, scores), batch_size=min(block, len(positions)))


def _flat(position: Any) -> Float[Array, " coordinate"]:
    return ravel_pytree(position)[0]


def _count(draws: Any) -> int:
    check_floating("draws", draws)
    check_real("draws", draws, NOT_FINITE)
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(draws)}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            f"`draws` must have the draws along the first axis of every leaf, got first axes of "
            f"{sorted(counts)}. Pool chains with x.reshape(-1, *x.shape[2:])."
        )
    return counts.pop()
