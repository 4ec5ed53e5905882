"""Run an experiment into a folder, or go on where it was stopped.

From the cells come the tables, and from the tables the checks, the verdict and the figures.  Only
what is missing is written, and everything after the tables is made from the tables as they are on
disk, so that a folder never holds figures of one version beside tables of another.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from levymc._workdir import (
    MismatchError,
    ResultsError,
    atomic_bytes,
    clocked,
    differences,
    git_state,
    lock,
    make_folder,
    now,
    provenance,
    remove_partial,
    write_json,
)

from ._cluster import Cluster
from ._experiment import REAL, SUFFIXES, Cell, Experiment, check_seed
from ._pool import Task, make
from ._results import (
    FORMAT,
    TABLE_SUFFIXES,
    Folder,
    Results,
    check_table,
    checksum,
    load,
    read_cell,
    read_manifest,
    read_stamp,
    read_tables,
)

Progress = Callable[[int, int], None]


def run(
    experiment: Experiment,
    out: Path | str = "results",
    *,
    profile: str = "quick",
    seed: int = 0,
    jobs: int = 1,
    force: bool = False,
    cluster: Cluster | None = None,
    on_progress: Progress | None = None,
) -> Results:
    """Make what is missing of an experiment's results in the folder OUT/NAME.

    Args:
        experiment: from `get`.
        out: folder of results; made if missing.
        profile: "quick" or "paper".
        seed: of all random numbers.
        jobs: processes, of one thread each; the numbers do not depend on how many.  A script must
            call `run` from under ``if __name__ == "__main__":``.  With 0 the cells are made in this
            process, with JAX's own threads, and may differ in the last digits.  An experiment that
            measures seconds has one at most, and no cluster.
        force: start anew, whatever the folder holds.
        cluster: from `connect`, whose workers make the cells in the place of `jobs` processes.
        on_progress: called with the numbers of cells made and of all.

    Raises:
        MismatchError: the folder holds a run with another configuration, seed or versions.
        ResultsError: the folder cannot be read or written; what it held is still there.
        KeyboardInterrupt: Ctrl-C; the same call goes on.
    """
    if jobs < 0:
        raise ValueError(f"`jobs` must not be negative, got {jobs}. It is a number of processes.")
    work = _Work.of(experiment, out, profile, seed)
    work.refuse(force=force)
    folder = work.folder
    with work.telling_what_is_safe():
        make_folder(folder.path)
        with lock(folder.path):
            if force:
                folder.clear()
            remove_partial(folder.path, "**/*")
            manifest = work.open()
            if needs_cells(folder, manifest):
                crew = _Crew(min(jobs, 1), None) if experiment.runs_alone else _Crew(jobs, cluster)
                work.complete(manifest, crew, on_progress or _ignore)
            else:
                work.write_judgement_and_figures(manifest)
    return load(folder.path)


def preflight(
    experiment: Experiment,
    out: Path | str,
    *,
    profile: str = "quick",
    seed: int = 0,
    force: bool = False,
) -> None:
    """Refuse at once what `run` would refuse; nothing is written."""
    _Work.of(experiment, out, profile, seed).refuse(force=force)


def needs_cells(folder: Folder, manifest: dict[str, Any]) -> bool:
    """Whether something is missing that comes from the cells."""
    files = [folder.table(name, kind) for name in manifest["tables"] for kind in TABLE_SUFFIXES]
    has_tables = bool(files) and all(file.exists() for file in files)
    return manifest["status"] != "finished" or not has_tables


class _Crew(NamedTuple):
    """Who makes cells: `jobs` processes, or a cluster if there is one."""

    jobs: int
    cluster: Cluster | None

    @property
    def num_processes(self) -> int:
        return self.jobs if self.cluster is None else self.cluster.num_workers

    def make(self, tasks: Sequence[Task], on_done: Callable[[], None]) -> None:
        if self.cluster is None:
            make(tasks, self.jobs, on_done)
        else:
            self.cluster.make(tasks, on_done)


@dataclass(frozen=True)
class _Work:
    """An experiment with all that was chosen for a run of it.

    wanted: the manifest with which it begins.
    """

    experiment: Experiment
    config: Any
    cells: list[Cell]
    folder: Folder
    wanted: dict[str, Any]

    @classmethod
    def of(cls, experiment: Experiment, out: Path | str, profile: str, seed: int) -> "_Work":
        config = experiment.config(profile)
        cells = experiment.checked_cells(config)
        wanted = _new_manifest(experiment, profile, check_seed(seed), len(cells))
        return cls(experiment, config, cells, Folder(Path(out) / experiment.name), wanted)

    def refuse(self, *, force: bool) -> None:
        """Refuse a folder of another run, and to make cells without what they need."""
        path, is_complete = self.folder.path, False
        if not force and path.is_dir() and any(path.iterdir()):
            manifest = read_manifest(self.folder)
            self._check_same(manifest)
            is_complete = not needs_cells(self.folder, manifest)
        if self.experiment.needs and not is_complete:
            self.experiment.needs(self.config)

    def open(self) -> dict[str, Any]:
        """The manifest in the folder if there is one, else a new one, written before the rest."""
        if not self.folder.manifest.exists():
            write_json(self.folder.manifest, self.wanted)
            return self.wanted
        found = read_manifest(self.folder)
        self._check_same(found)
        return found

    def complete(self, manifest: dict[str, Any], crew: _Crew, on_progress: Progress) -> None:
        """Make the cells that are missing, then all that comes from them."""
        tasks = [self._task(cell, manifest["seed"]) for cell in self.cells]
        missing = [task for task in tasks if not task.path.exists()]
        jobs = crew.num_processes
        session: dict[str, Any] = {"started": now(), "git": git_state(), "jobs": jobs, "cells": 0}
        manifest["sessions"].append(session)
        done = len(tasks) - len(missing)
        with clocked(self.folder.manifest, manifest, session) as record:

            def count() -> None:
                nonlocal done
                done += 1
                session["cells"] += 1
                record()
                on_progress(done, len(tasks))

            on_progress(done, len(tasks))
            crew.make(missing, count)
            for task in tasks:  # also what a process left that was killed before it could tidy
                task.tidy()
            manifest["checksums"] = self._write_tables(manifest)
            manifest["tables"] = list(
                dict.fromkeys(Path(file).stem for file in manifest["checksums"])
            )
            manifest["cells"] = {task.cell.id: read_stamp(task.path) for task in tasks}
            self.write_judgement_and_figures(manifest)

    def _task(self, cell: Cell, seed: int) -> Task:
        paths = self.folder.cell(cell.id), self.folder.scratch(cell.id)
        return Task(self.experiment, self.config, cell, seed, *paths)

    def write_judgement_and_figures(self, manifest: dict[str, Any]) -> None:
        """All that comes from the tables, which must be as they were made."""
        folder, experiment = self.folder, self.experiment
        tables = read_tables(folder, manifest)
        if not folder.checks.exists():
            checks, verdict = experiment.judge(self.config, tables)
            content = [check.to_json() for check in checks]
            judged = {"checks": content, "verdict": dataclasses.asdict(verdict)}
            write_json(folder.checks, judged)
        wanted = [folder.figure(name, kind) for name in experiment.captions for kind in SUFFIXES]
        if not all(file.exists() for file in wanted):
            for (name, suffix), picture in experiment.draw(self.config, tables).items():
                _write_missing(folder.figure(name, suffix), picture)

    @contextmanager
    def telling_what_is_safe(self) -> Iterator[None]:
        folder = self.folder
        try:
            yield
        except OSError as error:
            done = len(list(folder.cells.glob("*.npz"))) if folder.cells.is_dir() else 0
            reason = error.strerror or str(error)
            raise ResultsError(
                f"{error.filename or folder.path}: {reason}. {done} of {len(self.cells)} cells are "
                f"safe in {folder.path}: when this is put right, the same command goes on from "
                "there."
            ) from error

    def _check_same(self, found: dict[str, Any]) -> None:
        """Refuse another configuration, seed or data, and cells of two sets of versions."""
        wanted, names = self.wanted, ("name", "profile", "seed", "dtype")
        parts = ({name: one.get(name) for name in names} for one in (found, wanted))
        changes = differences(*parts) or differences(found["config"], wanted["config"])
        changes += self._changed_sources(found)
        if needs_cells(self.folder, found):
            changes += differences(found["versions"], wanted["versions"])
        if changes or found["digest"] != wanted["digest"]:
            raise MismatchError(
                f"{self.folder.path} holds another run: "
                f"{', '.join(changes) or 'its digest differs'}. "
                "Name another folder (--out), or start anew and lose what it holds (--force)."
            )

    def _changed_sources(self, found: dict[str, Any]) -> list[str]:
        """Of manifests that name them; what is finished on real data may be drawn without them."""
        if "sources" not in found:
            return []
        now = dict(self.wanted.get("sources", {}))
        if not needs_cells(self.folder, found):
            now = {name: REAL if found["sources"].get(name) == REAL else now[name] for name in now}
        return differences(found["sources"], now)

    def _write_tables(self, manifest: dict[str, Any]) -> dict[str, str]:
        """Summarise the cells; return the checksum of each file.

        A file that is there and has its checksum stays, if it is the one that was made.  One that
        has none was left by a run that was killed before the manifest knew it.
        """
        results = {cell.id: read_cell(self.folder.cell(cell.id)) for cell in self.cells}
        known, sums = manifest.get("checksums", {}), {}
        for name, table in self.experiment.tables(self.config, results).items():
            for kind, content in zip(
                TABLE_SUFFIXES, (table.to_csv(), table.to_json()), strict=True
            ):
                file = self.folder.table(name, kind)
                if file.name in known and file.exists():
                    content = file.read_bytes()
                    check_table(self.folder, manifest, name, kind, content)
                else:
                    atomic_bytes(file, content)
                sums[file.name] = checksum(content)
        return sums


def _new_manifest(
    experiment: Experiment, profile: str, seed: int, num_cells: int
) -> dict[str, Any]:
    """What a run was: enough to make it again, and nothing about whose machine it was."""
    return {
        "format": FORMAT,
        "title": experiment.title,
        "paper_item": experiment.paper_item,
        "question": experiment.question,
        "command": f"levymc run {experiment.name} --profile {profile} --seed {seed}",
        **experiment.identity(profile, seed),
        "num_cells": num_cells,
        "captions": dict(experiment.captions),
        "introduction": experiment.introduction,
        "terms": dict(experiment.terms),
        "tables": [],
        "git": git_state(),
        "sessions": [],
        **provenance(),
    }


def _ignore(done: int, total: int) -> None:
    """The progress that nobody asked for."""


def _write_missing(path: Path, content: bytes) -> None:
    if not path.exists():
        atomic_bytes(path, content)
