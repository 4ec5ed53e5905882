"""Speed of whole runs, as ratios to a scan written by hand and to BlackJAX's loop."""

import contextlib
import io
import itertools
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, interleaved_seconds, ratio, show
from drifts import double_well

import levymc
from levymc.run import _progress

CHAINS, STEPS, ETA = 1024, 4000, 1e-3


def by_hand(logdensity, eta, key, starts, num_steps):
    """ULA as a user would write it: chains under vmap, a key for each step."""

    def chain(key, start):
        def step(position, step_key):
            noise = jax.random.normal(step_key, position.shape, position.dtype)
            moved = position + eta * jax.grad(logdensity)(position) + (2 * eta) ** 0.5 * noise
            return moved, moved

        return jax.lax.scan(step, start, jax.random.split(key, num_steps))[1]

    return jax.vmap(chain)(jax.random.split(key, len(starts)), starts)


def by_blackjax(logdensity, eta, key, starts, num_steps):
    """The inference loop of BlackJAX's documentation, around its Langevin step."""
    sgld = blackjax.sgld(lambda position, _: jax.grad(logdensity)(position))

    def one_step(positions, step_key):
        keys = jax.random.split(step_key, len(starts))
        moved = jax.vmap(lambda k, x: sgld.step(k, x, 0.0, eta))(keys, positions)
        return moved, moved

    return jax.lax.scan(one_step, starts, jax.random.split(key, num_steps))[1]


def runs(logdensity, eta, starts, num_steps):
    """The same chains by each road, to be timed."""
    key = jax.random.key(0)
    hand = jax.jit(lambda: by_hand(logdensity, eta, key, starts, num_steps))
    peer = jax.jit(lambda: by_blackjax(logdensity, eta, key, starts, num_steps))
    algorithms = {
        "ula": levymc.ula(logdensity, eta),
        "ula, unchecked": levymc.ula(logdensity, eta, checks_support=False),
        "fla": levymc.fla(logdensity, eta, 1.7, integrator=levymc.integrators.euler()),
        "fla, tamed": levymc.fla(logdensity, eta, 1.7),
    }
    ours = {
        name: lambda algorithm=algorithm: (
            levymc.sample(algorithm, key, starts, num_steps, progress=False).positions
        )
        for name, algorithm in algorithms.items()
    }
    return {"hand": lambda: np.asarray(hand()), "blackjax": lambda: np.asarray(peer())} | ours


def well_starts():
    return jnp.full(CHAINS, -3.6, jnp.float32)


def double_well_runs() -> list[Bar]:
    starts = well_starts()
    times = interleaved_seconds(runs(double_well, ETA, starts, STEPS), rounds=9)
    return [
        Bar("ula / scan by hand, double well", ratio(times, "ula", "hand"), "×", 1.1),
        Bar("the same without a look at the support", ratio(times, "ula, unchecked", "hand"), "×"),
        Bar("ula / BlackJAX's loop", ratio(times, "ula", "blackjax"), "×", 1.0),
        Bar("fla / ula", ratio(times, "fla", "ula"), "×", 1.3),
        Bar("fla, tamed / ula", ratio(times, "fla, tamed", "ula"), "×", 1.3),
    ]


def logistic_regression():
    """10 000 rows and 100 coefficients."""
    key_rows, key_labels = jax.random.split(jax.random.key(1))
    rows = jax.random.normal(key_rows, (10_000, 100), jnp.float32)
    labels = jax.random.bernoulli(key_labels, 0.5, (10_000,)).astype(jnp.float32)

    def logdensity(w):
        scores = rows @ w
        return jnp.sum(labels * scores - jax.nn.softplus(scores)) - jnp.sum(w * w) / 2

    return logdensity


def logistic_runs() -> list[Bar]:
    """Four chains."""
    starts = jnp.zeros((4, 100), jnp.float32)
    times = interleaved_seconds(runs(logistic_regression(), 1e-5, starts, 600), rounds=5)
    return [
        Bar("ula / scan by hand, logistic regression", ratio(times, "ula", "hand"), "×", 1.1),
        Bar("the same without a look at the support", ratio(times, "ula, unchecked", "hand"), "×"),
        Bar("fla / ula, logistic regression", ratio(times, "fla", "ula"), "×", 1.1),
        Bar("fla, tamed / ula, logistic regression", ratio(times, "fla, tamed", "ula"), "×", 1.1),
    ]


def stored(algorithm, starts, num_steps, thin) -> dict[str, list[float]]:
    """The same run in memory and into a store."""
    key, number = jax.random.key(0), itertools.count()

    def run(**options):
        return levymc.sample(
            algorithm, key, starts, num_steps, thin=thin, progress=False, **options
        ).positions

    with tempfile.TemporaryDirectory() as folder:
        roads = {"memory": run, "store": lambda: run(store=Path(folder) / str(next(number)))}
        return interleaved_seconds(roads, rounds=5)


def storage() -> Iterator[Bar]:
    """Runs of some seconds: a store costs about 15 ms for each of its twenty or more chunks.

    Steps of 25 ns, of which every tenth is kept, or every one; and steps of half a millisecond.
    """
    well = levymc.ula(double_well, ETA)
    tenth = stored(well, well_starts(), 25 * STEPS, 10)
    yield Bar("store / memory, double well, thin = 10", ratio(tenth, "store", "memory"), "×", 1.15)
    logistic = levymc.ula(logistic_regression(), 1e-5)
    slow = stored(logistic, jnp.zeros((4, 100), jnp.float32), 10_000, 1)
    yield Bar("store / memory, logistic regression", ratio(slow, "store", "memory"), "×", 1.15)
    every = stored(well, well_starts(), 10 * STEPS, 1)
    yield Bar("store / memory, double well, 9 bytes in 25 ns", ratio(every, "store", "memory"), "×")


def progress_bar_cost() -> list[Bar]:
    """The share of one core that the bar takes, with a chunk every 50 ms.

    Whole runs vary by ten times as much from one to the next as the bar costs.
    """
    os.environ["FORCE_COLOR"] = "1"  # so that the bar is drawn although nobody looks
    begin, busy = time.perf_counter(), time.process_time()
    shown = _progress.progress_bar(100, CHAINS)
    with contextlib.redirect_stderr(io.StringIO()), shown as report:
        for _ in range(100):
            time.sleep(0.05)
            report(1, 1)
    share = (time.process_time() - busy) / (time.perf_counter() - begin)
    return [Bar("progress bar, of a core's time", share, "", 0.02)]


def sampler_speed() -> Iterator[Bar]:
    """In JAX's default precision, as BlackJAX draws its noise in the widest there is."""
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FLA with Euler's step explodes here: another bar says so
        for measure in (double_well_runs, logistic_runs, storage, progress_bar_cost):
            yield from measure()


if __name__ == "__main__":
    show(sampler_speed())
