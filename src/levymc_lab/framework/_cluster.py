"""Cells, made by the workers of a Dask cluster: processes of this machine, or of others.

A worker gives the content of a cell's file, which is written here: it need not see the folder of
results.  If it does, a cell that is killed goes on with what it kept there; otherwise from its
beginning.
"""

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from levymc._workdir import ResultsError, make_folder, versions
from levymc_lab import worker

from ._pool import MOST_LOSSES, Task, lost

LOCAL = "local"
SECONDS_TO_CONNECT = 10
SECONDS_FOR_WORKERS = 60
PRELOAD = "dask worker {} --nthreads 1 --preload levymc_lab.worker"
# Of a cluster of our own.  A worker holds the one cell that it makes, so that no other is lost with
# it, and may have all of the memory: it would stop when some is used, and programs stay.
SETTINGS = {
    "distributed.scheduler.allowed-failures": MOST_LOSSES,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.multiprocessing-method": "spawn",  # JAX has threads: no fork
}


class Cluster:
    """A cluster that is there, and all of whose workers can make cells."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @property
    def dashboard(self) -> str:
        """The address of a page on what the workers do."""
        return self.client.dashboard_link

    @property
    def num_workers(self) -> int:
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def make(self, tasks: Sequence[Task], on_done: Callable[[], None]) -> None:
        """Make all cells; that of a worker which is lost is made again by another, some times."""
        from distributed import KilledWorker, as_completed

        if not tasks:
            return
        wanted = worker.order(versions())
        with _token(tasks[0].folder.parent) as token:
            by_key = {f"{task.experiment.name}-{task.cell.id}-{token.name}": task for task in tasks}
            futures = [
                self.client.submit(worker.made, pickle.dumps(_Sent(task, token)), wanted, key=key)
                for key, task in by_key.items()
            ]
            try:
                for future in as_completed(futures):
                    task = by_key[future.key]
                    try:
                        task.write(future.result())
                    except KilledWorker as error:
                        raise lost(task, error.allowed_failures + 1) from error
                    except worker.UnfitError as error:
                        raise ResultsError(f"A worker joined that is of no use: {error}.") from None
                    except ModuleNotFoundError as error:
                        raise ResultsError(
                            f"A worker lacks {error.name}: install there what is installed here."
                        ) from error
                    future.release()  # its content need not stay in the worker's memory
                    on_done()
            finally:
                self.client.cancel(futures, force=True)


class _Sent(NamedTuple):
    """A task on its way to a worker; `token` is a file beside its folder."""

    task: Task
    token: Path

    def content(self) -> bytes:
        if self.token.exists():  # the folder of results is the one that is meant
            return self.task.content()
        with TemporaryDirectory(prefix="levymc-") as folder:
            return self.task._replace(folder=Path(folder) / "cell").content()


@contextmanager
def _token(folder: Path) -> Iterator[Path]:
    """A file of a name that no other machine has, by which a worker knows the folder."""
    make_folder(folder)
    # A later run removes it, if this one is killed.
    token = folder / f"token.{uuid.uuid4().int}.partial"
    token.touch()
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)


@contextmanager
def connect(address: str, jobs: int) -> Iterator[Cluster]:
    """A cluster on this machine, of `jobs` processes, or the one of a scheduler that is running.

    Args:
        address: "local", or that of a scheduler, such as tcp://10.0.0.1:8786.
        jobs: processes of one thread each, on this machine.

    Raises:
        ValueError: there is no such scheduler, or a worker of it cannot make cells; what is wrong
            is named.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--cluster needs {error.name}, which is not installed: pip install 'levymc[cluster]'."
        ) from error
    with ExitStack() as stack:
        if address == LOCAL:
            if jobs < 1:
                raise ValueError(f"`jobs` must be positive with a cluster, got {jobs}.")
            stack.enter_context(dask.config.set(SETTINGS))
            scheduler = stack.enter_context(
                LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    env=worker.settings(),
                    preload=["levymc_lab.worker"],
                    silence_logs="CRITICAL",
                )
            )
        else:
            scheduler = address
        try:
            client = stack.enter_context(Client(scheduler, timeout=SECONDS_TO_CONNECT))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"There is no scheduler at {address}: {error}. Start one by: dask scheduler"
            ) from error
        _check_workers(client, address)
        yield Cluster(client)


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with some that would make other numbers, or none."""
    start = PRELOAD.format(address)
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_WORKERS)
    except TimeoutError as error:
        raise ValueError(
            f"The cluster at {address} has no workers. Start one by: {start}"
        ) from error
    wanted = worker.order(versions())
    for place in client.scheduler_info(n_workers=-1)["workers"]:
        fault = _fault(client, place, wanted)
        if fault:
            raise ValueError(f"The worker at {place} is of no use: {fault}, by: {start}")


def _fault(client: Any, place: str, wanted: worker.Order) -> str:
    """What is wrong with a worker; nothing, if that is empty."""
    try:
        return client.run(worker.inspect, wanted, workers=[place])[place]
    except Exception as error:  # Dask's own, if the worker cannot even import the question
        if "No module named" not in str(error):
            raise
        return f"{error}. Install levymc[cluster,lab] there, in the versions of here, and start one"
