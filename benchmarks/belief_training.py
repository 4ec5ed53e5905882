"""The test likelihood of a belief network of MNIST, after the same time by several methods.

All let their step or rate fall linearly to zero: as the noise goes, too, a sampler ends as an
optimiser does, near a mode, and is compared with wake-sleep as such.  A constant step, which leaves
a draw of about the posterior, ended 6 nats lower than one that fell to a tenth (SGLD, 4.47e-5,
15 s, cold starts of the hidden units).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sghmc
import wake_sleep
from belief_peers import BATCH_SIZE, NUM_HIDDEN
from factorization import one_core
from timed import run_for

import levymc

CHUNK = 20
TEST_IMAGES, TEMPERATURES = 1000, 1000


def fractional_langevin(
    images: np.ndarray, key: Any, *, seconds: float, alpha: float, step_size: float, sweeps: int = 5
) -> dict:
    """SG-FLA, or SGLD at α = 2.

    The step falls linearly to zero, and the hidden units of an image begin where they ended when it
    was last seen.
    """
    model = levymc.models.sbn(images.shape[1], NUM_HIDDEN, sweeps=sweeps)
    data = {"images": jnp.asarray(images), "index": jnp.arange(len(images))}

    def algorithm(size: Any) -> levymc.algorithms.SamplingAlgorithm:
        steps = levymc.sgfla(model.grad_estimator(len(images)), size, alpha)
        return levymc.augmented(steps, model.latents, model.memory(len(images)))

    @jax.jit
    def chunk(state, key, size, data):
        minibatches = levymc.batches(data, BATCH_SIZE)

        def step(state, key):
            key_batch, key_step = jax.random.split(key)
            return algorithm(size).step(key_step, state, minibatches.draw(key_batch))[0], None

        return jax.lax.scan(step, state, jax.random.split(key, CHUNK))[0]

    rates = levymc.models.pixel_rates(images)
    key_start, key_run = jax.random.split(key)
    begin = model.init(key_start, visible_bias=jax.scipy.special.logit(rates), dtype=jnp.float32)
    return run_for(
        seconds,
        lambda state, key, done: chunk(state, key, step_size * (1 - done), data),
        algorithm(step_size).init(begin),
        key_run,
    ).position


METHODS: dict[str, Callable[..., dict]] = {
    "SG-FLA, α = 1.6": partial(fractional_langevin, alpha=1.6, step_size=4.47e-5),
    "SGLD": partial(fractional_langevin, alpha=2.0, step_size=4.47e-5),
    "SGHMC (BlackJAX)": sghmc.train,
    "reweighted wake-sleep": wake_sleep.train,
}


def loglikelihood(position: dict, images: np.ndarray, rates: Any) -> float:
    """Nats an image, by annealing."""
    model = levymc.models.sbn(images.shape[1], NUM_HIDDEN)
    return levymc.models.annealed_loglikelihood(
        model, jax.random.key(1), position, images, base_rate=rates, num_temperatures=TEMPERATURES
    ).mean


def after(seconds: float):
    """A line for every method, when it is done; every tenth test image, in float32."""
    mnist = levymc_lab.data.load("mnist")
    images = levymc_lab.data.binarize(mnist.train_images, seed=0)
    test = levymc_lab.data.binarize(mnist.test_images, seed=1)
    some = test[:: len(test) // TEST_IMAGES]
    rates = levymc.models.pixel_rates(images)
    with jax.enable_x64(False), one_core():
        for name, train in METHODS.items():
            position = train(images, jax.random.key(0), seconds=seconds)
            yield name, loglikelihood(position, some, rates)
