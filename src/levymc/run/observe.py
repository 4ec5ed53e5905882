r"""Summaries kept while a run proceeds, for positions too many or too large to store.

    levymc.sample(..., observe={"mean": levymc.observe.mean()})

An observer sees every step after burn-in, thinned or not, with its weight η_n; or every k-th, if
the run is told so by `observe_every`.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from levymc._checks import check_interval, check_positive, check_real


class Observer(NamedTuple):
    """A summary of one chain.

    init: of a position, the summary of no draws, a pytree of arrays.
    update: of a summary, a position and its weight, the next summary; a weight of zero must leave
        it as it is.
    finish: of a summary, what is asked for.
    """

    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], Any]
    finish: Callable[[Any], Any]


def _itself(position: Any) -> Any:
    return position


class MeanSoFar(NamedTuple):
    """Σ η_n g(X_n) / Σ η_n, and Σ η_n."""

    mean: Any
    total: Any


def mean(of: Callable[[Any], Any] = _itself) -> Observer:
    r"""The weighted estimator of E g(X), in one pass,

    .. math:: ν_n = ν_{n-1} + \frac{η_n}{η_1 + … + η_n} \bigl(g(X_n) - ν_{n-1}\bigr) .

    Not valid when: g(X) has no mean, as the positions of a chain on a Cauchy target: see
    `quantiles`.

    Args:
        of: g, a function of a position that returns a pytree of floats; the position itself if
            not given.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> observe = {"square": levymc.observe.mean(lambda x: x * x)}
        >>> result = levymc.sample(
        ...     walk, jax.random.key(0), jnp.zeros(4), 500, observe=observe, progress=False
        ... )
        >>> result.observed["square"].shape
        (4,)
    """

    def init(position: Any) -> MeanSoFar:
        values = jax.eval_shape(of, position)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), values)
        widest = jnp.result_type(*jax.tree.leaves(values), jnp.float32)
        return MeanSoFar(zeros, jnp.zeros((), widest))

    def update(so_far: MeanSoFar, position: Any, weight: Any) -> MeanSoFar:
        total = so_far.total + jnp.asarray(weight, so_far.total.dtype)
        share = weight / jnp.where(total > 0, total, 1)
        moved = jax.tree.map(
            lambda old, new: old + share.astype(old.dtype) * (new - old), so_far.mean, of(position)
        )
        return MeanSoFar(moved, total)

    return Observer(init, update, lambda so_far: so_far.mean)


class SpreadSoFar(NamedTuple):
    """The weighted mean, the weighted sum of squares about it, and Σ η_n."""

    mean: Any
    squares: Any
    total: Any


def predictive(
    of: Callable[[Any], Any], *, noise_variance: float = 0.0, level: float = 0.9
) -> Observer:
    r"""The mean of predictions and an interval for new data, without storing draws:

    .. math:: \bar g ± z \sqrt{\mathrm{var}\, g(X) + σ^2}, \qquad
       \bar g = ν_N(g), \quad \mathrm{var}\, g(X) = ν_N\bigl((g - \bar g)^2\bigr),

    with z the normal quantile of (1 + level)/2.

    Not valid when: g(X) has no variance, as under stable noise with α < 2 on a target that does
    not bound g: the interval then settles nowhere.  See `quantiles`.

    Args:
        of: g, a function of a position that returns an array of floats, a prediction each.
        noise_variance: σ² ≥ 0 of a new observation about its prediction.
        level: probability of the interval, in (0, 1).

    Returns:
        An observer of {"mean", "deviation" (of g(X) alone), "low", "high"}.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> observer = levymc.observe.predictive(lambda x: x, noise_variance=1.0, level=0.9)
        >>> so_far = observer.init(jnp.zeros(()))
        >>> for value in (1.0, 3.0):
        ...     so_far = observer.update(so_far, value, 0.1)
        >>> {name: round(float(value), 3) for name, value in observer.finish(so_far).items()}
        {'mean': 2.0, 'deviation': 1.0, 'low': -0.326, 'high': 4.326}

    References: [west1979] for the variance in one pass.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie in (0, 1), got {level}. Such as 0.9.")
    check_real("noise_variance", noise_variance, "It is that of a new observation.")
    if noise_variance < 0:
        raise ValueError(f"`noise_variance` must not be negative, got {noise_variance}.")
    width = NormalDist().inv_cdf((1 + level) / 2)

    def init(position: Any) -> SpreadSoFar:
        shape = jax.eval_shape(of, position)
        zeros = jnp.zeros(shape.shape, shape.dtype)
        return SpreadSoFar(zeros, zeros, jnp.zeros((), shape.dtype))

    def update(so_far: SpreadSoFar, position: Any, weight: Any) -> SpreadSoFar:
        step = jnp.asarray(weight, so_far.total.dtype)
        total = so_far.total + step
        share = step / jnp.where(total > 0, total, 1)
        values = of(position)
        moved = so_far.mean + share * (values - so_far.mean)
        added = step * (values - so_far.mean) * (values - moved)
        return SpreadSoFar(moved, so_far.squares + added, total)

    def finish(so_far: SpreadSoFar) -> dict[str, Any]:
        variance = so_far.squares / jnp.where(so_far.total > 0, so_far.total, 1)
        half = width * jnp.sqrt(variance + noise_variance)
        return {
            "mean": so_far.mean,
            "deviation": jnp.sqrt(variance),
            "low": so_far.mean - half,
            "high": so_far.mean + half,
        }

    return Observer(init, update, finish)


