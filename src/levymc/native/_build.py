"""Compile the kernels: when the package is installed, or at their first use, into a cache.

The library is portable: it holds a version for each instruction set and chooses at run time.  Its
name has digests of all that it was made of, so that one which is out of date is never loaded.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jax.ffi

from levymc._workdir import atomic_bytes

FOLDER = Path(__file__).parent
SOURCES = tuple(sorted(FOLDER.glob("*.cpp")))
HEADERS = tuple(sorted(FOLDER.glob("*.h")))
FLAGS = ("-O3", "-std=c++17", "-fPIC", "-shared", "-pthread", "-Wno-psabi")
COMPILERS = ("g++", "clang++", "c++")
PATIENCE = 300  # seconds; compiling takes some ten


class BuildError(RuntimeError):
    """The kernels could not be compiled."""


def find_compiler() -> str | None:
    """$CXX if it is set, otherwise the first compiler on the path."""
    named = os.environ.get("CXX")
    for name in (named,) if named else COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    return None


def find_library() -> Path | None:
    """A library that fits this source and these headers: the installed one, or a cached one."""
    pattern = f"kernels-{_made_of()}-*.so"
    for folder in (FOLDER, cache_folder()):
        for library in sorted(folder.glob(pattern)):
            return library
    return None


def build_library(folder: Path) -> Path:
    """Compile into a folder.  The library appears whole or not at all.

    Raises:
        BuildError: no compiler, or one that fails; its message is in that of the error.
    """
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(
            f"There is no C++ compiler: neither {', '.join(COMPILERS)} nor $CXX was found. "
            "Install one, or set LEVYMC_NATIVE=numba or LEVYMC_NATIVE=jax."
        )
    library = folder / f"kernels-{_made_of()}-{_version_of(compiler)}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = library.with_name(f"{library.name}.{os.getpid()}.compiling")
        try:
            _compile(compiler, partial)
            atomic_bytes(library, partial.read_bytes())
        except OSError as error:
            raise BuildError(f"The kernels could not be written to {folder}: {error}") from error
        finally:
            partial.unlink(missing_ok=True)
    return library


def cache_folder() -> Path:
    """Where libraries go that are compiled at their first use."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "levymc"


def _compile(compiler: str, library: Path) -> None:
    include = f"-I{jax.ffi.include_dir()}"
    command = [compiler, *FLAGS, include, *map(str, SOURCES), "-o", str(library)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{compiler} could not be run: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise BuildError(f"{compiler} failed: {lines[0]}")


def _made_of() -> str:
    """A digest of source, flags, machine and JAX's headers."""
    total = hashlib.sha256(" ".join([*FLAGS, platform.system(), platform.machine()]).encode())
    for file in [*SOURCES, *HEADERS, *_headers()]:
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def _headers() -> Iterator[Path]:
    yield from sorted(Path(jax.ffi.include_dir()).glob("xla/ffi/api/*.h"))


def _version_of(compiler: str) -> str:
    """A digest of the compiler's own words."""
    try:
        said = subprocess.run(
            [compiler, "--version"], capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{compiler} could not be run: {error}") from error
    return hashlib.sha256(said.stdout).hexdigest()[:8]
