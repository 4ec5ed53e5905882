r"""Summaries kept while a run proceeds, for positions too many or too large to store.

    levymc.sample(..., observe={"mean": levymc.observe.mean()})

An observer sees every step after burn-in, thinned or not, with its weight η_n; or every k-th, if
the run is told so by `observe_every`.  Before it has seen any, all but counts is NaN.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from levymc._checks import check_interval, check_positive, check_real, output_shapes


class Observer:
    """A summary of one chain; equal observers share one compiled program.

    init: of a position, the summary of no draws, a pytree of arrays.
    update: of a summary, a position, its weight and the info of its step, the next summary; a
        weight of zero must leave it as it is.
    finish: of a summary, what is asked for.
    """

    def init(self, position: Any) -> Any:
        raise NotImplementedError

    def update(self, so_far: Any, position: Any, weight: Any, info: Any = None) -> Any:
        raise NotImplementedError

    def finish(self, so_far: Any) -> Any:
        raise NotImplementedError


def itself(position: Any) -> Any:
    """The position."""
    return position


def _shapes(maker: str, of: Callable[[Any], Any], position: Any) -> Any:
    """Shapes of what an observer looks at, in floating types; what is not of numbers is refused."""
    found = output_shapes("of", of, position)
    leaves = jax.tree.leaves(found)
    if not leaves or not all(map(_is_real, leaves)):
        raise TypeError(
            f"`of` must return arrays of real numbers for levymc.observe.{maker}, "
            f"got {found!r:.100}. Return numbers that are made of the position."
        )
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, _floating(leaf)), found)


def _shape(maker: str, of: Callable[[Any], Any], position: Any) -> jax.ShapeDtypeStruct:
    """Likewise, where it is one array."""
    found = _shapes(maker, of, position)
    if not isinstance(found, jax.ShapeDtypeStruct):
        raise TypeError(
            f"`of` must return one array for levymc.observe.{maker}, got "
            f"{jax.tree.map(lambda leaf: leaf.shape, found)!r:.100}. Where positions have several "
            'leaves, name one, such as of=lambda position: position["x"].'
        )
    return found


def _is_real(leaf: Any) -> bool:
    kinds = (jnp.floating, jnp.integer, jnp.bool_)
    return hasattr(leaf, "dtype") and any(jnp.issubdtype(leaf.dtype, kind) for kind in kinds)


def _floating(leaf: Any) -> Any:
    """The type of a summary; that of whole numbers and truth values could not hold their mean."""
    return leaf.dtype if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.result_type(float)


class _Summed(NamedTuple):
    """A sum in 32 bits or more, and what rounding has taken from it so far.

    Without that, a mean of 100 in float32 stands still after some 3 · 10⁵ steps, as each would move
    it by less than it is rounded to.
    """

    value: Any
    rest: Any


def _nothing(shape: tuple[int, ...], dtype: Any) -> _Summed:
    zero = jnp.zeros(shape, jnp.promote_types(dtype, jnp.float32))
    return _Summed(zero, zero)


def _added(so_far: _Summed, change: Array) -> _Summed:
    wanted = change + so_far.rest
    moved = so_far.value + wanted
    return _Summed(moved, wanted - (moved - so_far.value))


def _moved(so_far: _Summed, target: Any, share: Array) -> _Summed:
    """A mean that goes a share of the way to a value."""
    way = (jnp.asarray(target, so_far.value.dtype) - so_far.value) - so_far.rest
    return _added(so_far, share.astype(way.dtype) * way)


def _with_share(total: _Summed, weight: Any) -> tuple[_Summed, Array]:
    """The sum of the weights with another, and the share that this one has of it."""
    step = jnp.asarray(weight, total.value.dtype)
    total = _added(total, step)
    return total, step / jnp.where(total.value > 0, total.value, 1)


def _if_seen(weight: Any, moved: Any, so_far: Any) -> Any:
    """What is not seen changes no bit, even where it is infinite."""
    return jax.tree.map(lambda new, old: jnp.where(weight > 0, new, old), moved, so_far)


def _if_any(total: Array, found: Array) -> Array:
    """What was found, or NaN where nothing was seen: a number would be taken for an answer."""
    return jnp.where(total > 0, found, jnp.nan)


class MeanSoFar(NamedTuple):
    """Σ η_n g(X_n) / Σ η_n, a sum for each leaf, and Σ η_n.

    types: a zero for each leaf, of the type that its mean is given in.
    """

    mean: Any
    total: _Summed
    types: Any


@dataclass(frozen=True)
class Mean(Observer):
    """See `mean`."""

    of: Callable[[Any], Any]

    def init(self, position: Any) -> MeanSoFar:
        shapes = _shapes("mean", self.of, position)
        widest = jnp.result_type(*(leaf.dtype for leaf in jax.tree.leaves(shapes)))
        return MeanSoFar(
            jax.tree.map(lambda leaf: _nothing(leaf.shape, leaf.dtype), shapes),
            _nothing((), widest),
            jax.tree.map(lambda leaf: jnp.zeros((), leaf.dtype), shapes),
        )

    def update(self, so_far: MeanSoFar, position: Any, weight: Any, info: Any = None) -> MeanSoFar:
        total, share = _with_share(so_far.total, weight)
        means = jax.tree.map(
            lambda _, old, new: _moved(old, new, share),
            so_far.types,
            so_far.mean,
            self.of(position),
        )
        return _if_seen(weight, MeanSoFar(means, total, so_far.types), so_far)

    def finish(self, so_far: MeanSoFar) -> Any:
        def given(like: Array, found: _Summed) -> Array:
            return _if_any(so_far.total.value, found.value).astype(like.dtype)

        return jax.tree.map(given, so_far.types, so_far.mean)


def mean(of: Callable[[Any], Any] = itself) -> Observer:
    r"""The weighted estimator of E g(X), in one pass,

    .. math:: ν_n = ν_{n-1} + \frac{η_n}{η_1 + … + η_n} \bigl(g(X_n) - ν_{n-1}\bigr) .

    Not valid when: g(X) has no mean, as the positions of a chain on a Cauchy target: see
    `quantiles`.

    Args:
        of: g, a function of a position that returns a pytree of numbers; the position itself if
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
    return Mean(of)


