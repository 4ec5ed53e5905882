"""Random targets, from tame to hostile, and positions of many shapes.

A target is evaluated by JAX, for the samplers, and by NumPy, for those who judge their draws.
"""

import dataclasses
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Term = Callable[[ModuleType, Any, float], Any]  # of (NumPy or JAX's, z, a parameter in (0, 1))


def _mixture(xp: ModuleType, z: Any, p: float) -> Any:
    apart, width = 1 + 30 * p, 0.05 + p
    return xp.logaddexp(
        math.log(p) - ((z - apart) ** 2) / 2,
        math.log1p(-p) - ((z + apart) / width) ** 2 / 2 - math.log(width),
    )


# log φ of one coordinate, in units of the target's scale.
TERMS: dict[str, Term] = {
    "normal": lambda xp, z, p: -z * z / 2,
    "student": lambda xp, z, p: -(1 + 4 * p) * xp.log1p(z * z) / 2,
    "mixture": _mixture,
    "gamma, NaN below zero": lambda xp, z, p: (0.2 + 3 * p) * xp.log(z) - z,
    "half normal": lambda xp, z, p: xp.where(z > 0, -z * z / 2, -xp.inf),
    "uniform": lambda xp, z, p: xp.where(abs(z) < 2, 0 * z, -xp.inf),
    "arc, NaN outside": lambda xp, z, p: (1 + p) * xp.log(4 - z * z),
    "Laplace": lambda xp, z, p: -abs(z),
    "cusp": lambda xp, z, p: -xp.sqrt(abs(z)),
    "pole": lambda xp, z, p: -p * xp.log(abs(z)) - z * z / 2,
    "constant": lambda xp, z, p: 0 * z,
    "improper": lambda xp, z, p: z,
    "quartic": lambda xp, z, p: p * z * z - z**4,
    "steep": lambda xp, z, p: -xp.exp(z) - xp.exp(-z),
    "staircase": lambda xp, z, p: -xp.floor(abs(z)),
    "explosive": lambda xp, z, p: z**4,
}
POSITIVE = ("gamma, NaN below zero", "half normal")


@dataclass(frozen=True)
class Target:
    """log φ(x) = Σ term((x - location) / scale), over all coordinates of a pytree.

    returns: a dtype to which it is converted, as by a function that has constants of its own.
    """

    kind: str
    scale: float
    location: float
    parameter: float
    returns: str | None = None

    def __call__(self, position: Any) -> Any:
        total = self._total(jnp, position, lambda leaf: leaf)
        return total if self.returns is None else total.astype(self.returns)

    def with_returns(self, returns: str | None) -> "Target":
        return dataclasses.replace(self, returns=returns)

    def of_draws(self, positions: Any, num_axes: int = 2) -> np.ndarray:
        """By NumPy, for leaves with `num_axes` axes before those of the position."""

        def flat(values: np.ndarray) -> np.ndarray:
            return np.sum(values.reshape(*values.shape[:num_axes], -1), axis=-1)

        with np.errstate(all="ignore"):
            return np.asarray(self._total(np, jax.tree.map(np.asarray, positions), flat))

    def start(self, random: random.Random, *, is_careful: bool) -> float:
        """One coordinate, inside the support unless chosen without care."""
        z = random.choice([random.uniform(0.1, 1.9), random.uniform(-1.9, -0.1)])
        if is_careful:
            z = abs(z) if self.kind in POSITIVE else z
        else:
            z = random.choice([z, 0.0, 30.0, -1e5])
        return self.location + self.scale * z

    def _total(self, xp: ModuleType, position: Any, within: Callable[[Any], Any]) -> Any:
        term = TERMS[self.kind]

        def in_units(leaf: Any) -> Any:
            # As JAX does, NumPy must round these to sixteen bits, where positions have them.
            location, scale = (jnp.result_type(leaf).type(c) for c in (self.location, self.scale))
            return (leaf - location) / scale

        terms = [
            xp.sum(part) if xp is jnp else within(part)
            for leaf in jax.tree.leaves(position)
            for part in [term(xp, in_units(leaf), self.parameter)]
        ]
        return sum(terms[1:], start=terms[0])


def draw_target(random: random.Random) -> Target:
    """A target; most are of a scale that people would choose."""
    scale = 10.0 ** (random.uniform(-6, 6) if random.random() < 0.4 else random.uniform(-1, 1))
    location = random.choice([0.0, 0.0, 0.0, 3 * scale, 100.0 * scale])
    returns = random.choice([None] * 12 + ["float32", "float64"])
    kind = random.choice(list(TERMS))
    return Target(kind, scale, location, random.uniform(0.05, 0.95), returns)


# Shapes of one chain's position.
LAYOUTS: dict[str, Any] = {
    "scalar": (),
    "vector": (3,),
    "matrix": (2, 2),
    "tree": {"a": (2,), "b": ()},
    "nested": [((), (2,)), {"c": (1,)}],
    "two precisions": {"a": (2,), "b": ()},
    "an empty leaf": {"a": (0,), "b": (2,)},
}


def is_shape(node: Any) -> bool:
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


def map_layout(function: Callable[[tuple[int, ...]], Any], layout: str) -> Any:
    """A pytree like the position, of a function of each leaf's shape."""
    return jax.tree.map(function, LAYOUTS[layout], is_leaf=is_shape)


def draw_starts(
    random: random.Random, target: Target, layout: str, dtype: str, num_chains: int
) -> Any:
    """The starts of some chains, whose leaves are NumPy arrays."""
    is_careful = random.random() < 0.8
    dtypes = iter([dtype, "float64" if dtype == "float32" else "float32"])

    def leaf(shape: tuple[int, ...]) -> np.ndarray:
        count = num_chains * math.prod(shape)
        values = np.array([target.start(random, is_careful=is_careful) for _ in range(count)])
        own = next(dtypes) if layout == "two precisions" else dtype
        with np.errstate(over="ignore"):
            return values.reshape(num_chains, *shape).astype(jnp.dtype(own))

    return map_layout(leaf, layout)
