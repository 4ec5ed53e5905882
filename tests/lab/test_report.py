"""The page on a results folder: whole, safe, the same each time, and fine in a real browser."""

import io
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.lab import toy_experiment

from levymc_lab import framework as experiments
from levymc_lab.framework import Check, ResultsError, Table, Verdict
from levymc_lab.report import write_page

SCRIPT = "<script>alert('&\"')</script>"
VOID = {"meta", "link", "img", "input", "br"}
CHECKS = [
    Check.near("κ at α = 1.5", 12.7193, 12.72, 0.01, source="paper", reason="printed digits"),
    Check.near("bias, α = 1.6", 0.31, 0.1, 0.06, source="paper", explanation="It is a transient."),
    Check.below("residual of b", 3e-9, 1e-6, reason="quadrature error"),
    Check.above("slope", float("nan"), 1.5),
]


def manifest(name: str, **changes) -> dict:
    return {
        "name": name,
        "title": f"On {name}",
        "paper_item": "Figure 0",
        "question": f"What of {name}?",
        "command": f"levymc run {name} --profile quick --seed 0",
        "profile": "quick",
        "config": {"alphas": [1.5, 2.0], "num_draws": 200000},
        "seed": 0,
        "dtype": "float64",
        "num_cells": 3,
        "captions": {"curve": f"A curve of {name}.", "line": "A line."},
        "tables": ["short", "long"],
        "versions": {"python": "3.11.7", "levymc": "0.1.0"},
        "git": {"revision": "0123456789abcdef" * 2, "dirty": True},
        "host_cores": 2,
        "platform": "Linux x86_64",
        "started": "2001-02-03T04:05:06+00:00",
        "finished": "2001-02-03T04:06:06+00:00",
        "wall_seconds": 3725.0,
        "sessions": [{"jobs": 2}],
        "status": "finished",
        "digest": "",
        **changes,
    }


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def picture(suffix: str, num_points: int = 3) -> bytes:
    figure, buffer = Figure(figsize=(8, 3)), io.BytesIO()
    figure.subplots().plot(np.sin(np.arange(num_points)))
    figure.savefig(buffer, format=suffix, dpi=150)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def pictures() -> dict[str, bytes]:
    """Few points, where SVG is shorter, and many, where PNG is."""
    return {
        f"{name}.{suffix}": picture(suffix, size)
        for name, size in (("curve", 3), ("line", 4000))
        for suffix in ("svg", "png")
    }


def make(out: Path, pictures, name="one", kind="reproduced", words="So it is.", **changes) -> Path:
    """A finished run, written by hand."""
    folder = out / name
    write(folder / "manifest.json", json.dumps(manifest(name, **changes)))
    judged = {
        "checks": [check.to_json() for check in CHECKS],
        "verdict": vars(Verdict(kind, words)),
    }
    write(folder / "checks.json", json.dumps(judged))
    tables = {
        "short": Table("Few rows.", {"of": ["a", "b"], "alpha": [1.5, 2.0], "hops": [3, 40000]}),
        "long": Table("Many rows.", {"x": np.arange(40) / 7, "tail_ratio": np.full(40, np.nan)}),
    }
    for table, content in tables.items():
        write(folder / f"tables/{table}.json", content.to_json())
        write(folder / f"tables/{table}.csv", content.to_csv())
    for file, content in pictures.items():
        write(folder / "figures" / file, content)
    return folder


@dataclass
class Page(HTMLParser):
    """What a page consists of."""

    source: str
    tags: list = field(default_factory=list)
    open: list = field(default_factory=list)
    text: str = ""

    def __post_init__(self):
        super().__init__()
        self.feed(self.source)
        self.close()
        assert self.open == []  # every element is closed

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data if data.strip() or "\n" not in data else ""

    def values(self, attribute, tag=None):
        return [a[attribute] for t, a in self.tags if attribute in a and tag in (None, t)]


def page_of(folder: Path) -> Page:
    return Page(write_page(folder).read_text("utf-8"))


@pytest.fixture
def folder(tmp_path, pictures) -> Path:
    """Runs of every state."""
    kinds = ("reproduced", "reproduced only as a transient", "not reproduced", "measured here")
    for kind in kinds:
        make(tmp_path, pictures, kind.replace(" ", "-"), kind, f"Its words: {kind}.")
    make(tmp_path, pictures, "half-done", status="stopped", finished=None)
    write(tmp_path / "half-done/cells/a.npz", b"")
    make(tmp_path, pictures, "broken")
    (tmp_path / "broken/checks.json").unlink()
    return tmp_path


