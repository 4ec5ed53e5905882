"""From the runs to tables, and from the tables to the bars that were set before."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from levymc_lab.framework import Check, Table, Tables, Verdict

BEST_TV, WORST_TV, FAILED_TV = 0.02, 0.05, 0.1
FAILED_KS = 0.1  # of a marginal law, where there are no modes to weigh
SHARE = 0.8  # of the final problems with many modes
HEAVY, LESS_HEAVY, NOT_WORSE = 20.0, 2.0, 1 / 1.3
CALIBRATED = 0.9
OURS = "auto"
NUTS = ("nuts-dense", "nuts-diagonal")
RUN_COLUMNS = (
    "problem", "group", "kind", "tail_index", "method", "budget", "seed", "evaluations", "seconds",
    "compiling", "is_flagged", "total_variation", "floor", "kolmogorov", "quantile_error", "bulk",
    "tail", "rhat", "z_weights", "z_marginals", "z_evidence", "notes",
)  # fmt: skip

# Why a bar may be missed.
UNSEEN = (
    "A mode that is much narrower than those known, for its distance from them, is met by no "
    "relaxation and no draw, so that nothing is there to be warned of; the report states the width "
    "below which modes would be missed. No peer finds these modes either."
)
CURVED = (
    "Missed are modes too narrow to be met by anything, and posteriors with many curved modes, "
    "whose answers are flagged."
)
OVERHEAD = (
    "A run has a second or so of its own, for the search and the fits; on densities that take "
    "microseconds NUTS is done by then. What counts for dear densities are evaluations."
)

Row = Mapping[str, Any]


def tables(rows: Sequence[Row], skipped: Mapping[str, str]) -> dict[str, Table]:
    """All runs, and what they come to; final and development problems apart.

    skipped: methods that were not run, with the reason.
    """
    found = {}
    if skipped:
        found["skipped"] = Table(
            "Methods that were not run.",
            {"method": list(skipped), "reason": list(skipped.values())},
        )
    if rows:
        chosen = [{name: row[name] for name in RUN_COLUMNS} for row in rows]
        found["runs"] = Table.stack("Every run, as it was measured.", chosen)
    for group in ("final", "development"):
        found.update(_of_group(group, [row for row in rows if row["group"] == group]))
    return found


def _of_group(group: str, rows: Sequence[Row]) -> Iterator[tuple[str, Table]]:
    many = [_weights_row(*part) for part in grouped(rows) if math.isfinite(part[1][0]["floor"])]
    one = [_efficiency_row(*part) for part in grouped(rows) if _has_one_mode(part[1])]
    if many:
        caption = "weights of the modes, total variation: median and worst over the seeds."
        yield f"weights-{group}", Table.stack(f"{group.capitalize()} problems: {caption}", many)
    if one:
        caption = "effective sizes of the worst coordinate per 1000 evaluations and per second."
        yield f"efficiency-{group}", Table.stack(f"{group.capitalize()} problems: {caption}", one)


def _has_one_mode(rows: Sequence[Row]) -> bool:
    return str(rows[0]["kind"]) != "modes"


def grouped(rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """The rows of each problem, method and budget."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["problem"], row["method"], row["budget"]), []).append(row)
    return [
        ({"problem": name, "method": method, "budget": budget}, part)
        for (name, method, budget), part in groups.items()
    ]


def _median(rows: Sequence[Row], name: str) -> float:
    """Over the seeds; NaN where it does not apply."""
    return float(np.median([row[name] for row in rows]))


def _weights_row(labels: Row, rows: Sequence[Row]) -> Row:
    errors = np.array([row["total_variation"] for row in rows])
    silent = [row for row in rows if row["total_variation"] > FAILED_TV and not row["is_flagged"]]
    return {
        **labels,
        "seeds": len(rows),
        "median": float(np.median(errors)),
        "worst": float(np.max(errors)),
        "floor": float(rows[0]["floor"]),
        "flagged": sum(bool(row["is_flagged"]) for row in rows),
        "silent_failures": len(silent),
        "z_weights": _median(rows, "z_weights"),
        "z_evidence": _median(rows, "z_evidence"),
        "evaluations": _median(rows, "evaluations"),
        "seconds": _median(rows, "seconds"),
    }


