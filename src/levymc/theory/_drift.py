r"""What the paper asks of a drift: a Lyapunov function (H2), a Lipschitz constant, a pull (A1)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc import drifts
from levymc._checks import check_interval, check_scalar_output
from levymc._settled import as_now

from ._answer import Answer, proved, seen
from ._line import HALVINGS, TOLERANCE, Line, breaks, compiled, exponents, growing, line, slope

STEEPER = 10  # times the largest slope: found between the points only where there is no bound
SMALLEST_SLOPE = 1e-5  # of the largest; below it, rounding far out would pass for growth
LARGEST_LOG = 700.0  # of a float64
MOST_TEST_POWER = 0.25  # p/2 in Corollary 1, where p ≤ 1/2
LinearDrift = type(drifts.stable_target(2.0))


class Seen(NamedTuple):
    """A drift at the points of a line; those that look for modes have done so around its center."""

    drift: drifts.Drift
    line: Line
    sign: np.ndarray
    log_size: np.ndarray

    @property
    def inward(self) -> np.ndarray:
        """1 where the drift leads to the center, -1 where away from it."""
        return -self.sign * np.sign(self.line.points - self.line.center)

    @property
    def values(self) -> np.ndarray:
        return self.sign * np.exp(np.minimum(self.log_size, LARGEST_LOG))


def check_lyapunov(
    drift: Any,
    lyapunov: Callable[[Any], Any] | None = None,
    power: float | None = None,
    *,
    center: float = 0.0,
    scale: float = 1.0,
    reach: float = 1e4,
) -> Answer:
    r"""H2: a function V > 0 with V → ∞, |V'| ≤ C √V, V'' bounded, and for some a in (0, 1]

    .. math:: |b|^2 ≤ C\, V^a, \qquad b\, V' ≤ β - δ\, V^a, \qquad δ > 0 .

    On a bounded set any drift satisfies this, for constants large enough.  So what is looked at are
    the trends over the outermost decade: `looks` means that there b leads inwards, |b|² grows no
    faster than V^a, |b V'| no slower, and V as it should, with exponents fitted to 0.05.  A drift
    that grows like |x|^q passes for -1 < q ≤ 1, that is, at most linearly.

    Of `levymc.drifts.stable_target` with the V and a that are chosen here it is proved.

    Args:
        drift: of one number: a `levymc.drifts.Drift`, or a function.
        lyapunov: V; by default 1 + ((x - center)/scale)².
        power: a in (0, 1]; by default the largest that the fitted exponents allow, as that admits
            most test functions.
        center, scale: roughly where the bulk of the target lies, and how wide it is.
        reach: how far to look, in units of `scale`.

    Returns:
        `power` (a), `growth` and `pull` (exponents of |b|² and of -b V' in V), where it looks so
        constants `C`, `delta` and `beta` that serve at the points, and `test_functions`: the
        largest exponent s for which Corollary 1 covers g = o(V^s).  Below zero it covers not even
        bounded functions.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import drifts, theory
        >>> theory.check_lyapunov(drifts.stable_target(1.7)).holds
        True
        >>> theory.check_lyapunov(drifts.gaussian(1.7)).looks  # the exact drift grows like 1/φ
        False
        >>> theory.check_lyapunov(lambda x: -x).looks
        True

    References: [simsekli2017], H2 and Corollary 1; [panloup2008].
    """
    if power is not None:
        remedy = "It is a of the hypothesis."
        check_interval("power", power, 0.0, 1.0, includes_low=False, remedy=remedy)
    found = _drift_on(drift, line(center, scale, reach))
    where = found.line
    function = lyapunov or (lambda x: 1 + ((x - where.center) / where.scale) ** 2)
    check_scalar_output("lyapunov", function, jnp.zeros(()))
    first = jax.grad(function)
    expanded = compiled(lambda x: (function(x), first(x), jax.grad(first)(x)))
    height, gradient, curvature = expanded(where.points)
    fault = _fault_of_lyapunov(where, height, gradient, curvature)
    if fault:
        return seen("H2", False, f"V is not of the kind that is asked for: {fault}.", where.words)
    if isinstance(drift, LinearDrift) and lyapunov is None and power in (None, 1.0):
        words = "The drift is linear: V = 1 + x² and a = 1."
        return proved("H2", True, words, power=1.0, test_functions=MOST_TEST_POWER)
    return _compared(found, np.log(height), gradient, power)


def _fault_of_lyapunov(
    where: Line, height: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
) -> str:
    """What is wrong with V, or nothing."""
    if not np.all(height > 0):
        return f"it is {np.min(height):g} somewhere, and must be positive"
    logs = {"V": np.log(height)}
    with np.errstate(divide="ignore"):
        logs["|V'|²/V"] = 2 * np.log(np.abs(gradient)) - logs["V"]
        logs["V''"] = np.log(np.abs(curvature))
    slopes = {name: exponents(where, values) for name, values in logs.items()}
    if min(slopes["V"]) < TOLERANCE:
        return f"it grows {growing('|x|', min(slopes['V']))}, and must tend to infinity"
    for name in ("|V'|²/V", "V''"):
        if max(slopes[name]) > TOLERANCE:
            return f"{name} grows {growing('|x|', max(slopes[name]))}, and must be bounded"
    return ""


def _compared(found: Seen, log_v: np.ndarray, gradient: np.ndarray, power: float | None) -> Answer:
    """The drift against powers of V."""
    where = found.line
    with np.errstate(divide="ignore"):
        log_pull = found.log_size + np.log(np.abs(gradient))
    inward = -found.sign * np.sign(gradient)
    far = np.concatenate(where.ends)
    if not np.all(inward[far] > 0):
        words = "Far out the drift does not lead to where V is smaller: nothing brings a jump back."
        return seen("H2", False, words, where.words)
    growth = max(slope(log_v[end], 2 * found.log_size[end]) for end in where.ends)
    pull = min(slope(log_v[end], log_pull[end]) for end in where.ends)
    a = min(1.0, pull) if power is None else power
    looks = a > TOLERANCE and growth <= a + TOLERANCE and a <= pull + TOLERANCE
    numbers = {
        "power": a,
        "growth": growth,
        "pull": pull,
        "test_functions": MOST_TEST_POWER + a - 1,
    }
    if looks:
        delta = float(np.exp(np.min((log_pull - a * log_v)[far]))) / 2
        numbers["C"] = float(np.exp(np.max(2 * found.log_size - a * log_v)))
        numbers["delta"] = delta
        numbers["beta"] = float(np.max(delta * np.exp(a * log_v) - inward * np.exp(log_pull)))
    words = (
        f"Far out |b|² grows {growing('V', growth)} and -b V' {growing('V', pull)}: with "
        f"a = {a:.3g} {_why(a, growth, pull)}."
    )
    return seen("H2", looks, words, where.words, **numbers)


def _why(a: float, growth: float, pull: float) -> str:
    if a <= TOLERANCE:
        return "the pull vanishes, and a must be positive"
    if growth > a + TOLERANCE:
        return "the drift outgrows V^a, and Euler's step with it"
    if a > pull + TOLERANCE:
        return "the pull is weaker than V^a"
    return "both are as they should be"


def check_lipschitz(
    drift: Any, *, center: float = 0.0, scale: float = 1.0, reach: float = 1e4
) -> Answer:
    r"""Whether |b(x) - b(y)| ≤ L |x - y|: for Corollary 1, and for one invariant law in Theorem 1.

    `looks` means that the largest slope between neighbouring points does not grow over the
    outermost decade, and is not ten times as large anywhere after cells were halved twelve times.

    Args: as `check_lyapunov`.

    Returns:
        `constant`, the largest slope between neighbours, and `growth`, its exponent in |x|.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import drifts, theory
        >>> theory.check_lipschitz(drifts.stable_target(1.7, 2.0)).holds
        True
        >>> theory.check_lipschitz(drifts.gaussian(1.7)).looks
        False

    References: [simsekli2017], Theorem 1.
    """
    found = _drift_on(drift, line(center, scale, reach))
    where = found.line
    slopes = np.abs(np.diff(found.values) / np.diff(where.points))
    constant = float(slopes.max())
    slopes = np.where(slopes > SMALLEST_SLOPE * constant, slopes, 0.0)
    if isinstance(drift, LinearDrift):
        return proved("Lipschitz", True, "The drift is linear.", constant=constant)
    with np.errstate(divide="ignore"):
        growth = max(exponents(where, np.append(np.log(slopes), np.log(slopes[-1]))))
    if np.any(found.log_size > LARGEST_LOG):
        growth = np.inf  # it overflows
    if growth > TOLERANCE:
        words = f"Far out the slope of the drift grows {growing('|x|', growth)}."
        return seen("Lipschitz", False, words, where.words, constant=constant, growth=growth)
    jumps = breaks(lambda x: _seen(found.drift, where, x).values, where.points)
    refined = jumps / np.diff(where.points) * 2**HALVINGS
    torn = np.flatnonzero(refined > STEEPER * constant)
    if torn.size:
        words = f"It jumps, or has no bounded slope, near x = {where.points[torn[0]]:.4g}."
        return seen("Lipschitz", False, words, where.words, constant=constant, growth=growth)
    words = f"The largest slope between neighbours is {constant:.4g}, and does not grow far out."
    return seen("Lipschitz", True, words, where.words, constant=constant, growth=growth)


def check_growth(
    drift: Any, *, center: float = 0.0, scale: float = 1.0, reach: float = 1e4
) -> Answer:
    r"""A1, the growth condition that suffices for geometric ergodicity, beside A2:

    .. math:: x\, b(x) ≤ -a x^2 + c, \qquad a, c > 0 .

    `looks` means that over the outermost decade b leads inwards and grows at least linearly, with
    an exponent fitted to 0.05.

    Args: as `check_lyapunov`.

    Returns:
        `exponent` of |b| in |x|, the smaller of both sides, and constants a ≤ 1 and c that serve
        at the points.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> from levymc import drifts, theory
        >>> theory.check_growth(drifts.stable_target(1.7)).holds
        True
        >>> theory.check_growth(drifts.leading_term(lambda x: -abs(x), 1.7)).looks  # bounded
        False

    References: [simsekli2017], the supplement's remark after Theorem 3.
    """
    found = _drift_on(drift, line(center, scale, reach))
    where = found.line
    if isinstance(drift, LinearDrift):
        return proved("A1", True, "The drift is linear.", exponent=1.0)
    far = np.concatenate(where.ends)
    if not np.all(found.inward[far] > 0):
        words = "Far out the drift does not lead inwards: nothing brings a jump back."
        return seen("A1", False, words, where.words)
    exponent = min(exponents(where, found.log_size))
    x = where.points - where.center
    a = float(np.exp(np.minimum(np.min(found.log_size[far] - np.log(np.abs(x[far]))), 0.0)))
    with np.errstate(over="ignore"):
        c = float(np.max(x * found.values + a * x * x))
    words = f"Far out the drift leads inwards and grows {growing('|x|', exponent)}."
    looks = exponent >= 1 - TOLERANCE
    return seen("A1", looks, words, where.words, exponent=exponent, a=a, c=c)


def _drift_on(drift: Any, where: Line) -> Seen:
    starts = jnp.asarray(where.center + where.scale * np.array([-1.0, 0.0, 1.0]), float)
    made = as_now(drifts.as_drift(drift), starts[0]).prepared(starts)
    found = _seen(made, where, where.points)
    wrong = np.flatnonzero(np.isnan(found.log_size))
    if wrong.size:
        raise ValueError(
            f"`drift` must be a number everywhere, got NaN at x = {where.points[wrong[0]]:g}. "
            "Give a smaller `reach`, or a drift that is defined there."
        )
    return found


def _seen(drift: drifts.Drift, where: Line, points: np.ndarray) -> Seen:
    """At any points."""
    found = _signed_logs(drift, jnp.asarray(points, float))
    return Seen(drift, where, *(np.asarray(part, np.float64) for part in found))


@jax.jit
def _signed_logs(drift: drifts.Drift, points: Float[Array, " n"]) -> drifts.SignedLog:
    """The drift is an argument: as a constant, its tables would be folded for every point."""
    return jax.vmap(drift.signed_log)(points)
