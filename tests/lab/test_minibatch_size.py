"""The experiment on the size of minibatches: what it makes of its cells, and that these run."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from levymc_lab import data
from levymc_lab import framework as experiments
from levymc_lab.paper import minibatch_size
from levymc_lab.paper.minibatch_size import EXPERIMENT

QUICK = EXPERIMENT.profiles["quick"]


OWN_ERROR = 0.01  # nats


def results(lost, source="real", above=0.0):
    """Cells in which each α loses that much from the largest minibatch to the smallest.

    By steps of its own each loses half of it.  Seeds are half a nat apart for all, and beside that
    α = 1.6 is `OWN_ERROR` higher by the first than by the second at the largest minibatch, and
    `above` higher than SGLD.
    """
    found = {}
    for cell in minibatch_size.cells(QUICK):
        alpha = cell["alpha"]
        if cell["of"] == "pictures":
            train = -100.0 + value(lost, alpha, cell["size"], cell["seed"], above=above)
            found[cell.id] = {"train": train, "test": train - 1, "divergences": 0, "largest": 3.0}
            continue
        places = [(is_own, n, s) for is_own in (False, True) for n in (10, 100) for s in (0, 1)]
        rows = [
            {
                "size": n,
                "is_own": is_own,
                "seed": s,
                "a": 1e-6,
                "train": -1.5 + value(lost, alpha, n, s, above=above, part=1 - is_own / 2),
                "test": 0.9,
                "divergences": 2 * (alpha == 1.6 and n == 10 and not is_own),
                "largest": 1.0,
            }
            for is_own, n, s in places
        ]
        tried = [
            {"size": n, "a": a, "train": -1.5 + value(lost, alpha, n, 0), "test": 0.9}
            for n in (10, 100)
            for a in QUICK.choices
        ]
        rest = {"tuning_divergences": np.zeros(4, int), "tuning_largest": np.ones(4)}
        rest |= {f"tuning_{name}": np.array([row[name] for row in tried]) for name in tried[0]}
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        found[cell.id] = {**columns, **rest, "source": source}
    return found


def value(lost, alpha, size, seed, above=0.0, part=1.0):
    own = OWN_ERROR * (1 - 2 * seed) * (alpha == 1.6 and size == 100)
    return 0.5 * seed + own + above * (alpha == 1.6) - part * lost[alpha] * (size == 10)


def judged(lost, source="real", above=0.0):
    config = dataclasses.replace(QUICK, source="mnist" if source == "real" else "synthetic")
    tables = minibatch_size.summarise(config, results(lost, source, above))
    checks = minibatch_size.checks(config, tables)
    (figure,) = minibatch_size.figures(config, tables).values()
    figure.canvas.draw()
    return tables, checks, minibatch_size.verdict(config, tables, checks)


# Of two α the paired t test, here of one degree of freedom, for three comparisons.
BAR = float(stats.t(1).isf(0.05 / 6)) * OWN_ERROR


@pytest.mark.parametrize(
    ("lost", "kind", "words"),
    [
        ({2.0: 3.0, 1.6: 1.0}, "reproduced", "lose less than SGLD in 3, more in 0;"),
        ({2.0: 3.0, 1.6: 2.4}, "measured here", "It cannot be told. Of 3 comparisons, SG-FLA can "
         "be told to lose less than SGLD in 2, more in 0;"),
        ({2.0: 3.0, 1.6: 3.1}, "measured here", "lose less than SGLD in 0, more in 0;"),
        ({2.0: 3.0, 1.6: 3.6}, "not reproduced", "lose less than SGLD in 0, more in 2;"),
        ({2.0: 3.0, 1.6: 5.0}, "not reproduced", "lose less than SGLD in 0, more in 3;"),
    ],
)  # fmt: skip
def test_the_verdict_follows_from_what_is_lost_and_from_the_seeds(lost, kind, words):
    """By steps of its own half is lost, too little to be told where the others are."""
    tables, checks, verdict = judged(lost)
    assert verdict.kind == kind
    assert words in verdict.words
    more = lost[1.6] - lost[2.0]
    assert [check.measured for check in checks] == pytest.approx([more, more / 2, more])
    assert {check.outcome for check in checks} == {"explained" if more > 0 else "pass"}
    rows = tables["losses"].where(alpha=1.6).rows()
    assert [row["give_or_take"] for row in rows] == pytest.approx([BAR] * 3)
    assert 0.3 < BAR < 0.6


@pytest.mark.parametrize(("above", "count"), [(0.0, (0, 0)), (1.0, (3, 0)), (-1.0, (0, 3))])
def test_a_better_mode_is_told_with_an_error(above, count):
    tables, _, verdict = judged({2.0: 3.0, 1.6: 1.0}, above=above)
    better, worse = count
    assert f"learn better than SGLD in {better} of 3 comparisons and worse in {worse}" in (
        verdict.words
    )
    rows = tables["modes"].where(alpha=1.6).rows()
    assert [row["above_sgld"] for row in rows] == pytest.approx([above] * 3)
    assert [row["give_or_take"] for row in rows] == pytest.approx([BAR] * 3)


def test_all_that_was_tried_is_there_and_what_diverged_is_told():
    tables, _, verdict = judged({2.0: 3.0, 1.6: 1.0})
    assert len(tables["tuning"]) == 2 * 2 * 2
    assert "SGLD by one seed in 2 (α = 1.6)" in verdict.words
    assert "4 steps diverged in these runs." in verdict.words
    own = tables["runs"].where(of="ratings", steps=minibatch_size.OWN)
    assert len(own) == len(tables["runs"].where(of="ratings")) / 2 == 8


def test_an_error_that_is_not_finite_is_never_the_least():
    errors = np.array([np.nan, 1.2, np.inf, np.nan])
    assert minibatch_size.best(QUICK, errors) == [QUICK.choices[1], QUICK.choices[0]]


def test_an_edge_run_does_not_squeeze_the_others():
    values = np.array([-1.5, -1.4, -1.45, -1.42, -30.0])
    assert -2 < minibatch_size._edge(values) < -1.5


def test_made_data_are_named_and_not_judged():
    _, _, verdict = judged({2.0: 3.0, 1.6: 1.0}, "synthetic")
    assert verdict.kind == "measured here"
    assert verdict.words.startswith("On synthetic pictures and ratings.")


def test_training_ratings_are_looked_at_in_part_and_always_the_same():
    ratings = data.synthetic(30, 40, 500, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minibatch_size, "TRAINED", 50)
        first, second = (minibatch_size._some(ratings) for _ in range(2))
    assert first.num_ratings == 50
    np.testing.assert_array_equal(first.users, second.users)
    pairs = set(zip(ratings.users.tolist(), ratings.items.tolist(), ratings.codes, strict=True))
    assert pairs.issuperset(
        zip(first.users.tolist(), first.items.tolist(), first.codes, strict=True)
    )


def test_minibatches_of_a_size_are_those_of_the_network():
    paper = EXPERIMENT.profiles["paper"]
    assert [paper.network(size).batch_size for size in paper.sizes] == [50, 200, 1000, 5000]
    cells = minibatch_size.cells(paper)
    seeds = range(paper.num_seeds)
    assert len({cell.id for cell in cells}) == len(cells) == 5 * 4 * len(seeds) + 5
    # Of one seed all begin alike.
    streams = {f"pictures-seed={seed}" for seed in seeds}
    assert {cell.stream for cell in cells} == {*streams, "ratings"}


@pytest.mark.nightly
def test_quick_profile(tmp_path):
    results = experiments.run(EXPERIMENT, tmp_path, jobs=0)
    assert not results.has_failed
    assert results.verdict.kind == "measured here"
    runs = results.tables["runs"]
    assert np.all(np.isfinite(runs["train"]))
    assert np.all(runs["train"] < 0)
    assert len(runs) == 2 * 2 * 2 + 2 * 2 * 2 * 2
    assert len(results.tables["tuning"]) == 2 * 2 * 2
    assert np.all(runs["largest"] > 0)
    assert results.figure("minibatch-size", "png").read_bytes().startswith(b"\x89PNG")
