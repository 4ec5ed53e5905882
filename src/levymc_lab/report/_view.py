"""What the template calls: checks, figures, tables and how runs were made, as plain values."""

import re
import struct
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from levymc_lab.framework import Check, Results, SoFar, Table, has_checksums

from ._entries import Entry
from ._numbers import DIGITS, column, duration, exact, number

PIXELS_PER_INCH = 96  # of CSS
PNG_DPI = 150  # as the experiments write it
POINTS_PER_INCH = 72
UNQUOTED = " /:=,.;()!*+-_~@$?|{}[]^`"  # what neither an URL nor an attribute takes amiss
SHORT_TEXT = 32  # characters that stay on one line
LONGEST_WORD = 40  # characters of a text without spaces
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "kappa": "κ", "sigma": "σ"}

Facts = dict[str, str]


class Picture(NamedTuple):
    """An address that holds the picture itself, and its size in pixels of CSS."""

    address: str
    width: int
    height: int


def tally(checks: Iterable[Check]) -> str:
    """How many checks have which outcome.

    >>> tally([Check.below("a", 1, 2), Check.below("b", 3, 2)])
    '1 of 2 met, 1 missed'
    >>> tally([Check.below("a", 3, 2, explanation="It is a transient.")])
    '0 of 1 met, 1 missed, explained'
    """
    outcomes = [check.outcome for check in checks]
    if not outcomes:
        return "no checks"
    met, explained = outcomes.count("pass"), outcomes.count("explained")
    missed = len(outcomes) - met
    words = [f"{met} of {len(outcomes)} met"]
    if missed:
        words.append(f"{missed} missed")
    if explained == missed:
        words += ["explained" if missed == 1 else "each explained"] if missed else []
    elif explained:
        words.append(f"{explained} of them explained")
    return ", ".join(words)


def all_checks(entries: Iterable[Entry]) -> list[Check]:
    """Those of every experiment that has any."""
    return [check for entry in entries if entry.results for check in entry.results.checks]


def measured(check: Check) -> str:
    """With as many digits as show on which side of the bar it lies."""
    for digits in range(DIGITS, 17):
        rounded = replace(check, measured=float(f"{check.measured:.{digits}g}"))
        if rounded.holds == check.holds:
            return number(check.measured, digits)
    return number(check.measured, 17)


def expected(check: Check) -> str:
    """The bar."""
    if check.relation == "near":
        return f"{number(check.target)} ± {number(check.tolerance, 2)}"
    return f"{'≤' if check.relation == 'below' else '≥'} {number(check.target)}"


def picture(results: Results | SoFar, name: str) -> Picture | None:
    """The figure as SVG or PNG, whichever is shorter."""
    found = []
    for suffix, read in (("svg", _from_svg), ("png", _from_png)):
        try:
            found.append(read(results.picture(name, suffix)))
        except (OSError, LookupError, ValueError, struct.error):
            continue
    return min(found, key=lambda picture: len(picture.address), default=None)


def _from_svg(content: bytes) -> Picture:
    """Quoted, which for SVG is shorter than base64; without the prolog and metadata."""
    text = content.decode()
    size = re.search(r'<svg[^>]*\swidth="([\d.]+)pt" height="([\d.]+)pt"', text)
    if size is None or "</svg>" not in text:
        raise ValueError("This is no SVG by matplotlib.")
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[size.start() :], flags=re.DOTALL)
    body = re.sub(r"\s+", " ", body)
    width, height = (_pixels(float(length), POINTS_PER_INCH) for length in size.groups())
    return Picture(f"data:image/svg+xml,{quote(body, safe=UNQUOTED)}", width, height)


def _from_png(content: bytes) -> Picture:
    if not content.startswith(b"\x89PNG"):
        raise ValueError("This is no PNG.")
    width, height = (_pixels(length, PNG_DPI) for length in struct.unpack(">II", content[16:24]))
    return Picture(f"data:image/png;base64,{b64encode(content).decode()}", width, height)


def _pixels(length: float | int, per_inch: int) -> int:
    return round(length * PIXELS_PER_INCH / per_inch)


def columns(table: Table, num_rows: int) -> list[tuple[str, str, list[str]]]:
    """Heading, class and first texts of each column."""
    found = table.columns.items()
    return [(_heading(name), *_cells(values[:num_rows])) for name, values in found]


def _cells(values: np.ndarray) -> tuple[str, list[str]]:
    """The class of a column and its texts."""
    if values.dtype.kind == "f":
        return "number", column(values.tolist())
    texts = [_shortened(exact(value)) for value in values.tolist()]
    if values.dtype.kind == "i":
        return "number", texts
    return "text short" if max(map(len, texts), default=0) <= SHORT_TEXT else "text", texts


