r"""Figure 5's published curves, of which each is the one of α = 2 at c_α times its pace.

SG-FLA's drift moves by c_α η where SGLD's moves by η.  If that is all that α does, the error after
n iterations is that of SGLD at the same

.. math:: t = c_α \sum_{i \le n + m} i^{-0.51},

where m iterations were made before the first one that is plotted.  There is one number to choose,
for all α and data sets, and no ratings are needed to try it.

References: [simsekli2017], Figure 5.
"""

from functools import lru_cache

import numpy as np

from levymc.riesz import leading_coefficient
from levymc_lab.framework import Table

from ._shared import heavy, published

FIGURES = {"ml-1m": "fig5_ml1m", "ml-10m": "fig5_ml10m", "ml-20m": "fig5_ml20m"}
POWER = 0.51
TRIED = range(0, 101, 5)  # values of m


def times(n: np.ndarray, alpha: float, hidden: int) -> np.ndarray:
    """The t of plotted iterations n = 1, 2, …"""
    clock = np.cumsum(np.arange(1, int(np.max(n)) + hidden + 1) ** -POWER)
    return pace(alpha) * clock[np.asarray(n, int) + hidden - 1]


def pace(alpha: float) -> float:
    """c_α, which is 1 at α = 2."""
    return float(leading_coefficient(alpha - 2))


def read_off(name: str, alpha: float, hidden: int) -> np.ndarray:
    """The errors of SGLD's published curve where the curve of α has points; NaN beyond its ends."""
    slow, fast = (published(FIGURES[name]).where(alpha=one) for one in (2.0, alpha))
    at, ours = times(slow["x"], 2.0, hidden), times(fast["x"], alpha, hidden)
    return np.interp(ours, at, slow["y"], left=np.nan, right=np.nan)


def distances(hidden: int) -> Table:
    """Of what is read off from what was published, for every data set and α < 2."""
    rows = []
    for name, figure in FIGURES.items():
        curves = published(figure)
        for alpha in sorted(set(heavy(curves)["alpha"].tolist()), reverse=True):
            known = curves.where(alpha=alpha)["y"]
            gaps = np.abs(read_off(name, alpha, hidden) - known)
            rows.append(
                {
                    "set": name,
                    "alpha": alpha,
                    "hidden": hidden,
                    "points": int(np.isfinite(gaps).sum()),
                    "distance": float(np.nanmean(gaps)),
                    "largest": float(np.nanmax(gaps)),
                }
            )
    return Table.stack(
        "Each published curve, read off that of α = 2 at c_α times its pace, if so many iterations "
        "are not shown: points within its range, mean and largest distance.",
        rows,
    )


@lru_cache
def hidden_iterations() -> int:
    """The m with the least mean distance over all curves.

    >>> hidden_iterations()
    45
    """
    return min(TRIED, key=lambda hidden: distances(hidden)["distance"].mean())
