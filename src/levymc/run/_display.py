"""A result as a table, in a terminal or a notebook."""

from html import escape
from typing import Any

import numpy as np

MOST_ROWS = 12
LEVELS = (0.05, 0.5, 0.95)
COLUMNS = ("", "5 %", "median", "95 %")


def rows(named: dict[str, Any], weights: np.ndarray) -> list[tuple[str, ...]]:
    """Weighted quantiles of the first coordinates, all chains together: they always exist."""
    table: list[tuple[str, ...]] = []
    flat_weights = np.ravel(weights)
    for name, leaf in named.items():
        for index in np.ndindex(leaf.shape[2:]):
            if len(table) == MOST_ROWS:
                return [*table, ("…", "", "", "")]
            label = name + (f"[{', '.join(map(str, index))}]" if index else "")
            values = np.ravel(np.asarray(leaf)[(slice(None), slice(None), *index)])
            levels = np.quantile(values, LEVELS, weights=flat_weights, method="inverted_cdf")
            table.append((label, *(f"{level:.4g}" for level in levels)))
    return table


def as_html(caption: str, table: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in table)
    return f"<table><caption>{escape(caption)}</caption>{line(COLUMNS, 'th')}{body}</table>"


def as_rich(caption: str, table: list[tuple[str, ...]]) -> Any:
    from rich.table import Table

    shown = Table(title=caption, title_justify="left")
    for number, column in enumerate(COLUMNS):
        shown.add_column(column, justify="left" if number == 0 else "right")
    for cells in table:
        shown.add_row(*cells)
    return shown
