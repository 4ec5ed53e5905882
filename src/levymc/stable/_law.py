r"""The symmetric α-stable law SαS(σ): density, distribution, quantiles and score.

.. math:: E\, e^{iωX} = e^{-|σω|^α}

so that α = 2 is N(0, 2σ²) and α = 1 is the Cauchy law of scale σ.  Every function is accurate in
the relative sense from the centre to the far tail, for α ∈ [0.5, 2]; see `_tabulated` for the
representation.  α may be traced or an array.  A traced α outside the range gives NaN.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from levymc._checks import check_interval, check_positive, check_real, nan_outside

from . import _tabulated

ALPHA_REMEDY = "The law is tabulated there; `sample` draws for every alpha in (0, 2]."
SCALE_REMEDY = "Give the sigma of exp(-|sigma omega|^alpha)."
FINITE_REMEDY = "Remove such points first: the law has no value there."


def logpdf(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Logarithm of the density of SαS(scale) at `x`.

    It is differentiable in all three: in α with an error of 1e-9 of the derivative and of 1, at
    α = 2 as the limit from below, which is -inf where it overflows.

    Args:
        x: finite points.
        alpha: characteristic exponent in [0.5, 2]; may be traced, or an array.
        scale: positive.

    Raises:
        ValueError: an argument outside its range.

    Examples:
        >>> import levymc
        >>> round(float(levymc.stable.logpdf(0.0, 1.0)), 4)  # Cauchy: -log π
        -1.1447

    References: [zolotarev1986]; [ament2018] for the problem, not for the method.
    """
    return _evaluate(lambda u, a, s: _logpdf(u / s, a) - jnp.log(s), _finite(x), alpha, scale)


def pdf(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Density of SαS(scale) at `x`; arguments as for `logpdf`."""
    return _evaluate(lambda u, a, s: _pdf(u / s, a) / s, _finite(x), alpha, scale)


def cdf(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """P(X ≤ x) for X ~ SαS(scale), accurate relative to its size in the left tail too."""
    return _evaluate(lambda u, a, s: _sf(-u / s, a), _finite(x), alpha, scale)


def sf(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """P(X > x) for X ~ SαS(scale), accurate relative to its size in the right tail too."""
    return _evaluate(lambda u, a, s: _sf(u / s, a), _finite(x), alpha, scale)


def score(x: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """d/dx logpdf(x): -x/(2 scale²) at α = 2, and → -(1 + α)/x in the tails below."""
    return _evaluate(lambda u, a, s: _score(u / s, a) / s, _finite(x), alpha, scale)


def ppf(p: ArrayLike, alpha: ArrayLike, scale: ArrayLike = 1.0) -> Float[Array, "..."]:
    """The x with P(X ≤ x) = p.  ±inf at p = 0 and 1; NaN for p outside [0, 1], as in SciPy.

    Examples:
        >>> import levymc
        >>> round(float(levymc.stable.ppf(0.75, 1.0)), 4)  # Cauchy: tan(π/4)
        1.0
    """
    return _evaluate(lambda u, a, s: _ppf(u, a) * s, p, alpha, scale)


def _finite(x: Any) -> Any:
    check_real("x", x, FINITE_REMEDY)
    return x


def _evaluate(function: Any, x: Any, alpha: Any, scale: Any) -> Array:
    """Check all but x, compute in float32 at least, and give back the dtype of x."""
    check_interval("alpha", alpha, 0.5, 2.0, includes_low=True, remedy=ALPHA_REMEDY)
    check_positive("scale", scale, SCALE_REMEDY)
    found = jnp.result_type(x)
    dtype = found if jnp.issubdtype(found, jnp.floating) else jnp.result_type(float)
    wide = jnp.promote_types(dtype, jnp.float32)
    points, alphas, scales = (jnp.asarray(value, wide) for value in (x, alpha, scale))
    known = nan_outside(alphas, 0.5, 2.0, includes_low=True)
    return function(points, known, scales).astype(dtype)


def _with_derivatives(value: Any, slope: Any, alpha_slope: Any = None) -> Any:
    """Give value(x, α) the derivatives slope(x, α) in x and alpha_slope(x, α) in α.

    Without the latter it is differentiated in α as written: the table is smooth in α.
    """
    function = jax.custom_jvp(value)

    @partial(function.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        x, alpha = primals
        x_dot, alpha_dot = tangents
        out = function(x, alpha)
        tangent = jnp.zeros_like(out)
        if not isinstance(x_dot, jax.custom_derivatives.SymbolicZero):
            tangent = tangent + slope(x, alpha) * x_dot
        if not isinstance(alpha_dot, jax.custom_derivatives.SymbolicZero):
            change = alpha_slope or (lambda x, alpha: _along_alpha(partial(value, x), alpha)[1])
            tangent = tangent + change(x, alpha) * alpha_dot
        return out, tangent

    return jax.jit(function)


def _along_alpha(function: Any, alpha: Array) -> Any:
    """A function of α and its derivative; α is an array of which each entry has its own value."""
    return jax.jvp(function, (alpha,), (jnp.ones_like(alpha),))


def _alpha_score(x: Array, alpha: Array) -> Array:
    """d/dα log f.  At α = 2 it is the limit from below, and -inf where that overflows."""
    (stretched, _), (change, log_change) = _along_alpha(
        partial(_tabulated.stretched_density, jnp, x), alpha
    )
    return change / stretched - log_change


_logpdf = _with_derivatives(
    partial(_tabulated.logpdf, jnp), partial(_tabulated.score, jnp), _alpha_score
)
_pdf: Any = _with_derivatives(
    partial(_tabulated.pdf, jnp),
    lambda x, alpha: _pdf(x, alpha) * _tabulated.score(jnp, x, alpha),
)
_sf = _with_derivatives(partial(_tabulated.sf, jnp), lambda x, alpha: -_pdf(x, alpha))


_score = jax.jit(partial(_tabulated.score, jnp))


@jax.custom_jvp
def _solved(p: Array, alpha: Array) -> Array:
    return _tabulated.solve(p, alpha)


@_solved.defjvp
def _solved_rule(primals: Any, tangents: Any) -> Any:
    """From F(x(p, α), α) = p: dx = (dp - ∂F/∂α dα) / f(x)."""
    p, alpha = primals
    p_dot, alpha_dot = tangents
    x = _solved(p, alpha)
    _, moved = jax.jvp(lambda a: _sf(-x, a), (alpha,), (alpha_dot,))
    return x, (p_dot - moved) / _pdf(x, alpha)


_ppf = jax.jit(_solved)


_ON_HOST: dict[str, Any] = {
    "pdf": partial(_tabulated.pdf, np),
    "logpdf": partial(_tabulated.logpdf, np),
    "cdf": lambda x, alpha: _tabulated.sf(np, -x, alpha),
    "sf": partial(_tabulated.sf, np),
    "ppf": _tabulated.solve_on_host,
}


def on_host(name: str, x: Any, alpha: Any) -> Any:
    """A function of SαS(1) in NumPy, in float64 whatever JAX's precision is."""
    points, exponents = (np.asarray(value, np.float64) for value in (x, alpha))
    with np.errstate(all="ignore"):  # at α = 2, and far out, of branches that are not taken
        return _ON_HOST[name](points, exponents)
