r"""The density of the isotropic stable law, by a quadrature whose terms are all positive.

A vector of this law is √(2S) N with N standard normal and S positive (α/2)-stable, and
S = (A(U)/E)^k with U uniform on (0, π), E exponential and k = (2-α)/α (Kanter).  So, of a vector
of d coordinates and length r, with E = e^w,

.. math:: f(r) = (4π)^{-d/2} \int_0^π \frac{du}{π} A(u)^{-kd/2} \int dw\,
   \exp\Bigl(pw - e^w - \tfrac{r^2}{4} A(u)^{-k} e^{kw}\Bigr), \qquad p = 1 + kd/2 .

Both integrals are sums at equal distances after a change of variable: u = π tanh(v/2), in which
the integrand is even and what long jumps contribute is spread out; and w = w* + s(x + 1 - e^{-x})
around the largest term w*, of width s, as the inner integrand is log-concave and falls like e^{pw}
to its left.  Nothing cancels, so that the error is relative, at every length.
"""

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_interval, check_positive, check_real, nan_outside

from ._law import FINITE_REMEDY, SCALE_REMEDY
from ._words import log_kanter

_REMEDY = "2 is Gaussian, 1 is Cauchy; `sample_isotropic` draws for every alpha in (0, 2]."
_NEWTON_STEPS = 4  # the largest term need not be known exactly


class _Accuracy(NamedTuple):
    """What is neglected, as -log of a share; and the distances of the sums."""

    neglected: float
    outer: float  # distance in v, in widths of what is summed; and half of the most that it is
    inner: float  # distance in x
    farthest: float  # r/√d from which on the law is a power of r: the rest is r^-α of it


# Chosen so that half the distances change no result by more than the rounding of logarithms does.
_ACCURACIES = {4: _Accuracy(18.0, 0.8, 0.5, 1e7), 8: _Accuracy(36.0, 0.5, 0.2, 1e14)}
_NEAREST = {4: 1e-4, 8: 1e-8}  # 2 - α down to which the accuracy is kept


