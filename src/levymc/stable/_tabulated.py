r"""The law of SαS(1) from a table of what it adds to the Gaussian: density, quantiles, draws.

With m = max(1, |x|), the table holds three functions that are smooth in α, up to α = 2, and in x,
up to infinity:

.. math::
   f(x) &= f_2(x) + (2-α)\, m^{-1-α}\, T_0(x, α) \\
   F(x) - 1/2 &= F_2(x) - 1/2 + (2-α)\, x\, m^{-1-α}\, T_1(x, α) \\
   -f'(x)/x &= f_2(x)/2 + (2-α)\, m^{-3-α}\, T_2(x, α)

where the index 2 marks N(0, 2).  Each T is a polynomial in α (one per band) times a polynomial in a
local coordinate of |x| (one per panel).  `tools/make_stable_table.py` computes it.

The first panel is [0, 2^-8] in the coordinate x², as the law is even; then panels of a third of
an octave in log₂ x; the last reaches from 2^4 to infinity in the coordinate x^{-α}, in which the
tail is a power series.  The bands of α are thirds of an octave, too: the law's nearest singularity
is at α = 0.

The functions take the array module `xp`, so that the same formulas serve traced JAX arrays and,
in NumPy, tables that must be made in float64 whatever JAX's precision is.
"""

import math
from functools import cache, lru_cache
from importlib.resources import files
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jaxtyping import Array, Float, UInt

from ._mapped import for_each

DENSITY, CENTRAL, SLOPE = 0, 1, 2
ALPHA_EDGES = 2.0 ** (np.arange(-3, 4) / 3)
ALPHA_COUNT = 14
POSITION_COUNT = 13
LOG2_FIRST, LOG2_LAST = -8, 4
PANELS_PER_OCTAVE = 3
NUM_PANELS = (LOG2_LAST - LOG2_FIRST) * PANELS_PER_OCTAVE + 2


def positions(local: np.ndarray, alpha: float) -> np.ndarray:
    """The x of each panel whose local coordinates are `local` ∈ [-1, 1]: (panels, len(local))."""
    first = 2.0**LOG2_FIRST * np.sqrt((1 + local) / 2)
    starts = LOG2_FIRST + np.arange(NUM_PANELS - 2)[:, None] / PANELS_PER_OCTAVE
    octaves = 2.0 ** (starts + (1 + local) / (2 * PANELS_PER_OCTAVE))
    last = 2.0**LOG2_LAST * ((1 + local) / 2) ** (-1 / alpha)
    return np.vstack([first, octaves, last])


@cache
def _coefficients() -> np.ndarray:
    """Powers of α first, then of the local coordinate: (function, band, α, panel, x)."""
    with files(__package__).joinpath("_table.npz").open("rb") as stream, np.load(stream) as archive:
        return archive["coefficients"]


def evaluate(xp: ModuleType, function: int, x: Any, alpha: Any) -> Any:
    """T_function(|x|, α); `x` and `alpha` floating arrays of one dtype that broadcast."""
    if xp is jnp:
        return for_each(_looked_up, jnp, function)(x, alpha)
    return _looked_up(xp, function, x, alpha)


def _looked_up(xp: ModuleType, function: int, x: Any, alpha: Any) -> Any:
    table = xp.asarray(_coefficients()[function].astype(x.dtype))
    band, local_alpha = _place_alpha(xp, alpha)
    panel, local = _place_position(xp, abs(x), alpha)
    if alpha.ndim == 0:
        # One α: sum over its powers once, for all panels, before any x is looked at.
        rows = _horner(table[band], local_alpha)
        coefficients = [rows[:, power][panel] for power in range(rows.shape[-1])]
    else:
        band, panel, local_alpha, local = xp.broadcast_arrays(band, panel, local_alpha, local)
        powers = [table[band, power, panel] for power in range(table.shape[1])]
        rows = _horner(powers, local_alpha[..., None])
        coefficients = [rows[..., power] for power in range(rows.shape[-1])]
    return _horner(coefficients, local)


def _horner(coefficients: Any, variable: Any) -> Any:
    total = coefficients[-1]
    for power in range(len(coefficients) - 2, -1, -1):
        total = total * variable + coefficients[power]
    return total


def _place_alpha(xp: ModuleType, alpha: Any) -> tuple[Any, Any]:
    """The band of α and its coordinate in it, in [-1, 1]."""
    edges = xp.asarray(ALPHA_EDGES.astype(alpha.dtype))
    band = (alpha[..., None] >= edges[1:-1]).sum(axis=-1)
    low, high = edges[band], edges[band + 1]
    return band, (2 * alpha - (low + high)) / (high - low)


