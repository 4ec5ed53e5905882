"""What the experiment `drift_accuracy` checks, and says."""

from collections.abc import Sequence
from typing import Any

from levymc_lab.framework import Check, Table, Tables, Verdict

PUBLISHED = {1.5: 19.31, 1.6: 14.12, 1.7: 12.72, 1.8: 8.64, 1.9: 7.03}  # Table 1
POINT_SET = (
    "The table was not made with the 200 points of the text: with 201, at distances of 0.05, it "
    "comes out to 0.01. κ̂ is a mean of jumpy numbers, which moves with the points."
)


def checks(config: Any, tables: Tables) -> list[Check]:
    rows = tables["kappa"].rows()
    own = [_check_own(config, row) for row in rows]
    text = [_check_text(config, row) for row in rows]
    return own + text + [_check_truncated(row) for row in rows]


def _check_own(config: Any, row: dict[str, Any]) -> Check:
    return Check.near(
        f"κ̂({row['alpha']:g}) on {config.num_points} points",
        row["kappa"],
        row["published"],
        0.01,
        source="paper",
        reason="the table has two decimals; nothing is random",
    )


def _check_text(config: Any, row: dict[str, Any]) -> Check:
    return Check.near(
        f"κ̂({row['alpha']:g}) on the {config.num_points_in_text} points of the text",
        row["kappa_text"],
        row["published"],
        0.01,
        source="paper",
        reason="as above",
        explanation=POINT_SET,
    )


def _check_truncated(row: dict[str, Any]) -> Check:
    return Check.below(
        f"relative error of b̃, 90 % of the points, α = {row['alpha']:g}",
        row["truncated_90"],
        0.01,
        reason="Theorem 2: b̃ at h = 0.06, K = 170 has to be close to the exact drift for κ̂ to "
        "mean anything",
    )


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
    failed = [check.name for check in checks if check.outcome == "fail"]
    if failed:
        return Verdict("not reproduced", f"These are off: {'; '.join(failed)}.")
    table = tables["kappa"]
    median, target = table["leading_median"], table["leading_under_target"]
    return Verdict(
        "reproduced",
        f"The table comes out to 0.01 on {config.num_points} points; on the "
        f"{config.num_points_in_text} of the text it differs by up to "
        f"{abs(table['kappa_text'] - table['published']).max():.2f}. But κ̂ does not say that the "
        "leading term is accurate: it names the short sum that is as wrong. The median relative "
        f"error of b̂ over these points is {_range(median)}, and where the target has its mass "
        f"{_range(target)}, least at α = {table['alpha'][target.argmin()]:g}; that of the sum "
        f"with K = 170 is {_range(table['truncated_median'], 2)}. In the terms of Corollary 2, r "
        f"falls to {_lowest_radius(tables['drifts']):.0e} and less on the barrier, where 1/(rK) "
        "bounds nothing.",
    )


def _lowest_radius(table: Table) -> float:
    """Of the α for which it is largest."""
    return max(table.where(alpha=alpha)["radius"].min() for alpha in set(table["alpha"].tolist()))


def _range(values: Any, decimals: int = 0) -> str:
    low, high = 100 * values.min(), 100 * values.max()
    return f"{low:.{decimals}f} to {high:.{decimals}f} %"
