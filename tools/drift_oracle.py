r"""Reference values of the exact fractional drift, to 25 digits, for ``tests/test_drifts.py``.

The library integrates the *density* against :math:`u^{-\alpha}`.  Everything here goes another way:
the drift is the Riesz potential of the *gradient* of the density,

.. math:: b(x) = \frac{1}{\varphi(x)} \frac{1}{2\Gamma(2-\alpha)\cos(\pi(2-\alpha)/2)}
          \int_0^\infty u^{1-\alpha} \bigl[\varphi'(x+u) + \varphi'(x-u)\bigr] \, du ,

by tanh-sinh quadrature in mpmath, and each family is checked against a closed form that shares
nothing with that integral (confluent and Gauss hypergeometric functions, a linear law).

Run ``python tools/drift_oracle.py`` to write ``tests/core/data/drift_oracle.json``: five minutes on
one core.  Numbers are stored as decimal strings.  Positions are doubles written out in full, so
that a test that reads them back evaluates at the very same points.

Points near a root of ``b``: a relative error has no meaning at the root itself, where the rounding
of the position alone exceeds the value.  Positions closer than ``ROOT_GAP`` to a root are left out;
beyond that the error is taken relative to ``|b|`` without any floor, and positions at 2 and 20
times the gap, on both sides of every root, are in the list on purpose.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import mpmath as mp

WORKING_DIGITS = 34
STORED_DIGITS = 30
# Every stored value is certified to this relative accuracy by the quadrature's own error estimate
# and, where there is one, by the closed form.
CERTIFIED = mp.mpf(10) ** -25

ALPHAS = ("1.2", "1.5", "1.7", "1.9")
ROOT_GAP = 1e-3
DEFAULT_OUTPUT = (
    Path(__file__).resolve().parents[1] / "tests" / "core" / "data" / "drift_oracle.json"
)

Scalar = mp.mpf
Function = Callable[[Scalar], Scalar]


# --- the integral -------------------------------------------------------------------------------


def riesz_constant(alpha: Scalar) -> Scalar:
    r"""Kernel constant of the potential of order 2 − α: 1 / (2 Γ(2−α) cos(π(2−α)/2))."""
    order = 2 - alpha
    return 1 / (2 * mp.gamma(order) * mp.cos(mp.pi * order / 2))


def riesz_potential(function: Function, x: Scalar, alpha: Scalar, panels: list) -> Scalar:
    """D^{α−2} of ``function`` at ``x``; ``panels`` are the distances at which to cut the integral.

    The first panel runs in t = u^{2−α}, which removes the singular kernel: tanh-sinh nodes cannot
    come near enough to u = 0 for u^{-0.9}.
    """
    power = 1 / (2 - alpha)

    def folded(distance: Scalar) -> Scalar:
        return function(x + distance) + function(x - distance)

    near, near_error = mp.quad(
        lambda t: folded(t**power), [0, panels[0] ** (2 - alpha)], error=True, maxdegree=9
    )
    far, far_error = mp.quad(
        lambda u: u ** (1 - alpha) * folded(u), panels, error=True, maxdegree=9
    )
    value = near * power + far
    uncertainty = near_error * power + far_error
    if uncertainty > CERTIFIED * abs(value):
        message = f"quadrature at x={mp.nstr(x, 8)}, alpha={mp.nstr(alpha, 3)}"
        raise ArithmeticError(f"{message}: {mp.nstr(uncertainty, 3)} of {mp.nstr(value, 3)}")
    return riesz_constant(alpha) * value


def distances(x: Scalar, landmarks: Iterable, last: Scalar) -> list:
    """Cuts at the distances of the landmarks, at least 1/4 apart, from 1/4 up to ``last``."""
    cuts = [mp.mpf(1) / 4]
    for cut in sorted(abs(x - mark) for mark in landmarks):
        if cut - cuts[-1] >= mp.mpf(1) / 4 and cut < last:
            cuts.append(cut)
    return [*cuts, mp.mpf(last)]


# --- (a) the double well ------------------------------------------------------------------------


def double_well(x: Scalar) -> Scalar:
    return (x + 5) * (x + 1) * (x - mp.mpf("1.02")) * (x - 5) / 10 + mp.mpf("0.5")


def double_well_slope(x: Scalar) -> Scalar:
    shift = mp.mpf("1.02")
    quadratic = (x + 1) * (x - shift)
    return (2 * x * quadratic + (x * x - 25) * (2 * x + 1 - shift)) / 10


def double_well_weighted(x: Scalar, alpha: Scalar, reference: Scalar) -> Scalar:
    """D^{α−2} f_π at x, with φ = exp(reference − U) so that nothing under- or overflows."""

    def negative_flux(y: Scalar) -> Scalar:
        return -double_well_slope(y) * mp.exp(reference - double_well(y))

    # exp(−U) is below 1e-80 of its maximum outside [−7, 7].
    landmarks = [mp.mpf(k) for k in range(-7, 8)]
    return riesz_potential(negative_flux, x, alpha, distances(x, landmarks, abs(x) + 8))


def double_well_drift(x: Scalar, alpha: Scalar) -> Scalar:
    return double_well_weighted(x, alpha, double_well(x))


def double_well_log_drift(x: Scalar, alpha: Scalar) -> tuple:
    """Sign of b and log |b|, for positions where b itself leaves the doubles."""
    weighted = double_well_weighted(x, alpha, mp.mpf(0))
    return int(mp.sign(weighted)), mp.log(abs(weighted)) + double_well(x)


def bracketed_root(function: Function, left: Scalar, right: Scalar, width: float) -> Scalar:
    """Regula falsi with the Illinois weight: a few evaluations where bisection takes twenty."""
    at_left, at_right = function(left), function(right)
    while True:
        middle = (left * at_right - right * at_left) / (at_right - at_left)
        if min(abs(middle - left), abs(middle - right)) < width:
            return middle
        at_middle = function(middle)
        if mp.sign(at_middle) == mp.sign(at_right):
            at_left /= 2
        else:
            left, at_left = right, at_right
        right, at_right = middle, at_middle


def double_well_roots(alpha: Scalar) -> list:
    """The three roots of b in [−5, 5], to 1e-5: enough to keep a distance of ROOT_GAP."""
    brackets = (("-3.8", "-3.4"), ("0.1", "0.3"), ("3.4", "3.8"))
    return [
        bracketed_root(lambda x: double_well_drift(x, alpha), mp.mpf(left), mp.mpf(right), 1e-5)
        for left, right in brackets
    ]


def double_well_positions(roots: list) -> list[float]:
    """The grid −5:0.25:5, eight positions off the grid, and both sides of every root."""
    grid = [-5 + k / 4 for k in range(41)]
    off_grid = [-4.87, -3.333, -2.718, -0.61, 0.07, 1.414, 2.236, 4.669]
    near = [float(root) + side * ROOT_GAP for root in roots for side in (-20, -2, 2, 20)]
    every = sorted({float(x) for x in grid + off_grid + near})
    return [x for x in every if all(abs(x - root) > ROOT_GAP for root in roots)]


def double_well_section(alpha: Scalar) -> dict:
    roots = double_well_roots(alpha)
    positions = double_well_positions(roots)
    values = [double_well_drift(mp.mpf(x), alpha) for x in positions]
    for x, value in list(zip(positions, values, strict=True))[::12]:
        require_equal(value, double_well_by_density(mp.mpf(x), alpha), f"double well at {x}")
    return {**table(positions, values), "roots": [decimal(root, 8) for root in roots]}


def double_well_by_density(x: Scalar, alpha: Scalar) -> Scalar:
    """The same drift without the gradient: ∫ [φ(x+u) − φ(x−u)] u^{−α} du, cut differently."""

    def folded(u: Scalar) -> Scalar:
        level = double_well(x)
        return mp.exp(level - double_well(x + u)) - mp.exp(level - double_well(x - u))

    # Below u = 1e-15 the difference is 2 u times the slope, to 30 digits; above, it cancels by as
    # many digits as u has zeros.
    power, first = 1 / (2 - alpha), mp.mpf(10) ** -15
    with mp.extradps(20):
        near = mp.quad(lambda t: folded(t**power) / t**power, [first ** (2 - alpha), 1])
    near = power * (near - 2 * double_well_slope(x) * first ** (2 - alpha))
    far = mp.quad(lambda u: folded(u) * u**-alpha, mp.linspace(1, 13, 25))
    return riesz_constant(alpha) * (alpha - 1) * (near + far)


def far_section(alpha: Scalar) -> dict:
    positions = [-40.0, -12.0, -7.5, 6.5, 10.0, 40.0]
    pairs = [double_well_log_drift(mp.mpf(x), alpha) for x in positions]
    return log_table(positions, pairs)


# --- (b) Student's t with two degrees of freedom ------------------------------------------------


def student_density(x: Scalar) -> Scalar:
    return (1 + x * x / 2) ** mp.mpf("-1.5")


def student_derivative(x: Scalar) -> Scalar:
    return -mp.mpf("1.5") * x * (1 + x * x / 2) ** mp.mpf("-2.5")


def student_drift(x: Scalar, alpha: Scalar) -> Scalar:
    landmarks = [0, -1, 1, -3, 3, -10, 10, 2 * x, 4 * x]
    panels = [*distances(x, landmarks, 10 * abs(x) + 40), mp.inf]
    return riesz_potential(student_derivative, x, alpha, panels) / student_density(x)


def student_drift_hypergeometric(x: Scalar, alpha: Scalar) -> Scalar:
    r"""From the characteristic function √2|ω| K₁(√2|ω|): a sine transform of Bessel's K."""
    first, second = (3 + alpha) / 2, (1 + alpha) / 2
    factor = 2 ** (alpha / 2) * mp.gamma(first) * mp.gamma(second) / (mp.sqrt(2) * mp.pi)
    series = mp.hyp2f1(first, second, mp.mpf("1.5"), -x * x / 2)
    normaliser = 1 / (2 * mp.sqrt(2))
    return -factor * x * series / (normaliser * student_density(x))


