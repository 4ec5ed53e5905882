"""Targets, references and drifts that the tests of drifts share.

``data/drift_oracle.json`` comes from ``tools/drift_oracle.py``, which goes by the gradient of the
density and tanh-sinh where the library goes by the density and Gauss–Jacobi.  Relative errors are
relative to |b| with no floor; the stored positions keep a distance of 1e-3 from the roots of b and
come as near as 2e-3 on purpose.

Nearly all the time goes into compiling.  A drift is an input of a compiled program, so that drifts
that differ in numbers only (α, radius, spacing) share one: targets stand at module level, their
parameters are inputs too, and all positions go through in rows of ``POINTS``.
"""

import dataclasses
import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.special import gamma, hyp1f1

from levymc import drifts

ALPHAS = (1.2, 1.5, 1.7, 1.9)
ORACLE = json.loads((Path(__file__).parent / "data" / "drift_oracle.json").read_text())


# --- targets ------------------------------------------------------------------------------------


def double_well(x, constant=0.0):
    return constant - ((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)


def double_well_slope(x):
    """In NumPy."""
    return np.polyval(-np.polyder(np.poly([-5, -1, 1.02, 5]) / 10), x)


def normal(x, mean=0.0, std=1.0):
    unit = (x - mean) / std
    return -unit * unit / 2


def student_two(x, center=0.0, scale=1.0):
    return -1.5 * jnp.log1p(((x - center) / scale) ** 2 / 2)


def mixture(x):
    weights, means, stds = (jnp.array(part, dtype=x.dtype) for part in mixture_parameters())
    terms = jnp.log(weights / stds) - ((x - means) / stds) ** 2 / 2
    return jax.scipy.special.logsumexp(terms)


def plane_mixture(x):
    weights, means, stds = (jnp.array(part, dtype=x.dtype) for part in plane_parameters())
    squares = ((x[None, :] - means) / stds) ** 2
    terms = jnp.log(weights) - jnp.sum(jnp.log(stds) + squares / 2, axis=1)
    return jax.scipy.special.logsumexp(terms)


def mixture_parameters():
    return parameters("mixture")


def plane_parameters():
    return parameters("plane")


def parameters(name: str):
    section = ORACLE["parameters"][name]
    return tuple(np.array(section[key], dtype=float) for key in ("weights", "means", "stds"))


def normal_pair(position):
    return normal(position["a"]) + jnp.sum(normal(position["b"]))


# --- references ---------------------------------------------------------------------------------


def reference(section: str, alpha: float):
    """Positions and drifts of one section of the oracle, as doubles."""
    rows = ORACLE[section][str(alpha)]
    return np.array(rows["x"], dtype=float), np.array(rows["drift"], dtype=float)


def log_reference(section: str, alpha: float):
    rows = ORACLE[section][str(alpha)]
    return tuple(np.array(rows[key], dtype=float) for key in ("x", "sign", "log_size"))


@functools.cache
def normal_drift(x: float, alpha: float) -> float:
    """−(2^{α/2}/√π) Γ((α+1)/2) x ₁F₁((2−α)/2; 3/2; x²/2) in 30 digits."""
    with mp.workdps(30):
        order, point = mp.mpf(alpha), mp.mpf(x)
        factor = 2 ** (order / 2) / mp.sqrt(mp.pi) * mp.gamma((order + 1) / 2)
        return float(-factor * point * mp.hyp1f1((2 - order) / 2, 1.5, point**2 / 2))


def scaled_normal_drift(x: float, alpha: float, mean: float, std: float) -> float:
    """Stretching a target by s multiplies its drift by s^{1−α}."""
    return std ** (1 - alpha) * normal_drift((x - mean) / std, alpha)


def worst(computed, exact) -> float:
    """Largest error relative to |b|; a NaN counts as infinite."""
    ratio = np.abs(np.asarray(computed) - exact) / np.abs(exact)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
POINTS = 64  # positions of one row


@jax.jit
def evaluated(drift, position, parameters=()):
    """A drift and its signed logarithm at one position."""
    if parameters:
        target = drift.logdensity_fn
        drift = dataclasses.replace(drift, logdensity_fn=lambda x: target(x, *parameters))
    return drift(position), drift.signed_log(position)


evaluated_row = jax.jit(jax.vmap(evaluated, in_axes=(None, 0, None)))


def value_and_size(drift, positions, *parameters):
    """A drift and its signed logarithm at each of many positions."""
    positions = np.asarray(positions)
    rows = -(-len(positions) // POINTS)
    padded = np.resize(positions, (rows, POINTS, *positions.shape[1:]))
    parts = [evaluated_row(drift, row, parameters) for row in padded]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(positions)], *parts)


def over(drift, positions, *parameters):
    """A drift at each of many positions, given the parameters of its target."""
    return value_and_size(drift, positions, *parameters)[0]


def size_over(drift, positions):
    """The signed logarithm of a drift at each of many positions."""
    return value_and_size(drift, positions)[1]


def gradient_over(target, positions):
    """The gradient of a log density at each of many positions, by JAX alone."""
    return np.asarray(jitted_gradients(target, np.resize(positions, POINTS)))[: len(positions)]


@functools.partial(jax.jit, static_argnums=0)
def jitted_gradients(target, positions):
    return jax.vmap(jax.grad(target))(positions)


@functools.cache
def by_traced_alpha(build):
    """Drift and signed logarithm where α is an input: of many α at many positions, by vmap."""
    return jax.jit(jax.vmap(lambda a, x: jax.vmap(lambda y: evaluated(build(a), y))(x), (0, None)))


# Every way to build a drift for a standard normal; α stays open.
BUILDERS = {
    "leading_term": lambda alpha: drifts.leading_term(normal, alpha),
    "centered_difference": lambda alpha: drifts.centered_difference(
        normal, alpha, spacing=0.1, num_terms=120
    ),
    "quadrature": lambda alpha: drifts.quadrature(normal, alpha, radius=13.0),
    "quadrature_own_radius": lambda alpha: drifts.quadrature(normal, alpha),
    "quadrature_to_infinity": lambda alpha: drifts.quadrature(normal, alpha, radius=jnp.inf),
    "gaussian": lambda alpha: drifts.gaussian(alpha),
    "gaussian_mixture": lambda alpha: drifts.gaussian_mixture(
        alpha, jnp.array([0.25, 0.75]), jnp.array([0.0, 0.0]), jnp.array([1.0, 1.0])
    ),
    "stable_target": lambda alpha: drifts.stable_target(alpha),
}
FROM_DENSITY = {
    "leading_term": drifts.leading_term,
    "centered_difference": functools.partial(
        drifts.centered_difference, spacing=0.06, num_terms=170
    ),
    "quadrature": functools.partial(drifts.quadrature, radius=12.0),
    "quadrature_own_radius": drifts.quadrature,
}

every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
every_density_builder = pytest.mark.parametrize(
    "build", FROM_DENSITY.values(), ids=FROM_DENSITY.keys()
)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def fractional_laplacian(alpha, x, center, width):
    """(-Δ)^{α/2} of exp(-(x-c)²/2s²), by Kummer's function."""
    u = (x - center) / width
    constant = 2 ** (alpha / 2) * gamma((1 + alpha) / 2) / np.sqrt(np.pi)
    return width**-alpha * constant * hyp1f1((1 + alpha) / 2, 0.5, -u * u / 2)
