"""A run whose chains are cut into shards, each a store of its own, and how they are joined.

::

    levymc/shards.json         the chains, the steps to make, what tells the run from others
    levymc/shard-0003/         an ordinary store, of the chains 3 · width, …
    posterior/NAME/c/3         a link to where shard 3 has the chunks of this array
    zarr.json, posterior, …    a Zarr group of all chains, with the draws that all of them have

The grid of a Zarr array is regular: all shards have as many chains but the last, whose chunks have
room for as many.  shards.json has a checksum of itself and of the plan of each shard.  It and what
other tools see are replaced under the lock of the folder `levymc`, which is held for moments.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc._workdir import (
    atomic_bytes,
    flush_folder,
    make_folder,
    remove_partial,
    waiting_lock,
)

from ._chunks import GROUPS, joined
from ._integrity import StoreError, as_damage, damaged, not_a_store, patiently, sealed, unsealed
from ._result import Result, from_leaves
from ._store import Store, glimpse, open_shown
from ._zarr import Shown

FORMAT = 1
MANIFEST = "shards.json"
NUMBERS = ("num_chains", "width", "num_steps", "shown", "before")
SAME = ("format", "structure", "observed", "leaves", "chunk", "width", "names")  # in all run.json


class Shards(NamedTuple):
    """A run in shards, as its manifest tells of it.

    manifest: `shown` is the number of steps after which other tools see the draws, `before` the
        one before it.
    """

    path: Path
    manifest: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.path / "levymc"

    @property
    def num_chains(self) -> int:
        return self.manifest["num_chains"]

    @property
    def num_steps(self) -> int:
        """Steps that all shards are to make after the burn-in."""
        return self.manifest["num_steps"]

    @property
    def places(self) -> list[Path]:
        return [self.folder / shard_name(n) for n in range(len(self.manifest["shards"]))]

    def stores(self, opened: Callable[[Path], Store]) -> list[Store]:
        """All of them, having checked that they belong together."""
        found = [opened(place) for place in self.places]
        first, width = found[0], self.manifest["width"]
        for number, (store, plan) in enumerate(zip(found, self.manifest["shards"], strict=True)):
            chains = min(width, self.num_chains - number * width)
            is_same = all(store.header.get(key) == first.header.get(key) for key in SAME)
            if store.progress["run"] != plan or store.plan.num_chains != chains or not is_same:
                raise damaged(self.path, f"{shard_name(number)} is not the one that was written")
        return found

    def shown(self, first: Store) -> Shown:
        """What other tools see of all chains; `first` is the first shard."""
        chunks = first.chunks._replace(path=self.path, num_chains=self.num_chains)
        return first.shown._replace(chunks=chunks)

    def write(self, **changes: int) -> "Shards":
        manifest = {**self.manifest, **changes}
        atomic_bytes(self.folder / MANIFEST, sealed(manifest))
        return self._replace(manifest=manifest)


def shard_name(number: int) -> str:
    return f"shard-{number:04d}"


def is_sharded(path: Path) -> bool:
    return (path / "levymc" / MANIFEST).exists()


def open_shards(path: Path) -> Shards:
    """Read the manifest of a run in shards."""
    try:
        manifest, is_whole = unsealed((path / "levymc" / MANIFEST).read_bytes())
    except (OSError, ValueError, KeyError) as error:
        raise not_a_store(path, f"levymc/{MANIFEST}: {error}") from error
    if not is_whole:
        raise damaged(path, f"levymc/{MANIFEST} is not as it was written")
    if manifest.get("format") != FORMAT:
        raise StoreError(
            f"{path} has shards of format {manifest.get('format')}; this version reads {FORMAT}. "
            "Use the version of levymc that wrote it, or run again."
        )
    with as_damage(path, f"levymc/{MANIFEST}"):
        _check(manifest)
    return Shards(path, manifest)


def _check(manifest: dict[str, Any]) -> None:
    """Refuse what does not fit together, as a stranger's may have it."""
    for name in NUMBERS:
        if type(manifest[name]) is not int or manifest[name] < 0:
            raise ValueError(f"its {name} is {manifest[name]!r}")
    plans = manifest["shards"]
    if not isinstance(plans, list) or not isinstance(manifest["given"], dict):
        raise ValueError("its shards are not listed")
    if not plans or len(plans) != -(-manifest["num_chains"] // manifest["width"]):
        raise ValueError(f"it has {len(plans)} shards for {manifest['num_chains']} chains")


# What is there for other tools.


def publish(path: Path) -> None:
    """Let other tools see the draws that all shards have by now."""
    with waiting_lock(path / "levymc"):
        shards = open_shards(path)
        stores = shards.stores(glimpse)
        shown, plan = shards.shown(stores[0]), stores[0].plan
        for folder in _folders(path):
            remove_partial(folder)
        link(shards, stores)
        # What a killed process had no time for comes first: there are two states at any time.
        shown.publish(*plan.counts(shards.manifest["shown"])[0])
        done = min(store.done for store in stores)
        if done != shards.manifest["shown"]:
            shards.write(shown=done, before=shards.manifest["shown"])
            shown.publish(*plan.counts(done)[0])


def _folders(path: Path) -> list[Path]:
    """Those that are written to under the lock."""
    arrays = (place for group in GROUPS for place in (path / group).rglob("*"))
    inside = [place for place in arrays if place.is_dir() and not place.is_symlink()]
    return [path, path / "levymc", *(path / group for group in GROUPS), *inside]


def link(shards: Shards, stores: list[Store]) -> None:
    """Let the arrays of all chains have their chunks where the shards have them."""
    everything = shards.shown(stores[0]).chunks
    for leaf in everything.leaves:
        above = everything.folder(leaf).parent
        make_folder(above)
        for row, store in enumerate(stores):
            place, target = everything.folder(leaf, row), store.chunks.folder(leaf)
            wanted = os.path.relpath(target, above)
            if place.is_symlink() and os.readlink(place) == wanted:
                continue
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)  # a copy of what is linked, which would not grow with it
            place.unlink(missing_ok=True)
            place.symlink_to(wanted, target_is_directory=True)
        flush_folder(above)


