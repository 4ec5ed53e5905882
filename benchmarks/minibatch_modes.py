"""Posteriors from minibatches: four modes whose weights are known, and a small Bayesian network.

**Four modes.**  10⁵ data y_i in the plane, y_ij ~ N(|θ_j|, σ²), with σ such that |θ_j| is known to
0.8: the likelihood has four modes of equal weight, at (±4, ±4), ten widths apart and twelve nats
deep.  The prior weighs them .4, .3, .2, .1, by log p(θ) = a t₁ + b t₂ + c t₁t₂ - |θ|²/200 with
t = tanh θ.  A minibatch is one of a hundred blocks of 1000 data, drawn uniformly.  The likelihood
needs of a block its mean alone, and that is what is stored: so the truth is a quadrature in the
plane, and the table takes a minute.  What a sampler would have to look at is counted all the same,
and is alike for all: 1000 data by a step, 2·10⁵ by a jump.

All chains start in the lightest mode; five seeds of 16 chains each.  Weights: total variation of
those of the modes.  Widths: the distance of Kolmogorov and Smirnov of |θ_j| to its law, the larger
of the two.  Draws count by their step sizes.

What was chosen, by the sum of both errors for another key (`--search` prints all of it, in some
minutes): the cyclical ones and SGHMC have the best of 12, 9 and 24 settings (first step and period;
trajectory, friction and step).  The step that the others share is the best of four for SGLD with
jumps; that of the others is searched, too, so that one sees what they could have had.  The scale
of the jumps, and their distance, were not searched.

**A small network.**  One hidden layer of 16 units on 1000 synthetic data, minibatches of 100: the
log predictive density of held-out data, the share of them in the 90 % interval, and the spread of
the draws where there were no data, for noise of several α at two steps.
"""

import functools
import itertools
import math
import sys
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc import schedules

NUM_DATA, BATCH_SIZE = 100_000, 1000
CENTER, WIDTH = 4.0, 0.8
SIGMA = WIDTH * math.sqrt(NUM_DATA)
WEIGHTS = {(-1, -1): 0.4, (1, -1): 0.3, (-1, 1): 0.2, (1, 1): 0.1}  # by the signs of θ
SEEDS, CHAINS = 5, 16
STEPS, BURN_IN = 90_000, 30_000  # 900 passes over the data, of which a third is dropped
STEP_SIZE, HOT_STEP = 0.002, 0.008
EVERY = 100


def tilts() -> np.ndarray:
    """a, b, c of the prior."""
    signs = np.array(list(WEIGHTS))
    columns = np.stack([signs[:, 0], signs[:, 1], signs.prod(axis=1)], axis=1)
    return columns.T @ np.log(list(WEIGHTS.values())) / 4


def logprior(theta: Any) -> Any:
    t, (a, b, c) = jnp.tanh(theta), tilts()
    return a * t[0] + b * t[1] + c * t[0] * t[1] - jnp.sum(theta**2) / 200


def loglikelihood(theta: Any, mean: Any) -> Any:
    """Of a block of 1000 data with that mean.

    Without -y²/2σ², a constant of 10⁵ in the sum, beside which float32 would lose digits.
    """
    size = jnp.abs(theta)
    return BATCH_SIZE * jnp.sum((mean - size / 2) * size) / SIGMA**2


def block_means() -> Any:
    """Of data that all together have the mean 4, not only nearly."""
    noise = np.random.default_rng(20).normal(size=(NUM_DATA, 2))
    data = CENTER + SIGMA * (noise - noise.mean(axis=0))
    return jnp.asarray(data.reshape(-1, BATCH_SIZE, 2).mean(axis=1), jnp.float32)


BLOCKS = block_means()
ESTIMATOR = levymc.grad_estimator(logprior, loglikelihood, len(BLOCKS))


def all_data(theta: Any) -> Any:
    return ESTIMATOR.logdensity(theta, BLOCKS)


# The truth, and errors ------------------------------------------------------------------------


class Truth(NamedTuple):
    """Weights of the modes, in the order of WEIGHTS, and the distribution functions of |θ_j|."""

    weights: np.ndarray
    grid: np.ndarray
    levels: np.ndarray


