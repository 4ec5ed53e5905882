r"""What a run leaves: draws, weights, and what to know of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from levymc._trees import named_leaves
from levymc.algorithms import Info

from . import _display
from ._step import Constant, Draws


@dataclass(frozen=True, eq=False)
class Result:
    """Draws of a run; every array has the axes (chain, draw, …).

    positions: pytree of draws; None where only observers saw them.
    weights: the step sizes η_n, the weights of the paper's estimator; ones for other algorithms.
    info: the algorithm's diagnostics, draw by draw.
    is_interrupted: the run was stopped before its end.
    observed: what the observers of the run say, by name; every array has the chains first.
    """

    positions: Any
    weights: np.ndarray
    info: Any
    is_interrupted: bool = False
    observed: dict[str, Any] = field(default_factory=dict)

    @property
    def num_chains(self) -> int:
        return self.weights.shape[0]

    @property
    def num_draws(self) -> int:
        return self.weights.shape[1]

    @property
    def num_divergent(self) -> int:
        """Draws with a step that would have left the finite numbers."""
        return int(np.sum(self.info.is_divergent)) if isinstance(self.info, Info) else 0

    def expectation(self, g: Callable[[Any], Any]) -> Any:
        r"""The weighted estimator of E g(X), a value for each chain:

        .. math:: ν_N(g) = \sum_n η_n g(X_n) \Big/ \sum_n η_n .

        References: [simsekli2017], section 3.1.
        """
        self._need_positions()
        values = jax.jit(jax.vmap(jax.vmap(g)))(self.positions)
        share = self.weights / self.weights.sum(axis=1, keepdims=True)
        return jax.tree.map(
            lambda leaf: np.einsum("cd,cd...->c...", share, np.asarray(leaf, share.dtype)), values
        )

    def mean(self) -> Any:
        """The weighted mean of the positions, for each chain."""
        return self.expectation(lambda position: position)

    def to_arviz(self) -> Any:
        """The draws for ArviZ: InferenceData, or a DataTree from version 1 on.

        The weights and the info are in `sample_stats`.
        """
        import arviz

        self._need_positions()
        stats: dict[str, Any] = {"weight": self.weights}
        if isinstance(self.info, Info):
            stats |= {
                "diverging": self.info.is_divergent,
                "acceptance_rate": self.info.acceptance_rate,
                "largest_jump": self.info.largest_jump,
                "taming": self.info.taming,
            }
        groups: dict[str, Any] = {"posterior": _by_name(self.positions), "sample_stats": stats}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups)
        return arviz.from_dict(**groups)

    def save(self, path: str | Path) -> None:
        """Write all of it to one file, whole or not at all; `levymc.load` reads it."""
        from ._saved import save

        save(self, Path(path))

    def _need_positions(self) -> None:
        if self.positions is None:
            raise ValueError(
                "The positions of this run were not kept, as `observe` was given. "
                "Observe what you need, or run with keep_positions=True."
            )

    def __rich__(self) -> Any:
        return _display.as_rich(repr(self), _display.rows(_by_name(self.positions), self.weights))

    def _repr_html_(self) -> str:
        return _display.as_html(repr(self), _display.rows(_by_name(self.positions), self.weights))

    def __repr__(self) -> str:
        shapes = {name: leaf.shape[2:] for name, leaf in _by_name(self.positions).items()}
        text = f"Result({self.num_chains} chains × {self.num_draws} draws of {shapes}"
        if self.observed:
            text += f", observed {', '.join(self.observed)}"
        if self.num_divergent:
            text += f", {self.num_divergent} divergent"
        return text + (", interrupted)" if self.is_interrupted else ")")


def from_leaves(
    leaves: list[Any],
    structure: Draws,
    counts: tuple[int, int],
    *,
    is_interrupted: bool,
    observed: dict[str, Any],
) -> Result:
    """The result of leaves with axes (chain, draw, …); `structure` holds their numbers.

    `counts` are those of chains and draws, to which constants are spread.
    """

    def filled(place: Any) -> np.ndarray:
        if isinstance(place, Constant):
            return np.broadcast_to(place.value, (*counts, *place.value.shape))
        return leaves[place]

    positions, info = jax.tree.map(filled, tuple(structure))
    weights: Any = info.step_size if isinstance(info, Info) else np.ones(counts)
    return Result(positions, weights, info, is_interrupted, observed)


def _by_name(positions: Any) -> dict[str, Any]:
    """Leaves by name: a dictionary's keys; x for a position that is one array."""
    return {name: np.asarray(leaf) for name, leaf in named_leaves(positions).items()}
