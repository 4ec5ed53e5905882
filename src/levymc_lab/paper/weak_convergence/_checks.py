"""What the experiment `weak_convergence` checks, and what it says."""

from collections.abc import Sequence
from typing import Any

from levymc_lab.framework import Check, Tables, Verdict

from ._chains import CONSTANT, LEFT, LOCAL, POSITION, SCHEDULES, STEP_SIZE

FITTED = 4  # slopes are fitted to the last so many doublings of N
SLACK = 0.08  # of a slope, for what is not yet asymptotic


def checks(config: Any, tables: Tables) -> list[Check]:
    """The slopes of the bounded g."""
    rows = tables["slopes"].rows()
    return [_check_slope(row) for row in rows if _is_checked(row)]


def _is_checked(row: dict[str, Any]) -> bool:
    """Chance follows its law only after many hops; and a constant step's part of it is no claim."""
    if row["function"] == LEFT:
        return row["steps"] != CONSTANT and row["settled"]
    return row["function"] == LOCAL


def _check_slope(row: dict[str, Any]) -> Check:
    part = "the steps'" if row["function"] == LOCAL else "chance's"
    return Check.near(
        f"slope of the error of {row['function']}, {row['steps']}",
        row["slope"],
        row["theory"],
        SLACK + 4 * row["slope_error"],
        reason=f"{part} part is the larger; four bootstrap errors, and {SLACK:g} for what is not "
        "yet asymptotic",
    )


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
    longest = tables["errors"]["num_steps"].max()
    failed = [check.name for check in checks if check.outcome == "fail"]
    if failed:
        return Verdict("not reproduced", f"These do not hold: {'; '.join(failed)}.")
    if not any(LEFT in check.name for check in checks):
        words = f"With N = {longest:,} chains have hopped too little to tell a rate."
        return Verdict("measured here", words)
    last = tables["errors"].where(steps=CONSTANT, function=LOCAL).rows()[-1]
    return Verdict(
        "reproduced",
        "With decreasing steps and the exact drift, tamed, the error of the weighted estimator "
        f"falls as a power of N up to N = {longest:,}. Slopes, with those of theory: "
        f"for cos x {_fitted(tables, LOCAL)}; for the mass of the left well "
        f"{_fitted(tables, LEFT)}. A constant step of {STEP_SIZE:g} stays at an error of "
        f"{last['rms']:.2g} for cos x. The corollary itself does not cover this target, whose "
        "exact drift is not Lipschitz; nor does taming serve g = x, whose error has peaks of up to "
        f"{_worst(tables):.2g} as late as in the last {FITTED} doublings: a tamed step is long on "
        "its way back from a far jump, and at a fixed step |x| has no mean.",
    )


def _worst(tables: Tables) -> float:
    """The largest error of x where slopes are fitted."""
    rows = tables["errors"].where(function=POSITION)
    late = rows["num_steps"] >= rows["num_steps"].max() / 2**FITTED
    return float(rows["rms"][late].max())


def _fitted(tables: Tables, function: str) -> str:
    rows = tables["slopes"].where(function=function).rows()
    return ", ".join(
        f"{row['slope']:.2f} ({row['theory']:.2f}) for {row['steps']}"
        for row in rows
        if row["steps"] in SCHEDULES
    )
