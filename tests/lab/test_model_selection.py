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
from levymc_lab.paper import _evidence_by_gibbs as gibbs_evidence
from levymc_lab.paper import _evidence_by_gradients as gradients
from levymc_lab.paper import _model_selection_results as judging
from levymc_lab.paper import _movielens as ml
from levymc_lab.paper import model_selection as experiment
from levymc_lab.paper.model_selection import FULL, MINIBATCH

EXPERIMENT = experiment.EXPERIMENT
QUICK = EXPERIMENT.config("quick")


def test_the_likelihood_in_parts_is_the_model_s():
    part = ml.part("small", is_tuning=False)
    model = gibbs_evidence.factorization(part, 3)
    position = model.init(jax.random.key(0), 0.5, jnp.float32)
    train = part.train
    residuals = train.values - part.center - model.predict(position, train.users, train.items)
    wanted = stats.norm.logpdf(np.asarray(residuals, float)).sum()
    assert float(gibbs_evidence.loglikelihood(part)(position)) == pytest.approx(wanted, rel=1e-5)


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
    config = dataclasses.replace(QUICK, burn_in=20, num_sweeps=200)
    gibbs, model = gibbs_evidence.sampler(part, 1), gibbs_evidence.factorization(part, 1)
    keys = jax.random.split(jax.random.key(1), 32)
    starts = [model.init(key, 1.0, jnp.float32) for key in keys]
    powers = (np.arange(9) / 8) ** 5
    draws = gibbs_evidence.power_draws(config, part, gibbs, starts, powers, jax.random.key(2))
    found = adapt.path_evidence(powers, draws)
    bound = stats.t(31).isf(5e-7) * found.standard_error + 0.02  # and of the rule
    assert bound < 0.5
    assert abs(found.value - truth) < bound
    wrong = adapt.path_evidence(powers**2, draws)
    assert abs(wrong.value - truth) > bound


CONFIG = dataclasses.replace(
    QUICK, units=(1, 2), minibatch_units=(1,), control_units=(1, 2, 3), larger=(4, 5)
)


def numbers(value, error=0.5, bias=math.nan, change=0.0, stones=None):
    betas = np.linspace(0, 1, 3)
    return {
        **dict.fromkeys(judging.NUMBERS, value),
        "standard_error": error,
        "stepping_stones": value if stones is None else stones,
        "stepping_stones_error": error,
        "discretisation_error": 0.1,
        "step_bias": bias,
        "step_bias_error": math.nan if math.isnan(bias) else 0.5,
        "change": change,
        "betas": betas,
        "means": value * betas,
        "standard_errors": betas,
        "warnings": "",
    }


def network(prior, mode, source=ml.SYNTHETIC, **options):
    paths = zip(gradients.STARTS, (prior, mode), strict=True)
    found = {
        f"{start}_{name}": number
        for start, value in paths
        for name, number in numbers(value, **options).items()
    }
    return {**found, "height": -1.0, "source": source}


def results(values=(-500.0, -400.0), rmse=(0.9, 0.85), truth=-10.0):
    """Made up: evidence and error by rank; units of which more are better; two that made."""
    made = {}
    for cell in experiment.cells(CONFIG):
        kind = cell["kind"]
        if kind == "known":
            made[cell.id] = {**numbers(-10.0, 1.0), "truth": truth}
        elif kind == "rank":
            place = CONFIG.ranks.index(cell["size"])
            predicted = {"rmse": rmse[place], "log_predictive": -1.0, "source": ml.REAL}
            made[cell.id] = {**numbers(values[place], 0.2), **predicted}
        elif kind == "control":
            made[cell.id] = network(*2 * [-300.0 - 40 * abs(cell["size"] - 2)])
        elif kind == "units":
            bias = 0.3 if cell["way"] == MINIBATCH else math.nan
            value = -200.0 + 60 * cell["size"] + (0 if cell["way"] == FULL else bias)
            made[cell.id] = network(value, value, ml.REAL, bias=bias)
        else:
            shared = np.linspace(-120.0, -60.0, 20) + cell["seed"]
            made[cell.id] = {"loglikelihoods": shared + cell["size"], "is_exact": True}
    return made


def judged(made):
    tables = experiment.summarise(CONFIG, made)
    found = experiment.checks(CONFIG, tables)
    assert experiment.figures(CONFIG, tables).keys() == EXPERIMENT.captions.keys()
    outcomes = {check.name: check.outcome for check in found}
    return outcomes, experiment.verdict(CONFIG, tables, found)


