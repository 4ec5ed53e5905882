"""Many modes whose weights are known by formula: mixtures, bananas, wells and rings."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special, stats

from ._grids import Box, Line
from ._laws import ellipsoids, isotropic, mixture_problem, rotation
from ._problem import Coordinate, Marginal, Problem, Truth, entered

# Nats between tops that are told apart: `levymc.auto` says that it takes those without a dip of 0.2
# for one, and looks at a few points of the line between them only.
SHALLOW = 0.3


@entered("gaussians-40", "final", "modes")
def _forty(**labels: Any) -> Problem:
    rng = np.random.default_rng(40)
    means = rng.uniform(-40, 40, (40, 2))
    law = isotropic(np.ones(40), means, math.log1p(math.e))
    about = (
        "40 equal Gaussians of standard deviation 1.31 at random in [-40, 40]², some of which "
        "overlap: a draw belongs to the one that is likeliest."
    )
    problem = mixture_problem(law, **labels, about=about, indices=(0, 1))

    def truth() -> Truth:
        box = Box([(-50.0, 50.0)] * 2, [1000] * 2, law.logdensity)
        likeliest = law.component_of(box.points.reshape(-1, 2))[:, 0]
        shares = np.bincount(likeliest, box.masses.ravel(), minlength=40)
        joined = law.joined(SHALLOW)
        return dataclasses.replace(
            problem.make_truth(), weights=(shares,), source="quadrature", joined=joined
        )

    return dataclasses.replace(problem, make_truth=truth)


@entered("two-modes-20-rotated", "final", "modes")
def _rotated(**labels: Any) -> Problem:
    rng = np.random.default_rng(22)
    direction = rotation(rng, 20)[0]
    law = ellipsoids(rng, [0.25, 0.75], 30 * np.outer([-0.5, 0.5], direction), math.log(30))
    about = (
        "Two Gaussians in 20 dimensions with axes of their own, of lengths that differ by up to "
        "30; chains start in the lighter."
    )
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-modes-50", "final", "modes")
def _fifty(**labels: Any) -> Problem:
    rng = np.random.default_rng(50)
    means = np.stack([np.zeros(50), rng.normal(0, 3, 50)])
    law = ellipsoids(rng, [0.4, 0.6], means, math.log(10))
    about = "Two Gaussians in 50 dimensions with other covariances; chains start in the lighter."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-modes-100", "final", "modes")
def _hundred(**labels: Any) -> Problem:
    law = isotropic([0.35, 0.65], np.stack([np.full(100, -1.0), np.full(100, 1.0)]), 1.0)
    about = "Two Gaussians in 100 dimensions, 20 standard deviations apart along the diagonal."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-modes-200", "final", "modes")
def _two_hundred(**labels: Any) -> Problem:
    law = isotropic([0.35, 0.65], np.stack([np.full(200, -1.0), np.full(200, 1.0)]), 1.0)
    about = "Two Gaussians in 200 dimensions, 28 standard deviations apart along the diagonal."
    return mixture_problem(law, **labels, about=about, indices=(0, 1))


@entered("two-student-5", "final", "modes")
def _two_student(**labels: Any) -> Problem:
    means = np.stack([np.zeros(5), np.full(5, 12.0)])
    law = isotropic([0.6, 0.4], means, [1.0, 1.5], degrees=2.0)
    about = (
        "Two modes of Student's t with 2 degrees in 5 dimensions: a draw belongs to the mode on "
        "its side of the plane between them, two fifths of the way."
    )
    problem = mixture_problem(law, **labels, about=about, extent=15.0, indices=(0,))

    def truth() -> Truth:
        left = float(law.cdf(np.ones(5) / 5)(4.8))
        return dataclasses.replace(problem.make_truth(), weights=(np.array([left, 1 - left]),))

    return dataclasses.replace(
        problem,
        make_truth=truth,
        mode_of=lambda x: (np.mean(x, axis=1) > 4.8).astype(int)[:, None],
    )


@entered("widths-25-3d", "final", "modes")
def _widths_3(**labels: Any) -> Problem:
    law = isotropic([0.5, 0.5], [[0.0, 0.0, 0.0], [8.0, 8.0, 8.0]], [2.5, 0.1])
    about = "A wide Gaussian, where chains start, and one of 1/25 of its width; 3-D."
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("widths-30-5d", "final", "modes")
def _widths_5(**labels: Any) -> Problem:
    law = isotropic([0.5, 0.5], np.stack([np.zeros(5), np.full(5, 8.0)]), [3.0, 0.1])
    about = "A wide Gaussian, where chains start, and one of 1/30 of its width; 5-D."
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("narrow-60", "final", "modes")
def _narrow_60(**labels: Any) -> Problem:
    law = isotropic([0.3, 0.7], np.stack([np.zeros(60), np.full(60, 2.0)]), [1.0, 0.7])
    about = (
        "In 60 dimensions a Gaussian, where chains start, and a heavier one of 0.7 of its width, "
        "whose volume is e^-21 of the first one's."
    )
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("gaussians-100", "final", "modes")
def _many(**labels: Any) -> Problem:
    rng = np.random.default_rng(100)
    law = isotropic(np.ones(100), rng.uniform(-10, 10, (100, 10)), 0.7)
    about = "100 equal Gaussians at random in [-10, 10]¹⁰."
    return mixture_problem(law, **labels, about=about, indices=(0,))


@entered("two-bananas-10", "final", "modes")
def _bananas(**labels: Any) -> Problem:
    return of_bananas(Bananas(10), **labels)


def of_bananas(law: "Bananas", **labels: Any) -> Problem:
    return Problem(
        **labels,
        dimension=law.dimension,
        about=f"Two bananas, {2 * law.shift:g} apart across their bend, in {law.dimension} "
        "dimensions.",
        logdensity_fn=law.logdensity,
        starts=lambda key, count: law.unbent(
            0.5 * jax.random.normal(key, (count, law.dimension)), jnp.zeros(count, int)
        ),
        extent=law.extents,
        make_truth=lambda: Truth("formula", (law.weights,), law.marginals(), 0.0),
        mode_of=law.mode_of,
        sample=law.sample,
    )


@dataclass(frozen=True, eq=False)
class Bananas:
    """A mixture of two: z normal, x₁ = 3 z₁, x₂ = z₂ + 0.3 (x₁² - 9) ± 10, others as they are."""

    dimension: int
    bend: float = 0.3
    width: float = 3.0
    shift: float = 10.0

    @property
    def weights(self) -> np.ndarray:
        return np.array([0.6, 0.4])

    @property
    def extents(self) -> np.ndarray:
        """Of the first two rather more than a standard deviation about the starts."""
        bent = 1.5 * self.bend * self.width**2 + 1.5 * self.shift
        return np.array([4 / 3 * self.width, bent] + (self.dimension - 2) * [1.2])

    def _logs(self, x: Array) -> Array:
        first = x[0] / self.width
        centre = x[1] - self.bend * (x[0] ** 2 - self.width**2)
        rest = jnp.sum(first**2) + jnp.sum(x[2:] ** 2)
        squares = rest + (centre + self.shift * jnp.array([1, -1], x.dtype)) ** 2
        height = -self.dimension / 2 * math.log(2 * math.pi) - math.log(self.width)
        return jnp.asarray(np.log(self.weights) + height, x.dtype) - squares / 2

    def logdensity(self, position: Array) -> Array:
        return jax.scipy.special.logsumexp(self._logs(position))

    def unbent(self, noise: Array, component: Array) -> Array:
        first = self.width * noise[:, 0]
        shift = self.shift * (2 * component - 1)
        second = noise[:, 1] + self.bend * (first**2 - self.width**2) + shift
        return jnp.column_stack([first, second, noise[:, 2:]])

    def sample(self, key: Array, count: int) -> Array:
        key_component, key_noise = jax.random.split(key)
        component = jax.random.bernoulli(key_component, self.weights[1], (count,)).astype(int)
        return self.unbent(jax.random.normal(key_noise, (count, self.dimension)), component)

    def mode_of(self, positions: np.ndarray) -> np.ndarray:
        centre = positions[:, 1] - self.bend * (positions[:, 0] ** 2 - self.width**2)
        return (centre > 0).astype(int)[:, None]

    def marginals(self) -> tuple[Marginal, ...]:
        nodes, masses = special.roots_hermitenorm(200)
        masses = masses / masses.sum()
        bent = self.bend * self.width**2 * (nodes**2 - 1)

        def second(x: Any) -> Any:
            places = np.asarray(x)[..., None] - bent
            return sum(
                share * np.sum(masses * stats.norm.cdf(places - side), axis=-1)
                for share, side in zip(self.weights, (-self.shift, self.shift), strict=True)
            )

        first = Marginal.of_cdf("x0", Coordinate(0), lambda x: stats.norm.cdf(x, scale=self.width))
        return first, Marginal.of_cdf("x1", Coordinate(1), second, 10.0)


def _well(x: Any) -> Any:
    """One double well: minima near ±1.7, a barrier of nine, and a slope that favours the right."""
    return -(x**4) + 6 * x**2 + x / 2


@dataclass(frozen=True, eq=False)
class Wells:
    """Pairs of a double well and a normal, turned by a rotation: 16 of them have 2¹⁶ modes."""

    turn: np.ndarray

    @property
    def count(self) -> int:
        return len(self.turn) // 2

    def logdensity(self, position: Array) -> Array:
        x = jnp.asarray(self.turn.T, position.dtype) @ position
        return jnp.sum(_well(x[::2])) - jnp.sum(x[1::2] ** 2) / 2

    @property
    def extents(self) -> np.ndarray:
        """Root mean square distances from where chains start, and a fifth more."""
        own = np.tile([3.9, 1.2], self.count)
        return np.sqrt((self.turn**2) @ own**2)

    def straight(self, positions: np.ndarray) -> np.ndarray:
        return np.asarray(positions) @ self.turn

    @property
    def line(self) -> Line:
        return Line(np.linspace(-5.0, 5.0, 100_001), _well)

    def truth(self) -> Truth:
        line = self.line
        weights = line.shares(np.array([0.0]))
        first = Marginal.of_grid(
            "first well", lambda x: self.straight(x)[:, 0], line.places, line.density
        )
        height = self.count * (line.log_evidence + math.log(2 * math.pi) / 2)
        return Truth("quadrature", (weights,) * self.count, (first,), height)

    def sample(self, key: Array, count: int) -> Array:
        key_well, key_normal = jax.random.split(key)
        wells = self.line.sample(key_well, (count, self.count))
        normal = jax.random.normal(key_normal, (count, self.count))
        return jnp.stack([wells, normal], axis=-1).reshape(count, -1) @ jnp.asarray(self.turn.T)

    def starts(self, key: Array, count: int) -> Array:
        wells = jnp.tile(jnp.array([-1.7, 0.0]), self.count)
        near = wells + 0.1 * jax.random.normal(key, (count, len(self.turn)))
        return near @ jnp.asarray(self.turn.T)


def of_wells(turn: np.ndarray, about: str, labels: dict[str, Any]) -> Problem:
    law = Wells(turn)
    return Problem(
        **labels,
        dimension=len(turn),
        about=f"{about} The error is the mean over the {law.count} wells; chains start left in all "
        "of them.",
        logdensity_fn=law.logdensity,
        starts=law.starts,
        extent=law.extents,
        make_truth=law.truth,
        mode_of=lambda positions: (law.straight(positions)[:, ::2] > 0).astype(int),
        sample=law.sample,
    )


@entered("wells-16-axes", "final", "modes")
def _wells_axes(**labels: Any) -> Problem:
    return of_wells(np.eye(32), "16 double wells and 16 normals along the axes.", labels)


@entered("wells-16-rotated", "final", "modes")
def _wells_rotated(**labels: Any) -> Problem:
    turn = rotation(np.random.default_rng(16), 32)
    return of_wells(turn, "16 double wells and 16 normals, turned by a random rotation.", labels)


@dataclass(frozen=True, eq=False)
class Rings:
    """Rings of radius R_k about c_k: density ∝ exp(-(|x - c_k| - R_k)² / 2 s²), normalised."""

    centres: np.ndarray
    radii: np.ndarray
    weights: np.ndarray
    width: float

    def _volumes(self) -> np.ndarray:
        """∫ r exp(-(r - R)²/2s²) dr · 2π, in closed form."""
        ratio = self.radii / self.width
        radial = self.width**2 * np.exp(-(ratio**2) / 2) + self.radii * self.width * math.sqrt(
            2 * math.pi
        ) * stats.norm.cdf(ratio)
        return 2 * math.pi * radial

    def _logs(self, x: Array) -> Array:
        offsets = x - jnp.asarray(self.centres, x.dtype)
        # A ring's centre has no direction; the smallest positive number keeps its gradient finite.
        distance = jnp.sqrt(jnp.sum(offsets**2, axis=-1) + jnp.finfo(x.dtype).tiny)
        heights = jnp.asarray(np.log(self.weights / self._volumes()), x.dtype)
        return heights - ((distance - jnp.asarray(self.radii, x.dtype)) / self.width) ** 2 / 2

    def logdensity(self, position: Array) -> Array:
        return jax.scipy.special.logsumexp(self._logs(position))

    def mode_of(self, positions: np.ndarray) -> np.ndarray:
        distance = np.linalg.norm(positions[:, None] - self.centres, axis=-1)
        heights = np.log(self.weights / self._volumes())
        return np.argmax(heights - ((distance - self.radii) / self.width) ** 2 / 2, axis=1)[:, None]

    def _radial(self, ring: int) -> Line:
        radius = float(self.radii[ring])
        places = np.linspace(max(1e-12, radius - 12 * self.width), radius + 12 * self.width, 20_001)
        return Line(places, lambda r: jnp.log(r) - ((r - radius) / self.width) ** 2 / 2)

    def on_ring(self, key: Array, ring: int, count: int) -> Array:
        key_radius, key_angle = jax.random.split(key)
        radius = self._radial(ring).sample(key_radius, (count, 1))
        angle = 2 * math.pi * jax.random.uniform(key_angle, (count,))
        circle = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
        return jnp.asarray(self.centres[ring]) + radius * circle

    def sample(self, key: Array, count: int) -> Array:
        keys = jax.random.split(key, len(self.radii) + 1)
        each = jnp.stack([self.on_ring(keys[k], k, count) for k in range(len(self.radii))])
        ring = jax.random.choice(keys[-1], len(self.radii), (count,), p=jnp.asarray(self.weights))
        return each[ring, jnp.arange(count)]

    def marginals(self) -> tuple[Marginal, ...]:
        """That of the first coordinate: the radius by quadrature, the angle in closed form."""
        lines = [self._radial(ring) for ring in range(len(self.radii))]

        def cdf(x: Any) -> Any:
            level = 0.0
            for share, centre, line in zip(self.weights, self.centres, lines, strict=True):
                radius, mass = line.places[::20], line.density[::20]
                ratio = (np.asarray(x)[..., None] - centre[0]) / radius
                below = 1 - np.arccos(np.clip(ratio, -1, 1)) / math.pi
                level = level + share * np.sum(mass * below, axis=-1) / np.sum(mass)
            return level

        grid = np.linspace(-15, 15, 3001)
        values = cdf(grid)
        return (
            Marginal.of_cdf(
                "x0", Coordinate(0), lambda x: np.interp(x, grid, values, left=0, right=1), 10.0
            ),
        )


def of_rings(law: Rings, about: str, labels: dict[str, Any]) -> Problem:
    return Problem(
        **labels,
        dimension=2,
        about=about,
        logdensity_fn=law.logdensity,
        starts=lambda key, count: law.on_ring(key, 0, count),
        extent=8.0,
        make_truth=lambda: Truth("formula", (law.weights,), law.marginals(), 0.0),
        mode_of=law.mode_of,
        sample=law.sample,
    )


@entered("rings-shifted", "final", "modes")
def _rings_shifted(**labels: Any) -> Problem:
    law = Rings(
        np.array([[-5.0, 0.0], [5.0, 0.0]]), np.array([3.0, 3.0]), np.array([0.6, 0.4]), 0.2
    )
    return of_rings(law, "Two rings side by side; chains start on the heavier.", labels)


@entered("rings-concentric", "final", "modes")
def _rings_concentric(**labels: Any) -> Problem:
    law = Rings(np.zeros((2, 2)), np.array([2.0, 6.0]), np.array([0.6, 0.4]), 0.2)
    return of_rings(
        law, "Two rings about one centre; chains start on the inner, heavier one.", labels
    )
