"""Cells on a Dask cluster: the same results as without, whatever becomes of its workers."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.lab.toy_experiment import EXPERIMENT, contents
from typer.testing import CliRunner

from levymc import _workdir
from levymc_lab import framework, worker
from levymc_lab.cli import app
from levymc_lab.framework import ResultsError, _cluster, _registry

pytest.importorskip("distributed")


@pytest.fixture
def one_thread(monkeypatch):
    """Let this process pass for a worker that was started as it should be."""
    for name, value in worker.settings().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def thread(one_thread):
    """A cluster whose one worker is a thread of this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as local,
        Client(local) as client,
    ):
        yield framework.Cluster(client)


def test_cells_of_a_cluster_are_those_of_a_process(tmp_path, thread):
    """Also in a run that was stopped, and goes on."""
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        framework.run(EXPERIMENT, tmp_path / "many", cluster=thread, on_progress=stop)
    assert seen == [(0, 4), (1, 4), (2, 4)]  # each was written as it came
    results = framework.run(EXPERIMENT, tmp_path / "many", cluster=thread)
    assert [session["cells"] for session in results.manifest["sessions"]] == [2, 2]
    framework.run(EXPERIMENT, tmp_path / "one", jobs=0)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_a_worker_keeps_what_it_needs_where_it_sees_the_results(tmp_path):
    folders = []

    class Noted:
        def __init__(self, folder):
            self.folder = folder

        def _replace(self, folder):
            return Noted(folder)

        def content(self):
            folders.append(self.folder)
            return b""

    with _cluster._token(tmp_path / "cells") as token:
        _cluster._Sent(Noted(tmp_path / "cells/cell-0"), token).content()
    _cluster._Sent(Noted(tmp_path / "cells/cell-0"), token).content()
    assert folders[0] == tmp_path / "cells/cell-0"
    assert tmp_path not in folders[1].parents
    assert not folders[1].parent.exists()
    assert list((tmp_path / "cells").iterdir()) == []


def test_a_process_that_is_not_like_the_command_is_refused(monkeypatch, one_thread):
    like = worker.order(_workdir.versions())
    assert worker.inspect(like) == ""
    other = like._replace(versions={**like.versions, "jax": "0.0.1"})
    assert "it has jax 0." in worker.inspect(other)
    assert "not 0.0.1 as here" in worker.inspect(other)
    assert "not installed" in worker.inspect(like._replace(versions={"no-such-thing": "1"}))
    monkeypatch.setenv("NPROC", "2")  # and JAX is imported
    assert "it has imported JAX without NPROC='1'" in worker.inspect(like)


def test_settings_are_made_before_jax_is_imported(monkeypatch, one_thread):
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv("NPROC", "2")
    assert worker.inspect(worker.Order({}, {"JAX_PLATFORMS": "cpu"})) == ""
    assert os.environ["NPROC"] == "1"


def test_there_must_be_a_scheduler(tmp_path, monkeypatch):
    monkeypatch.setitem(_registry.MODULES, "toy", "tests.lab.toy_experiment")
    monkeypatch.setattr(_cluster, "SECONDS_TO_CONNECT", 0.2)
    arguments = ["run", "toy", "--out", str(tmp_path), "--cluster", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "There is no scheduler at tcp://127.0.0.1:9" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_the_cells_of_a_lost_worker_run_again(tmp_path, monkeypatch):
    """The process that sleeps in cell-2 is killed, when all other cells are made."""
    asleep = tmp_path / "asleep"
    monkeypatch.setenv("TOY", f"sleep:{asleep}")
    with framework.connect("local", 2) as cluster:
        assert cluster.dashboard.startswith("http://127.0.0.1:")

        def kill(done, total):
            if done == total - 1:
                pid = wait_for(asleep)
                assert pid in cluster.client.run(os.getpid).values()
                os.kill(pid, signal.SIGKILL)

        results = framework.run(EXPERIMENT, tmp_path / "many", cluster=cluster, on_progress=kill)
    assert [session["jobs"] for session in results.manifest["sessions"]] == [2]
    framework.run(EXPERIMENT, tmp_path / "one", jobs=1)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


@pytest.mark.nightly
def test_a_cell_that_loses_every_worker_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY", "kill")
    with (
        framework.connect("local", 2) as cluster,
        pytest.raises(ResultsError, match="Cell cell-2 of toy was begun 3 times"),
    ):
        framework.run(EXPERIMENT, tmp_path, cluster=cluster)


def wait_for(file: Path) -> int:
    """The number in a file, once it is there."""
    deadline = time.monotonic() + 50
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(file.read_text())