def student_section(alpha: Scalar) -> dict:
    steps = [0.01, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0, 15.0, 20.0, 27.0, 35.0]
    positive = [*steps, 42.5, 50.0]
    positions = sorted([-x for x in positive] + positive)
    values = [student_drift_hypergeometric(mp.mpf(x), alpha) for x in positions]
    for x, value in zip(positions, values, strict=True):
        if x > 0:
            require_equal(student_drift(mp.mpf(x), alpha), value, f"Student at {x}")
    return table(positions, values)


# --- (c) the standard normal --------------------------------------------------------------------


def normal_drift(x: Scalar, alpha: Scalar) -> Scalar:
    r"""−(2^{α/2}/√π) Γ((α+1)/2) x ₁F₁((2−α)/2; 3/2; x²/2)."""
    factor = 2 ** (alpha / 2) / mp.sqrt(mp.pi) * mp.gamma((alpha + 1) / 2)
    return -factor * x * mp.hyp1f1((2 - alpha) / 2, mp.mpf("1.5"), x * x / 2)


def normal_drift_integral(x: Scalar, alpha: Scalar) -> Scalar:
    def derivative(y: Scalar) -> Scalar:
        return -y * mp.exp((x * x - y * y) / 2)

    # The density falls below 1e-60 of its maximum beyond 17.
    landmarks = [mp.mpf(k) for k in range(-17, 18)]
    return riesz_potential(derivative, x, alpha, distances(x, landmarks, abs(x) + 17))


