"""A process that makes cells: its settings, and work that arrives before JAX is imported.

Light: nothing here imports JAX or NumPy before the settings are made, which are read then.  With
`dask worker ADDRESS --nthreads 1 --preload levymc_lab.worker` they are made at the start.
"""

import multiprocessing
import os
import pickle
import platform
import signal
import sys
from contextlib import suppress
from importlib import metadata
from itertools import count
from typing import Any, NamedTuple

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


class Order(NamedTuple):
    """What a process must be like: versions, and more of its environment."""

    versions: dict[str, str]
    environment: dict[str, str]


def order(versions: dict[str, str]) -> Order:
    """That others be like this process, which has these versions."""
    shared = ("JAX_PLATFORMS", "JAX_ENABLE_X64")
    return Order(versions, {name: os.environ[name] for name in shared if name in os.environ})


def prepare(wanted: Order) -> None:
    """Make the settings of this process, unless it is too late, and compare its versions.

    Raises:
        UnfitError: JAX was imported with other settings, or versions differ.
    """
    environment = {**settings(), **wanted.environment}
    missing = {name: value for name, value in environment.items() if os.environ.get(name) != value}
    if missing and "jax" in sys.modules:
        shown = " ".join(f"{name}={value!r}" for name, value in missing.items())
        raise UnfitError(f"it has imported JAX without {shown}. Start it anew")
    os.environ.update(missing)
    for name, version in wanted.versions.items():
        if (found := _version(name)) != version:
            raise UnfitError(f"it has {name} {found}, not {version} as here. Start one that has")


def _version(name: str) -> str:
    if name == "python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def inspect(wanted: Order) -> str:
    """What is wrong with this process; nothing, if that is empty."""
    try:
        prepare(wanted)
    except UnfitError as error:
        return str(error)
    return ""


def made(task: bytes, wanted: Order) -> bytes:
    """Make a pickled cell, and give the content of its file."""
    prepare(wanted)
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


def dask_setup(_: Any) -> None:
    """What Dask calls in a worker that preloads this module."""
    os.environ.update(settings())
    if multiprocessing.parent_process() is not None:  # which ends it when Ctrl-C is heard there
        signal.signal(signal.SIGINT, signal.SIG_IGN)
