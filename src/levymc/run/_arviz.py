"""Draws for ArviZ: InferenceData before its version 1, a DataTree from then on."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

Names = Mapping[str, Sequence[str]]
DIMS_REMEDY = "Give one name for each axis of the variable after those of chains and draws."


def to_groups(
    groups: dict[str, Any],
    dims: Mapping[str, list[str]],
    coords: Mapping[str, Any],
    attributes: Mapping[str, Any],
) -> Any:
    """Groups of arrays by name, as the ArviZ that is installed wants them.

    Args:
        groups: the posterior and its statistics, and others, such as observed data.
        dims: names of the axes of variables.  coords: labels along axes.
        attributes: of the posterior.

    Raises:
        ImportError: without ArviZ.
        ValueError: names of axes for which xarray would drop draws, or fill them up with NaN.
    """
    arviz = _arviz()
    where: dict[str, Any] = {"dims": dict(dims), "coords": dict(coords)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        made = arviz.from_dict(groups, **where)
    else:
        made = arviz.from_dict(**groups, **where)
    _check_whole(groups["posterior"], made["posterior"])
    made["posterior"].attrs.update(attributes)
    return made


def _check_whole(posterior: Mapping[str, Any], made: Any) -> None:
    kept = {name: made[name].size for name in made.data_vars}
    lost = [name for name, draws in posterior.items() if kept.get(name) != np.size(draws)]
    if lost:
        raise ValueError(
            f"`dims` must not be names of variables, nor of axes of two sizes, got ones for which "
            f"xarray would drop or fill up {', '.join(lost)}. Rename the axis, or the variable."
        )


def _arviz() -> ModuleType:
    try:
        import arviz
    except ModuleNotFoundError as error:
        raise ImportError("`to_arviz` needs ArviZ: pip install 'levymc[arviz]'.") from error
    return arviz


def checked_dims(posterior: dict[str, np.ndarray], dims: Names) -> dict[str, list[str]]:
    """Refuse names for variables that are not there, and too many or too few."""
    for name, given in dims.items():
        if name not in posterior:
            raise ValueError(
                f"`dims` must name variables of the run, {', '.join(posterior)}, got {name!r}. "
                f"{DIMS_REMEDY}"
            )
        shape = posterior[name].shape[2:]
        if isinstance(given, str) or len(given) != len(shape):
            raise ValueError(
                f"`dims` must have {len(shape)} names for {name} of shape {shape}, got {given!r}. "
                f"{DIMS_REMEDY}"
            )
    return {name: list(given) for name, given in dims.items()}
