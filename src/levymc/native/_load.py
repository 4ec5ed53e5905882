"""Load the kernels and make them known to JAX, once a process."""

import ctypes
from functools import lru_cache

import jax.ffi

from . import _build

TARGETS = (
    "levymc_factorization_step",
    "levymc_factorization_batch",
    "levymc_gibbs_sweep",
    "levymc_belief_sweeps",
)


@lru_cache(maxsize=1)
def load() -> None:
    """Register the kernels, compiling them first where no library fits.

    Raises:
        BuildError: there is no library that can be loaded, nor one to be made.
    """
    path = _build.find_library() or _build.build_library(_build.cache_folder())
    try:
        library = ctypes.cdll.LoadLibrary(str(path))
    except OSError as error:
        raise _build.BuildError(f"{path} could not be loaded: {error}") from error
    for name in TARGETS:
        handler = jax.ffi.pycapsule(getattr(library, name))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
