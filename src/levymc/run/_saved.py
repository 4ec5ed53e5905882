"""A result as one file: arrays in NumPy's archive, the structure as JSON beside them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from levymc._workdir import write_arrays

from ._result import Result
from ._structure import from_json, numbered, to_json

FORMAT = 1
FIELDS = ("positions", "weights", "info", "observed")


def save(result: Result, path: Path) -> None:
    """Write a result; no pickle, and checksums are the archive's own."""
    tree = {name: getattr(result, name) for name in FIELDS}
    header = {
        "format": FORMAT,
        "is_interrupted": result.is_interrupted,
        "structure": to_json(numbered(tree)),
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays = {str(place): leaf for place, leaf in enumerate(jax.tree.leaves(tree))}
    write_arrays(path, {"levymc": text, **arrays})


def load_saved(path: Path) -> Result:
    """Read a result, or say what is wrong with the file."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            header = json.loads(bytes(archive["levymc"]))
            leaves = [archive[str(place)] for place in range(len(archive.files) - 1)]
    except (OSError, KeyError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no result of levymc, or a damaged one: {error}") from error
    if header["format"] != FORMAT:
        raise ValueError(f"{path} has format {header['format']}; this version reads {FORMAT}.")
    tree: dict[str, Any] = jax.tree.map(lambda place: leaves[place], from_json(header["structure"]))
    return Result(**tree, is_interrupted=header["is_interrupted"])
