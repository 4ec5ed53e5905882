"""``levymc doctor``: what is here, what is missing, and how to get it."""

import os
import platform
import re
from importlib import metadata

from ._shared import grid


def doctor() -> None:
    """Show versions, devices, precision, threads, kernels, and which extras are installed."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    for title, rows in (("Machine and settings", settings()), ("Extras", extras())):
        table = grid(title=title, title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        for name, value in rows.items():
            table.add_row(name, escape(value))
        console.print(table)


def settings() -> dict[str, str]:
    """All that a report of a fault should contain."""
    import jax

    from levymc_lab.framework import versions

    wide = jax.config.read("jax_enable_x64")
    return {
        **versions(),
        "system": f"{platform.system()} {platform.machine()}",
        "devices": ", ".join(str(device) for device in jax.devices()),
        "64-bit types": "on" if wide else "off: float32 unless JAX_ENABLE_X64=1",
        "processors": str(_processors()),
        "kernels": _kernels(),
        "programs": _programs(),
    }


def _processors() -> int | None:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _kernels() -> str:
    """Of ratings and belief networks."""
    import warnings

    from levymc import models

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = models.backend()
    reasons = " ".join(str(one.message) for one in told)
    return "C++, compiled" if found == "native" else f"JAX. {reasons}".strip()


def _programs() -> str:
    """Where compiled ones are kept."""
    from levymc._cache import VARIABLE, user_cache

    named = os.environ.get(VARIABLE)
    if named:
        return f"as {VARIABLE} says: {named}"
    folder = user_cache() / "compiled"
    if not folder.is_dir():
        return f"none kept yet; the command keeps them in {folder} ({VARIABLE}=off does not)"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return f"{size / 2**20:.0f} MB in {folder}"


def extras() -> dict[str, str]:
    """Each extra of the project, with what is missing of it."""
    try:
        requirements = metadata.requires("levymc") or []
    except metadata.PackageNotFoundError:
        return {"unknown": "levymc is not installed as a package here"}
    needed = _needed(requirements)
    shown = sorted(set(needed) - {"dev", "bench", "docs"})
    return {name: _state(name, needed[name]) for name in shown}


def _needed(requirements: list[str]) -> dict[str, list[str]]:
    """The packages of each extra, with those of the extras that it contains."""
    own: dict[str, list[str]] = {}
    contained: dict[str, list[str]] = {}
    for line in requirements:
        match = re.match(r"([\w.-]+)(?:\[([\w,.\- ]*)\])?.*?;.*extra == [\"']([\w-]+)[\"']", line)
        if match is None:
            continue
        package, inside, extra = match.groups()
        own.setdefault(extra, [])
        if package == "levymc":
            contained.setdefault(extra, []).extend(re.findall(r"[\w.-]+", inside or ""))
        else:
            own[extra].append(package)

    def whole(extra: str, above: tuple[str, ...] = ()) -> list[str]:
        found = list(own.get(extra, []))
        for other in contained.get(extra, []):
            if other not in (*above, extra):
                found += whole(other, (*above, extra))
        return list(dict.fromkeys(found))

    return {extra: whole(extra) for extra in own}


def _state(extra: str, packages: list[str]) -> str:
    missing = [name for name in packages if not _is_installed(name)]
    if missing:
        return f"missing {', '.join(missing)}: pip install 'levymc[{extra}]'"
    return ", ".join(f"{name} {metadata.version(name)}" for name in packages) or "complete"


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
