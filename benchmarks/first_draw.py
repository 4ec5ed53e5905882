"""Seconds to the first draws in a new process, cold and with the programs of an earlier one.

Each measurement is a process of its own: `python benchmarks/first_draw.py CASE` is one of them, and
prints its seconds.  Cold ones begin with an empty folder of programs.  All have the bytecode of an
installed library, whatever the environment says about writing it: a first process makes it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bars import Bar

COLD, WARM = 2, 3  # processes of each kind: the best of them counts, as others may be at work


class Seconds(NamedTuple):
    """Of importing levymc, and of the call that gives the first draws."""

    importing: float
    calling: float

    @property
    def total(self) -> float:
        return self.importing + self.calling


def first_draws(case: str) -> Seconds:
    """Measure one case in this process, which has imported nothing yet."""
    begin = time.perf_counter()
    import jax
    import jax.numpy as jnp

    import levymc

    levymc.enable_compilation_cache()
    imported = time.perf_counter()
    key, starts = jax.random.key(0), jnp.zeros((4, 2))
    sampler = levymc.mafla if case == "mafla" else levymc.ula
    with tempfile.TemporaryDirectory() as folder:
        if case == "auto":
            corner = jnp.full((4, 2), 4.0)
            levymc.auto(levymc.targets.four_modes, key, corner, budget=5000, progress=False)
        else:
            store = Path(folder) / "run" if case == "stored" else None
            algorithm = sampler(levymc.targets.four_modes, 0.1)
            levymc.sample(algorithm, key, starts, 100, progress=False, store=store)
    return Seconds(imported - begin, time.perf_counter() - imported)


def measured(case: str, cache: str, bytecode: str) -> Seconds:
    """The case in a new process that keeps its programs in `cache`."""
    others = {
        name: value
        for name, value in os.environ.items()
        if "COMPILATION_CACHE" not in name and name != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, __file__, case]
    environment = {**others, "LEVYMC_CACHE": cache, "PYTHONPYCACHEPREFIX": bytecode}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Seconds(*json.loads(done.stdout))


def compared(case: str) -> tuple[Seconds, Seconds]:
    """The quickest cold process, and the quickest warm one."""
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(1 + COLD):
            with tempfile.TemporaryDirectory() as cache:
                first = measured(case, cache, bytecode)
                if number:
                    cold.append(first)
                    warm += [measured(case, cache, bytecode) for _ in range(WARM)]
    return tuple(min(found, key=lambda seconds: seconds.calling) for found in (cold, warm))


def repeated_runs() -> "Iterator[Bar]":
    from bars import Bar

    for case in ("ula", "mafla", "stored", "auto"):
        cold, warm = compared(case)
        yield Bar(f"{case}: first call, cold", cold.calling, "s")
        yield Bar(f"{case}: first call, warm", warm.calling, "s")
        yield Bar(f"{case}: warm / cold", warm.calling / cold.calling, "", 1 / 3)
    yield Bar("auto: with the import, cold", cold.total, "s", 15)
    yield Bar("auto: with the import, warm", warm.total, "s", 4)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(first_draws(sys.argv[1])))
    else:
        from bars import show

        show(repeated_runs())
