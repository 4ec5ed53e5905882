r"""The paper's double well: facts of the target, scores of draws, samplers, and their checks.

The mean of a chain alone is a poor score: one that never leaves 0 is off by 0.30 only, one that
knows a single well by 3.3 or 3.9.  So the distance to the whole law, the mass left of zero and the
hops between the wells are measured beside it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import t as student_t

from levymc import algorithms, diagnostics, drifts, integrators, schedules
from levymc.run import Result
from levymc.targets import double_well as target
from levymc_lab.framework import Check, Tables

from ._shared import centres, gathered, sampled

EDGES = np.linspace(-6.0, 6.0, 61)  # total variation is on these 60 bins and the two outside
BINS = np.linspace(-6.0, 6.0, 121)  # of the histograms that are drawn
MEAN, VARIANCE, LEFT_MASS = -0.30140, 12.716, 0.54263
LEFT_MINIMUM, RIGHT_MINIMUM, BARRIER = -3.6042, 3.6096, 17.0
REACH = 5.7  # beyond ±REACH lies 1e-16 of the mass: the exact drift looks no farther
BEYOND = 8.0  # no mass of note lies outside of ±8
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
CORES = (-3.0, 3.0)  # two local standard deviations before the minima: beyond is inside a well
FALSE_ALARM = 1e-6  # of each check of the left mass


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
    return drifts.quadrature(target, alpha, radius=_radius, num_nodes=num_nodes)


def _radius(x: Any) -> Any:
    """Of the exact drift; one function, so that samplers of several step sizes share a program."""
    return jnp.abs(x) + REACH


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


def floor(num_draws: int) -> float:
    """The mean total variation of independent draws from the law itself, as `scores` has it.

    A bin's count is nearly normal: its mean absolute error is √(2 p(1-p) / πn).

    >>> round(floor(10_000), 3)
    0.016
    """
    law = masses()
    return float(np.sqrt(2 * law * (1 - law) / (np.pi * num_draws)).sum() / 2)


def _log_density(x: np.ndarray) -> np.ndarray:
    """As `levymc.targets.double_well`, in NumPy: that one follows JAX's precision."""
    return np.asarray(-((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5))


@lru_cache
def _normaliser() -> float:
    grid = np.linspace(-BEYOND, BEYOND, 4001)  # the trapezoidal rule converges spectrally here
    return float(np.exp(_log_density(grid)).sum() * (grid[1] - grid[0]))


class Sampler(NamedTuple):
    """A sampler at its settings.

    name: that of a colour in the figures, before the comma.
    """

    name: str
    alpha: float
    step_size: float | schedules.Schedule


def algorithm(sampler: Sampler) -> algorithms.SamplingAlgorithm:
    """The sampler by its name: what stands behind the comma is the integrator."""
    alpha, eta = sampler.alpha, sampler.step_size
    if sampler.name == "ULA":
        return algorithms.ula(target, eta)
    if sampler.name == "MAFLA":
        return algorithms.mafla(target, eta, alpha)
    if sampler.name.startswith("FLA"):
        step = integrators.tamed() if sampler.name.endswith("tamed") else integrators.euler()
        return algorithms.fla(target, eta, alpha, integrator=step)
    follow = integrators.split() if sampler.name.endswith("split") else integrators.tamed(0.5)
    return algorithms.flmc(target, eta, alpha, drift=exact_drift(alpha), integrator=follow)


def run_from_left(sampler: Sampler, key: Any, num_runs: int, num_steps: int, **how: Any) -> Result:
    """Runs from the bottom of the left well."""
    starts = jnp.asarray(np.full(num_runs, LEFT_MINIMUM))
    return sampled(algorithm(sampler), key, starts, num_steps, **how)


def measure(result: Result) -> dict[str, Any]:
    """Numbers and histogram of all runs together, and how much one run differs from the next."""
    x = np.asarray(result.positions, np.float64)
    runs, together = gathered([scores(path[None]) for path in x]), scores(x)
    return {
        "tv": together["tv"],
        "tv_of_shape": scores(x, balanced(x))["tv"],
        "tv_of_one_run": float(np.median(runs["tv"])),
        "left_mass_error": together["left_mass_error"],
        "left_mass_spread": float(runs["left_mass_error"].std(ddof=1) / np.sqrt(len(x))),
        "hops": float(runs["hops"].mean()),
        "both_wells": float(np.mean(runs["hops"] > 0)),
        "exploded": int(np.any(result.info.is_divergent, axis=1).sum()),
        "acceptance": float(np.mean(result.info.acceptance_rate)),
        "histogram": np.histogram(x, BINS)[0] / x.size / np.diff(BINS),
    }


def balanced(x: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    """Weights that give each well its exact mass: what is then wrong is the shape."""
    is_left = x < 0
    share = is_left.mean()
    if share in (0.0, 1.0):
        return np.ones(x.shape)
    return np.where(is_left, LEFT_MASS / share, (1 - LEFT_MASS) / (1 - share))


def histogram_of(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The histogram that `measure` made of a sampler's draws, beside the density."""
    x = centres(BINS)
    return {"sampler": name, "x": x, "found": result["histogram"], "exact": density(x)}


def by_name(tables: Tables) -> dict[str, dict[str, Any]]:
    """The scores of each sampler."""
    return {row["sampler"]: row for row in tables["scores"].rows()}


def check_ula(row: dict[str, Any]) -> Check:
    return Check.below(
        "hops of ULA, all runs",
        row["hops"] * row["runs"],
        1,
        source="paper",
        reason="“ULA can locate only one of the modes”; by Kramers' law a hop takes 2e7 time "
        "units, so that two in 1e5 have a chance of 1e-5",
    )


def part_of_start(row: Mapping[str, Any]) -> float:
    """Two wells as a chain of two states: the start's part in the mean over a run is τ/T.

    As hops come at the rate 2p(1-p)/τ, that part is (1-p) · 2p(1-p) / hops.
    """
    return float(2 * LEFT_MASS * (1 - LEFT_MASS) ** 2 / max(row["hops"], 1e-9))


def check_left_mass(row: dict[str, Any]) -> Check:
    """How far chance and the start may put the share of the draws left of zero."""
    quantile = student_t.isf(FALSE_ALARM / 2, row["runs"] - 1)
    return Check.near(
        f"mass left of zero, {row['sampler']}",
        LEFT_MASS + row["left_mass_error"],
        LEFT_MASS,
        part_of_start(row) + quantile * row["left_mass_spread"],
        reason=f"Student's t over independent runs, false-alarm rate {FALSE_ALARM:g}, and what "
        "their start in the left well leaves",
    )
