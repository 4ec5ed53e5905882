"""NUTS after a tail map against NUTS with a dense metric: what 1000 evaluations are worth.

Effective draws (ArviZ's bulk and tail, the worst coordinate) for 1000 evaluations of density and
gradient after the warm-up, what the warm-up took, and which map it chose.  Both have the same
warm-up by levymc, but for the map.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

import levymc

CHAINS = 4
KINDS = ("linear", "coordinatewise", "elliptical", "turned"), ("linear",)
SCALES = 10.0 ** np.linspace(-2, 2, 10)
COVARIANCE = np.linalg.inv(np.array([[1.0, 0.9], [0.9, 1.0]]))
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def regression_data(count=400, size=20):
    random = np.random.default_rng(1)
    features = random.normal(size=(count, size))
    coefficients = random.normal(size=size)
    return features, random.random(count) < 1 / (1 + np.exp(-features @ coefficients))


FEATURES, ANSWERS = regression_data()


def cauchy(x):
    return -jnp.sum(jnp.log1p(x * x))


def student_scaled(x):
    return -1.25 * jnp.sum(jnp.log1p((x / jnp.asarray(SCALES, x.dtype)) ** 2 / 1.5))


def student_correlated(x):
    return -2.0 * jnp.log1p(x @ jnp.asarray(COVARIANCE, x.dtype) @ x / 2)


def logistic(x):
    logits = jnp.asarray(FEATURES, x.dtype) @ x
    likelihood = jnp.sum(jnp.where(ANSWERS, logits, 0.0) - jnp.logaddexp(0.0, logits))
    return likelihood - jnp.sum(x * x) / (2 * 2.5**2)


def eight_schools(x):
    """Non-centred, with effects of t(3) and a half-Cauchy prior of their scale."""
    mean, log_scale, effects = x[0], x[1], x[2:]
    scale = jnp.exp(log_scale)
    misfit = (EFFECTS - mean - scale * effects) / ERRORS
    prior = -2.0 * jnp.sum(jnp.log1p(effects**2 / 3)) - (mean / 5) ** 2 / 2
    return prior - jnp.sum(misfit**2) / 2 - jnp.log1p((scale / 5) ** 2) + log_scale


def funnel(x):
    log_width, rest = x[0], x[1:]
    wide = -((log_width / 3) ** 2) / 2 - rest.size * log_width / 2
    return wide - jnp.sum(rest**2) * jnp.exp(-log_width) / 2


# Target, number of coordinates, and what prototypes reached with and without a map.
TARGETS = {
    "Cauchy, 10-D": (cauchy, 10, "196/94", ".85/.19"),
    "t(1.5), scales 1e±2": (student_scaled, 10, "218/95", "5/1"),
    "t(2), ρ = .9": (student_correlated, 2, "258/109", "91/13"),
    "logistic, 20 coefficients": (logistic, 20, "271/97", "266/98"),
    "eight schools": (eight_schools, 10, "118/83", "49/34"),
    "funnel, 10-D": (funnel, 10, "", ""),
}


def measured(adapted, key, num_evaluations):
    """Effective draws for 1000 evaluations, and the share of divergent trajectories."""
    steps = int(max(100, num_evaluations / CHAINS / adapted.cost))
    run = levymc.sample(adapted.algorithm, key, adapted.positions, steps, progress=False)
    spent = float(np.sum(run.info.num_integration_steps)) / 1000
    each = [
        float(np.min(levymc.diagnostics.ess(run, kind=kind)["x"])) / spent
        for kind in ("bulk", "tail")
    ]
    return each, float(np.mean(run.info.is_divergent))


def compare(name, budget, num_evaluations, dtype, seeds):
    target, size, *published = TARGETS[name]
    starts = jnp.asarray(np.random.default_rng(0).normal(size=(CHAINS, size)), dtype)
    for kinds, known in zip(KINDS, published, strict=True):
        rows = []
        for seed in range(seeds):
            key_warm_up, key_run = jax.random.split(jax.random.key(seed))
            adapted = levymc.adapt.one_mode(target, key_warm_up, starts, budget=budget, kinds=kinds)
            worth, divergent = measured(adapted, key_run, num_evaluations)
            rows.append([*worth, sum(adapted.evaluations.values()), adapted.cost, divergent])
            chosen = adapted.facts["map"]
        bulk, tail, warm_up, cost, divergent = np.median(rows, axis=0)
        kind = chosen if len(kinds) > 1 else "linear, forced"
        print(
            f"{name:26s} {kind:16s} {bulk:7.3g} {tail:7.3g} {known:>9s} {warm_up:9.0f} "
            f"{cost:7.1f} {divergent:8.2%}",
            flush=True,
        )
        for note in adapted.notes:
            print(f"    {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=200_000, help="of which 45 %% warm up")
    parser.add_argument("--evaluations", type=int, default=40_000, help="of the measured run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--target", action="append", choices=[*TARGETS])
    given = parser.parse_args()
    if given.float64:
        jax.config.update("jax_enable_x64", True)
    print(
        f"{'target':26s} {'map':16s} {'bulk':>7s} {'tail':>7s} {'prototype':>9s} {'warm-up':>9s} "
        f"{'a draw':>7s} {'diverge':>8s}"
    )
    for name in given.target or TARGETS:
        dtype = jnp.float64 if given.float64 else jnp.float32
        compare(name, given.budget, given.evaluations, dtype, given.seeds)


if __name__ == "__main__":
    main()
