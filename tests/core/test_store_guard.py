"""What a store is guarded against: other data, other processes, odd places, types, live readers."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.core import stored_run
from tests.core.store_damage import same_bytes

import levymc
from levymc.run import _chunks, _create, _integrity, _programs, _store

KEY = jax.random.key(2)
STARTS = jnp.zeros((2, 3), jnp.float32)
DATA = np.arange(20, dtype=np.float32)


def resume(folder, **options):
    return levymc.resume(folder, progress=False, **options)


def gradient(x, batch):
    return jnp.mean(batch) - x


SGLD = levymc.sgld(gradient, 0.1)


def loader(shift=0.0, dtype=np.float32, size=4):
    return lambda number: {"y": (np.arange(size) + number + shift).astype(dtype)}


def mean_gradient(x, batch):
    return jnp.mean(batch["y"]) - x


# What `resume` is given.


@pytest.fixture(scope="module")
def fed(tmp_path_factory):
    """A complete run with a function that loads minibatches, of six steps."""
    folder = tmp_path_factory.mktemp("fed") / "run"
    sgld = levymc.sgld(mean_gradient, 0.1)
    levymc.sample(sgld, KEY, STARTS, 6, minibatches=loader(), store=folder, progress=False)
    return folder


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A complete run whose data are in the store."""
    folder = tmp_path_factory.mktemp("held") / "run"
    data = levymc.batches(DATA, 4)
    levymc.sample(SGLD, KEY, STARTS, 6, minibatches=data, store=folder, progress=False)
    return folder


def test_minibatches_are_compared_with_those_of_the_beginning(fed):
    same = resume(fed, minibatches=loader())
    assert same_bytes(same, levymc.load(fed))
    others = {
        "shift": (loader(shift=1), r"minibatch is .*#\w+, not .*#"),
        "dtype": (loader(dtype=np.float64), r"float32\[4\].*, not .*float64\[4\]"),
        "size": (loader(size=5), r"float32\[4\].*, not .*float32\[5\]"),
        "structure": (lambda number: loader()(number)["y"], r"PyTreeDef\(\{'y': \*\}\).*, not .*"),
    }
    for function, message in others.values():
        with pytest.raises(
            _store.StoreError, match=rf"`minibatches` must .*: its .*{message}.*Give"
        ):
            resume(fed, minibatches=function)
    with pytest.raises(ValueError, match="`minibatches` must be given"):
        resume(fed)
    for wrong in (levymc.batches(DATA, 4), [DATA]):
        with pytest.raises(TypeError, match=r"`minibatches` must not be .*Give the same function"):
            resume(fed, minibatches=wrong)


def test_data_that_are_given_again_are_compared(held):
    assert same_bytes(resume(held, minibatches=levymc.batches(DATA, 4)), levymc.load(held))
    for data, message in (
        (levymc.batches(DATA + 1, 4), "its data is"),
        (levymc.batches(DATA[:10], 4), r"its data is float32\[20\] #\w+, not float32\[10\]"),
        (levymc.batches(DATA, 5), "its batch_size is 4, not 5"),
        (levymc.whole(DATA), "its batch_size is 4, not None"),
    ):
        with pytest.raises(_store.StoreError, match=message):
            resume(held, minibatches=data)
    with pytest.raises(TypeError, match=r"`minibatches` must not be function.*Leave them out"):
        resume(held, minibatches=loader())


def test_fingerprints_see_shapes_and_types():
    """Not the bytes alone, which those of zeros are in any shape."""
    arrays = [np.zeros((2, 3), t) for t in (np.float32, np.int32)] + [np.zeros((3, 2), np.float32)]
    found = {_integrity.fingerprint([array]) for array in (*arrays, jnp.zeros(2, jnp.bfloat16))}
    assert len(found) == 4
    assert _integrity.fingerprint([]) == _integrity.fingerprint([])
    assert "and 3 more" in _integrity.fingerprint(6 * [np.zeros(2)])


def test_another_precision_is_told_before_a_step_is_made(held, tmp_path):
    content = _programs.packed({"carry": [np.zeros(2), np.zeros(2, np.float32)]})
    arrays = _programs.unpacked(content)["carry"]
    assert [leaf.dtype for leaf in _programs.on_device(arrays)] == [np.float64, np.float32]
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(_store.StoreError, match=r"type float64.*jax_enable_x64"):
            _programs.on_device(arrays)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_a_program_that_cannot_be_read_or_run_here_is_named(held, monkeypatch):
    with pytest.raises(_store.StoreError, match=r"cannot be read by JAX .*levymc\.load reads"):
        _programs._compiled(b"of another version")
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(_store.StoreError, match=r"is for cpu, and JAX runs on tpu"):
        _programs._compiled((held / "levymc/advance.bin").read_bytes() + b" ")


