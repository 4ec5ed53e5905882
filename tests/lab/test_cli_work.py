"""`levymc work`: what it says of a run in shards, and how it ends."""

import shutil

import pytest
from tests.core import sharded_run
from typer.testing import CliRunner

import levymc
from levymc._workdir import lock
from levymc.run import _work
from levymc_lab.cli import app


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards") / "run"
    sharded_run.begin(folder)
    return folder


def work(*arguments):
    return CliRunner().invoke(app, ["work", *map(str, arguments)])


def test_work_makes_what_nobody_has_and_leaves(complete, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(complete, folder, symlinks=True)
    _work.extend(folder, 1200)
    with lock(folder / "levymc" / "shard-0001"):
        result = work(folder)
        assert result.exit_code == 0
        assert result.stdout == "Made 2 of 3 shards; other processes have 1.\n"
    assert work(folder).stdout == "Made 1 of 3 shards; all are complete.\n"
    assert levymc.load(folder).num_draws == 240


def test_work_refuses_what_is_no_run_in_shards(complete, tmp_path):
    result = work(tmp_path)
    assert result.exit_code == 2
    assert "is not a store of levymc" in result.stderr
    result = work(complete / "levymc" / "shard-0000")
    assert result.exit_code == 2
    assert "go on with levymc.resume(store)" in result.stderr
