"""The engine's loop over steps against others: BlackJAX's, and a scan written by hand.

    taskset -c 0 python benchmarks/engine.py

prints ratios of processor time, all made in one run, the roads in turn: on a busy machine, and with
one core for it, that is what repeats.  Every road makes the same number of steps of as many chains
and brings all positions to the host; `levymc.sample` brings what it says of each step, too.
"""

import os
import time
import warnings
from collections.abc import Iterator

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, interleaved_seconds, ratio, show
from drifts import double_well
from samplers import ETA, by_blackjax

import levymc

STEPS = {4: 100_000, 64: 40_000, 1024: 8_000}  # by the number of chains: a tenth of a second
ALGORITHMS = {
    "ula": levymc.ula(double_well, ETA),
    "fla": levymc.fla(double_well, ETA, 1.7),
    "mafla": levymc.mafla(double_well, 0.1),
    "levy_walk": levymc.levy_walk(double_well, 1.0),
}


def in_blackjax(algorithm, key, starts, num_steps):
    """Our steps in BlackJAX's loop."""

    def chain(chain_key, start):
        return blackjax.util.run_inference_algorithm(
            chain_key,
            algorithm,
            num_steps,
            initial_state=algorithm.init(start),
            transform=lambda state, _: state.position,
        )[1]

    return jax.vmap(chain)(jax.random.split(key, len(starts)), starts)


def in_scan(algorithm, key, starts, num_steps):
    """Our steps in a scan as a user would write it, chains side by side."""

    def step(states, step_key):
        keys = jax.random.split(step_key, len(starts))
        moved, _ = jax.vmap(algorithm.step)(keys, states)
        return moved, moved.position

    states = jax.vmap(algorithm.init)(starts)
    return jax.lax.scan(step, states, jax.random.split(key, num_steps))[1]


def roads(algorithm, num_chains: int):
    """The same chains by each road, to be timed; the peers' compiled as one program."""
    key, starts = jax.random.key(0), jnp.full(num_chains, -3.6, jnp.float32)
    num_steps = STEPS[num_chains]

    def compiled(run, first):
        program = jax.jit(lambda key, starts: run(first, key, starts, num_steps))
        return lambda: np.asarray(program(key, starts))

    def with_blackjax_step(logdensity, key, starts, num_steps):
        return by_blackjax(logdensity, ETA, key, starts, num_steps)

    def ours():
        return levymc.sample(algorithm, key, starts, num_steps, progress=False).positions

    found = {
        "ours": ours,
        "blackjax": compiled(in_blackjax, algorithm),
        "scan": compiled(in_scan, algorithm),
    }
    if algorithm.name == "ula":
        found["blackjax, its step"] = compiled(with_blackjax_step, double_well)
    return found


def loop_bars(name: str, num_chains: int, rounds: int) -> list[Bar]:
    times = interleaved_seconds(roads(ALGORITHMS[name], num_chains), rounds, time.process_time)
    subject = f"{name}, {num_chains} chains"
    bars = [
        Bar(f"{subject} / BlackJAX's loop", ratio(times, "ours", "blackjax"), "×", 1.0),
        Bar(f"{subject} / scan by hand", ratio(times, "ours", "scan"), "×", 1.0),
    ]
    if name == "ula":  # which does not look at the support
        peer = ratio(times, "ours", "blackjax, its step")
        bars.append(Bar(f"{subject} / BlackJAX's step, scanned", peer, "×", 1.0))
    return bars


def loops(rounds: int = 5) -> Iterator[Bar]:
    """In JAX's default precision, as BlackJAX draws its noise in the widest there is."""
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Euler's steps may leave the finite numbers here
        for name in ALGORITHMS:
            for chains in STEPS:
                yield from loop_bars(name, chains, rounds)


if __name__ == "__main__":
    print(f"jax {jax.__version__}, {len(os.sched_getaffinity(0))} core(s)", flush=True)
    show(loops())
