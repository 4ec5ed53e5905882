"""Checks and verdict of the experiment `double_well_histograms`."""

from collections.abc import Sequence
from typing import Any

from levymc_lab.framework import Check, Tables, Verdict

from .._double_well_checks import by_name, check_left_mass, check_ula

PUBLISHED, ADVISED = "FLA, Euler", "FLA, tamed"
EXACT = ("FLMC, tamed", "FLMC, split", "MAFLA")


def checks(config: Any, tables: Tables) -> list[Check]:
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


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
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
