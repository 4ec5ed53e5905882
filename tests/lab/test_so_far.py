"""What a run that is not finished shows: the cells that are there, and nothing on disk."""

import dataclasses
import fcntl
import json
import os

import numpy as np
import pytest
from tests.lab import toy_experiment
from tests.lab.toy_experiment import Toy, contents

from levymc_lab import framework as experiments
from levymc_lab.framework import ResultsError, Table, _registry
from levymc_lab.report import write_page


@pytest.fixture(autouse=True)
def with_toy(monkeypatch):
    monkeypatch.setitem(_registry.MODULES, "toy", "tests.lab.toy_experiment")


@pytest.fixture
def stopped(tmp_path):
    """The folder of a run that has two of its four cells, in a folder of results."""

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiments.run(toy_experiment.EXPERIMENT, tmp_path, jobs=0, on_progress=stop)
    return tmp_path / "toy"


@pytest.fixture
def change(monkeypatch):
    """Give the toy other parts."""

    def with_parts(**parts):
        changed = dataclasses.replace(toy_experiment.EXPERIMENT, **parts)
        monkeypatch.setattr(toy_experiment, "EXPERIMENT", changed)

    return with_parts


def page_of(folder) -> str:
    return write_page(folder.parent).read_text("utf-8")


def test_the_cells_that_are_there_are_judged_and_nothing_is_written(stopped):
    before = {file: file.stat().st_mtime_ns for file in stopped.rglob("*")}
    found = experiments.so_far(stopped)
    assert (found.num_done, found.num_cells) == (2, 4)
    assert found.tables["means"]["cell"].tolist() == ["cell-0", "cell-1"]
    assert [check.outcome for check in found.checks] == ["pass"]
    assert found.verdict.words == "It is a toy."
    assert found.picture("draws", "png").startswith(b"\x89PNG")
    assert {file: file.stat().st_mtime_ns for file in stopped.rglob("*")} == before


def test_of_all_cells_it_is_what_the_finished_run_has(stopped):
    whole = experiments.run(toy_experiment.EXPERIMENT, stopped.parent, jobs=0)
    found = experiments.so_far(stopped)
    assert found.tables.keys() == whole.tables.keys()
    for name, table in whole.tables.items():
        assert found.tables[name].to_json() == table.to_json()
    assert (found.checks, found.verdict) == (whole.checks, whole.verdict)
    for suffix in ("svg", "png"):
        assert found.picture("draws", suffix) == whole.picture("draws", suffix)


def test_it_is_shown_while_another_process_runs_and_after_it_was_killed(stopped):
    """Both leave the manifest as it is while cells are made."""
    content = json.loads((stopped / "manifest.json").read_text("utf-8"))
    (stopped / "manifest.json").write_text(json.dumps({**content, "status": "running"}))
    (stopped / "cells/cell-2.npz.1.partial").write_bytes(b"half a file")
    holder = os.open(stopped, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert "so far: 2 of 4 cells" in page_of(stopped)
    os.close(holder)


@pytest.mark.parametrize(
    "parts",
    [
        {"shows_parts": False},
        {"profiles": {"quick": Toy(num_draws=51), "paper": Toy()}},
        {"profiles": {"paper": Toy()}},
        {"dtype": "float32"},
        {"cells": lambda config: toy_experiment.cells(config)[:3]},
    ],
    ids=["no flag", "config", "profile", "dtype", "cells"],
)
def test_the_words_alone_are_left_where_parts_are_not_to_be_shown(stopped, change, parts):
    change(**parts)
    assert experiments.so_far(stopped) is None
    page = page_of(stopped)
    assert "There is no verdict yet: the run has 2 of its 4 cells. Go on with:" in page
    assert "so far" not in page
    assert "<img" not in page


def test_there_is_nothing_to_show_without_cells_and_of_unknown_experiments(stopped):
    other = stopped.rename(stopped.with_name("other"))
    assert experiments.so_far(other) is None
    back = other.rename(stopped)
    for file in back.glob("cells/*"):
        file.unlink()
    assert experiments.so_far(back) is None
    assert "the run has 0 of its 4 cells. Go on with:" in page_of(back)


def fail(*arguments):
    raise KeyError("cell-3")


@pytest.mark.parametrize("part", ["summarise", "checks", "verdict", "figures"])
def test_an_experiment_that_fails_on_parts_is_told_on_the_page(stopped, change, part):
    change(**{part: fail})
    with pytest.raises(KeyError):
        experiments.so_far(stopped)
    page = page_of(stopped)
    assert "the run has 2 of its 4 cells. They cannot be shown: KeyError(" in page
    assert "Unfinished" in page


def test_a_damaged_cell_is_named_without_its_place(stopped):
    (stopped / "cells/cell-0.npz").write_bytes(b"PK\x03\x04 half a file")
    with pytest.raises(ResultsError, match="damaged"):
        experiments.so_far(stopped)
    page = page_of(stopped)
    assert "They cannot be shown: toy/cells/cell-0.npz is damaged" in page
    assert str(stopped.parent) not in page


def test_the_page_shows_and_marks_the_part_that_is_there(stopped):
    before = contents(stopped)
    page = page_of(stopped)
    for words in (
        'Unfinished</span></span><div class="part">so far: 2 of 4 cells</div>',
        "Unfinished</span></span> <b>so far: 2 of 4 cells</b>",
        "from the 2 of 4 cells that are there. As yet: measured here. It is a toy. Go on with:",
        "levymc run toy --profile quick --seed 0",
        "Checks: 1 of 1 met (so far: 2 of 4 cells).",
        "Measured beside published (so far: 2 of 4 cells)",
        "Tables (so far: 2 of 4 cells)",
        "The first 8 rows.",
        'alt="Draws. (so far: 2 of 4 cells)"',
        '<td class="text short">cell-1</td>',
    ):
        assert words in page
    assert "cell-2" not in page
    assert ".csv" not in page  # there are no such files
    assert contents(stopped) == before
    assert page_of(stopped) == page  # bytes depend on the cells only

    experiments.run(toy_experiment.EXPERIMENT, stopped.parent, jobs=0)
    page = page_of(stopped)
    assert "so far" not in page
    assert "toy/tables/means.csv" in page


def test_tables_without_rows_are_shown(stopped, change):
    """A comparison of cells may have nothing to compare yet."""

    def summarise(config, results):
        empty = Table("Pairs.", {"pair": np.array([], str), "gap": np.zeros(0)})
        return {**toy_experiment.summarise(config, results), "pairs": empty}

    change(summarise=summarise)
    assert "Pairs." in page_of(stopped)
