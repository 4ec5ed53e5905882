"""The samplers that are set side by side on the double well, and what is measured of each."""

import warnings
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from levymc import algorithms, integrators
from levymc.run import Result, sample

from . import _double_well as well

BINS = np.linspace(-6.0, 6.0, 121)  # of the histograms that are drawn


class Sampler(NamedTuple):
    """A sampler at its settings.

    name: that of a colour in the figures, before the comma.
    """

    name: str
    alpha: float
    step_size: float


def algorithm(sampler: Sampler) -> algorithms.SamplingAlgorithm:
    alpha, eta = sampler.alpha, sampler.step_size
    if sampler.name == "ULA":
        return algorithms.ula(well.target, eta)
    if sampler.name == "MAFLA":
        return algorithms.mafla(well.target, eta, alpha)
    if sampler.name.startswith("FLA"):
        step = integrators.tamed() if sampler.name.endswith("tamed") else integrators.euler()
        return algorithms.fla(well.target, eta, alpha, integrator=step)
    follow = integrators.split() if sampler.name.endswith("split") else integrators.tamed(0.5)
    return algorithms.flmc(
        well.target, eta, alpha, drift=well.exact_drift(alpha), integrator=follow
    )


def run_from_left(sampler: Sampler, key: Any, num_runs: int, num_steps: int, **how: Any) -> Result:
    """Runs from the bottom of the left well; that Euler's step explodes is a finding, not news."""
    starts = jnp.asarray(np.full(num_runs, well.LEFT_MINIMUM))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*would have left the finite numbers")
        return sample(algorithm(sampler), key, starts, num_steps, progress=False, **how)


def measure(result: Result) -> dict[str, Any]:
    """Numbers and histogram of all runs together, and how much one run differs from the next."""
    x = np.asarray(result.positions, np.float64)
    runs = [well.scores(path[None]) for path in x]
    hops = np.array([run["hops"] for run in runs])
    left_masses = np.array([run["left_mass_error"] for run in runs])
    together = well.scores(x)
    return {
        "tv": together["tv"],
        "tv_of_shape": well.scores(x, balanced(x))["tv"],
        "tv_of_one_run": float(np.median([run["tv"] for run in runs])),
        "left_mass_error": together["left_mass_error"],
        "left_mass_spread": float(left_masses.std(ddof=1) / np.sqrt(len(runs))),
        "hops": float(hops.mean()),
        "both_wells": float(np.mean(hops > 0)),
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
    return np.where(is_left, well.LEFT_MASS / share, (1 - well.LEFT_MASS) / (1 - share))
