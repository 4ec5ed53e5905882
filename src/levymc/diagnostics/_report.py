"""What a check reports: findings with remedies, notes, and one line that sums them up."""

import html
from dataclasses import dataclass
from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that looks wrong.

    kind: a word for programs, such as "stuck" or "divergences".
    message: what was seen.
    remedy: what to try.
    """

    kind: str
    message: str
    remedy: str


@dataclass(frozen=True)
class Report:
    """What looks wrong with a run, and what cannot be told; true where nothing looks wrong.

    findings: the worst first.
    notes: what to keep in mind, also of a run that looks fine.
    algorithm: the name of what made the run, if it is known.
    is_exact: whether its target is φ at every step size; None: not known.
    not_looked_at: tests that could not be made.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    algorithm: str = ""
    is_exact: bool | None = None
    not_looked_at: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(finding.kind for finding in self.findings)

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        lines = [self._headline()]
        for finding in self.findings:
            lines += [f"- {finding.kind}: {finding.message}", f"  Try: {finding.remedy}"]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        items = (
            f"<li><b>{html.escape(f.kind)}</b>: {html.escape(f.message)}<br>"
            f"<i>Try:</i> {html.escape(f.remedy)}</li>"
            for f in self.findings
        )
        notes = (f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        headline = html.escape(self._headline())
        return f"<p>{headline}</p><ul>{''.join(items)}</ul>{''.join(notes)}"

    def _headline(self) -> str:
        count = len(self.findings)
        verdict = f"{count} thing{'s look' if count > 1 else ' looks'} wrong" if count else ""
        verdict = verdict or "nothing looks wrong"
        if self.not_looked_at:
            verdict += f"; not looked at: {' and '.join(self.not_looked_at)}"
        made_by = self._made_by()
        return f"{made_by}: {verdict}." if made_by else f"{verdict[0].upper()}{verdict[1:]}."

    def _made_by(self) -> str:
        """Such as "mafla, exact"."""
        targets = {True: "exact", False: "not exact", None: ""}[self.is_exact]
        return ", ".join(part for part in (self.algorithm, targets) if part)