def normal_section(alpha: Scalar) -> dict:
    positive = [0.001, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.7, 4.4, 5.0, 5.5, 6.0]
    positions = sorted([-x for x in positive] + positive)
    values = [normal_drift(mp.mpf(x), alpha) for x in positions]
    for x in (0.25, 1.5, 3.7, 6.0):
        exact = normal_drift(mp.mpf(x), alpha)
        require_equal(normal_drift_integral(mp.mpf(x), alpha), exact, f"normal at {x}")
    return table(positions, values)


def normal_far_section(alpha: Scalar) -> dict:
    positions = [-45.0, -20.0, -10.0, 10.0, 20.0, 45.0, 1000.0]
    values = [normal_drift(mp.mpf(x), alpha) for x in positions]
    pairs = [(int(mp.sign(value)), mp.log(abs(value))) for value in values]
    return log_table(positions, pairs)


# --- (d) normal mixtures ------------------------------------------------------------------------

MIXTURE = {
    "weights": ["0.5", "0.3", "0.2"],
    "means": ["-3", "0.5", "4"],
    "stds": ["0.75", "1.5", "0.5"],
}
PLANE_MIXTURE = {
    "weights": ["0.4", "0.35", "0.25"],
    "means": [["-2", "1"], ["1", "-1.5"], ["2.5", "2"]],
    "stds": [["1", "0.5"], ["0.75", "1.25"], ["0.5", "1"]],
}


def bell(x: Scalar, mean: Scalar, std: Scalar) -> Scalar:
    return mp.exp(-(((x - mean) / std) ** 2) / 2) / std


