"""Folders that work is kept in: whole files, damage that is named, one process at a time."""

import errno
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from levymc import _workdir
from levymc._workdir import InUseError, ResultsError

REMEDY = "Make it again."
WRITERS = {
    "bytes": lambda path: _workdir.atomic_bytes(path, b"new"),
    "json": lambda path: _workdir.write_json(path, {"new": 1}),
    "arrays": lambda path: _workdir.write_arrays(path, {"new": np.arange(3)}),
}


@pytest.fixture
def synchronised(monkeypatch):
    """The files and folders that were made safe on disk, in order."""
    seen, fsync = [], os.fsync

    def record(descriptor):
        seen.append(os.fstat(descriptor))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return seen


def is_folder(status, path) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_ino == path.stat().st_ino


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_and_its_folders_are_safe_on_disk(tmp_path, synchronised, write):
    path = tmp_path / "a/b/file"
    write(path)
    outer, inner, file, folder = synchronised
    assert is_folder(outer, tmp_path)
    assert is_folder(inner, tmp_path / "a")
    assert file.st_ino == path.stat().st_ino
    assert is_folder(folder, path.parent)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, write, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "file"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space"):
            write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write(path)
    assert path.read_bytes() != b"old"


def test_an_error_inside_leaves_the_old_file(tmp_path):
    def write_half():
        with _workdir.replacing(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_that_is_killed_leaves_the_old_file_and_a_part_that_is_removed(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    (tmp_path / "mine.partial").write_text("not of levymc")
    lines = [
        "import os, pathlib, signal, sys",
        "from levymc import _workdir",
        "with _workdir.replacing(pathlib.Path(sys.argv[1])) as stream:",
        "    stream.write(b'half')",
        "    stream.flush()",
        "    os.kill(os.getpid(), signal.SIGKILL)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines), str(path)], check=False)
    assert done.returncode < 0
    assert path.read_text() == "old"
    assert len(list(tmp_path.glob("file.*.partial"))) == 1
    _workdir.remove_partial(tmp_path, "other")
    assert len(list(tmp_path.glob("file.*.partial"))) == 1
    _workdir.remove_partial(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "mine.partial"]


def test_flush_goes_up_to_the_folder_it_is_within(tmp_path, synchronised):
    file = tmp_path / "a/b/c/file"
    file.parent.mkdir(parents=True)
    file.touch()
    _workdir.flush([file])
    assert len(synchronised) == 2
    synchronised.clear()
    _workdir.flush([file, file], tmp_path / "a")
    found = {one.st_ino for one in synchronised}
    assert found == {one.stat().st_ino for one in (file, *file.parents[:3])}


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_folders_that_have_no_fsync_are_let_through(tmp_path, monkeypatch, number):
    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output"):
            _workdir.flush_folder(tmp_path)
    else:
        _workdir.flush_folder(tmp_path)


def test_json_comes_back_as_it_was(tmp_path):
    content = {"α": [1, 2.5, None, True], "large": 2**63, "small": -1e-300, "text": "😀"}
    _workdir.write_json(tmp_path / "a.json", content)
    assert _workdir.read_json(tmp_path / "a.json", REMEDY) == content
    (tmp_path / "a.json").write_text(json.dumps(content))  # with the emoji as two surrogates
    assert _workdir.read_json(tmp_path / "a.json", REMEDY) == content
    with pytest.raises(ValueError, match="not JSON compliant"):
        _workdir.write_json(tmp_path / "a.json", {"x": float("nan")})
    with pytest.raises(FileNotFoundError):
        _workdir.read_json(tmp_path / "b.json", REMEDY)


def test_json_takes_the_name_of_a_file_that_is_no_text(tmp_path):
    _workdir.write_json(tmp_path / "a.json", {"file": os.fsdecode(b"r\xff.csv")})
    assert _workdir.read_json(tmp_path / "a.json", REMEDY) == {"file": "r?.csv"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b'{"a": 1', "Expecting"),
        (b"\xff\xfe", "can't decode"),
        (b"[]", "no object but a list"),
        (b"null", "no object but a NoneType"),
        (b'{"a": NaN}', "NaN is no finite number"),
        (b'{"a": [-Infinity]}', "-Infinity is no finite number"),
        (b'{"a": 1e999}', "1e999 is no finite number"),
        (b'{"a": 1' + 400 * b"0" + b"}", "too large a number"),
        (b'{"a": 1' + 9999 * b"0" + b"}", "too large a number"),
        (b'{"a": ' + 99_999 * b"[", "nested more than 100 deep"),
        (b'{"a": ' + 300 * b"[" + 300 * b"]" + b"}", "nested more than 100 deep"),
        (99_999 * b'{"a":', "nested more than 100 deep"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b'{"kind": 5}', "its kind is wrong"),
        (b'{"a": 5}', "it has no kind"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_broken_json_is_named_with_the_reason_and_a_remedy(tmp_path, content, message):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(ResultsError) as caught:
        _workdir.read_json(path, REMEDY, {"kind": str})
    text = str(caught.value)
    assert text.startswith(f"{path} is broken (")
    assert message in text
    assert text.endswith(f"). {REMEDY}")
    assert len(text) < 400


def test_nesting_is_allowed_to_its_limit():
    def nested(levels):
        return b'{"a": ' + (levels - 1) * b"[" + (levels - 1) * b"]" + b"}"

    assert _workdir.parse_json(nested(_workdir.MOST_NESTED))
    with pytest.raises(ValueError, match="nested"):
        _workdir.parse_json(nested(_workdir.MOST_NESTED + 1))


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match="is broken"):
        _workdir.read_json(tmp_path, REMEDY)
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="is broken"):
        _workdir.read_json(tmp_path / "file/manifest.json", REMEDY)


def test_arrays_come_back_as_they_were_and_have_the_same_bytes(tmp_path):
    arrays = {"a": np.arange(3, dtype=np.int8), "b": np.float32(0.1), "c": np.array(["x", "α"])}
    for name in ("one.npz", "two.npz"):
        _workdir.write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    found = _workdir.read_arrays(tmp_path / "one.npz", REMEDY)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    with pytest.raises(TypeError, match="`b` must not hold Python objects, got object"):
        _workdir.write_arrays(tmp_path / "one.npz", {"b": np.array([{}])})
    assert _workdir.read_arrays(tmp_path / "one.npz", REMEDY).keys() == arrays.keys()


def test_damaged_arrays_are_named_wherever_the_damage_is(tmp_path):
    path = tmp_path / "a.npz"
    _workdir.write_arrays(path, {"a": np.arange(5), "b": np.float32(2)})
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(ResultsError):  # not every byte of an archive counts
            _workdir.read_arrays(path, REMEDY)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ResultsError, match=r"a\.npz is damaged \(.*\)\. Make it again\."):
        _workdir.read_arrays(path, REMEDY)


def test_one_process_at_a_time(tmp_path):
    with _workdir.lock(tmp_path):
        with pytest.raises(InUseError, match="in use by another process"), _workdir.lock(tmp_path):
            pass
        with pytest.raises(ResultsError), _workdir.lock(tmp_path):
            pass
    with _workdir.lock(tmp_path):
        pass


def test_differences_name_what_is_other_missing_or_new():
    found = {"same": 1, "seed": 0, "data": 64 * "a", "old": [1]}
    wanted = {"same": 1, "seed": 1, "data": 64 * "b", "new": "x"}
    assert _workdir.differences(found, wanted) == [
        "its seed is 0, not 1",
        "its data is aaaaaaaa…, not bbbbbbbb…",
        "its old is [1], not None",
        "its new is None, not x",
    ]
    assert _workdir.differences(found, dict(found)) == []


def test_a_digest_depends_on_the_contents_and_their_order(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    assert _workdir.digest([one, two]) != _workdir.digest([two, one])
    assert _workdir.digest([one]) == _workdir.digest(iter([one]))


def test_the_manifest_tells_how_work_goes_and_ends(tmp_path):
    def status():
        return _workdir.read_json(path, REMEDY, {"wall_seconds": float})

    def stop():
        with _workdir.clocked(path, manifest, session):
            raise KeyboardInterrupt

    path, session = tmp_path / "manifest.json", {}
    manifest = {**_workdir.provenance(), "wall_seconds": 100.0, "session": session}
    with _workdir.clocked(path, manifest, session) as record:
        assert status()["status"] == "running"
        manifest["noise"] = 0.5
        record()
        assert status()["noise"] == 0.5
    assert status()["status"] == "finished"
    assert status()["finished"] >= status()["started"]
    assert status()["wall_seconds"] == pytest.approx(100 + session["wall_seconds"], abs=2e-3)
    with pytest.raises(KeyboardInterrupt):
        stop()
    assert status()["status"] == "stopped"
    assert status()["finished"] is None


def test_a_full_disk_does_not_hide_why_work_stopped(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def stop():
        with _workdir.clocked(tmp_path / "manifest.json", _workdir.provenance()):
            monkeypatch.setattr(os, "fsync", fail)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()


def test_a_folder_that_cannot_be_locked_is_locked_by_a_file_in_it(tmp_path, monkeypatch):
    """As over NFS, where a lock needs a descriptor that is open for writing."""
    fcntl = pytest.importorskip("fcntl")
    real = fcntl.flock

    def flock(descriptor, operation):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with _workdir.lock(tmp_path):
        assert (tmp_path / ".lock").exists()
        with pytest.raises(_workdir.InUseError, match="in use"), _workdir.lock(tmp_path):
            pass
    with _workdir.lock(tmp_path):
        pass


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match=r"has no locks.*of another"), _workdir.lock(tmp_path):
        pass
