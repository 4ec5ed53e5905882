"""What an integrator returns."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from levymc.drifts import Drift


class Move(NamedTuple):
    """A displacement, a pytree like the position, and how far it fell short of η b(x).

    `taming` is the largest, over the coordinates, of 1 - |displacement| / |η b(x)|: 0 where the
    step is Euler's, towards 1 where the drift was bounded.
    """

    displacement: Any
    taming: Float[Array, ""]


Integrator = Callable[[Drift, Any, Array], Move]


def largest(tree: Any) -> Array:
    """The largest entry of a pytree of arrays."""
    return jnp.max(jnp.stack([jnp.max(leaf) for leaf in jax.tree.leaves(tree)]))
