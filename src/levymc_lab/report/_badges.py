"""Verdicts and outcomes as a shape and a word: never by colour alone."""

from typing import NamedTuple

from ._html import Html, joined, tag


class Badge(NamedTuple):
    """`words` say it in full, `shape` is the id of a symbol below, `tone` a class of page.css."""

    words: str
    shape: str
    tone: str


STATES = {
    "reproduced": Badge("Reproduced", "tick", "good"),
    "reproduced only as a transient": Badge("Reproduced only as a transient", "half", "partly"),
    "not reproduced": Badge("Not reproduced", "cross", "bad"),
    "measured here": Badge("Measured here", "dot", "plain"),
    "unfinished": Badge("Unfinished", "dashes", "pending"),
    "damaged": Badge("Damaged", "alarm", "bad"),
}
OUTCOMES = {
    "pass": Badge("met", "tick", "good"),
    "explained": Badge("explained", "half", "partly"),
    "fail": Badge("missed", "cross", "bad"),
}

# Drawn in the colour of the text around them, the marks inside in that of the paper.
SHAPES = {
    "tick": '<circle cx="8" cy="8" r="7.5"/><path class="mark" d="M4.4 8.3l2.5 2.5 4.8-5.3"/>',
    "half": '<circle class="line" cx="8" cy="8" r="6.6"/><path d="M8 1.4a6.6 6.6 0 0 1 0 13.2z"/>',
    "cross": '<rect x="1" y="1" width="14" height="14" rx="2.5"/>'
    '<path class="mark" d="M5 5l6 6m0-6l-6 6"/>',
    "dot": '<circle class="line" cx="8" cy="8" r="6.6"/><circle cx="8" cy="8" r="2.6"/>',
    "dashes": '<circle class="line" stroke-dasharray="2.6 2.6" cx="8" cy="8" r="6.6"/>',
    "alarm": '<path d="M8 .8L15.9 15H.1z"/><path class="mark" d="M8 6v4.2m0 1.6v1.2"/>',
}


def state(kind: str) -> Html:
    """The badge of a verdict."""
    return _drawn(STATES[kind], "badge")


def outcome(name: str) -> Html:
    """The badge of a check."""
    return _drawn(OUTCOMES[name], "outcome")


def symbols() -> Html:
    """The shapes, to stand once in the page, unseen."""
    drawn = [
        tag("symbol", Html(shape), id=f"shape-{name}", viewBox="0 0 16 16")
        for name, shape in SHAPES.items()
    ]
    return tag("svg", *drawn, class_="symbols", width=0, height=0, aria_hidden="true")


def _drawn(badge: Badge, kind: str) -> Html:
    use = tag("use", href=f"#shape-{badge.shape}")
    icon = tag("svg", use, class_="shape", viewBox="0 0 16 16", aria_hidden="true")
    return tag("span", joined(icon, tag("span", badge.words)), class_=f"{kind} {badge.tone}")
