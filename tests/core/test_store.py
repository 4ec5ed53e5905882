"""Stored runs: the same bytes, whatever happens to the process or the disk; and for other tools."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core import stored_run

import levymc
from levymc import schedules
from levymc.run import _chunks, _compare, _create, _integrity, _store

WORKER = [sys.executable, str(Path(stored_run.__file__))]
SHORT = 400  # steps; 80 draws


def assert_same_bytes(one, other):
    leaves = zip(
        jax.tree.leaves((one.positions, one.info, one.observed, one.steps)),
        jax.tree.leaves((other.positions, other.info, other.observed, other.steps)),
        strict=True,
    )
    for left, right in leaves:
        assert left.dtype == right.dtype
        assert np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes()


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """As in the worker: many chunks in a short run."""
    monkeypatch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)


@pytest.fixture
def always_committed(monkeypatch):
    monkeypatch.setattr(_store, "COMMIT_SECONDS", -1.0)


@pytest.fixture(scope="module")
def whole():
    """The draws of a run without a store."""
    return stored_run.begin(None, SHORT)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)
        return folder, stored_run.begin(folder, SHORT)


@pytest.fixture
def stored(original, tmp_path):
    """A copy of a finished run, to be damaged, and its result."""
    shutil.copytree(original[0], tmp_path / "run")
    return tmp_path / "run", original[1]


def test_a_store_changes_no_byte(stored, whole):
    folder, result = stored
    assert_same_bytes(result, whole)
    assert_same_bytes(result, levymc.load(folder))
    assert_same_bytes(result, levymc.resume(folder, progress=False))


# Processes that are killed.


def progress_of(folder):
    try:
        return json.loads((folder / "levymc" / "progress.json").read_text())
    except OSError:
        return {"done": 0}


def start_worker(folder, *arguments):
    """With the cache of compiled programs that the tests have."""
    return subprocess.Popen([*WORKER, str(folder), *map(str, arguments)])


def wait_for_steps(folder, more_than):
    deadline = time.monotonic() + 240
    while progress_of(folder)["done"] <= more_than:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill_once(folder, chance, *arguments, early):
    """Start the run, and kill it: at any moment, or shortly after something was saved."""
    process, before = start_worker(folder, *arguments), progress_of(folder)["done"]
    if early:
        time.sleep(chance.uniform(0, 3))
    else:
        wait_for_steps(folder, before)
        time.sleep(chance.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    return process.wait()


def assert_kills_change_no_byte(folder, kills, early):
    """The run has more steps to make than there is time for, whatever delays its killer."""
    chance = random.Random(20)
    codes = [kill_once(folder, chance, 10**9, early=number < early) for number in range(kills)]
    assert codes == [-signal.SIGKILL] * kills
    assert levymc.load(folder).is_interrupted
    num_steps = progress_of(folder)["done"] + 1000
    resumed = levymc.resume(folder, num_steps=num_steps, progress=False)
    assert_same_as_whole(folder, resumed, num_steps)


def assert_same_as_whole(folder, resumed, num_steps, until=None):
    observe = {"mean": levymc.observe.mean(stored_run.first)}
    given = {"observe": observe, "keep": True, "until": until}
    assert_same_bytes(resumed, stored_run.begin(None, num_steps, **given))
    assert not resumed.is_interrupted
    assert not levymc.load(folder).is_interrupted
    assert not list(folder.rglob("*.partial"))
    posterior = opened(folder, "posterior")
    np.testing.assert_array_equal(posterior["x"].values, resumed.positions["x"])


@pytest.mark.slow
def test_three_kills_change_no_byte(tmp_path):
    """SIGKILL at three random moments after something was saved."""
    assert_kills_change_no_byte(tmp_path / "run", 3, 0)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_rule_ends_a_killed_run_where_it_ends_the_whole(tmp_path):
    """SIGKILL at two random moments before its end, which is before that of the steps.

    On a busy machine the run may end before it is killed, and is no test then, but no fault.
    """
    folder, chance = tmp_path / "run", random.Random(20)
    for _ in range(2):
        if progress_of(folder)["done"] < 5_000:
            kill_once(folder, chance, 20_000, "until", early=False)
    resumed = levymc.resume(folder, progress=False, until=stored_run.often_far)
    assert_same_as_whole(folder, resumed, 20_000, stored_run.often_far)
    assert 5_000 < progress_of(folder)["num_steps"] < 20_000


@pytest.mark.nightly
@pytest.mark.slow
def test_twenty_kills_change_no_byte(tmp_path):
    """SIGKILL at 20 random moments, four of them while the run is still being set up."""
    assert_kills_change_no_byte(tmp_path / "run", 20, 4)


@pytest.mark.slow
def test_readers_see_whole_draws_while_a_run_writes(tmp_path):
    """Its draws grow, are those of the run, and nothing is ever reported as damaged.

    Also to xarray, which knows nothing of levymc's files.
    """
    folder = tmp_path / "run"
    process = start_worker(folder, 10**9)
    try:
        wait_for_steps(folder, stored_run.BURN_IN + 5)
        seen, begun = [], time.monotonic()
        looked = 2.5 if os.environ.get("LEVYMC_TEST_FULL") else 1.0
        while time.monotonic() < begun + looked or len({one.num_draws for one in seen}) < 3:
            assert time.monotonic() < begun + 120  # there is more and more to see
            result = levymc.load(folder)
            assert result.is_interrupted
            steps = opened(folder, "posterior")["draw"].values
            np.testing.assert_array_equal(steps, 5 * np.arange(1, len(steps) + 1))
            seen.append(result)
        assert process.poll() is None  # it was writing all the time
    finally:
        process.kill()
        process.wait()
    counts = [result.num_draws for result in seen]
    assert counts == sorted(counts)
    last = seen[-1].positions["x"]
    for result in seen:
        np.testing.assert_array_equal(result.positions["x"], last[:, : result.num_draws])


# Runs that are stopped.


def test_an_interrupted_store_goes_on(tmp_path, calls_of, stopped_after, whole):
    folder = tmp_path / "run"
    calls_of(20)
    with stopped_after(6):
        part = stored_run.begin(folder, SHORT)
    assert part.is_interrupted
    assert part.num_draws == 20  # the first call is the burn-in
    assert_same_bytes(levymc.load(folder), part)
    assert_same_bytes(levymc.resume(folder, progress=False), whole)


def test_the_burn_in_is_saved(tmp_path, calls_of, stopped_after):
    """A run that is stopped in it goes on from there, and has no draws yet."""
    folder = tmp_path / "run"
    calls_of(20)
    with stopped_after(3), pytest.raises(_store.StoreError, match="no draws yet"):
        stored_run.begin(folder, SHORT, burn_in=100)
    assert progress_of(folder)["done"] == 60
    with pytest.raises(_store.StoreError, match=r"no draws yet.*resume"):
        levymc.load(folder)
    assert opened(folder, "posterior")["x"].shape == (4, 0, 2)
    made = []
    march = _store.follow

    def note(run, carry, done, sink, **options):
        made.append(done)
        return march(run, carry, done, sink, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_store, "follow", note)
        resumed = levymc.resume(folder, progress=False)
    assert made == [60]
    assert_same_bytes(resumed, stored_run.begin(None, SHORT, burn_in=100))


@pytest.mark.parametrize("num_steps", [500, 1003])
def test_a_longer_run_is_an_extension(stored, num_steps):
    folder, _ = stored
    extended = levymc.resume(folder, num_steps=num_steps, progress=False)
    assert_same_bytes(extended, stored_run.begin(None, num_steps))
    assert_same_bytes(extended, levymc.load(folder))
    np.testing.assert_array_equal(opened(folder, "posterior")["draw"], extended.steps)
    assert not levymc.load(folder).is_interrupted


def test_an_extension_that_is_stopped_goes_on(stored, calls_of, stopped_after):
    folder, _ = stored
    calls_of(30)
    with stopped_after(2):
        part = levymc.resume(folder, num_steps=600, progress=False)
    assert part.is_interrupted
    assert part.num_draws == 92
    assert_same_bytes(levymc.resume(folder, progress=False), stored_run.begin(None, 600))


def test_extensions_that_make_no_sense_are_refused(stored, tmp_path):
    folder, _ = stored
    with pytest.raises(ValueError, match=r"`num_steps`.*400 steps that were made, got 399"):
        levymc.resume(folder, num_steps=399, progress=False)
    with pytest.raises(ValueError, match=r"`num_steps`.*2⁶²"):
        levymc.resume(folder, num_steps=2**62, progress=False)
    with pytest.raises(ValueError, match=r"`num_steps`.*at least 1"):
        levymc.resume(folder, num_steps=0, progress=False)
    stored_run.begin(tmp_path / "listed", 40, thin=[3, 40])
    with pytest.raises(ValueError, match=r"`num_steps`.*listed"):
        levymc.resume(tmp_path / "listed", num_steps=50, progress=False)
    np.testing.assert_array_equal(levymc.load(tmp_path / "listed").steps, [3, 40])


@pytest.mark.parametrize("every", [[3, 40], levymc.marks.logarithmic(3)])
def test_steps_that_are_observed_may_be_listed_too(tmp_path, every):
    """Before, a run was extended, and its observers saw nothing of what was new."""
    observe = {"mean": levymc.observe.mean(stored_run.first)}
    stored_run.begin(tmp_path / "run", 40, observe=observe, observe_every=every)
    with pytest.raises(
        ValueError, match=r"`num_steps` .* 40, got 50: .* observed .*observe_every=k"
    ):
        levymc.resume(tmp_path / "run", num_steps=50, progress=False)


def falling_to_zero(n):
    return 0.5 - 0.01 * n


@pytest.mark.parametrize(("thin", "first"), [(1, 47), (4, 48)])
def test_an_extension_ends_before_its_step_sizes_do(tmp_path, calls_of, thin, first):
    """The schedule was looked at for 39 steps; the fiftieth is none, and later ones are negative.

    Before, they were made, and the draws after them had negative weights, without a word.
    """
    calls_of(5)
    folder, start = tmp_path / "run", jnp.zeros((3, 2))
    mafla = levymc.mafla(lambda x: -jnp.sum(x**2) / 2, falling_to_zero)
    options = {"thin": thin, "burn_in": 3, "progress": False}
    levymc.sample(mafla, jax.random.key(0), start, 36, store=folder, **options)
    words = rf"`num_steps` must be less than {first}, .* got 60\. .*, num_steps=46\)"
    with pytest.raises(ValueError, match=words):
        levymc.resume(folder, num_steps=60, progress=False)
    assert np.all(levymc.load(folder).weights > 0)
    whole = levymc.sample(mafla, jax.random.key(0), start, 46, **options)
    assert_same_bytes(levymc.resume(folder, num_steps=46, progress=False), whole)


def test_draws_are_saved_by_time(tmp_path, calls_of, monkeypatch):
    """Not before COMMIT_SECONDS have passed, and then all that there are."""
    saved, clock = [], [0.0]
    publish = _store._Sink.commit

    def commit(self):
        publish(self)
        saved.append(progress_of(tmp_path / "run")["done"])

    append = _store._Sink.append

    def slow(self, part):
        clock[0] += 10.0
        append(self, part)

    calls_of(40)
    monkeypatch.setattr(_store._Sink, "commit", commit)
    monkeypatch.setattr(_store._Sink, "append", slow)
    monkeypatch.setattr(_store.time, "monotonic", lambda: clock[0])
    stored_run.begin(tmp_path / "run", SHORT, burn_in=0)
    assert saved == [160, 320, 400]  # more than 30 s since the last; and at the end


def test_many_draws_are_saved_before_their_time(tmp_path, calls_of, monkeypatch):
    calls_of(40)
    monkeypatch.setattr(_store, "COMMIT_BYTES", 1)
    saved, publish = [], _store.publish
    monkeypatch.setattr(
        _store, "publish", lambda store, *first: (saved.append(store.done), publish(store, *first))
    )
    stored_run.begin(tmp_path / "run", SHORT, burn_in=0)
    assert len(set(saved)) == 11


def in_memory(leaf):
    """Bytes that an array keeps there, which may be a view of a larger one."""
    return (leaf if leaf.base is None else leaf.base).nbytes


@pytest.mark.parametrize("every", [1, 50])
def test_calls_of_few_draws_take_little_memory(tmp_path, calls_of, monkeypatch, every):
    """Between commits; before, each kept the room for all draws that a call may have."""
    append, seen = _store._Sink.append, []

    def note(self, part):
        append(self, part)
        kept = sum(in_memory(leaf) for leaves in self.parts for leaf in leaves)
        seen.append((len(self.parts), kept, self.held))

    calls_of(10)
    monkeypatch.setattr(_store._Sink, "append", note)
    stored_run.begin(tmp_path / "run", 200, burn_in=0, thin=every)
    assert [parts for parts, _, _ in seen] == [10 * n // max(every, 10) for n in range(1, 21)]
    assert all(held <= kept <= 2 * held for _, kept, held in seen)
    assert seen[-1][2] > seen[0][2]


# Disks, and what happens to files.


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch, calls_of, always_committed, whole):
    write, calls, folder = _chunks.atomic_bytes, [], tmp_path / "run"

    def full(path, content):
        if "posterior" in path.parts:
            calls.append(path)
        if len(calls) > 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    calls_of(20)
    with monkeypatch.context() as patch:
        patch.setattr(_chunks, "atomic_bytes", full)
        with pytest.raises(OSError, match=r"safe in .* go on with levymc\.resume") as caught:
            stored_run.begin(folder, SHORT)
    assert caught.value.errno == errno.ENOSPC
    assert 0 < levymc.load(folder).num_draws < 80
    assert_same_bytes(levymc.resume(folder, progress=False), whole)


def test_a_run_that_cannot_be_created_leaves_nothing(tmp_path, monkeypatch):
    def fail(store):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_create, "publish", fail)
    with pytest.raises(OSError, match="No space"):
        stored_run.begin(tmp_path / "run", SHORT)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_began_to_create_is_removed(tmp_path):
    """Whatever its number, which a process of today may have; what is being created, is not."""
    for owner in (os.getpid(), 1, 2):
        (tmp_path / f".run.{owner}.partial/levymc").mkdir(parents=True)
        (tmp_path / f".run.{owner}.partial/levymc/finish.bin").write_bytes(b"left over")
    with _store.lock(tmp_path / ".run.2.partial"):
        stored_run.begin(tmp_path / "run", 20)
    assert {path.name for path in tmp_path.iterdir()} == {"run", ".run.2.partial"}
    assert not (tmp_path / "run/levymc/finish.bin").exists()


def test_draws_that_were_saved_but_not_published_are_seen_again(tmp_path, calls_of, monkeypatch):
    """As after a kill between the two, at the very end of a run."""
    publish, folder = _store.publish, tmp_path / "run"

    def die(store, first=0):
        if store.done:
            raise KeyboardInterrupt
        publish(store, first)

    with monkeypatch.context() as patch:
        patch.setattr(_store, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            stored_run.begin(folder, 40)
    assert progress_of(folder)["done"] == 43
    assert opened(folder, "posterior").sizes["draw"] == 0
    result = levymc.resume(folder, progress=False)
    assert opened(folder, "posterior").sizes["draw"] == result.num_draws == 8


def flip(file):
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def edit(file, change):
    """Change what a JSON file holds, and leave it well-formed."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def in_folder(name, change):
    return lambda folder: edit(folder / "levymc" / name, change)


