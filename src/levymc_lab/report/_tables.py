"""Tables of results: short ones whole, of long ones the first rows and where the rest is.

What is made of a part of the cells is in no file, and no link leads there.
"""

import numpy as np

from levymc_lab.framework import Table

from ._entries import Entry
from ._html import Html, joined, tag
from ._numbers import column, exact, number

MAX_ROWS = 30
FIRST_ROWS = 8
SHORT_TEXT = 32  # characters that stay on one line
LONGEST_WORD = 40  # characters of a text without spaces
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "kappa": "κ", "sigma": "σ"}


def tables(entry: Entry) -> Html | None:
    """All tables of an experiment, first those which are shown whole."""
    if entry.results is None:
        return None
    found = entry.results.tables
    whole = [_whole(entry, name, one) for name, one in found.items() if len(one) <= MAX_ROWS]
    cut = [_beginning(entry, name, one) for name, one in found.items() if len(one) > MAX_ROWS]
    if not whole + cut:
        return None
    return joined(tag("h3", entry.marked("Tables")), *whole, *cut)


def scrolling(table: Html, label: str) -> Html:
    """A table that scrolls by itself where the screen is narrow."""
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def _whole(entry: Entry, name: str, table: Table) -> Html:
    source = None if entry.part else tag("p", _link(entry, name), class_="source")
    caption = tag("p", table.caption or name, class_="caption")  # outside, for it not to scroll
    return joined(caption, scrolling(_drawn(table, len(table)), f"Table {name}"), source)


def _beginning(entry: Entry, name: str, table: Table) -> Html:
    count = tag("span", f"{number(len(table))} rows", class_="count")
    where = joined("; all are in ", _link(entry, name)) if not entry.part else "."
    note = tag("p", f"The first {FIRST_ROWS} rows", where, class_="source")
    return tag(
        "details",
        tag("summary", table.caption or name, " ", count),
        scrolling(_drawn(table, FIRST_ROWS), f"Table {name}, first rows"),
        note,
    )


def _link(entry: Entry, name: str) -> Html:
    return tag("a", f"{entry.name}/tables/{name}.csv", href=entry.file("tables", f"{name}.csv"))


def _drawn(table: Table, num_rows: int) -> Html:
    columns = [(name, *_cells(values, num_rows)) for name, values in table.columns.items()]
    head = [tag("th", _heading(name), scope="col", class_=kind) for name, kind, _ in columns]
    cells = [[tag("td", text, class_=kind) for text in texts] for _, kind, texts in columns]
    body = [tag("tr", *row) for row in zip(*cells, strict=True)]
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))


def _cells(values: np.ndarray, num_rows: int) -> tuple[str, list[str]]:
    """The class of a column and its first texts."""
    first = values[:num_rows].tolist()
    if values.dtype.kind == "f":
        return "number", column(first)
    texts = [_shortened(exact(value)) for value in first]
    if values.dtype.kind == "i":
        return "number", texts
    return "text short" if max(map(len, texts), default=0) <= SHORT_TEXT else "text", texts


def _shortened(text: str) -> str:
    """A text without its rest where it is no words, as an encoded picture."""
    return text if len(text) <= LONGEST_WORD or " " in text else f"{text[:LONGEST_WORD]}…"


def _heading(name: str) -> str:
    """A column's name for readers.

    >>> _heading("tail_ratio"), _heading("mean_alpha")
    ('tail ratio', 'mean α')
    """
    return " ".join(GREEK.get(word, word) for word in name.split("_"))
