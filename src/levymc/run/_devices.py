"""Chains over the devices of a mesh: each device runs the program of its own chains.

Device i of a mesh has the chains i · width, …, as a shard of a store has them, and loops by itself:
nothing is exchanged, so that none waits for another within a call.  Devices that would have fewer
chains than the others repeat the last one; what these give is dropped.  A mesh over several
processes is cut in the same way, and each of them runs the chains of its own devices.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from levymc._checks import check_count, check_mesh
from levymc._room import keeps_programs

from ._engine import Fixed, Program
from ._iterate import Run, Started, ready

CHAINS = "chains"


class Share(NamedTuple):
    """The part of a run that is made by the devices of this process.

    chains: their numbers.  width: how many a device has.
    """

    chains: range
    width: int
    devices: tuple[Any, ...]


def own_chains(mesh: Mesh, num_chains: int) -> range:
    """The chains that this process makes in `levymc.sample(..., mesh=mesh)` without a store.

    Its `Result` has them in this order.  Those of all processes, in the order of their numbers, are
    all chains; a `store` joins them by itself.

    Args:
        mesh: over the devices of all processes.
        num_chains: of the whole run.

    Raises:
        ValueError: it has none.

    Examples:
        >>> import jax, levymc
        >>> mesh = jax.make_mesh((1,), ("chains",))
        >>> levymc.distributed.own_chains(mesh, 5)
        range(0, 5)
    """
    check_mesh(mesh)
    count = check_count("num_chains", num_chains, "It is the number of chains of all processes.")
    return share_of(mesh, count).chains


def share_of(mesh: Mesh, num_chains: int) -> Share:
    """The chains of this process, which are next to one another."""
    width, here = -(-num_chains // mesh.size), jax.process_index()
    places: dict[int, list[int]] = {}
    for place, device in enumerate(mesh.devices.flat):
        places.setdefault(device.process_index, []).append(place)
    own = places.get(here, [])
    if not own or own[-1] - own[0] >= len(own):
        raise ValueError(
            f"`mesh` must have the devices of a process next to one another, got {mesh!r}, where "
            f"those of process {here} are at {own}. Such as "
            'jax.make_mesh((jax.device_count(),), ("chains",)).'
        )
    idle = [process for process, (first, *_) in places.items() if first * width >= num_chains]
    if idle:  # told by all of them, and not by these alone
        raise ValueError(
            f"`mesh` must leave chains for every process, got {mesh.size} devices for {num_chains} "
            f"chains: {width} for a device leave none for process {idle[0]}. Add chains, or take "
            "fewer processes."
        )
    chains = range(own[0] * width, min((own[-1] + 1) * width, num_chains))
    return Share(chains, width, tuple(mesh.devices.flat[place] for place in own))


def spread(started: Started, mesh: Mesh) -> Run:
    """A run of the chains that this process has, over its devices."""
    share = share_of(mesh, started.plan.num_chains)
    filled = np.minimum(
        share.chains.start + np.arange(share.width * len(share.devices)), share.chains.stop - 1
    )
    mine = started.of_chains(filled)
    one = ready(started.of_chains(filled[: share.width]))
    axes, local = mine.recipe.chain_axes, _local_mesh(share.devices)
    over_chains, everywhere = (
        NamedSharding(local, spec) for spec in (PartitionSpec(CHAINS), PartitionSpec())
    )
    wheres = [everywhere if axis is None else over_chains for axis in axes]
    program = _spread_program(one.program, local, axes)
    keys, carry = jax.device_put((mine.keys, jax.tree.leaves(mine.carry)), over_chains)
    feed = one.feed
    if isinstance(feed, Fixed):
        feed = Fixed(jax.device_put(feed.leaves, everywhere))
    count = len(share.chains)
    return one._replace(
        plan=one.plan._replace(num_chains=count),
        program=program if count == len(filled) else _without_the_rest(program, count),
        parameters=[jax.device_put(*both) for both in zip(mine.parameters, wheres, strict=True)],
        keys=keys,
        feed=feed,
        carry=program.begin(carry),
    )


def _local_mesh(devices: tuple[Any, ...]) -> Mesh:
    return Mesh(np.array(devices), (CHAINS,), axis_types=(AxisType.Auto,))


def _without_the_rest(program: Program, count: int) -> Program:
    """Of what is said of the chains, that of the first."""

    def first(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[:count], tree)

    return program._replace(
        states=lambda carry: first(program.states(carry)),
        finish=lambda carry: first(program.finish(carry)),
    )


def _spread_program(program: Program, mesh: Mesh, axes: tuple[int | None, ...]) -> Program:
    """The program of one device's chains, run by each device for its own."""
    advance, begin, finish = _spread_functions(
        program.advance, program.begin, program.finish, mesh, axes
    )
    # Where numbers differ between chains, nothing is the same in all draws.
    fixed = program.fixed if axes == (None,) * len(axes) else lambda parameters: []
    return program._replace(advance=advance, begin=begin, finish=finish, fixed=fixed)


@keeps_programs
@lru_cache(maxsize=64)  # so that a second run of the same algorithm compiles nothing
def _spread_functions(
    advance: Any, begin: Any, finish: Any, mesh: Mesh, axes: tuple[int | None, ...]
) -> tuple[Any, Any, Any]:
    chains, everywhere = PartitionSpec(CHAINS), PartitionSpec()
    numbers = [everywhere if axis is None else chains for axis in axes]

    def on_each(function: Callable[..., Any], given: Any, made: Any) -> Any:
        # The function itself, as how it is compiled is said here; and unchecked, as JAX cannot see
        # that loops of different lengths exchange nothing.
        inside = inspect.unwrap(function)
        return jax.jit(
            jax.shard_map(inside, mesh=mesh, in_specs=given, out_specs=made, check_vma=False)
        )

    given = (numbers, chains, chains, everywhere, everywhere)
    return (
        on_each(advance, given, (chains, PartitionSpec(None, CHAINS))),
        on_each(begin, (chains,), chains),
        on_each(finish, (chains,), chains),
    )