def with_checksum(change):
    """Change progress.json as one would who knows how it is checked."""

    def damage(folder):
        file = folder / "levymc" / "progress.json"
        content = json.loads(file.read_text())
        content.pop("checksum")
        change(content)
        file.write_bytes(_integrity.sealed(content))

    return damage


DAMAGES = {
    "a chunk": (lambda f: flip(f / "posterior/x/c/0/0/0"), "chunk 0 of the draws"),
    "the last chunk": (lambda f: os.truncate(f / "posterior/x/c/0/1/0", 9), "chunk 1 of the draws"),
    "a chunk is gone": (
        lambda f: (f / "posterior/x/c/0/1/0").unlink(),
        "chunk 1 of the draws of x",
    ),
    "a statistic": (lambda f: flip(f / "sample_stats/largest_jump/c/0/0"), "chunk 0"),
    "the inputs": (lambda f: flip(f / "levymc/inputs.npz"), "inputs.npz"),
    "the program": (lambda f: flip(f / "levymc/advance.bin"), "advance.bin"),
    "the data are gone": (lambda f: (f / "levymc/data.npz").unlink(), "data.npz is missing"),
    "the state": (lambda f: flip(f / "levymc/state-403.npz"), "state-403.npz"),
    "the state is gone": (
        lambda f: (f / "levymc/state-403.npz").unlink(),
        "state-403.npz is missing",
    ),
    "half a progress": (
        lambda f: (f / "levymc/progress.json").write_text('{"chunks": ['),
        "not a store",
    ),
    "no run": (lambda f: (f / "levymc/run.json").unlink(), "not a store"),
    "a deep run": (lambda f: (f / "levymc/run.json").write_text(99_999 * "["), "not a store"),
    "a list": (lambda f: (f / "levymc/run.json").write_text("[1]"), "not a store"),
    "fewer steps": (in_folder("progress.json", lambda c: c.update(done=203)), "progress.json"),
    "more steps wanted": (
        in_folder("progress.json", lambda c: c.update(num_steps=500)),
        "progress.json",
    ),
    "fewer steps, checked": (with_checksum(lambda c: c.update(done=203)), "2 chunks for 1"),
    "another state, checked": (with_checksum(lambda c: c.update(done=402)), "state-402.npz"),
    "another plan": (in_folder("run.json", lambda c: c["plan"].update(burn_in=2)), "run.json"),
    "another thin": (
        in_folder("run.json", lambda c: c["plan"].update(kept={"every": 1})),
        "run.json",
    ),
    "another format": (in_folder("run.json", lambda c: c.update(format=99)), "format 99"),
    "another shape": (
        in_folder("run.json", lambda c: c["leaves"][0].update(shape=[1])),
        "run.json",
    ),
    "no plan": (in_folder("run.json", lambda c: c.pop("plan")), "run.json"),
    "no checksum": (in_folder("progress.json", lambda c: c.pop("checksum")), "not a store"),
    "another folder": (lambda f: shutil.rmtree(f / "levymc"), "not a store"),
}


