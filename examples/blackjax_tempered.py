"""A posterior with many modes, by BlackJAX and levymc together: the frequency of a sparse signal.

NUTS from one start stays in one mode.  BlackJAX's tempered SMC with our Lévy walk as its kernel
finds them all, and so does our tempering with BlackJAX's NUTS as its kernel.  Given the frequency
the amplitudes can be integrated out, so that the picture can show the exact answer.

    python examples/blackjax_tempered.py [--out blackjax_tempered.png] [--small]
"""

import argparse
from pathlib import Path

import blackjax
import blackjax.smc.resampling
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import levymc

NOISE, LOG_CENTRE, LOG_WIDTH = 0.7, -0.7, 0.7
TIMES = np.sort(np.random.default_rng(2).uniform(0, 6, 10))
DATA = np.sin(2 * np.pi * 0.6 * TIMES) + NOISE * np.random.default_rng(3).standard_normal(10)
FREQUENCIES = np.linspace(0.002, 10, 10_000)


def logprior(x):
    """Of the logarithm of the frequency and two amplitudes, with its constant."""
    scaled = (x - jnp.array([LOG_CENTRE, 0.0, 0.0])) / jnp.array([LOG_WIDTH, 1.0, 1.0])
    return -jnp.sum(scaled**2) / 2 - np.log(LOG_WIDTH) - 1.5 * np.log(2 * np.pi)


def loglikelihood(x):
    angle = 2 * jnp.pi * jnp.exp(x[0]) * TIMES
    signal = x[1] * jnp.sin(angle) + x[2] * jnp.cos(angle)
    return -jnp.sum((DATA - signal) ** 2) / (2 * NOISE**2)


def logposterior(x):
    return logprior(x) + loglikelihood(x)


class Prior:
    """The prior as the reference of a tempered ladder: a density and a way to draw."""

    def logdensity(self, x):
        return logprior(x)

    def sample(self, key):
        widths, centres = jnp.array([LOG_WIDTH, 1.0, 1.0]), jnp.array([LOG_CENTRE, 0.0, 0.0])
        return centres + widths * jax.random.normal(key, (3,))


def nuts(logdensity_fn):
    """With a metric for modes that are some hundredths wide in the logarithm of the frequency."""
    metric = jnp.array([0.002, 1.0, 1.0])
    return blackjax.nuts(logdensity_fn, 0.3, metric, max_num_doublings=4)


def by_nuts_alone(key, num_draws):
    result = levymc.sample(
        nuts(logposterior), key, jnp.array([[0.3, 0.0, 0.0]]), num_draws, progress=False
    )
    return result.positions[..., 0]


def by_tempered_smc(key, num_particles):
    """BlackJAX's SMC; the walk's coordinates jump as far as the prior is wide."""
    walk = levymc.interop.blackjax.sampling_api(levymc.levy_walk, alpha=1.2)
    smc = blackjax.adaptive_tempered_smc(
        logprior,
        loglikelihood,
        walk.build_kernel(),
        walk.init,
        {"scale": jnp.array([0.3])},
        blackjax.smc.resampling.systematic,
        target_ess=0.7,
        num_mcmc_steps=20,
    )
    key_start, key_steps = jax.random.split(key)
    state = smc.init(jax.vmap(Prior().sample)(jax.random.split(key_start, num_particles)))
    step = jax.jit(smc.step)
    while state.tempering_param < 1:
        key_steps, key_step = jax.random.split(key_steps)
        state, _ = step(key_step, state)
    return state.particles[:, 0]


def by_tempering(key, num_draws):
    """Our ladder from the prior to the posterior, its rungs moved by NUTS."""
    betas = np.geomspace(0.06, 1.0, 7)
    algorithm = levymc.adapt.tempered(logposterior, Prior(), betas, kernel=nuts)
    starts = jnp.tile(jnp.array([0.3, 0.0, 0.0]), (4, 1))
    result = levymc.sample(
        algorithm, key, starts, num_draws, burn_in=num_draws // 4, progress=False
    )
    return result.positions[..., 0]


def exact():
    """The density of the frequency on a grid: given it, the data are normal."""
    angles = 2 * np.pi * FREQUENCIES[:, None] * TIMES
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    covariances = waves @ np.swapaxes(waves, 1, 2) + NOISE**2 * np.eye(len(TIMES))
    fits = np.einsum("i,kij,j->k", DATA, np.linalg.inv(covariances), DATA)
    logs = np.log(FREQUENCIES)
    logdensity = -fits / 2 - np.linalg.slogdet(covariances)[1] / 2
    logdensity += -(((logs - LOG_CENTRE) / LOG_WIDTH) ** 2) / 2 - logs  # the last from d log f
    density = np.exp(logdensity - logdensity.max())
    return density / np.sum(density * np.gradient(FREQUENCIES))


def draw(found, out):
    figure, axes = plt.subplots(
        len(found), 1, figsize=(8, 7), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (name, frequencies) in zip(axes, found.items(), strict=True):
        bins = np.linspace(0, 10, 401)
        axis.hist(frequencies, bins=bins, density=True, color="C0", alpha=0.5, label="draws")
        axis.plot(FREQUENCIES, exact(), "k", lw=0.8, label="exact")
        axis.set(xlim=(0, 4), ylim=(0, 1.6 * exact().max()), ylabel="density")
        axis.set_title(name[0].upper() + name[1:], loc="left")
    axes[0].legend(loc="upper right")
    axes[-1].set(xlabel="frequency")
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("blackjax_tempered.png"))
    parser.add_argument("--small", action="store_true", help="few draws, for a quick look")
    options = parser.parse_args()
    num_draws, num_particles = (40, 100) if options.small else (2000, 4000)

    keys = jax.random.split(jax.random.key(0), 3)
    logs = {
        "NUTS from one start": by_nuts_alone(keys[0], num_draws),
        "BlackJAX's SMC, moved by a Lévy walk": by_tempered_smc(keys[1], num_particles),
        "our tempering, moved by BlackJAX's NUTS": by_tempering(keys[2], num_draws),
    }
    found = {name: np.exp(np.ravel(values)) for name, values in logs.items()}
    low = FREQUENCIES < 0.75
    print(f"exact: P(f < 0.75) = {np.sum((exact() * np.gradient(FREQUENCIES))[low]):.3f}")
    for name, frequencies in found.items():
        print(f"{name}: {np.mean(frequencies < 0.75):.3f}")
    draw(found, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
