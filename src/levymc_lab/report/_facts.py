"""How runs were made, in words: versions, revisions, seeds, days."""

from typing import Any

from ._entries import Entry
from ._html import Html, joined, tag
from ._numbers import duration, exact

Facts = dict[str, str]


def shared_facts(entries: list[Entry]) -> Facts:
    """What holds for all runs; where they differ, each value."""
    manifests = [entry.manifest for entry in entries if entry.manifest]
    seconds = sum(manifest.get("wall_seconds", 0) for manifest in manifests)
    return {
        "Profile": _values(manifest.get("profile") for manifest in manifests),
        "Seed": _values(manifest.get("seed") for manifest in manifests),
        "Run on": _days(manifests),
        "Wall time": f"{duration(seconds)} in all",
        "Revision": _values(revision for one in manifests for revision in _revisions(one)),
        "Versions": _versions(manifests),
    }


def run_facts(manifest: dict[str, Any]) -> Facts:
    """How one experiment was run."""
    jobs = [one.get("jobs") for one in manifest.get("sessions", []) if isinstance(one, dict)]
    seconds = manifest.get("wall_seconds")
    return {
        "Profile": manifest.get("profile", ""),
        "Seed": str(manifest.get("seed", "")),
        "Precision": manifest.get("dtype", ""),
        "Machine": _machine(manifest),
        "Processes": _values(jobs),
        "Wall time": duration(seconds) if seconds is not None else "",
        "Started": _moment(manifest.get("started", "")),
        "Finished": _moment(manifest.get("finished", "")),
        "Revision": _values(_revisions(manifest)),
        "Versions": _versions([manifest]),
    }


def settings(manifest: dict[str, Any]) -> Facts:
    """The configuration."""
    return {name: exact(value) for name, value in manifest.get("config", {}).items()}


def listed(facts: Facts, class_: str) -> Html:
    """A list of terms with their descriptions; what is empty is left out."""
    pairs = [
        tag("div", tag("dt", term), tag("dd", value)) for term, value in facts.items() if value
    ]
    return tag("dl", *pairs, class_=class_)


def _values(found: Any) -> str:
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


def _revisions(manifest: dict[str, Any]) -> list[str]:
    """Of the checkout at every session; those that were not committed say so."""
    sessions = [one for one in manifest.get("sessions", []) if isinstance(one, dict)]
    states = [manifest.get("git"), *(one.get("git") for one in sessions)]
    return [
        f"{str(one.get('revision'))[:12]}{' with uncommitted changes' if one.get('dirty') else ''}"
        for one in states
        if isinstance(one, dict)
    ]


def _days(manifests: list[dict[str, Any]]) -> Html:
    """From the first to the last."""
    days = sorted({manifest["started"][:10] for manifest in manifests if "started" in manifest})
    ends = days[:1] + days[1:][-1:]
    return joined(*(tag("time", day) for day in ends), by=" to ")


def _moment(stamp: str) -> str:
    return stamp.replace("T", " ").replace("+00:00", " UTC")


def _machine(manifest: dict[str, Any]) -> str:
    cores = manifest.get("host_cores")
    parts = [manifest.get("platform", ""), f"{cores} cores" if cores else ""]
    return ", ".join(filter(None, parts))
