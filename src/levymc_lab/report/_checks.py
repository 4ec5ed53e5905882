"""Measured beside published: the table of checks."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from levymc_lab.framework import Check

from . import _badges
from ._html import Html, joined, tag
from ._numbers import DIGITS, number
from ._tables import scrolling

COLUMNS = {
    "Check": "text",
    "Measured": "number",
    "Published or limit": "number",
    "Source": "text",
    "Outcome": "text",
}


def tally(checks: Iterable[Check]) -> str:
    """How many checks have which outcome.

    >>> tally([Check.below("a", 1, 2), Check.below("b", 3, 2)])
    '1 of 2 met, 1 missed'
    """
    outcomes = [check.outcome for check in checks]
    if not outcomes:
        return "no checks"
    counts = {name: outcomes.count(name) for name in ("explained", "fail")}
    others = [f"{n} {_badges.OUTCOMES[name].words}" for name, n in counts.items() if n]
    return ", ".join([f"{outcomes.count('pass')} of {len(outcomes)} met", *others])


def checks_table(checks: list[Check], heading: str) -> Html | None:
    """The checks; those in a row with the same reason share its line."""
    if not checks:
        return None
    head = [tag("th", name, scope="col", class_=kind) for name, kind in COLUMNS.items()]
    groups = [_group(reason, group) for reason, group in groupby(checks, lambda one: one.reason)]
    table = tag("table", tag("thead", tag("tr", *head)), *groups, class_="checks")
    return joined(tag("h3", heading), scrolling(table, "Checks"))


def _group(reason: str, checks: Iterable[Check]) -> Html:
    rows = [row for check in checks for row in _rows(check)]
    return tag("tbody", *rows, _remark("Why this bar: ", reason) if reason else None)


def _rows(check: Check) -> Iterator[Html]:
    yield tag(
        "tr",
        tag("th", check.name, scope="row", class_="text"),
        tag("td", _measured(check), class_="number measured"),
        tag("td", _expected(check), class_="number expected"),
        tag("td", check.source, class_="text source"),
        tag("td", _badges.outcome(check.outcome), class_="text"),
    )
    if check.outcome == "explained":
        yield _remark("Explained: ", check.explanation)
    elif check.outcome == "fail":
        yield _remark("Missed, ", "and no explanation is given.")


def _measured(check: Check) -> str:
    """With as many digits as show on which side of the bar it lies."""
    for digits in range(DIGITS, 17):
        rounded = replace(check, measured=float(f"{check.measured:.{digits}g}"))
        if rounded.holds == check.holds:
            return number(check.measured, digits)
    return number(check.measured, 17)


def _expected(check: Check) -> str:
    if check.relation == "near":
        return f"{number(check.target)} ± {number(check.tolerance, 2)}"
    return f"{'≤' if check.relation == 'below' else '≥'} {number(check.target)}"


def _remark(opening: str, text: str) -> Html:
    cell = tag("td", tag("b", opening), text, colspan=len(COLUMNS))
    return tag("tr", cell, class_="remark")
