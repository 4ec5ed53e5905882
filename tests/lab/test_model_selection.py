"""The choice of a size by evidence: the draws behind it, and what is said of them."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from levymc import adapt
from levymc_lab import data
from levymc_lab import framework as experiments
from levymc_lab.paper import _movielens as ml
from levymc_lab.paper import model_selection as experiment
from levymc_lab.paper.model_selection import FULL, MINIBATCH

EXPERIMENT = experiment.EXPERIMENT
QUICK = EXPERIMENT.config("quick")


def test_the_likelihood_in_parts_is_the_model_s():
    part = ml.part("small", is_tuning=False)
    model = experiment._factorization(part, 3)
    position = model.init(jax.random.key(0), 0.5, jnp.float32)
    train = part.train
    residuals = train.values - part.center - model.predict(position, train.users, train.items)
    wanted = stats.norm.logpdf(np.asarray(residuals, float)).sum()
    assert float(experiment._loglikelihood(part)(position)) == pytest.approx(wanted, rel=1e-5)


def test_gibbs_at_a_lower_precision_is_the_power_posterior():
    """Four users rate one item, rank 1: given its factor b, ratings are N(0, 1 + b²).

    Their evidence is an integral over b.  False-alarm rate 1e-6, by the t law over 32 chains; the
    bound is below 0.5, as log L^β for a wrong power (β² in the place of β) is off by more.
    """
    users, codes = np.arange(4, dtype=np.uint32), np.array([2, 0, 3, 1], np.uint8)
    levels = np.array([1.0, 3.0, 4.0, 5.0], np.float32)
    ratings = data.Ratings(users, np.zeros(4, np.uint16), codes, levels, users, np.zeros(1))
    part = ml.Part(ratings, ratings, ml.SYNTHETIC)
    y = ratings.values - part.center

    def density(b):
        return stats.norm.pdf(b) * np.prod(stats.norm.pdf(y, scale=math.sqrt(1 + b * b)))

    truth = math.log(integrate.quad(density, -12, 12)[0])
    config = dataclasses.replace(QUICK, burn_in=20, num_sweeps=200, every=1)
    gibbs, model = experiment._gibbs(part, 1), experiment._factorization(part, 1)
    keys = jax.random.split(jax.random.key(1), 32)
    starts = [model.init(key, 1.0, jnp.float32) for key in keys]
    powers = (np.arange(9) / 8) ** 5
    draws = experiment.power_draws(config, part, gibbs, starts, powers, jax.random.key(2))
    found = adapt.path_evidence(powers, draws)
    bound = stats.t(31).isf(5e-7) * found.standard_error + 0.02  # and of the rule
    assert bound < 0.5
    assert abs(found.value - truth) < bound
    wrong = adapt.path_evidence(powers**2, draws)
    assert abs(wrong.value - truth) > bound


def numbers(value, error=1.0, bias=math.nan, change=0.0):
    betas = np.linspace(0, 1, 3)
    return {
        **dict.fromkeys(experiment.NUMBERS, value),
        "standard_error": error,
        "discretisation_error": 0.1,
        "step_bias": bias,
        "step_bias_error": 0.0 if math.isnan(bias) else 0.5,
        "change": change,
        "betas": betas,
        "means": value * betas,
        "standard_errors": betas,
        "warnings": "",
        "source": ml.REAL,
    }


def results(values, rmse, truth=-10.0, ways=(FULL, MINIBATCH)):
    """Made up: evidence and error by rank; units of which the second is the better one."""
    made = {}
    for cell in experiment.cells(QUICK):
        if cell["kind"] == "known":
            made[cell.id] = {**numbers(-10.0), "truth": truth}
        elif cell["kind"] == "rank":
            place = QUICK.ranks.index(cell["size"])
            made[cell.id] = {
                **numbers(values[place]),
                "rmse": rmse[place],
                "log_predictive": -1.0,
            }
        elif cell["kind"] == "units":
            if cell["way"] in ways:
                made[cell.id] = numbers(-100.0 + 20 * cell["size"], bias=0.3)
        else:
            made[cell.id] = {"loglikelihood": -90.0, "error": 1.0}
    return made


def judged(made):
    tables = experiment.summarise(QUICK, made)
    checks = experiment.checks(QUICK, tables)
    assert experiment.figures(QUICK, tables).keys() == EXPERIMENT.captions.keys()
    return [check.outcome for check in checks], experiment.verdict(QUICK, tables, checks)


def test_the_verdict_says_whether_evidence_chooses_what_predicts():
    outcomes, verdict = judged(results((-500.0, -400.0), (0.9, 0.85)))
    assert outcomes == ["pass"] * 5
    assert "it pays: the evidence is largest for rank 3, by 100 ± 1 over rank 1" in verdict.words
    outcomes, verdict = judged(results((-400.0, -500.0), (0.9, 0.85)))
    assert outcomes[2:4] == ["pass", "explained"]
    assert "it does not pay" in verdict.words
    outcomes, verdict = judged(results((-400.0, -401.0), (0.9, 0.85)))
    assert "it cannot be told" in verdict.words


def test_starts_that_are_not_forgotten_count_as_errors():
    made = results((-500.0, -400.0), (0.9, 0.85))
    made["rank-3"]["change"] = 50.0
    assert "it cannot be told" in judged(made)[1].words


def test_a_wrong_evidence_of_the_regression_fails():
    outcomes, verdict = judged(results((-500.0, -400.0), (0.9, 0.85), truth=-14.0))
    assert outcomes[:2] == ["fail", "fail"]
    assert verdict.kind == "not reproduced"


def test_what_there_is_so_far_is_shown():
    made = results((-500.0, -400.0), (0.9, 0.85), ways=(FULL,))
    outcomes, verdict = judged({id: made[id] for id in made if id.startswith("units")})
    assert outcomes == []
    assert verdict.words.startswith(
        "Hidden units with the most evidence for small pictures: by ful"
    )


def test_small_pictures_are_of_zeros_and_ones():
    images = experiment.small_pictures("synthetic", 30)
    assert images.shape == (30, 49)
    assert set(np.unique(images)) == {0.0, 1.0}
    assert 0.1 < images.mean() < 0.6


@pytest.mark.nightly
def test_the_quick_profile_runs(tmp_path):
    found = experiments.run(EXPERIMENT, tmp_path, jobs=0)
    assert found.tables.keys() == {"known", "rank", "units", "held", "curves"}
    assert found.verdict.kind == "measured here"
