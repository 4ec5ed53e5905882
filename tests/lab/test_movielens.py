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
from levymc_lab.paper import (
    _one_curve,
    movielens_convergence,
    movielens_posterior,
    movielens_stability,
)

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


def test_curves_of_one_pace_are_read_off_and_others_are_not(monkeypatch):
    """Curves made by the rule, with 30 iterations that are not shown; and ones that start apart."""
    n = np.arange(1, 401, 10)
    fall = lambda t: 1 + 2 * np.exp(-t / 20)  # noqa: E731
    made = {alpha: fall(_one_curve.times(n, alpha, 30)) for alpha in (2.0, 1.6, 1.4)}

    def points(curves):
        rows = [{"alpha": a, "x": n, "y": y} for a, y in curves.items()]
        return lambda figure: Table.stack("", rows)

    monkeypatch.setattr(_one_curve, "published", points(made))
    _one_curve.hidden_iterations.cache_clear()
    assert _one_curve.hidden_iterations() == 30
    assert _one_curve.distances(30)["distance"].max() < 2e-3  # of reading off between points
    apart = {alpha: curve - (2 - alpha) for alpha, curve in made.items()}
    monkeypatch.setattr(_one_curve, "published", points(apart))
    _one_curve.hidden_iterations.cache_clear()
    found = _one_curve.distances(_one_curve.hidden_iterations())
    assert found["distance"].max() > movielens_convergence.SAME
    _one_curve.hidden_iterations.cache_clear()


def test_the_published_curves_are_one():
    """With one number for eight curves; without it three of them are not."""
    best = _one_curve.distances(_one_curve.hidden_iterations())
    assert len(best) == 8
    assert best["distance"].max() < movielens_convergence.SAME
    assert np.sum(_one_curve.distances(0)["distance"] > movielens_convergence.SAME) == 3


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
        CONVERGENCE.config("quick"), length=4, tuned_a=(1e-5,), num_seeds=1
    )
    ids = ["fit-0-small", "ablate-small-alpha=1.4", "tune-small-truncated-alpha=1.4"]
    fit, ablate, tune = run_cells(CONVERGENCE, config, ids).values()
    by_task = {"fit": fit, "ablate": ablate, "tune": tune}
    results = {cell.id: by_task[cell["does"]] for cell in CONVERGENCE.checked_cells(config)}
    tables, checks = judged(CONVERGENCE, config, results)
    assert fit["steps"].tolist() == [1, 2, 3, 4]
    assert fit["measured"].shape == (2, 4)  # of each α
    assert fit["hidden"] in movielens_convergence.HIDDEN
    np.testing.assert_array_equal(fit["measured"][0], fit["sgld"][0])  # α = 2
    assert tune["a"] == 1e-5
    # From one start with the same minibatches, the first small step hardly shows the noise.
    assert ablate["sgd"][0, 0] == pytest.approx(ablate["sgfla"][0, 0], abs=0.1)
    assert len(tables["curves"].where(kind="common", alpha=1.4, step="SG-FLA")) == 4
    assert [check.source for check in checks] == [*["paper"] * 8, "theory"]
    assert tables["fits"]["set"].tolist() == ["small"] * 2


