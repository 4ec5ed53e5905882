"""Draws as NumPy arrays with the axes (chain, draw, …), by the names that ArviZ shows."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from levymc._checks import check_floating, check_real
from levymc.run import Result

CHAIN_AXES = "Give a Result, or arrays with the axes (chain, draw, …); for one chain, x[None]."


def variables(draws: Any) -> dict[str, np.ndarray]:
    """The leaves of a result's positions, or of a pytree: a dictionary's keys, or x."""
    positions = draws.positions if isinstance(draws, Result) else draws
    leaves = jax.tree_util.tree_leaves_with_path(positions)
    return {
        jax.tree_util.keystr(path, simple=True, separator=".") or "x": np.asarray(leaf)
        for path, leaf in leaves
    }


def checked_variables(draws: Any) -> dict[str, np.ndarray]:
    """The same, refused where there is no chain or draw, or something is not finite."""
    found = variables(draws)
    check_floating("draws", found)
    for name, leaf in found.items():
        if leaf.ndim < 2 or 0 in leaf.shape[:2]:
            raise ValueError(f"`draws` must have chains and draws, got {name} of {leaf.shape}. "
                             f"{CHAIN_AXES}")  # fmt: skip
        check_real(f"draws[{name}]", leaf, "`levymc.diagnostics.check` says what went wrong.")
    return found


def by_coordinate(
    draws: dict[str, np.ndarray], statistic: Callable[[str, np.ndarray], float]
) -> dict[str, np.ndarray]:
    """A number for each coordinate; the arrays have the shapes of the variables."""
    return {
        name: np.array(
            [
                statistic(coordinate_name(name, leaf, i), column(leaf, i))
                for i in range(leaf[0, 0].size)
            ]
        ).reshape(leaf.shape[2:])
        for name, leaf in draws.items()
    }


def column(leaf: np.ndarray, number: int) -> Float[np.ndarray, "chain draw"]:
    """One coordinate, in double precision."""
    place: Any = np.unravel_index(number, leaf.shape[2:])
    return np.asarray(leaf[(..., *place)], np.float64)


def coordinate_name(name: str, leaf: np.ndarray, number: int) -> str:
    place = np.unravel_index(number, leaf.shape[2:])
    return name + (f"[{', '.join(str(i) for i in place)}]" if place else "")
