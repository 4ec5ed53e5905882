"""The draws of a store: arrays in files of some draws each, checked as they are read."""

from collections.abc import Iterator, Sequence
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
    """Where the draws of all chains are, `size` of them in a file for each leaf.

    width: chains that a file has room for, which may be more than there are.
    """

    path: Path
    leaves: tuple[Leaf, ...]
    num_chains: int
    size: int
    width: int

    def folder(self, leaf: Leaf, row: int = 0) -> Path:
        """Where the files of a leaf are: of the `row`-th chains, as many as a file has."""
        return self.path / leaf.group / leaf.name / "c" / str(row)

    def file(self, leaf: Leaf, number: int) -> Path:
        return self.folder(leaf).joinpath(str(number), *["0"] * len(leaf.shape))

    def write(self, number: int, parts: list[np.ndarray]) -> str:
        """Write the draws that a chunk has so far; their checksum."""
        for leaf, part in zip(self.leaves, parts, strict=True):
            whole = np.zeros((self.width, self.size, *leaf.shape), leaf.dtype)
            whole[: len(part), : part.shape[1]] = part
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
        shape = (self.width, self.size, *leaf.shape)
        try:
            content = self.file(leaf, number).read_bytes()
            return np.frombuffer(content, leaf.dtype).reshape(shape)[: self.num_chains]
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


class Written(NamedTuple):
    """Draws of some chains: how many there are, and the checksums of their chunks."""

    chunks: Chunks
    num_draws: int
    digests: list[str]

    def check(self) -> None:
        for _ in self.chunks.all_rows(self.num_draws, self.digests):
            pass

    def first(self, count: int) -> list[np.ndarray]:
        """The first draws, leaf by leaf, having checked all."""
        parts = zip(*self.chunks.all_rows(self.num_draws, self.digests), strict=True)
        return [np.concatenate(part, axis=1)[:, :count] for part in parts]


def joined(written: Sequence[Written]) -> list[Any]:
    """The draws that all of the chains have, with axes (chain, draw, …); large ones stay on disk.

    All are checked.
    """
    leaves = written[0].chunks.leaves
    count = min(one.num_draws for one in written)
    num_chains = sum(one.chunks.num_chains for one in written)
    if num_chains * count * sum(leaf.nbytes for leaf in leaves) > LARGEST_IN_MEMORY:
        for one in written:
            one.check()
        places = tuple(one.chunks for one in written)
        return [OnDisk(places, leaf, count) for leaf in leaves]
    parts = zip(*(one.first(count) for one in written), strict=True)
    return [part[0] if len(part) == 1 else np.concatenate(part) for part in parts]


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Draws with axes (chain, draw, …) that are read when they are indexed, or by np.asarray.

    They stay those that there were when the store was opened, also while the run goes on.
    """

    places: tuple[Chunks, ...]
    leaf: Leaf
    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), self.count, *self.leaf.shape)

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
        return sum(place.num_chains for place in self.places)

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
        return np.concatenate([self._part(place, begin, end) for place in self.places])

    def _part(self, place: Chunks, begin: int, end: int) -> np.ndarray:
        parts = [np.zeros((place.num_chains, 0, *self.leaf.shape), self.dtype)]
        for number in range(begin // place.size, -(-end // place.size)):
            first = number * place.size
            inside = slice(max(begin - first, 0), end - first)
            parts.append(place.read(self.leaf, number)[:, inside])
        return np.concatenate(parts, axis=1)
