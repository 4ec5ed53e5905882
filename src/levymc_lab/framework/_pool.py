"""Cells, made in other processes or in this one."""

import dataclasses
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from levymc._workdir import ResultsError

from ._experiment import Cell, Experiment
from ._results import write_cell

# What JAX has compiled stays in a process: after some 150 cells of the contest there was no memory
# left for more.
TASKS_OF_A_PROCESS = 32


class Task(NamedTuple):
    """A cell to make, and the file for it.

    folder: what it may keep to go on if it is killed.
    """

    experiment: Experiment
    config: Any
    cell: Cell
    seed: int
    path: Path
    folder: Path

    def work(self) -> None:
        """Make the cell and write it."""
        cell = dataclasses.replace(self.cell, folder=self.folder)
        with self.experiment.precision():
            write_cell(self.path, self.experiment.run_cell(self.config, cell, cell.key(self.seed)))
        self.tidy()

    def tidy(self) -> None:
        """Remove what the cell kept, now that it is made."""
        shutil.rmtree(self.folder, ignore_errors=True)


def make(tasks: Sequence[Task], jobs: int, on_done: Callable[[], None]) -> None:
    """Make all cells in `jobs` processes; with 0 in this one.

    On Ctrl-C, or if a cell fails, the processes are stopped where they are, inside compiled code,
    too: what they had not written is made again next time.
    """
    if jobs == 0:
        for task in tasks:
            task.work()
            on_done()
    elif tasks:
        _make_elsewhere(tasks, min(jobs, len(tasks)), on_done)


def _make_elsewhere(tasks: Sequence[Task], jobs: int, on_done: Callable[[], None]) -> None:
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")  # JAX has threads: it must not be forked
    executor = ProcessPoolExecutor(
        jobs, context, _prepare_worker, max_tasks_per_child=TASKS_OF_A_PROCESS
    )
    try:
        with _environment(_worker_settings()):  # processes are started all along
            futures = [executor.submit(task.work) for task in tasks]
            for future in as_completed(futures):
                future.result()
                on_done()
    except BaseException as error:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise ResultsError(
                "A process that made cells was killed, perhaps for want of memory. "
                "What was finished is safe: the same command goes on from there."
            ) from error
        raise
    executor.shutdown()


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        wait([parent.sentinel] if parent else [])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _worker_settings() -> dict[str, str]:
    """Settings of a worker's environment, read when it imports NumPy and starts JAX.

    One thread each: XLA cuts a program by the number of threads, and rounds as it cuts, so that
    the same numbers to the last bit need the same threads whatever the machine and `jobs`.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"
    return {
        "NPROC": "1",  # read by XLA
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "XLA_FLAGS": flags.strip(),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes may share a GPU
    }


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """The environment of processes started inside."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
