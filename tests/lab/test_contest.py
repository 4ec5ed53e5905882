"""The contest: tables, bars and figures, from runs that are made up, and one that is run."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from levymc_lab import framework
from levymc_lab.contest import _judgement, _page, experiment, large, problems, seconds
from levymc_lab.contest.experiment import EXPERIMENT, Contest
from levymc_lab.framework import style

FINAL = tuple(problems.names("final"))
DOCS = Path(__file__).parents[2] / "docs"


def made_up(config, errors, sizes, *, flags=(), skipped=()):
    """Results of all cells: `errors` and `sizes` are of a problem, a method and a seed."""
    results = {}
    for cell in experiment.cells(config):
        method = cell["method"]
        if method in skipped:
            labels = {"problem": cell["problem"], "method": method}
            results[cell.id] = {**labels, "skipped": f"{method} is missing."}
            continue
        problem = problems.get(cell["problem"])
        rows = [
            made_up_run(config, problem, method, seed, errors, sizes, flags)
            for seed in range(config.num_seeds)
        ]
        results[cell.id] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return results


def made_up_run(config, problem, method, seed, errors, sizes, flags):
    is_many = problem.kind == "modes"
    size = math.nan if method == "smc" else sizes(problem, method)
    return {
        "problem": problem.name,
        "method": method,
        "budget": config.budget,
        "seed": seed,
        "group": problem.group,
        "kind": problem.kind,
        "tail_index": problem.tail_index,
        "evaluations": config.budget,
        "seconds": 2.0,
        "compiling": 1.0,
        "is_flagged": (problem.name, method) in flags,
        "notes": "",
        "total_variation": errors(problem, method, seed) if is_many else math.nan,
        "floor": 0.002 if is_many else math.nan,
        "kolmogorov": 0.01,
        "quantile_error": 0.02,
        "bulk": size,
        "tail": size / 2,
        "rhat": 1.0,
        "z_weights": 1.0 if is_many else math.nan,
        "z_marginals": 1.0,
        "z_evidence": math.nan,
    }


def small(methods=("auto", "nuts-dense", "tempering"), seeds=3, names=FINAL):
    return Contest(problems=names, methods=methods, budget=200_000, num_seeds=seeds)


def good_errors(problem, method, seed):
    return {"auto": 0.004, "tempering": 0.03}.get(method, 0.5) * (1 + 0.2 * seed)


def good_sizes(problem, method):
    return {"auto": 50.0 if problem.kind == "heavy" else 2.0, "nuts-dense": 2.0}.get(method, 1.0)


def judged(config, results):
    tables = EXPERIMENT.tables(config, results)
    checks, verdict = EXPERIMENT.judge(config, tables)
    return tables, {check.name: check for check in checks}, verdict


def test_all_bars_are_cleared_where_they_should_be():
    config = small()
    tables, checks, verdict = judged(config, made_up(config, good_errors, good_sizes))
    assert len(checks) > 10
    assert all(check.holds for check in checks.values())
    assert "smallest errors" in verdict.words
    row = tables["weights-final"].where(problem="sensors", method="auto")
    assert row["median"][0] == pytest.approx(0.0048)
    assert row["worst"][0] == pytest.approx(0.0056)


def test_a_failure_without_a_warning_is_counted_and_with_one_is_not():
    config = small()

    def errors(problem, method, seed):
        bad = problem.name == "narrow-60" and method == "auto"
        return 0.7 if bad else good_errors(problem, method, seed)

    name = "final problems with many modes: runs that failed without a warning"
    _, checks, _ = judged(config, made_up(config, errors, good_sizes))
    assert checks[name].measured == 3
    assert "narrow-60" in checks[name].reason
    flagged = made_up(config, errors, good_sizes, flags={("narrow-60", "auto")})
    assert judged(config, flagged)[1][name].holds


def test_a_wrong_marginal_without_a_warning_is_counted():
    config = small()
    name = "final problems with one mode: runs that failed without a warning"
    results = made_up(config, good_errors, good_sizes)
    assert judged(config, results)[1][name].holds
    results["funnel-10-auto"]["kolmogorov"][:2] = 0.2
    check = judged(config, results)[1][name]
    assert check.measured == 2
    assert "funnel-10" in check.reason
    results["funnel-10-auto"]["is_flagged"][:] = True
    assert judged(config, results)[1][name].holds


def test_bars_are_missed_where_they_should_be():
    config = small()

    def errors(problem, method, seed):
        worse = {"auto": 0.04, "tempering": 0.03}
        return worse.get(method, 0.5)

    def sizes(problem, method):
        return {"auto": 1.0, "nuts-dense": 2.0}.get(method, 1.0)

    _, checks, _ = judged(config, made_up(config, errors, sizes))
    assert not checks[
        "final problems with many modes: share with small errors of the weights"
    ].holds
    assert not checks[
        "final problems with many modes: share on which no peer has smaller errors"
    ].holds
    heavy = checks["cauchy-rotated-10: effective draws per evaluation, over dense NUTS"]
    assert (heavy.measured, heavy.target) == (0.5, 20.0)
    flagged = {(name, "auto") for name in problems.names("final", "hard")}
    _, checks, _ = judged(config, made_up(config, errors, sizes, flags=flagged))
    assert (
        "funnel-10: not worse than the better NUTS per evaluation without a warning" not in checks
    )


def test_no_one_is_ahead_where_all_fail():
    """A tie of two answers that are both wrong is not a success; one of two right ones is."""
    config = small(names=("narrow-60", "sensors"))

    def errors(problem, method, seed):
        return 0.7 if problem.name == "narrow-60" else 0.01

    _, checks, verdict = judged(config, made_up(config, errors, good_sizes))
    found = checks["final problems with many modes: share on which no peer has smaller errors"]
    assert found.measured == 0.5
    assert "narrow-60" in found.reason
    assert "1 of 2" in verdict.words


def made_up_seconds(config, sizes, seconds_of):
    """Results of the cells at equal seconds: two were intended."""
    results = {}
    for cell in seconds.cells(config):
        problem = problems.get(cell["problem"])
        rows = [
            {
                **made_up_run(config, problem, method, seed, good_errors, sizes, ()),
                "seconds": seconds_of(method),
                "intended": 2.0,
                "granted": config.budget * (seconds.MOST if method == "smc" else 3),
            }
            for method in ("auto", *config.peers(problem.name))
            for seed in range(config.num_seeds)
        ]
        results[cell.id] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return results


def test_effective_draws_per_second_are_judged_at_equal_seconds():
    """And it is seen where the seconds were not equal."""
    config = seconds.EXPERIMENT.config("paper")

    def judged_seconds(sizes, seconds_of):
        results = made_up_seconds(config, sizes, seconds_of)
        tables = seconds.EXPERIMENT.tables(config, results)
        checks, _ = seconds.EXPERIMENT.judge(config, tables)
        return tables, {check.name: check for check in checks}

    tables, checks = judged_seconds(good_sizes, lambda method: 2.2)
    assert all(check.holds for check in checks.values())
    with style.styled():
        drawn = seconds.EXPERIMENT.figures(config, tables)
    assert drawn.keys() == seconds.EXPERIMENT.captions.keys()
    per_second = "pumps: effective draws per second, over the faster NUTS"
    equal = "seconds, measured over intended: furthest from one, or its inverse"
    slow = {"auto": 1.0, "nuts-dense": 2.0}
    _, checks = judged_seconds(lambda problem, method: slow.get(method, 1.0), lambda method: 2.0)
    assert checks[per_second].measured == 0.5
    assert checks[equal].measured == 1.0
    _, checks = judged_seconds(good_sizes, lambda method: 1 + (method != "tempering"))
    assert not checks[equal].holds
    assert "(tempering)" in checks[equal].reason
    _, checks = judged_seconds(good_sizes, lambda method: 1 + (method != "smc"))
    assert checks[equal].holds  # it got all that it may have
    assert "(smc)" in checks[equal].reason


def test_the_page_has_the_tables_of_the_committed_results():
    """`python -m levymc_lab.contest tables docs/results docs/contest.md` puts them there."""
    page = (DOCS / "contest.md").read_text("utf-8")
    parts = _page.blocks(DOCS / "results")
    for name, part in parts.items():
        assert f"<!-- {name} -->\n{part}\n<!-- /{name} -->" in page
    assert _page.renewed(page, parts) == page


def test_columns_of_peers_that_were_not_run_are_left_out():
    row = {"median": 0.01, "worst": 0.02, "flagged": 1, "seeds": 5, "seconds": 2.0}
    shown = _page._weights({"one": {"auto": row}})
    assert shown.splitlines()[0] == "| problem | auto: median, worst | warned | auto: seconds |"
    shown = _page._weights({"one": {"auto": row}, "other": {"auto": row, "smc": row}})
    assert "| best peer |" in shown
    assert "nuts-dense" not in shown


def finished(experiment, config, results):
    tables = experiment.tables(config, results)
    manifest = {
        "config": dataclasses.asdict(config),
        "sessions": [{"jobs": 1}],
        "wall_seconds": 600.0,
    }
    return framework.Results(DOCS, manifest, tables, *experiment.judge(config, tables))


def test_the_page_shows_equal_seconds_and_the_larger_budget():
    equal = seconds.EXPERIMENT.config("paper")
    results = made_up_seconds(equal, good_sizes, lambda method: 2.2)
    shown = _page._seconds(finished(seconds.EXPERIMENT, equal, results))
    assert f"{len(equal.problems)} problems, 5 seeds, --jobs 1, 10 minutes in all." in shown
    assert "| galaxies | .0056, .0072 (2.2 s, 2e5) |" in shown
    assert "| pumps | 1 (2.2 s, 2e5) | 1 (2.2 s, 2e5) | 0.5 (2.2 s, 2e5) |" in shown
    assert "- effective draws per second, over the faster NUTS, ≥ 0.769: logistic-40 1, " in shown
    larger = dataclasses.replace(small(), budget=1_000_000)
    smaller = finished(EXPERIMENT, small(), made_up(small(), good_errors, good_sizes))
    after = finished(EXPERIMENT, larger, made_up(larger, good_errors, good_sizes))
    shown = _page._large(after, smaller)
    assert "| sensors | .0048 | .0048, .0056 | 0 of 3 | .036, .042 (tempering) |" in shown


def test_a_budget_is_found_that_takes_the_time():
    tried = []

    def seconds_of(budget):
        tried.append(budget)
        return 0.5 + budget / 1000

    assert seconds.fitting_budget(seconds_of, 3.0, 1000) == tried[-1]
    assert 0.5 + tried[-1] / 1000 == pytest.approx(3.0, rel=0.1)
    assert seconds.fitting_budget(lambda budget: 1e-6, 3.0, 1000) == seconds.MOST * 1000
    assert seconds.fitting_budget(lambda budget: 100.0, 3.0, 1000) == 100


def test_a_warm_up_that_took_all_of_the_budget_is_worth_nothing():
    """Then there are no draws to be judged; a particle method has no such size either way."""
    nothing = {"bulk": math.nan, "tail": math.nan, "per_second": math.nan}
    something = {"bulk": 3.0, "tail": 2.0, "per_second": 5.0}
    for ratio in (_judgement.efficiency_ratio, _judgement.speed_ratio):
        assert ratio(something, nothing) == math.inf
        assert math.isnan(ratio(nothing, something))
    assert _judgement.efficiency_ratio(something, {"bulk": 1.0, "tail": 4.0}) == 0.5


def test_standard_errors_that_do_not_hold_are_found():
    config = small()
    results = made_up(config, good_errors, good_sizes)
    for result in results.values():
        if result["problem"][0] in FINAL[:8]:
            result.update(z_weights=np.full(3, 5.0), z_marginals=np.full(3, 5.0))
    _, checks, _ = judged(config, results)
    found = checks["final problems: share within two stated standard errors"]
    assert found.measured == pytest.approx(1 - 8 / len(FINAL))
    assert not found.holds


def test_a_method_that_is_missing_is_skipped_with_a_sentence():
    config = small(names=("double-well", "cauchy-10"))
    results = made_up(config, good_errors, good_sizes, skipped=("auto",))
    tables, checks, verdict = judged(config, results)
    assert not checks
    assert "auto is missing." in verdict.words
    assert set(tables["runs"]["method"]) == {"nuts-dense", "tempering"}


@pytest.mark.parametrize("part", [1, 2, 5])
def test_any_part_of_the_cells_is_shown(part):
    config = small(names=("double-well", "sensors", "cauchy-10", "pumps"))
    whole = made_up(config, good_errors, good_sizes, skipped=("tempering",))
    for first in (0, 4, 8):
        some = dict(list(whole.items())[first : first + part])
        tables, checks, _ = judged(config, some)
        with style.styled():
            assert EXPERIMENT.figures(config, tables).keys() == EXPERIMENT.captions.keys()
        assert all(not math.isnan(check.target) for check in checks.values())


def test_all_problems_are_run_and_methods_share_keys():
    config = EXPERIMENT.config("paper")
    cells = EXPERIMENT.checked_cells(config)
    for method in experiment.METHODS:
        names = {cell["problem"] for cell in cells if cell["method"] == method}
        assert set(FINAL) <= names
    assert {cell["problem"] for cell in cells} == set(problems.names())
    streams = {cell.stream for cell in cells if cell["problem"] == "sensors"}
    assert len(streams) == 1


def test_the_other_contests_are_on_final_problems():
    config = large.EXPERIMENT.config("paper")
    assert {problems.get(name).group for name in config.problems} == {"final"}
    assert config.budget == 5 * EXPERIMENT.config("paper").budget
    assert set(large.LEFT_OUT) < set(problems.names("final", "modes"))
    equal = seconds.EXPERIMENT.config("paper")
    assert {problems.get(name).group for name in equal.problems} == {"final"}
    assert {problems.get(name).kind for name in equal.problems} == {"modes", "heavy", "light"}
    assert equal.budget == EXPERIMENT.config("paper").budget


@pytest.mark.nightly
def test_a_run_in_tiny(tmp_path):
    """MALA on the double well; another method that is missing does no harm."""
    tiny = Contest(problems=("double-well",), methods=("auto", "mala"), budget=2000, num_seeds=1)
    one = dataclasses.replace(EXPERIMENT, profiles={"quick": tiny, "paper": tiny})
    results = framework.run(one, tmp_path, jobs=0)
    row = results.tables["runs"].where(method="mala").rows()[0]
    assert row["evaluations"] <= 2000
    assert row["total_variation"] == pytest.approx(0.457, abs=0.01)  # it stays where it starts
    assert row["seconds"] > 0
    assert np.isfinite(row["bulk"])
    assert (tmp_path / "contest/figures/contest-weights.png").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("one", [EXPERIMENT, seconds.EXPERIMENT], ids=lambda one: one.name)
def test_the_quick_profile_runs(one, tmp_path):
    results = framework.run(one, tmp_path, jobs=0)
    assert results.verdict.kind == "measured here"


def test_thebest_rival_is_the_one_of_the_smallest_error():
    rows = {"auto": {"median": 0.1}, "smc": {"median": 0.3}, "tempering": {"median": 0.2}}
    assert _judgement.best_rival(rows) == ("tempering", 0.2)
