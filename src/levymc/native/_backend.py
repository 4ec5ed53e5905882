"""Which road a fast model takes: compiled C++, numba, or JAX alone."""

import importlib.util
import os
from functools import lru_cache

from ._build import BuildError
from ._load import load

BACKENDS = ("native", "numba", "jax")
VARIABLE = "LEVYMC_NATIVE"


def backend(wanted: str | None = None) -> str:
    """The backend to be used: the one asked for, or the fastest that works here.

    Args:
        wanted: "native", "numba" or "jax".  If not given, the environment variable LEVYMC_NATIVE
            decides, and without it the first of the three that works.

    Raises:
        ValueError: no such backend.
        BuildError, ImportError: one that was asked for does not work here.

    Examples:
        >>> import levymc
        >>> levymc.native.backend("jax")
        'jax'
    """
    asked = wanted or os.environ.get(VARIABLE)
    if asked is None:
        return _fastest()
    if asked not in BACKENDS:
        name = "backend" if wanted else VARIABLE
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, BACKENDS))}, got {asked!r}. "
            "Leave it out for the fastest that works here."
        )
    if asked == "native":
        load()
    if asked == "numba" and not _has_numba():
        raise ImportError("The backend 'numba' needs numba: pip install levymc[numba].")
    return asked


@lru_cache(maxsize=1)
def _fastest() -> str:
    try:
        load()
    except BuildError:
        return "numba" if _has_numba() else "jax"
    return "native"


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None
