"""What the figures have in common: the paper's numbers, and parts of tables, verdicts and plots."""

import csv
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import FigureBase
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from levymc.algorithms import Algorithm
from levymc.run import Result, resume, sample
from levymc_lab.framework import Check, Table, nearest

DASHED, DOTTED = (0, (4, 2)), (0, (1, 1))  # of lines, for Matplotlib


@lru_cache
def published(figure: str) -> Table:
    """The points of a figure of the paper, with columns alpha, x and y.

    Args:
        figure: such as ``fig4_bias_vs_alpha``; of the curves of ``fig5_ml1m``, ``fig5_ml10m`` and
            ``fig5_ml20m`` some forty points each.

    Examples:
        >>> import levymc_lab.paper
        >>> levymc_lab.paper.published("fig4_bias_vs_alpha").where(x=1.75)["y"]
        array([0.03424])

    References: [simsekli2017]; the points were read off its figures.
    """
    text = files("levymc_lab.paper").joinpath("published.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    chosen = [row for row in rows if row["figure"] == figure]
    if not chosen:
        known = dict.fromkeys(row["figure"] for row in rows)
        raise ValueError(f"Published figures: {nearest(figure, known)}")
    columns = {name: [float(row[name] or "nan") for row in chosen] for name in ("alpha", "x", "y")}
    return Table(f"Published: {figure}.", columns)


def failures(checks: Iterable[Check]) -> str:
    """The names of the checks that failed without an explanation; empty if none did."""
    return "; ".join(check.name for check in checks if check.outcome == "fail")


def groups(table: Table, column: str) -> Iterator[tuple[Any, Table]]:
    """The values of a column in the order in which they appear, and the rows of each.

    >>> table = Table("", {"alpha": [2.0, 2.0, 1.5], "x": [1, 2, 3]})
    >>> [(alpha, part["x"].tolist()) for alpha, part in groups(table, "alpha")]
    [(2.0, [1, 2]), (1.5, [3])]
    """
    for value in dict.fromkeys(table[column].tolist()):
        yield value, table.where(**{column: value})


def rows_at(table: Table, places: np.ndarray) -> Table:
    """The rows at these places, or where a mask is true."""
    return Table(table.caption, {name: values[places] for name, values in table.columns.items()})


def heavy(table: Table) -> Table:
    """Without α = 2, the Gaussian."""
    return rows_at(table, table["alpha"] < 2)


def gathered(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Rows with the same names as one array for each name."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def centres(edges: np.ndarray) -> np.ndarray:
    """The middles of the bins of a histogram, to six decimals."""
    return ((edges[:-1] + edges[1:]) / 2).round(6)


def sampled(
    algorithm: Algorithm,
    key: Any,
    starts: Any,
    num_steps: int,
    *,
    store: Path | None = None,
    **how: Any,
) -> Result:
    """As `levymc.sample`, but goes on with a store that is there already.

    That steps diverge is a finding, not news.  And a run that is interrupted is none: what there is
    of it must not be taken for a cell.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*had a step that would have")
        if store is not None and store.exists():
            result = resume(store, progress=False)
        else:
            result = sample(algorithm, key, starts, num_steps, store=store, progress=False, **how)
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result


def wide(x: Any) -> Array:
    """In the widest precision that is allowed, for sums over many steps of float32."""
    return jnp.asarray(x, float)


def plain_ticks(axis: Axis, places: Sequence[float | int] = (1, 2, 5)) -> None:
    """Numbers as one writes them, at these multiples of powers of ten, on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=places))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def spread_colour(alpha: float, lowest: float, brightest: float) -> Any:
    """As dark to bright as elsewhere, but wider apart, for α that are close, up to 1.9."""
    return mpl.colormaps["plasma"](np.interp(alpha, (lowest, 1.9), (brightest, 0.0)))


def legend_below(figure: FigureBase, axes: Axes, num_columns: int) -> None:
    """One legend for all panels, with what is drawn in one of them."""
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=num_columns)
