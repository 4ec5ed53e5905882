"""Settings of the test process; not in tests/, so that the doctests under src/ get them too.

They must stand before JAX and levymc are first imported. Each pytest-xdist worker reads this file.
"""

import gc
import os
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

if "jax" in sys.modules:
    raise RuntimeError("A pytest plugin imported JAX before its settings could be made.")

# With 64-bit types allowed, both float32 and float64 can be tested in one process.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"


def folder_of_programs() -> Path:
    """In the user's cache, for all checkouts, if that can be written to; else in this one."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(caches) / "levymc-tests" / f"jaxlib-{version('jaxlib')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(__file__).parent / ".pytest_cache/jax"
    return folder


# A third of the time goes into compiling, often what another test, worker or checkout has compiled.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder_of_programs()))
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# What is compiled here runs once, for a moment: with quicker compilation and slower programs the
# tests need half the time. `make test-all` tests the programs that people run.
if not os.environ.get("LEVYMC_TEST_FULL"):
    flags = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    # Later versions have the fusion emitters only, and refuse to start with a flag unknown to them.
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
        flags += " --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"

from jaxtyping import install_import_hook  # noqa: E402  (JAX reads the settings above)

# Imports make objects that stay, and tracing many that are soon gone: look for garbage less often.
gc.set_threshold(10_000, 20, 50)

# Shapes and dtypes in the annotations are checked at every call, where arrays are what it is about.
# Not in the layers that people call: they refuse what is wrong by themselves, in words.
CHECKED = ("stable", "riesz", "drifts", "diagnostics", "targets", "models")
install_import_hook([*(f"levymc.{layer}" for layer in CHECKED), "levymc_lab"], "beartype.beartype")

# The examples in docstrings of what connects to a library need that library.
CONNECTED = ("diffrax.py", "numpyro", "optax.py", "pymc.py")
collect_ignore = [
    f"src/levymc/interop/{path}"
    for path in CONNECTED
    if find_spec(path.removesuffix(".py")) is None
]


# Examples that take seconds to compile, of what its tests compile, too.
LONG_EXAMPLES = (
    "levymc.adapt._minimize.minimize",
    "levymc.adapt._nuts.nuts",
    "levymc.adapt._tempered.tempered",
    "levymc.interop.numpyro._sample.sample",
    "levymc.algorithms._jumping.jumping",
    "levymc.interop.numpyro._kernel.Kernel",
    "levymc.interop.pymc.from_pymc",
    "levymc.interop.pymc.sample",
    "levymc.models.sbn._annealing.annealed_loglikelihood",
    "levymc.models.sbn._model.sbn",
)


def pytest_itemcollected(item):
    if item.name in LONG_EXAMPLES:
        item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem():
    """Of the cases of a test marked `often`, those that the mark does not name are nightly."""
    made = yield
    # A function gives a list, of all its cases, whichever are asked for; others, None or a class.
    found = made if isinstance(made, list) else []
    cases = [item for item in found if item.get_closest_marker("often")]
    if cases:
        named = set(cases[0].get_closest_marker("often").args)
        if unknown := named - {item.callspec.id for item in cases}:
            raise pytest.Collector.CollectError(f"{cases[0].nodeid}: there is no case {unknown}")
        for item in cases:
            if item.callspec.id not in named:
                item.add_marker(pytest.mark.nightly)
    return made


def pytest_collection_finish():
    """Spare the garbage collector what stays to the end: looking at it took a tenth of the time."""
    gc.collect()
    gc.freeze()
