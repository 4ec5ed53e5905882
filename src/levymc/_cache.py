"""The user's cache folder: where it is, whose it is, and the programs that JAX has compiled in it.

Whoever can write to a folder of compiled programs can have code executed: it is the user's alone.

JAX finds a program again by what it computes and by its own version, but not by the number of
threads that XLA cuts it for, which decides how sums are rounded, nor, in all versions, by the
instructions that the processor has.  So there is a folder for each of these.
"""

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "LEVYMC_CACHE"
OFF = ("off", "0", "no", "false")
MOST_BYTES = 2**30  # a call of levymc.auto leaves about a million
PROCESSORS = Path("/proc/cpuinfo")
OF_INTEREST = ("model name", "flags", "Features")  # of a processor there


def user_cache() -> Path:
    """The folder for what levymc keeps and can make again."""
    # Not by platformdirs, which on macOS names another folder than ~/.cache, where data sets are.
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "levymc"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "levymc"


def check_own(*paths: Path) -> None:
    """Refuse what others may have put there.

    Raises:
        PermissionError: a file or folder of another user, or one that others can write to.
    """
    if not hasattr(os, "getuid"):  # Windows keeps a user's folders from others by other means
        return
    for path in paths:
        status = path.stat()
        if status.st_uid not in (0, os.getuid()) or status.st_mode & 0o022:
            raise PermissionError(
                f"{path} belongs to another user, or others can write to it: nothing is executed "
                "from there. Remove it, or set XDG_CACHE_HOME to a folder of your own."
            )


def enable_compilation_cache(folder: str | Path | None = None) -> Path | None:
    """Keep compiled programs on disk, so that the next process starts without compiling them.

    One line at the top of a script.  It changes JAX's configuration in this process, for whatever
    JAX compiles from now on; `import levymc` never does, but the `levymc` command does.  Results
    are the same: a program is found again only for the same computation, versions, processor and
    number of threads.  Old programs are removed when they are more than a gigabyte.

    Args:
        folder: where to keep them, for you alone to write to.  If not given, the environment
            variable LEVYMC_CACHE names it, or, where JAX has a folder already (as by
            JAX_COMPILATION_CACHE_DIR), that is left as it is; else it is in your cache folder.

    Returns:
        The folder; None where LEVYMC_CACHE=off, with which nothing is changed.

    Raises:
        PermissionError: the folder belongs to another user, or others can write to it.
        OSError: it cannot be made.

    Examples:
        >>> import levymc, tempfile
        >>> levymc.enable_compilation_cache()  # doctest: +SKIP
        PosixPath('/home/ann/.cache/levymc/compiled/9f86d081884c7d65')
    """
    named = os.environ.get(VARIABLE, "")
    if named.lower() in OFF:
        return None
    current: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder is None and not named and current:
        return Path(current)
    base = Path(folder or named or user_cache() / "compiled").expanduser().absolute()
    place = base / _machine()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_own(base, place)
    _prune(place)
    if current != str(place):
        jax.config.update("jax_compilation_cache_dir", str(place))
        compilation_cache.reset_cache()  # else what JAX knew at its first program would hold
    # All of them: a run has many small programs, which together take longest.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return place


def _machine() -> str:
    """A digest of what XLA compiles for: the processor, and the threads that share a program."""
    known = [platform.system(), platform.machine(), platform.processor(), str(_num_threads())]
    with suppress(OSError):
        lines = PROCESSORS.read_text("utf-8").splitlines()
        known += sorted({line for line in lines if line.startswith(OF_INTEREST)})
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _num_threads() -> int:
    """As XLA counts them."""
    given = os.environ.get("NPROC", "")
    if given.isdecimal() and int(given):
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prune(folder: Path) -> None:
    """Remove what a killed process left empty, and the oldest half of what has become too much."""
    found = []
    for file in folder.iterdir():
        with suppress(OSError):  # another process may be pruning, too
            status = file.stat()
            found.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in found)
    kept = MOST_BYTES // 2 if total > MOST_BYTES else total
    for _, size, file in sorted(found):
        if total > kept or not size:
            with suppress(OSError):
                file.unlink()
            total -= size
