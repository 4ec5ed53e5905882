"""Metadata of a Zarr group, to be written so that readers see all new lengths at once."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from levymc._workdir import atomic_bytes

from ._chunks import GROUPS, Chunks
from ._integrity import StoreError, damaged
from .marks import Known

Node = dict[str, Any]


def files(arrays: dict[str, Node], attributes: dict[str, Any]) -> dict[str, bytes]:
    """The metadata files of arrays, by the names GROUP/NAME, of their groups, and last of the root.

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
    nodes = {**arrays, **{group: _group(nodes, {}) for group, nodes in inside.items()}}
    return {
        **{f"{name}/zarr.json": json.dumps(node).encode() for name, node in nodes.items()},
        "zarr.json": json.dumps(_group(everything, attributes)).encode(),
    }


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


class Shown(NamedTuple):
    """What other tools see of a run: all of it follows from the plan, and can be made again.

    constants: statistics that are the same in every draw, by name; they have no chunks.
    """

    chunks: Chunks
    constants: dict[str, np.ndarray]
    kept: Known

    def metadata(self, done: int, count: int) -> dict[str, bytes]:
        """The metadata files by name, in the order to write them, after so many steps and draws."""
        chains, size, width = self.chunks.num_chains, self.chunks.size, self.chunks.width
        arrays: dict[str, Node] = {}
        for group in GROUPS:
            for name, length, chunk in (("chain", chains, chains), ("draw", count, size)):
                arrays[f"{group}/{name}"] = array((length,), (chunk,), np.dtype(np.int64), [name])
        for leaf in self.chunks.leaves:
            dims = [f"{leaf.name}_dim_{axis}" for axis in range(len(leaf.shape))]
            arrays[f"{leaf.group}/{leaf.name}"] = array(
                (chains, count, *leaf.shape),
                (width, size, *leaf.shape),
                np.dtype(leaf.dtype),
                ["chain", "draw", *dims],
            )
        for name, value in self.constants.items():
            arrays[f"sample_stats/{name}"] = array(
                (chains, count), (width, size), value.dtype, ["chain", "draw"], value.item()
            )
        return files(arrays, {"inference_library": "levymc", "sampling_steps": done})

    def coordinates(self, count: int, first: int = 0) -> Iterator[tuple[str, bytes]]:
        """The files with the numbers of chains, and of the steps of draws from chunk `first` on.

        A chunk has those of draws to come, too, so that it never changes under who reads it.
        """
        for group in GROUPS:
            yield f"{group}/chain/c/0", np.arange(self.chunks.num_chains, dtype="<i8").tobytes()
        size = self.chunks.size
        for number in range(first, -(-count // size)):
            steps = np.zeros(size, "<i8")
            coming = self.kept.numbered(number * size, size)
            steps[: len(coming)] = coming
            for group in GROUPS:
                yield f"{group}/draw/c/{number}", steps.tobytes()

    def is_published(self, done: int, count: int) -> bool:
        """Whether all was written: the root's metadata are the last of a commit."""
        return _is_there(self.chunks.path / "zarr.json", self.metadata(done, count)["zarr.json"])

    def publish(self, done: int, count: int, first: int = 0) -> None:
        """Let draws be seen; coordinates before the chunk `first` are there."""
        for name, content in (*self.coordinates(count, first), *self.metadata(done, count).items()):
            try:
                _write_changed(self.chunks.path / name, content)
            except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
                raise damaged(self.chunks.path, f"{name} cannot be a file ({error})") from error

    def check(self, steps: Sequence[tuple[int, int]]) -> None:
        """Refuse files for other tools that are as after none of these numbers (done, count).

        The root's metadata are written last: the coordinates that they tell of must be there.
        """
        written = [self.metadata(done, count) for done, count in steps]
        for name in written[0]:
            found = self._check(name, {files[name] for files in written})
        shown = [pair for pair, files in zip(steps, written, strict=True) if files[name] == found]
        count = max(count for _, count in shown)
        for name, content in self.coordinates(count):
            self._check(name, {content})

    def _check(self, name: str, allowed: set[bytes]) -> bytes:
        """The content of a file, if it is one of those."""
        path = self.chunks.path
        try:
            found = (path / name).read_bytes()
        except OSError:
            found = b""
        if found not in allowed:
            raise StoreError(
                f"{path} is damaged: {name} is not as it was written, by which xarray and other "
                "tools read the draws. The draws do not depend on it: levymc.resume(store) writes "
                "it again."
            )
        return found


def _write_changed(path: Path, content: bytes) -> None:
    """Write what is not there already: most metadata stay, and to make a file safe takes time."""
    if not _is_there(path, content):
        atomic_bytes(path, content)


def _is_there(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False
