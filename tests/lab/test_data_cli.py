"""`levymc data`: what it prints, and how it ends."""

import pytest
from tests.lab.test_data_fetch import Handler, server  # noqa: F401
from tests.lab.toy_ratings import DAT_TEXT, register_toy, zipped
from typer.testing import CliRunner

from levymc_lab.cli import app


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    register_toy(monkeypatch)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path):
    return zipped(tmp_path / "toy.zip", {"toy/ratings.dat": DAT_TEXT})


def levymc_data(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_import_and_list(cache, source):
    before = levymc_data("list").stdout
    assert "ml-20m" in before
    assert "3 ratings" not in before
    result = levymc_data("import", "toy", "--from", source)
    assert result.exit_code == 0
    assert result.stdout == f"toy: 3 ratings, in {cache / 'toy'}\n"
    after = levymc_data("list").stdout
    assert "3 ratings" in after
    assert str(cache) in after
    (cache / "toy/manifest.json").write_text("{")
    assert "broken: import it again" in levymc_data("list").stdout


def test_a_cache_of_ones_own(source, tmp_path, cache):
    own = tmp_path / "own"
    assert levymc_data("import", "toy", "--from", source, "--cache", own).exit_code == 0
    assert (own / "toy/manifest.json").exists()
    assert not cache.exists()


def test_bad_input_ends_with_2_and_one_sentence(source, tmp_path, cache):
    bad = tmp_path / "ratings.dat"
    bad.write_text(DAT_TEXT + "1::2::9::4\n")
    for arguments, message in (
        (["import", "toy", "--from", bad], f"{bad}:4: unknown rating '9'"),
        (["import", "tyo", "--from", source], "Did you mean toy?"),
        (["fetch", "toy"], "--trust-first-download"),
        (["fetch", "ml-latest-small"], "--trust-first-download"),
        (["fetch", "toy", "--url", "file:///etc/passwd", "--trust-first-download"], "https://"),
    ):
        result = levymc_data(*arguments)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("levymc: ")
        assert message in line
    assert levymc_data("import", "toy").exit_code == 2
    assert not list(cache.glob("*/*"))


def test_io_problems_end_with_3(source, tmp_path, cache):
    result = levymc_data("import", "toy", "--from", tmp_path / "none")
    assert result.exit_code == 3
    assert "No such file" in result.stderr
    cache.write_text("a file where the folder should be")
    assert levymc_data("import", "toy", "--from", source).exit_code == 3


def test_fetch_shows_the_licence_and_does_not_load_twice(server, cache):  # noqa: F811
    url = f"http://127.0.0.1:{server.server_port}"
    options = ["--url", f"{url}/toy.zip", "--trust-first-download"]
    result = levymc_data("fetch", "toy", *options)
    assert result.exit_code == 0
    assert result.stdout.index("Play with it.") < result.stdout.index("Downloading")
    assert "toy: 3 ratings" in result.stdout
    again = levymc_data("fetch", "toy", *options)
    assert again.exit_code == 0
    assert "Downloading" not in again.stdout
    failed = levymc_data("fetch", "toy", "--force", "--url", f"{url}/none", *options[2:])
    assert failed.exit_code == 3
    assert "404" in failed.stderr
    assert levymc_data("fetch", "toy").exit_code == 0


def test_help_has_examples_and_exit_codes():
    assert "levymc data fetch ml-1m" in levymc_data("fetch", "--help").stdout
    assert "130" in levymc_data("fetch", "--help").stdout
    assert "import" in levymc_data("--help").stdout
