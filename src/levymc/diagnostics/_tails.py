r"""How heavy tails are: Hill's estimate, of draws and of a chain's increments."""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from levymc._checks import check_count, check_real

from ._draws import ONE_COORDINATE, checked_variables, columns

BLOCKS = 32  # gives the standard error itself to an eighth
FEWEST_VALUES = 100


class TailIndex(NamedTuple):
    """The estimate of a, where P(|X| > x) falls like x^-a.

    index: of an exponential or lighter tail it is large, above 4, and grows with the number of
        values; below 2 there is no variance, below 1 no mean.
    standard_error: of the noise, correlation included; not of the bias.
    num_largest: how many values it was made from.
    """

    index: Any
    standard_error: Any
    num_largest: int


def tail_index(values: Any, *, num_largest: Any = None) -> TailIndex:
    r"""Hill's estimate of the tail index of |x − median|, from the k largest:

    .. math:: 1/\hat a = \frac{1}{k} \sum_{i ≤ k} \log \frac{|x|_{(i)}}{|x|_{(k+1)}} .

    For independent values the standard error is â/√k.  A chain's large values come in clusters,
    which leaves the estimate consistent and widens its error: in the place of k stands the number
    of clusters, or the error is taken from the sums of the terms over 32 blocks, if larger.

    Not valid when: the k largest are not yet in the tail.  At k = √N, stable laws with α = 1.5, 1.7
    and 1.9 give 1.53, 1.78 and 2.37 for N = 20 000: near α = 2 the power law sets in late.

    Args:
        values: an array with the axes (draw,) or (chain, draw).
        num_largest: k, the number of largest values; √N if not given.

    Raises:
        ValueError, TypeError: fewer than 100 values, ties among the largest, not finite.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> draws = np.random.default_rng(0).standard_cauchy((4, 10_000))
        >>> found = diagnostics.tail_index(draws)
        >>> bool(abs(found.index - 1) < 4 * found.standard_error)
        True

    References: [hill1975]; for correlated values [hsing1991].
    """
    check_real("values", values, ONE_COORDINATE)
    array = np.asarray(values, np.float64)
    if array.ndim not in (1, 2) or array.size < FEWEST_VALUES:
        raise ValueError(
            f"`values` must be at least {FEWEST_VALUES} values with the axes (draw,) or (chain, "
            f"draw), got shape {array.shape}. Give one coordinate of a longer run."
        )
    k = math.isqrt(array.size - 1) + 1 if num_largest is None else num_largest
    remedy = f"Take at most half of the {array.size} values."
    count = check_count("num_largest", k, remedy)
    if count > array.size // 2:
        raise ValueError(f"`num_largest` must be at most {array.size // 2}, got {count}. {remedy}")
    return hill(np.atleast_2d(np.abs(array - np.median(array))), count)


def draw_tail_index(draws: Any, *, num_largest: Any = None) -> dict[str, TailIndex]:
    """`tail_index` of every coordinate of the draws.

    Args:
        draws: a `Result`, or a pytree of arrays with the axes (chain, draw, …).
        num_largest: as for `tail_index`.

    Returns: by variable, a `TailIndex` whose arrays have the variable's shape.

    Raises: as for `tail_index`.
    """
    return _by_coordinate(draws, 0, num_largest)


def increment_tail_index(draws: Any, *, num_largest: Any = None) -> dict[str, TailIndex]:
    """`tail_index` of every coordinate of X_{n+1} − X_n: near the noise's α, for Lévy noise.

    A Metropolis test removes long jumps: on a light-tailed target the index of an adjusted chain's
    increments is large, whatever α.  A rejected step is an increment of zero.

    Args, Returns, Raises: as for `draw_tail_index`.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> from levymc import diagnostics
        >>> motion = levymc.stable.levy_motion(jax.random.key(0), 1.3, jnp.arange(20_000.0))
        >>> found = diagnostics.increment_tail_index(motion[None])["x"]
        >>> bool(abs(found.index - 1.3) < 0.5)
        True
    """
    return _by_coordinate(draws, 1, num_largest)


def _by_coordinate(draws: Any, differences: int, num_largest: Any) -> dict[str, TailIndex]:
    found = {}
    for name, leaf in checked_variables(draws).items():
        each = [tail_index(np.diff(c, differences), num_largest=num_largest) for c in columns(leaf)]
        index, error = (np.reshape([one[i] for one in each], leaf.shape[2:]) for i in (0, 1))
        found[name] = TailIndex(index, error, each[0].num_largest)
    return found


def hill(sizes: Float[np.ndarray, "chain draw"], k: int) -> TailIndex:
    """From the k largest of sizes, none negative."""
    threshold = np.partition(sizes, sizes.size - k - 1, axis=None)[-k - 1]
    if threshold == 0:
        raise ValueError(
            f"`values` must differ from their median in more than {k} places, got "
            f"{np.count_nonzero(sizes)}. The chain hardly moved: see levymc.diagnostics.check."
        )
    above = sizes > threshold
    excess = np.where(above, np.log(np.where(above, sizes, threshold) / threshold), 0.0)
    inverse = excess.sum() / k
    if inverse == 0:
        raise ValueError(f"The {k + 1} largest `values` must not all be equal, got {threshold:g}. "
                         "The chain is stuck there, or `num_largest` is too small.")  # fmt: skip
    terms = excess - inverse * above
    relative = max(1 / math.sqrt(_clusters(above, k)), _block_error(terms) / (k * inverse))
    return TailIndex(float(1 / inverse), float(relative / inverse), k)


def _clusters(above: Bool[np.ndarray, "chain draw"], k: int) -> int:
    """Exceedances that do not follow another within a fifth of their mean distance."""
    gap = above.size / (5 * k)
    return sum(1 + int(np.sum(np.diff(np.flatnonzero(c)) > gap)) for c in above if np.any(c))


def _block_error(terms: Float[np.ndarray, "chain draw"]) -> float:
    """Standard deviation of the sum of all terms, from blocks of consecutive ones."""
    blocks_a_chain = max(2, -(-BLOCKS // len(terms)))
    sums = [b.sum() for chain in terms for b in np.array_split(chain, blocks_a_chain)]
    return math.sqrt(len(sums) * float(np.var(sums, ddof=1)))
