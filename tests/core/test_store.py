"""Stored runs: the same bytes, whatever happens to the process or the disk."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from tests.core import stored_run

import levymc
from levymc.run import _plan, _store

WORKER = [sys.executable, str(Path(stored_run.__file__))]
SHORT = 2_000


def assert_same_bytes(one, other):
    leaves = zip(
        jax.tree.leaves((one.positions, one.info)),
        jax.tree.leaves((other.positions, other.info)),
        strict=True,
    )
    for left, right in leaves:
        assert left.dtype == right.dtype
        assert np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "run"
    return folder, stored_run.begin(folder, SHORT)


@pytest.fixture
def stored(original, tmp_path):
    """A copy of a finished run, to be damaged, and its result."""
    shutil.copytree(original[0], tmp_path / "run")
    return tmp_path / "run", original[1]


def test_a_store_changes_no_byte(stored):
    folder, result = stored
    assert_same_bytes(result, stored_run.begin(None, SHORT))
    assert_same_bytes(result, levymc.load(folder))
    assert_same_bytes(result, levymc.resume(folder, progress=False))


def chunks_done(folder):
    try:
        return len(json.loads((folder / "progress.json").read_text())["chunks"])
    except OSError:
        return 0


def kill_once(folder, chance, *, early):
    """Start the run, and kill it: at any moment, or shortly after a chunk."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "cache")}
    eager = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    process = subprocess.Popen([*WORKER, str(folder)], env=os.environ | cache | eager)
    before = chunks_done(folder)
    if early:
        time.sleep(chance.uniform(0, 3))
    else:
        deadline = time.monotonic() + 120
        while chunks_done(folder) == before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    return process.wait()


@pytest.mark.slow
def test_twenty_kills_change_no_byte(tmp_path):
    """SIGKILL at 20 random moments, four of them while the run is still being set up."""
    folder, chance = tmp_path / "run", random.Random(20)
    codes = [kill_once(folder, chance, early=kill < 4) for kill in range(20)]
    assert codes == [-signal.SIGKILL] * 20
    done = chunks_done(folder)
    assert 16 <= done < 400  # each of the later kills let at least one chunk through
    assert levymc.load(folder).is_interrupted
    resumed = levymc.resume(folder, progress=False)
    assert_same_bytes(resumed, stored_run.begin(None))


def test_an_interrupted_store_goes_on(tmp_path, monkeypatch):
    append, folder = _store._Sink.append, tmp_path / "run"

    def interrupt(self, chunk, draws, states):
        if chunk == 5:
            raise KeyboardInterrupt
        append(self, chunk, draws, states)

    monkeypatch.setattr(_store._Sink, "append", interrupt)
    part = stored_run.begin(folder, SHORT)
    assert part.is_interrupted
    assert part.num_draws == 10
    monkeypatch.undo()
    assert_same_bytes(levymc.resume(folder, progress=False), stored_run.begin(None, SHORT))


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    flush, calls, folder = _store.flush, [], tmp_path / "run"

    def full(files, within):
        calls.append(files)
        if len(calls) == 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(files, within)

    monkeypatch.setattr(_store, "flush", full)
    with pytest.raises(OSError, match=r"safe in .* go on with levymc\.resume") as caught:
        stored_run.begin(folder, SHORT)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert levymc.load(folder).num_draws > 0
    assert_same_bytes(levymc.resume(folder, progress=False), stored_run.begin(None, SHORT))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda f: flip(next((f / "draws.zarr/0/c/0/3").rglob("0"))), "chunk 3 of the draws"),
        (lambda f: flip(f / "keys.npy"), "keys.npy"),
        (lambda f: flip(f / "draw.bin"), "draw.bin"),
        (lambda f: next(f.glob("state-20.npz")).unlink(), "state-20.npz is missing"),
        (lambda f: (f / "progress.json").write_text('{"chunks": ['), "not a store"),
        (lambda f: (f / "run.json").unlink(), "not a store"),
        (lambda f: (f / "run.json").write_text(99_999 * "["), "not a store"),
    ],
)
def test_damage_is_found_and_named(stored, damage, what):
    folder, _ = stored
    damage(folder)
    with pytest.raises(_store.StoreError, match=what):
        levymc.resume(folder, progress=False)


def flip(file):
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_a_store_is_not_written_over(stored):
    folder, _ = stored
    with pytest.raises(_store.StoreError, match="exists"):
        stored_run.begin(folder, SHORT)


def test_a_store_in_use_is_refused(stored):
    folder, _ = stored
    with _store.lock(folder), pytest.raises(RuntimeError, match="in use"):
        levymc.resume(folder, progress=False)


def test_chunks_are_bounded_in_memory():
    cut = _plan.cut_run(num_draws=1000, thin=1, draw_bytes=4 * 8 * 2**20, bit_bytes=2**20)
    assert cut.chunk == 2
