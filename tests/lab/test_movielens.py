"""The experiments on ratings, on made ones: data, tuning, chains, tables and verdicts."""

import math

import jax
import numpy as np
import pytest

import levymc
from levymc_lab import data
from levymc_lab import framework as experiments
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
    assert report.source == "made"


def test_missing_ratings_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path))
    with pytest.raises(data.MissingDataError, match="levymc data import ml-1m"):
        experiments.preflight(POSTERIOR, tmp_path / "out", profile="paper")
    assert not (tmp_path / "out").exists()


def test_a_watched_chain_is_the_algorithm_s_own():
    """Looking at a chain changes neither where it goes nor that it is reproducible."""
    part = ml.part("small", is_tuning=False)
    model = ml.fast(part, batch_size=500, step_size=1e-4, alpha=1.7, curvature=True)
    chain, start = ml.Watched(model), ml.start(part, 0, 0.1)
    often = list(chain.chain(start, jax.random.key(1), np.array([1, 2, 7])))
    once = list(chain.chain(start, jax.random.key(1), np.array([7])))
    np.testing.assert_array_equal(often[-1].position["users"], once[-1].position["users"])
    assert [v.steps for v in often] == [1, 2, 7]
    assert often[-1].divergences == 0
    state = model.algorithm.init(start)
    for number in range(7):
        key = jax.random.fold_in(jax.random.key(1), number)
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
        chain = movielens_convergence.sampler(part, variant, alpha, a)
        (visit,) = chain.chain(start, key, np.array([1]))
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ratings")


@pytest.mark.parametrize("experiment", [CONVERGENCE, POSTERIOR, STABILITY], ids=lambda e: e.name)
def test_quick_profile(experiment, folder):
    results = experiments.run(experiment, folder, jobs=0)
    assert not results.has_failed
    assert results.verdict.kind == "measured here"
    assert "made ratings" in results.verdict.words
    assert results.figure(experiment.name, "png").read_bytes().startswith(b"\x89PNG")


def test_posterior_scores_are_sensible(folder):
    results = experiments.run(POSTERIOR, folder, jobs=0)
    rows = {row["method"]: row for row in results.tables["scores"].rows()}
    assert rows["Gibbs"]["error"] < rows["ALS"]["error"]  # the mean over draws beats a mode
    assert rows["Gibbs"]["single"] > rows["Gibbs"]["error"]
    assert 0.85 < rows["Gibbs"]["coverage"] <= 1
    assert rows["SGLD"]["temperature"] == 1
    assert rows["SG-FLA 1.6"]["temperature"] == math.inf
    assert 0 < rows["SG-FLA 1.4, jumps ≤ 50"]["temperature"] < 1
