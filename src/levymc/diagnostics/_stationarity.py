r"""Whether draws and a drift belong together: the law of the draws kept by FLMC's diffusion."""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from levymc import drifts
from levymc._checks import check_alpha, check_count, check_interval, check_real, like
from levymc._settled import as_now
from levymc._trees import leaf_names
from levymc.drifts import LogDensity
from levymc.run import Result

from ._bumps import Bump
from ._draws import NOT_FINITE, at_points, coordinate_name, flat_chains, flat_function, variables
from ._evidence import FEWEST_DRAWS
from ._trend import largest_z, long_run_variance

# Between quantiles of the draws, from nearly all of them to a quarter.
LEVELS = ((0.02, 0.98), (0.02, 0.5), (0.25, 0.75), (0.5, 0.98), (0.1, 0.35), (0.65, 0.9))
NUM_BINS = 12
NUM_STRETCHES = 48
SMALLEST_CLUSTER = 0.04  # of the draws
EMPTIEST = 0.1  # of a bin's even share: where fewer draws are, the drift may be huge and unseen


class Balance(NamedTuple):
    """The balance of one test function.

    name: of the coordinate.  low, high: the bump's support, in the coordinate as far as the others
        do not predict it.
    residual: the mean of b g' - (-Δ)^{α/2} g over that of its terms' sizes.
    z: the mean in standard errors.
    """

    name: str
    low: float
    high: float
    residual: float
    z: float