@dataclass(frozen=True, eq=False)
class MeanError(Mean):
    """See `mean_error`."""

    truth: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MeanError):
            return NotImplemented
        return self.of == other.of and np.array_equal(self.truth, other.truth)

    def __hash__(self) -> int:
        return hash((self.of, self.truth.shape))

    def init(self, position: Any) -> MeanSoFar:
        given = _shape("mean_error", self.of, position).shape
        if given != self.truth.shape:
            raise ValueError(
                f"`truth` must have the shape of what `of` returns, {given}, got "
                f"{self.truth.shape}. Give a true value for each prediction."
            )
        return super().init(position)

    def finish(self, so_far: MeanSoFar) -> Array:
        found = _if_any(so_far.total.value, so_far.mean.value)
        error = jnp.sqrt(jnp.mean((found - jnp.asarray(self.truth, found.dtype)) ** 2))
        return error.astype(so_far.types.dtype)


def mean_error(of: Callable[[Any], Any], truth: ArrayLike | Sequence[float]) -> Observer:
    r"""The root mean squared error of mean predictions,

    .. math:: \Bigl( \frac1m \sum_i \bigl(ν_N(g)_i - y_i\bigr)^2 \Bigr)^{1/2} .

    In `levymc.iterate`, that of the mean so far.

    Args:
        of: g, a function of a position that returns an array of numbers, a prediction each.
        truth: y, an array of the same shape.
    """
    return MeanError(of, np.array(truth))  # a copy: who changes theirs changes no program


class SpreadSoFar(NamedTuple):
    """The weighted mean, that of squares about it, and Σ η_n; `type` is as those of `MeanSoFar`."""

    mean: _Summed
    variance: _Summed
    total: _Summed
    type: Array


@dataclass(frozen=True)
class Predictive(Observer):
    """See `predictive`."""

    of: Callable[[Any], Any]
    noise_variance: float
    width: float

    def init(self, position: Any) -> SpreadSoFar:
        shape = _shape("predictive", self.of, position)
        each = _nothing(shape.shape, shape.dtype)
        return SpreadSoFar(each, each, _nothing((), shape.dtype), jnp.zeros((), shape.dtype))

    def update(
        self, so_far: SpreadSoFar, position: Any, weight: Any, info: Any = None
    ) -> SpreadSoFar:
        total, share = _with_share(so_far.total, weight)
        values = jnp.asarray(self.of(position), so_far.mean.value.dtype)
        mean = _moved(so_far.mean, values, share)
        square = (values - so_far.mean.value) * (values - mean.value)
        variance = _moved(so_far.variance, square, share)
        return _if_seen(weight, SpreadSoFar(mean, variance, total, so_far.type), so_far)

    def finish(self, so_far: SpreadSoFar) -> dict[str, Any]:
        mean = _if_any(so_far.total.value, so_far.mean.value)
        variance = jnp.maximum(so_far.variance.value, 0)  # to rounding
        half = self.width * jnp.sqrt(variance + self.noise_variance)
        found = {
            "mean": mean,
            "deviation": _if_any(so_far.total.value, jnp.sqrt(variance)),
            "low": mean - half,
            "high": mean + half,
        }
        return {name: value.astype(so_far.type.dtype) for name, value in found.items()}


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
        of: g, a function of a position that returns an array of numbers, a prediction each.
        noise_variance: σ² ≥ 0 of a new observation about its prediction.
        level: probability of the interval, in (0, 1).

    Returns:
        An observer of {"mean", "deviation" (of g(X) alone), "low", "high"}.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> observer = levymc.observe.predictive(lambda x: x, noise_variance=1.0, level=0.9)
        >>> so_far = observer.init(jnp.zeros(()))
        >>> for value in (1.0, 3.0):
        ...     so_far = observer.update(so_far, jnp.asarray(value), 0.1)
        >>> {name: round(float(value), 3) for name, value in observer.finish(so_far).items()}
        {'mean': 2.0, 'deviation': 1.0, 'low': -0.326, 'high': 4.326}

    References: [west1979] for the variance in one pass.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie in (0, 1), got {level}. Such as 0.9.")
    check_real("noise_variance", noise_variance, "It is that of a new observation.")
    if noise_variance < 0:
        raise ValueError(f"`noise_variance` must not be negative, got {noise_variance}.")
    return Predictive(of, float(noise_variance), NormalDist().inv_cdf((1 + level) / 2))


