r"""Many modes: a tempered system from a mixture of all of them, adapted, frozen, then sampled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc.run import Result, resume

from ._adapted import info_of, whole
from ._bridge import FEWEST_DRAWS, Evidence, bridged, effective_size
from ._explore import BATCH, Atlas, Modes, unseen_modes
from ._fit import log_components
from ._ladder import (
    FEWEST_STEPS,
    NUM_SYSTEMS,
    POOR,
    Directions,
    Draws,
    Ladder,
    begin,
    draws_of,
    frozen,
    rounds,
    run,
    spent_on,
)
from ._outcome import FoundModes, counted
from ._reference import Fit
from ._relax import most_evaluations
from ._stages import Stages
from ._target import Target

ADAPTING = 0.3  # of what is left after exploration
PROBATION = 0.1  # of the frozen kernel's steps, after which is looked for new modes; not kept
LOOKING = 0.02  # of the budget, for a last look at the draws: new modes, and which is whose
MOST_ANCHORS = 256  # draws that are relaxed for that
LEAST_CLIMB = 4.0  # evaluations of a climb, before it is known what they take
MOST_RESTARTS = 4
AHEAD = 2.0  # times as many steps as are expected may be made before the budget ends
LEAST_LEFT = 0.25  # of the budget, to begin again with a mode that was found late
DISAGREEING = 1.05
FEWEST_TOURS = 10.0
FEWEST_EFFECTIVE = 400
MOST_RANKED = 2000  # draws of a system
FEW_TIMES = 3  # that a mode was found, which then is like those that were not
MOST_UNSEEN = 0.05  # of the mass, in modes that were not found
FOUND_LATE = (
    "A mode was found when it was too late to begin again: its weight is not known. Give a larger "
    "budget."
)
FORGETTING = 2  # steps for each rung, in which those below the target come to have their law
GOOD_FOR_ONE = 0.35  # harmonic acceptance from which on one mode is sampled from its reference


class Sampled(NamedTuple):
    """Draws of the frozen kernel, and what they were made with.

    basins: see `Basins`.
    """

    result: Result
    ladder: Ladder
    modes: Modes
    is_late: bool
    basins: "Basins"


class Basins(NamedTuple):
    """In which modes the draws of a component lie: `shares` of shape (components, modes).

    counts: how many draws of each component were relaxed to see that; 0 where the component is
        taken to be in the mode that it was made for.
    unlisted: of all that were relaxed to the top of a mode, the share whose mode is not listed.
    """

    shares: np.ndarray
    counts: np.ndarray
    unlisted: float = 0.0

    @classmethod
    def as_made(cls, fit: Fit, num_modes: int) -> "Basins":
        return cls(np.eye(num_modes)[fit.mode], np.zeros(len(fit.mode)))

    @classmethod
    def of_numbers(cls, numbers: np.ndarray) -> "Basins":
        """Of the number of each component's mode."""
        return cls(np.eye(int(numbers.max()) + 1)[numbers], np.zeros(len(numbers)))

    @property
    def modes(self) -> np.ndarray:
        """The mode in which most draws of a component lie."""
        return np.argmax(self.shares, axis=1)


