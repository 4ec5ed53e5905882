r"""Minibatches that are spread over devices: each draws its part, and estimates are averaged.

Device d holds N_d of the N data points and draws m of them, Ω_d.  An estimator such as

.. math:: g(x; Ω) = ∇\log p(x) + \frac{N}{|Ω|} \sum_{i ∈ Ω} ∇\log p(y_i | x)

is affine in the mean over Ω, hence Σ_d (N_d/N) g(x; Ω_d) has the mean of g over all data, however
unequal the N_d are.  It is computed where the data are, and added up by one `psum`.  Only the
places in the data depend on the device; all else is the same everywhere.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

Estimator = Callable[[Any, Any], Any]


class Layout(NamedTuple):
    """Where data points are, and how many make a minibatch.

    mesh: devices along one axis, whose sharding is left to the compiler.
    num_points: of all devices.  The first devices have one more, if they are not a multiple.
    batch_size: of all devices, a multiple of their number.
    """

    mesh: Mesh
    num_points: int
    batch_size: int

    @property
    def axis(self) -> str:
        return self.mesh.axis_names[0]

    @property
    def counts(self) -> np.ndarray:
        """The data points on each device."""
        least, more = divmod(self.num_points, self.mesh.size)
        return least + (np.arange(self.mesh.size) < more)

    @property
    def rows(self) -> int:
        """Of the data on a device, with one that is not to be drawn where it has fewer points."""
        return int(self.counts[0])

    @property
    def sharding(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(self.axis))

    @property
    def replicated(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())


class Spread(NamedTuple):
    """The minibatch of a step that no device has as a whole; `key` is what it is drawn with."""

    layout: Layout
    key: Array
    data: Any


def estimated(function: Estimator, position: Any, minibatch: Any) -> Any:
    """What an estimator says of a minibatch, which may be spread over devices."""
    if not isinstance(minibatch, Spread):
        return function(position, minibatch)
    layout, key, data = minibatch
    return over_devices(layout, function)(key, position, data)


def over_devices(
    layout: Layout, function: Estimator, *, is_summed: bool = True
) -> Callable[[Array, Any, Any], Any]:
    """The estimate as a function of (key, position, data).

    With `is_summed` false it is not added up, and each device keeps its term, along a first axis.
    """
    axis = layout.axis

    def term(key: Array, position: Any, data: Any) -> Any:
        device = jax.lax.axis_index(axis)
        count = jnp.asarray(layout.counts, jnp.int32)[device]
        chosen = draw_places(key, device, count, layout.batch_size // layout.mesh.size)
        found = function(position, jax.tree.map(lambda leaf: leaf[chosen], data))
        share = count / layout.num_points
        own = jax.tree.map(lambda leaf: share.astype(leaf.dtype) * leaf, found)
        return jax.lax.psum(own, axis) if is_summed else jax.tree.map(lambda x: x[None], own)

    # Unchecked: if the position's replication were tracked, jax.grad in the estimator would add up
    # the gradients of all devices by itself, without their shares.
    return jax.shard_map(
        term,
        mesh=layout.mesh,
        in_specs=(PartitionSpec(), PartitionSpec(), PartitionSpec(axis)),
        out_specs=PartitionSpec() if is_summed else PartitionSpec(axis),
        check_vma=False,
    )


def draw_places(key: Array, device: Array, count: Array, size: int) -> Array:
    """Which of its `count` data points a device draws, uniformly and with replacement."""
    return jax.random.randint(jax.random.fold_in(key, device), (size,), 0, count)
