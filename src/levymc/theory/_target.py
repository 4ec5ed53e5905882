r"""What the paper asks of f = -φ ∂U, the derivative of φ: smoothness (H3) and light tails (H4)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import check_scalar_output
from levymc.drifts import LogDensity

from ._answer import Answer, seen
from ._line import BROKEN, TOLERANCE, Line, breaks, compiled, exponents, growing, line

Derivatives = Callable[[np.ndarray], list[np.ndarray]]  # of points, by order
ORDERS = 4  # of f, from 0 to 3
RISE = 0.05  # of log |f| + |x| over half a decade, for rounding


def check_smoothness(
    logdensity_fn: LogDensity, *, center: float = 0.0, scale: float = 1.0, reach: float = 1e4
) -> Answer:
    r"""H3: f = -φ ∂U is thrice continuously differentiable, and all of it integrable:

    .. math:: f ∈ C^3(ℝ), \qquad \int |f^{(i)}| < ∞, \quad i = 0, …, 3 .

    Derivatives are those of JAX.  `looks` means that none of them is left with a jump after the
    cells between the points were halved twelve times, and that over the outermost decade each
    falls faster than 1/|x|.

    Args:
        logdensity_fn: log φ up to a constant, of one number.
        center, scale, reach: as in `check_lyapunov`.

    Returns:
        `integral_0`, …, `integral_3` of |f^{(i)}| over the points, φ being 1 where it is largest;
        where it fails, `order` and `place` of the first fault.

    Raises:
        ValueError, TypeError: an argument outside its range, or a log density that is NaN.

    Examples:
        >>> from levymc import theory
        >>> theory.check_smoothness(lambda x: -x * x / 2).looks
        True
        >>> theory.check_smoothness(lambda x: -abs(x)).looks  # f jumps at 0
        False

    References: [simsekli2017], H3.
    """
    where = line(center, scale, reach)
    derivatives = f_and_derivatives(logdensity_fn, highest_logdensity(logdensity_fn, where))
    integrals = {}
    for order, values in enumerate(derivatives(where.points)):
        if (place := _fault(derivatives, order, where, values)) is not None:
            words = f"The derivative of order {order} of f jumps or is none near x = {place:.4g}."
            return seen("H3", False, words, where.words, order=order, place=place)
        with np.errstate(divide="ignore"):
            tail = max(exponents(where, np.log(np.abs(values))))
        if tail > -1 - TOLERANCE:
            words = f"The derivative of order {order} of f goes {growing('|x|', tail)} only."
            return seen("H3", False, words, where.words, order=order, place=np.inf)
        integrals[f"integral_{order}"] = float(np.trapezoid(np.abs(values), where.points))
    words = "f and three derivatives are continuous, and fall faster than 1/|x|."
    return seen("H3", True, words, where.words, **integrals)


def check_tail(
    logdensity_fn: LogDensity, *, center: float = 0.0, scale: float = 1.0, reach: float = 1e4
) -> Answer:
    r"""H4: the tails of f = -φ ∂U are below an exponential's,

    .. math:: |f(x - kh)| ≤ C e^{-|k| h}, \qquad |k| > K .

    As C is free, that is: log |f(x)| + |x| stays bounded.  The rate is 1 in the units of x: a
    Laplace law of scale 2 fails, though after a change of units it would not.  `looks` means that
    the sum does not rise over the outermost half of a decade.

    Args: as `check_smoothness`.

    Returns:
        `rise` of log |f| + |x - center| over the outermost half decade, the larger of both sides,
        and `log_constant`, its largest value at the points: log C for K = 0 at the center, φ as it
        is given.

    Raises:
        ValueError, TypeError: an argument outside its range, or a log density that is NaN.

    Examples:
        >>> from levymc import targets, theory
        >>> theory.check_tail(targets.double_well).looks
        True
        >>> theory.check_tail(targets.student_t(2.0)).looks
        False

    References: [simsekli2017], H4.
    """
    where = line(center, scale, reach)
    highest_logdensity(logdensity_fn, where)
    excess = log_slope(logdensity_fn, where.points) + where.distance
    rise = max(_rise(where, excess, end) for end in where.ends)
    verdict = "stays bounded" if rise <= RISE else "grows"
    words = f"Over the outermost half decade log |f| + |x| changes by {rise:.3g}: it {verdict}."
    return seen("H4", rise <= RISE, words, where.words, rise=rise, log_constant=float(excess.max()))


def log_slope(logdensity_fn: LogDensity, points: np.ndarray) -> np.ndarray:
    """log |f| = log φ + log |∂ log φ|, -inf where φ vanishes."""
    values, slopes = compiled(jax.value_and_grad(logdensity_fn))(points)
    with np.errstate(divide="ignore", invalid="ignore"):  # where φ vanishes ∂ log φ may be infinite
        return np.where(np.isneginf(values), -np.inf, values + np.log(np.abs(slopes)))


def f_and_derivatives(logdensity_fn: LogDensity, highest: float) -> Derivatives:
    """f and its derivatives up to order three, for φ / e^highest; zero where that underflows.

    There a derivative of log φ may be infinite, and its product with φ NaN.
    """
    orders: list[Callable[[Any], Any]] = [lambda x: jnp.exp(logdensity_fn(x) - highest)]
    for _ in range(ORDERS):
        orders.append(jax.grad(orders[-1]))

    def at(x: Any) -> list[Any]:
        is_outside = orders[0](x) == 0
        return [jnp.where(is_outside, 0.0, f(x)) for f in orders[1:]]

    return compiled(at)


def highest_logdensity(logdensity_fn: LogDensity, where: Line) -> float:
    """The largest log density at the points."""
    check_scalar_output("logdensity_fn", logdensity_fn, jnp.zeros(()))
    values = compiled(logdensity_fn)(where.points)
    wrong = np.flatnonzero(np.isnan(values) | np.isposinf(values))
    if wrong.size:
        raise ValueError(
            f"`logdensity_fn` must be a number or -inf, got {values[wrong[0]]} at "
            f"x = {where.points[wrong[0]]:g}. Give -inf outside of the support."
        )
    return float(values.max())


def _fault(derivatives: Derivatives, order: int, where: Line, values: np.ndarray) -> float | None:
    """Where a derivative is no number, or jumps."""
    strange = np.flatnonzero(~np.isfinite(values))
    if strange.size:
        return float(where.points[strange[0]])
    jumps = breaks(lambda x: derivatives(x)[order], where.points)
    torn = np.flatnonzero(~(jumps <= BROKEN * np.abs(values).max()))
    return float(where.points[torn[0]]) if torn.size else None


def _rise(where: Line, excess: np.ndarray, end: np.ndarray) -> float:
    """Of the largest excess, from the first half of an end's decade to the second."""
    is_outer = where.distance[end] > where.reach * where.scale / np.sqrt(10)
    outer, inner = excess[end][is_outer].max(), excess[end][~is_outer].max()
    return -np.inf if np.isneginf(outer) else float(outer - inner)