def quadrature() -> Truth:
    """On a grid of [-12, 12]², ten widths beyond the modes; twice as fine changes no digit."""
    line = np.linspace(-12, 12, 2402)  # an even number, so that zero is none of them
    (a, b, c), t, size = tilts(), np.tanh(line), np.abs(line)
    means, precision = np.asarray(BLOCKS, np.float64).mean(axis=0), NUM_DATA / SIGMA**2
    own = [precision * (mean - size / 2) * size - line**2 / 200 for mean in means]
    logs = (own[0] + a * t)[:, None] + (own[1] + b * t)[None, :] + c * t[:, None] * t[None, :]
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    is_positive = line > 0
    weights = [
        mass[np.ix_(is_positive == (first > 0), is_positive == (second > 0))].sum()
        for first, second in WEIGHTS
    ]
    marginals = [mass.sum(axis=1), mass.sum(axis=0)]
    levels = [np.cumsum(one[is_positive] + one[~is_positive][::-1]) for one in marginals]
    return Truth(np.array(weights), line[is_positive] + (line[1] - line[0]) / 2, np.stack(levels))


def weight_error(draws: np.ndarray, weights: np.ndarray, truth: Truth) -> float:
    share = weights / weights.sum()
    found = [np.sum(share[np.all(np.sign(draws) == signs, axis=-1)]) for signs in WEIGHTS]
    return float(np.abs(np.array(found) - truth.weights).sum() / 2)


def width_error(draws: np.ndarray, weights: np.ndarray, truth: Truth) -> float:
    worst = 0.0
    for axis in (0, 1):
        sizes = np.abs(draws[..., axis]).ravel()
        order = np.argsort(sizes)
        reached = np.cumsum(weights.ravel()[order], dtype=np.float64)
        exact = np.interp(sizes[order], truth.grid, truth.levels[axis])
        worst = max(worst, float(np.max(np.abs(reached / reached[-1] - exact))))
    return worst


# The samplers ---------------------------------------------------------------------------------


class Case(NamedTuple):
    """A sampler, the blocks that a step of it looks at, and which steps are kept."""

    algorithm: Any
    cost: float = 1.0
    thin: Any = 20


def cyclical(make: Any, first: float, period: int) -> Case:
    ends = levymc.marks.cycle_ends(period, 0.2, spacing=4)
    return Case(make(schedules.cyclical(first, period)), thin=ends)


def hamiltonian(num_gradients: int, friction: float, step_size: float) -> Case:
    """BlackJAX's: its trajectory keeps one minibatch, and looks at it at every gradient."""
    sampler = blackjax.sghmc(ESTIMATOR, num_gradients, friction)
    completed = levymc.interop.blackjax.stochastic_gradient(sampler, step_size)
    return Case(completed, cost=num_gradients, thin=5)


def with_jumps(algorithm: Any, **options: Any) -> Case:
    jumps = levymc.jumping(algorithm, all_data, EVERY, scale=CENTER, **options)
    return Case(jumps, cost=1 + 2 * len(BLOCKS) / EVERY, thin=10)


def sgld(step_size: Any) -> Any:
    return levymc.sgld(ESTIMATOR, step_size)


def sgfla(step_size: Any) -> Any:
    return levymc.sgfla(ESTIMATOR, step_size, 1.5)


def cases() -> dict[str, Case]:
    return {
        "SGLD": Case(sgld(STEP_SIZE)),
        f"SGLD, η = {HOT_STEP}": Case(sgld(HOT_STEP)),
        "SG-FLA(1.5)": Case(sgfla(STEP_SIZE)),
        "cyclical SGLD, from 0.02": cyclical(sgld, 0.02, 3000),
        "cyclical SG-FLA(1.5), from 0.05": cyclical(sgfla, 0.05, 10_000),
        "SGHMC (BlackJAX), η = 0.1": hamiltonian(5, 0.5, 0.1),
        "SGLD with jumps": with_jumps(sgld(STEP_SIZE)),
        "SGLD with jumps, all coordinates": with_jumps(sgld(STEP_SIZE), coordinatewise=False),
        "SG-FLA(1.5) with jumps": with_jumps(sgfla(STEP_SIZE)),
    }


