"""Reweighted wake-sleep for a belief network of one hidden layer: the peer that optimises.

A recognition network q(h | v) = Bern(σ(vR + r)) proposes K hidden layers an image, of weights

    w_k ∝ p(v, h_k) / q(h_k | v),   Σ_k w_k = 1.

One of them is chosen by its weight, which leaves the expected gradients Σ_k w_k ∇log p(v, h_k) of
the model and Σ_k w_k ∇log q(h_k | v) of the recognition network as they are and saves most of their
price; Adam follows them, with a rate that falls to zero over the time given.

Bornschein and Bengio, Reweighted wake-sleep, 2015; the wake phases only.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from belief_peers import NUM_HIDDEN
from timed import run_for

import levymc

CHUNK = 50
# One seed, judged on 250 test images.  Of rates from 0.001 to 0.04, 0.01 and 0.02 were best after
# 15 s, half a nat apart (5 particles); of 5, 10 and 20 particles, 10 after 92 s (5 after 15).
# Batches of 50 or 200 images did no better.
LEARNING_RATE, NUM_PARTICLES, BATCH_SIZE = 1e-2, 10, 100
SMALLEST = 1e-30  # so that the logarithm of a probability that is zero in float32 stays finite


def start(key: Any, rates: Any) -> dict:
    """Model and recognition network."""
    key_model, key_recognition = jax.random.split(key)
    shape = len(rates), NUM_HIDDEN
    return {
        "model": {
            "weights": 0.1 * jax.random.normal(key_model, shape, jnp.float32),
            "hidden_bias": jnp.full(NUM_HIDDEN, -1.0, jnp.float32),
            "visible_bias": jax.scipy.special.logit(rates).astype(jnp.float32),
        },
        "recognition": {
            "weights": 0.03 * jax.random.normal(key_recognition, shape, jnp.float32),
            "hidden_bias": jnp.full(NUM_HIDDEN, -1.0, jnp.float32),
        },
    }


def wake(networks: dict, key: Any, images: Any) -> dict:
    """The gradient of the mean of -log p(v, h) - log q(h | v), at draws of approximately h | v."""
    model, recognition = networks["model"], networks["recognition"]
    logits = images @ recognition["weights"] + recognition["hidden_bias"]
    hidden, off = _posterior_draw(key, model, images, logits)
    residuals = (images - 1 + off) / len(images)
    surprise = (hidden - jax.nn.sigmoid(logits)) / len(images)
    ascent = {
        "model": {
            "weights": residuals.T @ hidden,
            "hidden_bias": jnp.mean(hidden, axis=0) - jax.nn.sigmoid(model["hidden_bias"]),
            "visible_bias": jnp.sum(residuals, axis=0),
        },
        "recognition": {
            "weights": images.T @ surprise,
            "hidden_bias": jnp.sum(surprise, axis=0),
        },
    }
    return jax.tree.map(jnp.negative, ascent)


def _posterior_draw(key: Any, model: dict, images: Any, logits: Any) -> tuple[Any, Any]:
    """One of the particles of each image, and the probabilities that its pixels are off."""
    key_particles, key_choice = jax.random.split(key)
    shape = (NUM_PARTICLES, *logits.shape)
    hidden = jax.random.bernoulli(key_particles, jax.nn.sigmoid(logits), shape).astype(jnp.float32)
    flat = hidden.reshape(-1, shape[-1])
    activation = (flat @ model["weights"].T).reshape(*shape[:2], -1) + model["visible_bias"]
    off = jax.nn.sigmoid(-activation)
    # log p(v, h) - log q(h | v), up to what the particles share: v·a = h·(vW) + v·c
    slopes = images @ model["weights"] + model["hidden_bias"] - logits
    absent = jnp.sum(jnp.log(jnp.maximum(off, SMALLEST)), axis=-1)
    logweights = jnp.sum(hidden * slopes, axis=-1) + absent
    chosen = jax.random.categorical(key_choice, logweights, axis=0)[None, :, None]
    return tuple(jnp.take_along_axis(each, chosen, axis=0)[0] for each in (hidden, off))


def train(images: np.ndarray, key: Any, *, seconds: float) -> dict:
    """The model's position after so many seconds."""
    optimizer = optax.inject_hyperparams(optax.adam)(LEARNING_RATE)
    data = jnp.asarray(images)

    @jax.jit
    def chunk(carry, key, rate, data):
        def step(carry, key):
            networks, state = carry
            key_batch, key_wake = jax.random.split(key)
            chosen = jax.random.randint(key_batch, (BATCH_SIZE,), 0, len(data))
            gradient = wake(networks, key_wake, data[chosen].astype(jnp.float32))
            updates, state = optimizer.update(gradient, state)
            return (optax.apply_updates(networks, updates), state), None

        networks, state = carry
        state = state._replace(hyperparams={**state.hyperparams, "learning_rate": rate})
        return jax.lax.scan(step, (networks, state), jax.random.split(key, CHUNK))[0]

    key_start, key_run = jax.random.split(key)
    networks = start(key_start, levymc.models.pixel_rates(images))
    (networks, _) = run_for(
        seconds,
        lambda carry, key, done: chunk(carry, key, LEARNING_RATE * (1 - done), data),
        (networks, optimizer.init(networks)),
        key_run,
    )
    return networks["model"]
