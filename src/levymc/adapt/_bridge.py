r"""The evidence of a model, ∫ φ, by bridge sampling through a tail map."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from levymc._checks import check_count, check_key, check_scalar_output
from levymc._room import keeps_programs
from levymc._settled import settled
from levymc.drifts import LogDensity
from levymc.run import Result

from ._tail_map import TailMap, fit, flat_draws

DEGREES = 8.0  # of freedom of the proposal: heavier than a normal law, so that weights are bounded
AT_ONCE = 256  # points
ITERATIONS = 1000
TOLERANCE = 1e-10
FEWEST_DRAWS = 8  # of a chain
MOST_TO_FIT = 4000  # draws: more would not change the map
MOST_DRAWS = 4000  # of the posterior, and as many of the proposal


class Evidence(NamedTuple):
    """log ∫ φ, its standard error, and how many evaluations of φ it took."""

    value: float
    standard_error: float
    evaluations: int


def log_evidence(
    logdensity_fn: LogDensity,
    key: Any,
    draws: Any,
    *,
    logdensities: Any = None,
    most_draws: int = MOST_DRAWS,
) -> Evidence:
    r"""Bridge sampling between draws of the posterior and of a normalised law like it,

    .. math:: \hat Z = \frac{\frac1{N_2} \sum_j l_{2j} / (s_1 l_{2j} + s_2 \hat Z)}
       {\frac1{N_1} \sum_i 1 / (s_1 l_{1i} + s_2 \hat Z)}, \qquad l = \frac{φ(T(w))\,|T'(w)|}{q(w)},

    iterated to its fixed point.  T is the tail map of the first half of each chain, by which the
    second half is compared with q, a t law with 8 degrees of freedom in w.  s₁ : s₂ are the shares
    of the effective numbers of draws.

    Not valid when: the draws have missed a mode; it is the evidence of what they have seen.  The
    standard error is that of large samples: distrust it above some 0.5.

    Args:
        logdensity_fn: log φ, of any pytree, with all its constants.
        key: a JAX random key, for draws of q.
        draws: a `Result`, or a pytree of arrays with the axes (chain, draw, …), of the exact law φ.
        logdensities: log φ at the draws, with the axes (chain, draw), if it is known, such as
            `result.info.logdensity` of `levymc.adapt.nuts`; it is evaluated otherwise.
        most_draws: use at most so many of the second halves, evenly thinned.

    Returns: `Evidence`, NaN with an infinite standard error where no draw of q meets the support.

    Raises:
        ValueError, TypeError: an argument outside its range; draws where φ is zero.

    Examples:
        >>> import jax, jax.numpy as jnp, numpy as np, levymc
        >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
        >>> found = levymc.adapt.log_evidence(
        ...     lambda x: -jnp.sum(x**2) / 2, jax.random.key(0), draws
        ... )
        >>> bool(abs(found.value - np.log(2 * np.pi)) < 5 * found.standard_error)
        True

    References: [meng1996], the optimal bridge; [fruhwirth2004], the standard error.
    Departures: the map, in the place of moments that heavy tails do not have.
    """
    key = check_key(key)
    most_draws = check_count("most_draws", most_draws, "Such as 4000.", least=FEWEST_DRAWS)
    positions = draws.positions if isinstance(draws, Result) else draws
    chains = _chains(positions)
    half = chains.shape[1] // 2
    first = chains[:, : half : -(-len(chains) * half // MOST_TO_FIT)]
    fitted = fit(first.reshape(-1, chains.shape[2])).map
    num_used = len(chains) * (chains.shape[1] - half)
    used = slice(half, None, -(-num_used // most_draws))
    points = chains[:, used]
    logdensity = _of_vectors(logdensity_fn, positions)
    flat = points.reshape(-1, chains.shape[2])
    if logdensities is None:
        values = logdensity(flat)
    else:
        values = _known(logdensities, chains.shape[:2])[:, used].ravel()
    ours = values + _log_jacobian_over_proposal(fitted, fitted.on_host_inverse(flat))
    if not np.all(np.isfinite(ours)):
        raise ValueError(
            f"`logdensity_fn` must be finite at the draws, got {ours[~np.isfinite(ours)][0]} at "
            "one. Give the density that they were drawn from."
        )
    w = _proposals(key, *flat.shape)
    theirs = logdensity(fitted.on_host(w)[0]) + _log_jacobian_over_proposal(fitted, w)
    # What is no number is no density: a proposal beyond the support has none.
    theirs = np.where(np.isnan(theirs), -np.inf, theirs)
    evaluations = len(theirs) + (len(ours) if logdensities is None else 0)
    if not np.any(np.isfinite(theirs)):
        return Evidence(math.nan, math.inf, evaluations)
    return Evidence(*bridge(ours.reshape(points.shape[:2]), theirs), evaluations)


def _chains(positions: Any) -> np.ndarray:
    """Draws as vectors, with the axes (chain, draw, coordinate)."""
    flat = flat_draws(positions)
    num_chains, num_draws = np.shape(jax.tree.leaves(positions)[0])[:2]
    if num_draws < FEWEST_DRAWS:
        raise ValueError(
            f"`draws` must have at least {FEWEST_DRAWS} draws a chain, got {num_draws}. "
            "Run the chains longer."
        )
    return flat.reshape(num_chains, num_draws, -1)


def _known(logdensities: Any, shape: tuple[int, ...]) -> np.ndarray:
    values = np.asarray(logdensities, np.float64)
    if values.shape != shape:
        raise ValueError(
            f"`logdensities` must have the shape {shape} of the draws, got {values.shape}. "
            "Give log φ at each of them."
        )
    return values


def _log_jacobian_over_proposal(fitted: TailMap, w: np.ndarray) -> np.ndarray:
    """log |T′(w)| / q(w), q the t law."""
    size = w.shape[1]
    constant = (
        math.lgamma((DEGREES + size) / 2)
        - math.lgamma(DEGREES / 2)
        - size / 2 * math.log(DEGREES * math.pi)
    )
    squares = np.sum(w**2, axis=1)
    return fitted.on_host(w)[1] - constant + (DEGREES + size) / 2 * np.log1p(squares / DEGREES)


def _proposals(key: Any, count: int, size: int) -> np.ndarray:
    """Draws of q, by NumPy: their random numbers come from the key's."""
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    normal = random.standard_normal((count, size))
    return normal / np.sqrt(random.chisquare(DEGREES, (count, 1)) / DEGREES)


def _of_vectors(logdensity_fn: LogDensity, positions: Any) -> Callable[[np.ndarray], np.ndarray]:
    """log φ of many vectors, some at a time."""
    one = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf[0, 0])), positions)
    check_scalar_output("logdensity_fn", logdensity_fn, one)
    flat, _ = ravel_pytree(one)
    leaves, structure = jax.tree.flatten(one)
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    compiled = _compiled(settled(logdensity_fn, one), structure, shapes)

    def at(points: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # far out: infinite then, and of no density
            narrow = points.astype(flat.dtype)
        return np.asarray(compiled(narrow), np.float64)

    return at


@keeps_programs
@lru_cache(maxsize=64)  # so that a second call with the same function compiles nothing
def _compiled(logdensity_fn: LogDensity, structure: Any, shapes: Any) -> Callable[..., Any]:
    one = jax.tree.unflatten(structure, [jnp.zeros(*kind) for kind in shapes])
    _, unflatten = ravel_pytree(one)
    return jax.jit(
        lambda points: jax.lax.map(
            lambda vector: logdensity_fn(unflatten(vector)), points, batch_size=AT_ONCE
        )
    )


def bridge(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """log Z and its standard error, of log ratios (chain, draw) at our draws, and at q's."""
    log_z, at_ours, at_theirs = bridged(ours, theirs)
    variance = np.var(at_theirs) / at_theirs.size + np.var(at_ours) / effective_size(at_ours)
    return log_z, math.sqrt(float(variance))


def bridged(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z, and what each of our draws and of q's contributes to its error: zero on average."""
    center = float(np.median(ours))
    first, second = ours - center, theirs - center
    effective = effective_size(first)
    share = effective / (effective + second.size)
    log_z = 0.0
    for _ in range(ITERATIONS):
        above = _log_mean(second - _log_sum(share, second, log_z))
        found = above - _log_mean(-_log_sum(share, first, log_z))
        change, log_z = abs(found - log_z), found
        if change < TOLERANCE:
            break
    # p/(s₁ p + s₂ q) at draws of q, and q/(s₁ p + s₂ q) at ours, p normalised.
    at_theirs = np.exp(second - log_z - _log_sum(share, second - log_z, 0.0))
    at_ours = np.exp(-_log_sum(share, first - log_z, 0.0))
    return log_z + center, 1 - at_ours / np.mean(at_ours), at_theirs / np.mean(at_theirs) - 1


def _log_sum(share: float, log_ratio: np.ndarray, log_z: float) -> np.ndarray:
    """log(s₁ l + s₂ Z)."""
    return np.logaddexp(math.log(share) + log_ratio, math.log1p(-share) + log_z)


def _log_mean(logarithms: np.ndarray) -> float:
    """Of numbers given by their logarithms."""
    largest = float(np.max(logarithms))
    return largest + math.log(np.mean(np.exp(logarithms - largest)))


def effective_size(values: np.ndarray) -> float:
    """Effective number of draws with the axes (chain, draw), by Geyer's initial sequence.

    As ArviZ's of the mean, but without ranks: at most the number of draws.
    """
    num_chains, count = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    length = 2 ** math.ceil(math.log2(2 * count))
    spectrum = np.abs(np.fft.rfft(centred, length, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum, length, axis=1)[:, :count].mean(axis=0) / count
    within = covariances[0] * count / (count - 1)
    between = np.var(values.mean(axis=1), ddof=1) if num_chains > 1 else 0.0
    total = within * (count - 1) / count + between
    if not total > 0:
        return float(values.size)
    correlations = 1 - (within - covariances * count / (count - 1)) / total
    pairs = correlations[0 : count - 1 : 2] + correlations[1:count:2]
    is_positive = np.cumprod(pairs > 0).astype(bool)
    pairs = np.minimum.accumulate(pairs[is_positive]) if is_positive.any() else np.zeros(1)
    time = max(-1 + 2 * float(pairs.sum()), 1.0)
    return values.size / time