def test_the_page_needs_nothing_but_itself(folder):
    page = page_of(folder)
    resources = page.values("src") + [a["href"] for t, a in page.tags if t == "link"]
    assert resources
    assert all(address.startswith("data:") for address in resources)
    assert {tag for tag, _ in page.tags}.isdisjoint({"iframe", "object", "embed", "base"})
    assert not re.search(
        r"@import|url\(", "".join(re.findall(r"(?s)<style>.*?</style>", page.source))
    )
    assert "default-src 'none'" in page.values("content", "meta")[0]


def test_links_lead_somewhere_and_ids_are_unique(folder):
    page = page_of(folder)
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    for address in page.values("href", "a") + page.values("href", "use"):
        if address.startswith("#"):
            assert address[1:] in ids
        else:
            assert (folder / unquote(address)).is_file()


def test_the_page_is_made_for_people_and_screen_readers(folder):
    page = page_of(folder)
    assert ("html", {"lang": "en"}) in page.tags
    assert "width=device-width, initial-scale=1" in page.values("content", "meta")
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 2 * 4
    assert {image["alt"] for image in images} >= {"A curve of reproduced.", "A line."}
    assert {(image["width"], image["height"]) for image in images} == {("768", "288")}
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")


def test_of_svg_and_png_the_shorter_is_taken(tmp_path, pictures):
    make(tmp_path, pictures)
    curve, line = page_of(tmp_path).values("src", "img")
    assert curve.startswith("data:image/svg+xml,%3Csvg")
    assert "metadata" not in curve
    assert line.startswith("data:image/png;base64,")


def test_what_was_measured_stands_beside_what_was_published(tmp_path, pictures):
    make(tmp_path, pictures, kind="reproduced only as a transient", words="At first, not later.")
    text = page_of(tmp_path).text
    for words in (
        "What of one?",
        "Reproduced only as a transient",
        "At first, not later.",
        "Checks: 2 of 4 met, 2 missed, 1 of them explained.",
        "κ at α = 1.512.7212.72 ± 0.01papermetWhy this bar: printed digits",
        "bias, α = 1.60.310.1 ± 0.06papermissed, explainedMissed, because: It is a transient.",
        "residual of b3×10⁻⁹≤ 1×10⁻⁶theorymet",
        "slopeNaN≥ 1.5theorymissedMissed, and no explanation is given.",
        "Many rows. 40 rows",
        "The first 8 rows; all are in one/tables/long.csv",
        "b2.040,000",
        "levymc run one --profile quick --seed 0",
        "alphas1.5, 2.0",
        "num_draws200,000",
        "2001-02-03",
        "1 h 2 min",
        "float64",
        "Linux x86_64, 2 cores",
        "0123456789ab with uncommitted changes",
        "python 3.11.7, levymc 0.1.0",
    ):
        assert words in text


@pytest.mark.parametrize(("measured", "text"), [(12.73004, "12.73004"), (12.7299, "12.73")])
def test_a_miss_is_not_rounded_away(tmp_path, pictures, measured, text):
    folder = make(tmp_path, pictures)
    check = Check.near("kappa", measured, 12.72, 0.01)
    judged = {"checks": [check.to_json()], "verdict": vars(Verdict("reproduced", ""))}
    write(folder / "checks.json", json.dumps(judged))
    assert f"kappa{text}12.72 ± 0.01" in page_of(tmp_path).text


def test_a_miss_that_is_explained_counts_as_missed_in_the_headline(tmp_path, pictures):
    for name in ("one", "two"):
        make(tmp_path, pictures, name)
    text = Page(write_page(tmp_path).read_text("utf-8")).text
    assert "Checks of all experiments: 4 of 8 met, 4 missed, 2 of them explained." in text


CLEAN, OTHER = ({"revision": letter * 40, "dirty": False} for letter in "ab")


@pytest.mark.parametrize(
    ("first", "second", "head"),
    [
        ([CLEAN, CLEAN], [CLEAN], f"{'a' * 12}"),
        ([CLEAN, CLEAN], [OTHER], f"{'a' * 12} (one); {'b' * 12} (two)"),
        ([CLEAN, OTHER], [OTHER], f"{'a' * 12} (one); {'b' * 12} (one, two)"),
        (
            [CLEAN],
            [{**CLEAN, "dirty": True}],
            f"{'a' * 12} (one); {'a' * 12} with uncommitted changes (two)",
        ),
        ([CLEAN], [{"revision": None}], f"{'a' * 12} (one); unknown (two)"),
    ],
)
def test_one_revision_is_printed_or_which_results_are_of_which(
    tmp_path, pictures, first, second, head
):
    """Of the cells, whatever the sessions say: some may have been copied."""
    for name, states in (("one", first), ("two", second)):
        cells = {f"cell-{number}": state for number, state in enumerate(states)}
        make(tmp_path, pictures, name, cells=cells)
    page = Page(write_page(tmp_path).read_text("utf-8"))
    assert f"Revision{head}Tables" in page.text


