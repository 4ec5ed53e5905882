"""Chains spread over the devices of a mesh."""

from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ._prepare import Prepared


def check_mesh(mesh: Any, num_chains: int, *, is_stored: bool) -> None:
    if mesh is None:
        return
    if not isinstance(mesh, Mesh) or len(mesh.axis_names) != 1:
        raise TypeError(
            f"`mesh` must be a jax.sharding.Mesh with one axis, got {mesh!r}. "
            'Such as jax.make_mesh((jax.device_count(),), ("chains",)).'
        )
    if num_chains % mesh.size:
        raise ValueError(
            f"`mesh` must have a number of devices that divides the {num_chains} chains, "
            f"got {mesh.size}. Add chains, or take fewer devices."
        )
    if is_stored:
        raise ValueError(
            f"`mesh` must be None with `store`, got {mesh!r}: a stored program is for one device. "
            "Leave one of them out."
        )


def spread(ready: Prepared, mesh: Mesh | None) -> Prepared:
    """Put the chains' states and keys onto the devices; the compiled program follows them."""
    if mesh is None:
        return ready
    # Left to the compiler: with explicit axes every gather would need to be told its sharding.
    automatic = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))
    by_chain = NamedSharding(automatic, PartitionSpec(mesh.axis_names[0]))
    inputs = ready.inputs._replace(keys=jax.device_put(ready.inputs.keys, by_chain))
    return ready._replace(inputs=inputs, states=jax.device_put(ready.states, by_chain))
