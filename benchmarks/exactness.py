"""How close the samplers come to laws that are known: two wells, four modes, heavy tails.

Every chain starts in one place: in the left well, in the lightest mode, at the median.  What the
law of a sampler is, bias and all, shows only once the Monte Carlo error is well below the bar;
the numbers of steps were chosen for that, and burn-in counts among them.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, show
from scipy import stats

import levymc
from levymc import diagnostics, drifts, integrators, targets

EDGES = np.linspace(-6, 6, 61)
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
LEFT_WELL, RIGHT_WELL = -3.6042, 3.6096
LARGE_LOG = 20.0  # where asinh b = log 2b to the last digit
LOG_UNIT = math.log(1000.0)  # of the table of drifts, linear in b up to there


class Run(NamedTuple):
    """The size of a run: chains, steps of each (burn-in among them), and which are kept."""

    num_chains: int
    num_steps: int
    burn_in: int
    thin: int


def sample(algorithm, start, run: Run) -> levymc.Result:
    """All chains from one start, in float32."""
    starts = jnp.broadcast_to(jnp.asarray(start, jnp.float32), (run.num_chains, *np.shape(start)))
    return levymc.sample(
        algorithm,
        jax.random.key(0),
        starts,
        run.num_steps - run.burn_in,
        burn_in=run.burn_in,
        thin=run.thin,
        progress=False,
    )


def tabulated(drift: drifts.Drift, limit: float, num_points: int = 2**16) -> drifts.Drift:
    """A drift on the line, by linear interpolation of asinh b/1000 in asinh x up to ±limit.

    A table is some twenty times faster than the quadrature that fills it; both coordinates are
    logarithmic where it matters, in the tails and on the barrier, and linear at zero.
    """
    end = math.asinh(limit)
    spacing = 2 * end / (num_points - 1)
    grid = jnp.sinh(jnp.linspace(-end, end, num_points))
    sign, log_size = jax.jit(jax.vmap(drift.signed_log))(grid)
    log_size = log_size - LOG_UNIT
    small = jnp.arcsinh(jnp.exp(jnp.minimum(log_size, LARGE_LOG)))
    table = sign * jnp.where(log_size < LARGE_LOG, small, log_size + math.log(2))

    def signed_log(position):
        place = (jnp.arcsinh(position) + end) / spacing
        cell = jnp.clip(place.astype(jnp.int32), 0, num_points - 2)
        share = jnp.clip(place - cell, 0.0, 1.0)
        values = table.astype(position.dtype)
        value = values[cell] + share * (values[cell + 1] - values[cell])
        size = jnp.abs(value)
        log_sinh = size + jnp.log(-jnp.expm1(-2 * size)) - math.log(2)
        return drifts.SignedLog(jnp.sign(value), log_sinh + LOG_UNIT)

    return drifts.as_drift(signed_log)


def table_error(drift: drifts.Drift, table: drifts.Drift, limit: float) -> float:
    """The worst |difference| / (1 + |b|) at points between those of the table."""
    points = jnp.sinh(jnp.linspace(-math.asinh(limit), math.asinh(limit), 9973))
    exact, found = (jax.jit(jax.vmap(each))(points) for each in (drift, table))
    return float(jnp.max(jnp.abs(found - exact) / (1 + jnp.abs(exact))))


# Two wells ------------------------------------------------------------------------------------

TRUE_LEFT = diagnostics.mass_left_of(0.0, targets.double_well, EDGES)


def distance(draws) -> float:
    return diagnostics.total_variation(draws, targets.double_well, EDGES)


def left_error(draws) -> float:
    return abs(float(np.mean(draws < 0)) - TRUE_LEFT)


def hop_rate(draws, time: float) -> float:
    """Hops from well to well, per 1000 units of the time that one chain was followed."""
    return float(np.mean(diagnostics.hops(draws, (LEFT_WELL, RIGHT_WELL)))) * 1000 / time


def long_chains(name: str, algorithm, eta: float, run: Run, *, limits) -> list[Bar]:
    """Of all chains together; and of each by itself, which says what one long run would give."""
    draws = sample(algorithm, LEFT_WELL, run).positions
    alone = np.array([distance(chain) for chain in draws])
    errors = np.array([left_error(chain) for chain in draws])
    time = (run.num_steps - run.burn_in) * eta
    return [
        Bar(f"{name}: TV, all chains", distance(draws), "", limits[0]),
        Bar("  left mass, all chains", left_error(draws), "off", limits[1]),
        Bar("  hops", hop_rate(draws, time), "/1000 time"),
        Bar("  one chain alone: TV, median", float(np.median(alone)), ""),
        Bar("  one chain alone: TV ≤ 0.02", float(np.mean(alone <= 0.02)), "of chains"),
        Bar("  one chain alone: left mass, rms", float(np.sqrt(np.mean(errors**2))), "off"),
    ]


def langevin_on_double_well() -> Iterator[Bar]:
    """Chains of 2·10⁶ steps, the first 2·10⁵ dropped: 2000 time units each."""
    eta, run = 1e-3, Run(256, 2_000_000, 200_000, 200)
    exact = drifts.quadrature(
        targets.double_well, 1.7, radius=lambda x: jnp.abs(x) + 5.7, num_nodes=64
    )
    # Beyond 9 the drift is e^250 and more: any such number gives the same bounded step.
    drift = tabulated(exact, 9.0)

    def flmc(integrator):
        return levymc.flmc(targets.double_well, eta, 1.7, drift=drift, integrator=integrator)

    short = run._replace(num_chains=64, num_steps=1_000_000)
    bars, none = (0.02, 0.03), (None, None)
    tamed, split = flmc(integrators.tamed(0.5)), flmc(integrators.split())
    fla, ula = levymc.fla(targets.double_well, eta, 1.7), levymc.ula(targets.double_well, eta)
    yield Bar("the drift's table, off by / (1 + |b|)", table_error(exact, drift, 6.0), "", 1e-4)
    yield from long_chains("flmc, tamed(0.5)", tamed, eta, run, limits=bars)
    yield from long_chains("flmc, split()", split, eta, run, limits=bars)
    yield from long_chains("fla", fla, eta, short, limits=none)
    yield from long_chains("ula", ula, eta, short, limits=none)


def metropolis_on_double_well() -> Iterator[Bar]:
    """Sixteen runs of 10⁶ steps each, over 16 chains; the worst of them counts."""
    run = Run(16 * 16, 62_500, 2_500, 5)
    algorithms = {
        "mafla, α = 1.2, η = 3": levymc.mafla(targets.double_well, 3.0, 1.2),
        "levy_walk, α = 1.2, s = 2": levymc.levy_walk(targets.double_well, 2.0),
    }
    for name, algorithm in algorithms.items():
        result = sample(algorithm, LEFT_WELL, run)
        draws = result.positions
        runs = draws.reshape(16, 16, -1)
        rate = hop_rate(draws, run.num_steps - run.burn_in)
        yield from (
            Bar(f"{name}: TV, worst of 16", max(map(distance, runs)), "", 0.02),
            Bar("  left mass, worst of 16", max(map(left_error, runs)), "off", 0.03),
            Bar("  all 16 together: TV", distance(draws), ""),
            Bar("  accepted", float(np.mean(result.info.acceptance_rate)), ""),
            Bar("  hops", rate, "/1000 steps"),
        )


def double_well() -> Iterator[Bar]:
    yield from langevin_on_double_well()
    yield from metropolis_on_double_well()


# Four modes -----------------------------------------------------------------------------------


def mode_error(draws) -> float:
    """The worst error of the four weights; a draw belongs to the nearest mode."""
    offsets = draws.reshape(-1, 1, 2) - targets.FOUR_MODES_MEANS
    nearest = np.argmin(np.sum(offsets**2, axis=-1), axis=1)
    shares = np.bincount(nearest, minlength=4) / nearest.size
    return float(np.max(np.abs(shares - targets.FOUR_MODES_WEIGHTS)))


def four_modes() -> Iterator[Bar]:
    drift = drifts.gaussian_mixture(
        1.5, targets.FOUR_MODES_WEIGHTS, targets.FOUR_MODES_MEANS, targets.FOUR_MODES_SCALE
    )
    exact = levymc.flmc(
        targets.four_modes, 0.02, 1.5, drift=drift, integrator=integrators.tamed(0.5)
    )
    langevin = Run(1024, 7_500, 2_500, 25)
    metropolis = Run(512, 7_000, 2_000, 5)
    walk = levymc.levy_walk(targets.four_modes, 1.0)
    cases = [
        ("flmc, α = 1.5, η = 0.02", exact, langevin, 0.05),
        ("mafla, α = 1.2, η = 1", levymc.mafla(targets.four_modes, 1.0, 1.2), metropolis, 0.05),
        ("levy_walk, α = 1.2, s = 1", walk, metropolis, 0.05),
        ("fla, α = 1.7, η = 0.02", levymc.fla(targets.four_modes, 0.02, 1.7), langevin, None),
        ("ula, η = 0.02", levymc.ula(targets.four_modes, 0.02), langevin, None),
    ]
    lightest = targets.FOUR_MODES_MEANS[3]
    for name, algorithm, run, top in cases:
        error = mode_error(sample(algorithm, lightest, run).positions)
        yield Bar(f"{name}: weights", error, "off", top)


# Heavy tails ----------------------------------------------------------------------------------


def quantile_error(draws, law) -> float:
    """The worst relative error of the quantiles; the median's, zero, is in interquartile ranges."""
    exact = law.ppf(LEVELS)
    unit = np.where(LEVELS == 0.5, law.ppf(0.75) - law.ppf(0.25), np.abs(exact))
    return float(np.max(np.abs(np.quantile(draws, LEVELS) - exact) / unit))


