r"""The test of Metropolis and Hastings."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from ._base import choose, is_finite

PointT = TypeVar("PointT", bound=tuple)


class Outcome(NamedTuple):
    """The probability of acceptance, whether it was accepted, and whether it could be judged."""

    rate: Array
    is_accepted: Array
    is_divergent: Array


def accept(
    key: Array, current: PointT, proposed: PointT, log_ratio: ArrayLike
) -> tuple[PointT, Outcome]:
    """Choose between two points (position, log φ, …); `log_ratio` is that of the proposals' laws.

    A proposal that cannot be judged, as something is NaN or infinite that must not be, is refused.
    One where φ is zero is refused, too, and nothing is wrong with that.
    """
    outcome = judge(key, current[1], proposed, log_ratio)
    return choose(outcome.is_accepted, proposed, current), outcome


def judge(key: Array, level: Array, proposed: tuple, log_ratio: ArrayLike) -> Outcome:
    """The test of a proposal against the level of log φ where the chain is, or another one."""
    position, logdensity = proposed[:2]
    log_acceptance = logdensity - level + log_ratio
    is_divergent = ~is_finite(position) | jnp.isnan(log_acceptance) | (logdensity == jnp.inf)
    rate = jnp.where(is_divergent, 0.0, jnp.exp(jnp.minimum(log_acceptance, 0.0)))
    is_accepted = jax.random.uniform(key, dtype=rate.dtype) < rate
    return Outcome(rate, is_accepted, is_divergent)
