r"""Reference values of the symmetric alpha-stable law, to 25 digits, each computed twice.

The law has the characteristic function exp(-|t|^alpha).  For every point (alpha, x), x >= 0, this
script computes the density, its derivative ("slope") and the survival function by two unrelated
formulas in multiple-precision arithmetic, refuses to go on unless they agree to a relative 1e-15
(25 digits are typical), and writes the first as decimal strings to ``tests/core/data``.

Formulas, all with relative rather than absolute accuracy in the tail:

``ray``        the Fourier integral on the ray t = s e^{i phi}, where it no longer oscillates;
``zolotarev``  Zolotarev's integral over an angle, with a positive integrand;
``small``      the power series in x (convergent for alpha > 1, asymptotic for alpha < 1);
``large``      the power series in 1/x (convergent for alpha < 1, asymptotic for alpha > 1);
``closed``     Cauchy (alpha = 1) and normal (alpha = 2);
``saddle``     alpha = 2 only: the Fourier integral shifted to the line through its saddle point.

Every alpha and x is the exact value of a double; the list "float32" holds arguments that are
exact in single precision too.

Run: ``python tools/stable_oracle.py`` (a few minutes on one core; gmpy2 makes it faster).

References: Zolotarev, One-dimensional Stable Distributions (1986), section 2.2; Nolan, Numerical
calculation of stable densities and distribution functions (1997), Theorem 1.
"""

import functools
import itertools
import json
import random
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import mpmath as mp

OUTPUT = Path(__file__).resolve().parent.parent / "tests" / "core" / "data" / "stable_oracle.json"
DIGITS = 25
WORKING_DIGITS = 60
REQUIRED_AGREEMENT = mp.mpf("1e-15")
# Truncation level of the integrals and series: far below the digits kept, above the rounding.
NEGLIGIBLE = mp.mpf("1e-52")
CONVERGED = mp.mpf("1e-30")
# A convergent series is given up when it needs more than these: its terms cancel too far.
MOST_TERMS = 1500
LARGEST_TERM = mp.mpf("1e120")
EXTRA_DIGITS = 130

ALPHAS = (0.5, 0.6, 0.8, 0.95, 1.0, 1.05, 1.3, 1.5, 1.7, 1.9, 1.99, 1.9999, 1.99999999, 2.0)
POINTS = (
    *(0.0, 1e-8, 1e-4, 3e-3, 0.03, 0.1, 0.25, 0.5, 0.9, 1.0, 1.1, 1.7, 2.5, 3.5, 5.0, 6.5, 8.0),
    *(10.0, 14.0, 20.0, 31.9, 32.1, 50.0, 100.0, 320.0, 1e3, 1e4, 1e5, 1e6, 1e8),
)
# Where formulas divide by alpha - 1 or 2 - alpha: next to the removable singularities.
DELICATE_ALPHAS = (0.999, 1 - 1e-6, 1 + 1e-12, 1.0001, 1.01, 2 - 1e-12, 2 - 2.0**-52)
DELICATE_POINTS = (1e-3, 0.2, 0.8, 1.2, 2.0, 4.0, 9.0, 12.0, 17.0, 40.0, 1e3, 1e7)


class Values(NamedTuple):
    """Density, its derivative and the survival function at one point."""

    pdf: mp.mpf
    slope: mp.mpf
    sf: mp.mpf


def extra_digits(series):
    """Run a series with digits to spare for the cancellation that ``summed_terms`` lets through."""

    @functools.wraps(series)
    def with_extra_digits(alpha, x):
        with mp.workdps(WORKING_DIGITS + EXTRA_DIGITS):
            return series(alpha, x)

    return with_extra_digits


def ray(alpha, x):
    """Fourier integral on the ray in the middle of the sector where exp(-t^alpha) decays.

    For x >= 1 the integral of exp(ixt) alone, which contributes exactly nothing, is taken out, so
    that the integrand is as small as the tail itself.
    """
    subtract = x >= 1
    angle = mp.pi / (4 * alpha)
    direction, direction_power = mp.expj(angle), mp.expj(angle * alpha)
    length = 1 / x if subtract else mp.mpf(1)

    def integrand(u):
        # s = exp(u - exp(-u)) makes the trapezoidal rule doubly exponential at s = 0.
        decay = mp.exp(-u)
        s = length * mp.exp(u - decay)
        exponent = -direction_power * s**alpha
        value = mp.expm1(exponent) if subtract else mp.exp(exponent)
        value *= mp.exp(1j * x * s * direction)
        point = s * direction
        weight = 1 + decay
        pdf = weight * (point * value).real
        slope = weight * (1j * point**2 * value).real
        return pdf, slope, weight * value.imag

    pdf, slope, central = (total / mp.pi for total in trapezoid(integrand))
    return Values(pdf, slope, -central if subtract else mp.mpf(1) / 2 - angle / mp.pi - central)


