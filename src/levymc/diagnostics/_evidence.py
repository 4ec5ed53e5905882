"""What `check` looks at, gathered once."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from levymc.algorithms import Info
from levymc.run import Result

from ._convergence import ess_of, has_arviz, rhat_of
from ._draws import column, coordinate_name, variables


class Coordinate(NamedTuple):
    """Draws of one coordinate, and ArviZ's numbers; NaN where it cannot tell, or is missing."""

    name: str
    values: Float[np.ndarray, "chain draw"]
    rhat: float
    bulk_ess: float
    tail_ess: float


class Evidence(NamedTuple):
    """A run, as the tests of `check` want it.

    coordinates: a selection, if there are many.
    is_moved: whether any coordinate differs from the draw before.
    acceptance, divergent, taming: None where the algorithm does not tell.
    is_levymc: the algorithm is one of ours, and so is the meaning of the info.
    """

    result: Result
    coordinates: list[Coordinate]
    num_coordinates: int
    is_finite: bool
    is_moved: Bool[np.ndarray, "chain later_draw"]
    acceptance: np.ndarray | None
    divergent: np.ndarray | None
    taming: np.ndarray | None
    is_levymc: bool

    @property
    def is_unadjusted(self) -> bool:
        """Every step was accepted for certain: there is no Metropolis test."""
        return self.acceptance is not None and bool(np.all(self.acceptance == 1))


def gather(result: Result, max_coordinates: int, fewest_draws: int) -> Evidence:
    leaves = variables(result)
    places = [(name, i) for name, leaf in leaves.items() for i in range(leaf[0, 0].size)]
    spread = np.linspace(0, len(places) - 1, min(max_coordinates, len(places)))
    chosen = [places[int(i)] for i in np.round(spread)]
    is_finite = all(bool(np.all(np.isfinite(leaf))) for leaf in leaves.values())
    wants_arviz = is_finite and has_arviz() and result.num_draws >= fewest_draws
    coordinates = [_coordinate(leaves[name], name, i, wants_arviz) for name, i in chosen]
    return Evidence(
        result,
        coordinates,
        len(places),
        is_finite,
        _is_moved(leaves),
        _of_info(result, "acceptance_rate"),
        _of_info(result, "is_divergent"),
        _of_info(result, "taming"),
        isinstance(result.info, Info),
    )


def _coordinate(leaf: np.ndarray, name: str, number: int, wants_arviz: bool) -> Coordinate:
    values = column(leaf, number)
    numbers = (
        (rhat_of(values), ess_of(values, "bulk"), ess_of(values, "tail"))
        if wants_arviz
        else (float("nan"),) * 3
    )
    return Coordinate(coordinate_name(name, leaf, number), values, *numbers)


def _is_moved(leaves: dict[str, np.ndarray]) -> np.ndarray:
    moved = [
        np.any(leaf[:, 1:] != leaf[:, :-1], axis=tuple(range(2, leaf.ndim)))
        for leaf in leaves.values()
    ]
    return np.any(moved, axis=0)


def _of_info(result: Result, name: str) -> np.ndarray | None:
    """A number a draw from the info of levymc's, BlackJAX's or another algorithm."""
    found: Any = getattr(result.info, name, None)
    if found is None or np.shape(found) != result.weights.shape:
        return None
    return np.asarray(found)
