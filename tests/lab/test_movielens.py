"""The experiments on ratings, on synthetic ones: data, tuning, chains, tables and verdicts."""

import dataclasses
import math

import jax
import numpy as np
import pytest

import levymc
from levymc_lab import data
from levymc_lab import framework as experiments
from levymc_lab.framework import Table
from levymc_lab.framework.style import new_figure
from levymc_lab.paper import _movielens as ml
from levymc_lab.paper import movielens_convergence, movielens_posterior, movielens_stability

CONVERGENCE = movielens_convergence.EXPERIMENT
POSTERIOR = movielens_posterior.EXPERIMENT
STABILITY = movielens_stability.EXPERIMENT


def pairs(ratings):
    return set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))


def test_tuning_never_sees_the_test_ratings():
    report, tuning = (ml.part("small", is_tuning=tuning) for tuning in (False, True))
    assert pairs(tuning.train) | pairs(tuning.test) == pairs(report.train)
    assert not pairs(tuning.train) & pairs(tuning.test)
    assert not pairs(report.train) & pairs(report.test)
    assert report.source == "synthetic"


def test_sources_are_those_of_the_ratings_that_would_be_read(monkeypatch):
    """Of ml-1m none stand in; those of the larger sets are real once they are in the cache."""
    cached = set()
    monkeypatch.setattr(data, "cached", lambda name: {} if name in cached else None)
    names = ("small", "ml-1m", "ml-10m")
    made = {"small": "synthetic", "ml-1m": "real", "ml-10m": "synthetic"}
    assert ml.sources(*names) == made
    cached.add("ml-10m")
    assert ml.sources(*names) == made | {"ml-10m": "real"}
    assert POSTERIOR.identity("paper", 0)["sources"] == {"ml-1m": "real"}
    assert STABILITY.identity("quick", 0)["sources"] == {"small": "synthetic"}


def test_missing_ratings_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path))
    with pytest.raises(data.MissingDataError, match="levymc data import ml-1m"):
        experiments.preflight(POSTERIOR, tmp_path / "out", profile="paper")
    assert not (tmp_path / "out").exists()


def test_a_watched_chain_is_the_algorithm_s_own():
    """Looking at a chain changes neither where it goes nor that it is reproducible."""
    part = ml.part("small", is_tuning=False)
    model = ml.fast(part, batch_size=500, step_size=1e-4, alpha=1.7, curvature=True)
    start = ml.start(part, 0, 0.1)
    often = list(ml.watch(model, start, jax.random.key(1), np.array([1, 2, 7])))
    once = list(ml.watch(model, start, jax.random.key(1), np.array([7])))
    np.testing.assert_array_equal(often[-1].position["users"], once[-1].position["users"])
    assert [v.steps for v in often] == [1, 2, 7]
    assert often[-1].divergences == 0
    state, key_chain = model.algorithm.init(start), jax.random.fold_in(jax.random.key(1), 0)
    for number in range(7):
        key = jax.random.fold_in(key_chain, number)
        state, _ = model.algorithm.step(key, state, model.data)
    # Without a kernel XLA may round otherwise in a loop than step by step.
    np.testing.assert_allclose(
        state.position["items"], once[-1].position["items"], rtol=1e-4, atol=1e-5
    )


def test_a_positive_start_begins_at_the_error_asked_for():
    part = ml.part("small", is_tuning=False)
    position = movielens_convergence.positive_start(
        part, 0, 1e-6, movielens_convergence.mean_for(part, 2.5)
    )
    error = ml.rmse(ml.predictor(part, 0.0)(position), part)
    # The test ratings' mean is not quite the training ratings'.
    assert error == pytest.approx(2.5, abs=0.03)


def test_variants_differ_by_their_noise_alone():
    """Over one tiny step drift and noise part: without noise, and with each law of it."""
    part = ml.part("small", is_tuning=False)
    start, key, alpha, a = ml.start(part, 0, 0.3), jax.random.key(0), 1.5, 1e-7
    moved = {}
    for variant in movielens_convergence.VARIANTS:
        model = movielens_convergence.sampler(part, variant, alpha, a)
        (visit,) = ml.watch(model, start, key, np.array([1]))
        shift = np.asarray(visit.position["users"])[:, : ml.RANK] - np.asarray(start["users"])
        moved[variant.id] = shift
    noise = {name: shift - moved["sgd"] for name, shift in moved.items()}
    eta = a**0.51
    scale = {"sgfla": eta ** (1 / alpha), "normal": eta ** (1 / alpha)}
    coefficient = levymc.riesz.leading_coefficient(alpha - 2)
    scale["sgld"] = math.sqrt(float(coefficient) * eta)
    for name, law in (("sgfla", alpha), ("normal", 2.0), ("sgld", 2.0)):
        median = np.median(np.abs(noise[name]))
        assert median == pytest.approx(scale[name] * float(levymc.stable.ppf(0.75, law)), rel=0.1)
    assert np.abs(noise["truncated"]).max() <= ml.BOUND * eta ** (1 / alpha) * 1.001


def test_truncated_variance_against_draws():
    """400 000 draws within ±50; false-alarm rate 1e-6 by Hoeffding's bound on squares ≤ 2500."""
    draws = levymc.stable.sample_truncated(
        jax.random.key(0), 1.6, 50.0, (400_000,), dtype="float32"
    )
    spread = 2500 * math.sqrt(math.log(2e6) / (2 * 400_000))
    assert float(np.mean(np.asarray(draws, float) ** 2)) == pytest.approx(
        movielens_posterior.truncated_variance(1.6), abs=spread + 0.05
    )


