"""Standard functions with many minima, or one that is hard to reach, whose lowest is known.

Boxes are where methods start.  Where the minimum would be in the middle of the box, which some
methods favour, the box is moved, by another amount for each coordinate.  None of these functions is
lower outside of its box than inside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

PI = np.pi
PLACE = 0.4  # by how much of its half a box is moved, at most
CLOSE = 1e-4  # to the lowest value, relative to it if it is larger than one


@dataclass(frozen=True)
class Landscape:
    """A function, its number of dimensions, the box of its starts, and its lowest value."""

    function: Callable[[Array], Array]
    dimension: int
    low: Any
    high: Any
    lowest: float

    @property
    def close(self) -> float:
        """How far above the lowest value counts as found."""
        return CLOSE * max(1.0, abs(self.lowest))

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Its lower and upper ends, coordinate by coordinate."""
        return (
            np.broadcast_to(np.asarray(self.low, float), self.dimension),
            np.broadcast_to(np.asarray(self.high, float), self.dimension),
        )


def goldstein_price(x: Array) -> Array:
    a, b = x
    first = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    second = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return (1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second)


def shubert(x: Array) -> Array:
    j = jnp.arange(1, 6)
    return jnp.prod(jnp.sum(j * jnp.cos((j + 1) * x[:, None] + j), axis=1))


def easom(x: Array) -> Array:
    return -jnp.prod(jnp.cos(x)) * jnp.exp(-jnp.sum((x - PI) ** 2))


SHEKEL_PLACES = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
).T
SHEKEL_WIDTHS = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel(x: Array) -> Array:
    return -jnp.sum(1 / (jnp.sum((x - SHEKEL_PLACES) ** 2, axis=1) + SHEKEL_WIDTHS))


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SCALES = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN_PLACES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(x: Array) -> Array:
    squares = jnp.sum(HARTMANN_SCALES * (x - HARTMANN_PLACES) ** 2, axis=1)
    return -jnp.sum(HARTMANN_WEIGHTS * jnp.exp(-squares))


def salomon(x: Array) -> Array:
    radius = jnp.sqrt(jnp.sum(x**2) + 1e-300)  # so that there is a gradient at 0
    return 1 - jnp.cos(2 * PI * radius) + radius / 10


def rastrigin(x: Array) -> Array:
    return jnp.sum(x**2 + 10 - 10 * jnp.cos(2 * PI * x))


def rotation(dimension: int) -> np.ndarray:
    """An orthogonal matrix without zeros: the cosine transform."""
    row, column = np.arange(dimension)[:, None], np.arange(dimension)
    matrix = np.cos(PI * (column + 0.5) * row / dimension) * np.sqrt(2 / dimension)
    matrix[0] /= np.sqrt(2)
    return matrix


def rotated_rastrigin(x: Array) -> Array:
    return rastrigin(jnp.asarray(rotation(x.size)) @ x)


def double_funnel(x: Array) -> Array:
    """Lunacek's: a Rastrigin function on two parabolas, of which the wider ends higher."""
    near, depth = 2.5, 1.0
    ratio = 1 - 1 / (2 * np.sqrt(x.size + 20) - 8.2)
    far = -np.sqrt((near**2 - depth) / ratio)
    narrow = jnp.sum((x - near) ** 2)
    wide = depth * x.size + ratio * jnp.sum((x - far) ** 2)
    return jnp.minimum(narrow, wide) + 10 * jnp.sum(1 - jnp.cos(2 * PI * (x - near)))


def rosenbrock(x: Array) -> Array:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def griewank(x: Array) -> Array:
    return 1 + jnp.sum(x**2) / 4000 - jnp.prod(jnp.cos(x / jnp.sqrt(jnp.arange(1, x.size + 1))))


def lennard_jones(x: Array) -> Array:
    """The energy of a cluster of atoms, three coordinates each."""
    atoms = x.reshape(-1, 3)
    first, second = np.triu_indices(len(atoms), 1)
    inverse = jnp.sum((atoms[first] - atoms[second]) ** 2, axis=1) ** -3
    return 4 * jnp.sum(inverse**2 - inverse)


def levy(x: Array) -> Array:
    w = 1 + (x - 1) / 4
    middle = (w[:-1] - 1) ** 2 * (1 + 10 * jnp.sin(PI * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + jnp.sin(2 * PI * w[-1]) ** 2)
    return jnp.sin(PI * w[0]) ** 2 + jnp.sum(middle) + last


def styblinski_tang(x: Array) -> Array:
    return jnp.sum(x**4 - 16 * x**2 + 5 * x) / 2


def ackley(x: Array) -> Array:
    radius = jnp.sqrt(jnp.mean(x**2) + 1e-300)
    return 20 + jnp.e - 20 * jnp.exp(-radius / 5) - jnp.exp(jnp.mean(jnp.cos(2 * PI * x)))


def _moved(half: float, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    place = PLACE * half * np.sin(1.0 + np.arange(dimension))
    return place - half, place + half


STYBLINSKI_TANG = -39.16616570377142  # a coordinate
LANDSCAPES = {
    "Goldstein–Price": Landscape(goldstein_price, 2, -2.0, 2.0, 3.0),
    "Shubert": Landscape(shubert, 2, -10.0, 10.0, -186.7309088310),
    "Easom": Landscape(easom, 2, -100.0, 100.0, -1.0),
    "Shekel": Landscape(shekel, 4, 0.0, 10.0, -10.5364431535),
    "Hartmann": Landscape(hartmann, 6, 0.0, 1.0, -3.3223680114),
    "Salomon": Landscape(salomon, 10, *_moved(100.0, 10), 0.0),
    "rotated Rastrigin": Landscape(rotated_rastrigin, 10, *_moved(5.12, 10), 0.0),
    "double funnel": Landscape(double_funnel, 10, -5.12, 5.12, 0.0),
    "Rosenbrock": Landscape(rosenbrock, 20, -5.0, 10.0, 0.0),
    "Griewank": Landscape(griewank, 20, *_moved(600.0, 20), 0.0),
    "Lennard-Jones": Landscape(lennard_jones, 24, -2.0, 2.0, -19.8214891922),
    "Levy": Landscape(levy, 30, -10.0, 10.0, 0.0),
    "Rastrigin": Landscape(rastrigin, 30, *_moved(5.12, 30), 0.0),
    "Styblinski–Tang": Landscape(styblinski_tang, 50, -5.0, 5.0, 50 * STYBLINSKI_TANG),
    "Ackley": Landscape(ackley, 50, *_moved(32.0, 50), 0.0),
}