def _place_position(xp: ModuleType, size: Any, alpha: Any) -> tuple[Any, Any]:
    """The panel of |x| and its coordinate in it, in [-1, 1]."""
    first, last = 2.0**LOG2_FIRST, float(LOG2_LAST)
    # Below the first octave log₂ is not used; the bound keeps it finite, with finite derivatives.
    log2_size = xp.log2(xp.maximum(size, first / 2))
    octave = (log2_size - LOG2_FIRST) * PANELS_PER_OCTAVE
    start = xp.clip(xp.floor(octave), -1, NUM_PANELS - 2)
    local = 2 * (octave - start) - 1
    near = 2 * (xp.minimum(size, first) / first) ** 2 - 1
    far = 2 * xp.exp2(-alpha * (xp.maximum(log2_size, last) - last)) - 1
    local = xp.where(size < first, near, xp.where(log2_size >= last, far, local))
    panel = xp.where(size < first, -1.0, start).astype(int) + 1
    return panel, local


# Density and distribution, in NumPy or JAX.
#
# With m = max(1, |x|) and g = f_2(x) m^{1+α}, the rescaled Gaussian density, the density is
# f = m^{-1-α} (g + (2-α) T_0), which neither underflows nor cancels in the tail.


_LOG_NORMALISER = math.log(2 * math.sqrt(math.pi))


def logpdf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    stretched, log_stretch = stretched_density(xp, x, alpha)
    gaussian = -(x * x) / 4 - _LOG_NORMALISER
    return xp.where(alpha == 2, gaussian, xp.log(stretched) - log_stretch)


def pdf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    stretched, log_stretch = stretched_density(xp, x, alpha)
    return stretched * xp.exp(-log_stretch)