def mixture_drift(x: Scalar, alpha: Scalar, weights: list, means: list, stds: list) -> Scalar:
    parts = list(zip(weights, means, stds, strict=True))

    def density(y: Scalar) -> Scalar:
        return mp.fsum(w * bell(y, m, s) for w, m, s in parts)

    def derivative(y: Scalar) -> Scalar:
        return mp.fsum(-w * (y - m) / s**2 * bell(y, m, s) for w, m, s in parts)

    reach = max(abs(x - m) + 17 * s for _, m, s in parts)
    landmarks = [m + k * s for _, m, s in parts for k in range(-8, 9, 4)]
    return riesz_potential(derivative, x, alpha, distances(x, landmarks, reach)) / density(x)


def mixture_section(alpha: Scalar) -> dict:
    weights, means, stds = (numbers(MIXTURE[name]) for name in ("weights", "means", "stds"))
    positions = [-6.0, -4.5, -3.2, -2.0, -1.0, 0.0, 0.8, 2.0, 3.0, 3.9, 4.6, 6.0]
    values = [mixture_drift(mp.mpf(x), alpha, weights, means, stds) for x in positions]
    return table(positions, values)


def plane_mixture_drift(point: list, axis: int, alpha: Scalar) -> Scalar:
    """Along one axis a diagonal mixture is a 1-D mixture, reweighted by the other coordinates."""
    means = [numbers(row) for row in PLANE_MIXTURE["means"]]
    stds = [numbers(row) for row in PLANE_MIXTURE["stds"]]
    other = 1 - axis
    weights = [
        weight * bell(point[other], mean[other], std[other])
        for weight, mean, std in zip(numbers(PLANE_MIXTURE["weights"]), means, stds, strict=True)
    ]
    along_means, along_stds = ([row[axis] for row in rows] for rows in (means, stds))
    return mixture_drift(point[axis], alpha, weights, along_means, along_stds)


def plane_mixture_section(alpha: Scalar) -> dict:
    points = [[-2.0, 0.5], [0.0, 0.0], [1.5, -2.0], [2.25, 2.5], [-0.5, 3.0]]
    values = [
        [decimal(plane_mixture_drift(numbers(point), axis, alpha)) for axis in (0, 1)]
        for point in points
    ]
    return {"x": [[repr(x) for x in point] for point in points], "drift": values}


# --- (e) a stable target ------------------------------------------------------------------------


# Both series serve at this distance: the tail's smallest term is below 1e-30 for α ≤ 1.7.
STABLE_SWITCH = mp.mpf(12)


def stable_power_series(alpha: Scalar) -> list:
    """Coefficients of p′(x)/x in x², highest first, enough of them for |x| ≤ STABLE_SWITCH."""
    coefficients, k = [], 1
    while True:
        term = (-1) ** k * mp.gamma((2 * k + 1) / alpha) / mp.factorial(2 * k - 1)
        coefficients.append(term / (mp.pi * alpha))
        if k > 20 and abs(term) * STABLE_SWITCH ** (2 * k) < mp.mpf(10) ** -30:
            return coefficients[::-1]
        k += 1


def stable_tail_series(alpha: Scalar) -> list:
    """Coefficients of x² p′(x) in x^{−α}, highest first, up to the smallest term at the switch."""
    last = min(int((STABLE_SWITCH / alpha) ** (alpha / (alpha - 1))), 150)
    coefficients = [
        (-1) ** k * mp.gamma(alpha * k + 2) / mp.factorial(k) * mp.sin(k * mp.pi * alpha / 2)
        for k in range(1, last + 1)
    ]
    return [value / mp.pi for value in coefficients[::-1]] + [mp.mpf(0)]


def stable_derivative(alpha: Scalar) -> Function:
    """d/dx of the standard SαS density: power series near 0, asymptotic series in the tails."""
    # The terms of the power series reach 1e111 before they cancel (α = 1.5, |x| = 12).
    with mp.workdps(150):
        near = stable_power_series(alpha)
    tail = stable_tail_series(alpha)

    def derivative(x: Scalar) -> Scalar:
        if abs(x) >= STABLE_SWITCH:
            return mp.sign(x) * mp.polyval(tail, abs(x) ** -alpha) / x**2
        with mp.workdps(150):
            return x * mp.polyval(near, x * x)

    return derivative


