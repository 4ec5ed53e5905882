"""Speed of whole runs, as ratios to a scan written by hand and to BlackJAX's loop.

Not all of these bars are met yet, so that `make bench` leaves them out: run this file by itself.
"""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, interleaved_seconds, line, ratio
from drifts import double_well

import levymc

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


def double_well_runs() -> list[Bar]:
    starts = jnp.full(CHAINS, -3.6, jnp.float32)
    times = interleaved_seconds(runs(double_well, ETA, starts, STEPS), rounds=9)
    return [
        Bar("ula / scan by hand, double well", ratio(times, "ula", "hand"), "×", 1.1),
        Bar("ula / BlackJAX's loop", ratio(times, "ula", "blackjax"), "×", 1.0),
        Bar("fla / ula", ratio(times, "fla", "ula"), "×", 1.3),
        Bar("fla, tamed / ula", ratio(times, "fla, tamed", "ula"), "×", 1.3),
    ]


def logistic_runs() -> list[Bar]:
    """10 000 rows and 100 coefficients, four chains."""
    key_rows, key_labels = jax.random.split(jax.random.key(1))
    rows = jax.random.normal(key_rows, (10_000, 100), jnp.float32)
    labels = jax.random.bernoulli(key_labels, 0.5, (10_000,)).astype(jnp.float32)

    def logdensity(w):
        scores = rows @ w
        return jnp.sum(labels * scores - jax.nn.softplus(scores)) - jnp.sum(w * w) / 2

    starts = jnp.zeros((4, 100), jnp.float32)
    times = interleaved_seconds(runs(logdensity, 1e-5, starts, 600), rounds=5)
    return [
        Bar("ula / scan by hand, logistic regression", ratio(times, "ula", "hand"), "×", 1.1),
        Bar("fla / ula, logistic regression", ratio(times, "fla", "ula"), "×", 1.1),
        Bar("fla, tamed / ula, logistic regression", ratio(times, "fla, tamed", "ula"), "×", 1.1),
    ]


def sampler_speed() -> list[Bar]:
    """In JAX's default precision, as BlackJAX draws its noise in the widest there is."""
    with jax.enable_x64(False):
        return [*double_well_runs(), *logistic_runs()]


if __name__ == "__main__":
    print(*(line(bar) for bar in sampler_speed()), sep="\n")
