"""``levymc work``: help with a run whose chains are cut into shards."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from ._shared import command_line, guarded, keep_programs

EXAMPLES = """
**Examples**

- `levymc work run`
- `JAX_ENABLE_X64=1 levymc work run` for a run in float64

**Exit codes**: 0 nothing is left to claim; 2 no run in shards, or a damaged one; 3 a file cannot be
read or written; 130 stopped by Ctrl-C.
"""


def work(
    store: Annotated[
        Path,
        Argument(
            metavar="STORE",
            exists=True,
            file_okay=False,
            help="This is the folder that levymc.sample has as `store`, with `shards`.",
        ),
    ],
) -> None:
    """Make shards of a run until other processes have all that are left.

    Start it as often as there are processors, on any machine that sees the folder; of GPUs one
    process uses all that it sees. It executes the program that is stored there: only for a folder
    that you trust.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh

    from levymc.run import work as help_with

    keep_programs()
    with guarded(command_line("work", str(store))):
        devices = np.array(jax.local_devices())
        made, num_shards, left = help_with(store, mesh=Mesh(devices, ("devices",)))
        others = f"other processes have {len(left)}" if left else "all are complete"
        print(f"Made {made} of {num_shards} shards; {others}.")
