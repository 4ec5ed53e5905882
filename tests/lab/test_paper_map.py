"""docs/paper.md: every row is filled, and what it names exists."""

import functools
import re
from pathlib import Path

import pytest

import levymc
from levymc_lab import framework

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper.md"


def rows():
    """The cells of every row of every table, without headings and rules."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [cells for cells in split if cells[0] != "Item"]


def test_no_row_has_an_empty_cell():
    assert len(rows()) > 40
    for cells in rows():
        assert len(cells) == 4
        assert all(cells)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`levymc\.([\w.]+)`", PAGE.read_text()))))
def test_what_is_named_exists(name):
    functools.reduce(getattr, name.split("."), levymc)


def test_what_measures_exists():
    for cells in rows():
        for name in re.findall(r"`([^`]+)`", cells[2]):
            assert name in framework.names() or (ROOT / name).is_file(), name