def _efficiency_row(labels: Row, rows: Sequence[Row]) -> Row:
    thousands = np.array([row["evaluations"] / 1000 for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    least = np.array([min(row["bulk"], row["tail"]) for row in rows])
    return {
        **labels,
        "kind": rows[0]["kind"],
        "tail_index": rows[0]["tail_index"],
        "seeds": len(rows),
        "bulk": _median(rows, "bulk"),
        "tail": _median(rows, "tail"),
        "per_second": float(np.median(least * thousands / seconds)),
        "kolmogorov": _median(rows, "kolmogorov"),
        "worst_kolmogorov": max(row["kolmogorov"] for row in rows),
        "flagged": sum(bool(row["is_flagged"]) for row in rows),
        "z_marginals": _median(rows, "z_marginals"),
        "z_evidence": _median(rows, "z_evidence"),
        "evaluations": _median(rows, "evaluations"),
        "seconds": _median(rows, "seconds"),
    }


def by_method(table: Table | None, budget: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows of one budget, by problem and method."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in table.where(budget=budget).rows() if table is not None else ():
        found.setdefault(row["problem"], {})[row["method"]] = row
    return found


def efficiency_ratio(row: Row, reference: Row) -> float:
    """Per evaluation, the smaller of the ratios of bulk and tail sizes."""
    return min(_over(row[name], reference[name]) for name in ("bulk", "tail"))


def speed_ratio(row: Row, reference: Row) -> float:
    """Per second, of bulk or tail, whichever is smaller."""
    return _over(row["per_second"], reference["per_second"])


def _over(size: float, reference: float) -> float:
    """A size over that of a chain, which has none where its warm-up took all of the budget."""
    if math.isnan(size):
        return math.nan
    return size / reference if reference > 0 else math.inf


def checks(tables: Tables, budget: int) -> list[Check]:
    """The bars, on the final problems; those that the runs so far allow."""
    many = by_method(tables.get("weights-final"), budget)
    one = by_method(tables.get("efficiency-final"), budget)
    return [
        *_weights_checks({name: rows for name, rows in many.items() if OURS in rows}),
        *_efficiency_checks({name: rows for name, rows in one.items() if OURS in rows}),
        *_silence_check(tables.get("runs"), budget),
        *_calibration_check(many, one),
    ]


def _weights_checks(many: Mapping[str, Mapping[str, Row]]) -> Iterator[Check]:
    if not many:
        return
    ours = [rows[OURS] for rows in many.values()]
    good = [
        row["median"] <= max(BEST_TV, 2 * row["floor"]) and row["worst"] <= WORST_TV for row in ours
    ]
    yield Check.above(
        "final problems with many modes: share with small errors of the weights",
        np.mean(good),
        SHARE,
        reason=f"total variation at most {BEST_TV} (or twice that of independent draws) in the "
        f"median over the seeds, and {WORST_TV} at worst; missed on "
        f"{_listed(name for name, is_good in zip(many, good, strict=True) if not is_good)}",
        explanation=CURVED,
    )
    ahead = standings(many)
    if ahead:
        behind = (f"{name} ({rival})" for name, (rival, is_ahead) in ahead.items() if not is_ahead)
        yield Check.above(
            "final problems with many modes: share on which no peer has smaller errors",
            np.mean([is_ahead for _, is_ahead in ahead.values()]),
            SHARE,
            reason=f"medians over the seeds, and none above {FAILED_TV}: where all fail, none is "
            f"ahead; behind on {_listed(behind)}",
        )
    silent = {name: rows[OURS]["silent_failures"] for name, rows in many.items()}
    yield Check.below(
        "final problems with many modes: runs that failed without a warning",
        sum(silent.values()),
        0,
        reason=f"a total variation above {FAILED_TV} must be flagged; it was not on "
        f"{_listed(name for name, count in silent.items() if count)}",
        explanation=UNSEEN,
    )


def standings(many: Mapping[str, Mapping[str, Row]]) -> dict[str, tuple[str, bool]]:
    """Of each problem the best peer, and whether we are ahead of it.

    A tie is to be ahead only where the answer is right: that nobody finds a mode is no success.
    """
    found = {}
    for name, rows in many.items():
        rival, best = best_rival(rows)
        if OURS in rows and rival:
            found[name] = rival, rows[OURS]["median"] <= min(best, FAILED_TV)
    return found


def best_rival(rows: Mapping[str, Row]) -> tuple[str, float]:
    """The peer of the smallest median error, and that; no name if there is none."""
    found = {name: row["median"] for name, row in rows.items() if name != OURS}
    best = min(found, key=lambda name: found[name], default="")
    return best, found.get(best, 0.0)


def _efficiency_checks(one: Mapping[str, Mapping[str, Row]]) -> Iterator[Check]:
    for name, rows in one.items():
        ours, references = rows[OURS], [rows[method] for method in NUTS if method in rows]
        if not references:
            continue
        ratios = [efficiency_ratio(ours, reference) for reference in references]
        if ours["kind"] == "heavy":
            bar = HEAVY if ours["tail_index"] < 2 else LESS_HEAVY
            yield Check.above(
                f"{name}: effective draws per evaluation, over dense NUTS",
                ratios[0],
                bar,
                reason="the smaller of the ratios of bulk and tail sizes; "
                f"tail index {ours['tail_index']:g}",
            )
        elif ours["flagged"] < ours["seeds"]:
            yield Check.above(
                f"{name}: not worse than the better NUTS per evaluation without a warning",
                min(ratios),
                NOT_WORSE,
                reason="the smaller of the ratios of bulk and tail sizes",
            )


def _silence_check(runs: Table | None, budget: int) -> Iterator[Check]:
    """Whether wrong answers came with a warning, where there are no modes to weigh."""
    if runs is None:
        return
    ours = runs.where(group="final", method=OURS, budget=budget).rows()
    judged = [row for row in ours if row["kind"] != "modes" and math.isfinite(row["kolmogorov"])]
    silent = [r for r in judged if r["kolmogorov"] > FAILED_KS and not r["is_flagged"]]
    if judged:
        yield Check.below(
            "final problems with one mode: runs that failed without a warning",
            len(silent),
            0,
            reason=f"a distance above {FAILED_KS} of a marginal distribution function from the "
            f"truth must be flagged; it was not on {_listed({r['problem'] for r in silent})}",
        )


def speed_checks(tables: Tables, budget: int) -> Iterator[Check]:
    """The bar of effective draws per second, on the final problems with light tails.

    Only runs that had the machine for themselves can be judged by it.
    """
    for name, rows in by_method(tables.get("efficiency-final"), budget).items():
        references = [rows[method] for method in NUTS if method in rows]
        if OURS in rows and references and rows[OURS]["kind"] == "light":
            yield Check.above(
                f"{name}: effective draws per second, over the faster NUTS",
                min(speed_ratio(rows[OURS], reference) for reference in references),
                NOT_WORSE,
                reason="without compilation; bulk or tail, whichever is smaller",
                explanation=OVERHEAD,
            )


def _calibration_check(
    many: Mapping[str, Mapping[str, Row]], one: Mapping[str, Mapping[str, Row]]
) -> Iterator[Check]:
    """Whether errors are as large as they are said to be: on how many problems, within two.

    A problem has up to three kinds of stated numbers: weights of modes or marginal probabilities,
    many of them, of which the root mean square counts, and the log evidence.  Of each kind the
    median over the seeds is taken.  The largest of all ratios would be the wrong measure: with
    standard errors from eight systems a single ratio follows Student's t with seven degrees and is
    beyond two in 9 % of all runs, and one of forty nearly always.  The median of five is beyond two
    in 0.5 % where the errors are right, and in a quarter where they are stated at half their size.
    A problem whose answer is wrong counts as missed, flagged or not.
    """
    ratios = {}
    for group, error in ((many, "z_weights"), (one, "z_marginals")):
        for name, rows in group.items():
            if OURS in rows:
                stated = [rows[OURS][error], rows[OURS]["z_evidence"]]
                known = [value for value in stated if not math.isnan(value)]
                if known:
                    ratios[name] = max(known)
    if ratios:
        yield Check.above(
            "final problems: share within two stated standard errors",
            np.mean([ratio <= 2 for ratio in ratios.values()]),
            CALIBRATED,
            reason="weights of modes or marginal probabilities, root mean square, and log "
            "evidence; medians over the seeds; missed on "
            f"{_listed(name for name, ratio in ratios.items() if not ratio <= 2)}",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def verdict(tables: Tables, checks: Sequence[Check], budget: int, terms: str) -> Verdict:
    """How many of the bars were cleared, and on how many problems the errors were smallest.

    terms: what was equal for all, such as "With 1,000 evaluations".
    """
    words = []
    if checks:
        held = sum(check.holds for check in checks)
        words.append(f"{held} of {len(checks)} bars were cleared.")
    many = by_method(tables.get("weights-final"), budget)
    ahead = [is_ahead for _, is_ahead in standings(many).values()]
    if ahead:
        words.append(
            f"{terms} levymc.auto has the smallest errors of the weights on "
            f"{sum(ahead)} of {len(ahead)} final problems with many modes."
        )
    if "skipped" in tables:
        words.append("Not run: " + " ".join(tables["skipped"]["reason"].tolist()))
    return Verdict("measured here", " ".join(words) or "Nothing was compared.")
