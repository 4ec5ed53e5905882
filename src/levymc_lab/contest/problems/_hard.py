"""One mode of a difficult shape: hierarchies and a funnel."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special, stats

from ._grids import Line
from ._problem import Coordinate, Marginal, Problem, Truth, entered

# Rubin (1981): effects of coaching in eight schools, and their standard errors.
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
EFFECT_ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
LOG_2PI = math.log(2 * math.pi)


def log_half_cauchy(log_scale: Any, width: float) -> Any:
    """Of a half-Cauchy scale, the log density of its logarithm."""
    return (
        math.log(2 / (math.pi * width)) - jnp.log1p(jnp.exp(2 * log_scale) / width**2) + log_scale
    )


def schools_centred(position: Array) -> Array:
    """μ ~ N(0, 5), τ ~ C⁺(5), θ_j ~ N(μ, τ), y_j ~ N(θ_j, σ_j); position μ, log τ, θ."""
    mean, log_scale, theta = position[0], position[1], position[2:]
    z = (theta - mean) * jnp.exp(-log_scale)
    return _schools(mean, log_scale, z, theta) - 8 * log_scale


def schools_noncentred(position: Array) -> Array:
    """The same with θ_j = μ + τ z_j; position μ, log τ, z."""
    mean, log_scale, z = position[0], position[1], position[2:]
    return _schools(mean, log_scale, z, mean + jnp.exp(log_scale) * z)


def _schools(mean: Array, log_scale: Array, z: Array, theta: Array) -> Array:
    errors = jnp.asarray(EFFECT_ERRORS, theta.dtype)
    fits = ((jnp.asarray(EFFECTS, theta.dtype) - theta) / errors) ** 2
    priors = -(mean**2) / 50 + log_half_cauchy(log_scale, 5.0) - jnp.sum(z**2) / 2
    height = -8.5 * LOG_2PI - math.log(5) - float(np.sum(np.log(EFFECT_ERRORS)))
    return priors - jnp.sum(fits) / 2 + height


def _mean_given_scale(log_scale: Any) -> tuple[Any, Any, Any]:
    """Of μ given τ: its mean, variance, and the log of the evidence with τ's prior."""
    variances = jnp.asarray(EFFECT_ERRORS) ** 2 + jnp.exp(2 * log_scale)[:, None]
    y = jnp.asarray(EFFECTS)
    precision = jnp.sum(1 / variances, axis=1) + 1 / 25
    centre = jnp.sum(y / variances, axis=1) / precision
    squares = jnp.sum(y**2 / variances, axis=1) - centre**2 * precision
    log_volume = jnp.sum(jnp.log(variances), axis=1) + jnp.log(precision) + math.log(25)
    evidence = -squares / 2 - log_volume / 2 - 4 * LOG_2PI + log_half_cauchy(log_scale, 5.0)
    return centre, 1 / precision, evidence


def _schools_truth(first_effect: Callable[[np.ndarray], np.ndarray]) -> Truth:
    line = Line(np.linspace(-18.0, 7.0, 2001), lambda x: _mean_given_scale(x)[2])
    with jax.enable_x64(True):
        centre, variance, _ = map(np.asarray, _mean_given_scale(jnp.asarray(line.places)))
    masses = line.density / line.density.sum()
    # θ₁ given τ: a normal whose mean is itself normal in μ.
    noise, spread = EFFECT_ERRORS[0] ** 2, np.exp(2 * line.places)
    pull = noise / (noise + spread)
    effect = pull * centre + (1 - pull) * EFFECTS[0]
    effect_variance = pull**2 * variance + pull * spread
    return Truth(
        "quadrature",
        (),
        (
            _mixed("μ", Coordinate(0), masses, centre, variance, 40.0),
            Marginal.of_grid("log τ", Coordinate(1), line.places, line.density),
            _mixed("θ₁", first_effect, masses, effect, effect_variance, 120.0),
        ),
        line.log_evidence,
    )


