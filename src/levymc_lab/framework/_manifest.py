"""What a run was: enough to make it again, and nothing about whose machine it was."""

import dataclasses
import hashlib
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ._experiment import Experiment
from ._folder import MismatchError

FORMAT = 1
PACKAGES = ("levymc", "jax", "jaxlib", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python and the packages that numbers depend on."""
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in PACKAGES}}


@lru_cache
def git_state() -> dict[str, Any] | None:
    """The revision of the checkout that levymc runs from, None if it is installed elsewhere.

    ``dirty``: the package's source is not as committed.
    """
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else another project's checkout
        return {"revision": git("rev-parse", "HEAD"), "dirty": bool(git("status", "-s", "."))}
    except (OSError, subprocess.SubprocessError):
        return None


def new(experiment: Experiment, profile: str, seed: int, num_cells: int) -> dict[str, Any]:
    """The manifest of a run that is about to begin."""
    content = {
        "format": FORMAT,
        "name": experiment.name,
        "title": experiment.title,
        "paper_item": experiment.paper_item,
        "question": experiment.question,
        "command": f"levymc run {experiment.name} --profile {profile} --seed {seed}",
        "profile": profile,
        "config": dataclasses.asdict(experiment.config(profile)),
        "seed": seed,
        "dtype": experiment.dtype,
        "num_cells": num_cells,
        "captions": dict(experiment.captions),
        "tables": [],
        "versions": versions(),
        "git": git_state(),
        "host_cores": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "started": now(),
        "finished": None,
        "wall_seconds": 0.0,
        "sessions": [],
        "status": "running",
    }
    content = json.loads(json.dumps(content))  # as it will be read: tuples become lists
    return {**content, "digest": digest(content)}


def digest(manifest: dict[str, Any]) -> str:
    """A checksum of what determines the numbers, versions apart."""
    identity = {name: manifest[name] for name in ("name", "profile", "config", "seed", "dtype")}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def check_same(
    found: dict[str, Any], wanted: dict[str, Any], where: Path, *, with_versions: bool
) -> None:
    """Refuse to go on with a folder of another configuration, seed or set of versions."""
    differences = _differences(found, wanted)
    if with_versions:
        differences += _changed(found["versions"], wanted["versions"])
    if differences or found["digest"] != wanted["digest"]:
        raise MismatchError(
            f"{where} holds another run: {', '.join(differences) or 'its digest differs'}. "
            "Name another folder (--out), or start anew and lose what it holds (--force)."
        )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    parts = [
        {key: one[key] for key in ("name", "profile", "seed", "dtype")} for one in (found, wanted)
    ]
    return _changed(*parts) or _changed(found["config"], wanted["config"])


def _changed(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    names = dict.fromkeys([*found, *wanted])
    return [
        f"its {name} is {found.get(name)}, not {wanted.get(name)}"
        for name in names
        if found.get(name) != wanted.get(name)
    ]