def _counted(so_far: Array, bins: Array, values: Array, weight: Any) -> Array:
    """The weights of bins with those of values in them; NaN is in none, and spoils them all."""
    step = jnp.asarray(weight, so_far.dtype)
    steps = jnp.where(jnp.isnan(values) & (step > 0), jnp.nan, step)
    rows = so_far.reshape(bins.size, -1)
    added = rows.at[jnp.arange(bins.size), jnp.ravel(bins)].add(jnp.ravel(steps))
    return added.reshape(so_far.shape)


@dataclass(frozen=True)
class Quantiles(Observer):
    """See `quantiles`."""

    of: Callable[[Any], Any]
    levels: tuple[float, ...]
    relative_error: float
    smallest: float
    largest: float

    @property
    def width(self) -> float:
        return math.log((1 + self.relative_error) / (1 - self.relative_error))

    @property
    def num_bins(self) -> int:
        return math.ceil(math.log(self.largest / self.smallest) / self.width)

    def place(self, values: Array) -> Array:
        """The bin: `num_bins` is that of zero, those of negative values come before it."""
        smallest, num_bins = self.smallest, self.num_bins
        # Not the logarithm of a ratio, which may overflow where no size does.
        above = jnp.log(jnp.maximum(jnp.abs(values), smallest)) - math.log(smallest)
        size = jnp.floor(above / self.width)
        magnitude = jnp.minimum(size, num_bins - 1).astype(jnp.int32) + 1
        signed = jnp.sign(values).astype(jnp.int32) * magnitude
        return num_bins + jnp.where(jnp.abs(values) >= smallest, signed, 0)

    def init(self, position: Any) -> Array:
        values = _shape("quantiles", self.of, position)
        wide = jnp.promote_types(values.dtype, jnp.float32)  # bins reach beyond sixteen bits
        return jnp.zeros((*values.shape, 2 * self.num_bins + 1), wide)

    def update(self, so_far: Array, position: Any, weight: Any, info: Any = None) -> Array:
        values = jnp.asarray(self.of(position), so_far.dtype)
        return _counted(so_far, self.place(values), values, weight)

    def finish(self, so_far: Array) -> Array:
        number = np.arange(1, self.num_bins + 1)
        # As far from both bounds, relative to them.
        middles = np.exp(math.log(self.smallest) + number * self.width) * (1 - self.relative_error)
        values = jnp.asarray(np.concatenate([-middles[::-1], [0.0], middles]), so_far.dtype)
        # Bins in which there is nothing are none to choose from: sums up to them are equal to those
        # before them only to rounding.
        cumulative = jnp.where(so_far == 0, -1, jnp.cumsum(so_far, axis=-1))
        total = jnp.max(cumulative, axis=-1, keepdims=True)
        wanted = jnp.asarray(self.levels, so_far.dtype) * total
        reached = jnp.argmax(cumulative[..., None, :] >= wanted[..., None], axis=-1)
        return _if_any(total, values[reached])


