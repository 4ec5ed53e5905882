"""A run in shards that begins: its chains cut, and a store made for each part of them."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from levymc._workdir import atomic_bytes, versions

from ._compare import check_given, given
from ._create import Common, TakenError, build, check_place, check_storable, common_of, is_free, put
from ._engine import position_of
from ._integrity import digest, fingerprint, sealed
from ._iterate import Run, Started, ready
from ._shards import FORMAT, MANIFEST, Shards, is_sharded, link, open_shards, shard_name
from ._store import glimpse


def begin_or_join(path: Path, started: Started, count: int) -> Path:
    """The folder of a new run in shards, or that of the same run, which others may have begun."""
    width = -(-started.plan.num_chains // count)
    first = ready(started.of_chains(np.arange(width)))
    check_storable(first)
    common = common_of(first)
    facts = _facts(started, width, first, common)
    if is_free(path):
        try:
            put(path, lambda building: _build(building, started, facts, common))
        except TakenError:
            if not is_sharded(path):
                raise
    if not is_sharded(path):
        check_place(path)
    check_given(path, open_shards(path).manifest, facts["given"])
    return path


def _facts(started: Started, width: int, first: Run, common: Common) -> dict[str, Any]:
    """The manifest of a run, without what follows when its shards are there."""
    chains = started.plan.num_chains
    whole = {
        "chains": chains,
        "shards": -(-chains // width),
        "key": fingerprint([started.keys]),
        "numbers": fingerprint(started.parameters),
        "starts": fingerprint(jax.tree.leaves(position_of(started.carry.state))),
    }
    return {
        "format": FORMAT,
        "versions": versions(),
        "num_chains": chains,
        "width": width,
        "num_steps": started.plan.num_steps,
        "shown": 0,
        "before": 0,
        "given": {**given(first, common.program, common.data), **whole},
    }


def _build(path: Path, started: Started, facts: dict[str, Any], common: Common) -> None:
    """Write a store for each shard, and what joins them."""
    chains, width = facts["num_chains"], facts["width"]
    shared, copies = {width: common}, dict[str, Path]()
    places = []
    for number, begin in enumerate(range(0, chains, width)):
        run = ready(started.of_chains(np.arange(begin, min(begin + width, chains))))
        size = run.plan.num_chains
        if size not in shared:  # the last, which is smaller and has another program
            shared[size] = common_of(run)
        places.append(path / "levymc" / shard_name(number))
        build(places[-1], run, shared[size], width, copies)
    plans = [digest((place / "levymc" / "run.json").read_bytes()) for place in places]
    manifest = {**facts, "shards": plans}
    atomic_bytes(path / "levymc" / MANIFEST, sealed(manifest))
    shards = Shards(path, manifest)
    stores = shards.stores(glimpse)
    link(shards, stores)
    shards.shown(stores[0]).publish(0, 0)
