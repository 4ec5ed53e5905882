"""What is said of the evidence where a model's density is not prior times likelihood."""

import dataclasses
from typing import NamedTuple

import numpy as np

from levymc.adapt import AutoResult, Evidence

HEADING = "Log evidence:"  # of `levymc.auto`'s report


class Loose(NamedTuple):
    """Names of what is in a model's density that is no normalised law.

    improper: whose prior has no integral.  unnormalised: whose prior has another than 1.
    factors: what multiplies the density, and may be part of the prior or of the likelihood.
    scaled: data whose log likelihood is multiplied.
    """

    improper: tuple[str, ...] = ()
    unnormalised: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()


def with_meaning(result: AutoResult, loose: Loose) -> AutoResult:
    """The result without an evidence that depends on an arbitrary constant, or with what it means.

    A factor leaves the integral as meaningful as it is itself, which only its author knows.
    """
    reasons, notes = _reasons(loose), _notes(loose)
    if reasons:
        none = Evidence(np.nan, np.inf, result.log_evidence.evaluations)
        report = _with_reason(result.report.splitlines(), "; and ".join(reasons))
        return dataclasses.replace(result, log_evidence=none, report=report)
    report = _with_notes(result.report.splitlines(), notes)
    return dataclasses.replace(result, report=report) if notes else result


def _reasons(loose: Loose) -> list[str]:
    """Why there is no evidence."""
    reasons = []
    if loose.improper:
        reasons += [
            f"the prior of {_listed(loose.improper)} is improper",
            "nothing checks that the posterior has an integral",
        ]
    if loose.unnormalised:
        reasons += [f"the prior of {_listed(loose.unnormalised)} does not integrate to one"]
    return reasons


def _notes(loose: Loose) -> list[str]:
    """What the evidence is of."""
    notes = []
    if loose.factors:
        notes += [
            f"with {_listed(loose.factors)} as a factor: the marginal likelihood if that is a "
            "likelihood, and not if it is part of a prior, which then is not normalised"
        ]
    if loose.scaled:
        notes += [
            f"with the log likelihood of {_listed(loose.scaled)} multiplied: not the marginal "
            "likelihood of the data"
        ]
    return notes


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))


def _with_reason(lines: list[str], reason: str) -> str:
    """A report with the reason in the place of the number."""
    said = f"  none, as {reason}"
    if HEADING not in lines:
        return "\n".join([*lines, HEADING, said])
    place = lines.index(HEADING) + 1
    return "\n".join([*lines[:place], said, *lines[place + 1 :]])


def _with_notes(lines: list[str], notes: list[str]) -> str:
    """A report with notes below the number, if there is one."""
    if HEADING not in lines:
        return "\n".join(lines)
    place = lines.index(HEADING) + 2
    return "\n".join([*lines[:place], *(f"  {note}" for note in notes), *lines[place:]])
