r"""Compute the table behind `levymc.stable`: polynomials for the law minus the Gaussian.

For the density, and likewise for the central probability and the derivative,

.. math:: f(x; α) - f(x; 2) = \frac{1}{π} \mathrm{Re} \int_0^∞ e^{ixt} (e^{-t^α} - e^{-t^2})\,dt .

Divided by (2 - α) this is smooth in α up to and including α = 2, which neither log f nor its tail
is.  The integral is taken along the ray t = s e^{iπ/8}, where the integrand decays for every α and
x, by the double-exponential rule in 120-bit arithmetic; `levymc.stable._tabulated` has the layout.

Run: ``python tools/make_stable_table.py`` (about ten minutes on two cores).
"""

import argparse
import multiprocessing
from pathlib import Path

import gmpy2
import numpy as np
from gmpy2 import mpc, mpfr
from numpy.polynomial import chebyshev

from levymc.stable import _tabulated

DESTINATION = Path(__file__).parents[1] / "src/levymc/stable/_table.npz"
PRECISION = 120
STEP = 1 / 32  # of the double-exponential rule; halving it changes nothing above 3e-19
NEGLIGIBLE = 1e-75  # squared modulus


def ray_rule(step):
    """Nodes and weights on the ray, s = exp(τ - e^{-τ}), for integrands that decay like e^{-s}."""
    taus = [mpfr(step) * k for k in range(round(-4.6 / step), round(9.6 / step) + 1)]
    sizes = [gmpy2.exp(tau - gmpy2.exp(-tau)) for tau in taus]
    weights = [s * (1 + gmpy2.exp(-tau)) * mpfr(step) for s, tau in zip(sizes, taus, strict=True)]
    return sizes, weights


class LawMinusGaussian:
    """The three differences, over 2 - α, for one α."""

    def __init__(self, alpha, step=STEP):
        self.alpha = mpfr(alpha)
        self.sizes, self.weights = ray_rule(step)
        angle = gmpy2.const_pi() / 8
        self.direction = gmpy2.exp(mpc(0, angle))
        turned = gmpy2.exp(mpc(0, angle * self.alpha))
        self.stable_exponents = [turned * s**self.alpha for s in self.sizes]
        self.gaussian_exponents = [(self.direction * s) ** 2 for s in self.sizes]

    def __call__(self, x):
        """Return (density, central probability / x, - derivative / x), each a difference."""
        x = mpfr(x)
        unit = 1 / max(x, mpfr(1))
        stable_unit, gaussian_unit = unit**self.alpha, unit**2
        density = central = derivative = mpc(0)
        columns = zip(
            self.sizes, self.weights, self.stable_exponents, self.gaussian_exponents, strict=True
        )
        for size, weight, stable, gaussian in columns:
            t = self.direction * size * unit
            term = gmpy2.exp(-stable_unit * stable) - gmpy2.exp(-gaussian_unit * gaussian)
            term *= gmpy2.exp(mpc(0, 1) * x * t) * self.direction * unit * weight
            density, central, derivative = density + term, central + term / t, derivative + term * t
            if size > 1 and gmpy2.norm(term) * (1 + gmpy2.norm(t)) < NEGLIGIBLE:
                break
        factor = 1 / (gmpy2.const_pi() * (2 - self.alpha))
        return density.real * factor, central.imag * factor / x, derivative.imag * factor / x


def chebyshev_points(count):
    return np.cos(np.pi * (np.arange(count) + 0.5) / count)


def panel_values(alpha, count):
    """Rescaled differences at the Chebyshev points of every panel: (3, panels, count)."""
    law = LawMinusGaussian(alpha)
    positions = _tabulated.positions(chebyshev_points(count), alpha)
    values = np.empty((3, *positions.shape))
    for place in np.ndindex(positions.shape):
        x = positions[place]
        growth = max(mpfr(x), mpfr(1))
        powers = (1 + law.alpha, 1 + law.alpha, 3 + law.alpha)
        values[(slice(None), *place)] = [
            float(v * growth**p) for v, p in zip(law(x), powers, strict=True)
        ]
    return values


def monomials(values, axis):
    """Interpolate values at Chebyshev points by a polynomial; its coefficients in powers."""
    values = np.moveaxis(values, axis, 0)
    count = len(values)
    fitted = chebyshev.chebfit(chebyshev_points(count), values.reshape(count, -1), count - 1)
    to_powers = np.zeros((count, count))
    for degree, unit in enumerate(np.eye(count)):
        to_powers[: degree + 1, degree] = chebyshev.cheb2poly(unit[: degree + 1])
    return np.moveaxis((to_powers @ fitted).reshape(values.shape), 0, axis)


def band_values(band):
    """The rescaled differences of one band of α: (alphas, 3, panels, points)."""
    gmpy2.get_context().precision = PRECISION
    low, high = _tabulated.ALPHA_EDGES[band : band + 2]
    alphas = (low + high) / 2 + (high - low) / 2 * chebyshev_points(_tabulated.ALPHA_COUNT)
    return np.stack([panel_values(alpha, _tabulated.POSITION_COUNT) for alpha in alphas])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DESTINATION)
    arguments = parser.parse_args()
    with multiprocessing.Pool() as pool:
        bands = pool.map(band_values, range(len(_tabulated.ALPHA_EDGES) - 1), chunksize=1)
    values = np.moveaxis(np.stack(bands), 2, 0)  # (function, band, α, panel, x)
    np.savez_compressed(arguments.out, coefficients=monomials(monomials(values, axis=2), axis=4))


if __name__ == "__main__":
    main()
