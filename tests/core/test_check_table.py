"""The runs of benchmarks/check_table.py: two of them always, all of them at night."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def check_table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("check_table")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_wrecked_run_is_seen_and_a_good_one_is_not_blamed(check_table):
    chosen = {"ula, logistic law, η = 3", "levy_walk, the uniform law"}
    groups = (check_table.wrecked_steps, check_table.good_exact)
    cases = [case for group in groups for case in group() if case.subject in chosen]
    assert len(cases) == len(chosen)
    for case, report in check_table.reports(cases):
        assert bool(report) != case.is_wrecked, f"{case.subject}: {report}"


@pytest.mark.nightly
def test_the_table_meets_its_bars(check_table, capsys):
    assert all(bar.is_met for bar in check_table.table()), capsys.readouterr().out
