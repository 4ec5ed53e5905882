"""What is known of a hypothesis: proved, refuted, or what the numbers suggest."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """What can be said of one hypothesis.

    condition: its name in the paper, such as "H1".
    holds: True, False: by a closed form; None: finitely many numbers cannot tell.
    looks: what the numbers suggest; None: not even that.  Where `holds` is known, it is the same.
    words: why.
    limits: what could not be seen.
    numbers: what the words rest on, by name.
    """

    condition: str
    holds: bool | None
    looks: bool | None
    words: str
    limits: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        raise TypeError(
            f"An answer to {self.condition} must not be taken as true or false, got one whose "
            f"`holds` is {self.holds} and `looks` {self.looks}. Ask for one of them: `holds` is "
            "None where nothing is proved, `looks` is what the numbers suggest."
        )

    def __str__(self) -> str:
        proved = {True: "holds", False: "does not hold"}
        seen = {True: "looks as if it holds", False: "looks as if it fails", None: "not known"}
        verdict = seen[self.looks] if self.holds is None else proved[self.holds]
        return " ".join(
            part for part in (f"{self.condition}: {verdict}.", self.words, self.limits) if part
        )


def proved(condition: str, holds: bool, words: str, limits: str = "", **numbers: float) -> Answer:
    """An answer by a closed form."""
    return Answer(condition, holds, holds, words, limits, numbers)


def seen(condition: str, looks: bool | None, words: str, limits: str, **numbers: float) -> Answer:
    """An answer by finitely many numbers."""
    return Answer(condition, None, looks, words, limits, numbers)
