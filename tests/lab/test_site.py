"""The site: every name of its reference exists, its code runs, and it builds without a network."""

import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from tests.lab.toy_images import toy_images

import levymc
from levymc_lab.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTED = re.findall(
    r"^\.\. auto(?:function|class):: ([\w.]+)$",
    "\n".join(page.read_text("utf-8") for page in sorted((DOCS / "api").glob("*.md"))),
    flags=re.MULTILINE,
)
# The other pages with code: SETTINGS and the belief networks, below; tests/lab/test_howto.py runs
# the files for several processes of slurm, kubernetes and scale.
PAGES = ("index", "start", "theory", *(
    f"howto/{name}" for name in (
        "numpyro", "pymc", "blackjax", "optax", "diffrax", "numpy", "minibatches", "store",
        "stopping", "evidence", "check", "gpu",
    )
))  # fmt: skip
SETTINGS = ("howto/float64", "howto/cluster")  # they change JAX's for a whole process


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_the_reference_names_exists(name):
    module, _, rest = name.partition(".")
    assert module == "levymc"
    parts = rest.split(".")
    if parts[:2] in (["interop", "numpyro"], ["interop", "pymc"], ["interop", "diffrax"]):
        pytest.importorskip(parts[1])
    assert functools.reduce(getattr, parts, levymc).__doc__


def test_the_reference_has_every_function_at_the_top():
    functions = {
        f"levymc.{name}"
        for name, value in vars(levymc).items()
        if callable(value) and not name.startswith("_")
    }
    assert functions <= set(DOCUMENTED)
    assert len(DOCUMENTED) == len(set(DOCUMENTED))


def blocks(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_code_fits_the_page():
    for page in (*PAGES, *SETTINGS, "belief-networks"):
        for line in "\n".join(blocks(page)).splitlines():
            assert len(line) <= 92, (page, line)


def test_the_page_of_examples_has_every_script_and_its_picture():
    page = (DOCS / "examples.md").read_text("utf-8")
    scripts = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    assert sorted(re.findall(r"^\| `(\w+)\.py` \|", page, re.M)) == scripts
    assert sorted(re.findall(r"\(images/examples/(\w+)\.png\)", page)) == scripts
    for name in scripts:
        assert (DOCS / "images" / "examples" / f"{name}.png").stat().st_size < 120_000


def test_the_page_of_the_command_has_all_that_it_does():
    command = typer.main.get_command(app)
    text = (DOCS / "howto" / "command.md").read_text("utf-8")
    assert {f"`levymc {name}" for name in command.commands} <= set(re.findall(r"`levymc \w+", text))


def test_no_line_of_a_page_is_a_comment():
    """Of MyST a line that begins with a per cent sign is one, and is left out."""
    for page in sorted(DOCS.glob("**/*.md")):
        lines = page.read_text("utf-8").splitlines()
        assert not [line for line in lines if line.startswith("%")], page


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_code_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = page.rpartition("/")[2]
    if library in ("numpyro", "pymc", "optax", "diffrax", "blackjax"):
        pytest.importorskip(library)
    namespace: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks(page):
            exec(compile(block, f"{page}.md", "exec"), namespace)
    assert printed.getvalue()
    assert "nan" not in printed.getvalue()


@pytest.mark.nightly
@pytest.mark.parametrize("page", SETTINGS)
def test_settings_are_made_as_they_stand(page, tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks(page))],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_ENABLE_X64": "0", "LEVYMC_CACHE": str(tmp_path)},
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("float64" if page.endswith("float64") else str(tmp_path))


@pytest.mark.nightly
def test_the_belief_network_of_its_page_is_sampled(monkeypatch):
    """With twelve made-up pictures in the place of sixty thousand, and few steps."""
    monkeypatch.setattr("levymc_lab.data.load", lambda name: toy_images())
    (code,) = blocks("belief-networks")
    for published, small in (
        ("60_000", "12"), (", 5000, thin=500", ", 20, thin=5"), ("(12)}, 200)", "(12)}, 4)"),
    ):  # fmt: skip
        assert published in code
        code = code.replace(published, small)
    namespace: dict[str, object] = {}
    exec(compile(code, "belief-networks.md", "exec"), namespace)
    run = namespace["run"]
    assert isinstance(run, levymc.Result)
    assert run.num_draws == 4
    assert run.num_divergent == 0


class _Resources(HTMLParser):
    """Addresses that a browser loads by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        loads = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
        if tag in loads and given.get(loads[tag]):
            self.found.append(given[loads[tag]])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.found.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built with warnings as errors."""
    if find_spec("sphinx_book_theme") is None:
        pytest.skip("needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(folder)]
    made = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env={**os.environ, "XLA_FLAGS": ""}
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.nightly
def test_pages_load_nothing_from_elsewhere(site):
    pages = sorted(site.glob("**/*.html"))
    assert len(pages) > 30
    for page in pages:
        resources = _Resources()
        resources.feed(page.read_text("utf-8"))
        # What is written into the page itself may name a namespace.
        elsewhere = [a for a in resources.found if "//" in a and not a.startswith("data:")]
        assert not elsewhere, page


@pytest.mark.nightly
def test_formulas_and_sections_are_rendered(site):
    page = (site / "api" / "samplers.html").read_text("utf-8")
    assert page.count("<math") > 5
    for heading in ("Targets", "Not valid when", "Departures"):
        assert f'<p class="rubric">{heading}</p>' in page
    assert "[simsekli2017]" not in page
    assert "η<sup>1/α</sup>" in page


@pytest.mark.nightly
def test_the_reference_shows_nothing_of_the_machine_nor_of_python(site):
    for page in sorted((site / "api").glob("*.html")):
        text = page.read_text("utf-8")
        for words in ("Alias for field number", "site-packages", "For ArviZ</p>"):
            assert words not in text, page


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_pictures_are_drawn(site, tmp_path):
    """In a browser, which writes down what its page has become, and errors of its scripts."""
    made = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--v=0",
            "--virtual-time-budget=5000", "--dump-dom", (site / "how-it-works.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    widths = re.findall(r"<canvas[^>]* width=\"(\d+)\"", made.stdout)
    assert len(widths) == 4
    assert all(int(width) > 200 for width in widths)
    # The theme tells there, as no error, what it has set.
    told = r'"\[PST\]: (Changed to auto mode|Scrolled sidebar) '
    heard = [line for line in made.stderr.splitlines() if "CONSOLE" in line]
    assert not [line for line in heard if not re.search(told, line)], made.stderr
