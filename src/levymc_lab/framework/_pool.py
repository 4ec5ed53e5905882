"""Cells, made in other processes or in this one."""

import dataclasses
import multiprocessing
import os
import shutil
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from levymc._workdir import ResultsError, atomic_bytes
from levymc_lab import worker

from ._experiment import Cell, Experiment
from ._results import cell_bytes

TASKS_OF_A_PROCESS = worker.MOST_CELLS
MOST_LOSSES = 2  # processes that a cell may lose; it is tried once more than that


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

    def content(self) -> bytes:
        """Make the cell: the content of its file."""
        cell = dataclasses.replace(self.cell, folder=self.folder)
        with self.experiment.precision():
            return cell_bytes(self.experiment.run_cell(self.config, cell, cell.key(self.seed)))

    def write(self, content: bytes) -> None:
        """Keep the cell, and remove what it needed until then."""
        atomic_bytes(self.path, content)
        self.tidy()

    def work(self) -> None:
        """Make the cell and write it."""
        self.write(self.content())

    def tidy(self) -> None:
        """Remove what the cell kept, now that it is made."""
        shutil.rmtree(self.folder, ignore_errors=True)


def make(tasks: Sequence[Task], jobs: int, on_done: Callable[[], None]) -> None:
    """Make all cells in `jobs` processes; with 0 in this one.

    The cell of a process that is killed is made again by another, some times.  On Ctrl-C, or if a
    cell fails, the processes are stopped where they are, inside compiled code, too: what they had
    not written is made again next time.
    """
    if jobs == 0:
        for task in tasks:
            task.work()
            on_done()
    elif tasks:
        _make_elsewhere(tasks, min(jobs, len(tasks)), on_done)


def _make_elsewhere(tasks: Sequence[Task], jobs: int, on_done: Callable[[], None]) -> None:
    others = multiprocessing.active_children()
    processes = [_new_process() for _ in range(jobs)]
    try:
        with _environment(worker.settings()):  # processes are started all along
            _share_out(deque(tasks), processes, on_done)
    except BaseException:
        for process in processes:
            process.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        raise
    for process in processes:
        process.shutdown()


def _new_process() -> ProcessPoolExecutor:
    """A process, which makes way for another after some cells.

    A pool of one: where the process of a larger one is killed, nobody knows whose cell it had.
    """
    context = multiprocessing.get_context("spawn")  # JAX has threads: it must not be forked
    return ProcessPoolExecutor(1, context, _prepare_worker, max_tasks_per_child=TASKS_OF_A_PROCESS)


def _share_out(
    waiting: deque[Task], processes: list[ProcessPoolExecutor], on_done: Callable[[], None]
) -> None:
    """Give each process a cell, and the next when it is made."""
    running: dict[Future[None], tuple[int, Task]] = {}
    losses: Counter[str] = Counter()
    free = list(range(len(processes)))
    while waiting or running:
        while free and waiting:
            place, task = free.pop(), waiting.popleft()
            running[processes[place].submit(task.work)] = place, task
        for future in wait_for(running, return_when=FIRST_COMPLETED).done:
            place, task = running.pop(future)
            free.append(place)
            try:
                future.result()
            except BrokenProcessPool as error:
                losses[task.cell.id] += 1
                if losses[task.cell.id] > MOST_LOSSES:
                    raise lost(task, losses[task.cell.id]) from error
                processes[place].shutdown(wait=False)
                processes[place] = _new_process()
                waiting.appendleft(task)
            else:
                on_done()


def lost(task: Task, times: int) -> ResultsError:
    """The error of a cell that no process could make."""
    return ResultsError(
        f"Cell {task.cell.id} of {task.experiment.name} was begun {times} times, and each time its "
        " process was killed, perhaps for want of memory. What was finished is safe: "
        "the same command goes on from there, with fewer --jobs in less memory."
    )


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.keep_programs()
    parent = multiprocessing.parent_process()

    def watch() -> None:
        wait([parent.sentinel] if parent else [])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