@pytest.mark.parametrize(("damage", "what"), DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("read", ["load", "resume"])
def test_damage_is_found_and_named(stored, damage, what, read):
    folder, _ = stored
    damage(folder)
    call = {"load": levymc.load, "resume": lambda f: levymc.resume(f, progress=False)}[read]
    with pytest.raises(_store.StoreError, match=what):
        call(folder)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda f: (f / "zarr.json").unlink(), "zarr.json"),
        (lambda f: (f / "posterior/x/zarr.json").write_text("{}"), "posterior/x/zarr.json"),
        (lambda f: edit(f / "posterior/zarr.json", lambda c: c.clear()), "posterior/zarr.json"),
        (lambda f: flip(f / "sample_stats/step_size/zarr.json"), "step_size/zarr.json"),
        (lambda f: flip(f / "posterior/draw/c/1"), "posterior/draw/c/1"),
        (lambda f: flip(f / "sample_stats/chain/c/0"), "sample_stats/chain/c/0"),
    ],
)
def test_what_other_tools_would_misread_is_refused_and_can_be_made_again(stored, damage, what):
    folder, result = stored
    damage(folder)
    with pytest.raises(
        _store.StoreError, match=rf"{what} is not as.*levymc\.resume\(store\) writes"
    ):
        levymc.load(folder)
    assert_same_bytes(levymc.resume(folder, progress=False), result)
    assert_same_bytes(levymc.load(folder), result)
    assert opened(folder, "posterior").sizes["draw"] == 80


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: (f / "levymc/state-7.npz").write_bytes(b"left over"),
        lambda f: (f / "posterior/x/c/0/0/0.17.partial").write_bytes(b"left over"),
        lambda f: (f / "levymc/progress.json.17.partial").write_bytes(b"left over"),
        lambda f: (f / "zarr.json.17.partial").write_bytes(b"left over"),
    ],
)
def test_what_does_not_count_does_no_harm(stored, damage):
    """Files that were left over are not read."""
    folder, result = stored
    damage(folder)
    assert_same_bytes(levymc.load(folder), result)
    assert_same_bytes(levymc.resume(folder, progress=False), result)
    assert opened(folder, "posterior").sizes["draw"] == 80
    assert not list(folder.rglob("*.partial"))


