"""Data that are spread over devices, also those of several processes, and what that costs a run."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from levymc._checks import check_mesh
from levymc.algorithms import Layout, over_devices

from ._integrity import digest, fingerprint

REPEATS = 5  # of what is measured: the best counts
TURNS = 8  # of a loop in the program, whose call should not count
PATIENCE = 0.2  # seconds after which a measurement is not repeated


def layout_of(mesh: Any, num_points: int, batch_size: int) -> Layout:
    """How data points and minibatches are spread over the devices of a mesh."""
    layout = Layout(check_mesh(mesh, "data"), num_points, batch_size)
    size = layout.mesh.size
    if num_points < size:
        raise ValueError(
            f"`mesh` must have no more devices than there are data points, {num_points}, "
            f"got {size}. Take fewer devices."
        )
    if batch_size % size:
        nearest = max(size, batch_size // size * size)
        raise ValueError(
            f"`batch_size` must be a multiple of the {size} devices of `mesh`, of which each draws "
            f"as many data points, got {batch_size}. Such as {nearest} or {nearest + size}."
        )
    return layout


def spread_over(layout: Layout, data: Any) -> Any:
    """The data on their devices; a process reads no more of them than its devices have."""
    given = jax.tree.leaves(data)
    check_same("data", [leaf[row] for leaf in given if _is_here(leaf) for row in (0, -1)])
    return jax.tree.map(lambda leaf: _spread_leaf(layout, leaf), data)


def _is_here(leaf: Any) -> bool:
    return not isinstance(leaf, jax.Array) or leaf.is_fully_addressable


def _spread_leaf(layout: Layout, leaf: Any) -> Array:
    if not _is_here(leaf):
        if not leaf.sharding.is_equivalent_to(layout.sharding, leaf.ndim):
            raise ValueError(
                "`data` must be spread over `mesh` along the first axis where no process has all "
                f"of them, got {leaf.sharding}. Such as by "
                "jax.make_array_from_process_local_data(NamedSharding(mesh, P('data')), local)."
            )
        return leaf
    begins = np.concatenate([[0], np.cumsum(layout.counts)])
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)

    def of_device(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        device = (index[0].start or 0) // layout.rows
        points = np.asarray(leaf[begins[device] : begins[device + 1]], dtype)
        missing = layout.rows - len(points)
        return np.concatenate([points, points[:missing]])  # these are never drawn

    shape = (layout.rows * layout.mesh.size, *leaf.shape[1:])
    return jax.make_array_from_callback(shape, layout.sharding, of_device)


def mesh_of(leaves: list[Any]) -> Mesh | None:
    """The mesh of several devices that one of the arrays is spread over, if one is."""
    shardings = [leaf.sharding for leaf in leaves if isinstance(leaf, jax.Array)]
    meshes = [one.mesh for one in shardings if isinstance(one, NamedSharding)]
    return next((mesh for mesh in meshes if isinstance(mesh, Mesh) and mesh.size > 1), None)


def on_mesh(mesh: Mesh, leaf: Array) -> Array:
    """The array on all devices of a mesh, unless it is spread over them."""
    if isinstance(leaf.sharding, NamedSharding) and leaf.sharding.mesh == mesh:
        return leaf
    return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec()))


def on_host(leaf: Array) -> np.ndarray:
    """All of an array, also if other processes have parts of it."""
    if leaf.is_fully_addressable or leaf.is_fully_replicated:
        return np.asarray(leaf)
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))


def check_same(name: str, leaves: list[Any]) -> None:
    """Refuse what differs between processes, and must not."""
    if jax.process_count() == 1 or not leaves:
        return
    words = np.frombuffer(bytes.fromhex(digest(fingerprint(leaves).encode())), np.uint32)
    if not np.all(multihost_utils.process_allgather(words) == words):
        raise ValueError(
            f"`{name}` must be the same in all {jax.process_count()} processes, got others. Give "
            "each of them all, of which it takes what its devices need; data that no process has "
            "as a whole are given by jax.make_array_from_process_local_data."
        )


def agreed(number: int) -> int:
    """The number of the first process, so that all make as many steps between two collectives."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


class Cost(NamedTuple):
    """Seconds of a step: to estimate the gradient on each device, and to add it up."""

    gradient: float
    sum: float


_known: dict[Any, Cost] = {}


def warn_of_communication(layout: Layout, estimator: Any, positions: Any, data: Any) -> None:
    """Tell where adding up the gradients takes longer than computing them."""
    if layout.mesh.size == 1:
        return
    case = (layout, estimator, *map(_shapes, (positions, data)))
    if case not in _known:  # a second run measures nothing
        _known[case] = measured(layout, estimator, positions, data)
    cost = _known[case]
    if cost.sum <= cost.gradient or jax.process_index() > 0:
        return
    enough = int(np.ceil(layout.batch_size * cost.sum / max(cost.gradient, 1e-9)))
    warnings.warn(
        f"Communication dominates with minibatches of {layout.batch_size} on {layout.mesh.size} "
        f"devices: to add up their gradients takes {1e3 * cost.sum:.3g} ms, to compute them "
        f"{1e3 * cost.gradient:.3g} ms. Take some {enough} data points a step or more, or fewer "
        "devices.",
        stacklevel=4,
    )


def _shapes(tree: Any) -> tuple[Any, ...]:
    leaves, structure = jax.tree.flatten(tree)
    return (structure, *((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))


def measured(layout: Layout, estimator: Any, positions: Any, data: Any) -> Cost:
    """The cost of a gradient of all chains, by trying."""
    of_chains = (None, 0, None)
    estimate = jax.vmap(over_devices(layout, estimator, is_summed=False), of_chains, out_axes=1)
    keys = jax.random.split(jax.random.key(0), TURNS)

    @jax.jit
    def terms(keys: Array, data: Any) -> Any:
        return jax.lax.map(lambda key: estimate(key, positions, data), keys)

    spread = PartitionSpec(layout.axis)

    @jax.jit
    @partial(jax.shard_map, mesh=layout.mesh, in_specs=spread, out_specs=spread, check_vma=False)
    def means(tree: Any) -> Any:
        return jax.lax.fori_loop(0, TURNS, lambda _, own: jax.lax.pmean(own, layout.axis), tree)

    one_of_each = jax.tree.map(lambda leaf: leaf[0], terms(keys, data))
    return Cost(
        _best_seconds(lambda: terms(keys, data), PATIENCE) / TURNS,
        _best_seconds(lambda: means(one_of_each)) / TURNS,
    )


def _best_seconds(make: Callable[[], Any], patience: float = np.inf) -> float:
    """Of some repeats; of one, if it takes long and others need not wait for it."""
    jax.block_until_ready(make())  # compiles
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(make())
        best = min(best, time.perf_counter() - begin)
        if best > patience:
            break
    return best