def trapezoid(integrand):
    """Integrate a vector function over the real line, halving the step until it settles."""
    step = mp.mpf(1) / 16
    sums = arm(integrand, mp.mpf(0), step) + arm(integrand, -step, -step)
    estimate = step * sums
    while True:
        midpoints = arm(integrand, step / 2, step) + arm(integrand, -step / 2, -step)
        sums, step = sums + midpoints, step / 2
        refined = step * sums
        if all(close(a, b, CONVERGED) for a, b in zip(estimate, refined, strict=True)):
            return refined
        if step < mp.mpf(1) / 2000:
            raise ArithmeticError("the trapezoidal rule does not settle")
        estimate = refined


def arm(integrand, start, step):
    """Sum the integrand from ``start`` in steps of ``step`` until its terms are negligible."""
    total, largest = mp.matrix([0, 0, 0]), [mp.mpf(0)] * 3
    quiet, u = 0, start
    while quiet < 4:
        terms = integrand(u)
        for index, term in enumerate(terms):
            total[index] += term
            largest[index] = max(largest[index], abs(term))
        small = all(abs(t) <= NEGLIGIBLE * m for t, m in zip(terms, largest, strict=True))
        quiet = quiet + 1 if small else 0
        u += step
    return total


def zolotarev(alpha, x):
    """Zolotarev's integral over an angle in (0, pi/2); alpha not 1 or 2, x > 0.

    With z = x^{alpha/(alpha-1)} the integrands are functions of zV, V monotone in the angle, so the
    interval is cut where zV takes given values: that finds the peak however narrow it is.
    """
    power = alpha / (alpha - 1)

    def log_height(angle):
        ratio = mp.log(mp.cos(angle) / mp.sin(alpha * angle))
        tilt = mp.log(mp.cos((alpha - 1) * angle) / mp.cos(angle))
        return power * (ratio + mp.log(x)) + tilt

    def integrand(angle):
        # Beyond these limits the integrands are negligible, and near alpha = 1 the exponent of the
        # exponential would overflow.
        height = mp.exp(min(max(log_height(angle), -1000), 12))
        first = height * mp.exp(-height)
        survival = mp.exp(-height) if alpha > 1 else -mp.expm1(-height)
        return first, first * height, survival

    cuts = sorted({crossing(log_height, mp.mpf(level)) for level in LEVELS} | {0, mp.pi / 2})
    total = mp.matrix([0, 0, 0])
    for lower, upper in itertools.pairwise(cuts):
        total += tanh_sinh(integrand, lower, upper)
    first, second, survival = total
    pdf = abs(power) * first / (mp.pi * x)
    # d/dx of zV e^{-zV} / x, with d(zV)/dx = power * zV / x.
    slope = abs(power) * ((power - 1) * first - power * second) / (mp.pi * x**2)
    return Values(pdf, slope, survival / mp.pi)


LEVELS = (-120, -60, -30, -15, -8, -4, -2, 0, 1, 2, 3, 4, 5)


def crossing(log_height, level):
    """Angle where the monotone log height passes ``level``, by bisection to 12 digits."""
    lower, upper = mp.mpf("1e-45"), mp.pi / 2 - mp.mpf("1e-45")
    rising = log_height(upper) > log_height(lower)
    if (log_height(lower) > level) == rising:
        return mp.mpf(0)
    if (log_height(upper) < level) == rising:
        return mp.pi / 2
    # The log height runs off at both ends, hence the bisection on the log of the nearer distance.
    middle = mp.pi / 4
    if (log_height(middle) < level) == rising:
        return mp.pi / 2 - geometric_bisection(
            lambda gap: (log_height(mp.pi / 2 - gap) < level) != rising, mp.pi / 4
        )
    return geometric_bisection(lambda angle: (log_height(angle) < level) == rising, mp.pi / 4)


def geometric_bisection(is_below, upper):
    """Root in (1e-45, upper) of a condition that is true below it and false above."""
    lower = mp.mpf("1e-45")
    for _ in range(52):
        middle = mp.sqrt(lower * upper)
        if is_below(middle):
            lower = middle
        else:
            upper = middle
    return mp.sqrt(lower * upper)


