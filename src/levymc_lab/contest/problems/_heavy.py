"""Heavy tails, one mode."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import stats

from levymc import targets

from ._grids import Box
from ._laws import Mixture, mixture_problem, rotation
from ._problem import Coordinate, Marginal, Problem, Truth, entered


def independent_cauchy(turn: np.ndarray, about: str, **labels: Any) -> Problem:
    """Independent Cauchy laws, turned: a coordinate is a Cauchy law whose scale is Σ |R_ij|."""
    dimension = len(turn)

    def logdensity(position: Array) -> Array:
        return targets.cauchy(jnp.asarray(turn.T, position.dtype) @ position)

    def marginal(index: int) -> Marginal:
        law = stats.cauchy(scale=np.abs(turn[index]).sum())
        return Marginal.of_cdf(f"x{index}", Coordinate(index), law.cdf)

    return Problem(
        **labels,
        dimension=dimension,
        about=about,
        logdensity_fn=logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, dimension)),
        extent=20.0,
        make_truth=lambda: Truth("formula", (), (marginal(0), marginal(dimension - 1)), 0.0),
        sample=lambda key, count: jax.random.cauchy(key, (count, dimension)) @ jnp.asarray(turn.T),
        tail_index=1.0,
    )


def student(factor: np.ndarray, degrees: float, about: str, **labels: Any) -> Problem:
    """One elliptical law of Student's t."""
    dimension = len(factor)
    law = Mixture(np.ones(1), np.zeros((1, dimension)), factor[None], degrees)
    extent = 10 * float(np.max(np.linalg.norm(factor, axis=1)))
    indices = (0, dimension - 1)
    return mixture_problem(law, **labels, about=about, extent=extent, indices=indices)


@entered("cauchy-rotated-10", "final", "heavy")
def _cauchy_rotated(**labels: Any) -> Problem:
    turn = rotation(np.random.default_rng(1), 10)
    about = "Ten independent Cauchy laws, turned by a random rotation; starts are standard normal."
    return independent_cauchy(turn, **labels, about=about)


@entered("student-1.5-scales", "final", "heavy")
def _student_scales(**labels: Any) -> Problem:
    scales = np.geomspace(1e-2, 1e2, 10)
    nu = 1.5

    def logdensity(position: Array) -> Array:
        x = position / jnp.asarray(scales, position.dtype)
        return _student_of(x)

    _student_of = targets.student_t(nu)

    def marginal(index: int) -> Marginal:
        law = stats.t(nu, scale=scales[index])
        return Marginal.of_cdf(f"x{index}", Coordinate(index), law.cdf, scales[index])

    return Problem(
        **labels,
        dimension=10,
        about="Ten independent t laws with 1.5 degrees and scales from 0.01 to 100; starts are "
        "standard normal.",
        logdensity_fn=logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 10)),
        extent=1000.0,
        make_truth=lambda: Truth(
            "formula", (), (marginal(0), marginal(9)), float(np.log(scales).sum())
        ),
        sample=lambda key, count: jnp.asarray(scales) * jax.random.t(key, nu, (count, 10)),
        tail_index=nu,
    )


@entered("student-3-20", "final", "heavy")
def _student_20(**labels: Any) -> Problem:
    rng = np.random.default_rng(3)
    factor = rotation(rng, 20) * np.geomspace(0.3, 3.0, 20)
    about = "Student's t with 3 degrees in 20 dimensions, along random axes of lengths 0.3 to 3."
    return student(factor, 3.0, **labels, about=about)


# Two columns that separate the classes: without the priors there is no finite maximum.
SEPARATED = np.array(
    [
        [-2.1, 0.4], [-1.7, -0.9], [-1.2, 1.1], [-0.9, -0.3], [-0.5, 0.8], [-0.3, -1.4],
        [0.2, 1.3], [0.4, -0.6], [0.8, 0.2], [1.1, -1.0], [1.6, 0.9], [2.3, -0.2],
    ]
)  # fmt: skip
CLASSES = (SEPARATED[:, 0] > 0).astype(float)
PRIOR_SCALES = np.array([10.0, 2.5, 2.5])


def separated_logdensity(position: Array) -> Array:
    dtype = position.dtype
    design = np.column_stack([np.ones(len(SEPARATED)), SEPARATED])
    signs = jnp.asarray(2 * CLASSES - 1, dtype)
    fits = signs * (jnp.asarray(design, dtype) @ position)
    z = position / jnp.asarray(PRIOR_SCALES, dtype)
    height = -float(np.sum(np.log(math.pi * PRIOR_SCALES)))
    return jnp.sum(jax.nn.log_sigmoid(fits)) - jnp.sum(jnp.log1p(z**2)) + height


def _compact_separated(angles: Array) -> Array:
    """The density of arctan(x / 8): the heavy tails become finite ends."""
    x = 8 * jnp.tan(angles)
    return separated_logdensity(x) + jnp.sum(math.log(8) - 2 * jnp.log(jnp.abs(jnp.cos(angles))))


@entered("cauchy-logistic", "final", "heavy")
def _separated(**labels: Any) -> Problem:
    """Tails: along the direction that separates the classes the likelihood tends to one."""

    def truth() -> Truth:
        box = Box([(-math.pi / 2, math.pi / 2)] * 3, [120] * 3, _compact_separated)
        marginals = tuple(
            Marginal.of_cdf(
                f"x{i}",
                Coordinate(i),
                lambda x, one=one: one.cdf(np.arctan(np.asarray(x) / 8)),  # type: ignore[misc]
                10.0,
            )
            for i, one in enumerate(box.marginals((0, 1, 2)))
        )
        return Truth("quadrature", (), marginals, box.log_evidence)

    return Problem(
        **labels,
        dimension=3,
        about="Logistic regression on twelve typed-in observations that a line separates, with "
        "Cauchy priors of scales 10 and 2.5; starts are standard normal.",
        logdensity_fn=separated_logdensity,
        starts=lambda key, count: jax.random.normal(key, (count, 3)),
        extent=40.0,
        make_truth=truth,
        tail_index=1.0,
    )
