"""Fixtures of the tests of the engine: runs cut into calls, stopped after some, and processes."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from levymc.run import _iterate, _sample, _store


@pytest.fixture
def calls_of(monkeypatch):
    """A function that makes every call of a run have so many steps."""

    def fix(steps):
        monkeypatch.setattr(_iterate, "FIRST_STEPS", steps)
        monkeypatch.setattr(_iterate, "_next_length", lambda *given: steps)

    return fix


@pytest.fixture
def stopped_after(monkeypatch):
    """A context in which runs, stored or not, are stopped by Ctrl-C after so many parts."""

    @contextmanager
    def stop(parts):
        with monkeypatch.context() as patch:
            for sink in (_sample._Memory, _store._Sink):
                patch.setattr(sink, "append", _stopping(sink.append, parts))
            yield

    return stop


def _stopping(append, parts):
    seen = []

    def stop(self, part):
        if len(seen) == parts:
            raise KeyboardInterrupt
        seen.append(part)
        append(self, part)

    return stop


@pytest.fixture
def start_process():
    """A function that starts a script in a session of its own; all that run are killed in the end.

    Its options are variables of the environment.
    """
    started = []

    def start(script, *arguments, **environment):
        root = Path(__file__).parents[2]
        paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths, **environment},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            kill(process)
        process.stdout.close()


def kill(process):
    """With all that it started."""
    with process:  # waits for it, and closes its output
        os.killpg(process.pid, signal.SIGKILL)
