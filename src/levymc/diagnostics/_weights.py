"""Weights of draws, as shares that sum to one."""

from typing import Any

import numpy as np

from levymc._checks import check_real

REMEDY = "Give one for each draw, such as `result.weights`."


def shares(weights: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Equal shares if `weights` is None."""
    if weights is None:
        return np.full(shape, 1 / np.prod(shape))
    check_real("weights", weights, REMEDY)
    given = np.asarray(weights, np.float64)
    if given.shape != shape:
        raise ValueError(
            f"`weights` must have the shape {shape} of the draws, got {given.shape}. {REMEDY}"
        )
    if np.any(given < 0) or given.sum() == 0:
        raise ValueError(
            f"`weights` must not be negative nor all zero, got {given.min()} as the least. {REMEDY}"
        )
    return given / given.sum()
