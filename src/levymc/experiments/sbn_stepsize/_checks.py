"""What the experiment `sbn_stepsize` checks, and says of those runs that there are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._check import Check, Verdict
from .._experiment import Tables
from .._table import Table
from ._tables import NAMES

ENUMERATION = 0.3  # nats, between annealing and the exact sum
BRACKET = 1.0  # nats, between the bounds from below and above
CLOSE = 10.0  # nats, to the published points
ALIKE = 5.0  # nats, between SG-FLA and SGLD with its gradient step
UNKNOWN = (
    "The paper does not tell the start, the binarisation, how hidden units are drawn or how many "
    "temperatures were used; with few temperatures and the weight last, its code is biased upwards."
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
            reason="the exact one adds up all states",
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


def fall(config: Any, grid: Table, alpha: float, column: str = "loglikelihood") -> float | None:
    """How much lower the likelihood is at the largest step than at the smallest.

    None as long as one of them is missing, or was run for longer than the other.
    """
    ends = [grid.where(alpha=alpha, step=pick(config.steps)) for pick in (min, max)]
    if not all(map(len, ends)) or ends[0]["iterations"][0] != ends[1]["iterations"][0]:
        return None
    return float(ends[0][column][0] - ends[1][column][0])


def _of_robustness(config: Any, tables: Tables) -> list[Check]:
    grid, found = tables["grid"], []
    for alpha in config.main_alphas:
        measured, printed = (fall(config, grid, alpha, c) for c in ("loglikelihood", "published"))
        if measured is None or printed is None:
            continue
        part = grid.where(alpha=alpha)
        distance = float(np.mean(np.abs(part["loglikelihood"] - part["published"])))
        found += [
            Check.near(
                f"fall from the smallest to the largest step, α = {alpha:g}",
                measured,
                printed,
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


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
    made = ["On made pictures."] if config.source == "made" else []
    words = " ".join([*made, *_of_grid(config, tables), *_of_parts(config, tables)])
    if config.source == "made" or not _is_complete(config, tables):
        return Verdict("measured here", words)
    falls = [check for check in checks if check.name.startswith("fall")]
    is_robust = bool(falls) and all(check.holds for check in falls)
    return Verdict("reproduced" if is_robust else "not reproduced", words)


def _is_complete(config: Any, tables: Tables) -> bool:
    return "grid" in tables and all(
        fall(config, tables["grid"], alpha) is not None for alpha in config.main_alphas
    )


def _of_grid(config: Any, tables: Tables) -> list[str]:
    if "grid" not in tables:
        return ["No run is there yet."]
    grid, words = tables["grid"], []
    for alpha in config.main_alphas:
        part = grid.where(alpha=alpha)
        if len(part) < 2:
            continue
        small, large = np.argmin(part["step"]), np.argmax(part["step"])
        words.append(
            f"At α = {alpha:g} the log-likelihood goes from {part['loglikelihood'][small]:.1f} at "
            f"η = {part['step'][small]:.2g} to {part['loglikelihood'][large]:.1f} at "
            f"{part['step'][large]:.2g} (published: {part['published'][small]:.1f} and "
            f"{part['published'][large]:.1f})."
        )
    return words


def _of_parts(config: Any, tables: Tables) -> list[str]:
    if "runs" not in tables:
        return []
    runs, alpha = tables["runs"], config.ablated_alpha
    step = max(config.ablation_steps)
    at = runs.where(step=step, sweeps=config.sweeps, iterations=config.num_iterations)
    parts = [
        f"{name} {_mean(at.where(sampler=name, alpha=alpha)):.1f}"
        for name in (NAMES["sgfla"], NAMES["normal"], NAMES["sgd"], NAMES["sgld"])
        if len(at.where(sampler=name, alpha=alpha))
    ]
    if not parts:
        return []
    return [f"The parts of its step at α = {alpha:g}, η = {step:.2g}: {'; '.join(parts)}."]


def _mean(table: Table) -> float:
    return float(table["loglikelihood"].mean())