def judged(experiment, config, results):
    """Tables, checks and verdict of these results, and the figures drawn."""
    tables = experiment.summarise(config, results)
    checks = experiment.checks(config, tables)
    assert experiment.figures(config, tables).keys() == experiment.captions.keys()
    verdict = experiment.verdict(config, tables, checks)
    assert verdict.kind == "measured here"
    assert "synthetic ratings" in verdict.words
    return tables, checks


def run_cells(experiment, config, names):
    cells = {cell.id: cell for cell in experiment.checked_cells(config)}
    return {id: experiment.run_cell(config, cells[id], cells[id].key(0)) for id in names}


def test_convergence_at_a_tiny_size():
    """One cell of each task is run at α = 1.4, and stands for the others."""
    config = dataclasses.replace(
        CONVERGENCE.config("quick"), length=4, large_lengths=(4,), tuned_a=(1e-5,), num_seeds=1
    )
    ids = [f"{name}-alpha=1.4" for name in ("fit-small", "ablate-small", "tune-small-truncated")]
    large, fit, ablate, tune = run_cells(CONVERGENCE, config, ["published-small", *ids]).values()
    by_task = {"large": large, "fit": fit, "ablate": ablate, "tune": tune}
    results = {cell.id: by_task[cell["does"]] for cell in CONVERGENCE.checked_cells(config)}
    tables, checks = judged(CONVERGENCE, config, results)
    assert fit["steps"].tolist() == [1, 2, 3, 4]
    assert [fit["a"], tune["a"]] == [1e-5, 1e-5]
    # From one start with the same minibatches, the first small step hardly shows the noise.
    assert ablate["sgd"][0, 0] == pytest.approx(ablate["sgfla"][0, 0], abs=0.1)
    assert len(tables["curves"].where(kind="common", alpha=1.4, step="SG-FLA")) == 4
    assert [check.source for check in checks] == ["theory"]
    assert large["measured"].shape == (2, 4)  # of each α
    assert set(large["a"].tolist()) <= set(config.large_a)
    assert tables["fits"]["set"].tolist() == ["small"] * 4


@pytest.mark.parametrize("source", ["synthetic", "real"])
def test_the_larger_sets_are_judged_only_where_their_ratings_are_true(source):
    """All 297 points of the paper's 10M and 20M panels are drawn behind, whosever ratings."""
    config = CONVERGENCE.config("paper")
    fits = [
        {"set": name, "source": "real" if name == "ml-1m" else source, "alpha": alpha,
         "mean": 0.3, "scale": 0.4, "a": 1e-9, "distance": 0.05, "sgld_distance": 0.0}
        for name in (config.first, *config.large)
        for alpha in config.alphas(name)
    ]  # fmt: skip
    base = {"step": "SG-FLA", "source": "real", "error": 1.0}
    ablation = [base | {"alpha": 2.0}]
    tables = {
        "fits": Table.stack("", fits),
        "tuned": Table.stack("", [base]),
        "ablation": Table.stack("", ablation),
    }
    checks = movielens_convergence.checks(config, tables)
    assert len(checks) == (11 if source == "real" else 4)
    words = movielens_convergence._of_large(config, tables)
    assert ("synthetic ratings of the size of ml-10m" in words) == (source == "synthetic")
    figure = new_figure()
    for axes, name in zip(figure.subplots(1, 2), config.large, strict=True):
        part = Table.stack("", [{"alpha": a, "n": [1, 2], "error": [3.0, 2.0]}
                                for a in config.alphas(name)])  # fmt: skip
        movielens_convergence._draw_large(axes, part, name, is_real=source == "real")
        assert ("synthetic" in axes.get_title("right")) == (source == "synthetic")
    drawn = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in drawn) == 297


def test_posterior_at_a_tiny_size():
    """The Gibbs sampler, and a method whose noise is scaled, which stands for the others."""
    config = dataclasses.replace(
        POSTERIOR.config("quick"), tuning_steps=4, num_steps=8, num_sweeps=4, every=2, burn_in=2
    )
    gibbs, cold = run_cells(POSTERIOR, config, ["gibbs", "cold"]).values()
    results = {cell.id: cold for cell in POSTERIOR.checked_cells(config)} | {"gibbs": gibbs}
    tables, checks = judged(POSTERIOR, config, results)
    assert gibbs["errors"].shape == cold["errors"].shape == (2, 4)
    assert float(cold["step_size"]) in config.step_sizes
    assert 0 < float(cold["temperature"]) < 1
    assert math.isnan(gibbs["step_size"])
    assert len(tables["scores"]) == 12
    assert [check.outcome for check in checks] == ["pass"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ratings")


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(CONVERGENCE, marks=pytest.mark.nightly),
        pytest.param(POSTERIOR, marks=pytest.mark.nightly),
        pytest.param(STABILITY, marks=pytest.mark.nightly),
    ],
    ids=lambda e: e.name,
)
def test_quick_profile(experiment, folder):
    results = experiments.run(experiment, folder, jobs=0)
    assert not results.has_failed
    assert results.verdict.kind == "measured here"
    assert "synthetic ratings" in results.verdict.words
    assert results.figure(experiment.name, "png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_posterior_scores_are_sensible(folder):
    results = experiments.run(POSTERIOR, folder, jobs=0)
    rows = {row["method"]: row for row in results.tables["scores"].rows()}
    assert rows["Gibbs"]["error"] < rows["ALS"]["error"]  # the mean over draws beats a mode
    assert rows["Gibbs"]["single"] > rows["Gibbs"]["error"]
    assert 0.85 < rows["Gibbs"]["coverage"] <= 1
    assert rows["SGLD"]["temperature"] == 1
    assert rows["SG-FLA 1.6"]["temperature"] == math.inf
    assert 0 < rows["SG-FLA 1.4, jumps ≤ 50"]["temperature"] < 1