def sf(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """P(X > x), accurate relative to its size as x → ∞."""
    _, tail = central_and_tail(xp, abs(x), alpha)
    return xp.where(x < 0, 1 - tail, tail)


def central_and_tail(xp: ModuleType, x: Any, alpha: Any) -> tuple[Any, Any]:
    """P(0 < X < x) and P(X > x) for x ≥ 0, each accurate relative to its size.

    They are erf(x/2)/2 and erfc(x/2)/2, plus and minus (2-α) x m^{-1-α} T_1.
    """
    shift = (2 - alpha) * _shrink(xp, x, alpha) * evaluate(xp, CENTRAL, x, alpha)
    special = _special(xp)
    return special.erf(x / 2) / 2 + shift, special.erfc(x / 2) / 2 - shift


def score(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """f'/f = -x (g/2 + (2-α) T_2/m²) / (g + (2-α) T_0)."""
    stretch, log_stretch = _stretch(xp, abs(x), alpha)
    gaussian = xp.exp(log_stretch - x * x / 4 - _LOG_NORMALISER)
    slope = gaussian / 2 + (2 - alpha) * evaluate(xp, SLOPE, x, alpha) / stretch / stretch
    density = gaussian + (2 - alpha) * evaluate(xp, DENSITY, x, alpha)
    gaussian_law = alpha == 2
    return -x * xp.where(gaussian_law, 0.5, slope / xp.where(gaussian_law, 1.0, density))


def alpha_score(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """∂/∂α log f.  With f = m^{-1-α} (g + (2-α) T_0), only that of T_0 is by a difference.

    T_0 is a polynomial in α, and goes on smoothly beyond 2, so that its difference is as accurate
    at the ends of the range as inside, also where f itself is not smooth in α: at 2, far out.
    """
    _, log_stretch = _stretch(xp, abs(x), alpha)
    log_size = log_stretch / (1 + alpha)
    gaussian = xp.exp(log_stretch - x * x / 4 - _LOG_NORMALISER)
    step = 1e-5  # its square, and rounding over it, are 1e-10 and 1e-9
    above, below = (evaluate(xp, DENSITY, x, alpha + shift) for shift in (step, -step))
    table = (above + below) / 2
    change = gaussian * log_size - table + (2 - alpha) * (above - below) / (2 * step)
    return change / (gaussian + (2 - alpha) * table) - log_size


def log_slope(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """x f(x) for x ≥ 0, the slope of P(X < x) in log x, where f itself may underflow."""
    stretched, _ = stretched_density(xp, x, alpha)
    return stretched * _shrink(xp, x, alpha)


def _shrink(xp: ModuleType, x: Any, alpha: Any) -> Any:
    """x m^{-1-α} for x ≥ 0."""
    return xp.minimum(x, 1.0) * xp.exp(-alpha * xp.log(xp.maximum(x, 1.0)))


def stretched_density(xp: ModuleType, x: Any, alpha: Any) -> tuple[Any, Any]:
    """f m^{1+α}, and the logarithm of m^{1+α}."""
    _, log_stretch = _stretch(xp, abs(x), alpha)
    gaussian = xp.exp(log_stretch - x * x / 4 - _LOG_NORMALISER)
    return gaussian + (2 - alpha) * evaluate(xp, DENSITY, x, alpha), log_stretch


def _stretch(xp: ModuleType, size: Any, alpha: Any) -> tuple[Any, Any]:
    """m = max(1, |x|), and log m^{1+α}.

    At |x| = 1 with the slope of the panel that begins there: that of `maximum` would be a half.
    """
    stretch = xp.where(size >= 1.0, size, 1.0)
    return stretch, (1 + alpha) * xp.log(stretch)


class _OnHost:
    """The error function of arrays without SciPy, whose import takes longer than thousands of them.

    A run of `levymc.mafla` would wait for it before its first draw.
    """

    erf = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))
    erfc = staticmethod(np.vectorize(math.erfc, otypes=[np.float64]))


def _special(xp: ModuleType) -> Any:
    return jax.scipy.special if xp is jnp else _OnHost


# Quantiles of SαS(1): Newton's method, safe from either end.
#
# Near the median, P(0 < X < x) = c is solved for x; the left side is concave, so that Newton's
# steps from the left never overshoot.  In the tail, log P(X > x) = log q is solved for log x, where
# it tends to a straight line; as α → 2 it is not convex there, so that every step is kept in a
# bracket.


_TAIL = 0.15  # smaller probabilities are solved for in logarithms
_OVERFLOW_LOG = {4: 89.0, 8: 710.0}  # whose exponential is infinite, by bytes of the float
_MOST_STEPS = 80


class _Search(NamedTuple):
    variable: Any  # x near the median, log x in the tail
    low: Any
    high: Any
    step: Any


def solve(p: Any, alpha: Any) -> Any:
    """F^{-1}(p) in JAX."""
    tail, central, start = _begin(jnp, p, alpha)

    def unfinished(carry: tuple[Any, _Search]) -> Any:
        count, search = carry
        return (count < _MOST_STEPS) & jnp.any(_moves(jnp, search, tail))

    def step(carry: tuple[Any, _Search]) -> tuple[Any, _Search]:
        count, search = carry
        # The barrier keeps XLA from computing the law once for each part of the search.
        residual = jax.lax.optimization_barrier(_residual(jnp, search, tail, central, alpha))
        return count + 1, _advance(jnp, search, tail, *residual)

    _, search = jax.lax.while_loop(unfinished, step, (0, start))
    return _finish(jnp, search.variable, p, tail)


def solve_on_host(p: np.ndarray, alpha: Any) -> np.ndarray:
    """F^{-1}(p) in NumPy, in float64 whatever JAX's precision is."""
    exponent = np.asarray(alpha, p.dtype)
    tail, central, search = _begin(np, p, exponent)
    for _ in range(_MOST_STEPS):
        if not np.any(_moves(np, search, tail)):
            break
        search = _advance(np, search, tail, *_residual(np, search, tail, central, exponent))
    return _finish(np, search.variable, p, tail)


def _begin(xp: ModuleType, p: Any, alpha: Any) -> tuple[Any, Any, _Search]:
    """The smaller tail probability, its distance from the median, and where to start."""
    p, alpha = xp.broadcast_arrays(p, alpha)
    tail = xp.minimum(p, 1 - p)
    central = abs(p - 0.5)
    density_at_zero = pdf(xp, xp.zeros_like(p), alpha)
    largest = _OVERFLOW_LOG[p.dtype.itemsize]
    in_tail = tail < _TAIL
    near = xp.maximum(central / density_at_zero, float(np.finfo(p.dtype).tiny))
    far = _tail_guess(xp, xp.maximum(tail, math.exp(-largest)), alpha)
    start = xp.where(in_tail, xp.minimum(far, largest), near)
    low = xp.where(in_tail, -8.0, 0.0).astype(p.dtype)
    high = xp.full_like(p, largest)
    # The median is known, and rests from the start.
    step = xp.where(tail == 0.5, 0.0, xp.inf).astype(p.dtype)
    return tail, central, _Search(start, low, high, step)


def _tail_guess(xp: ModuleType, tail: Any, alpha: Any) -> Any:
    """Logarithm of the larger of the Pareto and the Gaussian quantile: either rules somewhere."""
    # P(X > x) ~ Γ(α) sin(πα/2)/π x^{-α}, with Γ(α) ≈ 1 here, as only a start is wanted.
    weight = xp.maximum(xp.sin(math.pi * (2 - alpha) / 2), 1e-30) / math.pi
    pareto = (xp.log(weight) - xp.log(tail)) / alpha
    gaussian = 0.5 * xp.log(-4 * xp.log(2 * xp.minimum(tail, _TAIL)))
    return xp.maximum(pareto, gaussian)


def _residual(xp: ModuleType, search: _Search, tail: Any, central: Any, alpha: Any) -> Any:
    """What is still missing, and Newton's slope."""
    in_tail = tail < _TAIL
    x = xp.where(in_tail, xp.exp(xp.where(in_tail, search.variable, 0.0)), search.variable)
    between, beyond = central_and_tail(xp, x, alpha)
    error = xp.where(in_tail, xp.log(beyond) - xp.log(tail), central - between)
    slope = log_slope(xp, x, alpha) / xp.where(in_tail, beyond, x)
    return error, slope


def _advance(xp: ModuleType, search: _Search, tail: Any, error: Any, slope: Any) -> _Search:
    low = xp.where(error > 0, search.variable, search.low)
    high = xp.where(error > 0, search.high, search.variable)
    proposal = search.variable + error / slope
    # A bracket's middle takes the place of a step that leaves it (or is 0/0 far out).
    inside = (proposal >= low) & (proposal <= high)
    variable = xp.where(inside, proposal, (low + high) / 2)
    # What has converged rests: among rounding errors a bracket would close beside the root.
    moves = _moves(xp, search, tail) & (error != 0)
    variable = xp.where(moves, variable, search.variable)
    return _Search(variable, low, high, abs(variable - search.variable))


def _moves(xp: ModuleType, search: _Search, tail: Any) -> Any:
    """Whether the last step still mattered: after a smaller one, Newton's error is its square."""
    small = float(np.finfo(search.step.dtype).eps) ** 0.42
    return search.step > small * xp.where(tail < _TAIL, 1.0, search.variable)


def _finish(xp: ModuleType, variable: Any, p: Any, tail: Any) -> Any:
    in_tail = tail < _TAIL
    size = xp.where(in_tail, xp.exp(xp.where(in_tail, variable, 0.0)), variable)
    size = xp.where(tail == 0, xp.inf, xp.where(tail == 0.5, 0.0, size))
    quantile = xp.where(p < 0.5, -size, size)
    return xp.where((p >= 0) & (p <= 1), quantile, xp.nan)


# One random word through a table of quantiles: the fast way for a fixed α in float32.
#
# The lowest bit of a word is the sign.  The other 31, converted to a float32 u, give the tail
# probability q = u/2³² ∈ (0, 1/2].  The exponent of u and the top bits of its mantissa number a
# cell of a table that is finer the smaller q is, and the remaining bits interpolate in it linearly:
# the quantile's relative error is below 2e-5 for α ≥ 0.5, down to q = 2^-33.
#
# For the law conditioned on |X| ≤ bound, the table is that of the quantiles at p + (1 - 2p) q, with
# p = P(X > bound).


_CELLS_PER_OCTAVE_BITS = 8
_SHIFT = 23 - _CELLS_PER_OCTAVE_BITS  # 23: bits of a float32 mantissa
_FIRST = int(np.float32(0.5).view(np.uint32)) >> _SHIFT
_LAST = int(np.float32(2.0**31).view(np.uint32)) >> _SHIFT


def transform(
    words: UInt[Array, "..."], alpha: float, bound: float = math.inf
) -> Float[Array, "..."]:
    """SαS(1), given |X| ≤ bound, in float32 from one 32-bit word per draw."""
    return from_words(words, *_table(alpha, bound))


def quantile_table(alpha: float, bound: float | None = None) -> Float[np.ndarray, "cell 2"]:
    """The table as pairs, a quantile and its change over the cell, for `from_words` and kernels.

    With a bound it is that of SαS(1) on the condition |X| ≤ bound.
    """
    return np.stack(_table(alpha, math.inf if bound is None else bound), axis=-1)


def from_words(words: UInt[Array, "..."], starts: Any, steps: Any) -> Float[Array, "..."]:
    """One draw per 32-bit word, by the columns of a `quantile_table`."""
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
        beyond = sf(np, np.asarray(bound, float), np.asarray(alpha, float))
        quantiles = -solve_on_host(beyond + (1 - 2 * beyond) * tail, alpha)
        # Rounded to float32, the largest may lie beyond the bound by one unit.
        largest = np.nextafter(np.float32(bound), np.float32(0))
        quantiles = np.minimum(quantiles, largest)
    steps = np.append(np.diff(quantiles), 0.0)
    return quantiles.astype(np.float32), steps.astype(np.float32)