def tanh_sinh(integrand, lower, upper):
    """Double exponential quadrature of a vector function on a finite interval."""
    centre, radius = (lower + upper) / 2, (upper - lower) / 2
    reach, step = mp.mpf("4.1"), mp.mpf(1) / 4
    nodes = [step * k for k in range(-16, 17)]
    sums, previous = mp.matrix([0, 0, 0]), None
    while step > mp.mpf(1) / 200:
        for u in nodes:
            argument = mp.pi / 2 * mp.sinh(u)
            cosh = mp.cosh(argument)
            weight = mp.pi / 2 * mp.cosh(u) / cosh**2
            # Distance from the nearer end, free of cancellation.
            gap = radius * mp.exp(-abs(argument)) / cosh
            angle = lower + gap if u < 0 else upper - gap
            if not lower < angle < upper:
                continue
            for index, value in enumerate(integrand(angle if u else centre)):
                sums[index] += weight * value
        estimate = radius * step * sums
        if previous is not None and all(
            close(a, b, CONVERGED) for a, b in zip(previous, estimate, strict=True)
        ):
            return estimate
        previous = estimate
        step /= 2
        nodes = [step * k for k in range(-int(reach / step) | 1, int(reach / step) + 1, 2)]
    return estimate


@extra_digits
def small(alpha, x):
    """Power series at x = 0; None where it needs too many terms or (alpha < 1) has diverged."""

    def term(k):
        moment = mp.gamma((2 * k + 1) / alpha) / (mp.pi * alpha)
        return (-1) ** k * moment / mp.factorial(2 * k) * x ** (2 * k)

    rows = summed_terms(term, 0, alpha > 1, mp.mpf(1))
    if rows is None:
        return None
    pdf = mp.fsum(row for _, row in rows)
    slope = mp.fsum(2 * k * row for k, row in rows) / x if x else mp.mpf(0)
    central = x * mp.fsum(row / (2 * k + 1) for k, row in rows)
    return Values(pdf, slope, mp.mpf(1) / 2 - central)


@extra_digits
def large(alpha, x):
    """Power series at infinity; None where it needs too many terms or (alpha > 1) has diverged."""

    def term(k):
        return (-1) ** (k + 1) * mp.gamma(k * alpha + 1) / mp.factorial(k) * x ** (-k * alpha - 1)

    leading = abs(term(1) * mp.sinpi(alpha / 2))
    rows = summed_terms(term, 1, alpha < 1, leading)
    if rows is None:
        return None
    rows = [(k, row * mp.sinpi(k * alpha / 2) / mp.pi) for k, row in rows]
    pdf = mp.fsum(row for _, row in rows)
    slope = mp.fsum(-(k * alpha + 1) * row for k, row in rows) / x
    return Values(pdf, slope, x * mp.fsum(row / (k * alpha) for k, row in rows))


def summed_terms(term, first, convergent, leading):
    """Terms (k, value) of a series down to 1e-65 of ``leading``, or None.

    An asymptotic series stops before it diverges, and must have come down to 1e-20 by then.
    The sine factors of the series at infinity are left out of ``term``: near alpha = 2 they would
    make a diverging tail look small.
    """
    rows, previous = [], mp.inf
    for k in range(first, first + MOST_TERMS):
        value = term(k)
        rows.append((k, value))
        size = abs(value)
        grows = size > previous
        if size <= leading * mp.mpf("1e-65") and not grows:
            return rows
        if convergent and size > LARGEST_TERM * leading:
            return None
        if not convergent and grows:
            return rows if previous <= leading * mp.mpf("1e-20") else None
        previous = size
    return None


def closed(alpha, x):
    """Cauchy (alpha = 1) or normal with variance 2 (alpha = 2)."""
    if alpha == 1:
        pdf = 1 / (mp.pi * (1 + x**2))
        return Values(pdf, -2 * x / (1 + x**2) * pdf, mp.atan2(1, x) / mp.pi)
    pdf = mp.exp(-(x**2) / 4) / (2 * mp.sqrt(mp.pi))
    return Values(pdf, -x / 2 * pdf, mp.erfc(x / 2) / 2)


def saddle(alpha, x):
    """alpha = 2: Fourier integral on t = s + ix/2, where it is a real Gaussian integral."""
    outside = mp.exp(-(x**2) / 4) / (2 * mp.pi)
    # exp(-s^2) with the plain trapezoidal rule: error exp(-(pi/step)^2), and the pole at
    # s = ix/2 of the survival function is kept away by taking x >= 1.
    step = mp.mpf(1) / 16 if x >= 20 else mp.mpf(1) / 160
    nodes = [step * k for k in range(-int(12 / step), int(12 / step) + 1)]
    weights = [step * mp.exp(-(s**2)) for s in nodes]
    pdf = outside * mp.fsum(weights)
    slope = outside * mp.fsum(w * (-x / 2) for w in weights)
    real_parts = (w * (x / 2) / (x**2 / 4 + s**2) for s, w in zip(nodes, weights, strict=True))
    return Values(pdf, slope, outside * mp.fsum(real_parts))


