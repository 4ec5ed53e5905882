r"""One mode: NUTS after a learned tail map, within a budget."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc.run import Result, resume, sample

from ._adapted import info_of
from ._bridge import FEWEST_DRAWS, Evidence, log_evidence
from ._explore import Modes
from ._many import AHEAD, Plan, too_late
from ._nuts import nuts
from ._tail_map import identity
from ._target import Target
from ._warm_up import advice, one_mode, worst_e_bfmi

NUM_CHAINS = 4
FOR_EVIDENCE = 0.02  # of the budget
KINDS_IN_WORDS = {
    "given": "map that the budget was too small to refit",
    "curvature": "linear map of the curvature at the mode, which told more than the draws'",
    "linear": "linear map, as no tail is heavy",
    "coordinatewise": "map of the tails of each coordinate",
    "elliptical": "map of the tails in all directions alike",
    "principal": "map of the tails along the axes of the curvature at the mode",
    "turned": "map of the tails along axes of their own",
}
LEAST_LEFT = 500  # evaluations, to warm up and to draw
# Where processes share the chains: of the steps that are expected, and of those then left.
FIRST_PART, NEXT_PART = 0.8, 0.9
CLOSE = 0.01  # of the steps: too few to go on for
NAME = "draws-nuts"


class Warm(NamedTuple):
    """An `Adapted` in plain arrays: the numbers of its algorithm, and the points of its chains."""

    numbers: tuple[np.ndarray, ...]
    points: np.ndarray
    cost: float
    facts: dict[str, Any]
    notes: list[str]


class Single(NamedTuple):
    """Draws of one mode, with the evidence, reasons for doubt, and the kernel in words."""

    result: Result
    evidence: Evidence
    notes: list[str]
    kernel: str


def sample_one_mode(
    target: Target,
    key: Any,
    starts: np.ndarray,
    modes: Modes,
    plan: Plan,
    note: Callable[[str], None],
) -> Single:
    """Warm up, sample until the budget is spent, and estimate the evidence.

    `note` is called with the name of each stage at its end.
    """
    key_starts, key_warm, key_draw, key_evidence = jax.random.split(key, 4)
    warm = plan.stages.of(
        "warm-up",
        target,
        lambda: _warmed(target, key_starts, key_warm, starts, modes, plan),
        lambda kept: Warm(**{**kept, "numbers": tuple(kept["numbers"].values())}),
    )
    note("adapting")
    for_evidence = int(FOR_EVIDENCE * plan.budget)
    allowance = plan.budget - target.evaluations - for_evidence
    result = _within(_algorithm(target, warm), warm, target, key_draw, allowance, plan)
    target.evaluations += int(np.sum(info_of(result).num_integration_steps))
    note("sampling")
    found = _evidence(target, key_evidence, result, for_evidence)
    note("evidence")
    return Single(result, found, _notes(warm, result), _kernel(warm))


def _kernel(warm: Warm) -> str:
    """In words, with the map that was refused, if one was."""
    refused = str(warm.facts.get("refused", ""))
    found = "linear map" if refused else KINDS_IN_WORDS[warm.facts["map"]]
    words = (
        f"NUTS after a {found}, step size {warm.facts['step_size']:.3g}, "
        f"{warm.cost:.1f} evaluations per draw"
    )
    return f"{words}. {refused}" if refused else words


def _notes(warm: Warm, result: Result) -> list[str]:
    """Reasons for doubt: those of the warm-up, and what the worse of it and the draws calls for.

    A neck may first be met by the draws, which are many more.
    """
    before, info = warm.facts, info_of(result)
    at_limit = info.num_trajectory_expansions >= before["max_num_doublings"]
    worse = {
        "divergent": max(before["divergent"], float(np.mean(info.is_divergent))),
        "e_bfmi": min(before["e_bfmi"], worst_e_bfmi(info.energy)),
        "at_most_doublings": max(before["at_most_doublings"], float(np.mean(at_limit))),
        "max_num_doublings": before["max_num_doublings"],
    }
    known = [*advice(before), before.get("refused")]
    return [*(note for note in warm.notes if note not in known), *advice(worse)]


def _evidence(target: Target, key: Any, result: Result, most: int) -> Evidence:
    if result.num_draws < FEWEST_DRAWS:  # interrupted
        return Evidence(np.nan, np.nan, 0)
    found = log_evidence(
        target.logdensity_fn,
        key,
        result.positions,
        logdensities=np.ascontiguousarray(info_of(result).logdensity),
        most_draws=max(FEWEST_DRAWS, most),
    )
    target.evaluations += found.evaluations
    return found


def _warmed(
    target: Target, key_starts: Any, key: Any, starts: np.ndarray, modes: Modes, plan: Plan
) -> Warm:
    plan.tell("adapting", target.evaluations, "one mode")
    covariance = modes.covariance[0] if modes.num_modes else None
    chains = target.positions(_first_points(target, key_starts, starts, modes))
    left = plan.budget - target.evaluations
    if left < LEAST_LEFT:
        raise too_late(target, plan)
    adapted = one_mode(target.logdensity_fn, key, chains, budget=left, covariance=covariance)
    target.evaluations += sum(adapted.evaluations.values())
    return Warm(
        tuple(np.asarray(leaf) for leaf in jax.tree.leaves(adapted.algorithm)),
        target.flattened(adapted.positions),
        adapted.cost,
        adapted.facts,
        adapted.notes,
    )


def _first_points(target: Target, key: Any, starts: np.ndarray, modes: Modes) -> np.ndarray:
    """Where the chains start: around the mode, or at the given starts where there is none."""
    if not modes.num_modes:
        return starts[np.arange(NUM_CHAINS) % len(starts)]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    center, factor = modes.location[0], np.linalg.cholesky(modes.covariance[0])
    points = center + rng.standard_normal((NUM_CHAINS, len(center))) @ factor.T
    values, slopes = target.gradients(points)
    is_fine = np.isfinite(values) & np.all(np.isfinite(slopes), axis=1)
    points[~is_fine] = center  # no trajectory leaves a point without a gradient
    return points


def _algorithm(target: Target, warm: Warm) -> Any:
    """NUTS with the numbers of the warm-up."""
    doublings = int(warm.facts["max_num_doublings"])
    alike = nuts(target.logdensity_fn, 1.0, identity(target.dimension), max_num_doublings=doublings)
    leaves = [jnp.asarray(number) for number in warm.numbers]
    return jax.tree.unflatten(jax.tree.structure(alike), leaves)


def _within(
    algorithm: Any, warm: Warm, target: Target, key: Any, allowance: int, plan: Plan
) -> Result:
    """Steps of NUTS until the allowance is spent."""
    plan.tell("sampling", target.evaluations, "one mode")

    def is_spent(result: Result) -> bool:
        return int(np.sum(info_of(result).num_integration_steps)) >= allowance

    positions = target.positions(warm.points)
    expected = allowance / (NUM_CHAINS * max(warm.cost, 1.0))  # steps
    if "shards" in plan.how:
        first = max(FEWEST_DRAWS, int(FIRST_PART * expected))
        return _shared(algorithm, key, positions, first, allowance, plan)
    folder = None if plan.store is None else plan.store / NAME
    if folder is not None and folder.exists():
        return resume(folder, until=is_spent, progress=False)
    most = max(32, int(AHEAD * expected))
    return sample(
        algorithm, key, positions, most, until=is_spent, progress=False, store=folder, **plan.how
    )


def _shared(
    algorithm: Any, key: Any, positions: Any, steps: int, allowance: int, plan: Plan
) -> Result:
    """Steps of chains that processes share, more and more of them until the allowance is spent.

    How many is seen from the draws before, of which all processes have the same.
    """
    assert plan.store is not None
    how = {**plan.how, "shards": min(plan.how["shards"], NUM_CHAINS), "progress": False}
    folder = plan.store / NAME
    result = sample(algorithm, key, positions, steps, store=folder, **how)
    while result.num_draws >= steps:  # else it was interrupted
        spent = int(np.sum(info_of(result).num_integration_steps[:, :steps]))
        more = int(NEXT_PART * (allowance - spent) * steps / spent)
        if more < CLOSE * steps:
            return result
        steps += more
        if result.num_draws < steps:
            result = _extended(folder, steps, plan.how.get("mesh"))
    return result


def _extended(folder: Path, steps: int, mesh: Any) -> Result:
    """A run with so many steps, or more where another process has come to that already."""
    try:
        return resume(folder, num_steps=steps, mesh=mesh, progress=False)
    except ValueError:
        return resume(folder, mesh=mesh, progress=False)
