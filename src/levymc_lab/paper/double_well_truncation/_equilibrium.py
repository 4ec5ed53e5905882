r"""The law that dX = b̃_{h,K}(X) dt + dL^α settles in, on a grid and by chains.

Theorem 3 bounds the distance of its expectations from those of the target by O(h² + 1/(hK)).  The
sampling noise of chains would hide errors of 1e-5; the stationary density of the generator has
none.  It is compared with that of the exact drift on the same grid, so that the grid's own error,
reported beside, drops out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import levymc.algorithms as algorithms
from levymc import drifts, integrators, run

from .. import _double_well as well
from .._generator import stationary_density
from . import _truncated_drift

Columns = dict[str, np.ndarray]
REACH = 14.0  # hK at which every sum covers the whole target from everywhere on the grid
LARGEST_SPACING = 0.7  # as wide as a well: beyond, the drift is a comb that the grid cannot follow
FINE_REACHES = np.arange(6.0, 11.01, 0.5)  # the smallest error lies here


@dataclass(frozen=True)
class Grid:
    """Points on [-limit, limit]; beyond, the drift brings every jump back at once."""

    dx: float
    limit: float = 8.0

    @property
    def points(self) -> Float[np.ndarray, " n"]:
        half = round(self.limit / self.dx)
        return np.arange(-half, half + 1) * self.dx


def exact_density(grid: Grid, alpha: float) -> Float[np.ndarray, " n"]:
    """Of the diffusion with the exact drift: the target, up to the grid's error."""
    values = jax.jit(jax.vmap(well.exact_drift(alpha, 128)))(jnp.asarray(grid.points))
    return stationary_density(np.asarray(values), grid.points, alpha)


def truncated_density(grid: Grid, alpha: float, h: float, num_terms: int) -> np.ndarray:
    """Of the diffusion with b̃_{h,K}."""
    values = _truncated_drift.on_grid(grid.points, alpha, h, num_terms)
    return stationary_density(values, grid.points, alpha)


def difference(grid: Grid, one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Bias, total variation and left-mass error of the first density against the second."""
    x, masses = grid.points, (one - other) * grid.dx
    left = np.where(x < 0, 1.0, np.where(x == 0, 0.5, 0.0))
    return {
        "bias": float(masses @ x),
        "tv": float(np.abs(masses).sum() / 2),
        "left_mass_error": float(masses @ left),
    }


def effect_of_ends(grid: Grid, alpha: float, h: float, num_terms: int) -> float:
    """Total variation, within the grid, to the law on a grid half as wide again."""
    wide = Grid(grid.dx, 1.5 * grid.limit)
    inner, outer = (truncated_density(g, alpha, h, num_terms) for g in (grid, wide))
    margin = (outer.size - inner.size) // 2
    return difference(grid, outer[margin : outer.size - margin], inner)["tv"]


def sweep(
    grid: Grid, alpha: float, exact: np.ndarray, settings: Iterable[tuple[float, int]]
) -> Columns:
    """For each (h, K) the difference from the exact drift's law, and b̃'s number of wells."""
    rows = []
    for h, num_terms in settings:
        drift = _truncated_drift.on_grid(grid.points, alpha, h, num_terms)
        found = stationary_density(drift, grid.points, alpha)
        wells = np.count_nonzero((drift[:-1] > 0) & (drift[1:] <= 0))
        rows.append({"h": h, "K": num_terms, "wells": wells, **difference(grid, found, exact)})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def full_sums(spacings: Iterable[float]) -> list[tuple[float, int]]:
    """K so large that only h matters."""
    return [(h, int(np.ceil(REACH / h))) for h in spacings]


def fixed_terms(counts: Iterable[int], reaches: Iterable[float]) -> list[tuple[float, int]]:
    """For each K all h whose reach hK is asked for, up to the largest."""
    wanted = np.union1d(np.asarray(list(reaches)), FINE_REACHES)
    pairs = [(float(reach / count), count) for count in counts for reach in wanted]
    return [(h, count) for h, count in pairs if h <= LARGEST_SPACING]


def run_chains(
    key: Any, alpha: float, setting: tuple[float, int], num_chains: int, num_steps: int, eta: float
) -> Float[np.ndarray, "chain draw"]:
    """Chains from independent draws of the target; the draws of their second half, thinned."""
    key_start, key_run = jax.random.split(key)
    h, num_terms = setting
    drift = drifts.centered_difference(well.target, alpha, spacing=h, num_terms=num_terms)
    tamed = integrators.tamed(0.5)
    chain = algorithms.flmc(well.target, eta, alpha, drift=drift, integrator=tamed)
    x = np.linspace(-7, 7, 20_001)
    levels = np.cumsum(well.density(x)) * (x[1] - x[0])
    starts = jnp.interp(jax.random.uniform(key_start, (num_chains,)), levels, x)
    half = num_steps // 2
    thin = max(1, half // 20)
    result = run.sample(chain, key_run, starts, half, burn_in=half, thin=thin, progress=False)
    return np.asarray(result.positions)
