"""The kernels in C++: how they are compiled, found, loaded and called, and what replaces them.

A wheel that is built where there is a compiler holds the compiled library, and so does an editable
install, beside its source.  A checkout that was not installed compiles it at first use, into the
user's cache.  Where there is none, models run by JAX alone.

The library is portable: it holds a version for each instruction set and chooses at run time, of
those up to the one that LEVYMC_NATIVE_ISA names (avx512, avx2 or portable; for tests).  Its name
has a digest of all that it is compiled from, so that one which is out of date is never loaded, and
the version of XLA's foreign functions, of which XLA takes those up to its own.  Its checksum is in
a file beside it: the system ends a process that loads half a library, without a word.
"""

import ctypes
import hashlib
import logging
import os
import platform
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.ffi
import numpy as np
from jax import Array

from levymc._cache import check_own, user_cache
from levymc._workdir import atomic_bytes, digest, flush

BACKENDS = ("native", "jax")
VARIABLE = "LEVYMC_NATIVE"
INSTRUCTIONS = ("avx512", "avx2", "portable")  # of LEVYMC_NATIVE_ISA: the most that is used
TARGETS = (
    "levymc_factorization_step",
    "levymc_factorization_batch",
    "levymc_factorization_users",
    "levymc_factorization_items",
    "levymc_factorization_restore",
    "levymc_gibbs_sweep",
    "levymc_belief_sweeps",
)

FOLDER = Path(__file__).parent / "models"
SOURCES = tuple(sorted(FOLDER.glob("*/*.cpp")))
HEADERS = tuple(sorted(FOLDER.rglob("*.h")))
IS_CHECKOUT = (Path(__file__).parents[2] / "setup.py").is_file()
FLAGS = ("-O3", "-std=c++17", "-fPIC", "-shared", "-pthread", "-Wno-psabi")
COMPILERS = ("g++", "clang++", "c++")
PATIENCE = 300  # seconds; compiling takes some twenty
TYPES = {bool: np.bool_, int: np.int64, float: np.float64}  # of attributes, as the kernels expect


class BuildError(RuntimeError):
    """There is no library of kernels that can be loaded, nor can one be compiled."""