def failed(outcomes, kind="explained"):
    """The first words of the checks with that outcome."""
    return sorted({name.split(",")[0] for name, outcome in outcomes.items() if outcome == kind})


def test_the_verdict_says_whether_evidence_chooses_what_predicts():
    outcomes, verdict = judged(results((-500.0, -400.0), (0.9, 0.85)))
    assert set(outcomes.values()) == {"pass"}
    assert "it pays: the evidence is largest for rank 3, the largest that was" in verdict.words
    outcomes, verdict = judged(results((-400.0, -500.0), (0.9, 0.85)))
    assert failed(outcomes) == ["RMSE of the rank with the most evidence"]
    assert "it does not pay: the evidence is largest for rank 1, by 100 ±" in verdict.words
    outcomes, verdict = judged(results((-400.0, -401.0), (0.9, 0.85)))
    assert "it cannot be told" in verdict.words


def test_starts_that_are_not_forgotten_count_as_errors():
    made = results((-500.0, -400.0), (0.9, 0.85))
    made["rank-3"]["change"] = 150.0
    assert "it cannot be told" in judged(made)[1].words


def test_few_chains_need_the_quantile_of_their_t_law():
    """Of 400 pairs of equal ranks of two chains each, at most 1e-3 are told apart, up to 1e-6.

    Three standard errors of two chains each, as it once was, tell some 40 apart.
    """
    random = np.random.default_rng(0).normal(size=(400, 2, judging.NUM_STARTS))
    errors = random.std(axis=2, ddof=1) / math.sqrt(judging.NUM_STARTS)
    told = sum(
        judging.chosen(table_of(values, errors, freedom=judging.NUM_STARTS - 1)).is_sure
        for values, errors in zip(random.mean(axis=2), errors, strict=True)
    )
    assert told <= stats.binom(400, judging.RATE).isf(1e-6)


def table_of(values, errors, systematic=0.0, freedom=3):
    rows = [
        {"size": size, "evidence": value, "random": error, "systematic": systematic}
        for size, (value, error) in enumerate(zip(values, errors, strict=True), 1)
    ]
    return experiments.Table.stack("", [{**row, "freedom": freedom} for row in rows])


def test_a_choice_is_sure_of_the_rival_that_it_leads_by_the_least():
    """Size 2 leads the third by 20 and the first by 30, which counts where that has the errors."""
    values, errors = (0.0, 30.0, 10.0), (1.0, 1.0, 1.0)
    assert judging.chosen(table_of(values, errors)).is_sure
    assert not judging.chosen(table_of(values, errors, systematic=20.0)).is_sure
    choice = judging.chosen(table_of(values, (20.0, 0.1, 0.1)))
    assert (choice.size, choice.rival, choice.is_sure, choice.is_most) == (2, 1, False, False)
    rows = table_of(values, errors).rows()
    rows[0]["systematic"] = 40.0
    choice = judging.chosen(experiments.Table.stack("", rows))
    assert (choice.size, choice.rival, choice.is_sure) == (2, 1, False)


def test_half_of_what_is_between_the_starts_is_an_error():
    made = results()
    outcomes, verdict = judged(made)
    assert set(outcomes.values()) == {"pass"}
    assert "still rises at 2 units, the most that were tried, by 60 ±" in verdict.words
    made["units-2-full"] = network(-120.0, -40.0)  # whose mean is the same
    outcomes, verdict = judged(made)
    (row,) = experiment.summarise(CONFIG, made)["units"].where(size=2, way=FULL).rows()
    assert (row["evidence"], row["systematic"]) == (pytest.approx(-80.0), pytest.approx(40.1))
    assert "over 1; between the starts are at most 80.0 nats, at 2" in verdict.words
    made["units-2-full"] = network(-150.0, -10.0)
    assert "over 1, which may be as good" in judged(made)[1].words


def test_the_bias_of_sgld_is_taken_off():
    tables = experiment.summarise(CONFIG, results())
    units = tables["units"].where(size=1)
    full, estimated = (units.where(way=way).rows()[0] for way in (FULL, MINIBATCH))
    assert estimated["evidence"] == pytest.approx(full["evidence"])
    assert estimated["random"] > full["random"]
    made = results()
    made["units-1-minibatches"] = network(-100.0, -100.0, bias=0.0)  # 40 beyond it
    outcomes, _ = judged(made)
    assert failed(outcomes) == ["evidence by minibatches from that by full gradients"]


