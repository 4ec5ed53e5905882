"""Posteriors with many modes: labels that may be switched, two solutions, mirror images."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import optimize

from ._grids import Box
from ._problem import Problem, Truth, entered

LOG_2PI = math.log(2 * math.pi)
# Roeder (1990): velocities of 82 galaxies, in 1000 km/s.
GALAXIES = np.array(
    [9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552, 18.600,
     18.927, 19.052, 19.070, 19.330, 19.343, 19.349, 19.440, 19.473, 19.529, 19.541, 19.547,
     19.663, 19.846, 19.856, 19.863, 19.914, 19.918, 19.973, 19.989, 20.166, 20.175, 20.179,
     20.196, 20.215, 20.221, 20.415, 20.629, 20.795, 20.821, 20.846, 20.875, 20.986, 21.137,
     21.492, 21.701, 21.814, 21.921, 21.960, 22.185, 22.209, 22.242, 22.249, 22.314, 22.374,
     22.495, 22.746, 22.747, 22.888, 22.914, 23.206, 23.241, 23.263, 23.484, 23.538, 23.542,
     23.666, 23.706, 23.711, 24.129, 24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.960,
     26.995, 32.065, 32.789, 34.279]
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabelSwitching:
    """A posterior of a mixture of three normals: means, log scales and logits of the weights.

    μ_k ~ N(centre, spread), log σ_k ~ N(log_scale, 0.7), logits ~ N(0, 1); the posterior is the
    same for all six ways to name the components.
    """

    data: np.ndarray
    centre: float
    spread: float
    log_scale: float

    def logdensity(self, position: Array) -> Array:
        dtype = position.dtype
        means, log_scales, logits = position[:3], position[3:6], position[6:]
        z = (jnp.asarray(self.data, dtype)[:, None] - means) * jnp.exp(-log_scales)
        parts = jax.nn.log_softmax(logits) - log_scales - z**2 / 2 - LOG_2PI / 2
        priors = jnp.sum(((means - self.centre) / self.spread) ** 2)
        priors += jnp.sum(((log_scales - self.log_scale) / 0.7) ** 2) + jnp.sum(logits**2)
        fits = jnp.sum(jax.scipy.special.logsumexp(parts, axis=1))
        return fits - priors / 2 - 4.5 * LOG_2PI - 3 * math.log(self.spread * 0.7)

    @staticmethod
    def mode_of(positions: np.ndarray) -> np.ndarray:
        """Which of the six orders the means are in."""
        order = np.argsort(positions[:, :3], axis=1)
        number = {one: i for i, one in enumerate(itertools.permutations(range(3)))}
        codes = order @ np.array([9, 3, 1])
        table = np.zeros(27, int)
        for one, i in number.items():
            table[np.dot(one, [9, 3, 1])] = i
        return table[codes][:, None]


def of_switching(law: LabelSwitching, start: Any, about: str, labels: dict[str, Any]) -> Problem:
    sixths = np.full(6, 1 / 6)
    return Problem(
        **labels,
        dimension=9,
        about=about + " Truth: each order of the three means has a sixth of the mass.",
        logdensity_fn=law.logdensity,
        starts=lambda key, count: jnp.asarray(start) + 0.1 * jax.random.normal(key, (count, 9)),
        extent=np.repeat([law.spread, 0.9, 1.2], 3),
        make_truth=lambda: Truth("symmetry", (sixths,)),
        mode_of=law.mode_of,
    )


@entered("label-switching", "final", "modes")
def _synthetic(**labels: Any) -> Problem:
    rng = np.random.default_rng(9)
    data = np.concatenate([rng.normal(m, s, 20) for m, s in ((-4, 0.6), (0, 1.0), (4, 0.7))])
    law = LabelSwitching(data, 0.0, 5.0, 0.0)
    start = np.array([-4.0, 0.0, 4.0, -0.5, 0.0, -0.4, 0.0, 0.0, 0.0])
    about = "A mixture of three normals fitted to 60 synthetic numbers; starts near one labelling."
    return of_switching(law, start, about, labels)


@entered("galaxies", "final", "modes")
def _galaxies(**labels: Any) -> Problem:
    law = LabelSwitching(GALAXIES, 20.0, 8.0, 0.5)
    start = np.array([9.7, 21.4, 33.0, -0.7, 0.8, -0.2, -0.7, 1.3, -0.7])
    about = "A mixture of three normals fitted to the velocities of 82 galaxies (Roeder 1990)."
    return of_switching(law, start, about, labels)


TIMES = np.array([0.3, 0.7, 1.2, 2.0, 3.0, 4.5, 6.5, 9.0])
NOISE = 0.12  # standard deviation of the logarithm of a concentration
DOSE = 10.0


def _concentration(log_in: Any, log_out: Any, log_volume: Any, times: Any) -> Any:
    """Of a drug: Ȧ = -k A, Ċ = k A / V - l C, A(0) = dose, solved in closed form.

    k and l may be exchanged if V is multiplied by l/k: the flip-flop of pharmacokinetics.
    """
    rate_in, rate_out = jnp.exp(log_in), jnp.exp(log_out)
    gap = (rate_in - rate_out) * times
    tiny = jnp.abs(gap) < 1e-3
    safe = jnp.where(tiny, 1.0, gap)
    share = jnp.where(tiny, 1 - gap / 2 + gap**2 / 6, -jnp.expm1(-safe) / safe)
    log_share = jnp.log(share)
    return math.log(DOSE) + log_in - log_volume - rate_out * times + jnp.log(times) + log_share


def _observed() -> np.ndarray:
    rng = np.random.default_rng(8)
    k, out, volume = 1.5, 0.3, 5.0
    exact = DOSE * k / (volume * (k - out)) * (np.exp(-out * TIMES) - np.exp(-k * TIMES))
    return np.log(exact) + NOISE * rng.normal(size=TIMES.size)


OBSERVED = _observed()
PRIOR_MEANS, PRIOR_SCALES = np.array([0.2, -0.6, 1.2]), np.array([0.9, 0.9, 1.2])


def flip_flop_logdensity(position: Array) -> Array:
    """log k, log l, log V with normal priors; the logarithms of the concentrations are normal."""
    dtype = position.dtype
    log_in, log_out, log_volume = position
    logs = _concentration(log_in, log_out, log_volume, jnp.asarray(TIMES, dtype))
    z = (jnp.asarray(OBSERVED, dtype) - logs) / NOISE
    prior = (position - jnp.asarray(PRIOR_MEANS, dtype)) / jnp.asarray(PRIOR_SCALES, dtype)
    height = -5.5 * LOG_2PI - 8 * math.log(NOISE) - float(np.log(PRIOR_SCALES).sum())
    return -jnp.sum(z**2) / 2 - jnp.sum(prior**2) / 2 + height


@entered("flip-flop-ode", "final", "modes")
def _flip_flop(**labels: Any) -> Problem:
    def truth() -> Truth:
        box = Box([(-2.2, 1.6), (-2.2, 1.6), (-1.0, 2.8)], [120, 120, 120], flip_flop_logdensity)
        swapped = float(box.masses[box.points[..., 0] < box.points[..., 1]].sum())
        return Truth(
            "quadrature",
            (np.array([1 - swapped, swapped]),),
            box.marginals((0, 1, 2)),
            box.log_evidence,
        )

    return Problem(
        **labels,
        dimension=3,
        about="Rates of absorption and elimination of a drug from eight concentrations: the ODE "
        "fits as well with the two exchanged. Starts near the right ones.",
        logdensity_fn=flip_flop_logdensity,
        starts=lambda key, count: (
            jnp.array([math.log(1.5), math.log(0.3), math.log(5.0)])
            + 0.1 * jax.random.normal(key, (count, 3))
        ),
        extent=1.5,
        make_truth=truth,
        mode_of=lambda x: (x[:, 0] < x[:, 1]).astype(int)[:, None],
    )


@dataclass(frozen=True, eq=False)
class Network:
    """One hidden layer of tanh units: input weights, biases, output weights, and a constant.

    A unit may change the sign of all its weights, and units may change places: 2⁵ 5! copies.
    """

    units: int = 5

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(5)
        x = np.linspace(-2, 2, 25)
        return x, np.sin(2 * x) + 0.1 * rng.normal(size=x.size)

    @property
    def dimension(self) -> int:
        return 3 * self.units + 1

    def logdensity(self, position: Array) -> Array:
        n, dtype = self.units, position.dtype
        into, bias, out = position[: 3 * n].reshape(3, n)
        constant = position[-1]
        x, y = (jnp.asarray(one, dtype) for one in self.data)
        fits = jnp.tanh(x[:, None] * into + bias) @ out + constant
        errors = jnp.sum((y - fits) ** 2) / 0.1**2
        priors = jnp.sum(into**2) / 4 + jnp.sum(bias**2) / 4 + jnp.sum(out**2) + constant**2
        height = -(self.dimension + 25) / 2 * LOG_2PI - 2 * n * math.log(2) - 25 * math.log(0.1)
        return -(errors + priors) / 2 + height

    @cached_property
    def optimum(self) -> np.ndarray:
        """One of the modes, by BFGS from a fixed start."""
        with jax.enable_x64(True):
            loss = jax.jit(jax.value_and_grad(lambda x: -self.logdensity(x)))
            start = np.random.default_rng(6).normal(size=self.dimension)
            found = optimize.minimize(
                lambda x: tuple(np.asarray(one, float) for one in loss(jnp.asarray(x))),
                start,
                jac=True,
                method="BFGS",
                options={"gtol": 1e-3},
            )
        return found.x

    def mode_of(self, positions: np.ndarray) -> np.ndarray:
        out = positions[:, 2 * self.units : -1]
        return np.column_stack([(out > 0).astype(int), np.argmax(np.abs(out), axis=1)])


@entered("network-5", "final", "modes")
def _network(**labels: Any) -> Problem:
    return of_network(Network(), **labels)


def of_network(law: Network, **labels: Any) -> Problem:
    n = law.units
    weights = (*(np.array([0.5, 0.5]),) * n, np.full(n, 1 / n))
    return Problem(
        **labels,
        dimension=law.dimension,
        about=f"A network of {n} tanh units fitted to 25 points of a sine. Truth by symmetry: the "
        "sign of each output weight, and which of them is largest; the error is the mean of both "
        "kinds. Starts near one optimum.",
        logdensity_fn=law.logdensity,
        starts=lambda key, count: (
            jnp.asarray(law.optimum) + 0.05 * jax.random.normal(key, (count, law.dimension))
        ),
        extent=np.append(np.repeat([2.4, 2.4, 1.2], n), 1.2),
        make_truth=lambda: Truth("symmetry", weights),
        mode_of=law.mode_of,
    )


@dataclass(frozen=True, eq=False)
class Sensors:
    """Where are four sensors, given noisy distances to each other and to anchors on a line?

    A distance d is heard with probability e^{-d²/2R²}, and then known up to N(0, 0.02).  Sensors
    0 and 1 are one group, 2 and 3 another; groups do not listen to each other, so that each may
    be mirrored at the anchors' line: four copies of equal mass, and more modes among them.
    """

    reach: float = 0.45
    noise: float = 0.02
    seed: int = 4

    @property
    def anchors(self) -> np.ndarray:
        return np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]])

    @property
    def places(self) -> np.ndarray:
        return np.array([[0.15, 0.35], [0.45, 0.55], [0.80, -0.30], [1.10, -0.60]])

    @cached_property
    def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of each pair that listens: its two ends among sensors and anchors, heard, distance."""
        rng = np.random.default_rng(self.seed)
        pairs = [(i, 4 + a) for i in range(4) for a in range(3)] + [(0, 1), (2, 3)]
        first, second = np.array(pairs).T
        points = np.concatenate([self.places, self.anchors])
        distance = np.linalg.norm(points[first] - points[second], axis=1)
        heard = rng.random(len(pairs)) < np.exp(-(distance**2) / (2 * self.reach**2))
        return first, second, heard, distance + self.noise * rng.normal(size=len(pairs))

    def logdensity(self, position: Array) -> Array:
        dtype = position.dtype
        first, second, heard, measured = self.links
        sensors = position.reshape(4, 2)
        points = jnp.concatenate([sensors, jnp.asarray(self.anchors, dtype)])
        offsets = points[first] - points[second]
        squares = jnp.sum(offsets**2, axis=1) + jnp.asarray(1e-12, dtype)
        decay = squares / (2 * self.reach**2)
        misfit = (jnp.asarray(measured, dtype) - jnp.sqrt(squares)) / self.noise
        if_heard = -decay - misfit**2 / 2 - LOG_2PI / 2 - math.log(self.noise)
        if_not = jnp.log(-jnp.expm1(-decay))
        centre = jnp.asarray([0.5, 0.0], dtype)
        priors = -jnp.sum((sensors - centre) ** 2) / 2 - 4 * LOG_2PI
        return jnp.sum(jnp.where(heard, if_heard, if_not)) + priors

    @staticmethod
    def mode_of(positions: np.ndarray) -> np.ndarray:
        return (2 * (positions[:, 1] > 0) + (positions[:, 5] > 0)).astype(int)[:, None]


@entered("sensors", "final", "modes")
def _sensors(**labels: Any) -> Problem:
    return of_sensors(Sensors(), **labels)


def of_sensors(law: Sensors, **labels: Any) -> Problem:
    return Problem(
        **labels,
        dimension=8,
        about="Places of four sensors from noisy distances: synthetic, with anchors on a line. "
        "Truth by symmetry: the sides of two of them, a quarter each. Starts near the truth.",
        logdensity_fn=law.logdensity,
        starts=lambda key, count: (
            jnp.asarray(law.places.ravel()) + 0.02 * jax.random.normal(key, (count, 8))
        ),
        extent=0.8,
        make_truth=lambda: Truth("symmetry", (np.full(4, 0.25),)),
        mode_of=law.mode_of,
    )