def backend(wanted: str | None = None) -> str:
    """The backend of the fast models: the one asked for, or the faster that works here.

    Args:
        wanted: "native", kernels in C++, or "jax".  If not given, the environment variable
            LEVYMC_NATIVE decides; without it, the kernels are used where they work, and a warning
            reports once where they do not.

    Raises:
        ValueError: no such backend.
        BuildError: the kernels were asked for and do not work here.

    Examples:
        >>> import levymc
        >>> levymc.models.backend("jax")
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
    return asked


@lru_cache(maxsize=1)  # so that the warning is given once
def _fastest() -> str:
    try:
        load()
    except BuildError as error:
        warnings.warn(
            f"levymc's kernels in C++ are not used: {error} Meanwhile JAX alone does their work, "
            f"many times more slowly; {VARIABLE}=jax silences this warning.",
            RuntimeWarning,
            stacklevel=4,
        )
        return "jax"
    return "native"


@lru_cache(maxsize=1)
def load() -> None:
    """Make the kernels known to JAX, once per process.

    Raises:
        BuildError: there is no library that can be loaded, nor can one be compiled.
        ValueError: LEVYMC_NATIVE_ISA names no instruction set.
    """
    asked = os.environ.get(f"{VARIABLE}_ISA", INSTRUCTIONS[0])
    if asked not in INSTRUCTIONS:
        raise ValueError(
            f"`{VARIABLE}_ISA` must be one of {', '.join(map(repr, INSTRUCTIONS))}, got {asked!r}. "
            "Leave it out for the best that this machine has."
        )
    path = find_library() or _build_at_first_use()
    if not _is_whole(path):
        raise BuildError(
            f"{path} is damaged: its checksum is not that of the library that was compiled. Remove "
            f"it, and {'it is compiled again' if IS_CHECKOUT else 'install levymc again'}."
        )
    try:
        library = ctypes.cdll.LoadLibrary(str(path))
    except OSError as error:
        raise BuildError(f"{path} could not be loaded: {error}. {_remedy()}") from error
    for name in TARGETS:
        handler = jax.ffi.pycapsule(getattr(library, name))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")


def call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    arrays: Sequence[Array],
    attributes: Mapping[str, bool | int | float],
    **options: Any,
) -> Sequence[Array]:
    """Call a kernel from inside a JAX program.

    Args:
        target: one of `TARGETS`.
        results: shapes and dtypes of what it returns.
        arrays: its arguments.
        attributes: numbers that are fixed when the program is compiled, by name; they are given in
            the widths that the kernels expect, whatever JAX's own are.
        options: of `jax.ffi.ffi_call`.
    """
    load()
    typed = {name: TYPES[type(value)](value) for name, value in attributes.items()}
    return jax.ffi.ffi_call(target, tuple(results), **options)(*arrays, **typed)


def find_library() -> Path | None:
    """The newest library that fits: the installed one or, for a checkout, a cached one.

    Raises:
        BuildError: others can write to the cache.
    """
    for folder in (FOLDER, cache_folder())[: 2 if IS_CHECKOUT else 1]:
        libraries = folder.glob(f"kernels-{_digest()}-*.*.so")
        known = [path for path in libraries if _checksum_file(path).exists()]
        fitting = [path for path in known if _numbers(path.stem) <= _ffi_version()]
        if fitting:
            newest = max(fitting, key=lambda path: _numbers(path.stem))
            if folder != FOLDER:  # which holds the Python code, and is trusted as that is
                _check_trust(folder, newest)
            return newest
    return None


def build_library(folder: Path) -> Path:
    """Compile into a folder.  The library appears whole or not at all.

    Raises:
        BuildError: no compiler, or one that fails; its message is in that of the error.
    """
    compiler = _find_compiler()
    major, minor = _ffi_version()
    library = folder / f"kernels-{_digest()}-{major}.{minor}.so"
    if library.exists() and _is_whole(library):
        return library
    partial = library.with_name(f"{library.name}.{os.getpid()}.compiling")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _compile(compiler, partial)
            partial.chmod(0o755)  # whatever the user's mask is: others must not write to it
            flush([partial])
            # First, so that there is never a library without it.
            atomic_bytes(_checksum_file(library), digest([partial]).encode())
            partial.replace(library)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"The kernels could not be written to {folder}: {error}.") from error
    return library


def cache_folder() -> Path:
    """Where libraries go that are compiled at their first use."""
    return user_cache() / "kernels"


def _build_at_first_use() -> Path:
    if not IS_CHECKOUT:
        raise BuildError(f"This installation has no kernels for this machine. {_remedy()}")
    _find_compiler()  # before anything is announced
    folder = cache_folder()
    if folder.exists():
        _check_trust(folder)
    logging.getLogger("levymc").warning(
        "levymc compiles its kernels in C++ into %s, once; this takes about half a minute.", folder
    )
    return build_library(folder)


def _checksum_file(library: Path) -> Path:
    return library.with_name(f"{library.name}.sha256")


def _is_whole(library: Path) -> bool:
    """Whether a library is the one that was compiled, to the last byte."""
    try:
        return _checksum_file(library).read_bytes() == digest([library]).encode()
    except OSError:
        return False


def _remedy() -> str:
    if IS_CHECKOUT:
        return f"Install a C++ compiler, or set {VARIABLE}=jax."
    return (
        "Install a C++ compiler and then levymc again, from source (pip install --force-reinstall "
        f"--no-deps --no-cache-dir --no-binary levymc levymc), or set {VARIABLE}=jax."
    )


def _check_trust(*paths: Path) -> None:
    """Refuse to load what others may have put there."""
    try:
        check_own(*paths)
    except PermissionError as error:
        raise BuildError(str(error)) from error


def _find_compiler() -> str:
    """$CXX if it is set, otherwise the first compiler on the path."""
    named = os.environ.get("CXX")
    for name in (named,) if named else COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    raise BuildError(
        f"There is no C++ compiler: neither {', '.join(COMPILERS)} nor $CXX was found. {_remedy()}"
    )


def _compile(compiler: str, library: Path) -> None:
    includes = [f"-I{folder}" for folder in (jax.ffi.include_dir(), FOLDER)]
    command = [compiler, *FLAGS, *includes, *map(str, SOURCES), "-o", str(library)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{compiler} could not be run: {error}.") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise BuildError(f"{compiler} failed: {lines[0]}")


def _digest() -> str:
    """Of source, flags and machine."""
    total = hashlib.sha256(" ".join([*FLAGS, platform.system(), platform.machine()]).encode())
    for file in (*SOURCES, *HEADERS):
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


@lru_cache(maxsize=1)
def _ffi_version() -> tuple[int, int]:
    """The version of XLA's foreign functions, from the headers that JAX brings."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    try:
        return _numbers(" ".join(re.findall(r"#define XLA_FFI_API_M.*", header.read_text("utf-8"))))
    except (OSError, ValueError) as error:
        raise BuildError(f"JAX has no usable headers of XLA's foreign functions: {error}") from None


def _numbers(text: str) -> tuple[int, int]:
    """The last two numbers of a text, such as 0 and 3 of kernels-4f0a-0.3."""
    major, minor = re.findall(r"\d+", text)[-2:]
    return int(major), int(minor)
