"""Posteriors of posteriordb, coded anew, whose reference moments are published there.

References: Magnusson, Torgander, Bürkner, Zhang, Carpenter and Vehtari, "posteriordb: testing,
benchmarking and developing Bayesian inference algorithms", 2025.  The names in the descriptions are
theirs.  Scales are in logarithms; truth comes from quadrature over them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special

from ._grids import Box, Line
from ._hard import log_half_cauchy
from ._light import normals
from ._problem import Coordinate, Marginal, Problem, Truth, entered

LOG_2PI = math.log(2 * math.pi)
# Mean temperatures of the summers 1952 to 2013 in Kilpisjärvi; their years count from -2000.
SUMMERS = np.array(
    [8.3, 10.9, 9.4, 8.1, 8.1, 7.7, 8.6, 9.1, 11, 10.1, 7.6, 8.8, 8.3, 7.2, 9.3, 8.8, 7.6, 10.5,
     11, 8.9, 11.3, 10, 10.1, 6.4, 8.2, 8.4, 9.5, 9.9, 10.6, 7.6, 7.7, 8.1, 8.4, 9.7, 9.5, 7.3,
     10.3, 9.6, 10.3, 9.8, 9, 9.1, 9.5, 8.7, 9.9, 10.5, 9.4, 9, 9, 9.7, 11.4, 10.7, 10.1, 10.8,
     10.4, 10.3, 8.8, 9.8, 8.8, 10.8, 8.6, 11.1]
)  # fmt: skip
YEARS = np.arange(3952.0, 4014.0)
# Gelman and Hill (2007): 46 mesquite bushes; the volume of the canopy (m³) and the weight (g).
CANOPIES = np.array(
    [2.07, 3.05235, 4.284, 1.326, 6.5835, 1.96, 0.675, 11.661, 1.458, 2.688, 0.3024, 1.17325,
     1.296, 0.735, 5.712, 1.309, 0.576, 6.912, 3.534, 4.784, 3.57, 2.808, 0.4, 0.39, 0.693, 0.936,
     8.05, 52, 4.48, 3.328, 1.54, 9.12, 2.736, 6.336, 5.85, 2.6775, 7.92, 4.896, 2.622, 10.125,
     1.001, 14.877, 3.15, 23.37, 10.5, 0.7874]
)  # fmt: skip
WEIGHTS = np.array(
    [401.3, 513.7, 1179.2, 308, 855.2, 268.7, 155.5, 1253.2, 328, 614.6, 60.2, 269.6, 448.4, 120.4,
     378.7, 266.4, 138.9, 1020.8, 635.7, 621.8, 579.8, 326.8, 66.7, 68, 153.1, 256.4, 723, 4052,
     345, 330.9, 163.5, 1160, 386.6, 693.5, 674.4, 217.5, 771.3, 341.7, 125.7, 462.5, 64.5, 850.6,
     226, 1745.1, 908, 213.5]
)  # fmt: skip
# A synthetic series for an autoregression of order five, to four decimals.
SERIES = np.array(
    [0.7294, 0.8298, 0.7840, 1.0260, 0.9697, 1.0829, 0.7064, 0.7769, 0.4618, 0.6386, 0.3742,
     0.0855, -0.1260, -0.2934, -0.2617, -0.3359, -0.5020, -0.6417, -0.6225, -0.8509, -0.8678,
     -1.0164, -1.0559, -0.9695, -1.0673, -0.8431, -0.6827, -0.4447, -0.5920, -0.5106, -0.4179,
     -0.1736, -0.1073, -0.0355, 0.3432, 0.3842, 0.4961, 0.7085, 0.5963, 0.6414, 0.6513, 0.5942,
     0.7779, 0.7308, 0.4822, 0.5320, 0.4851, 0.3686, 0.3533, 0.1634, 0.2530, 0.0007, -0.0158,
     -0.0145, -0.0253, -0.0056, -0.3189, -0.0228, -0.0717, -0.1850, -0.2350, -0.1243, -0.1305,
     -0.1995, 0.0776, -0.1629, 0.0235, -0.0647, 0.0845, 0.0550, 0.1417, 0.0877, -0.0528, 0.0695,
     -0.1014, -0.0689, -0.2512, -0.3903, -0.1676, -0.2792, -0.3121, -0.2866, -0.4118, -0.4982,
     -0.5029, -0.7394, -0.2492, -0.4710, -0.4646, -0.4457, -0.2844, -0.0228, -0.0606, 0.0662,
     0.1405, 0.2763, 0.3772, 0.6103, 0.8809, 0.7885, 0.8014, 0.6610, 0.8098, 0.8205, 0.9808,
     0.7240, 0.9319, 0.8505, 0.4806, 0.5086, 0.4161, 0.3147, -0.0282, -0.0717, -0.1439, -0.5224,
     -0.4034, -0.6886, -0.6947, -0.6497, -0.9927, -0.9354, -0.8970, -0.9782, -1.0668, -0.9536,
     -0.7571, -0.8426, -0.6978, -0.3166, -0.3878, -0.0671, -0.0385, 0.0896, 0.1455, 0.1852, 0.3956,
     0.6853, 0.5563, 0.7108, 0.7463, 0.6685, 0.6937, 0.7380, 0.6628, 0.6901, 0.6807, 0.3733,
     0.4537, 0.3138, 0.4500, -0.0338, 0.0047, -0.0857, 0.1083, -0.1398, -0.0430, -0.4542, -0.3326,
     -0.2334, -0.2015, -0.1827, -0.2279, -0.0415, -0.1210, -0.0724, -0.0482, 0.1580, 0.0584,
     -0.1118, -0.0382, 0.1790, -0.0148, 0.0501, -0.1981, -0.1400, -0.1747, -0.1768, -0.2154,
     -0.4145, -0.3405, -0.4483, -0.6571, -0.3546, -0.5257, -0.6564, -0.5245, -0.4759, -0.3631,
     -0.3367, -0.3254, 0.0007, 0.2080, 0.0023, 0.1125, 0.3494, 0.4717, 0.5907, 0.6049, 0.9332]
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Regression:
    """y ~ N(X b, σ), position b and log σ; given σ the coefficients are normal.

    means, precisions: of the coefficients' normal priors; a precision of zero is a flat one.
    log_scale_prior: log density of log σ.
    """

    design: np.ndarray
    y: np.ndarray
    means: np.ndarray
    precisions: np.ndarray
    log_scale_prior: Callable[[Any], Any]

    @property
    def count(self) -> int:
        """Of coefficients."""
        return self.design.shape[1]

    @cached_property
    def _height(self) -> float:
        """Of the proper ones among the priors, and of the likelihood but for σ."""
        proper = self.precisions[self.precisions > 0]
        return float(np.log(proper).sum() - (len(proper) + len(self.y)) * LOG_2PI) / 2

    def logdensity(self, position: Array) -> Array:
        dtype = position.dtype
        coefficients, log_scale = position[:-1], position[-1]
        fits = jnp.asarray(self.design, dtype) @ coefficients
        squares = jnp.sum((jnp.asarray(self.y, dtype) - fits) ** 2) * jnp.exp(-2 * log_scale)
        offsets = coefficients - jnp.asarray(self.means, dtype)
        squares += jnp.sum(jnp.asarray(self.precisions, dtype) * offsets**2)
        prior = self.log_scale_prior(log_scale) + self._height
        return prior - squares / 2 - len(self.y) * log_scale

    def given_scale(self, log_scale: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Means and variances of the coefficients, and the log evidence with σ's prior."""
        weight = math.exp(-2 * log_scale)
        precision = weight * self.design.T @ self.design + np.diag(self.precisions)
        residuals = self.y - self.design @ self.means
        pull = np.linalg.solve(precision, weight * self.design.T @ residuals)
        squares = weight * residuals @ (residuals - self.design @ pull)
        log_volume = (self.count * LOG_2PI - np.linalg.slogdet(precision)[1]) / 2
        evidence = self._height - squares / 2 - len(self.y) * log_scale + log_volume
        prior = float(self.log_scale_prior(log_scale))
        return self.means + pull, np.diag(np.linalg.inv(precision)), evidence + prior

    def truth(self) -> Truth:
        """By quadrature over log σ, ten of its standard deviations about the fit."""
        rest = self.y - self.design @ np.linalg.lstsq(self.design, self.y, rcond=None)[0]
        middle, reach = math.log(rest.std()), 10 / math.sqrt(2 * len(self.y))
        places = np.linspace(middle - reach, middle + reach, 801)
        means, variances, logs = map(np.array, zip(*map(self.given_scale, places), strict=True))
        line = Line(places, lambda _: logs)
        masses = line.density / line.density.sum()
        kept = masses > 1e-12
        own = tuple(
            normals(masses[kept], means[kept, i], np.sqrt(variances[kept, i]), i)
            for i in range(self.count)
        )
        last = Marginal.of_grid(f"x{self.count}", Coordinate(self.count), places, line.density)
        return Truth("quadrature", (), (*own, last), line.log_evidence)


