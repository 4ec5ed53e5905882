"""What the experiment `movielens_posterior` checks, and says."""

import math
from collections.abc import Sequence
from typing import Any

from levymc_lab.framework import Check, Tables, Verdict

GOAL = 0.002
TRUTH = 0.845  # RMSE of a long Gibbs run on MovieLens 1M, measured by others; raw or centred
LEVY_BIAS = (
    "Jumps without bound stay in the rows that they hit until the gradient brings them back, and a "
    "mean over draws feels each of them: FLA's own law, not the posterior."
)


def by_method(tables: Tables) -> dict[str, dict[str, Any]]:
    return {row["method"]: row for row in tables["scores"].rows()}


def is_real(tables: Tables) -> bool:
    return bool(tables["scores"]["source"][0] == "real")


def checks(config: Any, tables: Tables) -> list[Check]:
    rows = by_method(tables)
    found = []
    if is_real(tables):
        found.append(
            Check.near(
                "RMSE of the Gibbs sampler",
                rows["Gibbs"]["error"],
                TRUTH,
                0.004,
                reason="0.844 to 0.846 in long runs elsewhere, on another split of the same kind",
            )
        )
        found += [_check_goal(row, rows["Gibbs"]) for row in rows.values() if _is_aimed(row)]
        found.append(_check_time(rows))
    return [*found, _check_divergence(tables)]


def _is_aimed(row: dict[str, Any]) -> bool:
    return row["method"] not in ("Gibbs", "ALS") and "one step" not in row["method"]


def _check_goal(row: dict[str, Any], gibbs: dict[str, Any]) -> Check:
    exact = row["temperature"] == math.inf
    return Check.below(
        f"RMSE of {row['method']}, above the Gibbs sampler's",
        row["error"] - gibbs["error"],
        GOAL,
        reason="the aim, over seeds, with what was chosen on the validation split",
        explanation=LEVY_BIAS
        if exact
        else "Its draws are more alike than the Gibbs sampler's: in "
        "this time the mean is over fewer independent ones.",
    )


def _check_time(rows: dict[str, dict[str, Any]]) -> Check:
    fastest = min((row for row in rows.values() if _is_aimed(row)), key=_seconds)
    return Check.below(
        f"seconds until within {GOAL:g} of the Gibbs sampler's end, {fastest['method']} (the "
        "first of them) over the Gibbs sampler",
        fastest["seconds_to_goal"] / rows["Gibbs"]["seconds_to_goal"],
        1.0,
        reason="the aim",
        explanation="A compiled Gibbs sweep takes the time of some seventeen of these steps, and "
        "its draws are nearly independent: on a million ratings it is hard to beat.",
    )


def _seconds(row: dict[str, Any]) -> float:
    return float(row["seconds_to_goal"])


def _check_divergence(tables: Tables) -> Check:
    return Check.below(
        "steps that would have left the finite numbers, all methods",
        float(tables["scores"]["divergences"].sum()),
        0,
        reason="the drift's step of a row is bounded by its curvature",
    )


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
    rows = by_method(tables)
    gibbs = rows["Gibbs"]
    made = "" if is_real(tables) else "On made ratings. "
    others = [row for row in rows.values() if row["method"] != "Gibbs"]
    scores = "; ".join(f"{r['method']} {r['error']:.4f}{_time(r)}" for r in others)
    return Verdict(
        "measured here",
        f"{made}The Gibbs sampler predicts with an RMSE of {gibbs['error']:.4f} after "
        f"{gibbs['seconds']:.0f} s on one core, and is within {GOAL:g} of that after "
        f"{gibbs['seconds_to_goal']:.1f} s. The others: {scores}. Its single draws are off by "
        f"{gibbs['single']:.3f}; the 90 % intervals hold {100 * gibbs['coverage']:.0f} % of the "
        f"ratings, as unit noise is more than the ratings have. {_of_cold(rows)}",
    )


def _of_cold(rows: dict[str, dict[str, Any]]) -> str:
    cut, cold = rows["SG-FLA 1.6, jumps ≤ 50"], rows["SGLD, as cold as 1.6, jumps ≤ 50"]
    return (
        "Exact jumps cost accuracy, the more the smaller α. With jumps cut off at 50 SG-FLA is "
        f"SGLD at a lower temperature ({cut['temperature']:.2f} in the median row at α = 1.6): "
        f"Gaussian noise as cold ends at {cold['error']:.4f}, beside {cut['error']:.4f}."
    )


def _time(row: dict[str, Any]) -> str:
    seconds = row["seconds_to_goal"]
    return "" if seconds == math.inf else f" (there after {seconds:.1f} s)"