def quantiles(
    probabilities: Any,
    of: Callable[[Any], Any] = _itself,
    *,
    relative_error: float = 0.02,
    smallest: float = 1e-4,
    largest: float = 1e8,
) -> Observer:
    r"""Weighted quantiles of each coordinate, to a relative error, in memory that does not grow.

    Sizes are counted in bins whose bounds are powers of γ = (1 + ε)/(1 - ε), on both sides of
    zero, so that the middle of a bin is within ε of all that is in it.

    Not valid when: values lie below `smallest` in size, which count as zero, or beyond `largest`,
    which count as that; nor, in float32, beyond some 10⁷ steps, when a bin no longer grows.

    Args:
        probabilities: numbers in (0, 1).
        of: a function of a position that returns an array of floats; the position itself, which
            must then be one array, if not given.
        relative_error: ε, in (0, 0.5).
        smallest, largest: the sizes between which ε holds.

    References: [masson2019].  Departures: weights; bins for a range that is given.
    """
    levels = tuple(float(p) for p in jnp.ravel(jnp.asarray(probabilities)))
    for level in levels:
        check_interval("probabilities", level, 0.0, 1.0, includes_low=False, remedy="Such as 0.9.")
    check_interval("relative_error", relative_error, 0.0, 0.5, includes_low=False, remedy="0.02.")
    check_positive("smallest", smallest, "Smaller sizes count as zero.")
    check_positive("largest", largest / smallest - 1, "It must be more than `smallest`.")
    width = math.log((1 + relative_error) / (1 - relative_error))
    num_bins = math.ceil(math.log(largest / smallest) / width)

    def place(values: Any) -> Any:
        """The bin: `num_bins` is that of zero, those of negative values come before it."""
        size = jnp.floor(jnp.log(jnp.maximum(jnp.abs(values), smallest) / smallest) / width)
        magnitude = jnp.minimum(size, num_bins - 1).astype(jnp.int32) + 1
        signed = jnp.sign(values).astype(jnp.int32) * magnitude
        return num_bins + jnp.where(jnp.abs(values) < smallest, 0, signed)

    def init(position: Any) -> Any:
        values = jax.eval_shape(of, position)
        return jnp.zeros((*values.shape, 2 * num_bins + 1), values.dtype)

    def update(counts: Any, position: Any, weight: Any) -> Any:
        bins = jnp.ravel(place(of(position)))
        rows = counts.reshape(len(bins), -1)
        added = rows.at[jnp.arange(len(bins)), bins].add(jnp.asarray(weight, counts.dtype))
        return added.reshape(counts.shape)

    def finish(counts: Any) -> Any:
        number = jnp.arange(1, num_bins + 1)
        # As far from both bounds, relative to them.
        middles = smallest * jnp.exp(number * width) * (1 - relative_error)
        values = jnp.concatenate([-middles[::-1], jnp.zeros(1), middles]).astype(counts.dtype)
        cumulative = jnp.cumsum(counts, axis=-1)
        wanted = jnp.asarray(levels, counts.dtype) * cumulative[..., -1:]
        reached = jnp.sum(cumulative[..., None, :] < wanted[..., None], axis=-1)
        return values[jnp.minimum(reached, 2 * num_bins)]

    return Observer(init, update, finish)
