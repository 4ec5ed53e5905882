"""Cells that cover the line: the bins between edges, and ever longer panels outside of them."""

from typing import Any

import numpy as np
from jaxtyping import Float

from levymc._checks import check_real

OUTER_PANELS = 60  # each twice as long as the one before: 1e18 widths of a bin
EDGES_REMEDY = "Give points that enclose and resolve the modes: np.linspace(-6, 6, 61)."


def check_edges(edges: Any) -> Float[np.ndarray, " edge"]:
    check_real("edges", edges, EDGES_REMEDY)
    limits = np.asarray(edges, np.float64)
    if limits.ndim != 1 or limits.size < 2 or np.any(np.diff(limits) <= 0):
        raise ValueError(
            f"`edges` must be at least two increasing points, got {edges}. {EDGES_REMEDY}"
        )
    return limits


def cells(edges: np.ndarray, refinement: int) -> np.ndarray:
    """Bins in quarters, outer panels in eighths; each again in `refinement` cells."""
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    reach = width * (2.0 ** np.arange(1, OUTER_PANELS + 1) - 1)
    left, right = (edges[0] - reach)[::-1], edges[-1] + reach
    outer = (np.append(left, edges[0]), np.insert(right, 0, edges[-1]))
    before, after = (_cut(points, 8 * refinement) for points in outer)
    return np.concatenate([before[:-1], _cut(edges, 4 * refinement)[:-1], after])


def _cut(points: np.ndarray, pieces: int) -> np.ndarray:
    inner = points[:-1, None] + np.diff(points)[:, None] * (np.arange(pieces) / pieces)
    return np.append(inner.ravel(), points[-1])
