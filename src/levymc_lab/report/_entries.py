"""What a folder holds: one entry for each experiment, whole or not."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from levymc._workdir import read_json
from levymc_lab.framework import Results, ResultsError, SoFar, load, names, so_far

# Shape and colour of a badge, by the template's names; the words are the state itself.
STATES = {
    "reproduced": ("tick", "good"),
    "reproduced only as a transient": ("half", "partly"),
    "not reproduced": ("cross", "bad"),
    "measured here": ("dot", "plain"),
    "unfinished": ("dashes", "pending"),
    "damaged": ("alarm", "bad"),
}
# What the page takes from a manifest; a field of another type counts as absent.
FIELDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("title", "paper_item", "question", "command", "profile"), str),
    **dict.fromkeys(("introduction", "dtype", "platform", "started", "finished", "status"), str),
    **dict.fromkeys(("config", "captions", "terms", "versions", "git", "cells", "checksums"), dict),
    **dict.fromkeys(("format", "seed", "num_cells", "host_cores"), int),
    "sessions": list,
    "wall_seconds": (int, float),
}
LARGEST = 1e15  # a number beyond counts as absent, too


@dataclass(frozen=True, eq=False)
class Entry:
    """An experiment as it was found.

    state: a key of `STATES`, for a finished run the kind of its verdict; `words` give the reason.
    command: what to run now, if anything.
    results: None unless the run is finished and whole, or shows the cells that it has.
    """

    name: str
    anchor: str
    state: str
    words: str
    manifest: dict[str, Any]
    command: str = ""
    results: Results | SoFar | None = None

    @property
    def part(self) -> str:
        """Of what part of the cells the results are, unless of all."""
        if not isinstance(self.results, SoFar):
            return ""
        return f"so far: {self.results.num_done} of {self.results.num_cells} cells"

    def marked(self, text: str) -> str:
        """The text, and if the results are of a part of the cells, of which."""
        return f"{text} ({self.part})" if self.part else text

    @property
    def title(self) -> str:
        return self.manifest.get("title", self.name)

    def file(self, *parts: str) -> str:
        """The address of a file, from the page."""
        return "/".join(quote(part, safe="=+") for part in (self.name, *parts))


def read_entries(folder: Path) -> list[Entry]:
    """The experiments of a folder in the order of the paper, then those that it does not know.

    Raises:
        ResultsError: there is none.
    """
    if (folder / "manifest.json").exists():
        raise ResultsError(
            f"{folder} holds one experiment: name the folder that it lies in, {folder.parent}."
        )
    found = {path.parent.name for path in folder.glob("*/manifest.json")}
    if not found:
        raise ResultsError(
            f"{folder} holds no results: none of its folders has a manifest.json. "
            f"Make some with: levymc run all --out {folder}"
        )
    ordered = [name for name in names() if name in found]
    ordered += sorted(found.difference(ordered))
    return [_read(folder / name, anchor) for name, anchor in _with_anchors(ordered)]


def _with_anchors(found: list[str]) -> Iterator[tuple[str, str]]:
    for position, name in enumerate(found):
        plain = re.fullmatch(r"[a-z][\w-]*", name, re.ASCII)
        yield name, f"experiment-{name if plain else position}"


def _read(path: Path, anchor: str) -> Entry:
    """Whatever is wrong with one experiment, the page shows the others."""
    manifest = _manifest(path)
    try:
        if manifest.get("status", "finished") != "finished":
            return _unfinished(path, anchor, manifest)
        results = load(path)
        _try(results)
    except Exception as error:
        words = _reason(error, path, "It cannot be read: ")
        return Entry(path.name, anchor, "damaged", words, manifest)
    verdict = results.verdict
    return Entry(path.name, anchor, verdict.kind, verdict.words, manifest, results=results)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path / "manifest.json", "")
    except (OSError, ResultsError):
        return {}
    return {name: content[name] for name, kind in FIELDS.items() if _is(content.get(name), kind)}


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return not isinstance(value, int | float) or abs(value) < LARGEST  # NaN is not


def _try(results: Results | SoFar) -> None:
    """Fail here rather than when the page is put together."""
    for check in results.checks:
        check.expected, check.outcome  # noqa: B018
    STATES[results.verdict.kind]


def _unfinished(path: Path, anchor: str, manifest: dict[str, Any]) -> Entry:
    results, words = _judged_so_far(path)
    if results is None:
        done, total = len(list(path.glob("cells/*.npz"))), manifest.get("num_cells", "?")
        words = f"There is no verdict yet: the run has {done} of its {total} cells.{words}"
    command = manifest.get("command", f"levymc run {path.name}")
    words = f"{words} Go on with:"
    return Entry(path.name, anchor, "unfinished", words, manifest, command, results)


def _judged_so_far(path: Path) -> tuple[SoFar | None, str]:
    """What the cells give that are there, in short; or why nothing, if that is a fault."""
    try:
        results = so_far(path)
        if results is None:
            return None, ""
        _try(results)
    except Exception as error:
        return None, f" They cannot be shown: {_reason(error, path)}"
    verdict = results.verdict
    return results, (
        f"All below is from the {results.num_done} of {results.num_cells} cells that are there. "
        f"As yet: {verdict.kind}. {verdict.words}"
    )


def _reason(error: Exception, path: Path, opening: str = "") -> str:
    """What went wrong with one experiment; the page names no place on anybody's machine."""
    words = str(error) if isinstance(error, ResultsError) else f"{opening}{error!r}."
    for prefix in (f"{path.parent.resolve()}/", f"{path.parent}/"):
        words = words.replace(prefix, "") if len(prefix) > 2 else words
    return words
