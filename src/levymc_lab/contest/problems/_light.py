"""One mode and light tails: what NUTS is good at."""

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special, stats

from levymc import stable

from ._grids import Box
from ._laws import Mixture, mixture_problem, rotation
from ._problem import Coordinate, Marginal, Problem, Truth, entered
from ._references import long_run


def logistic(
    num_rows: int, dimension: int, correlation: float, seed: int, about: str, **labels: Any
) -> Problem:
    """Logistic regression on synthetic data; the truth is a long run."""
    rng = np.random.default_rng(seed)
    lags = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    design = rng.normal(size=(num_rows, dimension)) @ np.linalg.cholesky(correlation**lags).T
    chances = special.expit(design @ rng.normal(0, 0.7, dimension))
    signed = (2.0 * (rng.random(num_rows) < chances) - 1)[:, None] * design

    def logdensity(position: Array) -> Array:
        fits = jnp.asarray(signed, position.dtype) @ position
        prior = -jnp.sum(position**2) / 2 - dimension / 2 * math.log(2 * math.pi)
        return jnp.sum(jax.nn.log_sigmoid(fits)) + prior

    return Problem(
        **labels,
        dimension=dimension,
        about=about,
        logdensity_fn=logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, dimension)),
        extent=1.5,
        make_truth=lambda: long_run(
            labels["name"], {f"x{i}": Coordinate(i) for i in (0, dimension // 2, dimension - 1)}
        ),
    )


@entered("logistic-40", "final", "light")
def _logistic(**labels: Any) -> Problem:
    about = (
        "Logistic regression: 400 synthetic observations, 40 coefficients with standard normal "
        "priors, and neighbouring columns correlated by 0.9; starts are standard normal."
    )
    return logistic(400, 40, 0.9, seed=40, **labels, about=about)


@entered("gaussian-50", "final", "light")
def _gaussian_50(**labels: Any) -> Problem:
    return _gaussian(50, 100.0, labels)


@entered("gaussian-200", "final", "light")
def _gaussian_200(**labels: Any) -> Problem:
    return _gaussian(200, 1000.0, labels)


def _gaussian(dimension: int, condition: float, labels: dict[str, Any]) -> Problem:
    """Standard deviations spread evenly in logarithm; their square is the condition number."""
    rng = np.random.default_rng(dimension)
    lengths = np.geomspace(1 / math.sqrt(condition), 1.0, dimension)
    law = Mixture(np.ones(1), np.zeros((1, dimension)), (rotation(rng, dimension) * lengths)[None])
    about = (
        f"A Gaussian in {dimension} dimensions along random axes, with condition number "
        f"{condition:g}."
    )
    return mixture_problem(law, **labels, about=about, indices=(0, dimension - 1))


# Ratkowsky (1983): ages (years) and lengths (m) of 27 dugongs; an example of BUGS and Stan.
AGES = np.array(
    [1.0, 1.5, 1.5, 1.5, 2.5, 4.0, 5.0, 5.0, 7.0, 8.0, 8.5, 9.0, 9.5, 9.5, 10.0, 12.0, 12.0, 13.0,
     13.0, 14.5, 15.5, 15.5, 16.5, 17.0, 22.5, 29.0, 31.5]
)  # fmt: skip
LENGTHS = np.array(
    [1.80, 1.85, 1.87, 1.77, 2.02, 2.27, 2.15, 2.26, 2.47, 2.19, 2.26, 2.40, 2.39, 2.41, 2.50,
     2.32, 2.32, 2.43, 2.47, 2.56, 2.65, 2.47, 2.64, 2.56, 2.70, 2.72, 2.57]
)  # fmt: skip
WIDE = 10.0  # prior standard deviation of the two coefficients


def dugongs_logdensity(position: Array) -> Array:
    """y ~ N(a - b e^{-age e^c}, e^s); a, b ~ N(0, 10), c ~ N(-2, 1), s ~ N(-2, 1)."""
    dtype = position.dtype
    a, b, c, s = position
    residuals = (
        jnp.asarray(LENGTHS, dtype) - a + b * jnp.exp(-jnp.asarray(AGES, dtype) * jnp.exp(c))
    )
    normal = -(residuals**2) / 2 * jnp.exp(-2 * s) - s - math.log(2 * math.pi) / 2
    priors = -(a**2 + b**2) / (2 * WIDE**2) - ((c + 2) ** 2 + (s + 2) ** 2) / 2
    height = -2 * math.log(WIDE) - 2 * math.log(2 * math.pi)
    return jnp.sum(normal) + priors + height


def _conditional_of_dugongs(c: Any, s: Any) -> tuple[Any, Any, Any]:
    """Of a and b given the rest: their mean, covariance, and the log of the evidence."""
    curve = -jnp.exp(-jnp.asarray(AGES) * jnp.exp(c))
    design = jnp.stack([jnp.ones_like(curve), curve], axis=-1)
    precision = design.T @ design * jnp.exp(-2 * s) + jnp.eye(2) / WIDE**2
    covariance = jnp.linalg.inv(precision)
    y = jnp.asarray(LENGTHS)
    mean = covariance @ (design.T @ y) * jnp.exp(-2 * s)
    squares = y @ y * jnp.exp(-2 * s) - mean @ precision @ mean
    evidence = -squares / 2 - len(AGES) * (s + math.log(2 * math.pi) / 2)
    return mean, covariance, evidence - jnp.linalg.slogdet(precision)[1] / 2 - 2 * math.log(WIDE)


def _hyper_of_dugongs(place: Array) -> Array:
    c, s = place
    priors = -((c + 2) ** 2 + (s + 2) ** 2) / 2 - math.log(2 * math.pi)
    return _conditional_of_dugongs(c, s)[2] + priors


@entered("dugongs", "final", "light")
def _dugongs(**labels: Any) -> Problem:
    def truth() -> Truth:
        box = Box([(-5.0, 1.5), (-3.8, -0.4)], [200, 120], _hyper_of_dugongs)
        with jax.enable_x64(True):
            pairs = jnp.asarray(box.points.reshape(-1, 2))
            means, covariances, _ = jax.lax.map(
                lambda place: _conditional_of_dugongs(*place), pairs, batch_size=4096
            )
        means, scales = np.asarray(means), np.sqrt(np.asarray(covariances)[:, [0, 1], [0, 1]])
        masses = box.masses.ravel()
        kept = masses > 1e-8

        def marginal(i: int) -> Marginal:
            return normals(masses[kept], means[kept, i], scales[kept, i], i)

        hyper = box.marginals((0, 1))
        others = tuple(
            Marginal(f"x{i + 2}", Coordinate(i + 2), one.quantiles, one.errors, one.cdf)
            for i, one in enumerate(hyper)
        )
        return Truth("quadrature", (), (marginal(0), marginal(1), *others), box.log_evidence)

    return Problem(
        **labels,
        dimension=4,
        about="Growth of dugongs (Ratkowsky 1983), a curve with an asymptote; starts are N(0, 1) "
        "about (2.5, 1, -2, -2).",
        logdensity_fn=dugongs_logdensity,
        starts=lambda key, count: (
            jnp.array([2.5, 1.0, -2.0, -2.0]) + 0.3 * jax.random.normal(key, (count, 4))
        ),
        extent=np.array([0.3, 0.4, 0.7, 0.5]),
        make_truth=truth,
    )


def normals(masses: np.ndarray, means: np.ndarray, scales: np.ndarray, index: int) -> Marginal:
    """The law of a coordinate that is a mixture of many normals, on a grid."""
    low, high = np.min(means - 8 * scales), np.max(means + 8 * scales)
    grid = np.linspace(low, high, 501)
    levels = np.zeros_like(grid)
    for part in np.array_split(np.arange(len(masses)), max(1, len(masses) // 2000)):
        z = (grid[:, None] - means[part]) / scales[part]
        levels += special.ndtr(z) @ masses[part]
    return Marginal.of_cells(f"x{index}", Coordinate(index), grid, np.diff(levels))


# Gaver and O'Muircheartaigh (1987): failures of ten pumps, and thousands of hours; as in BUGS.
FAILURES = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
HOURS = np.array([94.3, 15.7, 62.9, 126, 5.24, 31.4, 1.05, 1.05, 2.1, 10.5])


def pumps_logdensity(position: Array) -> Array:
    """log α, log β, log θ_i: x_i ~ Poisson(θ_i t_i), θ_i ~ Γ(α, β), α ~ Exp(1), β ~ Γ(0.1, 1)."""
    dtype = position.dtype
    shape, rate, rates = jnp.exp(position[0]), jnp.exp(position[1]), jnp.exp(position[2:])
    counts, hours = jnp.asarray(FAILURES, dtype), jnp.asarray(HOURS, dtype)
    poisson = counts * jnp.log(hours) + counts * position[2:] - rates * hours
    constant = -float(np.sum(special.gammaln(FAILURES + 1.0)))
    gammas = shape * position[1] - jax.scipy.special.gammaln(shape) + shape * position[2:]
    gammas = gammas - rate * rates
    hyper = position[0] - shape + 0.1 * position[1] - rate - math.lgamma(0.1)
    return jnp.sum(poisson) + jnp.sum(gammas) + hyper + constant


def _hyper_of_pumps(place: Array) -> Array:
    """The rates integrated out: negative binomial counts."""
    shape, rate = jnp.exp(place)
    counts, hours = jnp.asarray(FAILURES, place.dtype), jnp.asarray(HOURS, place.dtype)
    lgamma = jax.scipy.special.gammaln
    each = lgamma(shape + counts) - lgamma(shape) - lgamma(counts + 1) + shape * place[1]
    each = each - (shape + counts) * jnp.log(rate + hours) + counts * jnp.log(hours)
    hyper = place[0] - shape + 0.1 * place[1] - rate - math.lgamma(0.1)
    return jnp.sum(each) + hyper


@entered("pumps", "final", "light")
def _pumps(**labels: Any) -> Problem:
    def truth() -> Truth:
        box = Box([(-3.5, 2.5), (-7.0, 4.0)], [150, 200], _hyper_of_pumps)
        places, masses = box.points.reshape(-1, 2), box.masses.ravel()
        kept = masses > 1e-8
        shapes = np.exp(places[kept, 0]) + FAILURES[0]
        rates = np.exp(places[kept, 1]) + HOURS[0]

        grid = np.linspace(-9.0, 1.0, 251)
        levels = np.array(
            [masses[kept] @ special.gammainc(shapes, rates * np.exp(x)) for x in grid]
        )
        first = Marginal.of_cells("x2", Coordinate(2), grid, np.diff(levels))
        return Truth("quadrature", (), (*box.marginals((0, 1)), first), box.log_evidence)

    return Problem(
        **labels,
        dimension=12,
        about="Failures of ten pumps (Gaver and O'Muircheartaigh 1987), a hierarchical Poisson "
        "model, in logarithms; starts are standard normal.",
        logdensity_fn=pumps_logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 12)),
        extent=4.0,
        make_truth=truth,
    )


# Deaths and operations in twelve hospitals; the example "Surgical" of BUGS.
DEATHS = np.array([0, 18, 8, 46, 8, 13, 9, 31, 14, 8, 29, 24])
OPERATIONS = np.array([47, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360])


def surgical_logdensity(position: Array) -> Array:
    """μ, log σ, z_i: deaths ~ Binomial(n_i, logit μ + σ z_i); μ ~ N(-2, 2), log σ ~ N(-1, 1)."""
    dtype = position.dtype
    mean, log_scale, z = position[0], position[1], position[2:]
    logits = mean + jnp.exp(log_scale) * z
    deaths, operations = jnp.asarray(DEATHS, dtype), jnp.asarray(OPERATIONS, dtype)
    fits = deaths * logits - operations * jax.nn.softplus(logits)
    priors = -((mean + 2) ** 2) / 8 - (log_scale + 1) ** 2 / 2 - jnp.sum(z**2) / 2
    height = -7 * math.log(2 * math.pi) - math.log(2) + _log_choices()
    return jnp.sum(fits) + priors + height


def _log_choices() -> float:
    n, r = OPERATIONS + 1.0, DEATHS + 1.0
    return float(np.sum(special.gammaln(n) - special.gammaln(r) - special.gammaln(n - r + 1)))


def _hyper_of_surgical(place: Array) -> Array:
    """Each hospital integrated out, by the trapezoid rule."""
    mean, log_scale = place
    reach = 9.0
    z = jnp.linspace(-reach, reach, 721)
    logits = mean + jnp.exp(log_scale) * z
    deaths, operations = jnp.asarray(DEATHS)[:, None], jnp.asarray(OPERATIONS)[:, None]
    fits = deaths * logits - operations * jax.nn.softplus(logits) - z**2 / 2
    each = jax.scipy.special.logsumexp(fits, axis=1) + math.log(2 * reach / 720)
    priors = -((mean + 2) ** 2) / 8 - (log_scale + 1) ** 2 / 2
    return jnp.sum(each) + priors - 7 * math.log(2 * math.pi) - math.log(2) + _log_choices()


@entered("surgical", "final", "light")
def _surgical(**labels: Any) -> Problem:
    def truth() -> Truth:
        box = Box([(-3.9, -1.3), (-5.0, 1.2)], [80, 120], _hyper_of_surgical)
        return Truth("quadrature", (), box.marginals((0, 1)), box.log_evidence)

    return Problem(
        **labels,
        dimension=14,
        about="Deaths after surgery in twelve hospitals (BUGS), a hierarchical logit model, not "
        "centred; starts are standard normal.",
        logdensity_fn=surgical_logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 14)),
        extent=3.0,
        make_truth=truth,
    )