def stable_check(alpha: Scalar, x: Scalar) -> Scalar:
    """Relative distance of D^{α−2} p′ / p from −x/α, the linear law the library states."""
    derivative = stable_derivative(alpha)
    # Cut where either argument crosses the switch: the two series differ there by rounding.
    switches = [STABLE_SWITCH - x, STABLE_SWITCH + x]
    panels = [mp.mpf(1) / 2, x, 2 * x + 1, *switches, 4 * STABLE_SWITCH, mp.inf]
    density = -mp.quad(derivative, [x, x + 2, STABLE_SWITCH, 4 * STABLE_SWITCH, mp.inf])
    return abs(riesz_potential(derivative, x, alpha, panels) / density / (-x / alpha) - 1)


def stable_section() -> dict:
    checked = {}
    for alpha, x in (("1.5", "1"), ("1.5", "3"), ("1.7", "2")):
        distance = stable_check(mp.mpf(alpha), mp.mpf(x))
        if distance > CERTIFIED:
            raise ArithmeticError(f"stable law at alpha={alpha}, x={x}: off by {distance}")
        checked[f"alpha={alpha}, x={x}"] = mp.nstr(distance, 3)
    return {"law": "-x / (alpha * scale**alpha)", "relative_distance_by_integral": checked}


# --- the paper's centred differences ------------------------------------------------------------


def riesz_coefficient(gamma: Scalar, k: int) -> Scalar:
    """g_{γ,k} straight from the paper's definition."""
    both = mp.rgamma(gamma / 2 - k + 1) * mp.rgamma(gamma / 2 + k + 1)
    return (-1) ** k * mp.gamma(gamma + 1) * both


def centered_difference_pair(x: Scalar, alpha: Scalar, spacing: Scalar, num_terms: int) -> tuple:
    """Sign and log size of b̃: mpmath's exponent has no bounds, so nothing needs care."""
    gamma = alpha - 2
    total = mp.fsum(
        -riesz_coefficient(gamma, abs(k))
        * double_well_slope(x - k * spacing)
        * mp.exp(double_well(x) - double_well(x - k * spacing))
        for k in range(-num_terms, num_terms + 1)
    )
    total *= spacing**-gamma
    return int(mp.sign(total)), mp.log(abs(total))


def centered_difference_section(alpha: Scalar) -> dict:
    positions = [-56.25, -40.0, -5.0, -3.6, -2.0, -0.3, 0.4, 1.7, 3.5, 5.0, 40.0, 56.25]
    # The spacing is the double nearest to 0.06, as a caller would pass it.
    pairs = [centered_difference_pair(mp.mpf(x), alpha, mp.mpf(0.06), 170) for x in positions]
    return log_table(positions, pairs)


# --- bookkeeping --------------------------------------------------------------------------------


def numbers(texts: list) -> list:
    return [mp.mpf(text) for text in texts]


def decimal(value: Scalar, digits: int = STORED_DIGITS) -> str:
    return mp.nstr(value, digits, strip_zeros=False)


def table(positions: list[float], values: list) -> dict:
    return {"x": [repr(x) for x in positions], "drift": [decimal(value) for value in values]}


def log_table(positions: list[float], pairs: list) -> dict:
    return {
        "x": [repr(x) for x in positions],
        "sign": [sign for sign, _ in pairs],
        "log_size": [decimal(log_size) for _, log_size in pairs],
    }


def require_equal(value: Scalar, other: Scalar, what: str) -> None:
    if abs(value - other) > CERTIFIED * abs(other):
        raise ArithmeticError(f"{what}: {mp.nstr(value, 30)} against {mp.nstr(other, 30)}")


BY_ALPHA = {
    "double_well": double_well_section,
    "double_well_far": far_section,
    "student_two": student_section,
    "normal": normal_section,
    "normal_far": normal_far_section,
    "mixture": mixture_section,
    "plane_mixture": plane_mixture_section,
    "centered_difference": centered_difference_section,
}


def build() -> dict:
    oracle = {"root_gap": ROOT_GAP, "parameters": {"mixture": MIXTURE, "plane": PLANE_MIXTURE}}
    for name, section in BY_ALPHA.items():
        started = time.perf_counter()
        oracle[name] = {alpha: section(mp.mpf(alpha)) for alpha in ALPHAS}
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    oracle["stable"] = stable_section()
    return oracle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    arguments = parser.parse_args()
    mp.mp.dps = WORKING_DIGITS
    arguments.output.write_text(json.dumps(build(), indent=1) + "\n")


if __name__ == "__main__":
    main()
