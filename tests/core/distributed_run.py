"""A run over the devices of several processes: python distributed_run.py FOLDER [PAUSE].

It prints a line of JSON: which chains this process has, and checksums of these and of a stored run.
The pause follows each call, so that there is time to kill it.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import levymc

COUNT = levymc.distributed.initialize() if __name__ == "__main__" else 1

from tests.core import sharded_run, stored_run  # noqa: E402  # which make arrays


def refusal(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("it was not refused")


def refusals(mesh):
    """What needs the chains of all processes, or leaves one without."""
    given = {"mesh": mesh, "progress": False}
    start = jax.tree.map(lambda leaf: leaf[:1], sharded_run.STARTS)
    walk, key = stored_run.WALK, jax.random.key(5)
    rows = NamedSharding(mesh, PartitionSpec("chains"))
    spread = jax.make_array_from_callback((2, 2), rows, lambda _: np.zeros((1, 2), np.float32))
    return [
        refusal(lambda: sharded_run.begin(None, until=lambda result: True, **given)),
        refusal(lambda: levymc.sample(walk, key, start, 9, **given)),
        refusal(lambda: levymc.sample(walk, key, {"x": spread}, 9, **given)),
        refusal(lambda: levymc.auto(levymc.targets.four_modes, key, jnp.zeros((1, 2)), **given)),
    ]


def main(folder, pause=0.0):
    mesh = jax.make_mesh((jax.device_count(),), ("chains",))
    chains = levymc.distributed.own_chains(mesh, sharded_run.CHAINS)
    found = {"count": COUNT, "chains": [chains.start, chains.stop]}
    own = sharded_run.begin(None, mesh=mesh)
    found["own"] = sharded_run.checksum(own)
    found["refusals"] = refusals(mesh) if COUNT > 1 else []
    stored_run.commit_often()
    sharded_run.slow_down(float(pause))
    found["stored"] = sharded_run.checksum(sharded_run.begin(folder, mesh=mesh, shards=3))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
