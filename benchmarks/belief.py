"""Speed of the belief network, as ratios to what users of JAX and PyTorch would write.

With `--train`, the test likelihood on MNIST after the same time of one core, too; MNIST has to be
in the cache (`levymc data import mnist --from FOLDER`).  With `--against PATH`, an iteration
against that of the checkout there, instead.
"""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import against
import belief_training
import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, show
from belief_peers import (
    BATCH_SIZE,
    ETA,
    NUM_HIDDEN,
    NUM_VISIBLE,
    SWEEPS,
    Iterate,
    Position,
    peers,
    start,
    synthetic_images,
)
from factorization import one_core

import levymc

# Ours makes so many that the 15 ms which a call of `sample` takes by itself do not count.
ITERATIONS = {"ours": 32, "peer": 3}
WARM_UP = 200
TEST_IMAGES, TEMPERATURES = 1000, 1000

Walk = Callable[[int], Position]


def walk(images: np.ndarray, begin: Position, alpha: float, num_threads: int) -> Walk:
    model = levymc.models.sbn(NUM_VISIBLE, NUM_HIDDEN, sweeps=SWEEPS, num_threads=num_threads)
    steps = levymc.sgfla(model.grad_estimator(len(images)), ETA, alpha)
    algorithm = levymc.augmented(steps, model.latents)
    minibatches = levymc.batches({"images": images}, BATCH_SIZE)
    positions = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], begin)

    def run(num_iterations: int) -> Position:
        draws = levymc.sample(
            algorithm, jax.random.key(0), positions, num_iterations, thin=num_iterations,
            minibatches=minibatches, progress=False,
        ).positions  # fmt: skip
        return {name: np.asarray(leaf[0, -1]) for name, leaf in draws.items()}

    return run


def ours(images: np.ndarray, begin: Position, alpha: float, num_threads: int) -> Iterate:
    run = walk(images, begin, alpha, num_threads)

    def iterate(num_iterations: int) -> float:
        started = time.perf_counter()
        run(num_iterations)
        return (time.perf_counter() - started) / num_iterations

    return iterate


def warm(images: np.ndarray) -> Position:
    """Where a run is after its first iterations, as the price of a sweep depends on the weights."""
    return walk(images, start(), 2.0, 1)(WARM_UP)


def best_times(contenders: dict[str, Iterate], rounds: int) -> dict[str, float]:
    """Seconds per iteration: all contenders once per round, after one round that does not count."""
    best = dict.fromkeys(contenders, np.inf)
    for number in range(rounds + 1):
        for name, iterate in contenders.items():
            seconds = iterate(ITERATIONS["ours" if name.startswith("SG-FLA") else "peer"])
            if number:
                best[name] = min(best[name], seconds)
    return best


def speed(num_threads: int, rounds: int = 5) -> list[Bar]:
    images = synthetic_images()
    begin = warm(images)
    where = _threads(num_threads)
    alphas = {f"SG-FLA, α = {alpha:g}": alpha for alpha in (1.6, 2.0)}
    samplers = {name: ours(images, begin, alpha, num_threads) for name, alpha in alphas.items()}
    rivals = peers(images, begin, num_threads)
    with one_core() if num_threads == 1 else contextlib.nullcontext():
        best = best_times({**samplers, **rivals}, rounds)
    rival = min(rivals, key=best.__getitem__)
    return [
        *(Bar(f"{rival} / {a}, {where}", best[rival] / best[a], "×", 5, True) for a in samplers),
        *(Bar(f"  best of {name}, {where}", 1e3 * best[name], "ms") for name in best),
        *(Bar(f"  5000 such iterations, {a}, {where}", 5000 * best[a], "s") for a in samplers),
    ]


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def annealing(num_threads: int, rounds: int = 2) -> list[Bar]:
    """Of weights that were trained for a moment only."""
    images = synthetic_images()
    position = jax.tree.map(jnp.asarray, warm(images))
    rates = levymc.models.pixel_rates(images)
    model = levymc.models.sbn(NUM_VISIBLE, NUM_HIDDEN, num_threads=num_threads)

    def seconds(num_temperatures: int) -> float:
        started = time.perf_counter()
        estimate = levymc.models.annealed_loglikelihood(
            model, jax.random.key(0), position, images[:TEST_IMAGES], base_rate=rates,
            num_temperatures=num_temperatures,
        )  # fmt: skip
        jax.block_until_ready(estimate.loglikelihoods)
        return time.perf_counter() - started

    with one_core() if num_threads == 1 else contextlib.nullcontext():
        best = min(seconds(TEMPERATURES) for _ in range(rounds))
    subject = f"AIS, {TEST_IMAGES} images, {TEMPERATURES} temperatures, {_threads(num_threads)}"
    return [Bar(subject, best, "s")]


def belief_network() -> Iterator[Bar]:
    """In JAX's default precision, as all use single."""
    with jax.enable_x64(False):
        for measure in (speed, annealing):
            for threads in (1, 2):
                yield from measure(threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=float, nargs="?", const=92.0, metavar="SECONDS")
    parser.add_argument("--against", type=Path, metavar="PATH")
    parser.add_argument(against.SERVE, type=float, metavar="ALPHA")
    arguments = parser.parse_args()
    if arguments.serve:
        with jax.enable_x64(False):
            images = synthetic_images()
            run = walk(images, warm(images), arguments.serve, 1)
            against.serve(lambda: run(ITERATIONS["ours"]))
        return
    if arguments.against:
        for alpha in ("1.6", "2.0"):
            bars = against.compare(__file__, alpha, f"SG-FLA, α = {alpha}", arguments.against)
            show(bars)
        return
    if arguments.train is None:
        show(belief_network())
        return
    for name, nats in belief_training.after(arguments.train):
        print(f"  {name}, {arguments.train:g} s: {nats:.2f} nats", flush=True)


if __name__ == "__main__":
    main()
