"""Room for compiled programs in a process.

Linux lets a process map some 65 000 pieces of memory, and XLA maps several for each program.  Where
one more is refused LLVM ends the process, without an exception: sixty calls of `levymc.auto`, each
of another density, come to that.  So programs are let go before; those in use are compiled again.
"""

import gc
import logging
from pathlib import Path
from typing import Any, TypeVar

import jax

FULL = 0.6  # of what a process may map; a call of `levymc.auto` takes 0.02 to 0.05
MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")

_Kept = TypeVar("_Kept")
_keepers: list[Any] = []


def keeps_programs(function: _Kept) -> _Kept:
    """Mark a function under `functools.lru_cache`, which keeps the programs that it returned."""
    _keepers.append(function)
    return function


def make_room() -> None:
    """Let go of compiled programs, ours and JAX's, if there is little room for more."""
    if _share_mapped() < FULL:
        return
    logging.getLogger("levymc").info("Compiled programs are let go, to make room for others.")
    for function in _keepers:
        function.cache_clear()
    jax.clear_caches()
    gc.collect()  # functions and their programs refer to each other


def _share_mapped() -> float:
    """Of what this process may map; 0 on systems that have no such bound."""
    try:
        return MAPS.read_bytes().count(b"\n") / int(MOST_MAPS.read_bytes())
    except (OSError, ValueError):
        return 0.0
