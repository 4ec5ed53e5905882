"""The problems on which the constants of `levymc.auto` were chosen."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from levymc import targets

from ._grids import Line
from ._heavy import independent_cauchy, student
from ._laws import isotropic, mixture_problem
from ._light import logistic
from ._problem import Coordinate, Marginal, Problem, Truth, entered


def _double_well_logdensity(position: Array) -> Array:
    return targets.double_well(position[0])


@entered("double-well", "development", "modes")
def _double_well(**labels: Any) -> Problem:
    line = Line(np.linspace(-12.0, 12.0, 200_001), targets.double_well)
    return Problem(
        **labels,
        dimension=1,
        about="The paper's double well; chains start in the heavier, left one.",
        logdensity_fn=_double_well_logdensity,
        starts=lambda key, count: -3.6 + 0.3 * jax.random.normal(key, (count, 1)),
        extent=8.0,
        make_truth=lambda: Truth(
            "quadrature",
            (line.shares(np.array([0.0])),),
            (Marginal.of_grid("x0", Coordinate(0), line.places, line.density),),
            line.log_evidence,
        ),
        mode_of=lambda positions: (positions > 0).astype(int),
        sample=lambda key, count: line.sample(key, (count, 1)),
    )


@entered("four-modes", "development", "modes")
def _four_modes(**labels: Any) -> Problem:
    law = isotropic(targets.FOUR_MODES_WEIGHTS, targets.FOUR_MODES_MEANS, targets.FOUR_MODES_SCALE)
    about = "Four Gaussians at the corners of a square; chains start in the heaviest."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("grid-25", "development", "modes")
def _grid(**labels: Any) -> Problem:
    places = np.arange(-8.0, 9.0, 4.0)
    means = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    law = isotropic(np.ones(25), means, 0.4)
    about = "25 equal Gaussians on a grid, ten standard deviations apart; starts in a corner."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("widths-30-2d", "development", "modes")
def _narrow_and_wide(**labels: Any) -> Problem:
    law = isotropic([0.5, 0.5], [[0.0, 0.0], [10.0, 10.0]], [3.0, 0.1])
    about = "A wide Gaussian, where chains start, and one of a thirtieth of its width; 2-D."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-modes-10-axis", "development", "modes")
def _two_on_an_axis(**labels: Any) -> Problem:
    means = 6.0 * np.array([[-1.0], [1.0]]) * np.eye(10)[0]
    law = isotropic([2 / 3, 1 / 3], means, 1.0)
    about = "Two Gaussians in ten dimensions, twelve standard deviations apart along an axis."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-modes-10-diagonal", "development", "modes")
def _two_on_a_diagonal(**labels: Any) -> Problem:
    means = 6.0 * np.array([[-1.0], [1.0]]) * np.ones(10) / np.sqrt(10)
    law = isotropic([2 / 3, 1 / 3], means, 1.0)
    about = "Two Gaussians in ten dimensions, twelve standard deviations apart along the diagonal."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("cauchy-10", "development", "heavy")
def _cauchy(**labels: Any) -> Problem:
    about = "Ten independent Cauchy laws; starts are standard normal."
    return independent_cauchy(np.eye(10), **labels, about=about)


@entered("student-2-correlated", "development", "heavy")
def _student(**labels: Any) -> Problem:
    lags = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    about = "Student's t with 2 degrees in ten dimensions, neighbours correlated by 0.9."
    return student(np.linalg.cholesky(0.9**lags), 2.0, **labels, about=about)


@entered("logistic-20", "development", "light")
def _logistic(**labels: Any) -> Problem:
    about = (
        "Logistic regression: 300 synthetic observations, 20 coefficients with standard normal "
        "priors, and neighbouring columns correlated by 0.6; starts are standard normal."
    )
    return logistic(300, 20, 0.6, seed=20, **labels, about=about)