@dataclass(frozen=True)
class Stationarity:
    """Balances of all test functions; true where the condition holds as far as can be told.

    balances: one for each coordinate and bump.
    false_alarm: the probability that draws of φ and its exact drift are blamed.
    """

    balances: tuple[Balance, ...]
    false_alarm: float

    @property
    def worst(self) -> Balance:
        return max(self.balances, key=lambda balance: abs(balance.z))

    @property
    def threshold(self) -> float:
        """The largest |z| that chance explains, by Bonferroni's bound."""
        return largest_z(self.false_alarm, len(self.balances))

    @property
    def p_value(self) -> float:
        """Of the worst balance, corrected for their number."""
        return min(1.0, len(self.balances) * math.erfc(abs(self.worst.z) / math.sqrt(2)))

    def __bool__(self) -> bool:
        return abs(self.worst.z) <= self.threshold

    def __str__(self) -> str:
        worst, count = self.worst, len(self.balances)
        seen = (
            f"the largest of {count} balances is {abs(worst.z):.1f} standard errors off "
            f"({worst.residual:+.2%} of its terms, {worst.name} from {worst.low:.4g} to "
            f"{worst.high:.4g}), with {self.threshold:.1f} allowed"
        )
        if self:
            return f"The stationarity condition holds: {seen}."
        return (
            f"The stationarity condition does not hold: {seen}.\n"
            "Either the draws are not of φ (compare with levymc.mafla), or the drift does not keep "
            "φ (compare with levymc.drifts.quadrature with `radius` or `center` and `scale` given)."
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


def stationarity(
    result: Any,
    logdensity_fn: LogDensity,
    alpha: Any,
    *,
    drift: Any = None,
    max_draws: Any = 4000,
    max_coordinates: Any = 10,
    false_alarm: Any = 1e-3,
) -> Stationarity:
    r"""Test on draws the condition under which FLMC's diffusion keeps φ, coordinate by coordinate:

    .. math:: E_φ\bigl[b_d(X)\, g'(X_d - m_d) - (-Δ)^{α/2} g\,(X_d - m_d)\bigr] = 0

    for smooth bumps g of compact support, (1 - u²)⁴, between quantiles of the draws, with m_d the
    best linear prediction of X_d from the other coordinates (it may be any function of them, as
    each coordinate's part of the generator keeps φ by itself).  Bumps that have gaps between
    draws inside are left out: there the drift is huge, and no draw sees it.

    It finds draws that are not of φ though the drift is right, such as FLA's; and of draws that are
    right, those of an exact algorithm, a drift that does not keep φ.  Wrong weights of modes are
    found as far as jumps between them are frequent: those into a mode must balance those out of it.

    Each mean is about normal around 0, with a variance estimated from the draws' autocorrelation;
    Bonferroni's bound over all bumps gives the false-alarm rate.  On normal draws, independent and
    autoregressive, 2 in 1000 were blamed at a nominal 1e-3.

    Not valid when: taken as a proof; or the draws are worth fewer than some hundred independent
    ones; or coordinates depend on each other in a way so far from linear that draws lie deep in
    the tails of the laws given the others: the drift's mean then converges slowly.  A drift that
    is wrong only where there are no draws is not seen.

    Args:
        result: draws, of any algorithm.
        logdensity_fn: log φ of one position, up to a constant.
        alpha: in (1, 2], one number or a pytree like the position.
        drift: a `levymc.drifts.Drift` or a function that gives the drift's values;
            `levymc.drifts.quadrature(logdensity_fn, alpha)` if not given.
        max_draws: of more, so many are used, evenly spaced.
        max_coordinates: of a position with more, so many are looked at, evenly spaced.
        false_alarm: in (0, 1), the rate at which right draws and drifts are blamed.

    Returns:
        A `Stationarity`: print it; it is true where the condition holds.

    Raises:
        ValueError, TypeError: an argument that is not what it should be; draws that are not
            finite, or so few, or so far apart, that no bump can be placed.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, numpy as np
        >>> from levymc import diagnostics
        >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
        >>> result = levymc.Result(draws, np.ones((4, 1000)), None)
        >>> normal = lambda x: -x * x / 2
        >>> bool(diagnostics.stationarity(result, normal, 1.3))
        True
        >>> wrong = levymc.drifts.leading_term(normal, 1.3)
        >>> bool(diagnostics.stationarity(result, normal, 1.3, drift=wrong))
        False

    References: [simsekli2017], theorem 1, is the condition.
    """
    if not isinstance(result, Result):
        raise TypeError(
            f"`result` must be a levymc Result, got {type(result).__name__}. "
            "Make one of positions, weights and info."
        )
    check_alpha(alpha)
    check_interval(
        "false_alarm", false_alarm, 0.0, 1.0, includes_low=False, remedy="1e-3 serves in general."
    )
    most = check_count("max_draws", max_draws, "It bounds the work.")
    axes_most = check_count("max_coordinates", max_coordinates, "It bounds the work.")
    used = drifts.quadrature(logdensity_fn, alpha) if drift is None else drifts.as_drift(drift)
    draws, weights = _evenly(result, most)
    slopes = _drift_at(result, used, draws)
    indices, names = _alphas(result, alpha), _names(result)
    axes = np.linspace(0, draws.shape[2] - 1, min(axes_most, draws.shape[2])).round().astype(int)
    balances = tuple(
        balance
        for axis in axes.tolist()
        for balance in _balances(
            names[axis], _unpredicted(draws, axis), slopes[..., axis], weights, indices[axis]
        )
    )
    if not balances:
        raise ValueError(
            "`result` must have draws between which bumps can be placed, got draws that are all "
            "equal or in clusters. Run the chains longer: levymc.diagnostics.check(result)."
        )
    return Stationarity(balances, float(false_alarm))


def _balances(
    name: str, values: np.ndarray, slopes: np.ndarray, weights: np.ndarray, alpha: float
) -> Iterator[Balance]:
    """One for each bump that fits between the draws."""
    share = weights / weights.mean()
    for bump in _bumps(values):
        low, high = bump.center - bump.width, bump.center + bump.width
        slope = bump.slope(values)
        inside = slope != 0  # elsewhere the drift may be infinite
        if not np.all(np.isfinite(slopes[inside])):
            yield Balance(name, low, high, np.inf, np.inf)
            continue
        pushed = share * slope * np.where(inside, slopes, 0.0)
        jumped = -share * bump.fractional_laplacian(values, alpha)
        terms = pushed + jumped
        error = math.sqrt(long_run_variance(terms) / terms.size)
        size = float(np.mean(np.abs(pushed)) + np.mean(np.abs(jumped)))
        if error > 0:
            mean = float(np.mean(terms))
            yield Balance(name, low, high, mean / size, mean / error)


def _bumps(values: np.ndarray) -> Iterator[Bump]:
    """Between quantiles of each cluster of draws, where draws are everywhere in between."""
    for cluster in _clusters(values.ravel()):
        for levels in LEVELS:
            low, high = np.quantile(cluster, levels)
            if low < high and _is_filled(np.histogram(cluster, NUM_BINS, (low, high))[0]).all():
                yield Bump((low + high) / 2, (high - low) / 2)


def _clusters(values: Float[np.ndarray, " draw"]) -> list[np.ndarray]:
    """The draws, cut where a stretch of their range is all but empty; only large parts."""
    low, high = np.quantile(values, LEVELS[0])
    if not low < high:
        return []
    counts, edges = np.histogram(values, NUM_STRETCHES, (low, high))
    is_filled = np.concatenate([[False], _is_filled(counts), [False]])
    ends = np.flatnonzero(np.diff(is_filled.astype(int))).reshape(-1, 2)
    parts = [values[(values >= edges[a]) & (values <= edges[b])] for a, b in ends]
    return [part for part in parts if len(part) > SMALLEST_CLUSTER * len(values)]


def _is_filled(counts: np.ndarray) -> np.ndarray:
    return counts >= max(EMPTIEST * counts.mean(), 1)


def _unpredicted(draws: np.ndarray, axis: int) -> Float[np.ndarray, "chain draw"]:
    """A coordinate without what the others predict of it, by least squares."""
    values, count = draws[..., axis], draws.shape[2]
    if count == 1 or values.size < 10 * count:
        return values
    others = np.delete(draws, axis, axis=2).reshape(-1, count - 1)
    others = others - others.mean(axis=0)
    slopes = np.linalg.lstsq(others, values.ravel() - values.mean(), rcond=None)[0]
    return values - (others @ slopes).reshape(values.shape)


def _evenly(result: Result, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws as vectors and their weights, at most so many of all chains together."""
    for name, leaf in variables(result).items():
        check_real(f"result.positions[{name}]", leaf, NOT_FINITE)
    step = max(1, math.ceil(result.num_chains * result.num_draws / most))
    draws = flat_chains(result)[:, ::step]
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"`result` must leave at least {FEWEST_DRAWS} draws of each chain, got "
            f"{draws.shape[1]}. Run the chains longer, or raise `max_draws`."
        )
    return draws, np.asarray(result.weights[:, ::step], np.float64)


def _drift_at(result: Result, drift: drifts.Drift, draws: np.ndarray) -> np.ndarray:
    one = jax.tree.map(lambda leaf: np.asarray(leaf[0, 0]), result.positions)
    now = as_now(drift, one)
    of_vectors = flat_function(result, lambda position: ravel_pytree(now(position))[0])
    return at_points(*of_vectors)(draws.reshape(-1, draws.shape[2])).reshape(draws.shape)


def _alphas(result: Result, alpha: Any) -> list[float]:
    """One for each coordinate."""
    one = jax.tree.map(lambda leaf: np.asarray(leaf[0, 0], np.float64), result.positions)
    return ravel_pytree(like("alpha", alpha, one))[0].tolist()


def _names(result: Result) -> list[str]:
    return [
        coordinate_name(name, place)
        for name, leaf in zip(
            leaf_names(result.positions), jax.tree.leaves(result.positions), strict=True
        )
        for place in np.ndindex(leaf.shape[2:])
    ]
