r"""One mode: NUTS after a learned tail map, within a budget."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc.run import Result, resume, sample

from ._adapted import Adapted
from ._bridge import Evidence, log_evidence
from ._many import Plan
from ._nuts import nuts
from ._tail_map import identity
from ._target import Target
from ._warm_up import one_mode

NUM_CHAINS = 4
FOR_EVIDENCE = 0.02  # of the budget
AHEAD = 2.0  # times as many steps as are expected may be made before the budget ends


def sample_one_mode(
    target: Target,
    key: Any,
    starts: np.ndarray,
    center: np.ndarray | None,
    covariance: np.ndarray | None,
    plan: Plan,
) -> tuple[Result, Evidence, list[str], str, dict[str, int]]:
    """Draws, evidence, notes, the kernel in words, and what was spent by stage."""
    key_starts, key_warm, key_draw, key_evidence = jax.random.split(key, 4)
    before = target.evaluations
    chains = _chains(target, key_starts, starts, center, covariance)
    adapted, doublings = _warmed(target, key_warm, chains, covariance, plan)
    warm = target.evaluations - before
    for_evidence = int(FOR_EVIDENCE * plan.budget)
    allowance = plan.budget - target.evaluations - 2 * for_evidence
    result = _within(adapted, key_draw, allowance, plan)
    drawn = int(np.sum(result.info.num_integration_steps))
    target.evaluations += drawn
    found = log_evidence(
        target.logdensity_fn, key_evidence, result.positions, most_draws=max(8, for_evidence)
    )
    target.evaluations += found.evaluations
    facts = adapted.facts
    kernel = (
        f"NUTS after a tail map of kind {facts.get('kind', 'I')}, step size "
        f"{float(facts.get('step_size', np.nan)):.3g}, {adapted.cost:.1f} evaluations per draw"
    )
    spent = {"adapting": warm, "sampling": drawn, "evidence": found.evaluations}
    return result, found, list(adapted.notes), kernel, spent


def _chains(
    target: Target,
    key: Any,
    starts: np.ndarray,
    center: np.ndarray | None,
    covariance: np.ndarray | None,
) -> Any:
    """Where the chains start: around the mode, or at the given starts where there is none."""
    if center is None or covariance is None:
        chosen = starts[np.arange(NUM_CHAINS) % len(starts)]
        return target.positions(chosen)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    factor = np.linalg.cholesky(covariance)
    points = center + rng.standard_normal((NUM_CHAINS, len(center))) @ factor.T
    outside = ~np.isfinite(target.values(points))
    points[outside] = center
    return target.positions(points)


def _warmed(
    target: Target, key: Any, chains: Any, covariance: np.ndarray | None, plan: Plan
) -> tuple[Adapted, int]:
    plan.tell("adapting", target.evaluations, "one mode")

    def compute() -> Any:
        adapted = one_mode(
            target.logdensity_fn,
            key,
            chains,
            budget=plan.budget - target.evaluations,
            covariance=covariance,
        )
        target.evaluations += sum(adapted.evaluations.values())
        return adapted

    return compute(), 0


def _within(adapted: Adapted, key: Any, allowance: int, plan: Plan) -> Result:
    """Steps of NUTS until the allowance is spent."""
    plan.tell("sampling", plan.budget - allowance, "one mode")
    expected = allowance / (NUM_CHAINS * max(adapted.cost, 1.0))

    def is_spent(result: Result) -> bool:
        return int(np.sum(result.info.num_integration_steps)) >= allowance

    most = max(32, int(AHEAD * expected))
    if plan.store is None:
        return sample(
            adapted.algorithm,
            key,
            adapted.positions,
            most,
            until=is_spent,
            progress=False,
            **plan.how,
        )
    folder = plan.store / "draws-nuts"
    if folder.exists():
        return resume(folder, until=is_spent, progress=False)
    return sample(
        adapted.algorithm,
        key,
        adapted.positions,
        most,
        until=is_spent,
        progress=False,
        store=folder,
    )