def _mixed(
    name: str,
    of: Callable[[np.ndarray], np.ndarray],
    masses: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    reach: float,
) -> Marginal:
    """A mixture of many normals, all of it within ±reach."""
    scales = np.sqrt(np.maximum(variances, 1e-300))
    kept = masses > 1e-12

    def cdf(x: Any) -> Any:
        z = (np.asarray(x)[..., None] - means[kept]) / scales[kept]
        return special.ndtr(z) @ masses[kept]

    grid = np.linspace(-reach, reach, 801)
    levels = np.concatenate([cdf(part) for part in np.array_split(grid, 20)])
    return Marginal.of_cells(name, of, grid, np.diff(levels))


def _eight_schools(logdensity: Any, first: Any, about: str, labels: dict[str, Any]) -> Problem:
    return Problem(
        **labels,
        dimension=10,
        about=f"Eight schools (Rubin 1981), {about}; starts are standard normal.",
        logdensity_fn=logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 10)),
        extent=np.append([6.0, 2.0], np.full(8, 10.0 if first is not _first_school else 1.2)),
        make_truth=lambda: _schools_truth(first),
    )


@entered("eight-schools-centred", "final", "hard")
def _centred(**labels: Any) -> Problem:
    return _eight_schools(schools_centred, Coordinate(2), "centred: a funnel", labels)


@entered("eight-schools-noncentred", "final", "light")
def _noncentred(**labels: Any) -> Problem:
    first = _first_school
    return _eight_schools(schools_noncentred, first, "not centred", labels)


def _first_school(positions: np.ndarray) -> np.ndarray:
    return positions[:, 0] + np.exp(positions[:, 1]) * positions[:, 2]


@entered("funnel-10", "final", "hard")
def _funnel(**labels: Any) -> Problem:
    def sample(key: Array, count: int) -> Array:
        key_neck, key_rest = jax.random.split(key)
        neck = 3 * jax.random.normal(key_neck, (count, 1))
        rest = jnp.exp(neck / 2) * jax.random.normal(key_rest, (count, 9))
        return jnp.concatenate([neck, rest], axis=1)

    return Problem(
        **labels,
        dimension=10,
        about="Neal's funnel in ten dimensions; starts are standard normal.",
        logdensity_fn=funnel_logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 10)),
        extent=10.0,
        make_truth=lambda: Truth(
            "formula",
            (),
            (Marginal.of_cdf("x0", Coordinate(0), lambda x: stats.norm.cdf(x, scale=3.0)),),
            0.0,
        ),
        sample=sample,
    )


def funnel_logdensity(position: Array) -> Array:
    """x₀ ~ N(0, 3), x_i ~ N(0, e^{x₀/2})."""
    neck, rest = position[0], position[1:]
    squares = neck**2 / 9 + jnp.sum(rest**2) * jnp.exp(-neck) + rest.size * neck
    return -squares / 2 - position.size / 2 * LOG_2PI - math.log(3)


# Ten means of observations with unit errors: two clear signals, one doubtful, and noise.
OBSERVED_MEANS = np.array([-0.3, 0.5, 4.2, 0.1, -0.8, 6.0, 0.9, -0.2, 2.1, -1.1])


def horseshoe_centred(position: Array) -> Array:
    """y_j ~ N(β_j, 1), β_j ~ N(0, τ λ_j), λ_j, τ ~ C⁺(1); position log τ, log λ, β."""
    log_tau, log_lambda, beta = position[0], position[1:11], position[11:]
    log_scale = log_tau + log_lambda
    return _horseshoe(log_tau, log_lambda, beta * jnp.exp(-log_scale), beta) - jnp.sum(log_scale)


def horseshoe_noncentred(position: Array) -> Array:
    """The same with β_j = τ λ_j z_j; position log τ, log λ, z."""
    log_tau, log_lambda, z = position[0], position[1:11], position[11:]
    return _horseshoe(log_tau, log_lambda, z, jnp.exp(log_tau + log_lambda) * z)


