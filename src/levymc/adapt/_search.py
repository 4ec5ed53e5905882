r"""The search for modes as a stage of a run, which processes may share.

Parts of a search do not know what the others find.  So they are made in rounds: each begins with
all modes that are known by then, and what its parts found is joined in their order.  All end once
as many evaluations have passed without a new mode as one search would wait for one.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from ._explore import PATIENCE, Atlas, Jumps, Modes, begun, go_on, search
from ._met import NOTHING, together
from ._stages import Stages
from ._target import Target

SMALLEST_PART = 500  # evaluations of a part in a round: some batches
ROUND = (
    0.25  # of the evaluations without a new mode after which a search ends: longer ones find less
)


class Found(NamedTuple):
    """All modes in the order in which they were found.

    found, spent: by jumps of each kind.
    quiet: evaluations since the last new mode.
    """

    modes: Modes
    found: np.ndarray
    spent: np.ndarray
    quiet: int

    @classmethod
    def of(cls, kept: dict[str, Any]) -> "Found":
        return cls(**{**kept, "modes": Modes(**kept["modes"])})


def num_parts(budget: int, shards: int | None) -> int:
    """One for each shard, unless they were too small to be worth it."""
    return min(shards or 1, max(int(PATIENCE * budget / SMALLEST_PART), 1))


def searched(
    target: Target,
    key: Any,
    starts: np.ndarray,
    budget: int,
    whole: int,
    report: Callable[[int], None],
    stages: Stages,
    parts: int,
) -> Modes:
    """Explore with at most `budget` evaluations out of a `whole`, in so many parts."""
    if parts == 1:
        return stages.of(
            "explore",
            target,
            lambda: search(target, key, starts, budget, whole, report),
            lambda kept: Modes(**kept),
        )
    found = _in_rounds(target, key, starts, budget, PATIENCE * whole, report, stages, parts)
    return Atlas.of(target, found.modes).listed()


def _in_rounds(
    target: Target,
    key: Any,
    starts: np.ndarray,
    budget: int,
    patience: float,
    report: Callable[[int], None],
    stages: Stages,
    parts: int,
) -> Found:
    nothing = np.zeros(2)
    known = stages.of(
        "explore-0",
        target,
        lambda: Found(begun(target, starts).whole(), nothing, nothing, 0),
        Found.of,
    )
    end, smallest, number = target.evaluations + budget, parts * SMALLEST_PART, 0
    while known.modes.num_modes and end - target.evaluations > smallest:
        before, number = known, number + 1
        left = min(patience - before.quiet, end - target.evaluations)
        length = max(min(ROUND * patience, left), smallest)
        explore = partial(
            _explored, target, jax.random.fold_in(key, number), before, length / parts
        )
        found = stages.of_parts(f"explore-{number}", parts, target, explore, Found.of)
        join = partial(_joined, target, before, found)
        known = stages.of(f"explore-{number}", target, join, Found.of)
        report(known.modes.num_modes)
        if known.quiet >= patience or Atlas.of(target, known.modes).listed().are_too_many:
            break
    return known


def _explored(target: Target, key: Any, known: Found, budget: float, part: int) -> Found:
    """What one part of a round adds to what is known."""
    own = known.modes._replace(met=NOTHING)
    atlas, jumps = Atlas.of(target, own), Jumps(jax.random.fold_in(key, part))
    jumps.found, jumps.spent = known.found.copy(), known.spent.copy()
    quiet = go_on(atlas, jumps, budget, math.inf, lambda _: None)
    return Found(atlas.whole(), jumps.found, jumps.spent, quiet)


def _joined(target: Target, before: Found, parts: list[Found]) -> Found:
    """All that is known after a round, counted as if one search had made it."""
    atlas = Atlas.of(target, before.modes)
    count, quiet = len(atlas.modes), len(parts) * min(part.quiet for part in parts)
    for part in parts:
        found = Atlas.of(target, part.modes)
        atlas.num_relaxations += found.num_relaxations - before.modes.num_relaxations
        atlas.num_lost += found.num_lost - before.modes.num_lost
        atlas.met = together(atlas.met, part.modes.met)
        atlas.num_rough += found.num_rough - before.modes.num_rough
        for number, mode in enumerate(found.modes[:count]):
            known = atlas.modes[number]
            hits = mode.times_found - int(before.modes.times_found[number])
            best = mode if mode.value > known.value else known
            atlas.modes[number] = best._replace(times_found=known.times_found + hits)
        for mode in found.modes[count:]:
            atlas.add(mode)
    return Found(
        atlas.whole(),
        before.found + sum(part.found - before.found for part in parts),
        before.spent + sum(part.spent - before.spent for part in parts),
        quiet if len(atlas.modes) > count else before.quiet + quiet,
    )
