"""Numbers read off the paper's figures."""

import csv
from functools import lru_cache
from importlib.resources import files

from levymc_lab.framework import Table, nearest


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
