"""The problems on which the constants of `levymc.auto` were chosen."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from levymc import targets

from ._grids import Line
from ._heavy import independent_cauchy, student
from ._laws import isotropic, mixture_problem, rotation
from ._light import logistic
from ._modes import Bananas, Rings, of_bananas, of_rings, of_wells
from ._posteriors import LabelSwitching, Network, Sensors, of_network, of_sensors, of_switching
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


# Relatives of final problems that are hard for other reasons than their number of modes.


@entered("widths-20-4d", "development", "modes")
def _widths_4(**labels: Any) -> Problem:
    law = isotropic([0.6, 0.4], np.stack([np.zeros(4), np.full(4, 7.0)]), [2.0, 0.1])
    about = "A wide Gaussian, where chains start, and one of 1/20 of its width; 4-D."
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("narrow-40", "development", "modes")
def _narrow_40(**labels: Any) -> Problem:
    law = isotropic([0.4, 0.6], np.stack([np.zeros(40), np.full(40, 2.0)]), [1.0, 0.75])
    about = (
        "In 40 dimensions a Gaussian, where chains start, and a heavier one of 0.75 of its width, "
        "whose volume is e^-12 of the first one's."
    )
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("gaussians-60", "development", "modes")
def _sixty(**labels: Any) -> Problem:
    rng = np.random.default_rng(60)
    law = isotropic(np.ones(60), rng.uniform(-8, 8, (60, 8)), 0.7)
    return mixture_problem(
        law, **labels, about="60 equal Gaussians at random in [-8, 8]⁸.", indices=(0,)
    )


@entered("two-bananas-6", "development", "modes")
def _bananas_6(**labels: Any) -> Problem:
    return of_bananas(Bananas(6, bend=0.5, width=2.0, shift=8.0), **labels)


@entered("rings-two-sizes", "development", "modes")
def _rings_two_sizes(**labels: Any) -> Problem:
    centres, radii = np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([2.0, 4.5])
    law = Rings(centres, radii, np.array([0.3, 0.7]), 0.3)
    return of_rings(law, "A small ring, where chains start, beside a large one.", labels)


@entered("wells-8-rotated", "development", "modes")
def _wells_8(**labels: Any) -> Problem:
    turn = rotation(np.random.default_rng(8), 16)
    return of_wells(turn, "8 double wells and 8 normals, turned by a random rotation.", labels)


@entered("label-switching-close", "development", "modes")
def _label_switching(**labels: Any) -> Problem:
    rng = np.random.default_rng(11)
    data = np.concatenate([rng.normal(m, s, 25) for m, s in ((-3, 0.8), (0, 0.5), (2.5, 0.9))])
    start = np.array([-3.0, 0.0, 2.5, -0.2, -0.7, -0.1, 0.0, 0.0, 0.0])
    about = "A mixture of three normals fitted to 75 synthetic numbers; starts near one labelling."
    return of_switching(LabelSwitching(data, 0.0, 4.0, 0.0), start, about, labels)


@entered("network-3", "development", "modes")
def _network(**labels: Any) -> Problem:
    return of_network(Network(3), **labels)


@entered("sensors-noisy", "development", "modes")
def _sensors(**labels: Any) -> Problem:
    return of_sensors(Sensors(reach=0.5, noise=0.03, seed=5), **labels)


@entered("cauchy-rotated-5", "development", "heavy")
def _cauchy_rotated(**labels: Any) -> Problem:
    about = "Five independent Cauchy laws, turned by a random rotation; starts are standard normal."
    return independent_cauchy(rotation(np.random.default_rng(5), 5), **labels, about=about)
