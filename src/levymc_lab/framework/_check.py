"""A measured number beside the one it should be, and what the experiment says in words."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

Real = SupportsFloat | float | int  # arrays of one number, too
Relation = Literal["near", "below", "above"]
Source = Literal["paper", "theory"]
Outcome = Literal["pass", "explained", "fail"]
Kind = Literal["reproduced", "reproduced only as a transient", "not reproduced", "measured here"]


@dataclass(frozen=True)
class Check:
    """`measured` compared with `target`; made by `near`, `below` and `above`.

    source: whether the target is printed in the paper or follows from theory.
    reason: why this is the bar; with random numbers, the false-alarm rate.
    explanation: why the bar may be missed.  A miss that is explained does not fail the run; that
        nothing could be measured (NaN) does.
    """

    name: str
    measured: float
    relation: Relation
    target: float
    tolerance: float = 0.0
    source: Source = "theory"
    reason: str = ""
    explanation: str = ""

    @classmethod
    def near(
        cls, name: str, measured: Real, target: Real, tolerance: Real, **details: Any
    ) -> "Check":
        """|measured - target| ≤ tolerance."""
        return cls(name, float(measured), "near", float(target), float(tolerance), **details)

    @classmethod
    def below(cls, name: str, measured: Real, limit: Real, **details: Any) -> "Check":
        """Measured ≤ limit."""
        return cls(name, float(measured), "below", float(limit), **details)

    @classmethod
    def above(cls, name: str, measured: Real, limit: Real, **details: Any) -> "Check":
        """Measured ≥ limit."""
        return cls(name, float(measured), "above", float(limit), **details)

    @property
    def holds(self) -> bool:
        """Whether the comparison is true; with NaN it is not."""
        if self.relation == "below":
            return self.measured <= self.target
        if self.relation == "above":
            return self.measured >= self.target
        return abs(self.measured - self.target) <= self.tolerance

    @property
    def outcome(self) -> Outcome:
        if self.holds:
            return "pass"
        return "explained" if self.explanation and not math.isnan(self.measured) else "fail"

    @property
    def expected(self) -> str:
        """The bar as text.

        >>> Check.near("kappa", 12.719, 12.72, 0.01).expected, Check.below("KS", 0.1, 0.2).expected
        ('12.72 ± 0.01', '≤ 0.2')
        """
        if self.relation == "near":
            return f"{self.target:.4g} ± {self.tolerance:.2g}"
        return f"{'≤' if self.relation == 'below' else '≥'} {self.target:.3g}"

    def to_json(self) -> dict[str, Any]:
        fields = dataclasses.asdict(self)
        if not math.isfinite(self.measured):  # JSON has no such number
            fields["measured"] = str(self.measured)
        return {**fields, "expected": self.expected, "outcome": self.outcome}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Check":
        fields = {field.name: content[field.name] for field in dataclasses.fields(cls)}
        return cls(**{**fields, "measured": float(fields["measured"])})


@dataclass(frozen=True)
class Verdict:
    """One of the four kinds, and a sentence or two which the numbers support.

    "measured here" is for what has no number in the paper.
    """

    kind: Kind
    words: str
