"""Runs in shards: the same bytes, however many processes make them and whatever ends these."""

import os
import shutil
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core import sharded_run, stored_run
from tests.core.conftest import kill

import levymc
from levymc._workdir import InUseError, lock
from levymc.run import _chunks, _create, _divide, _sample, _shards, _store, _work

NAMES = ["shard-0000", "shard-0001", "shard-0002"]


@pytest.fixture(autouse=True)
def as_in_the_processes(monkeypatch):
    monkeypatch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)
    monkeypatch.setattr(_work, "PAUSE", 0.05)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A complete run in shards, made by one process."""
    folder = tmp_path_factory.mktemp("shards") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)
        return folder, sharded_run.begin(folder)


@pytest.fixture
def run(original, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(original[0], tmp_path / "run", symlinks=True))


@pytest.fixture
def begun(run):
    """A copy of it, with steps to make in every shard."""
    _work.extend(run, 1200)
    return run


def same(one, other):
    return sharded_run.checksum(one) == sharded_run.checksum(other)


def opened(folder):
    xarray = pytest.importorskip("xarray")
    return xarray.open_zarr(folder, group="posterior")["x"]


# One process.


def test_shards_have_the_draws_of_a_run_without_them(original):
    """To rounding: the programs are for fewer chains.  The keys are those of all chains."""
    folder, result = original
    whole = sharded_run.begin(None)
    assert sorted(path.name for path in (folder / "levymc").iterdir()) == [*NAMES, "shards.json"]
    for one, other in zip(
        jax.tree.leaves((result.positions, result.observed, result.info)),
        jax.tree.leaves((whole.positions, whole.observed, whole.info)),
        strict=True,
    ):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(result.steps, whole.steps)
    assert (result.algorithm, result.is_exact) == (whole.algorithm, whole.is_exact)
    assert not result.is_interrupted


def test_all_that_reads_a_run_joins_its_shards(original, monkeypatch):
    folder, result = original
    assert same(levymc.load(folder), result)
    seen = opened(folder)
    np.testing.assert_array_equal(seen.values, result.positions["x"])
    assert seen["chain"].values.tolist() == [0, 1, 2, 3, 4]
    last = levymc.load(folder / "levymc" / NAMES[2])  # a store like any other
    np.testing.assert_array_equal(last.positions["x"], result.positions["x"][4:])
    monkeypatch.setattr(_chunks, "LARGEST_IN_MEMORY", 0)
    lazy = levymc.load(folder).positions["x"]
    assert isinstance(lazy, _chunks.OnDisk)
    np.testing.assert_array_equal(lazy[1:4, 60:70], result.positions["x"][1:4, 60:70])
    np.testing.assert_array_equal(np.asarray(lazy), result.positions["x"])


def test_the_same_call_again_gives_the_same_and_another_is_refused(run, original):
    assert same(sharded_run.begin(run), original[1])
    with pytest.raises(levymc.run.StoreError, match="its shards is 3, not 5"):
        sharded_run.begin(run, shards=5)
    with pytest.raises(levymc.run.StoreError, match="its num_steps is 1000, not 900"):
        sharded_run.begin(run, 900)
    with pytest.raises(levymc.run.StoreError, match=r"exists\. Go on with levymc\.resume"):
        sharded_run.begin(run, shards=None)


def test_more_steps_are_made_of_all_shards(begun, original):
    resumed = levymc.resume(begun, progress=False)
    assert resumed.num_draws == 240
    np.testing.assert_array_equal(resumed.positions["x"][:, :200], original[1].positions["x"])
    assert same(levymc.load(begun), resumed)
    np.testing.assert_array_equal(opened(begun).values, resumed.positions["x"])
    with pytest.raises(ValueError, match="`num_steps` must be at least the 1200 steps"):
        levymc.resume(begun, num_steps=1100)


def test_numbers_and_data_of_each_chain_stay_its_own(tmp_path):
    """A sweep over step sizes, whose minibatches are drawn in the program."""
    data = jnp.arange(12.0, dtype=jnp.float32)

    def gradient(position, batch):
        return jnp.mean(batch) - position

    sizes = [0.1, 0.2, 0.3, 0.4, 0.5]
    each = [levymc.sgld(gradient, size) for size in sizes]
    given = {"minibatches": levymc.batches(data, 3), "progress": False}
    key, starts = jax.random.key(1), jnp.arange(5, dtype=jnp.float32)
    whole = levymc.sample(each, key, starts, 20, **given)
    result = levymc.sample(each, key, starts, 20, store=tmp_path / "run", shards=2, **given)
    np.testing.assert_allclose(result.positions, whole.positions, rtol=1e-5)
    np.testing.assert_array_equal(result.weights, whole.weights)
    files = [tmp_path / "run" / "levymc" / name / "levymc" / "data.npz" for name in NAMES[:2]]
    assert files[0].samefile(files[1])  # once on disk


def test_what_is_left_to_others_is_told(begun):
    with lock(begun / "levymc" / NAMES[1]):
        assert levymc.run.work(begun, progress=False) == (2, 3, (1,))
        so_far = levymc.load(begun)
        assert so_far.is_interrupted
        assert so_far.num_draws == 200
        assert opened(begun).shape[1] == 200
    assert levymc.run.work(begun, progress=False) == (1, 3, ())
    assert levymc.load(begun).num_draws == opened(begun).shape[1] == 240


def test_who_wants_the_result_waits_for_others_and_takes_over(begun, monkeypatch):
    """The claim of a process that is stopped is told of, and free once it is ended."""
    monkeypatch.setattr(_work, "SECONDS_TO_DOUBT", 0.1)
    claim, warn = ExitStack(), _work._warn_of_silence
    claim.enter_context(lock(begun / "levymc" / NAMES[1]))

    def end_it_when_warned(left):
        warn(left)
        claim.close()

    monkeypatch.setattr(_work, "_warn_of_silence", end_it_when_warned)
    with pytest.warns(UserWarning, match=r"claimed shard-0001\. .* are taken over"):
        result = levymc.resume(begun, progress=False)
    assert result.num_draws == 240
    assert not result.is_interrupted


def test_ctrl_c_gives_what_all_chains_have(begun, tmp_path, stopped_after):
    with stopped_after(0):
        result = levymc.resume(begun, progress=False)
    assert result.is_interrupted
    assert result.num_draws == 200
    with stopped_after(0), pytest.raises(KeyboardInterrupt, match="before all chains had a draw"):
        sharded_run.begin(tmp_path / "new")
    with pytest.raises(levymc.run.StoreError, match="no draws of all chains yet: shard-0000"):
        levymc.load(tmp_path / "new")


# Two that begin.


def test_who_comes_second_joins_the_first(run, original, monkeypatch):
    """Both found the place free; the folder of the second cannot be put there any more."""
    monkeypatch.setattr(_divide, "is_free", lambda path: True)
    assert same(sharded_run.begin(run), original[1])
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_folder_that_another_takes_for_abandoned_is_made_again(tmp_path, monkeypatch):
    real, taken = _create.lock, []

    def lock_too_late(folder):
        if not taken:
            taken.append(folder)
            folder.rmdir()
            raise InUseError
        return real(folder)

    monkeypatch.setattr(_create, "lock", lock_too_late)
    _create.put(tmp_path / "run", lambda building: (building / "file").touch())
    assert taken
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# Damage, and what is refused.


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1  # the second half of the last shard's chunks is no chain's
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: flip(f / NAMES[2] / "posterior/x/c/0/1/0"), "shard-0002 is damaged: chunk 1"),
        (lambda f: flip(f / NAMES[1] / "levymc/advance.bin"), "shard-0001 is damaged"),
        (lambda f: flip(f / "shards.json"), r"levymc/shards\.json|not as it was written"),
        (lambda f: shutil.rmtree(f / NAMES[1]), "shard-0001 is not a store"),
        (lambda f: exchange(f / NAMES[0], f / NAMES[1]), "shard-0000 is not the one"),
    ],
)
def test_a_damaged_shard_is_refused(begun, damage, told):
    damage(begun / "levymc")
    for use in (levymc.load, levymc.resume):
        with pytest.raises(levymc.run.StoreError, match=told):
            use(begun)


def exchange(one, other):
    one.rename(one.with_name("third"))
    other.rename(one)
    one.with_name("third").rename(other)


def test_what_other_tools_see_is_checked_and_made_again(run, original):
    link = run / "posterior/x/c/1"
    link.unlink()
    link.symlink_to("../../../levymc/shard-0000/posterior/x/c/0")
    with pytest.raises(levymc.run.StoreError, match=r"posterior/x/c/1 is not what shard-0001 has"):
        levymc.load(run)
    assert same(levymc.resume(run, progress=False), original[1])
    assert same(levymc.load(run), original[1])


def test_a_copy_without_links_can_be_read_and_gone_on_with(original, tmp_path):
    copy = Path(shutil.copytree(original[0], tmp_path / "copy"))
    assert not (copy / "posterior/x/c/1").is_symlink()
    assert same(levymc.load(copy), original[1])
    resumed = levymc.resume(copy, num_steps=1200, progress=False)
    assert (copy / "posterior/x/c/1").is_symlink()
    np.testing.assert_array_equal(opened(copy).values, resumed.positions["x"])


def test_refusals(run, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="`store` must be given with `shards`"):
        sharded_run.begin(None, shards=2)
    with pytest.raises(ValueError, match="at most the number of chains, 5, got 6"):
        sharded_run.begin(tmp_path / "new", shards=6)
    with pytest.raises(ValueError, match="`until` must be None"):
        sharded_run.begin(tmp_path / "new", until=lambda result: True)
    with pytest.raises(ValueError, match="`until` must be None"):
        levymc.resume(run, until=lambda result: True)
    for use in (sharded_run.begin, levymc.resume, levymc.load, levymc.run.work):
        with pytest.raises(ValueError, match=r"'s3://bucket/run'\. Object stores have"):
            use("s3://bucket/run")
    with pytest.raises(levymc.run.StoreError, match="shard-0001, which has none"):
        levymc.run.work(run / "levymc" / NAMES[1])
    monkeypatch.setattr(_sample, "HAS_LOCKS", False)
    with pytest.raises(ValueError, match="`shards` must be None on this system"):
        sharded_run.begin(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# Real processes, each in a group of its own.


@pytest.fixture
def start(start_process):
    """A function that starts a process that makes a run."""
    return lambda folder, pause=0.0: start_process(sharded_run.__file__, folder, pause)


def wait_for_claims(folder, count, processes):
    """Until so many shards are being made."""
    deadline = time.monotonic() + 240
    while len(claimed(folder)) < count:
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)


def claimed(folder):
    """The shards that have some steps, but not all."""
    if not _shards.is_sharded(folder):
        return []
    made = [_store.glimpse(folder / "levymc" / name).done for name in NAMES]
    return [number for number, done in enumerate(made) if 0 < done < sharded_run.STEPS]


def assert_all_give(processes, result):
    for process in processes:
        told, _ = process.communicate(timeout=240)
        assert process.returncode == 0
        assert told.strip() == sharded_run.checksum(result)


@pytest.mark.nightly
def test_two_processes_that_begin_at_once_share_the_run(tmp_path, start, original):
    """Neither knows of the other; both give the bytes that one process gives."""
    folder = tmp_path / "run"
    assert_all_give([start(folder), start(folder)], original[1])
    assert same(levymc.load(folder), original[1])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_processes_gives_the_same_bytes(tmp_path, start, original, count):
    folder = tmp_path / "run"
    assert_all_give([start(folder, 0.05) for _ in range(count)], original[1])
    assert same(levymc.load(folder), original[1])
    np.testing.assert_array_equal(opened(folder).values, original[1].positions["x"])


@pytest.mark.nightly
@pytest.mark.slow
def test_the_shard_of_a_killed_process_is_finished_by_another(tmp_path, start, original):
    folder = tmp_path / "run"
    processes = [start(folder, 0.3), start(folder, 0.3)]
    wait_for_claims(folder, 2, processes)
    kill(processes.pop(0))
    assert_all_give(processes, original[1])
    assert not list(folder.rglob("*.partial"))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_all_are_killed_and_others_go_on(tmp_path, start, original, before, after):
    folder = tmp_path / "run"
    processes = [start(folder, 0.3) for _ in range(before)]
    wait_for_claims(folder, before, processes)
    for process in processes:
        kill(process)
    with pytest.raises(levymc.run.StoreError, match="no draws of all chains yet"):
        levymc.load(folder)
    assert_all_give([start(folder) for _ in range(after)], original[1])
    assert same(levymc.load(folder), original[1])


@pytest.mark.nightly
@pytest.mark.slow
def test_a_stopped_process_keeps_its_shard_until_it_is_ended(tmp_path, start, original):
    folder = tmp_path / "run"
    stopped = start(folder, 0.3)
    wait_for_claims(folder, 1, [stopped])
    os.killpg(stopped.pid, signal.SIGSTOP)
    (number,) = claimed(folder)
    assert levymc.run.work(folder, progress=False) == (2, 3, (number,))
    kill(stopped)
    assert same(levymc.resume(folder, progress=False), original[1])