def run(case: Case, key: Any) -> levymc.Result:
    """All seeds, as chains side by side."""
    lightest = min(WEIGHTS, key=lambda signs: WEIGHTS[signs])
    starts = jnp.tile(CENTER * jnp.asarray(lightest, jnp.float32), (SEEDS * CHAINS, 1))
    burn_in, kept = (round(count / case.cost) for count in (BURN_IN, STEPS - BURN_IN))
    return levymc.sample(
        case.algorithm,
        key,
        starts,
        kept,
        burn_in=burn_in,
        thin=case.thin,
        minibatches=levymc.batches(BLOCKS, 1),
        progress=False,
    )


def errors(result: levymc.Result, truth: Truth, chains: int = CHAINS) -> np.ndarray:
    """Those of weights and of widths, for each seed, or of so many chains together."""
    parts = [slice(first, first + chains) for first in range(0, SEEDS * CHAINS, chains)]
    return np.array(
        [
            [measure(result.positions[part], result.weights[part], truth) for part in parts]
            for measure in (weight_error, width_error)
        ]
    )


def four_modes() -> None:
    truth, line = quadrature(), "  {:34}{:>20}{:>7}{:>20}{:>7}{:>7}"
    print(f"Four modes of weights {truth.weights.round(3)}, N = {NUM_DATA}; η = {STEP_SIZE}")
    print("  Median (least to most) of five seeds; all: of these together; jumps accepted.")
    print(line.format("", "weights, TV", "all", "widths, KS", "all", "jumps"))
    for name, case in cases().items():
        result = run(case, jax.random.key(0))
        cells = [
            f"{np.median(one):.3f} ({one.min():.3f}–{one.max():.3f})"
            for one in errors(result, truth)
        ]
        whole = [f"{one:.3f}" for (one,) in errors(result, truth, SEEDS * CHAINS)]
        tried = result.info.jumps_tried
        jumps = "" if tried is None else f"{result.info.jumps_accepted.sum() / tried.sum():.0%}"
        print(line.format(name, cells[0], whole[0], cells[1], whole[1], jumps), flush=True)


def search() -> None:
    """The settings of those that have several to choose, best last."""
    truth, periods, sizes = quadrature(), (1000, 3000, 10_000), (0.001, 0.002, 0.004, 0.008)
    grids = {
        "SGLD": (lambda size: Case(sgld(size)), sizes),
        "SG-FLA(1.5)": (lambda size: Case(sgfla(size)), sizes),
        "SGLD with jumps": (lambda size: with_jumps(sgld(size)), sizes),
        "SG-FLA(1.5) with jumps": (lambda size: with_jumps(sgfla(size)), sizes),
        "cyclical SGLD": (functools.partial(cyclical, sgld), (0.02, 0.05, 0.1, 0.2), periods),
        "cyclical SG-FLA(1.5)": (functools.partial(cyclical, sgfla), (0.01, 0.02, 0.05), periods),
        "SGHMC": (hamiltonian, (5, 20), (0.01, 0.1, 0.5), (0.01, 0.03, 0.1, 0.2)),
    }
    for name, (make, *choices) in grids.items():
        found = []
        for chosen in itertools.product(*choices):
            result = run(make(*chosen), jax.random.key(77))
            found.append((*np.median(errors(result, truth), axis=1), chosen))
        for weights, widths, chosen in sorted(found, key=lambda one: -one[0] - one[1]):
            print(f"  {name:22} {chosen!s:20} {weights:.3f} {widths:.3f}", flush=True)


# A small network ------------------------------------------------------------------------------

UNITS, NETWORK_DATA, NETWORK_BATCH = 16, 1000, 100
NOISE = 0.3
NETWORK_STEP_SIZES, NETWORK_STEPS = (5e-6, 2e-5), 40_000
NETWORK_SEEDS, NETWORK_CHAINS = 3, 4


def predict(weights: Any, x: Any) -> Any:
    hidden = jnp.tanh(5 * (weights["slope"] * x + weights["shift"]))
    return jnp.sum(weights["out"] * hidden) + weights["bias"]


