r"""Smooth functions of compact support, and their fractional Laplacians in closed form."""

import math
from typing import NamedTuple

import numpy as np

POWER = 4  # k: the second derivative, and the fractional Laplacian, are smooth at the edge


class Bump(NamedTuple):
    r"""g(x) = (1 - u²)^k for |u| < 1, u = (x - c)/w, and 0 elsewhere; k = 4.

    center: c.  width: w > 0, half of the support's length.
    """

    center: float
    width: float

    def slope(self, x: np.ndarray) -> np.ndarray:
        """g'."""
        u = (np.asarray(x, np.float64) - self.center) / self.width
        inside = np.maximum(1 - u * u, 0.0)
        return -2 * POWER * u * inside ** (POWER - 1) / self.width

    def fractional_laplacian(self, x: np.ndarray, alpha: float) -> np.ndarray:
        r"""(-Δ)^{α/2} g = F^{-1}{|ω|^α F g}, for α in (0, 2]:

        .. math::
           \frac{2^α Γ(\frac{α+1}2) Γ(k+1)}{\sqrt π\, Γ(k+1-\frac α2)\, w^α}\;
             {}_2F_1\Bigl(\frac{α+1}2, \frac α2 - k; \frac12; u^2\Bigr), \quad |u| < 1,

        .. math::
           \frac{2^α Γ(\frac{α+1}2)}{\sqrt π\, Γ(-\frac α2)\, w^α}\,
             \frac{B(\frac12, k+1)}{|u|^{1+α}}\;
             {}_2F_1\Bigl(\frac{α+1}2, 1 + \frac α2; k + \frac32; u^{-2}\Bigr), \quad |u| > 1 .

        References: [dyda2012], theorem 1, for the first; the second is the integral of the kernel.
        """
        from scipy import special  # only here, as it takes a third of a second

        s = alpha / 2
        u = (np.asarray(x, np.float64) - self.center) / self.width
        square = np.minimum(u * u, 1.0)
        inverse = 1 / np.maximum(u * u, 1.0)
        constant = 2**alpha * math.gamma(s + 0.5) / math.sqrt(math.pi) / self.width**alpha
        within = math.gamma(POWER + 1) / math.gamma(POWER + 1 - s)
        beyond = special.rgamma(-s) * special.beta(0.5, POWER + 1) * inverse ** (s + 0.5)
        return constant * np.where(
            np.abs(u) < 1,
            within * special.hyp2f1(s + 0.5, s - POWER, 0.5, square),
            beyond * special.hyp2f1(s + 0.5, 1 + s, POWER + 1.5, inverse),
        )
