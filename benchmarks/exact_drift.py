"""The exact drift on random mixtures of normals, with default arguments: right, or flagged.

Run: python benchmarks/exact_drift.py [seed] [number of mixtures]; or, for FLMC's law on two modes
far apart, python benchmarks/exact_drift.py law

Mixtures of one to five normals: positions ±10^U(0, 3), widths 10^U(-2, 2), weights Dirichlet(1), α
uniform on (1.05, 1.95).  At 48 points of each, 32 drawn from it and 16 between its modes, the drift
of `levymc.drifts.quadrature(logdensity_fn, alpha)` is compared with the closed form.  Errors are
relative to |b| + median |b|, the median over the mixture's own draws.  A value is right up to 1e-3;
it is flagged if its estimated error exceeds 1e-3; wrong and not flagged is a silent error.  The
bar: at least 99 % right, no silent error.

The closed form itself is compared with 30 digits of Kummer's function on a sample.
"""

import os
import sys
import time

os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
from jax.tree_util import Partial

import levymc
from levymc import drifts

MOST, DRAWN, BETWEEN = 5, 32, 16
TOLERANCE = 1e-3
FIRST_SEED, NUM_MIXTURES = 2026, 2000  # other seeds were used in the making


def logdensity(weights, means, stds, x):
    heights = jnp.log(weights / stds) - ((x - means) / stds) ** 2 / 2
    return jax.scipy.special.logsumexp(heights)


def random_mixture(generator):
    """Weights, means, stds, α and points."""
    count = generator.integers(1, MOST + 1)
    weights = generator.dirichlet(np.ones(count))
    means = generator.choice([-1, 1], count) * 10 ** generator.uniform(0, 3, count)
    stds = 10 ** generator.uniform(-2, 2, count)
    # All have five, so that they share programs: the first may count as several.
    parts = np.append(np.zeros(MOST - count, int), np.arange(count))
    weights = (weights / np.bincount(parts))[parts]
    means, stds = means[parts], stds[parts]
    chosen = generator.choice(MOST, DRAWN, p=weights)
    drawn = means[chosen] + stds[chosen] * generator.standard_normal(DRAWN)
    low, high = np.min(means), np.max(means)
    between = generator.uniform(low - 1, high + 1, BETWEEN)
    points = np.concatenate([drawn, between])
    return weights, means, stds, generator.uniform(1.05, 1.95), points


@jax.jit
def evaluated(drift, points):
    """Sign, log-size and estimated error."""
    found = jax.vmap(drift.evaluate)(points)
    return found.signed_log(), found.error


@jax.jit
def closed_form(drift, points):
    return jax.vmap(drift.signed_log)(points)


def errors(computed, exact):
    """Relative to |b| + the median of |b| over the draws, in units in which nothing overflows."""
    unit = np.median(exact.log_size[:DRAWN])
    top = np.maximum(np.maximum(computed.log_size, exact.log_size), unit)
    one, other = (part.sign * np.exp(part.log_size - top) for part in (computed, exact))
    return np.abs(one - other) / (np.abs(other) + np.exp(unit - top))


def reference(weights, means, stds, alpha, x):
    """The drift of a mixture in 30 digits."""
    with mp.workdps(60):
        a, total, density = mp.mpf(alpha), mp.mpf(0), mp.mpf(0)
        factor = 2 ** (a / 2) / mp.sqrt(mp.pi) * mp.gamma((a + 1) / 2)
        for w, m, s in zip(*map(np.ndarray.tolist, (weights, means, stds)), strict=True):
            z = (mp.mpf(x) - m) / s
            height = w / mp.mpf(s) * mp.exp(-z * z / 2)
            own = -factor * z * mp.hyp1f1(1 - a / 2, 1.5, z * z / 2) * mp.mpf(s) ** (1 - a)
            total, density = total + height * own, density + height
        return mp.sign(total), mp.log(abs(total / density))


def check_reference(seed, count=100):
    """The largest error of the closed form's logarithm, near the modes."""
    generator, worst = np.random.default_rng([seed, 1]), 0.0
    for _ in range(count):
        *mixture, alpha, points = random_mixture(generator)
        form = drifts.gaussian_mixture(alpha, *mixture)
        x = points[0]
        if np.max(np.abs((x - mixture[1]) / mixture[2])) > 30:
            continue  # Kummer's series is long there
        sign, log_size = reference(*mixture, alpha, float(x))
        found = form.signed_log(jnp.asarray(x))
        gap = (
            abs(float(found.log_size) - float(log_size))
            if float(sign) == float(found.sign)
            else np.inf
        )
        worst = max(worst, gap)
    return worst