class Monitor:
    """Relaxes the points where φ exceeds the reference most: they may be of other modes."""

    def __init__(self, target: Target, atlas: Atlas | None) -> None:
        self.target, self.atlas = target, atlas

    def finds_more(self, draws: Draws, most: int | None = None) -> bool:
        """Whether such a point leads to a new mode; from as many as `most` evaluations allow."""
        if self.atlas is None:
            return False
        points = _furthest(draws)
        before, climb = len(self.atlas.modes), most_evaluations(self.target.dimension)
        if most is not None:
            points = points[: max(most // climb, 1)]
            climb = max(min(climb, most // len(points)), 1)
        self.atlas.relax(points, np.full(len(points), self.atlas.modes[0].scale), climb)
        return self.atlas.has_gained(before)


def _furthest(draws: Draws) -> np.ndarray:
    """Of each system the draw at which φ exceeds the reference most; the largest excess first."""
    systems, best = np.arange(len(draws.ratios)), np.argmax(draws.ratios, axis=1)
    order = np.argsort(-draws.ratios[systems, best], kind="stable")
    points = draws.points[systems, best][order]
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]


class Plan(NamedTuple):
    """How the budget goes, and where what is made of it is kept.

    how: options of `levymc.sample` for the draws; `shards` where processes share the run.
    """

    budget: int
    tell: Callable[[str, int, str], None]
    stages: Stages
    store: Path | None
    how: dict[str, Any]


def adapt_ladder(
    target: Target,
    key: Any,
    prior: Fit,
    monitor: Monitor,
    plan: Plan,
    restart: int,
    directions: Directions | None = None,
) -> tuple[Ladder, bool]:
    """Adapt to the modes that are known; the second is whether another was found on the way."""
    is_new = False

    def look(ladder: Ladder, draws: Draws) -> bool:
        nonlocal is_new
        plan.tell("adapting", target.evaluations, counted(len(ladder.betas), "rung"))
        is_new = restart < MOST_RESTARTS and monitor.finds_more(draws)
        return is_new

    key_begin, key_rounds = jax.random.split(key)
    ladder = begin(target, key_begin, prior, directions)
    left = plan.budget - target.evaluations
    return frozen(rounds(target, key_rounds, ladder, int(ADAPTING * left), look)), is_new


def on_probation(
    target: Target, key: Any, ladder: Ladder, monitor: Monitor, plan: Plan
) -> tuple[Ladder, bool]:
    """The first steps of the frozen kernel, which are not kept; whether they met a new mode."""
    left = max(plan.budget - target.evaluations, 0)
    steps = int(PROBATION * left / (NUM_SYSTEMS * ladder.cost))
    result = whole(run(target, key, ladder, steps))
    draws = draws_of(target, result)
    return ladder._replace(points=draws.points[:, -1]), monitor.finds_more(draws)


def too_late(target: Target, plan: Plan) -> ValueError:
    """Nothing is left for draws; a run that overspends, or has few of them, would be no answer."""
    return ValueError(
        f"`budget` must be larger for this target, got {plan.budget}: {target.evaluations} "
        "evaluations went into its modes and scales. Give ten times as many."
    )


def draw(target: Target, key: Any, ladder: Ladder, plan: Plan, name: str) -> Result:
    """The rest of the budget by the frozen kernel, in a store if there is one."""
    looking = LOOKING if len(ladder.prior.weights) > 1 else LOOKING / 2
    left = plan.budget - target.evaluations - int(looking * plan.budget)
    steps = int(left / (NUM_SYSTEMS * ladder.cost))
    if steps < FEWEST_STEPS:
        raise too_late(target, plan)
    how, forgotten = plan.how, 0
    if len(ladder.betas) > 1:  # they all begin where the target is
        forgotten = min(FORGETTING * len(ladder.betas), steps // 8)
        steps, how = steps - forgotten, {**how, "burn_in": forgotten}
        cost = int(forgotten * NUM_SYSTEMS * ladder.cost)
        target.evaluations, left = target.evaluations + cost, left - cost
    if target.local is not None:  # what a step costs is known when it has been made
        steps, how = int(AHEAD * steps), {**how, "until": lambda result: spent_on(result) >= left}
    plan.tell("sampling", target.evaluations, counted(len(ladder.betas), "rung"))
    if plan.store is not None:
        folder = plan.store / name
        if folder.exists() and "shards" not in plan.how:
            result = resume(folder, progress=False, until=how.get("until"))
            target.evaluations += spent_on(result)
            return result
        return run(target, key, ladder, steps, store=folder, **how)
    return run(target, key, ladder, steps, **how)


def basins_of(
    target: Target, ladder: Ladder, monitor: Monitor, plan: Plan, modes: Modes, points: np.ndarray
) -> Basins:
    """Relax some of the draws: a component that was fitted to a ridge, or has moved since it was
    made for a mode, may hold draws of others.
    """
    made = Basins.as_made(ladder.fit, modes.num_modes)
    atlas = monitor.atlas
    if atlas is None or modes.num_modes == 1:
        return made
    chosen, numbers = _relaxed(target, atlas, points, plan.budget, _narrowest(modes))
    is_known = (numbers >= 0) & (numbers < modes.num_modes)
    counted = np.zeros_like(made.shares)
    np.add.at(counted, (components_of(ladder, chosen)[is_known], numbers[is_known]), 1.0)
    totals = counted.sum(axis=1)
    shares = np.where(totals[:, None] > 0, counted / np.maximum(totals, 1)[:, None], made.shares)
    reached = int(np.sum(numbers >= 0))
    unlisted = int(np.sum(numbers >= modes.num_modes)) / max(reached, 1)
    return Basins(shares, totals, unlisted)


def _relaxed(
    target: Target, atlas: Atlas, points: np.ndarray, budget: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Some of the draws, as many as the budget has room for, and the modes they climb to.

    By first steps no longer than the narrowest mode is wide: longer ones may leave the basin.
    """
    flat = points.reshape(-1, points.shape[-1])
    spread = flat[np.linspace(0, len(flat) - 1, min(MOST_ANCHORS, len(flat))).astype(int)]
    spread = np.random.default_rng(0).permutation(spread)
    numbers = np.zeros(0, int)
    while len(numbers) < len(spread):
        cost = max(atlas.climbing / max(atlas.climbed, 1), LEAST_CLIMB)
        count = min(int((budget - target.evaluations) / cost), BATCH)
        if count < 1:
            break
        part = spread[len(numbers) : len(numbers) + count]
        numbers = np.concatenate([numbers, atlas.relax(part, np.full(len(part), scale))])
    return spread[: len(numbers)], numbers


def _narrowest(modes: Modes) -> float:
    """The least of all standard deviations in all directions."""
    return float(np.sqrt(np.min(np.linalg.eigvalsh(modes.covariance))))


# What the draws say.


def components_of(ladder: Ladder, points: np.ndarray) -> np.ndarray:
    """The component of the reference with the largest share at each point."""
    logs = log_components(ladder.fit, points.reshape(-1, points.shape[-1]))[:, 1:]
    return np.argmax(logs, axis=1).reshape(points.shape[:-1])


def weights_of(components: np.ndarray, basins: Basins) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the modes, and their standard errors.

    These are over the systems, and of the shares of modes in components, where one has several.
    """
    count = len(basins.shares)
    held = np.stack([(components == number).mean(axis=1) for number in range(count)], axis=-1)
    each = held @ basins.shares
    spread = basins.shares * (1 - basins.shares) / np.maximum(basins.counts, 1.0)[:, None]
    variance = each.var(axis=0, ddof=1) / len(each) + held.mean(axis=0) ** 2 @ spread
    return each.mean(axis=0), np.sqrt(variance)


def unseen_mass(times_found: np.ndarray, weight: np.ndarray) -> float:
    r"""The root mean square of the mass of modes that were not found, over that of those found.

    If there are n₀ of them, by Chao's estimate, and they are like those that were found a few
    times, of mean weight w̄ and mean square v, their mass has the mean n₀ w̄ and the variance n₀ v.
    """
    few, count = weight[times_found <= FEW_TIMES], unseen_modes(times_found)
    if not count:
        return 0.0
    return float(np.sqrt((count * few.mean()) ** 2 + count * np.mean(few**2)))


def found_modes(target: Target, modes: Modes, basins: Basins, components: np.ndarray) -> FoundModes:
    weight, error = weights_of(components, basins)
    order = np.argsort(-weight, kind="stable")
    return FoundModes(
        target.positions(modes.location[order]),
        weight[order],
        error[order],
        modes.log_mass[order],
        modes.times_found[order],
    )


def doubted(modes: FoundModes, log_z: Evidence) -> tuple[FoundModes, Evidence, float]:
    r"""Standard errors with what modes would change that were not found, and the share of those.

    With M times the mass of the found ones they have the share M/(1 + M) of all, of which each
    weight loses as much, and log ∫ φ is higher by log(1 + M).
    """
    unseen = unseen_mass(modes.times_found, modes.weight)
    share = unseen / (1 + unseen)
    errors = np.hypot(modes.standard_error, share * modes.weight)
    error = float(np.hypot(log_z.standard_error, np.log1p(unseen)))
    return modes._replace(standard_error=errors), log_z._replace(standard_error=error), share


def evidence(ladder: Ladder, result: Result) -> Evidence:
    """log ∫ φ by bridges from rung to rung.

    Its error is a mean over the steps of what the rungs contribute at each, as they depend on one
    another; the standard error is that of this mean.  The spread of eight systems alone would have
    seven degrees of freedom, and three such standard errors be exceeded in 2 % of all runs.
    """
    if result.num_draws < FEWEST_DRAWS:
        return Evidence(np.nan, np.nan, 0)
    # In one order, whether they come from a store or not: sums are rounded by it.
    ratios = np.ascontiguousarray(np.moveaxis(np.asarray(info_of(result).ratios, float), -1, 0))
    betas = np.concatenate([[0.0], ladder.betas])
    total, contributions = 0.0, np.zeros(ratios.shape[1:])
    for gap, below, above in zip(np.diff(betas), ratios[:-1], ratios[1:], strict=True):
        is_known = ~np.isnan(below)  # the reference is not drawn from in every step
        if not np.any(is_known):
            return Evidence(np.nan, np.nan, 0)
        log_z, ours, theirs = bridged(gap * above, gap * np.maximum(below[is_known], -1e30))
        total += log_z
        contributions += ours
        contributions[is_known] += theirs * is_known.size / theirs.size
    error = np.sqrt(np.var(contributions) / effective_size(contributions))
    return Evidence(float(total), float(error), 0)


def objections(points: np.ndarray, components: np.ndarray, sampled: Sampled) -> list[str]:
    """Reasons not to trust the draws."""
    found = []
    ladder = sampled.ladder
    modes = sampled.basins.modes[components]
    found += disagreeing(points, modes, sampled.modes.num_modes, "independent systems")
    found += too_few(points)
    if ladder.harmonic < POOR:
        found.append(
            f"The reference fits the target badly (harmonic acceptance {ladder.harmonic:.3f}): "
            "parts of the modes may be reached too rarely to be weighed."
        )
    tours = float(np.mean(np.sum(info_of(sampled.result).is_tour, axis=1)))
    if tours < FEWEST_TOURS and not ladder.has_axes:
        found.append(
            f"Only {tours:.1f} points per system came from the reference to the target. Give a "
            "larger budget."
        )
    if sampled.is_late:
        found.append(FOUND_LATE)
    if sampled.basins.unlisted > MOST_UNSEEN:
        found.append(
            f"Of the draws {sampled.basins.unlisted:.0%} are in modes that are not listed: the "
            "weights of others include theirs. Give a larger budget."
        )
    return found


def too_few(points: np.ndarray) -> list[str]:
    """A reason, where the draws of some coordinate are worth few independent ones."""
    worst = min(effective_size(ranks) for ranks in _ranks(points))
    if worst >= FEWEST_EFFECTIVE:
        return []
    return [
        f"The draws of the worst coordinate are worth only {worst:.0f} independent ones, fewer "
        f"than {FEWEST_EFFECTIVE}: neither quantiles nor standard errors can be relied on. Give a "
        "larger budget, once you have reparametrised where that is advised."
    ]


def disagreeing(points: np.ndarray, modes: np.ndarray, count: int, what: str) -> list[str]:
    """A reason, where draws of systems, or chains, are not those of one law."""
    worst = disagreement(points, modes, count)
    if worst <= DISAGREEING:
        return []
    return [
        f"The {len(points)} {what} disagree (R-hat {worst:.2f}): standard errors are too small to "
        "be believed. Give a larger budget."
    ]


def disagreement(points: np.ndarray, modes: np.ndarray, count: int) -> float:
    """The largest √(1 + between/within) over the systems, of modes, of ranks of coordinates, and
    of those of distances from their medians: a spike in the middle of a wide law has its median.
    """
    columns = [(modes == number).astype(float) for number in range(min(count, 256))]
    columns += _ranks(points)
    columns += _ranks(np.abs(points - np.median(points, axis=(0, 1))))
    worst = 1.0
    for column in columns:
        within = column.var(axis=1).mean()
        between = column.mean(axis=1).var(ddof=1)
        # A mode that is hardly ever visited says little.
        if within > 1e-4 * max(column.max() ** 2, 1.0):
            worst = max(worst, float(np.sqrt(1 + between / within)))
        elif between > 1e-4 * max(column.max() ** 2, 1.0):
            worst = float("inf")
    return worst


def _ranks(points: np.ndarray) -> list[np.ndarray]:
    """Of each coordinate, among the draws of all systems; of enough draws to judge by."""
    thinned = points[:, :: max(1, points.shape[1] // MOST_RANKED)]
    found = []
    for coordinate in np.moveaxis(thinned, -1, 0):
        ranks = np.empty(coordinate.size)
        ranks[np.argsort(coordinate, axis=None)] = np.arange(coordinate.size)
        found.append(ranks.reshape(coordinate.shape))
    return found