def test_results_without_checksums_are_shown_and_marked(tmp_path, pictures):
    make(tmp_path, pictures, "one")
    experiments.run(toy_experiment.EXPERIMENT, tmp_path, jobs=0)
    text = Page(write_page(tmp_path).read_text("utf-8")).text
    assert "Tableswithout checksums (one); as made, by SHA-256 (toy)" in text


def test_a_table_that_was_edited_is_told_on_the_page(tmp_path, pictures):
    experiments.run(toy_experiment.EXPERIMENT, tmp_path, jobs=0)
    table = tmp_path / "toy/tables/means.csv"
    table.write_text(table.read_text().replace("cell-0", "cell-9"))
    text = Page(write_page(tmp_path).read_text("utf-8")).text
    assert "toy/tables/means.csv was changed since it was made" in text
    assert "It is a toy." not in text


def test_experiments_stand_in_the_order_of_the_paper(tmp_path, pictures):
    names = ["a", *experiments.names(), "b"]
    for name in sorted(names):
        make(tmp_path, pictures, name)
    anchors = [one for one in page_of(tmp_path).values("href", "a") if "#experiment" in one]
    expected = [*experiments.names(), "a", "b"]
    assert anchors == [f"#experiment-{name}" for name in expected]


def test_everything_is_escaped(tmp_path, pictures):
    changes = dict.fromkeys(("title", "paper_item", "question", "command", "profile"), SCRIPT)
    changes |= {"config": {SCRIPT: [SCRIPT]}, "captions": {"curve": SCRIPT, SCRIPT: SCRIPT}}
    changes |= {"versions": {SCRIPT: SCRIPT}, "git": {"revision": SCRIPT}, "started": SCRIPT}
    for name in ("a <b> & c#?%20", 'd"'):
        folder = make(tmp_path, pictures, name, words=SCRIPT, **changes)
        table = Table(SCRIPT, {SCRIPT: [SCRIPT]})
        write(folder / "tables/short.json", table.to_json())
        checks = [Check.below(SCRIPT, 2, 1, reason=SCRIPT, explanation=SCRIPT).to_json()]
        judged = {"checks": checks, "verdict": {"kind": "reproduced", "words": SCRIPT}}
        write(folder / "checks.json", json.dumps(judged))
    page = page_of(tmp_path)
    assert page.source.count("<script") == 1  # the page's own
    assert "<b>&" not in page.source
    assert page.text.count(SCRIPT) > 20
    test_links_lead_somewhere_and_ids_are_unique(tmp_path)


def test_a_run_that_is_not_finished_says_how_to_go_on(folder):
    text = page_of(folder).text
    assert "Unfinished" in text
    assert "the run has 1 of its 3 cells. Go on with:levymc run half-done" in text


DAMAGES = {
    "manifest.json": [
        *["", "[]", "{}", '{"title": 5, "captions": []}', '{"status": "stopped"}'],
        *['{"config": ' + 9999 * "[", '{"config": ' + 500 * "[" + 500 * "]" + "}", "\0"],
        *['{"wall_seconds": 1e999}', '{"wall_seconds": NaN}', f'{{"wall_seconds": 1{400 * "0"}}}'],
        '{"title": "\\ud800"}',
    ],
    "checks.json": ["", "[]", "{}", '{"checks": [], "verdict": {"kind": "?", "words": ""}}'],
    "tables/long.json": ["", "[]", '{"caption": "", "columns": []}'],
}


@pytest.mark.parametrize(
    ("file", "content"),
    [(file, one) for file, contents in DAMAGES.items() for one in contents],
    ids=lambda text: text[:30],
)
def test_a_damaged_run_does_not_spoil_the_page(tmp_path, pictures, file, content):
    make(tmp_path, pictures, "whole")
    write(make(tmp_path, pictures, "broken") / file, content)
    page = page_of(tmp_path)
    assert "Unfinished" in page.text if "stopped" in content else "Damaged" in page.text
    assert "On whole" in page.text
    assert len(page.values("src", "img")) == 2
    assert str(tmp_path) not in page.source


@pytest.mark.parametrize("content", [None, b"", b"\x89PNG", b"<svg", b"\xff"])
def test_a_missing_figure_is_named(tmp_path, pictures, content):
    folder = make(tmp_path, pictures)
    for file in folder.glob("figures/line.*"):
        file.unlink() if content is None else file.write_bytes(content)
    page = page_of(tmp_path)
    assert "“line” is missing or damaged" in page.text
    assert len(page.values("src", "img")) == 1