def test_a_store_is_not_written_over(stored):
    folder, _ = stored
    with pytest.raises(_store.StoreError, match="exists"):
        stored_run.begin(folder, SHORT)


def test_a_store_in_use_is_refused(stored):
    folder, _ = stored
    with _store.lock(folder), pytest.raises(RuntimeError, match="in use"):
        levymc.resume(folder, progress=False)


def test_another_version_is_told(stored, monkeypatch):
    folder, _ = stored
    monkeypatch.setattr(_compare, "versions", lambda: {"python": "2.7", "jax": "0.1"})
    with pytest.warns(UserWarning, match=r"begun with python.*rounding") as told:
        levymc.resume(folder, num_steps=500, progress=False)
    assert Path(told[0].filename).name == Path(__file__).name


def test_chunks_are_bounded_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_create, "CHUNK_BYTES", 7 * 4 * (2 * 4 + 3 * 4 + 1))  # of seven draws
    stored_run.begin(tmp_path / "run", 60)
    header = json.loads((tmp_path / "run" / "levymc" / "run.json").read_text())
    draw_bytes = sum(
        4 * np.dtype(leaf["dtype"]).itemsize * int(np.prod(leaf["shape"]))
        for leaf in header["leaves"]
    )
    assert header["chunk"] == _create.CHUNK_BYTES // draw_bytes
    assert 1 < header["chunk"] < 12


