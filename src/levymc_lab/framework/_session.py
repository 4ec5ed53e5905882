"""One stretch of work on a run, kept in its manifest as it goes."""

import time
from collections.abc import Callable
from typing import Any

from . import _manifest
from ._folder import Folder, write_json

Progress = Callable[[int, int], None]


class Session:
    """Counts cells and time; those of earlier sessions are added to, not replaced."""

    def __init__(
        self, folder: Folder, manifest: dict[str, Any], jobs: int, on_progress: Progress | None
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._on_progress = on_progress
        self._earlier, self._begin = manifest["wall_seconds"], time.perf_counter()
        self._entry: dict[str, Any] = {
            "started": _manifest.now(),
            "git": _manifest.git_state(),
            "jobs": jobs,
            "cells": 0,
        }
        manifest["sessions"].append(self._entry)

    def record(self, status: str, num_done: int, *, made: int = 0) -> None:
        """Write the manifest; `num_done` of all cells are there, `made` of them are new."""
        seconds = time.perf_counter() - self._begin
        self._entry["cells"] += made
        self._entry["wall_seconds"] = round(seconds, 3)
        self._manifest["wall_seconds"] = round(self._earlier + seconds, 3)
        self._manifest["status"] = status
        if status == "finished":
            self._manifest["finished"] = _manifest.now()
        write_json(self._folder.manifest, self._manifest)
        if self._on_progress is not None:
            self._on_progress(num_done, self._manifest["num_cells"])
