"""Random uses of `levymc.sample`: algorithm, target, options and numbers, and faults put into them.

A `Setup` is what compiles a program; `draw_numbers` gives it others, which compile nothing.
"""

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tests.fuzz.targets import LAYOUTS, Target, draw_starts, draw_target, map_layout

import levymc
from levymc import drifts, integrators, noises, schedules

DATA_SIZE, BATCH_SIZE = 20, 5


# Algorithms.


class Kind(NamedTuple):
    """make: of a target and the options that are named."""

    make: Callable[..., Any]
    options: tuple[str, ...]
    knows_density: bool = True
    takes_data: bool = False


@dataclass(frozen=True)
class Likelihood:
    """Normal, in units of the target's scale."""

    target: Target

    def __call__(self, position: Any, point: Any) -> Any:
        units = [(x - self.target.location) / self.target.scale for x in jax.tree.leaves(position)]
        return -sum(jnp.sum((z - point.astype(z.dtype)) ** 2) for z in units) / 2


@dataclass(frozen=True)
class Gradient:
    """The gradient of a target alone, from which nobody can tell the support."""

    target: Target

    def __call__(self, position: Any, minibatch: Any) -> Any:
        return jax.grad(lambda x: self.target(x).astype(float))(position)


def _with_drift(maker: Callable[..., Any], algorithm: Callable[..., Any] = levymc.flmc) -> Any:
    def make(target: Target, *, alpha: Any, **options: Any) -> Any:
        return algorithm(target, alpha=alpha, drift=maker(target, alpha), **options)

    return make


def _centered(target: Target, alpha: Any) -> Any:
    spacing = getattr(target, "scale", 1.0) / 10
    return drifts.centered_difference(target, alpha, spacing=spacing, num_terms=8)


def _estimator(target: Target) -> Any:
    return levymc.grad_estimator(target, Likelihood(target), DATA_SIZE)


def _augmented(target: Target, **options: Any) -> Any:
    return levymc.augmented(
        levymc.sgld(_estimator(target), **options), _latents, memory=jnp.zeros(2)
    )


def _jumping(target: Target, **options: Any) -> Any:
    sgld = levymc.sgld(_estimator(target), **options)
    return levymc.jumping(sgld, target, 2, scale=getattr(target, "scale", 1.0))


def _latents(key: Any, position: Any, minibatch: Any, memory: Any) -> tuple[Any, Any]:
    return minibatch + jax.random.normal(key, minibatch.shape), memory + 1


STEPS = ("step_size", "integrator", "preconditioner")
ALL = (*STEPS, "alpha", "noise")
KINDS: dict[str, Kind] = {
    "ula": Kind(levymc.ula, STEPS),
    "fla": Kind(levymc.fla, ALL),
    "flmc": Kind(levymc.flmc, ALL),
    "flmc, 16 nodes to infinity": Kind(
        _with_drift(functools.partial(drifts.quadrature, num_nodes=16, radius=np.inf)), ALL
    ),
    "flmc, leading term": Kind(_with_drift(drifts.leading_term), ALL),
    "flmc, centered difference": Kind(_with_drift(_centered), ALL),
    "mafla": Kind(levymc.mafla, (*STEPS, "alpha")),
    "mafla, centered difference": Kind(_with_drift(_centered, levymc.mafla), (*STEPS, "alpha")),
    "levy_walk": Kind(levymc.levy_walk, ("scale", "alpha")),
    "levy_walk, all coordinates": Kind(
        functools.partial(levymc.levy_walk, coordinatewise=False), ("scale", "alpha")
    ),
    "sgfla": Kind(lambda t, **o: levymc.sgfla(_estimator(t), **o), ALL, takes_data=True),
    "sgfla, gradient alone": Kind(
        lambda t, **o: levymc.sgfla(Gradient(t), **o), ALL, knows_density=False, takes_data=True
    ),
    "sgld": Kind(lambda t, **o: levymc.sgld(_estimator(t), **o), STEPS, takes_data=True),
    "augmented": Kind(_augmented, STEPS, takes_data=True),
    "jumping": Kind(_jumping, STEPS, takes_data=True),
}
COSTLY = ("flmc", "mafla, centered difference")  # to compile: tried half as often


# Setups.

INTEGRATORS: dict[str, Callable[[float], Any]] = {
    "default": lambda cap: None,
    "euler": lambda cap: integrators.euler(),
    "tamed": lambda cap: integrators.tamed(cap),
    "tamed by the norm": lambda cap: integrators.tamed(cap, componentwise=False),
    "split": lambda cap: integrators.split(cap, max_substeps=4),
}
NOISES: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "independent": noises.independent,
    "isotropic": noises.isotropic,
    "truncated": lambda: noises.truncated(7.0),
}
FORMS = ("number", "number", "array of no axes", "tree", "arrays")  # of α, m and s


@dataclass(frozen=True)
class Falling:
    """A schedule of a user's."""

    first: float

    def __call__(self, n: Any) -> Any:
        return self.first / jnp.sqrt(n)


SCHEDULES: dict[str, Callable[[float], Any]] = {
    "number": lambda eta: eta,
    "constant": schedules.constant,
    "polynomial": lambda eta: schedules.polynomial(eta * eta, 0.5),
    "function": Falling,
}
BATCHES: dict[str, Callable[[], Any]] = {
    "batches": lambda: levymc.batches(data(), BATCH_SIZE),
    "whole": lambda: levymc.whole(data()),
    "function": lambda: batch,
    "iterable": lambda: itertools.cycle([batch(0), batch(1)]),
    "iterable that ends": lambda: [batch(n) for n in range(9)],
}


