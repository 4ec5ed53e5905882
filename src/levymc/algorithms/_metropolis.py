r"""The test of Metropolis and Hastings."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def accept(
    key: Array, current: tuple[Any, Array], proposed: tuple[Any, Array], log_ratio: Any
) -> tuple[tuple[Any, Array], Array, Array]:
    """Choose between two (position, log φ); `log_ratio` is that of the proposal's densities.

    Returns the one chosen, the probability of acceptance, and whether the proposal could not be
    judged, as something was NaN or infinite that must not be; it is then refused.  A proposal
    where φ is zero is refused, too, and nothing is wrong with that.
    """
    log_acceptance = proposed[1] - current[1] + log_ratio
    finite = jnp.all(
        jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(proposed[0])])
    )
    is_divergent = ~finite | jnp.isnan(log_acceptance) | (proposed[1] == jnp.inf)
    rate = jnp.where(is_divergent, 0.0, jnp.exp(jnp.minimum(log_acceptance, 0.0)))
    is_accepted = jax.random.uniform(key, dtype=rate.dtype) < rate
    chosen = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposed, current)
    return chosen, rate, is_divergent
