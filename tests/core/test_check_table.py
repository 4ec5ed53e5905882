"""The runs of benchmarks/check_table.py: two of them always, all of them at night."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def check_table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("check_table")


def test_a_wrecked_run_is_seen_and_a_good_one_is_not_blamed(check_table):
    """Stochastic gradients that bounce: means of 1000 where 1 is right; and a bounded support."""
    chosen = ("sgld, η = 0.1 on 100 000 rows", "levy_walk, the uniform law")
    groups = (check_table.wrecked_steps, check_table.good_exact)
    cases = [case for group in groups for case in group() if case.subject in chosen]
    (_, wrecked), (_, good) = check_table.reports(cases)
    assert wrecked.kinds == ("step too large",)
    assert str(wrecked).startswith("sgld, not exact: 1 thing looks wrong.")
    assert "times as large as their noise" in str(wrecked)
    assert good, str(good)
    assert str(good).startswith("levy_walk, exact: nothing looks wrong.")


@pytest.mark.nightly
def test_the_table_meets_its_bars(check_table, capsys):
    assert all(bar.is_met for bar in check_table.table()), capsys.readouterr().out
