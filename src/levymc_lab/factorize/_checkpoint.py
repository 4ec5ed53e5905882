"""Where a run is, in one file: enough to go on as if nothing had happened."""

from typing import Any, NamedTuple
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from levymc_lab.framework import ResultsError

from ._folder import Folder, write_arrays
from ._sampler import Carry


class Point(NamedTuple):
    """The carry after so many steps; one value, so that an interrupt finds both or neither."""

    carry: Carry
    done: int


def save(folder: Folder, point: Point) -> None:
    leaves = {str(place): leaf for place, leaf in enumerate(jax.tree.leaves(point.carry))}
    write_arrays(folder.checkpoint, {"done": point.done, **leaves})


def load(folder: Folder, start: Carry) -> Point:
    """The point that was saved, or the start if none was."""
    if not folder.checkpoint.exists():
        return Point(start, 0)
    leaves, structure = jax.tree.flatten(start)
    try:
        with (
            folder.checkpoint.open("rb") as stream,  # np.load leaves a damaged file open
            np.load(stream, allow_pickle=False) as archive,
        ):
            found = [_like(leaf, archive[str(place)]) for place, leaf in enumerate(leaves)]
            return Point(jax.tree.unflatten(structure, found), int(archive["done"]))
    except (ValueError, EOFError, KeyError, BadZipFile) as error:
        raise ResultsError(
            f"{folder.checkpoint} is damaged ({error}). "
            "Remove it: the same command then starts from the beginning."
        ) from None


def _like(wanted: Any, found: np.ndarray) -> Any:
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        raise ValueError(f"an array of {found.dtype}{found.shape} is out of place")
    return jnp.asarray(found)
