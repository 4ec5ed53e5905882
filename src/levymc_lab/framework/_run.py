"""Run an experiment into a folder, or go on where it was stopped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from . import _manifest
from ._experiment import Cell, Experiment, check_seed
from ._folder import Folder, ResultsError, write_json
from ._outputs import has_tables, write_judgement_and_figures, write_tables
from ._pool import Task, make
from ._results import Results, load, read_manifest
from ._session import Progress, Session


def run(
    experiment: Experiment,
    out: Path | str = "results",
    *,
    profile: str = "quick",
    seed: int = 0,
    jobs: int = 1,
    force: bool = False,
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
            process, with JAX's own threads, and may differ in the last digits.
        force: start anew, whatever the folder holds.
        on_progress: called with the numbers of cells made and of all.

    Raises:
        MismatchError: the folder holds a run with another configuration, seed or versions.
        ResultsError: the folder cannot be read or written; what it held is still there.
        KeyboardInterrupt: Ctrl-C; the same call goes on.
    """
    if jobs < 0:
        raise ValueError(f"`jobs` must not be negative, got {jobs}. It is a number of processes.")
    preflight(experiment, out, profile=profile, seed=seed, force=force)
    config = experiment.config(profile)
    cells = experiment.checked_cells(config)
    folder = Folder(Path(out) / experiment.name)
    with _telling_what_is_safe(folder, len(cells)):
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder.lock():
            if force:
                folder.clear()
            folder.tidy()
            manifest = _open(folder, _manifest.new(experiment, profile, seed, len(cells)))
            if _needs_cells(folder, manifest):
                session = Session(folder, manifest, jobs, on_progress)
                _complete(experiment, config, cells, folder, manifest, jobs, session)
            else:
                write_judgement_and_figures(experiment, config, manifest["tables"], folder)
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
    num_cells = len(experiment.checked_cells(experiment.config(profile)))
    wanted = _manifest.new(experiment, profile, check_seed(seed), num_cells)
    folder = Folder(Path(out) / experiment.name)
    is_begun = not force and folder.path.is_dir() and any(folder.path.iterdir())
    if is_begun:
        _check(folder, read_manifest(folder), wanted)
    if experiment.needs and not (is_begun and not _needs_cells(folder, read_manifest(folder))):
        experiment.needs(experiment.config(profile))


def _open(folder: Folder, wanted: dict[str, Any]) -> dict[str, Any]:
    """The manifest in the folder if there is one, else a new one, written before anything else."""
    if folder.manifest.exists():
        found = read_manifest(folder)
        _check(folder, found, wanted)
        return found
    write_json(folder.manifest, wanted)
    return wanted


def _check(folder: Folder, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse another run's folder, and cells of two versions in one."""
    is_mixing = _needs_cells(folder, found)
    _manifest.check_same(found, wanted, folder.path, with_versions=is_mixing)


def _needs_cells(folder: Folder, manifest: dict[str, Any]) -> bool:
    return manifest["status"] != "finished" or not has_tables(folder, manifest["tables"])


def _complete(
    experiment: Experiment,
    config: Any,
    cells: Sequence[Cell],
    folder: Folder,
    manifest: dict[str, Any],
    jobs: int,
    session: Session,
) -> None:
    """Make the cells that are missing, then all that comes from them."""
    tasks = [
        Task(experiment, config, cell, manifest["seed"], folder.cell(cell.id))
        for cell in cells
        if not folder.cell(cell.id).exists()
    ]
    done = len(cells) - len(tasks)

    def count() -> None:
        nonlocal done
        done += 1
        session.record("running", done, made=1)

    try:
        session.record("running", done)
        make(tasks, jobs, count)
        manifest["tables"] = write_tables(experiment, config, cells, folder)
        write_judgement_and_figures(experiment, config, manifest["tables"], folder)
        session.record("finished", done)
    except BaseException:
        with suppress(OSError):  # a full disk must not hide why it stopped
            session.record("stopped", done)
        raise


@contextmanager
def _telling_what_is_safe(folder: Folder, num_cells: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        done = len(list(folder.cells.glob("*.npz"))) if folder.cells.is_dir() else 0
        reason = error.strerror or str(error)
        raise ResultsError(
            f"{error.filename or folder.path}: {reason}. {done} of {num_cells} cells are safe in "
            f"{folder.path}: when this is put right, the same command goes on from there."
        ) from error