def test_chains_that_have_not_converged_are_seen_by_both_estimates():
    """Stones that are 20 above, and a mode that is 20 below."""
    made = results()
    made["units-1-full"] = network(-140.0, -140.0, stones=-120.0)
    assert failed(judged(made)[0]) == ["stepping stones above thermodynamic integration"]
    made["units-1-full"] = network(-130.0, -150.0)
    assert failed(judged(made)[0]) == ["evidence from a good mode less that from the prior"]


def test_a_control_that_chooses_another_network_fails():
    made = results()
    made["control-3-full"] = network(-250.0, -250.0)
    outcomes, verdict = judged(made)
    assert failed(outcomes, "fail") == [
        "evidence of other networks above that of the one that made the pictures"
    ]
    assert verdict.kind == "not reproduced"
    made["control-3-full"] = network(-299.0, -299.0)  # a nat above, within the margin
    outcomes, verdict = judged(made)
    assert failed(outcomes) == ["hidden units with the most evidence"]
    assert "it chooses 3, by 1 ± 2 over 2, which may be as good" in verdict.words
    del made["control-3-full"]
    assert failed(judged(made)[0], "fail") == []


def test_a_wrong_evidence_of_the_regression_fails():
    outcomes, verdict = judged(results(truth=-14.0))
    assert failed(outcomes, "fail") == ["evidence of a regression"]
    assert verdict.kind == "not reproduced"


def test_what_there_is_so_far_is_shown():
    made = results()
    units = {id: made[id] for id in made if id.startswith("units") and id.endswith("full")}
    outcomes, verdict = judged(units)
    assert len(outcomes) == 2
    assert verdict.words.startswith("The evidence of hidden units for small pictures: by full")
    outcomes, verdict = judged({"held-out-4-seed=0": made["held-out-4-seed=0"]})
    assert verdict.words.endswith("4 units -86.0, of 1 training seed.")
    # Of a size without the others' seed nothing is compared yet.
    assert "held" not in experiment.summarise(
        CONFIG, {id: made[id] for id in ("held-out-4-seed=0", "held-out-5-seed=1")}
    )


def test_sizes_are_compared_picture_by_picture():
    """Pictures differ by up to 60 nats, and 5 units are one nat better for each; seeds agree."""
    rows = experiment.summarise(CONFIG, results())["held"].rows()
    assert [row["behind"] for row in rows] == pytest.approx([1.0, 0.0])
    assert rows[0]["behind_error"] == pytest.approx(0.0, abs=1e-9)
    assert rows[0]["error"] > 3
    made = results()
    made["held-out-4-seed=1"]["loglikelihoods"] -= 3.0
    (row, _) = experiment.summarise(CONFIG, made)["held"].rows()
    assert row["behind"] == pytest.approx(2.5)
    assert row["behind_error"] == pytest.approx(1.5)


def test_chains_are_cooled_to_each_rung_and_the_best_is_the_mode():
    """The first rung is the prior, log L rises along β, and no cooled chain is higher at the end.

    By thousands of nats for 60 pictures: at the end it is above all draws of the prior by 100.
    """
    images = gradients.small_pictures("synthetic", 60)
    problem = gradients.Problem(gradients.models.sbn(49, 1), images)
    config = dataclasses.replace(QUICK, cooling_chains=4, cooling_steps=400)
    found = gradients.cooled(config, problem, jax.random.key(0))
    powers = (np.arange(config.num_rungs + 1) / config.num_rungs) ** 5
    rungs = [found.chains(float(beta)) for beta in powers]
    heights = np.array(jax.jit(jax.vmap(jax.vmap(problem.logposterior)))(gradients.stacked(rungs)))
    assert heights.shape == (config.num_rungs + 1, config.num_chains)
    assert np.all(heights[-1] > heights[0].max() + 100)
    assert np.all(np.diff(heights[::4].mean(axis=1)) > 0)
    assert found.height > heights[-1].max() - 50
    assert abs(float(problem.logposterior(found.mode)) - found.height) < 50


def test_small_pictures_are_of_zeros_and_ones():
    images = gradients.small_pictures("synthetic", 30)
    assert images.shape == (30, 49)
    assert set(np.unique(images)) == {0.0, 1.0}
    assert 0.1 < images.mean() < 0.6


@pytest.mark.nightly
def test_the_quick_profile_runs(tmp_path):
    found = experiments.run(EXPERIMENT, tmp_path, jobs=0)
    assert found.tables.keys() == set(judging.CAPTIONS)
    assert found.verdict.kind == "measured here"
