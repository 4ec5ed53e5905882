r"""What the experiments on the paper's double well share: the target's facts, and the scores.

The mean of a chain alone is a poor score: one that never leaves 0 is off by 0.30 only, one that
knows a single well by 3.3 or 3.9.  So the distance to the whole law, the mass left of zero and the
hops between the wells are measured beside it.
"""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from levymc import diagnostics, drifts
from levymc.targets import double_well as target

__all__ = [
    "BARRIER",
    "CORES",
    "EDGES",
    "LEFT_MASS",
    "LEFT_MINIMUM",
    "MEAN",
    "RIGHT_MINIMUM",
    "VARIANCE",
    "density",
    "exact_drift",
    "masses",
    "potential",
    "scores",
    "target",
]

EDGES = np.linspace(-6.0, 6.0, 61)  # total variation is on these 60 bins and the two outside
MEAN, VARIANCE, LEFT_MASS = -0.30140, 12.716, 0.54263
LEFT_MINIMUM, RIGHT_MINIMUM, BARRIER = -3.6042, 3.6096, 17.0
REACH = 5.7  # beyond ±REACH lies 1e-16 of the mass: the exact drift looks no farther
BEYOND = 8.0  # no mass of note lies outside of ±8
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
CORES = (-3.0, 3.0)  # two local standard deviations before the minima: beyond is inside a well


def density(x: Any) -> np.ndarray:
    """The exact density of the double well.

    >>> round(float(density(-3.6)), 3)
    0.691
    """
    return np.asarray(np.exp(_log_density(np.asarray(x, np.float64))) / _normaliser())


def potential(x: Any) -> np.ndarray:
    """U = -log φ, as the paper writes it."""
    return np.asarray(-_log_density(np.asarray(x, np.float64)))


def exact_drift(alpha: float, num_nodes: int = 48) -> drifts.Drift:
    """The drift b: right to 1e-5 with 48 nodes, far below the error of a step; 128 for rounding."""
    return drifts.quadrature(
        target, alpha, radius=lambda x: jnp.abs(x) + REACH, num_nodes=num_nodes
    )


def scores(
    positions: Float[np.ndarray, "chain draw"],
    weights: Float[np.ndarray, "chain draw"] | None = None,
) -> dict[str, float]:
    """How far draws are from the double well.

    Args:
        positions: finite; a path for each chain.
        weights: of the draws, such as the steps η_n; equal if not given.

    Returns:
        bias: of the mean over all draws, signed.
        abs_bias: the mean over chains of |mean of the chain - MEAN|.
        tv: total variation between all draws and the law, on the bins of `EDGES`.
        left_mass_error: share of the draws left of zero, less LEFT_MASS.
        hops: between the wells, of all chains together.
    """
    x = np.asarray(positions, np.float64)
    share = np.ones(x.shape) if weights is None else np.asarray(weights, np.float64)
    in_chain = share.sum(axis=1)
    means = (share * x).sum(axis=1) / in_chain
    return {
        "bias": float(means @ in_chain / in_chain.sum() - MEAN),
        "abs_bias": float(np.abs(means - MEAN).mean()),
        "tv": _total_variation(x, share),
        "left_mass_error": float(share[x < 0].sum() / share.sum() - LEFT_MASS),
        "hops": float(diagnostics.hops(x, CORES).sum()),
    }


def _total_variation(x: np.ndarray, share: np.ndarray) -> float:
    """As `levymc.diagnostics.total_variation`, but the law is integrated once for all calls."""
    law = masses()
    bins = np.searchsorted(EDGES, x.ravel(), side="right")
    found = np.bincount(bins, share.ravel(), minlength=law.size) / share.sum()
    return float(np.abs(found - law).sum() / 2)


@lru_cache
def masses() -> Float[np.ndarray, " bin"]:
    """Exact masses left of `EDGES`, between them, and right of them."""
    limits = np.concatenate([[-BEYOND], EDGES, [BEYOND]])
    half = np.diff(limits)[:, None] / 2
    points = limits[:-1, None] + half * (1 + NODES)
    return density(points) @ NODE_WEIGHTS * half[:, 0]


def _log_density(x: np.ndarray) -> np.ndarray:
    """As `levymc.targets.double_well`, in NumPy: that one follows JAX's precision."""
    return np.asarray(-((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5))


@lru_cache
def _normaliser() -> float:
    grid = np.linspace(-BEYOND, BEYOND, 4001)  # the trapezoidal rule converges spectrally here
    return float(np.exp(_log_density(grid)).sum() * (grid[1] - grid[0]))
