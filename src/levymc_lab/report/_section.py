"""One experiment: question, verdict, figures, checks, tables, and how it was run."""

from . import _badges
from ._checks import checks_table, tally
from ._entries import Entry
from ._facts import listed, run_facts, settings
from ._figures import figure
from ._html import Html, joined, tag
from ._tables import tables

CHECKS = "Measured beside published"


def section(entry: Entry) -> Html:
    """All that is known of an experiment."""
    found = entry.results
    return tag(
        "section",
        _heading(entry),
        _verdict(entry),
        _figures(entry),
        checks_table(found.checks, entry.marked(CHECKS)) if found else None,
        tables(entry),
        _how(entry),
        id=entry.anchor,
        aria_labelledby=f"{entry.anchor}-title",
    )


def _heading(entry: Entry) -> Html:
    item, profile = entry.manifest.get("paper_item"), entry.manifest.get("profile")
    words = [item, f"profile {profile}" if profile else None]
    eyebrow = joined(*words, tag("code", entry.name), by=" · ")
    question = entry.manifest.get("question")
    return tag(
        "header",
        tag("p", eyebrow, class_="eyebrow"),
        tag("h2", entry.title, id=f"{entry.anchor}-title"),
        tag("p", question, class_="question") if question else None,
    )


def _verdict(entry: Entry) -> Html:
    tone = _badges.STATES[entry.state].tone
    count = None
    if entry.results is not None:
        count = tag("p", f"Checks: {entry.marked(tally(entry.results.checks))}.", class_="tally")
    words = tag("p", entry.words, class_="words")
    command = _command(entry.command)
    badge = joined(_badges.state(entry.state), tag("b", entry.part) if entry.part else None, by=" ")
    return tag("div", badge, words, command, count, class_=f"verdict {tone}")


def _figures(entry: Entry) -> Html | None:
    if entry.results is None:
        return None
    results, captions = entry.results, entry.manifest.get("captions", {})
    return joined(
        *(figure(results, name, entry.marked(str(text))) for name, text in captions.items())
    )


def _how(entry: Entry) -> Html | None:
    manifest = entry.manifest
    if not manifest:
        return None
    configuration = settings(manifest)
    return tag(
        "details",
        tag("summary", "How it was run"),
        _command(manifest.get("command", "")),
        listed(run_facts(manifest), "facts"),
        tag("h4", "Configuration") if configuration else None,
        listed(configuration, "facts settings"),
        class_="how",
    )


def _command(text: str) -> Html | None:
    return tag("pre", tag("code", text), tabindex=0) if text else None