@cache
def _stable_data() -> tuple[np.ndarray, np.ndarray]:
    """60 observations of a line through the origin with slope 1.5 and noise of α = 1.5."""
    rng = np.random.default_rng(15)
    x = rng.uniform(-2, 2, 60)
    noise = stats.levy_stable.rvs(1.5, 0, scale=0.5, size=60, random_state=rng)
    return x, 1.5 * x + noise


def stable_regression_logdensity(position: Array) -> Array:
    """Slope, log scale and a: y ~ SαS with α = 1 + expit(a); N(0, 3), N(0, 1), N(0, 1.5) priors."""
    dtype = position.dtype
    slope, log_scale, a = position
    alpha = 1 + jax.nn.sigmoid(a)
    x, y = (jnp.asarray(one, dtype) for one in _stable_data())
    residuals = y - slope * x
    logs = stable.logpdf(residuals * jnp.exp(-log_scale), alpha) - log_scale
    priors = -(slope**2) / 18 - log_scale**2 / 2 - (a / 1.5) ** 2 / 2
    height = -1.5 * math.log(2 * math.pi) - math.log(3 * 1.5)
    return jnp.sum(logs) + priors + height


@entered("stable-regression", "final", "light")
def _stable_regression(**labels: Any) -> Problem:
    def truth() -> Truth:
        box = Box(
            [(0.8, 2.2), (-1.9, 0.6), (-6.5, 7.0)], [56, 56, 80], stable_regression_logdensity
        )
        return Truth("quadrature", (), box.marginals((0, 1, 2)), box.log_evidence)

    return Problem(
        **labels,
        dimension=3,
        about="Regression with α-stable noise of unknown scale and α in (1, 2): 60 synthetic "
        "observations; starts are standard normal.",
        logdensity_fn=stable_regression_logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 3)),
        extent=3.0,
        make_truth=truth,
    )
