"""The experiment on the size of minibatches: what it makes of its cells, and that these run."""

import dataclasses

import numpy as np
import pytest

from levymc_lab import data
from levymc_lab import framework as experiments
from levymc_lab.paper import minibatch_size
from levymc_lab.paper.minibatch_size import EXPERIMENT

QUICK = EXPERIMENT.profiles["quick"]


def results(lost, source="real"):
    """Cells in which each α loses that much from the largest minibatch to the smallest.

    Seeds of ratings are 0.2 apart, so that each mean is known to 0.1 by their ranges.
    """
    found = {}
    for cell in minibatch_size.cells(QUICK):
        fall = lost[cell["alpha"]]
        if cell["of"] == "pictures":
            value = -100.0 - fall * (cell["size"] == min(QUICK.sizes))
            found[cell.id] = {"train": value, "test": value - 1}
            continue
        size = np.array([10, 10, 100, 100, 10, 10])
        is_own = np.array([False] * 4 + [True] * 2)  # with which nothing is lost
        train = -1.5 - fall * ((size == 10) & ~is_own) + np.array([-0.1, 0.1] * 3)
        rest = {"a": np.full(6, 1e-6), "test": np.full(6, 0.9), "source": source}
        found[cell.id] = {"size": size, "train": train, "is_own": is_own, **rest}
    return found


def judged(lost, source="real"):
    config = dataclasses.replace(QUICK, source="mnist" if source == "real" else "synthetic")
    tables = minibatch_size.summarise(config, results(lost, source))
    checks = minibatch_size.checks(config, tables)
    (figure,) = minibatch_size.figures(config, tables).values()
    figure.canvas.draw()
    return tables, checks, minibatch_size.verdict(config, tables, checks)


@pytest.mark.parametrize(
    ("lost", "kind", "words"),
    [
        ({2.0: 3.0, 1.6: 1.0}, "reproduced", "less than SGLD in 2 by more than the seeds"),
        ({2.0: 3.0, 1.6: 2.9}, "not reproduced", "in 1 by more than the seeds differ, more in 0"),
        ({2.0: 3.0, 1.6: 5.0}, "not reproduced", "in 0 by more than the seeds differ, more in 2"),
    ],
)
def test_the_verdict_follows_from_what_is_lost_and_from_the_seeds(lost, kind, words):
    """In the second a tenth of a nat is told on pictures, which have no range here, only."""
    tables, checks, verdict = judged(lost)
    assert verdict.kind == kind
    assert words in verdict.words
    assert [check.measured for check in checks] == pytest.approx([lost[1.6] - lost[2.0]] * 2)
    assert {check.outcome for check in checks} == {"explained" if lost[1.6] > 3 else "pass"}
    (row,) = tables["losses"].where(of="ratings", alpha=1.6).rows()
    assert (row["give_or_take"], row["in_all"]) == pytest.approx((0.2, 0.4))


def test_steps_that_were_chosen_for_a_size_do_not_count_as_a_loss():
    tables, *_ = judged({2.0: 3.0, 1.6: 1.0})
    own = tables["runs"].where(of="ratings", steps=minibatch_size.OWN)
    assert set(own["size"]) == {10}
    assert len(tables["runs"].where(of="ratings")) == 12


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
    assert len({cell.id for cell in cells}) == len(cells) == 5 * 4 * 2 + 5
    # Of one seed all begin alike.
    assert {cell.stream for cell in cells} == {"pictures-seed=0", "pictures-seed=1", "ratings"}


@pytest.mark.nightly
def test_quick_profile(tmp_path):
    results = experiments.run(EXPERIMENT, tmp_path, jobs=0)
    assert not results.has_failed
    assert results.verdict.kind == "measured here"
    runs = results.tables["runs"]
    assert np.all(np.isfinite(runs["train"]))
    assert np.all(runs["train"] < 0)
    assert len(runs) == 2 * 2 * 2 + 2 * 2 * 3
    assert results.figure("minibatch-size", "png").read_bytes().startswith(b"\x89PNG")