def network_prior(weights: Any) -> Any:
    return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights)) / 2


def network_likelihood(weights: Any, point: Any) -> Any:
    x, y = point
    return -((y - predict(weights, x)) ** 2) / (2 * NOISE**2)


def network_data(key: Any, count: int) -> Any:
    """x in [-1, -0.3] and [0.3, 1]; a curve with two bends."""
    key_place, key_side, key_noise = jax.random.split(key, 3)
    x = jax.random.uniform(key_place, (count,), jnp.float32, 0.3, 1.0)
    x = x * jnp.where(jax.random.bernoulli(key_side, shape=(count,)), 1.0, -1.0)
    noise = NOISE * jax.random.normal(key_noise, (count,), jnp.float32)
    return x, (jnp.sin(4 * x) + x**2 + noise).astype(jnp.float32)


def network_starts(key: Any, count: int) -> Any:
    shapes = {"slope": (UNITS,), "shift": (UNITS,), "out": (UNITS,), "bias": ()}
    keys = jax.random.split(key, len(shapes))
    return {
        name: 0.3 * jax.random.normal(one, (count, *shape), jnp.float32)
        for one, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def network_scores(draws: Any, test: Any) -> tuple[float, float, float]:
    """Log predictive density, coverage of the 90 % interval, spread in the gap."""
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)
    curves = jax.jit(jax.vmap(jax.vmap(predict, in_axes=(None, 0)), in_axes=(0, None)))
    x, y = test
    found = np.asarray(curves(flat, x), np.float64)
    density = np.mean(np.exp(-((np.asarray(y) - found) ** 2) / (2 * NOISE**2)), axis=0)
    noisy = found + NOISE * np.random.default_rng(1).normal(size=found.shape)
    low, high = np.quantile(noisy, [0.05, 0.95], axis=0)
    gap = np.asarray(curves(flat, jnp.zeros(1, jnp.float32)))
    return (
        float(np.mean(np.log(density))) - math.log(NOISE * math.sqrt(2 * math.pi)),
        float(np.mean((low < y) & (y < high))),
        float(np.subtract(*np.quantile(gap, [0.75, 0.25])) / 1.349),
    )


def network_run(estimator: Any, step_size: float, alpha: float, data: Any) -> levymc.Result:
    return levymc.sample(
        levymc.sgfla(estimator, step_size, alpha),
        jax.random.key(0),
        network_starts(jax.random.key(3), NETWORK_SEEDS * NETWORK_CHAINS),
        NETWORK_STEPS // 2,
        burn_in=NETWORK_STEPS // 2,
        thin=NETWORK_STEPS // 200,
        minibatches=levymc.batches(data, NETWORK_BATCH),
        progress=False,
    )


def network() -> None:
    data, test = (network_data(jax.random.key(one), NETWORK_DATA) for one in (1, 2))
    estimator = levymc.grad_estimator(network_prior, network_likelihood, NETWORK_DATA)
    best = -math.log(NOISE * math.sqrt(2 * math.pi * math.e))
    print(f"\nA network of {UNITS} hidden units; the curve itself would score {best:.3f}")
    heads = ("median of three seeds", "log predictive", "in 90 %", "spread in the gap")
    print("  {:26}{:>16}{:>10}{:>20}".format(*heads))
    for step_size in NETWORK_STEP_SIZES:
        for alpha in (2.0, 1.9, 1.7, 1.5):
            result = network_run(estimator, step_size, alpha, data)
            seeds = [
                jax.tree.map(lambda leaf, s=seed: leaf[s::NETWORK_SEEDS], result.positions)
                for seed in range(NETWORK_SEEDS)
            ]
            scores = np.median([network_scores(draws, test) for draws in seeds], axis=0)
            name = f"{'SGLD' if alpha == 2 else f'SG-FLA({alpha})'}, η = {step_size:.0e}"
            print(f"  {name:26}{scores[0]:16.3f}{scores[1]:10.1%}{scores[2]:20.3f}", flush=True)


if __name__ == "__main__":
    if "--search" in sys.argv:
        search()
    else:
        four_modes()
        network()
