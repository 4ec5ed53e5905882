"""Draws for ArviZ: InferenceData before its version 1, a DataTree from then on."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

Names = Mapping[str, Sequence[str]]
DIMS_REMEDY = "Give one name for each axis of the variable after those of chains and draws."


def to_groups(
    posterior: dict[str, np.ndarray],
    sample_stats: dict[str, np.ndarray],
    attributes: dict[str, Any],
    dims: Names | None,
    coords: Mapping[str, Any],
) -> Any:
    """The two groups, as the ArviZ that is installed wants them; attributes are the posterior's."""
    arviz = _arviz()
    names = _checked_dims(posterior, dims or {})
    groups: dict[str, Any] = {"posterior": posterior, "sample_stats": sample_stats}
    where = {"dims": names, "coords": dict(coords)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        made = arviz.from_dict(groups, **where)
    else:
        made = arviz.from_dict(**groups, **where)
    made["posterior"].attrs.update(attributes)
    return made


def _arviz() -> ModuleType:
    try:
        import arviz
    except ModuleNotFoundError as error:
        raise ImportError("`to_arviz` needs ArviZ: pip install 'levymc[arviz]'.") from error
    return arviz


def _checked_dims(posterior: dict[str, np.ndarray], dims: Names) -> dict[str, list[str]]:
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