def law(num_chains=256, num_steps=100_000, step_size=0.02):
    """The left mass of FLMC with its defaults on modes at ±30 of width 0.5, weights 0.9 and 0.1.

    Chains start with these weights, and run for 2000 units of time, some three times as long as
    they need to forget their mode; the share on the left is that of the second half.
    """
    begin = time.perf_counter()
    parts = np.array([0.9, 0.1]), np.array([-30.0, 30.0]), np.array([0.5, 0.5])
    target = Partial(logdensity, *(jnp.asarray(part, jnp.float32) for part in parts))
    key_start, key_run = jax.random.split(jax.random.key(FIRST_SEED))
    is_left = jax.random.uniform(key_start, (num_chains,)) < 0.9
    starts = jnp.where(is_left, -30.0, 30.0).astype(jnp.float32)
    algorithm = levymc.flmc(target, step_size, 1.5)
    run = levymc.sample(algorithm, key_run, starts, num_steps, thin=100, progress=False)
    shares = np.mean(run.positions[:, run.num_draws // 2 :] < 0, axis=1)
    error = np.std(shares) / np.sqrt(num_chains)
    hops = np.sum(np.diff(run.positions < 0, axis=1) != 0)
    print(
        f"left mass {np.mean(shares):.3f} ± {error:.3f} (target 0.900); {hops} changes of mode in "
        f"{num_chains} chains × {num_steps} steps; {run.num_inexact} draws with a drift in doubt; "
        f"{time.perf_counter() - begin:.0f} s"
    )


def main():
    if sys.argv[1:] == ["law"]:
        return law()
    numbers = [int(argument) for argument in sys.argv[1:]]
    seed, count = (*numbers, *(FIRST_SEED, NUM_MIXTURES)[len(numbers) :])
    print(f"closed form against 30 digits: log|b| to {check_reference(seed):.1e}")
    begin, rows, cost = time.perf_counter(), [], []
    for number in range(count):
        generator = np.random.default_rng([seed, 0, number])
        *mixture, alpha, points = random_mixture(generator)
        target = Partial(logdensity, *map(jnp.asarray, mixture))
        drift = drifts.quadrature(target, alpha)
        computed, estimate = evaluated(drift, jnp.asarray(points))
        form = drifts.gaussian_mixture(alpha, *mixture)
        exact = closed_form(form, jnp.asarray(points))
        error = errors(jax.tree.map(np.asarray, computed), jax.tree.map(np.asarray, exact))
        rows.append((np.where(np.isnan(error), np.inf, error), np.asarray(estimate)))
        cost.append(drift.evaluations.density)
        if np.max(rows[-1][0]) > TOLERANCE:
            worst = np.argmax(rows[-1][0])
            print(
                f"mixture {number}, α = {alpha:.4f}, x = {points[worst]:.6g}: error "
                f"{rows[-1][0][worst]:.1e}, estimated {estimate[worst]:.1e}; weights, means, stds:",
                *(part.round(4).tolist() for part in mixture),
            )
    error, estimate = (np.stack(part) for part in zip(*rows, strict=True))
    report(error, estimate, cost, time.perf_counter() - begin)


def report(error, estimate, cost, seconds):
    is_right, is_flagged = error <= TOLERANCE, estimate > TOLERANCE
    for name, part in (
        ("drawn", np.s_[:, :DRAWN]),
        ("between", np.s_[:, DRAWN:]),
        ("all", np.s_[:, :]),
    ):
        right, flagged, worst = is_right[part], is_flagged[part], error[part]
        mixtures = np.all(right, axis=1)
        print(
            f"{name:8} right {np.mean(right):.5f} of values, {np.mean(mixtures):.4f} of mixtures; "
            f"flagged {np.mean(flagged):.5f}, of these right {np.sum(flagged & right)}; "
            f"silent errors {np.sum(~right & ~flagged)}; "
            f"median error {np.median(worst):.1e}, 99.9 % {np.quantile(worst, 0.999):.1e}"
        )
    print(
        f"{len(error)} mixtures, {error.size} values, {seconds:.0f} s; log densities per value: "
        f"median {np.median(cost):.0f}, most {np.max(cost)}"
    )
    is_met = np.mean(np.all(is_right, axis=1)) >= 0.99 and not np.any(~is_right & ~is_flagged)
    print(
        "bar (99 % of mixtures right at all points, no silent error):",
        "met" if is_met else "MISSED",
    )


if __name__ == "__main__":
    main()
