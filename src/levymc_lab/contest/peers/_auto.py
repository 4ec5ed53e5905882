"""`levymc.auto`, the sampler that needs no tuning."""

from typing import Any

import jax
import numpy as np

import levymc
from levymc_lab.contest.problems import Problem

from ._outcome import Modes, Outcome

NUM_STARTS = 8


def is_there() -> bool:
    return hasattr(levymc, "auto")


def auto(problem: Problem, key: Any, budget: int) -> Outcome:
    """As a user calls it: with a density, starts and a budget."""
    key_start, key_run = jax.random.split(key)
    starts = problem.starts(key_start, NUM_STARTS)
    found = levymc.auto(  # type: ignore[attr-defined, unused-ignore]
        problem.logdensity_fn, key_run, starts, budget=budget, progress=False
    )
    if found.is_interrupted:
        raise KeyboardInterrupt  # which is heard there: a part of a run is no result
    return Outcome(
        np.asarray(found.positions),
        int(sum(found.evaluations.values())),
        is_flagged=bool(found.is_flagged),
        notes=tuple(map(str, found.warnings)),
        modes=_modes(found.modes),
        log_evidence=_evidence(found.log_evidence),
    )


def _modes(modes: Any) -> Modes | None:
    if modes is None:
        return None
    return Modes(*(np.asarray(one) for one in (modes.location, modes.weight, modes.standard_error)))


def _evidence(evidence: Any) -> tuple[float, float] | None:
    if evidence is None:
        return None
    value, error = float(evidence.value), float(evidence.standard_error)
    return (value, error) if np.isfinite(value) else None
