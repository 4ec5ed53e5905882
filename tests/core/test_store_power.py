"""Stores that a kill or a power failure interrupts at any moment: one commit, or the next."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.core import disk_model, stored_run
from tests.core.store_damage import same_bytes

import levymc
from levymc.run import _create, _store

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
CHUNK = 8


@pytest.fixture
def record(tmp_path, monkeypatch, calls_of):
    """A function that runs with a commit after every part, and records what it does to files."""
    monkeypatch.setattr(_create, "MOST_IN_CHUNK", CHUNK)

    def run(steps, per_call):
        calls_of(per_call)
        root = tmp_path / "recorded"
        root.mkdir()
        with monkeypatch.context() as patch, disk_model.recorded(root) as operations:
            patch.setattr(_store, "COMMIT_SECONDS", -1.0)
            whole = stored_run.begin(root / "run", steps)
        assert disk_model.after(operations) == disk_model.tree_of(root)  # nothing goes unseen
        return operations, whole

    return run


def crashes(operations, chance):
    """What is left after each operation, of all that was asked for and of what was safe."""
    safe = disk_model.safe_from(operations)
    for number in range(1, len(operations) + 1):
        done = operations[:number]
        torn = chance.randrange(len(done[-1].content) + 1)
        yield number, disk_model.after(done, torn=torn)
        for is_lucky in (lambda: False, lambda: True, lambda: chance.random() < 0.5):
            yield number, disk_model.after_power_loss(done, safe, is_lucky, chance.choice([0, 0.5]))


def draws_after_commits(operations):
    """Numbers of operations after which a commit is safe, and how many draws there are then."""
    safe, num_draws, written = [], [], {}
    for number, operation in enumerate(operations):
        if operation.kind == "write":
            written[operation.path] = operation.content
        if operation.path.startswith("run/") and operation.target.endswith("/progress.json"):
            done = json.loads(written[operation.path])["done"]
            num_draws.append(max(done - stored_run.BURN_IN, 0) // 5)
            safe.append(number + 2)  # with the folder's synchronisation
    return safe, num_draws


def num_loaded(folder, whole):
    """How many draws are found, which must be those of the whole run."""
    try:
        found = levymc.load(folder)
    except _store.StoreError as error:
        if "no draws yet" not in str(error):
            raise
        return 0
    count = found.num_draws
    assert np.array_equal(found.positions["x"], whole.positions["x"][:, :count])
    assert np.array_equal(found.info.largest_jump, whole.info.largest_jump[:, :count])
    assert np.array_equal(found.steps, whole.steps[:count])
    return count


def replay(operations, whole, tmp_path, *, share_resumed):
    """Crash at every moment; load, and resume some; how often there was which number of draws."""
    chance, seen, root = random.Random(3), set(), tmp_path / "replayed"
    safe, counts = draws_after_commits(operations)
    root.mkdir()
    laid, found, created = {}, [], False
    for number, tree in crashes(operations, chance):
        key = hash(frozenset(tree.items()))
        if key in seen:
            continue
        seen.add(key)
        disk_model.lay_out(tree, root, laid)
        is_there = "run" in tree
        created |= is_there
        if not is_there:
            assert number < safe[0]
            continue
        commits = sum(end <= number for end in safe)
        allowed = [0, *counts][commits : commits + 2]
        count = num_loaded(root / "run", whole)
        assert count in allowed
        found.append(count)
        if chance.random() < share_resumed:
            shutil.copytree(root, tmp_path / "copy")
            assert same_bytes(levymc.resume(tmp_path / "copy/run", progress=False), whole)
            assert not list((tmp_path / "copy/run").rglob("*.partial"))
            assert same_bytes(levymc.load(tmp_path / "copy/run"), whole)
            shutil.rmtree(tmp_path / "copy")
    assert created
    assert set(found) == {0, *counts}
    return found


def test_a_crash_at_any_moment_leaves_one_commit_or_the_next(record, tmp_path):
    operations, whole = record(60, 60)
    assert len(replay(operations, whole, tmp_path, share_resumed=0.03)) > 50


@pytest.mark.nightly
def test_many_commits_and_all_resumed(record, tmp_path):
    operations, whole = record(120, 30)
    assert len(replay(operations, whole, tmp_path, share_resumed=1.0)) > 200


@pytest.mark.nightly
def test_the_model_finds_a_wrong_order(record, tmp_path):
    """Were the progress to name draws that are not synchronised, it would be seen."""
    operations, whole = record(60, 60)
    careless = [
        one for one in operations if "sync" not in one.kind or "posterior/x/c" not in one.path
    ]
    with pytest.raises(_store.StoreError, match=r"damaged: chunk \d of the draws"):
        replay(careless, whole, tmp_path, share_resumed=0.0)