def quantiles(
    probabilities: ArrayLike | Sequence[float],
    of: Callable[[Any], Any] = itself,
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
        of: a function of a position that returns an array of numbers; the position itself, which
            must then be one array, if not given.
        relative_error: ε, in (0, 0.5).
        smallest, largest: the sizes between which ε holds.

    References: [masson2019].  Departures: weights; bins for a range that is given.
    """
    levels = tuple(float(p) for p in np.ravel(np.asarray(probabilities)))
    for level in levels:
        check_interval("probabilities", level, 0.0, 1.0, includes_low=False, remedy="Such as 0.9.")
    check_interval("relative_error", relative_error, 0.0, 0.5, includes_low=False, remedy="0.02.")
    check_positive("smallest", smallest, "Smaller sizes count as zero.")
    check_positive("largest", largest / smallest - 1, "It must be more than `smallest`.")
    return Quantiles(of, levels, float(relative_error), float(smallest), float(largest))


@dataclass(frozen=True)
class Histogram(Observer):
    """See `histogram`."""

    of: Callable[[Any], Any]
    edges: tuple[float, ...]

    def init(self, position: Any) -> Array:
        values = _shape("histogram", self.of, position)
        wide = jnp.promote_types(values.dtype, jnp.float32)  # sixteen bits count to 256, or 2048
        return jnp.zeros((*values.shape, len(self.edges) + 1), wide)

    def update(self, so_far: Array, position: Any, weight: Any, info: Any = None) -> Array:
        values = jnp.asarray(self.of(position), so_far.dtype)
        bins = jnp.searchsorted(jnp.asarray(self.edges, values.dtype), values, "right")
        return _counted(so_far, bins, values, weight)

    def finish(self, so_far: Array) -> Array:
        total = jnp.sum(so_far, axis=-1, keepdims=True)
        return _if_any(total, so_far / jnp.where(total > 0, total, 1))


def histogram(edges: ArrayLike | Sequence[float], of: Callable[[Any], Any] = itself) -> Observer:
    """The share of the weight in each bin; the first and the last are those beyond the edges.

    Not valid when: in float32, beyond some 10⁷ steps, when a bin no longer grows.

    Args:
        edges: of the bins, increasing; a value on an edge belongs to the bin above it.
        of: a function of a position that returns an array of numbers; the position itself, which
            must then be one array, if not given.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        >>> observe = {"halves": levymc.observe.histogram([0.0])}
        >>> result = levymc.sample(
        ...     walk, jax.random.key(0), jnp.zeros(4), 500, observe=observe, progress=False
        ... )
        >>> result.observed["halves"].shape
        (4, 2)
    """
    bounds = np.ravel(np.asarray(edges, float))
    check_real("edges", bounds, "The bins beyond the first and the last are there anyway.")
    if bounds.size == 0 or np.any(np.diff(bounds) <= 0):
        raise ValueError(f"`edges` must increase, got {edges!r}. Such as [-1.0, 0.0, 1.0].")
    return Histogram(of, tuple(bounds.tolist()))


class HopsSoFar(NamedTuple):
    """The side where the chain was last (-1, 1, or 0 for neither yet), and how often it changed."""

    side: Array
    changes: Array


@dataclass(frozen=True)
class Hops(Observer):
    """See `hops`."""

    low: float
    high: float
    of: Callable[[Any], Any]

    def init(self, position: Any) -> HopsSoFar:
        _shape("hops", self.of, position)
        values = self.of(position)
        return HopsSoFar(self._side(values, 0), jnp.zeros(jnp.shape(values), jnp.int32))

    def _side(self, values: Any, otherwise: Any) -> Array:
        left, right = jnp.int32(-1), jnp.int32(1)
        return jnp.where(values < self.low, left, jnp.where(values > self.high, right, otherwise))

    def update(self, so_far: HopsSoFar, position: Any, weight: Any, info: Any = None) -> HopsSoFar:
        side = jnp.where(weight > 0, self._side(self.of(position), so_far.side), so_far.side)
        has_changed = (side != so_far.side) & (so_far.side != 0)
        return HopsSoFar(side, so_far.changes + has_changed)

    def finish(self, so_far: HopsSoFar) -> Array:
        return so_far.changes


def hops(low: float, high: float, of: Callable[[Any], Any] = itself) -> Observer:
    """How often a chain went from below `low` to above `high`, or back.

    What happens between the two counts for neither side, so that a chain which hesitates on a
    barrier does not hop.

    Args:
        low, high: the edges of the two sides, low ≤ high.
        of: a function of a position that returns an array of numbers; the position itself, which
            must then be one array, if not given.
    """
    check_real("low", (low, high), "The sides are those below `low` and above `high`.")
    if low > high:
        raise ValueError(f"`low` must be at most `high`, got {low} and {high}. Exchange them.")
    return Hops(float(low), float(high), of)


@dataclass(frozen=True)
class Divergences(Observer):
    """See `divergences`."""

    def init(self, position: Any) -> Array:
        return jnp.int32(0)

    def update(self, so_far: Array, position: Any, weight: Any, info: Any = None) -> Array:
        is_divergent = getattr(info, "is_divergent", jnp.bool_(False))
        return so_far + (is_divergent & (weight > 0))

    def finish(self, so_far: Array) -> Array:
        return so_far


def divergences() -> Observer:
    """How many of the observed steps diverged: ours would have left the finite numbers or the
    support, and were not made.
    """
    return Divergences()