def heavy_tail(name: str, target: Callable, law, alpha: float) -> Iterator[Bar]:
    """The exact drift grows like |x|^(1 + ν - α): no faster than x for α ≥ ν, so Euler is stable.

    A bounded step would not do here: it cannot bring a long jump back.
    """
    exact = drifts.quadrature(target, alpha, radius=jnp.inf)
    drift = tabulated(exact, 1e9)
    eta = 0.05
    flmc = levymc.flmc(target, eta, alpha, drift=drift, integrator=integrators.euler())
    langevin, metropolis = Run(8192, 15_000, 1_000, 25), Run(8192, 6_000, 2_000, 10)
    # Proposals longer than would accept a quarter: what limits the tails is how they are reached.
    cases = [
        (f"flmc, α = {alpha}, η = {eta}", flmc, langevin, 0.05),
        ("mafla, α = 1.1, η = 20", levymc.mafla(target, 20.0, 1.1), metropolis, 0.05),
        ("levy_walk, α = 1, s = 16", levymc.levy_walk(target, 16.0, 1.0), metropolis, 0.05),
        (f"fla, α = 1.7, η = {eta}", levymc.fla(target, eta, 1.7), langevin, None),
        (f"ula, η = {eta}", levymc.ula(target, eta), langevin, None),
    ]
    yield Bar(f"{name}, the drift's table, off by", table_error(exact, drift, 1e4), "", 1e-4)
    for case, algorithm, run, top in cases:
        draws = sample(algorithm, 0.0, run).positions
        beyond = float(np.mean(np.abs(draws) > law.isf(0.005)))
        yield Bar(f"{name}, {case}: quantiles", quantile_error(draws, law), "off", top)
        yield Bar("  mass where 0.01 should be", beyond, "")


def heavy_tails() -> Iterator[Bar]:
    yield from heavy_tail("t(1.5)", targets.student_t(1.5), stats.t(1.5), 1.5)
    yield from heavy_tail("Cauchy", targets.cauchy, stats.cauchy(), 1.2)


if __name__ == "__main__":
    for measure in (double_well, four_modes, heavy_tails):
        print(measure.__name__, flush=True)
        show(measure())