def _check_shown(shards: Shards, stores: list[Store]) -> None:
    """Refuse what other tools would read otherwise than we do."""
    shown, plan = shards.shown(stores[0]), stores[0].plan
    numbers = plan.counts(shards.manifest["shown"], shards.manifest["before"])
    shown.check(numbers)
    num_chunks = -(-numbers[0][1] // shown.chunks.size)
    for leaf in shown.chunks.leaves:
        for row, store in enumerate(stores):
            place = shown.chunks.folder(leaf, row)
            if num_chunks and not _is_same(place, store.chunks.folder(leaf)):
                raise StoreError(
                    f"{shards.path} is damaged: {place.relative_to(shards.path)} is not what "
                    f"{shard_name(row)} has, by which xarray and other tools read the draws. The "
                    "draws do not depend on it: levymc.resume(store) writes it again."
                )


def _is_same(place: Path, target: Path) -> bool:
    """Whether a folder is a link to another, or a copy of it, as copying a store may make it."""
    try:
        if place.samefile(target):
            return True
        files = [file for file in target.rglob("*") if file.is_file()]
        return all(
            (place / file.relative_to(target)).read_bytes() == file.read_bytes() for file in files
        )
    except OSError:
        return False


# Reading the draws.


def load_shards(path: Path) -> Result:
    """The draws that all shards have, all of it checked, and nothing of it executed."""

    def attempt() -> Result:
        shards = open_shards(path)
        stores = shards.stores(open_shown)
        _check_shown(shards, stores)
        return read_joined(shards, stores)

    return patiently(lambda: (path / "levymc" / MANIFEST).read_bytes(), attempt)


def read_joined(shards: Shards, stores: list[Store]) -> Result:
    """The draws that all shards have, joined along the chains."""
    first, count = stores[0], min(store.num_draws for store in stores)
    if not count:
        raise _no_draws(shards, stores)
    given = first.header["given"]
    with as_damage(shards.path, "it"):
        return from_leaves(
            joined([store.written for store in stores]),
            first.structure,
            (shards.num_chains, count),
            is_interrupted=min(map(steps_made, stores)) < shards.num_steps,
            observed=jax.tree.map(
                lambda *parts: np.concatenate(parts),
                *(store.observed_by_name() for store in stores),
            ),
            steps=first.plan.kept.numbered(0, count),
            algorithm=given["algorithm"],
            is_exact=given["is_exact"],
        )


def steps_made(store: Store) -> int:
    """Steps after the burn-in."""
    return store.done - store.plan.burn_in


def _no_draws(shards: Shards, stores: list[Store]) -> StoreError:
    without = [shard_name(n) for n, store in enumerate(stores) if not store.num_draws]
    names = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
    return StoreError(
        f"{shards.path} has no draws of all chains yet: {names} of {len(stores)} shards have none. "
        "Go on with levymc.resume, which executes the program in it; levymc.load reads one shard, "
        f"such as {shards.places[0]}."
    )
