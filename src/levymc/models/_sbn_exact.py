r"""The likelihood of a small belief network, by adding up all states of its hidden units."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

MOST_UNITS = 20
CHUNK = 1 << 10  # states whose activations are held at once


def exact_loglikelihood(position: dict[str, Array], images: Any) -> Array:
    r"""log p(v) = log Σ_h p(h) p(v | h), of each image."""
    num_hidden = position["weights"].shape[1]
    if num_hidden > MOST_UNITS:
        raise ValueError(
            f"`weights` must have at most {MOST_UNITS} hidden units, got {num_hidden}. "
            "For more, estimate with levymc.models.annealed_loglikelihood."
        )
    dtype = position["weights"].dtype
    pixels = jnp.asarray(images, dtype)
    chunk = min(CHUNK, 1 << num_hidden)

    def add(total: Array, first: Array) -> tuple[Array, None]:
        numbers = first + jnp.arange(chunk)
        hidden = (numbers[:, None] >> jnp.arange(num_hidden) & 1).astype(dtype)
        return jnp.logaddexp(total, _log_sum(position, pixels, hidden)), None

    firsts = jnp.asarray(np.arange(0, 1 << num_hidden, chunk))
    start = jnp.full(len(pixels), -jnp.inf, dtype)
    return jax.lax.scan(add, start, firsts)[0]


def _log_sum(position: dict[str, Array], pixels: Array, hidden: Array) -> Array:
    """log Σ p(v, h) over some states."""
    logits = hidden @ position["weights"].T + position["visible_bias"]
    prior = position["hidden_bias"] * hidden - jax.nn.softplus(position["hidden_bias"])
    constant = jnp.sum(prior, axis=1) - jnp.sum(jax.nn.softplus(logits), axis=1)
    return jax.nn.logsumexp(pixels @ logits.T + constant, axis=1)
