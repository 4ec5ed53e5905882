"""Fixtures of the tests of the engine: runs cut into calls, and stopped after some of them."""

from contextlib import contextmanager

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
