"""The top of the page: what it is, how the runs were made, and all verdicts at a glance."""

from . import _badges
from ._checks import tally
from ._entries import Entry
from ._facts import listed, shared_facts
from ._html import Html, tag
from ._tables import scrolling

TITLE = "Fractional Langevin Monte Carlo, run again"
PURPOSE = (
    "The experiments of Şimşekli’s “Fractional Langevin Monte Carlo” (ICML 2017), run with levymc: "
    "figures, measured numbers beside the published ones, and for each a verdict that the numbers "
    "support."
)
COLUMNS = ("Experiment", "Paper", "Question", "Verdict", "Checks")


def header(entries: list[Entry]) -> Html:
    """The masthead."""
    return tag(
        "header",
        tag("p", "levymc", class_="brand"),
        tag("h1", TITLE),
        tag("p", PURPOSE, class_="lead"),
        listed(shared_facts(entries), "facts"),
        class_="masthead",
    )


def summary(entries: list[Entry]) -> Html:
    """A row for each experiment."""
    head = [tag("th", name, scope="col", class_="text") for name in COLUMNS]
    body = tag("tbody", *(_row(entry) for entry in entries))
    table = tag("table", tag("thead", tag("tr", *head)), body, class_="overview")
    heading = tag("h2", "Verdicts", id="summary-title")
    shown = scrolling(table, "Verdicts")
    return tag("section", heading, shown, id="summary", aria_labelledby="summary-title")


def _row(entry: Entry) -> Html:
    link = tag("a", entry.title, href=f"#{entry.anchor}")
    found = entry.results
    alarm = " missed" if found and found.has_failed else ""
    return tag(
        "tr",
        tag("th", link, scope="row", class_="text"),
        tag("td", entry.manifest.get("paper_item"), class_="text item"),
        tag("td", entry.manifest.get("question"), class_="text question"),
        tag("td", _badges.state(entry.state), _part(entry), class_="text"),
        tag("td", tally(found.checks) if found else "–", class_=f"text tally{alarm}"),
    )


def _part(entry: Entry) -> Html | None:
    return tag("div", entry.part, class_="part") if entry.part else None
