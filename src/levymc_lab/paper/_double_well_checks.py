"""What experiments that set samplers side by side on the double well check alike."""

from typing import Any

from scipy.stats import t as student_t

from levymc_lab.framework import Check, Tables

from ._double_well import LEFT_MASS

FALSE_ALARM = 1e-6  # of each check of the left mass


def by_name(tables: Tables) -> dict[str, dict[str, Any]]:
    """The scores of each sampler."""
    return {row["sampler"]: row for row in tables["scores"].rows()}


def check_ula(row: dict[str, Any]) -> Check:
    return Check.below(
        "hops of ULA, all runs",
        row["hops"] * row["runs"],
        1,
        source="paper",
        reason="“ULA can locate only one of the modes”; by Kramers' law a hop takes 2e7 time "
        "units, so that two in 1e5 have a chance of 1e-5",
    )


def check_left_mass(row: dict[str, Any]) -> Check:
    """Two wells as a chain of two states: the start's part in the mean over a run is τ/T.

    As hops come at the rate 2p(1-p)/τ, that part is (1-p) · 2p(1-p) / hops.
    """
    start = 2 * LEFT_MASS * (1 - LEFT_MASS) ** 2 / max(row["hops"], 1e-9)
    quantile = student_t.isf(FALSE_ALARM / 2, row["runs"] - 1)
    return Check.near(
        f"mass left of zero, {row['sampler']}",
        LEFT_MASS + row["left_mass_error"],
        LEFT_MASS,
        start + quantile * row["left_mass_spread"],
        reason=f"Student's t over independent runs, false-alarm rate {FALSE_ALARM:g}, and what "
        "their start in the left well leaves",
    )
