"""A release has one number and one date, wherever they are written."""

import re
import tomllib
from pathlib import Path

import levymc

ROOT = Path(__file__).parents[2]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def newest_release() -> tuple[str, str]:
    """Number and date of the first section of the changelog that has them."""
    found = re.search(
        r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.M
    )
    assert found
    return found[1], found[2]


def test_the_version_is_that_of_the_newest_release():
    number, _ = newest_release()
    assert levymc.__version__ == number
    assert tomllib.loads(text_of("pyproject.toml"))["project"]["version"] == number


def test_the_citation_names_the_newest_release():
    number, date = newest_release()
    lines = text_of("CITATION.cff").splitlines()
    assert f"version: {number}" in lines
    assert f"date-released: {date}" in lines


def test_the_site_takes_its_version_from_the_library():
    assert "release = version = levymc.__version__" in text_of("docs/conf.py")


def test_what_is_not_released_stands_on_top():
    headings = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.M)
    assert headings[0] == "[Unreleased]"