# Other processes.


def start_worker(folder):
    return subprocess.Popen(
        [sys.executable, str(Path(stored_run.__file__)), str(folder), "1000000000"]
    )


def wait_for(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_two_processes_exclude_each_other_and_a_dead_one_none(tmp_path):
    folder = tmp_path / "run"
    process = start_worker(folder)
    try:
        # A state's file is there a moment before the record that makes it count.
        wait_for(lambda: list((folder / "levymc").glob("state-[1-9]??*.npz")))
        wait_for(lambda: _store.open_store(folder).num_draws)
        with pytest.raises(RuntimeError, match=r"in use by another process\. Wait for it"):
            resume(folder)
        with pytest.raises(_store.StoreError, match=r"exists\. Go on with levymc\.resume"):
            stored_run.begin(folder, 40)
        levymc.load(folder)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with _store.lock(folder):  # taken over at once
        pass
    made = max(_store.open_store(folder).done - stored_run.BURN_IN, 0)
    more = made + 50
    observe = {"mean": levymc.observe.mean(stored_run.first)}
    expected = stored_run.begin(None, more, observe=observe, keep=True)
    shrunk = _store.extended(_store.open_store(folder), more)
    assert shrunk.plan.num_steps == more
    assert same_bytes(resume(folder, num_steps=more), expected)


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    """The folder of a run after 40 steps, and after 80."""
    place = tmp_path_factory.mktemp("growing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_create, "MOST_IN_CHUNK", 6)
        short = stored_run.begin(place / "short", 40)
        shutil.copytree(place / "short", place / "long")
        long = resume(place / "long", num_steps=80)
    return place, short, long


def commit_during(monkeypatch, module, name, newer, folder, times=1):
    """Let another process commit just before a function is called for the first time."""
    original, left = getattr(module, name), [times]

    def meanwhile(*arguments, **options):
        if left[0]:
            left[0] -= 1
            shutil.rmtree(folder)
            shutil.copytree(newer, folder)
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, meanwhile)


@pytest.mark.parametrize("where", ["checked", "assembled", "read"])
def test_a_commit_while_a_store_is_read_is_no_damage(growing, tmp_path, monkeypatch, where):
    """Whatever was read before it: all is read again, and belongs together."""
    place, short, long = growing
    shutil.copytree(place / "short", tmp_path / "run")
    commit_during(monkeypatch, _store, where, place / "long", tmp_path / "run")
    found = levymc.load(tmp_path / "run")
    assert same_bytes(found, long) or same_bytes(found, short)


def test_a_reader_gives_up_in_the_end(growing, tmp_path, monkeypatch):
    """Of a store that is damaged, at once; of one that never rests, after some tries."""
    place, _, _ = growing
    shutil.copytree(place / "short", tmp_path / "run")
    (tmp_path / "run/levymc/state-43.npz").unlink()
    seen = []
    monkeypatch.setattr(_integrity, "PAUSE", 0)
    monkeypatch.setattr(_store, "_generation", lambda path: bytes(len(seen)))
    opened = _store.glimpse
    monkeypatch.setattr(_store, "glimpse", lambda path: seen.append(path) or opened(path))
    with pytest.raises(_store.StoreError, match=r"state-43\.npz is missing"):
        levymc.load(tmp_path / "run")
    assert len(seen) == _integrity.NUM_TRIES
    monkeypatch.setattr(_store, "_generation", lambda path: b"")
    with pytest.raises(_store.StoreError, match=r"state-43\.npz is missing"):
        levymc.load(tmp_path / "run")
    assert len(seen) == _integrity.NUM_TRIES + 1


def test_draws_on_disk_stay_those_that_there_were(growing, tmp_path, monkeypatch):
    place, short, _ = growing
    shutil.copytree(place / "short", tmp_path / "run")
    monkeypatch.setattr(_chunks, "LARGEST_IN_MEMORY", 1)
    large = levymc.load(tmp_path / "run").positions["x"]
    shutil.copytree(place / "long", tmp_path / "run", dirs_exist_ok=True)
    expected = short.positions["x"]
    assert (large.shape, large.ndim, large.dtype, large.nbytes, len(large)) == (
        expected.shape,
        expected.ndim,
        expected.dtype,
        expected.nbytes,
        len(expected),
    )
    everything = slice(None)
    for index in (
        (everything, 3),
        (0, -1),
        (everything, slice(2, 7), 1),
        (1, slice(None, None, -3)),
        (slice(None, None, 2), slice(5, 2)),
        (slice(1, 3), slice(7, None, 2), ...),
        (..., 0),
        2,
        (everything, [1, 4]),
    ):
        np.testing.assert_array_equal(large[index], expected[index], strict=True)
    np.testing.assert_array_equal(np.asarray(large, np.float64), expected)
    with pytest.raises(IndexError):
        large[:, 8]


# Places.


def begin(path, **options):
    return stored_run.begin(path, 20, **options)


def test_an_empty_folder_is_a_place_for_a_store(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    begin(tmp_path / "link")
    assert levymc.load(tmp_path / "run").num_draws == 4
    assert (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "link"}


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda p: p.symlink_to(p.with_name("nothing")), "a link to nothing. Remove the link"),
        (lambda p: p.write_text(""), "exists. Name another, or remove it"),
        (lambda p: (p / "notes").mkdir(parents=True), "exists. Name another, or remove it"),
    ],
)
def test_a_place_that_is_taken_is_named_and_left_alone(tmp_path, prepare, message):
    prepare(tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(_store.StoreError, match=message):
        begin(tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_inside_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(_store.StoreError, match=r"file is no folder\. Name another"):
        begin(tmp_path / "file/run")


def test_a_store_that_another_process_made_meanwhile_is_kept(tmp_path, monkeypatch):
    build = _create.build

    def slow(path, run, common):
        (tmp_path / "run/levymc").mkdir(parents=True)
        return build(path, run, common)

    monkeypatch.setattr(_create, "build", slow)
    with pytest.raises(_store.StoreError, match="another process made it meanwhile"):
        begin(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_after_a_start_that_failed_the_next_works(tmp_path, monkeypatch):
    """Keys that are no names, then a full disk, then all is well."""
    walk = levymc.levy_walk(lambda p: -(p[0] ** 2), 1.0)
    with pytest.raises(TypeError, match=r"strings as keys, got \[0\]\. Rename"):
        levymc.sample(walk, KEY, {0: jnp.zeros(2)}, 5, store=tmp_path / "run")

    def full(path, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_create, "atomic_bytes", full)
        with pytest.raises(OSError, match="No space"):
            begin(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    begin(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_callback_to_python_is_refused_before_the_run_starts(tmp_path):
    shape = jax.ShapeDtypeStruct((), jnp.float32)

    def slow(x):
        return jax.pure_callback(
            lambda y: np.float32(-np.sum(y**2)), shape, x, vmap_method="sequential"
        )

    walk = levymc.levy_walk(slow, 1.0)
    with pytest.raises(ValueError, match="`store` must be None for this algorithm"):
        levymc.sample(walk, KEY, STARTS, 5, store=tmp_path / "run", progress=False)
    assert list(tmp_path.iterdir()) == []


# Types.


def test_a_leaf_without_numbers_is_stored(tmp_path):
    xarray = pytest.importorskip("xarray")
    walk = levymc.levy_walk(lambda p: -jnp.sum(p["a"] ** 2) - jnp.sum(p["none"]), 1.0)
    starts = {"a": STARTS, "none": jnp.zeros((2, 0, 4), jnp.float32)}
    options = {"store": tmp_path / "run", "progress": False}
    result = levymc.sample(walk, KEY, starts, 5, **options)
    assert result.positions["none"].shape == (2, 5, 0, 4)
    assert same_bytes(resume(tmp_path / "run", num_steps=8), levymc.load(tmp_path / "run"))
    shown = xarray.open_zarr(str(tmp_path / "run"), group="posterior")
    assert shown["none"].shape == (2, 8, 0, 4)
    np.testing.assert_array_equal(shown["a"].values[:, :5], result.positions["a"])


def test_inputs_in_a_type_that_numpy_has_not_are_stored(tmp_path):
    """Data and states in bfloat16; draws of them are refused, as other tools do not know it."""
    data = levymc.whole(jnp.linspace(0, 1, 8, dtype=jnp.bfloat16))
    options = {"minibatches": data, "progress": False}
    plain = levymc.sample(SGLD, KEY, STARTS, 12, **options)
    levymc.sample(SGLD, KEY, STARTS, 6, store=tmp_path / "run", **options)
    assert same_bytes(resume(tmp_path / "run", num_steps=12), plain)
    leaves = [jnp.linspace(0, 1, 5, dtype=jnp.bfloat16), jnp.arange(3), jnp.zeros((2, 0))]
    found = _programs.unpacked(_programs.packed({"carry": leaves}))["carry"]
    for one, other in zip(leaves, _programs.on_device(found), strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_a_state_with_random_keys_is_refused():
    with pytest.raises(TypeError, match=r"got key<fry>.*jax\.random\.key_data"):
        _programs.packed({"carry": [jax.random.split(KEY, 2)]})
