"""Our docstrings as Sphinx reads them: headed sections, and citations of refs.bib.

A docstring says "Targets: …  Not valid when: …" in the text, which a reader of the source takes in
at a glance; on the site each becomes a section under a heading of its own.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HEADINGS = ("Targets", "Not valid when", "Bias", "Departures", "References", "Args, Raises")
FIELD = re.compile(r"(?:^|(?<=\s\s))([a-z_]+(?:, [a-z_]+)*): +")
SECTION = re.compile(rf"(?:^|(?<=\s\s))({'|'.join(HEADINGS)}): +")
NAME = re.compile(r"`?[\w.]+`?")
HIDDEN = "\ue000"  # a character that no docstring has
KEYS = set(re.findall(r"^@\w+\{(\w+),", (Path(__file__).parents[2] / "refs.bib").read_text(), re.M))
CITATION = re.compile(r"\[([a-z]+\d{4}[a-z]*)\](?!\()")


def headed(lines: list[str]) -> Iterator[str]:
    """The lines, with what stands behind a heading's name under that heading."""
    is_under = False  # a heading; lines that hang below it would be taken for a definition
    for line in lines:
        rest, found = line, SECTION.search(line)
        is_under = bool(line.strip()) and (is_under or bool(found))
        if not found:
            yield line.strip() if is_under else line
        while found:
            if before := rest[: found.start()].rstrip():
                yield before
            yield from ("", f".. rubric:: {found[1]}", "")
            rest = rest[found.end() :]
            found = SECTION.search(rest)
            if not found:
                yield rest


def returned(lines: list[str]) -> Iterator[str]:
    """The lines, with what is returned, or warned of, below its heading, as Napoleon wants it.

    It would take all before the first colon for a type; where that is more than a name, it is not.
    """
    is_first = False
    for line in lines:
        heading, colon, rest = line.partition(": ")
        if colon and heading in ("Returns", "Warns"):
            yield f"{heading}:"
            line, is_first = f"    {rest}", heading == "Returns"
        before, colon, after = line.partition(": ")
        if is_first and colon and not NAME.fullmatch(before.strip()):
            line = before + HIDDEN + after
        yield line
        is_first = line == "Returns:"


def listed(lines: list[str]) -> Iterator[str]:
    """The lines, with "name: what it is" at the beginning of a paragraph as items of a list."""
    is_list, is_new = False, True
    for line in lines:
        if is_new:
            is_list = bool(FIELD.match(line)) and not line.startswith(" ")
        is_new = not line.strip()
        if not is_list or is_new:
            yield line
            continue
        places = [match.start() for match in FIELD.finditer(line)] if line[0] != " " else []
        if not places or places[0]:
            yield "  " + line[: places[0] if places else None].strip()
        for start, end in itertools.pairwise([*places, len(line)]):
            yield FIELD.sub(r"- **\1**: ", line[start:end].rstrip(), count=1)


def literal(lines: list[str]) -> Iterator[str]:
    """The lines, with |x| as it is: in reStructuredText bars would stand for a substitution."""
    formula = -1  # how far a formula is indented, while there is one
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if formula >= 0 and line.strip() and indent <= formula:
            formula = -1
        if line.lstrip().startswith(".. math::"):
            formula = indent
        is_code = formula >= 0 or line.lstrip().startswith((">>>", "..."))
        yield line if is_code else line.replace("|", r"\|")


def cited(text: str, role: str) -> str:
    """The text, with the keys of refs.bib in brackets as citations."""

    def link(match: re.Match[str]) -> str:
        return role.format(match[1]) if match[1] in KEYS else match[0]

    return CITATION.sub(link, text)


def rewrite_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    if what == "class":
        lines[:] = listed(lines)
    lines[:] = [
        cited(line, ":cite:t:`{}`") for line in headed(list(returned(list(literal(lines)))))
    ]


def skips_alias(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out fields of a NamedTuple: its docstring has said what they are."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def hide_colon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon would take what stands before the first colon for the type of a property."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(": ", HIDDEN)


def show_colon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [line.replace(HIDDEN, ": ") for line in lines]


def rewrite_page(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = cited(source[0], "{{cite:t}}`{}`")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", hide_colon, priority=450)
    app.connect("autodoc-process-docstring", show_colon, priority=600)
    app.connect("autodoc-skip-member", skips_alias)
    app.connect("source-read", rewrite_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
