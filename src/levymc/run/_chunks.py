"""The draws of a store: arrays in files of some draws each, checked as they are read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from levymc._workdir import atomic_bytes

from ._integrity import damaged, digest_of

LARGEST_IN_MEMORY = 2**30  # bytes of draws; more are read when they are asked for
KINDS = "biuf"  # of dtypes that Zarr knows
GROUPS = ("posterior", "sample_stats")
COORDINATES = ("chain", "draw")


class Leaf(NamedTuple):
    """One array of draws: its place, and what a draw of one chain looks like."""

    group: str
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def check_names(leaves: tuple[Leaf, ...]) -> None:
    """Refuse names that cannot be those of folders side by side."""
    taken = {(leaf.group, name) for leaf in leaves for name in COORDINATES}
    for leaf in leaves:
        is_path = "/" in leaf.name or leaf.name.startswith((".", "__")) or leaf.name == "zarr.json"
        if is_path or not leaf.name or (leaf.group, leaf.name) in taken:
            raise ValueError(
                f"A store needs names that can be those of folders, all different, and neither "
                f"chain nor draw; got {leaf.name!r} in the {leaf.group}. Rename it."
            )
        taken.add((leaf.group, leaf.name))


class Chunks(NamedTuple):
    """Where the draws of all chains are, `size` of them in a file for each leaf."""

    path: Path
    leaves: tuple[Leaf, ...]
    num_chains: int
    size: int

    def file(self, leaf: Leaf, number: int) -> Path:
        place = ["0", str(number), *["0"] * len(leaf.shape)]
        return self.path.joinpath(leaf.group, leaf.name, "c", *place)

    def write(self, number: int, parts: list[np.ndarray]) -> str:
        """Write the draws that a chunk has so far; their checksum."""
        for leaf, part in zip(self.leaves, parts, strict=True):
            whole = np.zeros((len(part), self.size, *leaf.shape), leaf.dtype)
            whole[:, : part.shape[1]] = part
            atomic_bytes(self.file(leaf, number), whole.tobytes())
        return digest_of(parts)

    def rows(self, number: int, count: int, expected: str | None) -> list[np.ndarray]:
        """The first draws of a chunk, as they were written if a checksum is expected of them."""
        found = [self.read(leaf, number)[:, :count] for leaf in self.leaves]
        if expected is not None and digest_of(found) != expected:
            raise damaged(self.path, f"chunk {number} of the draws is not as it was written")
        return found

    def read(self, leaf: Leaf, number: int) -> np.ndarray:
        """A chunk of one leaf."""
        shape = (self.num_chains, self.size, *leaf.shape)
        try:
            content = self.file(leaf, number).read_bytes()
            return np.frombuffer(content, leaf.dtype).reshape(shape)
        except (OSError, ValueError) as error:
            what = f"chunk {number} of the draws of {leaf.name} cannot be read"
            raise damaged(self.path, f"{what} ({error})") from error

    def all_rows(self, count: int, digests: list[str]) -> Iterator[list[np.ndarray]]:
        """The first draws chunk by chunk, each checked."""
        for number, expected in enumerate(digests):
            yield self.rows(number, min(self.size, count - number * self.size), expected)

    def none(self) -> list[np.ndarray]:
        """No draws."""
        return [np.zeros((self.num_chains, 0, *leaf.shape), leaf.dtype) for leaf in self.leaves]

    def draws(self, count: int, digests: list[str]) -> list[Any]:
        """The first draws, with axes (chain, draw, …), all checked; large ones stay on disk."""
        size = self.num_chains * count * sum(leaf.nbytes for leaf in self.leaves)
        if size > LARGEST_IN_MEMORY:
            for _ in self.all_rows(count, digests):
                pass
            return [OnDisk(self, leaf, count) for leaf in self.leaves]
        parts = list(zip(*self.all_rows(count, digests), strict=True))
        return [np.concatenate(part, axis=1) for part in parts]


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Draws with axes (chain, draw, …) that are read when they are indexed, or by np.asarray.

    They stay those that there were when the store was opened, also while the run goes on.
    """

    chunks: Chunks
    leaf: Leaf
    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.chunks.num_chains, self.count, *self.leaf.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.leaf.dtype)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.chunks.num_chains

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("Draws on disk must be copied to be an array. Leave out copy=False.")
        return self._between(0, self.count).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        places = index if isinstance(index, tuple) else (index,)
        if len(places) < 2 or not all(isinstance(one, int | slice) for one in places[:2]):
            return np.asarray(self)[index]
        if isinstance(places[1], int):
            draw = range(self.count)[places[1]]
            return self._between(draw, draw + 1)[(places[0], 0, *places[2:])]
        wanted = range(*places[1].indices(self.count))
        if not len(wanted):
            return self._between(0, 0)[(places[0], slice(None), *places[2:])]
        first = min(wanted[0], wanted[-1])
        block = self._between(first, max(wanted[0], wanted[-1]) + 1)
        if wanted.step != 1:
            block = block[:, np.asarray(wanted) - first]
        return block[(places[0], slice(None), *places[2:])]

    def _between(self, begin: int, end: int) -> np.ndarray:
        """The draws begin, …, end - 1."""
        size = self.chunks.size
        parts = [np.zeros((len(self), 0, *self.leaf.shape), self.dtype)]
        for number in range(begin // size, -(-end // size)):
            first = number * size
            inside = slice(max(begin - first, 0), end - first)
            parts.append(self.chunks.read(self.leaf, number)[:, inside])
        return np.concatenate(parts, axis=1)
