"""Metadata of a Zarr group, written so that readers see all new lengths at once."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from levymc._workdir import atomic_bytes

Node = dict[str, Any]


def publish(path: Path, arrays: dict[str, Node], attributes: dict[str, Any]) -> None:
    """Write the metadata of arrays, by the names GROUP/NAME, of their groups, and last of the root.

    Those of the root hold all others, which is where Zarr looks: one file is replaced in the end.
    """
    groups = sorted({name.split("/")[0] for name in arrays})
    inside = {
        group: {
            name.removeprefix(f"{group}/"): node
            for name, node in sorted(arrays.items())
            if name.startswith(f"{group}/")
        }
        for group in groups
    }
    # Zarr wants those of a group together, and the group itself first and empty.
    everything = dict(sorted({**arrays, **{group: _group({}, {}) for group in groups}}.items()))
    written = {**arrays, **{group: _group(nodes, {}) for group, nodes in inside.items()}}
    for name, node in (*written.items(), ("", _group(everything, attributes))):
        _write_changed(path / name / "zarr.json", json.dumps(node).encode())


def _write_changed(path: Path, content: bytes) -> None:
    """Write what is not there already: most metadata stay, and to make a file safe takes time."""
    if not path.exists() or path.read_bytes() != content:
        atomic_bytes(path, content)


def _group(inside: dict[str, Node], attributes: dict[str, Any]) -> Node:
    """Zarr's metadata of a group, those of all that is in it included."""
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inside},
    }


def array(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dtype: np.dtype,
    dims: list[str],
    fill: Any = None,
) -> Node:
    """Zarr's metadata of an array in plain bytes: draws are noise, and do not compress."""
    zero: Any = False if dtype.kind == "b" else 0.0 if dtype.kind == "f" else 0
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [max(1, size) for size in chunk]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": zero if fill is None else _json_number(fill),
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        "dimension_names": dims,
    }


def _json_number(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
