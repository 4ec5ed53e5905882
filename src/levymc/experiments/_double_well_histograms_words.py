"""Checks and verdict of the experiment `double_well_histograms`."""

from collections.abc import Sequence
from typing import Any

from scipy.stats import t as student_t

from ._check import Check, Verdict
from ._double_well import LEFT_MASS
from ._experiment import Tables

FALSE_ALARM = 1e-6  # of each check of the left mass
PUBLISHED, ADVISED = "FLA, Euler", "FLA, tamed"
EXACT = ("FLMC, tamed", "FLMC, split", "MAFLA")


def by_name(tables: Tables) -> dict[str, dict[str, Any]]:
    """The scores of each sampler."""
    return {row["sampler"]: row for row in tables["scores"].rows()}


def make_checks(tables: Tables) -> list[Check]:
    rows = by_name(tables)
    ratio = rows[ADVISED]["tv_of_shape"] / rows["FLMC, split"]["tv_of_shape"]
    return [
        check_ula(rows["ULA"]),
        Check.above(
            "share of FLA's runs that see both wells",
            rows[PUBLISHED]["both_wells"],
            0.5,
            source="paper",
            reason="“FLA is able to locate both of the modes”; read as: most runs are",
        ),
        *(check_left_mass(rows[name]) for name in EXACT),
        Check.above(
            "shape's total variation, tamed FLA over split FLMC",
            ratio,
            2,
            reason="at the same step only the drift differs, and FLA's keeps another law invariant",
        ),
    ]


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


def make_verdict(tables: Tables, checks: Sequence[Check]) -> Verdict:
    rows = by_name(tables)
    runs = rows["ULA"]["runs"]
    failed = [check.name for check in checks if check.source == "paper" and not check.holds]
    if failed:
        return Verdict("not reproduced", f"The figure shows otherwise: {'; '.join(failed)}.")
    fla, hops = rows[PUBLISHED], round(rows["ULA"]["hops"] * runs)
    shape = {name: rows[name]["tv_of_shape"] for name in (ADVISED, *EXACT)}
    return Verdict(
        "reproduced",
        f"From the left well ULA made {hops} hops in {runs} runs, while FLA saw both wells in "
        f"{fla['both_wells']:.0%} of them. But what FLA draws is not the target: Euler's step "
        f"exploded in {fla['exploded']} runs, and where taming prevents that, the wells' shape is "
        f"off by {shape[ADVISED]:.3f} in total variation. With the exact drift it is off by "
        f"{shape['FLMC, tamed']:.3f} (tamed) and {shape['FLMC, split']:.3f} (split) at the same "
        f"step, with a Metropolis test by {shape['MAFLA']:.3f}.",
    )
