"""What `levymc.auto` gives: draws, modes, evidence, and a report on how far to trust them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from levymc.run import Result

from ._bridge import Evidence

NO_EVIDENCE = Evidence(float("nan"), float("inf"), 0)
MOST_SHOWN = 12  # modes in a report


class FoundModes(NamedTuple):
    """The modes that were found, the heaviest first; the first axis of every array is over them.

    location: positions.  weight: share of the draws, with its standard error over independent
    systems.  log_mass: of the normal law with the mode's height and curvature.
    times_found: relaxations that ended there.  Without a gradient these are NaN and 0.
    """

    location: Any
    weight: np.ndarray
    standard_error: np.ndarray
    log_mass: np.ndarray
    times_found: np.ndarray

    @property
    def num_modes(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, eq=False, repr=False)
class AutoResult(Result):
    """A `Result` of the frozen, exact kernel, with what else was learned.

    modes: `FoundModes`.  log_evidence: log ∫ φ, given the modes found, with its standard error.
    evaluations: spent, by stage.
    warnings: reasons not to trust the answer, in words; empty where nothing speaks against it.
    report: all of it for a person to read.
    """

    modes: FoundModes | None = None
    log_evidence: Evidence = NO_EVIDENCE
    evaluations: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    report: str = ""

    @property
    def is_flagged(self) -> bool:
        """Whether something speaks against the answer."""
        return bool(self.warnings)

    @property
    def attributes(self) -> dict[str, Any]:
        """For ArviZ: numbers, lists of them, and text, which every format of files can hold."""
        found = super().attributes | {"report": self.report, "warnings": " ".join(self.warnings)}
        found["evaluations"] = sum(self.evaluations.values())
        if np.isfinite(self.log_evidence.value):
            found["log_evidence"] = float(self.log_evidence.value)
            found["log_evidence_standard_error"] = float(self.log_evidence.standard_error)
        if self.modes is not None:
            found["mode_weights"] = np.asarray(self.modes.weight).tolist()
            found["mode_weight_standard_errors"] = np.asarray(self.modes.standard_error).tolist()
        return found


class Account(NamedTuple):
    """What a report is written from.

    kernel: which sampler ran, and why, in words.
    search: what the search for modes saw, and not_seen what it could not see, in words.
    """

    kernel: str
    search: str
    budget: int
    not_seen: str


def written(result: AutoResult, account: Account) -> str:
    """The report."""
    lines = [
        f"levymc.auto: {result.num_chains} chains × {result.num_draws} draws, {result.algorithm}"
    ]
    lines += _indented("Modes", [account.search, *_mode_lines(result.modes)])
    lines += _indented("Kernel", [account.kernel])
    evidence = result.log_evidence
    if np.isfinite(evidence.value):
        shown = f"{evidence.value:.3f} ± {evidence.standard_error:.3f}, given the modes found"
        lines += _indented("Log evidence", [shown])
    spent = sum(result.evaluations.values())
    stages = ", ".join(f"{name} {count:,}" for name, count in result.evaluations.items())
    lines += _indented("Evaluations", [f"{spent:,} of {account.budget:,}: {stages}"])
    if result.warnings:
        lines += _indented("Do not trust this yet", list(result.warnings))
    lines += _indented("Not seen", [account.not_seen])
    return "\n".join(lines)


def counted(number: int, thing: str) -> str:
    """A number of things, in words that fit it."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def in_digits(chance: float) -> str:
    """A chance to two digits, and below a tenth to one: no small one is written as zero."""
    digits = 2 if chance >= 0.1 else 1
    return np.format_float_positional(
        chance, precision=digits, unique=False, fractional=False, trim="-"
    )


def _indented(title: str, sentences: list[str]) -> list[str]:
    return [f"{title}:", *(f"  {sentence}" for sentence in sentences)]


def _with_error(weight: float, error: float) -> str:
    return "not known" if np.isnan(weight) else f"{weight:.4f} ± {error:.4f}"


def _mode_lines(modes: FoundModes | None) -> list[str]:
    if modes is None or not modes.num_modes:
        return []
    lines = [
        f"weight {_with_error(weight, error)}"
        + (f", found {counted(times, 'time')}, log mass by Laplace {mass:.2f}" if times else "")
        for weight, error, mass, times in zip(
            modes.weight[:MOST_SHOWN],
            modes.standard_error[:MOST_SHOWN],
            modes.log_mass[:MOST_SHOWN],
            modes.times_found[:MOST_SHOWN],
            strict=True,
        )
    ]
    return [
        *lines,
        *([f"and {modes.num_modes - MOST_SHOWN} more"] * (modes.num_modes > MOST_SHOWN)),
    ]
