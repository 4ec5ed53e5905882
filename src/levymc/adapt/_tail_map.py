r"""A map that turns a normal law into one like the target: skew, with tails as heavy as its own."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_floating, check_real
from levymc._trees import module
from levymc.run import Result

from ._turn import unmixing

ITERATIONS = 40  # of Newton's method inside brackets, which needs about ten
LEVELS = np.arange(0.4, 3.2, 0.3)  # normal scores of the quantiles that a fit compares
RADIAL_LEVELS = np.arange(-1.7, 3.2, 0.3)
FEWEST_BEYOND = 6  # draws beyond a quantile, for it to count
SKEWS = np.linspace(-0.95, 0.95, 39)
LEAST_TAIL, HEAVIEST_TAIL = 0.04, 1.5  # below the first it is noise: then none
RIDGE, RIDGE_DRAWS = 0.15, 200.0
SCATTER_ITERATIONS = 50
FEWEST_TO_HALVE, NUM_BLOCKS = 40, 40
MOST_TO_TURN = 50  # coordinates, as the time it takes grows with their third power
KINDS = ("linear", "coordinatewise", "elliptical", "turned")


@module()
class TailMap:
    r"""From w of about normal law to the position x, axis by axis after a linear part,

    .. math:: x = μ + Q\, (s ∘ H(y)), \quad y = b + L w\, e^{h_r |w|^2 / 2}, \quad
       H(y) = \bigl(y + κ(\sqrt{1 + y^2} - 1)\bigr) e^{h_± y^2 / 2},

    h₊ for y > 0 and h₋ for y < 0.  It is smooth and increasing for |κ| < 1 and h ≥ 0, so that
    whatever its numbers are, a sampler of w that accounts for the Jacobian is exact in x.

    location, scale: μ and s > 0.  upper, lower: h₊ and h₋, the tails.  skew: κ.  shift: b.
    factor: L, lower triangular.  radial: h_r.  turn: Q, whose columns are the axes, with a
    determinant of ±1, so that it has no part in the Jacobian's.  All kinds of map have the same
    structure, and one compiled program serves them.
    """

    location: Any
    scale: Any
    upper: Any
    lower: Any
    skew: Any
    shift: Any
    factor: Any
    radial: Any
    turn: Any

    def forward(self, w: Array) -> tuple[Array, Array]:
        """The position of a vector w, and the logarithm of the Jacobian's determinant."""
        return _forward(self.cast(w.dtype), w, jnp)

    def inverse(self, x: Array) -> Array:
        """The w of a position, by Newton's method inside brackets."""
        return _inverse(self.cast(x.dtype), x, jnp)

    def on_host(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`forward` of the rows of a matrix, by NumPy in double precision."""
        return _forward(self, w, np)

    def on_host_inverse(self, x: np.ndarray) -> np.ndarray:
        """`inverse` of the rows of a matrix, by NumPy in double precision."""
        return _inverse(self, x, np)

    def cast(self, dtype: Any) -> "TailMap":
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), self)


class Fitted(NamedTuple):
    """A map, its kind, and by how many nats a draw it beats the linear one, fitted to the same.

    The gain is the best sign of heavy tails: about 20 for ten Cauchy coordinates, 0 for a target
    like a normal law.
    """

    map: TailMap
    kind: str
    gain: float


def identity(size: int) -> TailMap:
    """The map that changes nothing, of so many coordinates."""
    one, nothing = np.ones(size), np.zeros(size)
    straight, none = np.eye(size), np.zeros(())
    return TailMap(nothing, one, nothing, nothing, nothing, nothing, straight, none, straight)


def linear(location: Any, covariance: Any) -> TailMap:
    """x = μ + L w, L Lᵀ the covariance: a dense metric."""
    factor = np.linalg.cholesky(np.asarray(covariance, np.float64))
    return _replace(identity(len(factor)), location=np.asarray(location), factor=factor)


def tail_map(draws: Any, *, kinds: tuple[str, ...] = KINDS) -> Fitted:
    r"""Fit a `TailMap` to draws, and choose its kind.

    - "linear": mean and covariance, the dense metric of others' NUTS;
    - "coordinatewise": the median; scale, skew and tails of each coordinate by regression of its
      quantiles on those of a normal law; then mean and covariance of y;
    - "elliptical": the median and Tyler's scatter; the tail by regression of the radii's quantiles;
    - "turned": coordinatewise along other axes, those of independent components with heavy tails,
      in up to 50 dimensions.

    The one under which the draws have the highest mean log density is taken, if it beats the linear
    one by 0.05 + 0.01 d, and for most of the draws that it was not fitted to; the turned one has to
    beat the others so.  An h that is too small is safe: any h > 0 turns a power tail into a normal
    one.

    Not valid when: the draws are of several modes that are far apart, or of a funnel, whose width
    depends on a coordinate: no map of this kind straightens it.

    Args:
        draws: a `Result`, or a pytree of arrays with the axes (chain, draw, …).
        kinds: those to choose from; one alone is taken whatever it gains.

    Raises:
        ValueError, TypeError: draws that are not finite, or too few.

    Examples:
        >>> import numpy as np
        >>> from levymc import adapt
        >>> draws = np.random.default_rng(0).standard_cauchy((4, 500, 3))
        >>> fitted = adapt.tail_map(draws)
        >>> fitted.kind, bool(fitted.gain > 1)
        ('coordinatewise', True)

    References: [tyler1987], the scatter; [ono2011], the axes.
    Departures: not in the papers.  H is Tukey's g-and-h law with a skew that is bounded.
    """
    flat = flat_draws(draws)
    if len(flat) < 8:
        raise ValueError(f"`draws` must be at least 8, got {len(flat)}. Run the chains longer.")
    return fit(flat, kinds)


def flat_draws(draws: Any) -> np.ndarray:
    """Draws of all chains as vectors of double precision, in the order of ravel_pytree."""
    positions = draws.positions if isinstance(draws, Result) else draws
    check_floating("draws", positions)
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(positions)]
    if not leaves or any(leaf.ndim < 2 or 0 in leaf.shape for leaf in leaves):
        raise ValueError(
            f"`draws` must have chains and draws, got shapes {[leaf.shape for leaf in leaves]}. "
            "Give a Result, or arrays with the axes (chain, draw, …); for one chain, x[None]."
        )
    check_real("draws", leaves, "Leave out what has diverged.")
    return np.concatenate([leaf.reshape(math.prod(leaf.shape[:2]), -1) for leaf in leaves], axis=1)


def fit(
    flat: np.ndarray, kinds: tuple[str, ...] = KINDS, covariance: np.ndarray | None = None
) -> Fitted:
    """The same of vectors; two maps of a covariance that is given are more to choose from.

    One ("curvature") is linear, the other ("principal") coordinatewise along its principal axes.
    Tails are accepted if they tell more of most draws that they were not fitted to than straight
    lines do: in many coordinates every fit knows the draws that it has seen better than the law.
    Most, not the mean, which a few draws far out decide; which tails, all draws decide.
    """
    halves = seen, unseen = _halves(flat)
    straight: dict[str, Callable[[np.ndarray], TailMap]] = {"linear": _fit_linear}
    if covariance is not None:
        straight["curvature"] = lambda draws: linear(draws.mean(axis=0), covariance)
    values = {kind: log_density(make(seen), unseen) for kind, make in straight.items()}
    chosen = max(values, key=lambda kind: float(np.median(values[kind] - values["linear"])))
    base = _mean_log(_fit_linear(flat), flat)
    best = _Judged(Fitted(straight[chosen](flat), chosen, 0.0), values[chosen])
    if "linear" not in kinds:
        bent = [_bent(BENT, kind, flat, base) for kind in kinds]
        return max(filter(None, bent), key=lambda one: one.gain, default=best.fitted)
    margin = 0.05 + 0.01 * flat.shape[1]
    fits = {kind: BENT[kind] for kind in kinds if kind in BENT}
    turned = fits.pop("turned", None)
    if covariance is not None and turned is not None:
        fits["principal"] = partial(_fit_along, axes=principal_axes(covariance))
    for kind in fits:
        found = _bent(fits, kind, flat, base, max(best.fitted.gain, margin))
        best = _judged(fits, found, halves, values[chosen]) or best
    if turned is not None and best.fitted.kind in fits:
        # It has more numbers than the others, and is slow to fit: only where they see tails.
        found = _bent(BENT, "turned", flat, base, best.fitted.gain + margin)
        best = _judged(BENT, found, halves, best.on_unseen) or best
    return best.fitted


def principal_axes(covariance: np.ndarray) -> np.ndarray:
    """The eigenvectors as columns, each as long as its standard deviation.

    Independent heavy tails reach far along axes of their own.  Where their scales differ, those are
    the eigenvectors; along the columns of any other root of the covariance one leaves all of them.
    """
    variances, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(variances)


Fits = dict[str, Callable[[np.ndarray], TailMap | None]]


class _Judged(NamedTuple):
    """What is fitted to all draws; and, to half of them, its log densities at the others."""

    fitted: Fitted
    on_unseen: np.ndarray


def _bent(
    fits: Fits, kind: str, flat: np.ndarray, base: float, least: float = -math.inf
) -> Fitted | None:
    """The map of that kind, if it gains more than the least."""
    found = fits[kind](flat)
    gain = -math.inf if found is None else _mean_log(found, flat) - base
    return Fitted(found, kind, gain) if found is not None and gain > least else None


def _judged(
    fits: Fits, found: Fitted | None, halves: tuple[np.ndarray, np.ndarray], others: np.ndarray
) -> _Judged | None:
    """The same, if it tells more than others of most draws that it was not fitted to."""
    half = None if found is None else fits[found.kind](halves[0])
    if found is None or half is None:
        return None
    on_unseen = log_density(half, halves[1])
    return _Judged(found, on_unseen) if np.median(on_unseen - others) > 0 else None


def _mean_log(fitted: TailMap, flat: np.ndarray) -> float:
    return float(np.mean(log_density(fitted, flat)))


def _halves(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws to fit to, and others to judge by: blocks in turn, so that both are of all chains."""
    if len(flat) < FEWEST_TO_HALVE:
        return flat, flat
    block = np.arange(len(flat)) * NUM_BLOCKS // len(flat)
    return flat[block % 2 == 0], flat[block % 2 == 1]


def log_density(fitted: TailMap, flat: np.ndarray) -> np.ndarray:
    """log density at each of the vectors of x = T(w), w normal."""
    w = _inverse(fitted, flat, np)
    _, log_jacobian = _forward(fitted, w, np)
    return -0.5 * np.sum(w**2 + math.log(2 * math.pi), axis=-1) - log_jacobian


# The map, by NumPy or JAX (xp): vectors along the last axis.


def _bend(y: Any, skew: Any, xp: Any) -> tuple[Any, Any]:
    """1 + κ y/(√(1+y²)+1), by which y is multiplied, and √(1+y²)."""
    root = xp.sqrt(1 + y * y)
    return 1 + skew * y / (root + 1), root


def _forward(m: TailMap, w: Any, xp: Any) -> tuple[Any, Any]:
    square = xp.sum(w * w, axis=-1, keepdims=True)
    y = m.shift + (w * xp.exp(m.radial * square / 2)) @ m.factor.T
    tail = xp.where(y > 0, m.upper, m.lower)
    bend, root = _bend(y, m.skew, xp)
    x = m.location + (m.scale * y * bend * xp.exp(tail * y * y / 2)) @ m.turn.T
    slope = 1 + m.skew * y / root + tail * y * y * bend
    constant = xp.sum(xp.log(m.scale)) + xp.sum(xp.log(xp.diagonal(m.factor)))
    by_radius = m.radial * square[..., 0]
    log_jacobian = (
        constant
        + xp.sum(tail * y * y / 2 + xp.log(slope), axis=-1)
        + w.shape[-1] * by_radius / 2
        + xp.log1p(by_radius)
    )
    return x, log_jacobian


def _inverse(m: TailMap, x: Any, xp: Any) -> Any:
    z = xp.linalg.solve(m.turn, (x - m.location).T).T / m.scale
    y = xp.sign(z) * _unbend(xp.abs(z), xp.where(z > 0, m.upper, m.lower), m.skew * xp.sign(z), xp)
    v = _solve(m.factor, y - m.shift, xp)
    radius = xp.sqrt(xp.sum(v * v, axis=-1, keepdims=True))
    shrunk = _unbend(radius, m.radial, xp.zeros_like(m.radial), xp)
    return v * xp.where(radius > 0, shrunk / xp.where(radius > 0, radius, 1), 1)


def _solve(factor: Any, y: Any, xp: Any) -> Any:
    if xp is np:
        return y @ np.linalg.inv(factor).T  # of many rows: a product is ten times as fast
    return jax.scipy.linalg.solve_triangular(factor, y, lower=True)


def _unbend(z: Any, tail: Any, skew: Any, xp: Any) -> Any:
    """The a ≥ 0 with a (1 + κ a/(√(1+a²)+1)) e^{h a²/2} = z ≥ 0.

    Newton's method in log a, with the residual as a logarithm of a quotient, so that it is right to
    rounding; what leaves the bracket is bisected.
    """
    known = xp.where(z > 0, z, 1)
    most = known / (1 - xp.abs(skew))
    by_tail = xp.sqrt(2 * xp.maximum(xp.log(most), 0) / xp.where(tail > 0, tail, 1))
    high = xp.where(tail > 0, xp.minimum(most, xp.maximum(by_tail, 1)), most) * 1.0001
    low = xp.zeros_like(high)

    def refine(bracket: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, low, high = bracket
        bend, root = _bend(a, skew, xp)
        residual = xp.log(a / known * bend) + tail * a * a / 2
        slope = 1 + skew * a / ((root + 1) * root * bend) + tail * a * a
        low, high = xp.where(residual < 0, a, low), xp.where(residual < 0, high, a)
        newton = a * xp.exp(-residual / slope)
        is_inside = (newton >= low) & (newton <= high)
        return xp.where(is_inside, newton, (low + high) / 2), low, high

    bracket = (high, low, high)
    if xp is np:
        for _ in range(ITERATIONS):
            previous, bracket = bracket[0], refine(bracket)
            if np.allclose(previous, bracket[0], rtol=1e-15, atol=0):
                break
    else:
        bracket = jax.lax.fori_loop(0, ITERATIONS, lambda _, state: refine(state), bracket)
    return xp.where(z > 0, bracket[0], 0)


# Fits, in NumPy: nothing is compiled.


def _replace(m: TailMap, **changes: Any) -> TailMap:
    return TailMap(**{**m.__dict__, **changes})


def _share(count: int, size: int) -> float:
    """How far an empirical covariance is trusted, beside its diagonal."""
    return count / (count + 5 + size / 2)


def _shrunk_covariance(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance, whose correlations are shrunk towards none."""
    count, size = flat.shape
    mean = flat.mean(axis=0)
    spread = np.std(flat, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    standard = (flat - mean) / spread
    share = _share(count, size)
    correlation = share * (standard.T @ standard) / count
    np.fill_diagonal(correlation, 1.0)
    return mean, spread[:, None] * correlation * spread


def _fit_linear(flat: np.ndarray) -> TailMap:
    return linear(*_shrunk_covariance(flat))


def _fit_coordinates(flat: np.ndarray) -> TailMap:
    count, size = flat.shape
    median, log_spreads, weights = _half_spreads(flat)
    regression = _Tails(log_spreads, weights, RIDGE * math.sqrt(RIDGE_DRAWS / count))
    losses, fits = zip(*(regression.solve(skew) for skew in SKEWS), strict=True)
    best = np.argmin(losses, axis=0)
    chosen = np.take_along_axis(np.array(fits), best[None, None, :], axis=0)[0]
    curve = _replace(
        identity(size),
        location=median,
        scale=np.exp(chosen[0]),
        upper=chosen[1],
        lower=chosen[2],
        skew=SKEWS[best],
    )
    mean, covariance = _shrunk_covariance(_inverse(curve, flat, np))
    return _replace(curve, shift=mean, factor=np.linalg.cholesky(covariance))


def _half_spreads(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Medians; log of the distances of quantiles from them over normal ones; and weights.

    The axes are (side, level, coordinate); the weight is the inverse variance of the logarithm.
    """
    from scipy import special  # only here, as it takes a third of a second

    count = len(flat)
    median = np.median(flat, axis=0)
    levels = special.ndtr(LEVELS)
    above = np.quantile(flat, levels, axis=0) - median
    below = median - np.quantile(flat, 1 - levels, axis=0)
    spreads = np.array([above, below])
    density = np.exp(-(LEVELS**2) / 2) / math.sqrt(2 * math.pi)
    precision = (density * LEVELS) ** 2 / (levels * (1 - levels))
    is_known = (count * (1 - levels) >= FEWEST_BEYOND)[None, :, None] & (spreads > 0)
    # A coordinate that hardly moves has no spread at all: then it is taken as 1.
    spreads = np.where(is_known, spreads, LEVELS[:, None])
    weights = np.where(is_known, precision[:, None], 0.0)
    weights[:, 0] = np.maximum(weights[:, 0], 1e-9)
    return median, np.log(spreads / LEVELS[:, None]), weights


class _Tails(NamedTuple):
    """Least squares of log half-spreads on log s and h± z²/2, for a given skew."""

    log_spreads: np.ndarray
    weights: np.ndarray
    ridge: float

    def solve(self, skew: float) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each coordinate, and (log s, h₊, h₋)."""
        sides = np.array([1.0, -1.0])[:, None, None]
        score = (LEVELS**2 / 2)[:, None]
        bend = 1 + sides * skew * (LEVELS / (np.sqrt(1 + LEVELS**2) + 1))[:, None]
        values, weights = self.log_spreads - np.log(bend), self.weights
        sums = [np.sum(weights * score**power, axis=1) for power in range(3)]
        first, second = np.sum(weights * values, axis=1), np.sum(weights * values * score, axis=1)
        stiff = sums[2] + self.ridge
        level = np.sum(first - second * sums[1] / stiff, axis=0) / np.sum(
            sums[0] - sums[1] ** 2 / stiff, axis=0
        )
        tails = _clipped((second - level * sums[1]) / stiff)
        level = np.sum(first - tails * sums[1], axis=0) / np.sum(sums[0], axis=0)
        residual = values - level - tails[:, None] * score
        loss = np.sum(weights * residual**2, axis=(0, 1)) + self.ridge * np.sum(tails**2, axis=0)
        return loss, np.array([level, *tails])


def _clipped(tails: np.ndarray) -> np.ndarray:
    return np.where(tails < LEAST_TAIL, 0.0, np.minimum(tails, HEAVIEST_TAIL))


def _fit_radius(flat: np.ndarray) -> TailMap | None:
    """None where the tail is no heavier than that of a normal law, or there is one coordinate."""
    from scipy import special, stats  # only here, as it takes a second

    count, size = flat.shape
    if size < 2:
        return None
    median = np.median(flat, axis=0)
    factor = np.linalg.cholesky(_tyler(flat - median))
    radii = np.linalg.norm(_solve(factor, flat - median, np), axis=1)
    levels = special.ndtr(RADIAL_LEVELS)
    is_known = count * np.minimum(levels, 1 - levels) >= FEWEST_BEYOND
    levels = levels[is_known]
    normal = stats.chi.ppf(levels, size)
    precision = (stats.chi.pdf(normal, size) * normal) ** 2 / (levels * (1 - levels))
    values = np.log(np.maximum(np.quantile(radii, levels), 1e-300) / normal)
    # Per coordinate, so that threshold and ridge mean the same in all dimensions.
    score = normal**2 / (2 * size)
    ridge = RIDGE * math.sqrt(RIDGE_DRAWS / count)
    means = [float(np.average(part, weights=precision)) for part in (values, score)]
    covariance = np.sum(precision * (values - means[0]) * (score - means[1]))
    slope = covariance / (np.sum(precision * (score - means[1]) ** 2) + ridge)
    if not slope >= LEAST_TAIL:
        return None
    tail = min(slope / size, HEAVIEST_TAIL)
    scale = math.exp(means[0] - tail * size * means[1])
    return _replace(identity(size), location=median, factor=scale * factor, radial=np.asarray(tail))


def _tyler(centred: np.ndarray) -> np.ndarray:
    """Tyler's scatter: the shape of an elliptical law, however heavy its tails are.

    Correlations are shrunk as a covariance's; its size is arbitrary.
    """
    count, size = centred.shape
    spread = np.median(np.abs(centred), axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    standard, share = centred / spread, _share(count, size)
    standard = standard[np.any(standard != 0, axis=1)]
    shape = np.eye(size)
    for _ in range(SCATTER_ITERATIONS):
        solved = _solve(np.linalg.cholesky(shape), standard, np)
        weighted = standard / np.sum(solved**2, axis=1)[:, None]
        moved = share * size * (standard.T @ weighted) / len(standard) + (1 - share) * np.eye(size)
        moved *= size / np.trace(moved)
        change, shape = np.max(np.abs(moved - shape)), moved
        if change < 1e-6:
            break
    return spread[:, None] * shape * spread


def _fit_turned(flat: np.ndarray) -> TailMap | None:
    """None in too many coordinates, or one."""
    count, size = flat.shape
    if not 1 < size <= MOST_TO_TURN:
        return None
    median = np.median(flat, axis=0)
    factor = np.linalg.cholesky(_tyler(flat - median))
    whitened = _solve(factor, flat - median, np)
    return _fit_along(flat, factor @ np.linalg.inv(unmixing(whitened, _share(count, size))))


def _fit_along(flat: np.ndarray, axes: np.ndarray) -> TailMap:
    """Coordinatewise along the columns."""
    axes = axes / math.exp(np.linalg.slogdet(axes)[1] / len(axes))
    median = np.median(flat, axis=0)
    along = _fit_coordinates(np.linalg.solve(axes, (flat - median).T).T)
    return _replace(along, location=median + axes @ along.location, turn=axes)


BENT: Fits = {
    "coordinatewise": _fit_coordinates,
    "elliptical": _fit_radius,
    "turned": _fit_turned,
}
