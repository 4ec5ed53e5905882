"""Draws of a model that was written in another library, under the names that it gave them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from levymc.adapt import AutoResult, Evidence, FoundModes
from levymc.run import to_groups


@dataclass(frozen=True, eq=False, repr=False)
class ModelResult:
    """What `sample` gives for a model of another library.

    result: the `levymc.adapt.AutoResult`, whose positions are unconstrained.
    posterior: the model's own variables by their names, with axes (chain, draw, …).
    modes: as those of `result`, with the model's variables as locations; None where no list was
        made.
    dims, coords: names of the axes of variables, and labels along them.
    data: further groups for ArviZ, such as observed_data, by name.
    """

    result: AutoResult
    posterior: dict[str, np.ndarray]
    modes: FoundModes | None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def report(self) -> str:
        """What was found, which kernel ran and why, and what could not be seen."""
        return self.result.report

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the answer; empty where nothing speaks against it."""
        return self.result.warnings

    @property
    def is_flagged(self) -> bool:
        """Whether something speaks against the answer."""
        return self.result.is_flagged

    @property
    def log_evidence(self) -> Evidence:
        """Of the model's density, given the modes found; NaN where a prior is not normalised."""
        return self.result.log_evidence

    def to_arviz(self) -> Any:
        """The draws for ArviZ, with the model's names, dims and coords.

        InferenceData, or a DataTree from ArviZ 1.0 on.  `sample_stats` has the log density of the
        unconstrained positions as lp.

        Raises: ImportError: without ArviZ.
        """
        groups = {"posterior": self.posterior, "sample_stats": self.result.statistics}
        groups |= {name: dict(group) for name, group in self.data.items() if group}
        dims = {name: list(axes) for name, axes in self.dims.items()}
        return to_groups(groups, dims, self.coords, self.result.attributes)

    def __repr__(self) -> str:
        shapes = {name: draws.shape[2:] for name, draws in self.posterior.items()}
        counts = f"{self.result.num_chains} chains × {self.result.num_draws} draws"
        flags = f", {len(self.warnings)} warnings" if self.is_flagged else ""
        return f"ModelResult({counts} of {shapes}{flags})"


def model_result(
    result: AutoResult, constrain: Callable[[Any], dict[str, np.ndarray]], **described: Any
) -> ModelResult:
    """The result in the model's variables.

    Args:
        result: of `levymc.auto`, on the model's unconstrained density.
        constrain: from positions, with any axes before their own, to the model's variables.
        described: dims, coords and data, as in `ModelResult`.
    """
    found = result.modes
    modes = found if found is None else found._replace(location=constrain(found.location))
    return ModelResult(result, constrain(result.positions), modes, **described)