def data() -> np.ndarray:
    return np.linspace(-1, 3, DATA_SIZE).astype(np.float32)


def batch(number: int) -> np.ndarray:
    return data()[number % 4 : number % 4 + BATCH_SIZE]


def first_leaf(position: Any) -> Any:
    """Something to keep or to observe."""
    return jax.tree.leaves(position)[-1]


OBSERVERS: dict[str, Callable[[], dict[str, Any]] | None] = {
    "nothing": None,
    "mean": lambda: {"mean": levymc.observe.mean()},
    "much": lambda: {
        "quantiles": levymc.observe.quantiles([0.1, 0.5], of=first_leaf),
        "histogram": levymc.observe.histogram([-1.0, 0.0, 1.0], of=first_leaf),
        "divergences": levymc.observe.divergences(),
    },
}


class Setup(NamedTuple):
    """What makes a program; `is_wide`: 64-bit types are allowed."""

    kind: str
    target: Target
    layout: str
    dtype: str
    is_wide: bool
    num_chains: int
    is_sweep: bool
    integrator: str
    noise: str
    alpha: str
    schedule: str
    preconditioner: str | None
    batches: str
    observe: str
    keep: str
    thin: str

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())


def draw_setup(random: random.Random) -> Setup:
    """Anything that the documentation allows, and some that it does not."""
    kind = random.choice([name for name in KINDS if name not in COSTLY] * 2 + list(COSTLY))
    target = draw_target(random)
    layout = random.choice([*LAYOUTS, "scalar", "vector", "tree"])
    dtype = random.choice(["float32"] * 8 + ["float64"] * 5 + ["float16", "bfloat16"])
    is_wide = dtype == "float64" or random.random() < 0.5
    return Setup(
        kind,
        target if is_wide else target.with_returns(None),
        layout,
        dtype,
        is_wide,
        random.choice([1, 2, 3]),
        random.random() < 0.1,
        random.choice(list(INTEGRATORS)),
        random.choice(list(NOISES)),
        random.choice(FORMS),
        random.choice(list(SCHEDULES)),
        random.choice([None, None, *FORMS]),
        random.choice(list(BATCHES)),
        random.choice(list(OBSERVERS)),
        random.choice(["default", "default", "all", "leaf", "nothing"]),
        random.choice(["every", "every", "third", "listed", "logarithmic"]),
    )


# Numbers.


def formed(form: str, layout: str, draw: Callable[[], float]) -> Any:
    """A parameter in one of the forms that are allowed."""
    if form == "number":
        return draw()
    if form == "array of no axes":
        return np.float32(draw())
    if form == "tree":
        return map_layout(lambda shape: draw(), layout)

    def array(shape: tuple[int, ...]) -> np.ndarray:
        return np.array([draw() for _ in range(int(np.prod(shape)))]).reshape(shape)

    return map_layout(array, layout)


def draw_alpha(random: random.Random) -> float:
    odd = [1 + 1e-6, 1.0001, 1.01, 1.999, 2 - 1e-6, 2.0]
    return random.choice(odd) if random.random() < 0.4 else random.uniform(1.02, 1.98)


def draw_options(random: random.Random, setup: Setup) -> dict[str, Any]:
    """The numbers of one algorithm, as its options."""
    scale = setup.target.scale
    is_wild = random.random() < 0.15
    eta = 10 ** random.uniform(-12, 12) if is_wild else scale**2 * 10 ** random.uniform(-3, 0)

    def positive() -> float:
        return 10 ** random.uniform(-1.5, 1.5)

    return {
        "step_size": SCHEDULES[setup.schedule](eta),
        "integrator": INTEGRATORS[setup.integrator](scale * positive()),
        "noise": NOISES[setup.noise](),
        "alpha": formed(_alpha_form(setup), setup.layout, lambda: draw_alpha(random)),
        "scale": formed(setup.alpha, setup.layout, lambda: scale * positive()),
        "preconditioner": None
        if setup.preconditioner is None
        else formed(setup.preconditioner, setup.layout, positive),
    }


def _alpha_form(setup: Setup) -> str:
    """One number, where no others are allowed."""
    takes_one = setup.kind.startswith("levy_walk") or setup.noise == "isotropic"
    return "number" if takes_one and setup.alpha in ("tree", "arrays") else setup.alpha


def draw_arguments(random: random.Random, setup: Setup) -> dict[str, Any]:
    """Those of `levymc.sample` beside the algorithm."""
    num_steps = random.randint(6, 14)
    thin: Any = {
        "every": 1,
        "third": 3,
        "listed": sorted(random.sample(range(1, num_steps + 1), 3)),
        "logarithmic": levymc.marks.logarithmic(3),
    }[setup.thin]
    keep = {"default": None, "all": True, "leaf": first_leaf, "nothing": False}[setup.keep]
    given = OBSERVERS[setup.observe]
    return {
        "key": jax.random.key(random.randrange(2**32)),
        "initial_positions": draw_starts(
            random, setup.target, setup.layout, setup.dtype, setup.num_chains
        ),
        "num_steps": num_steps,
        "thin": thin,
        "burn_in": random.choice([0, 0, 3]),
        "minibatches": BATCHES[setup.batches]() if KINDS[setup.kind].takes_data else None,
        "observe": None if given is None else given(),
        "observe_every": random.choice([1, 2]) if given else 1,
        "keep": keep,
    }
