"""What `check` found, in plain words."""

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
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

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
        return f"<p>{self._headline()}</p><ul>{''.join(items)}</ul>{''.join(notes)}"

    def _headline(self) -> str:
        if self:
            return "Nothing looks wrong."
        count = len(self.findings)
        return f"{count} thing{'s look' if count > 1 else ' looks'} wrong."