def _shortened(text: str) -> str:
    """A text without its rest where it is no words, as an encoded picture."""
    return text if len(text) <= LONGEST_WORD or " " in text else f"{text[:LONGEST_WORD]}…"


def _heading(name: str) -> str:
    """A column's name for readers.

    >>> _heading("tail_ratio"), _heading("mean_alpha")
    ('tail ratio', 'mean α')
    """
    return " ".join(GREEK.get(word, word) for word in name.split("_"))


def shared_facts(entries: Sequence[Entry]) -> Facts:
    """What holds for all runs; where they differ, each value."""
    by_name = {entry.name: entry.manifest for entry in entries}
    manifests = list(by_name.values())
    days = sorted({one["started"][:10] for one in manifests if "started" in one})
    ends = [Markup("<time>{}</time>").format(day) for day in days[:1] + days[1:][-1:]]
    return {
        "Profile": _values(one.get("profile") for one in manifests),
        "Seed": _values(one.get("seed") for one in manifests),
        "Run on": Markup(" to ").join(ends),
        "Wall time": f"{duration(sum(one.get('wall_seconds', 0) for one in manifests))} in all",
        "Revision": _by_value({name: _revisions(one) for name, one in by_name.items()}),
        "Tables": _by_value({name: [_sums(one)] for name, one in by_name.items()}),
        "Versions": _versions(manifests),
    }


def _by_value(found: Mapping[str, Sequence[str]]) -> str:
    """The value that all have; where they differ, each with the names that have it.

    >>> _by_value({"a": ["x"], "b": ["x"]}), _by_value({"a": ["x"], "b": ["x", "y"], "c": []})
    ('x', 'x (a, b); y (b); none told (c)')
    """
    owners: dict[str, list[str]] = {}
    for name, values in found.items():
        for value in dict.fromkeys(values or ["none told"]):
            owners.setdefault(value, []).append(name)
    if len(owners) == 1:
        return next(iter(owners)) if "none told" not in owners else ""
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in owners.items())


def run_facts(manifest: dict[str, Any]) -> Facts:
    """How one experiment was run."""
    seconds, cores = manifest.get("wall_seconds"), manifest.get("host_cores")
    machine = [manifest.get("platform", ""), f"{cores} cores" if cores else ""]
    return {
        "Profile": manifest.get("profile", ""),
        "Seed": str(manifest.get("seed", "")),
        "Precision": manifest.get("dtype", ""),
        "Machine": ", ".join(filter(None, machine)),
        "Processes": _values(one.get("jobs") for one in _sessions(manifest)),
        "Wall time": duration(seconds) if seconds is not None else "",
        "Started": _moment(manifest.get("started", "")),
        "Finished": _moment(manifest.get("finished", "")),
        "Revision": _values(_revisions(manifest)),
        "Tables": _sums(manifest),
        "Versions": _versions([manifest]),
    }


def settings(manifest: dict[str, Any]) -> Facts:
    """The configuration."""
    return {name: exact(value) for name, value in manifest.get("config", {}).items()}


def _values(found: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(str(one) for one in found if one is not None))


def _versions(manifests: list[dict[str, Any]]) -> str:
    """Of each package all that were used.

    >>> _versions([{"versions": {"jax": "1", "numpy": "2"}}, {"versions": {"jax": "3"}}])
    'jax 1 and 3, numpy 2'
    """
    found: dict[str, dict[str, None]] = {}
    for manifest in manifests:
        for name, version in manifest.get("versions", {}).items():
            found.setdefault(name, {})[str(version)] = None
    return ", ".join(f"{name} {' and '.join(versions)}" for name, versions in found.items())


def _sessions(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in manifest.get("sessions", []) if isinstance(one, dict)]


def _revisions(manifest: dict[str, Any]) -> list[str]:
    """Of the cells; where they do not tell, of the checkout at every session.

    Those with changes that were not committed are marked.
    """
    states = list(manifest.get("cells", {}).values())
    states = states or [one.get("git") for one in (manifest, *_sessions(manifest))]
    told = [_revision(one) for one in states if isinstance(one, dict)]
    return list(dict.fromkeys(told))


def _revision(state: dict[str, Any]) -> str:
    revision = state.get("revision")
    if not revision:
        return "unknown" if revision is None else "an installed package"
    changes = " with uncommitted changes" if state.get("dirty") else ""
    return f"{str(revision)[:12]}{changes}"


def _sums(manifest: dict[str, Any]) -> str:
    """Whether tables are known to be as they were made."""
    if manifest.get("status") != "finished":
        return "not finished"
    return "as made, by SHA-256" if has_checksums(manifest) else "without checksums"


def _moment(stamp: str) -> str:
    return stamp.replace("T", " ").replace("+00:00", " UTC")