def test_a_start_that_is_known_is_found_again():
    """By its curve alone, to a hundredth of a star; from a guess that is off by 0.2 and more."""
    config = dataclasses.replace(CONVERGENCE.config("quick"), length=12, most_trials=40)
    part, at = ml.part("small", is_tuning=False), movielens_convergence.marks(12)
    known, hidden = movielens_convergence.Start(3e-5, 0.4, 0.1), 5
    model = movielens_convergence.sampler(part, movielens_convergence.VARIANTS[0], 2.0, known.a)
    curve = movielens_convergence.errors(
        part, model, movielens_convergence.started(part, 0, known), jax.random.key(0), at + hidden
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(movielens_convergence, "published_curve", lambda name, places: curve)
        (cell,) = (c for c in CONVERGENCE.checked_cells(config) if c.id == "fit-0-small")
        found = CONVERGENCE.run_cell(config, cell, jax.random.key(0))
    assert np.abs(found["measured"][0] - curve).mean() < 0.01


@pytest.mark.parametrize("source", ["synthetic", "real"])
def test_the_larger_sets_are_judged_only_where_their_ratings_are_true(source):
    """All 297 points of the paper's 10M and 20M panels are drawn behind, whosever ratings."""
    config = CONVERGENCE.config("paper")
    fits = [
        {"set": name, "source": "real" if name == "ml-1m" else source, "alpha": alpha,
         "mean": 0.3, "spread": 0.4, "a": 1e-9, "hidden": 20, "measured_distance": 0.05,
         "truncated_distance": 0.04, "sgld_distance": 0.04}
        for name in (config.first, *config.large)
        for alpha in config.alphas(name)
    ]  # fmt: skip
    base = {"step": "SG-FLA", "source": "real", "error": 1.0}
    tables = {
        "paces": _one_curve.distances(45),
        "fits": Table.stack("", fits),
        "tuned": Table.stack("", [base]),
        "ablation": Table.stack("", [base | {"alpha": 2.0}]),
    }
    checks = movielens_convergence.checks(config, tables)
    assert len(checks) == 8 + (11 if source == "real" else 4)
    words = movielens_convergence._of_large(config, tables)
    assert ("synthetic ratings of the size of ml-10m" in words) == (source == "synthetic")
    figure = new_figure()
    for axes, name in zip(figure.subplots(1, 2), config.large, strict=True):
        rows = [
            {"alpha": alpha, "step": step, "n": [1, 2], "error": [3.0, 2.0]}
            for alpha in config.alphas(name)
            for step in movielens_convergence.LINES
        ]
        part = Table.stack("", rows)
        movielens_convergence._draw_fitted(
            axes, part, name, is_real=source == "real", has_legend=False
        )
        assert ("synthetic" in axes.get_title()) == (source == "synthetic")
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


def test_jumps_without_bound_are_tuned_by_the_median_over_keys(monkeypatch):
    """One wild key in three does not rule the choice; other methods need no second key."""
    config = dataclasses.replace(
        POSTERIOR.config("quick"), step_sizes=(0.1, 0.2, 0.4), tuning_keys=3
    )
    errors = {0.1: [1.0, 1.0, 1.0], 0.2: [9.0, 0.9, 0.9], 0.4: [0.5, 9.0, 9.0]}
    asked = []

    def runs(config, method, chosen, part, keys, length):
        asked.append((len(keys), length))
        return [{"errors": [error]} for error in errors[chosen.step_size][: len(keys)]]

    monkeypatch.setattr(movielens_posterior, "_runs", runs)
    for name, best in (("sgfla-1.6", 0.2), ("cut-1.6", 0.4), ("sgld", 0.4)):
        method = movielens_posterior.BY_ID[name]
        choices = movielens_posterior.settings(config, method)
        chosen = movielens_posterior._best(config, method, choices, jax.random.key(0))
        assert chosen.step_size == best
    assert asked == [(3, 40)] * 3 + [(1, 40)] * 6


def posterior_of(gibbs, jumps):
    """Made-up results on real ratings: the last errors of the Gibbs sampler, and of SG-FLA 1.6."""

    def result(ends, step_size, seconds):
        ends = np.array(ends)
        errors = np.stack([ends + 0.1, ends], axis=1)
        return {
            "errors": errors, "seconds": np.full(errors.shape, seconds) * [0.5, 1.0],
            "single": ends + 0.05, "coverage": np.full(len(ends), 0.9),
            "divergences": np.zeros(len(ends), int), "step_size": step_size, "offset": 100.0,
            "temperature": 1.0, "source": "real",
        }  # fmt: skip

    made = {cell.id: result([0.85] * 3, 0.2, 8.0) for cell in POSTERIOR.cells(POSTERIOR_CONFIG)}
    made["gibbs"] = result(gibbs, math.nan, 12.0)
    made["sgfla-1.6"] = result(jumps, 0.4, 9.0)
    made["sgld-plain"] = result([0.85] * 3, 2e-3, 8.0)
    tables = POSTERIOR.summarise(POSTERIOR_CONFIG, made)
    return tables, POSTERIOR.checks(POSTERIOR_CONFIG, tables)


POSTERIOR_CONFIG = POSTERIOR.config("paper")


def test_one_wild_seed_rules_neither_the_curve_nor_the_end():
    tables, checks = posterior_of([0.849] * 3, [0.87, 0.88, 3.0])
    row = movielens_posterior.by_method(tables)["SG-FLA 1.6"]
    numbers = [row[name] for name in ("error", "mean", "least", "largest")]
    assert numbers == pytest.approx([0.88, 1.583, 0.87, 3.0], abs=1e-3)
    curve = tables["curves"].where(method="SG-FLA 1.6")["error"]
    assert curve.tolist() == pytest.approx([0.98, 0.88])
    words = POSTERIOR.verdict(POSTERIOR_CONFIG, tables, checks).words
    assert "SG-FLA 1.6 0.8800;" in words
    assert "medians over 3 seeds" in words
    assert words.endswith("Tuned to the least or the largest step that was tried: SG-FLA 1.6.")


def test_the_time_of_a_gibbs_sweep_is_that_of_the_table():
    """12 s for 600 sweeps, and 8 s for 8000 steps."""
    _, checks = posterior_of([0.849] * 3, [0.88] * 3)
    assert POSTERIOR_CONFIG.num_steps == 8000
    (found,) = (check for check in checks if check.name.startswith("seconds until"))
    assert "takes the time of 20 of these steps" in found.explanation
    assert POSTERIOR.runs_alone


@pytest.mark.parametrize(
    ("error", "outcome"), [(0.849, "pass"), (0.8505, "pass"), (0.851, "fail"), (0.838, "fail")]
)
def test_the_gibbs_sampler_misses_its_bar_beyond_what_splits_differ_by(error, outcome):
    _, checks = posterior_of([error] * 3, [0.88] * 3)
    assert checks[0].name == "RMSE of the Gibbs sampler"
    assert checks[0].outcome == outcome


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ((0.01, 0.02, 0.1), "to 0.100"),
        ((0.01, 0.07, 0.1), "median 0.070, to 0.100"),
        ((0.065, 0.07, 0.1), "median 0.070, from 0.065 to 0.100"),
    ],
)
def test_what_is_outside_of_the_picture_is_printed(seeds, words):
    assert movielens_posterior._beyond(*seeds) == words


def test_the_legend_says_so_where_no_chain_is_left_to_draw():
    config = STABILITY.config("quick")
    results = {}
    for cell in STABILITY.cells(config):
        lasts = 20 if cell["option"] == "euler" else config.num_steps
        errors = np.full(2, math.nan if cell["option"] == "euler" else 0.9)
        lasted = np.full(2, lasts)
        scores = {"lasted": lasted, "error": errors, "clipped": errors, "source": "synthetic"}
        results[cell.id] = scores
    tables, _ = judged(STABILITY, config, results)
    (figure,) = STABILITY.figures(config, tables).values()
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told[:2] == [
        "plain Euler: 4 of 4 diverge, none left to draw",
        "tamed: 0 of 4 diverge",
    ]


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
