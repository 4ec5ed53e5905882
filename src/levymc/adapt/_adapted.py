"""What a warm-up leaves, and the positions of chains."""

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc.algorithms import SamplingAlgorithm
from levymc.run import Result

from ._tail_map import flat_draws

ENDLESS = 1e15  # no draws are as far out, of a law that computers can tell
NORMAL_LEVELS = (0.158655, 0.841345)  # of a normal law, one standard deviation from its middle


class Adapted(NamedTuple):
    """A sampler that is tuned and frozen, and where its chains are.

    positions: of the chains, to go on from.
    evaluations: what was spent, by stage.  cost: expected evaluations of a step of one chain.
    facts: numbers and words.  notes: sentences for a person.

    All of it can be made again from arrays and numbers: those of the algorithm are
    `jax.tree.leaves(algorithm)`.
    """

    algorithm: SamplingAlgorithm[Any]
    positions: Any
    evaluations: dict[str, int]
    cost: float
    facts: dict[str, float | int | str]
    notes: list[str]


def info_of(result: Result) -> Any:
    """What a run says of its steps, by attributes; what was read from a store has a dictionary."""
    return SimpleNamespace(**result.info) if isinstance(result.info, dict) else result.info


def whole(result: Result) -> Result:
    """A run that adapts, unless it was interrupted: a part of it would be another run.

    There are no draws of the target yet that could be given.
    """
    if result.is_interrupted:
        raise KeyboardInterrupt("The run was stopped before its first draw.")
    return result


def counts(positions: Any) -> tuple[int, int]:
    """Of chains, and of coordinates."""
    leaves = jax.tree.leaves(positions)
    return len(leaves[0]), sum(math.prod(leaf.shape[1:]) for leaf in leaves)


def last(positions: Any) -> Any:
    """Where chains ended."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[:, -1]), positions)


def shaped(vector: np.ndarray, positions: Any) -> Any:
    """A vector as a pytree like the position of one chain."""
    one = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:], leaf.dtype), positions)
    leaves, structure = jax.tree.flatten(one)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(np.asarray(vector), ends)
    return jax.tree.unflatten(
        structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    )


def half_widths(positions: Any) -> np.ndarray:
    """Half the distance of the 16 % and 84 % quantiles of each coordinate; 1 where it is none."""
    low, high = np.quantile(flat_draws(positions), NORMAL_LEVELS, axis=0)
    return np.where(high > low, (high - low) / 2, 1.0)


def too_small(budget: int, least: int) -> ValueError:
    return ValueError(
        f"`budget` must be at least {least} for these chains, got {budget}. "
        "Give more, or fewer chains."
    )


def refuse_endless(points: np.ndarray) -> None:
    """Refuse a density that does not fall, before numbers overflow."""
    reach = float(np.max(np.abs(points), initial=0.0))
    if not reach < ENDLESS:
        raise ValueError(
            f"`logdensity_fn` must fall far out, got one where draws went as far as {reach:.1g}: "
            "it is flat, or has no finite integral. Give one that has."
        )
