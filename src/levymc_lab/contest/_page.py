"""The tables and sentences of ``docs/contest.md``, from the results that are committed.

On the page each stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from levymc_lab.framework import Check, Results, load

from ._judgement import FAILED_TV, NUTS, OURS, best_rival, by_method, speed_ratio

Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]


def blocks(folder: Path) -> dict[str, str]:
    """Every part of the page, by name, from the results in a folder."""
    contest = load(folder / "contest")
    return {
        "setting": _setting(contest),
        "weights": _weights(_rows(contest, "weights-final")),
        "weights-bars": _bars(contest, lambda check: "many modes" in check.name),
        "efficiency": _efficiency(_rows(contest, "efficiency-final")),
        "efficiency-bars": _bars(contest, _is_of_one_mode),
        "calibration": _calibration(contest),
        "development": _weights(_rows(contest, "weights-development")),
        "large": _other(folder, "contest-large", "--jobs 2", lambda found: _large(found, contest)),
        "seconds": _other(folder, "contest-seconds", "--jobs 1", _seconds),
    }


def _is_of_one_mode(check: Check) -> bool:
    return "one mode" in check.name or not check.name.startswith("final")


def renewed(page: str, parts: Mapping[str, str]) -> str:
    """The page with its parts replaced; a part that it does not have is left out.

    >>> renewed("<!-- a -->\\nold\\n<!-- /a -->", {"a": "new"})
    '<!-- a -->\\nnew\\n<!-- /a -->'
    """

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- {name} -->\n{parts[name]}\n<!-- /{name} -->" if name in parts else found[0]

    return re.sub(r"<!-- ([\w-]+) -->\n.*?<!-- /\1 -->", replace, page, flags=re.DOTALL)


def _rows(results: Results, name: str) -> Rows:
    return by_method(results.tables.get(name), results.manifest["config"]["budget"])


def _other(folder: Path, name: str, jobs: str, made: Callable[[Results], str]) -> str:
    """Of an experiment that may not have been run."""
    if not (folder / name / "manifest.json").exists():
        return f"Not run yet: `levymc run {name} --profile paper {jobs} --out docs/results`."
    return made(load(folder / name))


def _setting(results: Results) -> str:
    config, revision = results.manifest["config"], results.manifest["git"]["revision"]
    return (
        f"{len(config['problems'])} final and {len(config['development'])} development problems, "
        f"{len(config['methods'])} methods, {config['num_seeds']} seeds, {config['budget']:,} "
        f"evaluations, at revision `{revision[:12]}`."
    )


def _weights(rows: Rows) -> str:
    """Medians and worst seeds, and the seconds; no columns of peers where none was run."""
    lines = []
    for name, methods in rows.items():
        ours, (rival, _) = methods[OURS], best_rival(methods)
        lines.append(
            (
                name,
                _pair(ours),
                f"{ours['flagged']} of {ours['seeds']}",
                f"{_pair(methods[rival])} ({rival})" if rival else "–",
                _error(methods[NUTS[0]]["median"]) if NUTS[0] in methods else "–",
                _few(ours["seconds"]),
            )
        )
    head = ("problem", "auto: median, worst", "warned", "best peer", NUTS[0], "auto: seconds")
    known = [column for column in range(len(head)) if {line[column] for line in lines} != {"–"}]
    return _table([head[one] for one in known], [[line[one] for one in known] for line in lines])


def _pair(row: Mapping[str, Any]) -> str:
    return f"{_error(row['median'])}, {_error(row['worst'])}"


def _efficiency(rows: Rows) -> str:
    lines = []
    for name, methods in rows.items():
        ours = methods[OURS]
        distances = (methods[one]["kolmogorov"] for one in (OURS, NUTS[0]) if one in methods)
        lines.append(
            (
                f"{name} ({_kind(ours)})",
                _sizes(ours),
                f"{ours['flagged']} of {ours['seeds']}",
                *(_sizes(methods.get(one)) for one in NUTS),
                ", ".join(f"{one:.3f}" for one in distances),
            )
        )
    return _table(("problem", "auto: bulk, tail", "warned", *NUTS, "KS auto, nuts-dense"), lines)


def _kind(row: Mapping[str, Any]) -> str:
    return f"heavy, {row['tail_index']:g}" if row["kind"] == "heavy" else row["kind"]


def _sizes(row: Mapping[str, Any] | None) -> str:
    return "–" if row is None else f"{_few(row['bulk'])}, {_few(row['tail'])}"


def _bars(results: Results, is_meant: Callable[[Check], bool]) -> str:
    """A line for each bar; those that stand for one problem each are gathered in one."""
    each: dict[str, list[str]] = {}
    lines = []
    problems = {*results.manifest["config"]["problems"]}
    for check in filter(is_meant, results.checks):
        name, _, what = check.name.partition(": ")
        if name in problems:
            shown = f"{name} {_few(check.measured)}"
            shown = shown if check.holds else f"**{shown}: missed**"
            each.setdefault(f"{what}, {check.expected}", []).append(shown)
        else:
            outcome = "met" if check.holds else "**missed**"
            value = f"{check.measured:.3g} ({check.expected}: {outcome})"
            lines.append(f"- {check.name}: {value}; {check.reason}.")
    lines += [f"- {what}: {', '.join(found)}." for what, found in each.items()]
    return "\n".join(lines) or "None could be judged."


def _calibration(results: Results) -> str:
    """The bar, what single runs say, and the problems beyond."""
    bar = _bars(results, lambda check: "stated standard errors" in check.name)
    runs = results.tables["runs"].where(method=OURS, group="final")
    ratios, is_seen = runs["z_evidence"], ~(runs["total_variation"] > FAILED_TV)
    is_known = ~np.isnan(ratios)
    is_trusted = is_known & is_seen & ~runs["is_flagged"].astype(bool)
    within, trusted = (np.mean(ratios[some] <= 2) for some in (is_known, is_trusted))
    lines = [
        (name, *(f"{row[one]:.2g}" for one in (key, "z_evidence")), row["flagged"])
        for table, key in (("weights-final", "z_weights"), ("efficiency-final", "z_marginals"))
        for name, methods in _rows(results, table).items()
        if max((row := methods[OURS])[key], np.nan_to_num(row["z_evidence"])) > 2
    ]
    head = ("beyond two", "weights or marginals", "log evidence", "warned")
    return (
        f"{bar}\n\nOf single runs, {within:.0%} of {is_known.sum()} have the log evidence within "
        f"two of its stated standard errors, and {trusted:.0%} of the {is_trusted.sum()} that "
        f"neither warned nor missed a mode; of right ones 95 % are.\n\n{_table(head, lines)}"
    )


def _large(results: Results, smaller: Results) -> str:
    """Beside the smaller budget."""
    before, lines = _rows(smaller, "weights-final"), []
    for name, methods in _rows(results, "weights-final").items():
        ours, (rival, _) = methods[OURS], best_rival(methods)
        earlier = before[name][OURS]["median"] if name in before else np.nan
        lines.append(
            (
                name,
                _error(earlier),
                _pair(ours),
                f"{ours['flagged']} of {ours['seeds']}",
                f"{_pair(methods[rival])} ({rival})",
            )
        )
    head = ("problem", "auto before", "auto: median, worst", "warned", "best peer")
    return (
        f"{_session(results)}\n\n{_table(head, lines)}\n\n"
        f"{_efficiency(_rows(results, 'efficiency-final'))}\n\n"
        f"{_bars(results, lambda check: True)}"
    )


def _seconds(results: Results) -> str:
    """Errors of the weights, and effective draws per second, with what time there was."""
    times = {(row["problem"], row["method"]): row for row in results.tables["seconds"].rows()}
    many, one = (_rows(results, f"{kind}-final") for kind in ("weights", "efficiency"))
    methods = [name for name in (OURS, *NUTS, "tempering", "smc") if _has(name, many, one)]
    errors = [
        (name, *(_timed(rows, times, name, method, _pair) for method in methods))
        for name, rows in many.items()
    ]
    speeds = [
        (name, *(_timed(rows, times, name, method, _speed(rows)) for method in methods))
        for name, rows in one.items()
    ]
    return (
        f"{_session(results)} In brackets the seconds that were measured, and the evaluations.\n\n"
        f"{_table(('problem', *methods), errors)}\n\n"
        "Effective draws per second, of the worst coordinate, bulk or tail, over those of "
        f"`levymc.auto`:\n\n{_table(('problem', *methods), speeds)}\n\n"
        f"{_bars(results, lambda check: True)}"
    )


def _session(results: Results) -> str:
    """With what company the processor worked."""
    jobs = sorted({session["jobs"] for session in results.manifest["sessions"]})
    config, listed = results.manifest["config"], " and ".join(map(str, jobs))
    return (
        f"{len(config['problems'])} problems, {config['num_seeds']} seeds, --jobs {listed}, "
        f"{results.manifest['wall_seconds'] / 60:.0f} minutes in all."
    )


def _has(method: str, *tables: Rows) -> bool:
    return any(method in methods for rows in tables for methods in rows.values())


def _speed(rows: Mapping[str, Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: _few(speed_ratio(row, rows[OURS]))


def _timed(
    rows: Mapping[str, Mapping[str, Any]],
    times: Mapping[tuple[str, str], Mapping[str, Any]],
    problem: str,
    method: str,
    shown: Callable[[Mapping[str, Any]], str],
) -> str:
    if method not in rows:
        return "–"
    time = times[problem, method]
    spent = f"{_few(time['seconds'])} s, {time['evaluations']:.0e}".replace("e+0", "e")
    return f"{shown(rows[method])} ({spent})"


def _error(value: float) -> str:
    """A total variation, to two digits at least, without the zero before the point.

    >>> _error(0.0019), _error(0.25)
    ('.0019', '.250')
    """
    if np.isnan(value):
        return "–"
    return f"{value:.3f}".lstrip("0") if value >= 0.00995 else f"{value:.4f}".lstrip("0")


def _few(value: float) -> str:
    """Two digits, or all that are before the point."""
    if np.isnan(value):
        return "–"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    return "\n".join(_lines(head, lines))


def _lines(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for line in lines:
        yield f"| {' | '.join(map(str, line))} |"