def test_a_folder_without_results_is_refused(tmp_path, pictures):
    (tmp_path / "other").mkdir()
    with pytest.raises(ResultsError, match=r"holds no results.*levymc run all --out"):
        write_page(tmp_path)
    assert not (tmp_path / "index.html").exists()
    with pytest.raises(ResultsError, match="name the folder that it lies in"):
        write_page(make(tmp_path, pictures))


def test_the_same_results_give_the_same_bytes_wherever_they_are(folder, tmp_path_factory):
    first = write_page(folder).read_bytes()
    copy = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(folder, copy)
    assert write_page(copy).read_bytes() == first
    assert str(folder).encode() not in first


def test_a_full_disk_leaves_the_earlier_page(folder, monkeypatch):
    before = write_page(folder).read_bytes()
    make(folder, {}, "more")
    toy_experiment.fill_disk(monkeypatch, 0)
    with pytest.raises(OSError, match="No space left"):
        write_page(folder)
    assert (folder / "index.html").read_bytes() == before


def test_a_page_of_something_else_is_not_written_over(tmp_path, pictures):
    make(tmp_path, pictures)
    page = tmp_path / "index.html"
    page.write_text("<!DOCTYPE html><title>My garden</title>")
    with pytest.raises(ResultsError, match=r"index.html is no page of levymc"):
        write_page(tmp_path)
    assert "My garden" in page.read_text()
    page.unlink()
    assert write_page(tmp_path) == write_page(tmp_path)


def test_the_page_of_a_real_run(tmp_path):
    """What experiments write is what the page reads."""
    experiments.run(toy_experiment.EXPERIMENT, tmp_path, jobs=0)
    page = page_of(tmp_path)
    for words in ("A toy", "Does it run?", "Measured here", "It is a toy.", "Checks: 1 of 1 met."):
        assert words in page.text
    assert page.values("alt") == ["Draws."]


PROBE = """
<script>
addEventListener("error", (event) => parent.postMessage({fault: event.message}, "*"));
addEventListener("load", () => {
  const measure = () => document.documentElement.scrollWidth - innerWidth;
  const folded = measure();
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.querySelectorAll(".zoom input").forEach((one) => { one.click(); });
  const images = [...document.images].map((one) => one.complete ? one.naturalWidth : 0);
  const widths = [...document.images].map((one) => one.getBoundingClientRect().width);
  parent.postMessage({innerWidth, images, widths, overflow: [folded, measure()]}, "*");
});
</script>
"""
FRAMES = """<!DOCTYPE html><html><body><script>
const found = [];
addEventListener("message", (event) => {
  found.push(event.data);
  document.title = encodeURIComponent(JSON.stringify(found));
});
</script>%s</body></html>"""
WIDTHS = (360, 1200)


def in_browser(folder: Path, source: str) -> tuple[list[dict], list[str]]:
    """What the page, in frames as wide as a phone and a desk, tells of itself and logs.

    A window of Chromium is at least 500 pixels wide, a frame need not be.
    """
    frame = '<iframe src="probe.html" width="{}" height="900" style="border:0"></iframe>'
    write(folder / "probe.html", source.replace("</head>", PROBE + "</head>"))
    write(folder / "frames.html", FRAMES % "".join(frame.format(width) for width in WIDTHS))
    options = "--headless=new --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom"
    command = ["chromium", *options.split(), "--virtual-time-budget=5000"]
    command += [f"--user-data-dir={folder / 'browser'}", (folder / "frames.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None, done.stderr
    logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unquote(title[1])), logged


needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")


@pytest.mark.nightly
@needs_chromium
def test_a_real_browser_shows_the_page(folder):
    found, logged = in_browser(folder, write_page(folder).read_text("utf-8"))
    assert logged == []
    assert sorted(one["innerWidth"] for one in found) == sorted(WIDTHS)
    for one in found:
        assert len(one["images"]) == 2 * 4
        assert min(one["images"]) > 0
        assert max(one["overflow"]) <= 0  # the page itself never scrolls sideways
        assert set(one["widths"]) == {768}  # full size where asked for, or where there is room


@pytest.mark.nightly
@needs_chromium
def test_the_browser_would_tell_of_a_fault(folder):
    image = '<img src="data:image/png;base64,AAAA" alt=""><img src="http://localhost/x.png" alt="">'
    wide = '<p style="width: 2000px">wide</p><script>undefined_name;</script>'
    source = write_page(folder).read_text("utf-8").replace("</body>", image + wide + "</body>")
    found, logged = in_browser(folder, source)
    assert any("undefined_name" in line for line in logged)
    assert any("Content Security Policy" in line for line in logged)
    assert "fault" in found[0]
    assert found[-1]["images"][-2:] == [0, 0]
    assert min(found[-1]["overflow"]) > 0