def _horseshoe(log_tau: Array, log_lambda: Array, z: Array, beta: Array) -> Array:
    priors = log_half_cauchy(log_tau, 1.0) + jnp.sum(log_half_cauchy(log_lambda, 1.0))
    fits = jnp.sum((jnp.asarray(OBSERVED_MEANS, beta.dtype) - beta) ** 2)
    return priors - jnp.sum(z**2) / 2 - fits / 2 - 10 * LOG_2PI


def _horseshoe_truth(beta_of: Callable[[int], Callable[[np.ndarray], np.ndarray]]) -> Truth:
    """Given τ the means are independent; λ_j and τ are integrated out on grids."""
    log_tau, log_lambda = np.linspace(-16, 8, 601), np.linspace(-16, 16, 801)
    spread = np.exp(2 * (log_tau[:, None] + log_lambda))  # of shape (τ, λ)
    with jax.enable_x64(True):
        prior_lambda = np.asarray(log_half_cauchy(jnp.asarray(log_lambda), 1.0))
        prior_tau = np.asarray(log_half_cauchy(jnp.asarray(log_tau), 1.0))
    variances = 1 + spread
    step = log_lambda[1] - log_lambda[0]
    logs = [  # for each observation, of shape (τ, λ)
        prior_lambda - y**2 / (2 * variances) - np.log(variances) / 2 - LOG_2PI / 2 + math.log(step)
        for y in OBSERVED_MEANS
    ]
    evidences = np.stack([special.logsumexp(one, axis=1) for one in logs])
    whole = prior_tau + evidences.sum(axis=0)
    masses = np.exp(whole - special.logsumexp(whole))
    width = log_tau[1] - log_tau[0]

    def marginal(j: int) -> Marginal:
        joint = masses[:, None] * np.exp(logs[j] - evidences[j][:, None])
        pull = spread / variances
        return _pooled(f"β{j}", beta_of(j), joint, pull * OBSERVED_MEANS[j], pull)

    first = Marginal.of_grid("log τ", Coordinate(0), log_tau, masses)
    evidence = float(special.logsumexp(whole) + math.log(width))
    return Truth("quadrature", (), (first, marginal(2), marginal(8)), evidence)


def _pooled(
    name: str,
    of: Callable[[np.ndarray], np.ndarray],
    masses: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
) -> Marginal:
    """A mixture of normals that share few parameters: pooled into bins of the share of the pull."""
    order = np.argsort(variances, axis=None)
    groups = np.array_split(order, 2000)
    weight = np.array([masses.ravel()[group].sum() for group in groups])
    safe = np.maximum(weight, 1e-300)
    mean = np.array([(masses * means).ravel()[group].sum() for group in groups]) / safe
    variance = np.array([(masses * variances).ravel()[group].sum() for group in groups]) / safe
    return _mixed(name, of, weight, mean, np.maximum(variance, 1e-20), 14.0)


def _horseshoe_problem(
    logdensity: Any, beta_of: Any, about: str, labels: dict[str, Any]
) -> Problem:
    return Problem(
        **labels,
        dimension=21,
        about=f"Ten normal means with horseshoe priors, {about}; starts are standard normal.",
        logdensity_fn=logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 21)),
        extent=np.append(np.full(11, 2.5), np.full(10, 3.0)),
        make_truth=lambda: _horseshoe_truth(beta_of),
    )


@entered("horseshoe-centred", "final", "hard")
def _horseshoe_c(**labels: Any) -> Problem:
    return _horseshoe_problem(horseshoe_centred, lambda j: Coordinate(11 + j), "centred", labels)


@entered("horseshoe-noncentred", "final", "hard")
def _horseshoe_n(**labels: Any) -> Problem:
    def beta_of(j: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: np.exp(x[:, 0] + x[:, 1 + j]) * x[:, 11 + j]

    return _horseshoe_problem(horseshoe_noncentred, beta_of, "not centred", labels)