def candidates(alpha, x):
    """Formulas that apply at (alpha, x), cheapest check first; ``ray`` is the workhorse."""
    if alpha in (1, 2):
        yield closed
    if alpha < 2 or x < 1:
        yield ray
    elif x >= 1:
        yield saddle
    if alpha != 1:
        yield small
        if x > 0 and alpha < 2:
            yield large
            yield zolotarev


def compute(alpha, x):
    """First two formulas that give a value, their names, and the relative disagreement."""
    results = []
    for formula in candidates(alpha, x):
        values = formula(alpha, x)
        if values is not None:
            results.append((formula.__name__, values))
        if len(results) == 2:
            break
    (first_name, first), (second_name, second) = results
    # At x = 0 the slope is zero by symmetry and has no relative error.
    pairs = zip(first, second, strict=True)
    gaps = [relative_gap(a, b) for a, b in pairs if x or abs(a) > NEGLIGIBLE]
    return first, f"{first_name}/{second_name}", max(gaps)


def relative_gap(a, b):
    return abs(a - b) / max(abs(a), abs(b)) if a != b else mp.mpf(0)


def close(a, b, tolerance):
    # Zero is reached only where symmetry makes the exact value zero (the slope at x = 0).
    return abs(a - b) <= tolerance * abs(b) or max(abs(a), abs(b)) < mp.mpf("1e-50")


def record(alpha, x, values):
    """One entry of the data file; logs because the normal tail underflows."""

    def text(value):
        return mp.nstr(value, DIGITS, strip_zeros=False, min_fixed=0, max_fixed=0)

    slope = values.slope if x else mp.mpf(0)
    return {
        "alpha": repr(alpha),
        "x": repr(x),
        "pdf": text(values.pdf),
        "sf": text(values.sf),
        "slope": text(slope),
        "score": text(slope / values.pdf),
        "log_pdf": text(mp.log(values.pdf)),
        "log_sf": text(mp.log(values.sf)),
    }


def to_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def float64_arguments():
    """Grid, delicate exponents, and random points: half over all scales, half in the middle."""
    generator = random.Random(20171106)
    pairs = [(alpha, x) for alpha in ALPHAS for x in POINTS]
    pairs += [(alpha, x) for alpha in DELICATE_ALPHAS for x in DELICATE_POINTS]
    for lowest, highest in ((-8.0, 8.0), (-1.5, 2.0)):
        for _ in range(60):
            pairs.append((generator.uniform(0.5, 2.0), 10.0 ** generator.uniform(lowest, highest)))
    return pairs


def float32_arguments():
    """The same pairs rounded to single precision, without repeats."""
    rounded = [(to_float32(alpha), to_float32(x)) for alpha, x in float64_arguments()]
    return list(dict.fromkeys(rounded))


def main():
    mp.mp.dps = WORKING_DIGITS
    started, methods, worst = time.time(), Counter(), {}
    cache, lists = {}, {}
    for name, pairs in (("float64", float64_arguments()), ("float32", float32_arguments())):
        for pair in pairs:
            if pair not in cache:
                values, method, gap = compute(mp.mpf(pair[0]), mp.mpf(pair[1]))
                if gap > REQUIRED_AGREEMENT:
                    sys.exit(f"alpha, x = {pair}: {method} disagree by {mp.nstr(gap, 3)}")
                methods[method] += 1
                worst[method] = max(worst.get(method, (mp.mpf(0), pair)), (gap, pair))
                cache[pair] = record(*pair, values)
        lists[name] = [cache[pair] for pair in pairs]
    write(lists)
    for method, (gap, pair) in sorted(worst.items()):
        print(
            f"{method:16s} {methods[method]:5d} points, worst disagreement "
            f"{mp.nstr(gap, 3):>9s} at alpha, x = {pair}"
        )
    print(f"{len(cache)} points in {time.time() - started:.0f} s")


def write(lists):
    """One entry a line, so that a change of one value is a change of one line."""
    about = "Symmetric stable law exp(-|t|^alpha); made by tools/stable_oracle.py"
    blocks = [
        f'"{name}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"
        for name, entries in lists.items()
    ]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("{\n" + f'"about": {json.dumps(about)},\n' + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main()
