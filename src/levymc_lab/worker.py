"""A process that makes cells: its settings, and work that arrives before JAX is imported.

Light: nothing here imports JAX or NumPy before the settings are made, which are read then.  With
`dask worker ADDRESS --nthreads 1 --preload levymc_lab.worker` they are made at the start.
"""

import os
import pickle
import platform
import sys
from contextlib import suppress
from importlib import metadata
from itertools import count
from typing import Any

THREADS = "--xla_cpu_multi_thread_eigen=false"
# What JAX has compiled stays in a process: after some 150 cells of the contest there was no memory
# left for more.
MOST_CELLS = 32

_numbers = count(1)  # of the cells made in this process


class UnfitError(RuntimeError):
    """A process that cannot make cells as others do, and what to do about it."""


def settings() -> dict[str, str]:
    """Settings of a worker's environment, read when it imports NumPy and starts JAX.

    One thread each: XLA cuts a program by the number of threads, and rounds as it cuts, so that
    the same numbers to the last bit need the same threads whatever the machine and `jobs`.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "NPROC": "1",  # read by XLA
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "XLA_FLAGS": flags if THREADS in flags.split() else f"{flags} {THREADS}".strip(),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes may share a GPU
    }


def prepare(versions: dict[str, str]) -> None:
    """Make the settings of this process, unless it is too late, and compare its versions.

    Raises:
        UnfitError: NumPy or JAX was imported with other settings, or versions differ.
    """
    wanted = settings()
    missing = {name: value for name, value in wanted.items() if os.environ.get(name) != value}
    if missing and "jax" in sys.modules:
        raise UnfitError(
            f"it has imported JAX without {', '.join(missing)} set for one thread. Start it anew, "
            "with --preload levymc_lab.worker"
        )
    os.environ.update(missing)
    for name, version in versions.items():
        if (found := _version(name)) != version:
            raise UnfitError(
                f"it has {name} {found}, and the command {version}. Install the same there"
            )


def _version(name: str) -> str:
    if name == "python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def inspect(versions: dict[str, str]) -> str:
    """What is wrong with this process; nothing, if that is empty."""
    try:
        prepare(versions)
    except UnfitError as error:
        return str(error)
    return ""


def made(task: bytes, versions: dict[str, str]) -> bytes:
    """Make a pickled cell, and give the content of its file."""
    prepare(versions)
    keep_programs()
    content: bytes = pickle.loads(task).content()
    if next(_numbers) % MOST_CELLS == 0:
        import jax

        jax.clear_caches()
    return content


def keep_programs() -> None:
    """Let processes share what they compile; where no folder can be had, each compiles its own."""
    from levymc import enable_compilation_cache

    with suppress(OSError):
        enable_compilation_cache()


def dask_setup(worker: Any) -> None:
    """What Dask calls in a worker that preloads this module."""
    prepare({})