def isotropic_logpdf(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    r"""Logarithm of the density of the law of `sample_isotropic`, with

    .. math:: E\, e^{iω·X} = e^{-|σω|^α}, \qquad |·| \text{ the Euclidean norm,}

    at vectors `x`.  Its error is tested to be below 1e-9 in float64 and 4e-5 in float32 up to ten
    dimensions; in a hundred, where the logarithm itself is in the thousands, below 1e-9 for some α
    from 1.2 on and 1e-6 at α = 1 in float64, and 5e-4 at α = 1 in float32.

    It is an integral over two variables, some ten thousand terms a vector in float64 and a thousand
    in float32, more beyond a hundred dimensions; `logpdf`, of independent coordinates, is a look
    into a table.  Differentiable in x and in the scale.

    Args:
        x: finite vectors, along the last axis, which has at least one coordinate.
        alpha: characteristic exponent in [1, 2]; broadcasts against x.shape[:-1], may be traced.
        scale: positive; broadcasts likewise.

    Raises:
        ValueError: an argument outside its range.

    Examples:
        >>> import jax.numpy as jnp, levymc
        >>> round(float(levymc.stable.isotropic_logpdf(jnp.zeros(2), 1.0)), 4)  # log 1/(2π)
        -1.8379

    References: [kanter1975] for S; [nolan2013] for the law and other representations.
    """
    check_real("x", x, FINITE_REMEDY)
    check_interval("alpha", alpha, 1.0, 2.0, includes_low=True, remedy=_REMEDY)
    check_positive("scale", scale, SCALE_REMEDY)
    if jnp.ndim(x) == 0:
        raise ValueError(f"`x` must have a last axis, the vector, got {x!r}. Give (x,).")
    if jnp.shape(x)[-1] == 0:
        raise ValueError(
            f"`x` must be vectors of at least one coordinate, got the shape {jnp.shape(x)}. The "
            "last axis is the vector."
        )
    found = jnp.result_type(x)
    dtype = found if jnp.issubdtype(found, jnp.floating) else jnp.result_type(float)
    wide = jnp.promote_types(dtype, jnp.float32)
    vectors, exponents, scales = (jnp.asarray(value, wide) for value in (x, alpha, scale))
    known = nan_outside(exponents, 1.0, 2.0, includes_low=True)
    dimension = vectors.shape[-1]
    length = _length(vectors) / scales
    of_length = jnp.vectorize(partial(_log_radial, dimension))
    return (of_length(length, known) - dimension * jnp.log(scales)).astype(dtype)


def _length(vectors: Array) -> Array:
    """Euclidean norms, which do not overflow; of derivative 0 at the origin.

    That of a vector that is not finite is infinite or NaN.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(vectors), axis=-1, initial=0.0))
    unit = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
    square = jnp.sum((vectors / unit[..., None]) ** 2, axis=-1)
    is_away = square != 0
    return jnp.where(is_away, jnp.sqrt(jnp.where(is_away, square, 1.0)) * unit, 0.0)


@partial(jax.jit, static_argnums=0)
def _log_radial(dimension: int, length: Array, alpha: Array) -> Array:
    """log f of one length."""
    farthest = _ACCURACIES[length.dtype.itemsize].farthest * math.sqrt(dimension)
    near = jnp.minimum(length, farthest)
    beyond = jnp.log(jnp.maximum(length / farthest, 1.0))
    smaller = jnp.where(alpha < 2, alpha, 1.5)  # at 2 all of the below is 0/0
    heavy = _log_integral(dimension, near, smaller) - (smaller + dimension) * beyond
    log_unit = -0.5 * dimension * math.log(4 * math.pi)
    return log_unit + jnp.where(alpha == 2, -((length / 2) ** 2), heavy)


def _log_integral(dimension: int, length: Array, alpha: Array) -> Array:
    """log of the double integral, each sum of which is where its terms are."""
    k = (2 - alpha) / alpha
    power = 1 + k * dimension / 2
    log_weight, log_time = _outer(dimension, jax.lax.stop_gradient(length), alpha)

    def terms(w: Array, log_time: Array) -> Array:
        # (r/2)² A^-k e^{kw} as a square, of which neither factor overflows
        root = length / 2 * jnp.exp((k * w - log_time) / 2)
        return power * w - jnp.exp(w) - root * root

    mode, width = jax.lax.stop_gradient(_inner_mode(length, log_time, k, power))
    peak = jax.lax.stop_gradient(terms(mode, log_time))
    nodes, slopes = _inner_nodes(power)
    w = mode[:, None] + width[:, None] * nodes
    # The largest is known: in one pass, without an array of all terms
    inner = jnp.sum(slopes * jnp.exp(terms(w, log_time[:, None]) - peak[:, None]), axis=1)
    return logsumexp(
        log_weight - 0.5 * dimension * log_time + peak + jnp.log(width) + jnp.log(inner)
    )


def _outer(dimension: int, length: Array, alpha: Array) -> tuple[Array, Array]:
    """log of the weights du/π, and log A^k, at the nodes in v."""
    log_time = 2 * jnp.log(jnp.maximum(length, 1.0)) - math.log(2 * dimension)
    accuracy = _ACCURACIES[length.dtype.itemsize]
    first, last, _ = _window(jnp, dimension, jnp.maximum(log_time, 0.0), alpha, accuracy)
    count = _num_outer(dimension, length.dtype.itemsize)
    distance = (last - first) / count
    v = first + distance * (jnp.arange(count, dtype=length.dtype) + 0.5)
    rest = 2 * math.pi * jax.nn.sigmoid(-v)  # π - u
    log_weight = jnp.log(rest) + jnp.log(jax.nn.sigmoid(v)) + jnp.log(distance / math.pi)
    return log_weight, log_kanter(rest, alpha / 2, _log_sine)


def _window(
    xp: Any, dimension: int, log_time: Any, alpha: Any, accuracy: _Accuracy
) -> tuple[Any, Any, Any]:
    """Where the terms in v begin and end to count, and the largest distance that they bear.

    With S = A^k they are largest near S = r²/(2d), of which `log_time` is the logarithm, and fall
    there like exp(-d/2 (S - 1 - log S)) to the left and e^{-v(1 + d/α)} to the right.  As S is
    A^k/E^k, they fall to the left no faster than e^{-vα/(2-α)}.  If the law is nearly Gaussian
    those near v = 0 count as well, unless S is too large.
    """
    reach = math.log(_far_time(dimension, accuracy.neglected))
    far = math.log(_far_time(dimension, 1.5 * accuracy.neglected))
    center = alpha / 2 * log_time + xp.log(2 * math.pi / xp.sin(math.pi * (1 - alpha / 2)))
    margin = alpha / 2 * reach + accuracy.neglected * (2 - alpha) / alpha
    first = xp.where(log_time < far, 0.0, xp.maximum(center - margin, 0.0))
    last = center + accuracy.neglected / (1 + dimension / alpha) + 1.0
    width = alpha / 2 * xp.sqrt(2 / dimension + ((2 - alpha) / alpha) ** 2)
    return first, last, accuracy.outer * xp.minimum(width, 0.5)


@lru_cache
def _num_outer(dimension: int, itemsize: int) -> int:
    """How many nodes in v bear every α and r."""
    accuracy = _ACCURACIES[itemsize]
    alphas = 2 - np.geomspace(_NEAREST[itemsize], 1.0, 200)
    far = math.log(_far_time(dimension, 1.5 * accuracy.neglected))
    numbers = []
    for log_time in (0.0, 0.999 * far, far, 30.0):
        first, last, distance = _window(np, dimension, log_time, alphas, accuracy)
        numbers.append(np.max((last - first) / distance))
    return math.ceil(max(numbers))


def _far_time(dimension: int, neglected: float) -> float:
    """The S > 1 with d/2 (S - 1 - log S) = neglected, by Newton's method from its right."""
    time = 2.0 + 4 * neglected / dimension + 4 * math.sqrt(neglected / dimension)
    for _ in range(50):
        time -= (time - 1 - math.log(time) - 2 * neglected / dimension) / (1 - 1 / time)
    return time


def _log_sine(angle: Array) -> Array:
    """log sin on (0, π), differentiable."""
    folded = jnp.minimum(angle, math.pi - angle)
    return jnp.log(jnp.maximum(jnp.sin(folded), jnp.finfo(angle.dtype).tiny))


def _inner_mode(length: Array, log_time: Array, k: Array, power: Array) -> tuple[Array, Array]:
    """Where e^w + c k e^{kw} = p, c = r²/(4 A^k), and the width of the integrand there.

    Newton's method for the logarithm of the equation, whose left side is convex and increases,
    from where either term alone is p: on the right of the solution, so that it only falls.
    """
    tiny = jnp.finfo(length.dtype).tiny
    log_c = 2 * jnp.log(jnp.maximum(length / 2, tiny**0.25)) - log_time
    log_first = jnp.log(power)
    log_ck = log_c + jnp.log(k)
    w = jnp.minimum(log_first, (log_first - log_ck) / k)
    for _ in range(_NEWTON_STEPS):
        one, other = w, log_ck + k * w
        total = jnp.logaddexp(one, other)
        slope = jnp.exp(one - total) + k * jnp.exp(other - total)
        w = w - (total - log_first) / slope
    curvature = jnp.exp(w) + k * jnp.exp(log_ck + k * w)
    return w, 1 / jnp.sqrt(curvature)


def _inner_nodes(power: Array) -> tuple[Array, Array]:
    """x + β(1 - e^{-x}) and its slope times the distance of x.

    β is such that the first node is where e^{pw} has fallen enough, or the normal law of that
    width: the larger p is, the less is needed.
    """
    accuracy = _ACCURACIES[power.dtype.itemsize]
    highest = math.sqrt(2 * accuracy.neglected)
    lowest = -math.log(accuracy.neglected)
    farther = highest + lowest + accuracy.neglected / jnp.sqrt(power)
    beta = farther / (accuracy.neglected - 1)
    count = math.ceil((highest - lowest) / accuracy.inner)
    x = np.asarray(lowest + accuracy.inner * np.arange(count + 1), power.dtype)
    return x + beta * (1 - np.exp(-x)), accuracy.inner * (1 + beta * np.exp(-x))