def _flat_scale(log_scale: Any) -> Any:
    """Of a scale that is uniform on the half-line, the log density of its logarithm."""
    return log_scale


def _of_regression(
    law: Regression, about: str, centre: Any, spread: Any, extent: Any, labels: dict[str, Any]
) -> Problem:
    dimension = law.count + 1
    return Problem(
        **labels,
        dimension=dimension,
        about=about,
        logdensity_fn=law.logdensity,
        starts=lambda key, count: (
            jnp.asarray(centre) + jnp.asarray(spread) * jax.random.normal(key, (count, dimension))
        ),
        extent=np.asarray(extent),
        make_truth=law.truth,
    )


@entered("kilpisjarvi", "final", "light")
def _kilpisjarvi(**labels: Any) -> Problem:
    law = Regression(
        np.column_stack([np.ones_like(YEARS), YEARS]),
        SUMMERS,
        np.array([SUMMERS.mean(), 0.0]),
        np.array([100.0, 1 / 30]) ** -2,
        _flat_scale,
    )
    about = (
        "Trend of summer temperatures (kilpisjarvi_mod-kilpisjarvi): a level at year zero and a "
        "slope, correlated by 1 - 1e-5; starts near no trend."
    )
    centre, spread = [9.3, 0.0, 0.0], [0.1, 1e-4, 0.3]
    return _of_regression(law, about, centre, spread, [90.0, 0.023, 0.4], labels)