# Other tools.


def opened(folder, group):
    """A group by xarray; a warning is an error."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xarray.open_zarr(str(folder), group=group)


def test_xarray_opens_a_store(stored):
    folder, result = stored
    posterior, statistics = opened(folder, "posterior"), opened(folder, "sample_stats")
    assert posterior["x"].dims == ("chain", "draw", "x_dim_0")
    np.testing.assert_array_equal(posterior["x"].values, result.positions["x"])
    np.testing.assert_array_equal(posterior["chain"], np.arange(4))
    np.testing.assert_array_equal(posterior["draw"], result.steps)
    assert set(statistics.data_vars) == set(result.statistics)
    for name, values in result.statistics.items():
        assert statistics[name].dims == ("chain", "draw")
        np.testing.assert_array_equal(statistics[name].values, values)


def test_a_store_opens_as_a_tree(stored):
    xarray = pytest.importorskip("xarray")
    folder, result = stored
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xarray.open_datatree(str(folder), engine="zarr")
    assert {"posterior", "sample_stats"} <= set(tree.children)
    np.testing.assert_array_equal(tree["posterior"]["x"].values, result.positions["x"])


def test_a_store_shows_the_draws_that_exist(tmp_path, calls_of, stopped_after, whole):
    folder = tmp_path / "run"
    calls_of(20)
    with stopped_after(9):
        part = stored_run.begin(folder, SHORT)
    posterior = opened(folder, "posterior")
    assert posterior.sizes["draw"] == part.num_draws == 32
    np.testing.assert_array_equal(posterior["x"].values, whole.positions["x"][:, :32])
    assert opened(folder, "sample_stats").sizes["draw"] == 32


def pair(position):
    return -jnp.sum(position["a"][0] ** 2) - position["a"][1]["deep"] ** 2


def test_nested_positions_have_names_with_dots(tmp_path):
    starts = {"a": (jnp.zeros((2, 3), jnp.float32), {"deep": jnp.zeros(2, jnp.float32)})}
    result = levymc.sample(
        levymc.levy_walk(pair, 1.0), jax.random.key(0), starts, 9, store=tmp_path / "run"
    )
    posterior = opened(tmp_path / "run", "posterior")
    assert posterior["a.0"].dims == ("chain", "draw", "a.0_dim_0")
    np.testing.assert_array_equal(posterior["a.1.deep"].values, result.positions["a"][1]["deep"])
    assert jax.tree.structure(levymc.load(tmp_path / "run").positions) == jax.tree.structure(
        result.positions
    )


@pytest.mark.parametrize("name", ["draw", "chain", "a/b", "..", "zarr.json", "a.b"])
@pytest.mark.often("draw", "a/b", "zarr.json")
def test_names_that_cannot_be_folders_are_refused(tmp_path, name):
    """Before anything is written, inside or outside of the store."""
    starts = {name: jnp.zeros(2), "a": {"b": jnp.zeros(2)}}
    walk = levymc.levy_walk(lambda p: -(p[name] ** 2) - p["a"]["b"] ** 2, 1.0)
    with pytest.raises(ValueError, match="Rename it"):
        levymc.sample(walk, jax.random.key(0), starts, 5, store=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_draws_beyond_memory_stay_on_disk(tmp_path, monkeypatch):
    """Also the weights of a falling schedule, and the table of a result."""
    algorithm = levymc.ula(lambda x: -jnp.sum(x**2) / 2, schedules.polynomial(0.5, 0.5))
    starts = jnp.ones((3, 2), jnp.float32)
    options = {"thin": 3, "store": tmp_path / "run", "progress": False}
    small = levymc.sample(algorithm, jax.random.key(0), starts, 300, **options)
    monkeypatch.setattr(_chunks, "LARGEST_IN_MEMORY", 100)
    monkeypatch.setattr(levymc.run._result, "AT_ONCE", 500)  # several parts
    large = levymc.load(tmp_path / "run")
    assert not isinstance(large.positions, np.ndarray)
    assert "on disk" in repr(large)
    np.testing.assert_array_equal(large.positions[1, 5:9], small.positions[1, 5:9])
    np.testing.assert_array_equal(np.asarray(large.positions), small.positions)
    np.testing.assert_allclose(large.mean(), small.mean(), rtol=1e-5)
    np.testing.assert_allclose(
        large.expectation(lambda x: x[0] ** 2), small.expectation(lambda x: x[0] ** 2), rtol=1e-5
    )
    assert large._repr_html_().replace(", on disk", "") == small._repr_html_()
    assert large.num_divergent == 0
    np.testing.assert_array_equal(large.statistics["taming"], small.statistics["taming"])


def test_what_is_constant_takes_no_chunks(stored):
    folder, result = stored
    assert result.weights.strides == (0, 0)
    assert not (folder / "sample_stats" / "step_size" / "c").exists()
    assert np.all(opened(folder, "sample_stats")["step_size"].values == 1)


class Fixed:
    """Reports numbers that never change: a vector, and what JSON cannot write."""

    def init(self, position):
        return position

    def step(self, key, state):
        info = {"vector": jnp.arange(3.0), "nothing": jnp.float32(jnp.nan), "far": jnp.inf}
        return state + jax.random.normal(key, state.shape), info


def test_constants_of_any_kind_are_stored(tmp_path):
    result = levymc.sample(
        Fixed(), jax.random.key(0), jnp.zeros((2, 2)), 5, store=tmp_path / "run", progress=False
    )
    np.testing.assert_array_equal(result.info["vector"], np.broadcast_to(np.arange(3.0), (2, 5, 3)))
    assert np.all(np.isnan(result.info["nothing"]))
    assert np.all(result.info["far"] == np.inf)
    assert result.info["nothing"].dtype == np.float32


def test_what_zarr_does_not_know_is_refused(tmp_path):
    walk = levymc.ula(lambda x: -jnp.sum(x**2), 0.1)
    with pytest.raises(TypeError, match=r"float32 or float64"):
        levymc.sample(
            walk, jax.random.key(0), jnp.zeros((2, 2), jnp.bfloat16), 5, store=tmp_path / "run"
        )
    assert list(tmp_path.iterdir()) == []
