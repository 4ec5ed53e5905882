"""Whether local geometry pays: its targets, its choice of steps, and what it says."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc_lab.paper import local_geometry as experiment
from levymc_lab.paper.local_geometry import ADJUSTED, DENSE, LOCAL, UNCORRECTED, LocalGeometry

CONFIG = LocalGeometry(num_chains=4, num_steps=10, num_flmc_steps=2)


def results(local, uncorrected=0.4, error=0.01):
    """`local` is the distance with m(x), and a tenth of the ESS with a covariance."""
    found = {}
    for cell in experiment.cells(CONFIG):
        distance = {LOCAL: local, UNCORRECTED: uncorrected}.get(cell["geometry"], 0.2)
        good = 10 / local if cell["geometry"] == DENSE else 50.0
        found[cell.id] = {
            "distance": np.array([0.9, distance, 0.9, 0.9, 0.9]),
            "distance_error": np.full(5, error),
            "ess": np.array([1.0, good, 1.0, 1.0, 1.0]),
            "evaluations": np.full(5, 1000),
        }
    return experiment.summarise(CONFIG, found)


def judged(tables):
    checks = experiment.checks(CONFIG, tables)
    return [check.outcome for check in checks], experiment.verdict(CONFIG, tables, checks)


def test_the_best_step_is_taken_and_judged():
    tables = results(0.05)
    chosen = tables["chosen"]
    assert set(chosen.where(target=experiment.WELLS)["step_size"].tolist()) == {3e-3}
    outcomes, verdict = judged(tables)
    assert outcomes == ["pass"] * 14
    assert "ULA pays (distance 0.050 ± 0.010 with m(x) and 0.200 ± 0.010" in verdict.words
    assert "MAFLA 4 times the effective draws" in verdict.words
    assert experiment.figures(CONFIG, tables).keys() == experiment.EXPERIMENT.captions.keys()


def test_what_does_not_pay_is_explained_and_a_missing_bias_fails():
    outcomes, _ = judged(results(0.5))
    assert outcomes == ["pass"] * 4 + ["explained"] * 10
    outcomes, verdict = judged(results(0.05, uncorrected=0.01))
    assert outcomes[:4] == ["fail"] * 4
    assert verdict.kind == "not reproduced"


def test_a_lead_that_may_be_chance_is_none():
    outcomes, verdict = judged(results(0.15, error=0.05))
    assert outcomes == ["pass"] * 4 + ["explained"] * 6 + ["pass"] * 4
    assert "ULA cannot be told apart (distance 0.150 ± 0.050" in verdict.words
    assert "FLA is worse" in judged(results(0.4))[1].words


def test_the_error_of_a_distance_is_that_over_chains():
    """Chains that stay in either half, four of five in the upper: the distance is share - 1/2.

    The mean of 100 errors has a standard deviation of 1 % and is too low by 2 %: a normal variate
    is beyond 8 % once in 10^8 runs.  Draws in the place of chains would give a seventh.
    """
    rng = np.random.default_rng(0)
    is_upper = rng.random((100, 64, 1)) < 0.8
    levels = (is_upper + rng.random((100, 64, 50))) / 2
    found = np.mean([experiment._bootstrap_error(one) for one in levels])
    assert found == pytest.approx(math.sqrt(0.8 * 0.2 / 64), rel=0.08)


def test_the_pace_is_the_local_variance():
    assert float(experiment.pace(jnp.asarray(-2.0))) == pytest.approx(1.0, rel=0.01)
    assert float(experiment.pace(jnp.asarray(0.3))) == pytest.approx(0.01, rel=0.8)


def test_the_law_without_the_correction_is_that_of_the_target_over_m():
    """What the docstring says, at α = 2: m ∇log φ is the corrected drift of φ/m."""
    x = jnp.asarray(0.1)
    m, slope = experiment.pace(x), jax.grad(experiment.pace)(x)
    corrected = m * jax.grad(experiment._wells_by_pace)(x) + slope
    np.testing.assert_allclose(corrected, m * jax.grad(experiment._wells)(x), rtol=1e-6)


@pytest.mark.nightly
def test_the_covariance_of_the_regression_is_that_at_its_mode():
    density, covariance = experiment.dense_target(experiment.LOGISTIC)
    assert np.all(np.linalg.eigvalsh(covariance) > 0)
    assert covariance.shape == (experiment.DIMENSION, experiment.DIMENSION)
    assert math.isfinite(float(density(jnp.zeros(experiment.DIMENSION))))


def test_a_cell_of_an_adjusted_sampler():
    cell = next(c for c in experiment.cells(CONFIG) if c["sampler"] == ADJUSTED[1])
    found = experiment.run_cell(dataclasses.replace(CONFIG, num_steps=400), cell, cell.key(0))
    assert found["ess"].shape == found["distance"].shape == (5,)
    assert np.all(found["evaluations"] == 1600)


def test_it_is_refused_at_once_without_arviz(monkeypatch):
    config = experiment.EXPERIMENT.config("quick")
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'levymc\[arviz\]'"):
        experiment.EXPERIMENT.needs(config)
    experiment.EXPERIMENT.needs(dataclasses.replace(config, samplers=("ULA",)))