@entered("mesquite", "final", "light")
def _mesquite(**labels: Any) -> Problem:
    design = np.column_stack([np.ones(len(CANOPIES)), np.log(CANOPIES)])
    law = Regression(design, np.log(WEIGHTS), np.zeros(2), np.zeros(2), _flat_scale)
    about = (
        "Weights of mesquite bushes by the volume of their canopies "
        "(mesquite-logmesquite_logvolume); starts are standard normal."
    )
    return _of_regression(law, about, np.zeros(3), np.ones(3), [6.0, 1.0, 1.2], labels)


@entered("autoregression-5", "final", "light")
def _autoregression(**labels: Any) -> Problem:
    order, wide = 5, 10.0
    before = [SERIES[order - lag : -lag] for lag in range(1, order + 1)]
    law = Regression(
        np.column_stack([np.ones(len(SERIES) - order), *before]),
        SERIES[order:],
        np.zeros(order + 1),
        np.full(order + 1, wide**-2),
        partial(log_half_cauchy, width=2.5),
    )
    about = "An autoregression of order five (arK-arK); starts are N(0, 0.3)."
    extent = [0.1, 0.9, 0.6, 0.3, 0.3, 0.5, 2.3]
    return _of_regression(law, about, np.zeros(7), np.full(7, 0.3), extent, labels)


# Observations of a Gaussian process at -10, -8 … 10.
OBSERVED = np.array(
    [4.75906, 1.59423, 2.99548, 5.27501, 1.66472, 2.24347, 2.8914, 4.08681, 4.60588, 0.802364,
     3.92136]
)  # fmt: skip


def gaussian_process_logdensity(position: Array) -> Array:
    """log of length ρ ~ Γ(25, 4), height α ~ N⁺(0, 2) and noise's *variance* s ~ N⁺(0, 1)."""
    length, height, noise = jnp.exp(position)
    places = jnp.linspace(-10.0, 10.0, 11, dtype=position.dtype)
    offsets = (places[:, None] - places) / length
    covariance = height**2 * jnp.exp(-(offsets**2) / 2) + noise * jnp.eye(11, dtype=position.dtype)
    root = jnp.linalg.cholesky(covariance)
    y = jnp.asarray(OBSERVED, position.dtype)
    whitened = jax.scipy.linalg.solve_triangular(root, y, lower=True)
    fits = -jnp.sum(whitened**2) / 2 - jnp.sum(jnp.log(jnp.diag(root))) - 5.5 * LOG_2PI
    priors = 24 * position[0] - 4 * length + 25 * math.log(4) - float(special.gammaln(25))
    priors = priors - height**2 / 8 - noise**2 / 2 + 2 * math.log(2) - math.log(2) - LOG_2PI
    return fits + priors + jnp.sum(position)


@entered("gaussian-process", "final", "light")
def _gaussian_process(**labels: Any) -> Problem:
    def truth() -> Truth:
        reaches = [(0.8, 2.9), (-1.5, 2.4), (-1.4, 1.8)]
        box = Box(reaches, [64, 64, 64], gaussian_process_logdensity)
        return Truth("quadrature", (), box.marginals((0, 1, 2)), box.log_evidence)

    return Problem(
        **labels,
        dimension=3,
        about="Length, height and noise of a Gaussian process from eleven observations "
        "(gp_pois_regr-gp_regr); starts are N(0, 0.5) about 1.5, 0.5 and 0.5.",
        logdensity_fn=gaussian_process_logdensity,
        starts=lambda key, count: (
            jnp.array([1.5, 0.5, 0.5]) + 0.5 * jax.random.normal(key, (count, 3))
        ),
        extent=np.array([0.5, 0.7, 0.6]),
        make_truth=truth,
    )
