"""What the experiment `sbn_stepsize` checks, of those runs that there are."""

from typing import Any

import numpy as np

from levymc_lab.framework import Check, Table, Tables

ENUMERATION = 0.3  # nats, between annealing and the exact sum
BRACKET = 1.0  # nats, between the bounds from below and above
CLOSE = 10.0  # nats, to the published points
FALL = "fall from the smallest to the largest step"
UNKNOWN = (
    "The paper does not tell the start, the binarisation, how hidden units are drawn, on which "
    "large steps depend most, nor the temperatures; with few and the weight last, its code is "
    "biased upwards."
)


def checks(config: Any, tables: Tables) -> list[Check]:
    found = _of_annealing(config, tables)
    if config.source == "mnist" and "grid" in tables:  # published numbers say nothing of others
        found += _of_robustness(config, tables)
    return found


def _of_annealing(config: Any, tables: Tables) -> list[Check]:
    if "annealing" not in tables:
        return []
    (small,) = tables["enumerated"].rows()
    (last,) = tables["annealing"].where(temperatures=max(config.temperatures)).rows()
    is_short = config.source == "made"
    brief = "The quick profile has few temperatures." if is_short else ""
    return [
        Check.near(
            f"log-likelihood by annealing, J = {config.small_hidden}, "
            f"T = {config.num_temperatures}",
            small["annealed"],
            small["exact"],
            ENUMERATION,
            reason="the exact one adds up all states; annealing has ten particles an image",
            explanation=brief,
        ),
        Check.near(
            f"from above less from below, J = {config.num_hidden}, T = {last['temperatures']}",
            last["above"] - last["below"],
            BRACKET / 2,
            BRACKET / 2,
            reason="simulated images; the truth lies between, on average",
            explanation=brief,
        ),
    ]


def _fall(part: Table, column: str) -> float:
    """How much lower it is at the largest step than at the smallest."""
    return float(part[column][np.argmin(part["step"])] - part[column][np.argmax(part["step"])])


def _of_robustness(config: Any, tables: Tables) -> list[Check]:
    found = []
    for alpha in config.main_alphas:
        part = tables["grid"].where(alpha=alpha, iterations=config.num_iterations)
        if not {min(config.steps), max(config.steps)} <= set(part["step"].tolist()):
            continue
        distance = float(np.mean(np.abs(part["loglikelihood"] - part["published"])))
        found += [
            Check.near(
                f"{FALL}, α = {alpha:g}",
                _fall(part, "loglikelihood"),
                _fall(part, "published"),
                CLOSE,
                source="paper",
                reason="nats",
                explanation=UNKNOWN,
            ),
            Check.below(
                f"mean distance to the published points, α = {alpha:g}",
                distance,
                CLOSE,
                source="paper",
                reason=f"{len(part)} steps",
                explanation=UNKNOWN,
            ),
        ]
    return found
