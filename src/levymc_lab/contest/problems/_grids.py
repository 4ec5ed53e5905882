"""Truth by quadrature: laws on a line, and densities on grids of two or three dimensions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._problem import Coordinate, Marginal


@dataclass(frozen=True, eq=False)
class Line:
    """A density on a line, given by its logarithm on a fine grid that holds all of the mass."""

    places: np.ndarray
    logdensity_fn: Callable[[Any], Any]

    @cached_property
    def _logs(self) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(self.logdensity_fn(jnp.asarray(self.places)))

    @cached_property
    def density(self) -> np.ndarray:
        """Up to a constant: its largest value is one."""
        return np.exp(self._logs - np.max(self._logs))

    @cached_property
    def _levels(self) -> np.ndarray:
        """The integral from the left."""
        pieces = np.diff(self.places) * (self.density[1:] + self.density[:-1]) / 2
        return np.concatenate([[0.0], np.cumsum(pieces)])

    @property
    def log_evidence(self) -> float:
        return float(np.log(self._levels[-1]) + np.max(self._logs))

    def shares(self, cuts: np.ndarray) -> np.ndarray:
        """The mass between the cuts."""
        at_cuts = np.interp(cuts, self.places, self._levels / self._levels[-1])
        return np.diff(np.concatenate([[0.0], at_cuts, [1.0]]))

    def sample(self, key: Array, shape: tuple[int, ...]) -> Array:
        uniform = jax.random.uniform(key, shape)
        return jnp.interp(
            uniform, jnp.asarray(self._levels / self._levels[-1]), jnp.asarray(self.places)
        )


@dataclass(frozen=True, eq=False)
class Box:
    """A density on the middles of equal cells along each axis, which hold all of the mass.

    The midpoint rule is exact to rounding for smooth densities that vanish at the rim.

    reaches: lower and upper end of each axis.  counts: of cells.
    """

    reaches: Sequence[tuple[float, float]]
    counts: Sequence[int]
    logdensity_fn: Callable[[Any], Any]

    @property
    def edges(self) -> list[np.ndarray]:
        return [
            np.linspace(*reach, count + 1)
            for reach, count in zip(self.reaches, self.counts, strict=True)
        ]

    @cached_property
    def points(self) -> np.ndarray:
        """Of shape (…, dimension)."""
        middles = [(edges[1:] + edges[:-1]) / 2 for edges in self.edges]
        return np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1)

    @cached_property
    def _logs(self) -> np.ndarray:
        with jax.enable_x64(True):
            flat = jnp.asarray(self.points.reshape(-1, len(self.counts)))
            logs = jax.jit(lambda xs: jax.lax.map(self.logdensity_fn, xs, batch_size=2048))(flat)
        return np.asarray(logs).reshape(self.points.shape[:-1])

    @cached_property
    def masses(self) -> np.ndarray:
        """The share of each cell."""
        density = np.exp(self._logs - np.max(self._logs))
        return density / density.sum()

    @property
    def log_evidence(self) -> float:
        largest = np.max(self._logs)
        cell = np.prod([edges[1] - edges[0] for edges in self.edges])
        return float(np.log(np.sum(np.exp(self._logs - largest)) * cell) + largest)

    @property
    def rim(self) -> float:
        """The largest share of a marginal's end: whether the box is wide enough."""
        ends = [self.shares(axis)[[0, -1]] for axis in range(len(self.counts))]
        return float(np.max(ends))

    def shares(self, axis: int) -> np.ndarray:
        """The masses along one axis."""
        others = tuple(one for one in range(len(self.counts)) if one != axis)
        return self.masses.sum(axis=others)

    def marginals(self, indices: Sequence[int]) -> tuple[Marginal, ...]:
        return tuple(
            Marginal.of_cells(f"x{i}", Coordinate(i), self.edges[i], self.shares(i))
            for i in indices
        )
