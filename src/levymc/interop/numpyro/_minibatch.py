"""Subsampled plates as minibatches: the gradient of a model on some of its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc.run import batches


@dataclass(frozen=True, eq=False)
class RowsGradient:
    """The gradient of the log density, estimated on the rows that a minibatch names.

    A minibatch is an array of indices; with several subsampled plates, a dictionary of them.
    Unbiased for indices drawn uniformly, with replacement or without, those of several plates
    independently: a plate of N rows scales what is inside it by N over the rows taken.
    """

    logdensity_on: Callable[[Any, dict[str, Array]], Array]
    plates: tuple[str, ...]

    def logdensity(self, position: Any, minibatch: Any) -> Array:
        """The unbiased estimate of log φ."""
        rows = minibatch if isinstance(minibatch, dict) else dict.fromkeys(self.plates, minibatch)
        return self.logdensity_on(position, rows)

    def __call__(self, position: Any, minibatch: Any) -> Any:
        return jax.grad(self.logdensity)(position, minibatch)


@dataclass(frozen=True)
class SeveralPlates:
    """Rows for each plate, drawn for a step by its number, uniformly and with replacement."""

    sizes: tuple[tuple[str, int, int], ...]
    seed: int = 0

    def __call__(self, step: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng((self.seed, step))
        return {name: rng.integers(size, size=count) for name, size, count in self.sizes}


def minibatches_of(subsampled: dict[str, tuple[int, int]]) -> Any:
    """What `levymc.sample` takes: rows of the model's plates, as many as it asks for."""
    if len(subsampled) == 1:
        ((size, count),) = subsampled.values()
        return batches(jnp.arange(size), count)
    return SeveralPlates(tuple((name, *sizes) for name, sizes in subsampled.items()))
