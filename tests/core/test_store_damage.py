"""Damaged stores: refused with an error of levymc that has a remedy, or read bit for bit."""

import json
import shutil

import numpy as np
import pytest
from tests.core import store_damage, stored_run

import levymc
from levymc.run import _create, _integrity, _store

STEPS, EXTENDED = 400, 600


def resume(folder):
    return levymc.resume(folder, progress=False)


def progress_of(folder):
    content = json.loads((folder / "levymc/progress.json").read_text())
    del content["checksum"]
    return content


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_create, "MOST_IN_CHUNK", stored_run.CHUNK)
        return folder, stored_run.begin(folder, STEPS)


@pytest.fixture
def interrupted(complete, tmp_path):
    """A run that still has steps to make."""
    shutil.copytree(complete[0], tmp_path / "run")
    progress = {**progress_of(tmp_path / "run"), "num_steps": EXTENDED}
    (tmp_path / "run/levymc/progress.json").write_bytes(_integrity.sealed(progress))
    return tmp_path / "run"


def faults(store, readers, seed, count, **options):
    """What goes wrong with so many damaged copies, each read by all readers."""
    rng = np.random.default_rng(seed)
    found = [
        store_damage.fault(damage, read, expected, **options)
        for damage in store_damage.corruptions(store, rng, count)
        for read, expected in readers
    ]
    return [fault for fault in found if fault]


def test_random_damage_is_refused_or_harmless(complete):
    folder, result = complete
    assert faults(folder, [(levymc.load, result), (resume, result)], seed=1, count=40) == []


@pytest.mark.nightly
def test_much_random_damage_is_refused_or_harmless(tmp_path, calls_of, stopped_after):
    """Also of a run with observers that still has steps to make."""
    observe = {"mean": levymc.observe.mean(stored_run.first)}
    folder, options = tmp_path / "run", {"observe": observe, "keep": True}
    calls_of(100)
    with stopped_after(4):
        part = stored_run.begin(folder, STEPS, **options)
    assert part.is_interrupted
    whole = stored_run.begin(None, STEPS, **options)
    assert faults(folder, [(levymc.load, part)], seed=2, count=1000) == []
    assert faults(folder, [(resume, whole)], seed=3, count=500) == []


def change_byte(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 0x20
    file.write_bytes(content)


def test_an_edit_of_any_file_is_refused(complete, interrupted):
    """One byte, by `load`; by `resume` before it makes a step, but for what it repairs."""
    original, rng = complete[0], np.random.default_rng(0)
    files = sorted(one.relative_to(original) for one in original.rglob("*") if one.is_file())
    assert len(files) > 30
    for name in files:
        file = interrupted / name
        whole = file.read_bytes()
        # Of a chunk that is not full, the first draws of a chain count.
        place = 0 if "c" in name.parts else int(rng.integers(len(whole)))
        change_byte(file, place)
        with pytest.raises(
            _store.StoreError, match="chunk|/c/" if "c" in name.parts else file.name
        ):
            levymc.load(interrupted)
        if name.parts[0] == "levymc" or not {"chain", "draw", "zarr.json"} & set(name.parts):
            with pytest.raises(_store.StoreError, match=r"damaged|not a store"):
                resume(interrupted)
        file.write_bytes(whole)
    assert levymc.load(interrupted).num_draws == 80


def test_damaged_draws_are_not_made_whole_by_going_on(complete, interrupted):
    """The last chunk, which a run that goes on writes again, above all."""
    change_byte(interrupted / "posterior/x/c/0/1/0", 3)
    before = (interrupted / "levymc/progress.json").read_bytes()
    with pytest.raises(_store.StoreError, match="chunk 1 of the draws is not as it was written"):
        resume(interrupted)
    assert (interrupted / "levymc/progress.json").read_bytes() == before


def test_a_saved_result_is_refused_when_damaged(complete, tmp_path):
    """A file of `Result.save`, too: with an error of ours, or bit for bit."""
    result, file = complete[1], tmp_path / "result.npz"
    result.save(file)
    whole, rng = file.read_bytes(), np.random.default_rng(5)
    for place in [*range(0, 60, 3), *rng.integers(len(whole), size=60)]:
        file.write_bytes(whole)
        change_byte(file, place)
        try:
            assert store_damage.same_bytes(levymc.load(file), result)
        except ValueError as error:
            if "no result of levymc, or a damaged one" not in str(error):
                raise
