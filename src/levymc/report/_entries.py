"""What a folder holds: one entry for each experiment, whole or not."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from levymc.experiments import Results, ResultsError, load, names

from ._badges import STATES

# What the page takes from a manifest; a field of another type counts as absent.
FIELDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("title", "paper_item", "question", "command", "profile"), str),
    **dict.fromkeys(("dtype", "platform", "started", "finished", "status"), str),
    **dict.fromkeys(("config", "captions", "versions", "git"), dict),
    **dict.fromkeys(("seed", "num_cells", "host_cores"), int),
    "sessions": list,
    "wall_seconds": (int, float),
}


@dataclass(frozen=True, eq=False)
class Entry:
    """An experiment as it was found.

    state: the kind of its verdict, "unfinished" or "damaged"; `words` give the reason.
    command: what to run now, if anything.
    results: None unless the run is finished and whole.
    """

    name: str
    anchor: str
    state: str
    words: str
    manifest: dict[str, Any]
    command: str = ""
    results: Results | None = None

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
        for check in results.checks:
            check.expected, check.outcome  # noqa: B018
        STATES[results.verdict.kind]
    except Exception as error:
        words = str(error) if isinstance(error, ResultsError) else f"It cannot be read: {error!r}."
        return Entry(path.name, anchor, "damaged", _without_path(words, path.parent), manifest)
    verdict = results.verdict
    return Entry(path.name, anchor, verdict.kind, verdict.words, manifest, results=results)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads((path / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: content[name] for name, kind in FIELDS.items() if _is(content.get(name), kind)}


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _unfinished(path: Path, anchor: str, manifest: dict[str, Any]) -> Entry:
    done, total = len(list(path.glob("cells/*.npz"))), manifest.get("num_cells", "?")
    words = f"There is no verdict yet: the run has {done} of its {total} cells. Go on with:"
    command = manifest.get("command", f"levymc run {path.name}")
    return Entry(path.name, anchor, "unfinished", words, manifest, command)


def _without_path(words: str, folder: Path) -> str:
    """The page names no place on anybody's machine."""
    for prefix in (f"{folder.resolve()}/", f"{folder}/"):
        words = words.replace(prefix, "") if len(prefix) > 2 else words
    return words
