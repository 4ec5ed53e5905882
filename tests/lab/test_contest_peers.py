"""The contest's peers and metrics: budgets are kept, and what is measured is right."""

import dataclasses
import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

import levymc
from levymc.run import sample
from levymc_lab.contest import metrics, peers, problems
from levymc_lab.contest.__main__ import main
from levymc_lab.contest.peers import Modes, Outcome, _outcome, _tempering
from levymc_lab.paper import demo

FALSE_ALARM = 1e-8


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("method", "most"),
    [
        ("nuts-dense", 0.6),
        pytest.param("nuts-diagonal", 0.6, marks=pytest.mark.nightly),
        ("mala", 0.6),
        pytest.param("tempering", 0.4, marks=pytest.mark.nightly),
        pytest.param("smc", 0.4, marks=pytest.mark.nightly),
    ],
)
def test_peers_keep_their_budgets(method, most):
    problem, budget = problems.get("double-well"), 20_000
    outcome = peers.run(problem, method, jax.random.key(0), budget)
    assert 0.8 * budget < outcome.evaluations <= budget
    assert outcome.positions.shape[2] == 1
    assert np.all(np.isfinite(outcome.positions))
    assert outcome.seconds > 0
    measures = metrics.measure(problem, outcome, budget)
    assert 0 <= measures.total_variation < most
    assert measures.floor < 0.01


def test_auto_is_called_as_a_user_calls_it(monkeypatch):
    """With a stand-in that draws exactly; what it states goes into the outcome."""
    problem = problems.get("four-modes")

    def stand_in(logdensity_fn, key, initial_positions, *, budget, progress, store=None):
        assert logdensity_fn is problem.logdensity_fn
        assert initial_positions.shape == (8, 2)
        modes = SimpleNamespace(
            location=problem.logdensity_fn.__self__.means,
            weight=problem.truth.weights[0],
            standard_error=np.full(4, 0.01),
        )
        return SimpleNamespace(
            positions=problem.sample(key, 800).reshape(8, 100, 2),
            modes=modes,
            log_evidence=SimpleNamespace(value=0.01, standard_error=0.02),
            evaluations={"explore": 100, "sample": budget - 100},
            is_flagged=True,
            is_interrupted=False,
            warnings=("a sentence",),
        )

    monkeypatch.setattr(levymc, "auto", stand_in, raising=False)
    outcome = peers.run(problem, "auto", jax.random.key(0), 1000)
    assert (outcome.evaluations, outcome.is_flagged, outcome.notes) == (1000, True, ("a sentence",))
    assert metrics.z_weights(problem, outcome) == 0
    assert metrics.z_evidence(problem, outcome) == pytest.approx(0.5)


def test_an_interrupted_auto_is_no_outcome(monkeypatch):
    problem = problems.get("four-modes")
    part = SimpleNamespace(is_interrupted=True)
    monkeypatch.setattr(levymc, "auto", lambda *given, **how: part)
    with pytest.raises(KeyboardInterrupt):
        peers.run(problem, "auto", jax.random.key(0), 1000)
    with pytest.raises(KeyboardInterrupt):
        demo._auto(demo.EXPERIMENT.config("quick"), jax.random.key(0))


def test_a_method_that_is_not_there_is_refused():
    problem = problems.get("double-well")
    with pytest.raises(ValueError, match="Did you mean nuts-dense"):
        peers.run(problem, "nuts-dens", jax.random.key(0), 100)


def rungs(betas, centre, extent, mean, spread):
    """Mean and standard deviation of N(centre, extent²)^{1-β} N(mean, spread²)^β."""
    precision = (1 - betas) / extent**2 + betas / spread**2
    middle = ((1 - betas) * centre / extent**2 + betas * mean / spread**2) / precision
    return middle, 1 / np.sqrt(precision)


def gaussian_at_two(position):
    return -jnp.sum(((position - 2.0) / 0.5) ** 2) / 2


@pytest.mark.nightly
def test_tempering_leaves_the_law_of_every_rung_as_it_is():
    """From exact draws, after moves and swaps; DKW, false-alarm rate 1e-8 a rung.

    Detects a distribution function that is off by 0.05; a swap of the wrong sign is seen at once.
    """
    count, betas = 8000, np.array([0.0, 0.1, 0.4, 1.0])
    middle, spread = rungs(betas, 0.0, 3.0, 2.0, 0.5)
    noise = jax.random.normal(jax.random.key(1), (count, 4, 2))
    starts = middle[:, None] + spread[:, None] * noise
    ladder = _tempering.Ladder(
        jnp.asarray(betas), jnp.full(4, 0.8), jnp.asarray(spread[:, None] * np.ones(2))
    )
    algorithm = _tempering.Tempering(gaussian_at_two, ladder, jnp.zeros(2), jnp.asarray(3.0))
    run = sample(algorithm, jax.random.key(2), starts, 6, thin=6, progress=False)
    assert 0.2 < np.mean(run.info["accepted"]) < 0.99
    assert 0.05 < np.mean(run.info["rejected"]) < 0.9
    bound = dkw_bound(count, FALSE_ALARM)
    for rung in range(4):
        values = run.positions[:, -1, rung, 0]
        law = stats.norm(middle[rung], spread[rung])
        assert stats.kstest(values, law.cdf).statistic < bound


def test_ladders_are_spaced_for_equal_rejection():
    assert _tempering._best_count(0.3) == 2
    assert _tempering._best_count(5.0) in (8, 10, 12)
    assert _tempering._best_count(100.0) == _tempering.SIZES[-1]


def outcome_of(positions, **more):
    return Outcome(np.asarray(positions), 1000, **more)


def test_total_variation_and_its_floor():
    problem = problems.get("four-modes")
    means = problem.logdensity_fn.__self__.means
    positions = np.repeat(means, [10, 20, 30, 40], axis=0)
    assert metrics.total_variation(problem, positions) == pytest.approx(0.4)
    exact = np.repeat(means, [40, 30, 20, 10], axis=0)
    assert metrics.total_variation(problem, exact) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    errors = [
        np.abs(rng.multinomial(1000, problem.truth.weights[0]) / 1000 - problem.truth.weights[0])
        for _ in range(4000)
    ]
    mean = np.mean(np.sum(errors, axis=1)) / 2
    assert metrics.floor(problem, 1000) == pytest.approx(mean, rel=0.05)


@pytest.mark.nightly
def test_exact_draws_have_small_errors_and_honest_standard_errors():
    """False-alarm rate below 1e-8: six standard deviations of a root mean square of ten ratios."""
    problem = problems.get("four-modes")
    draws = np.asarray(problem.sample(jax.random.key(4), 8000)).reshape(4, 2000, 2)
    measures = metrics.measure(problem, outcome_of(draws), 8000)
    assert measures.kolmogorov < dkw_bound(8000, FALSE_ALARM)
    assert measures.z_weights < 5
    assert measures.z_marginals < 5
    assert measures.bulk == pytest.approx(8000, rel=0.2)
    assert math.isnan(measures.z_evidence)
    shifted = metrics.measure(problem, outcome_of(draws + 0.5), 8000)
    assert shifted.kolmogorov > 0.1
    assert shifted.z_marginals > 10
    assert shifted.quantile_error > measures.quantile_error


def test_stated_weights_and_evidence_are_compared():
    problem = problems.get("four-modes")
    means = problem.logdensity_fn.__self__.means
    draws = np.asarray(problem.sample(jax.random.key(4), 400)).reshape(4, 100, 2)
    stated = Modes(means[[0, 0, 1, 2, 3]], np.array([0.2, 0.22, 0.3, 0.2, 0.08]), np.full(5, 0.01))
    outcome = outcome_of(draws, modes=stated, log_evidence=(0.3, 0.1))
    first = (problem.mode_of(draws.reshape(-1, 2))[:, 0] == 0).reshape(4, 100).mean(axis=1)
    own = (first.mean() - 0.4) / (first.std(ddof=1) / 2)  # two of theirs are one of ours
    wanted = np.sqrt(np.mean(np.square([own, 0, 0, 2])))
    assert metrics.z_weights(problem, outcome) == pytest.approx(wanted)
    assert metrics.z_evidence(problem, outcome) == pytest.approx(3.0)
    one = dataclasses.replace(outcome, modes=Modes(means[:1], np.ones(1), np.zeros(1)))
    assert metrics.z_weights(problem, one) == math.inf  # sure of what is wrong


@pytest.mark.nightly
def test_components_that_share_a_top_are_one_mode():
    """Of 40 Gaussians five have no top of their own; one that has is missed if it is not there."""
    problem = problems.get("gaussians-40")
    truth, means = problem.truth, problem.logdensity_fn.__self__.means
    weights = np.bincount(truth.groups, truth.weights[0])
    assert len(weights) == 35
    tops = means[[np.flatnonzero(truth.groups == group)[0] for group in range(35)]]
    draws = np.zeros((4, 10, 2))
    stated = Modes(tops, weights + 0.01, np.full(35, 0.01))
    outcome = outcome_of(draws, modes=stated)
    assert metrics.z_weights(problem, outcome) == pytest.approx(1.0)
    fewer = dataclasses.replace(outcome, modes=Modes(*(one[1:] for one in stated)))
    assert metrics.z_weights(problem, fewer) == math.inf


def test_effective_sizes_of_independent_draws():
    """About as many as there are, per evaluation; with any version of ArviZ.  To within 40 %, eight
    times the spread of such estimates over seeds."""
    draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    outcome = dataclasses.replace(outcome_of(draws), evaluations=4000)
    bulk, tail, rhat = metrics.effective(outcome)
    assert bulk == pytest.approx(500, rel=0.4)
    assert tail == pytest.approx(500, rel=0.4)
    assert rhat == pytest.approx(1, abs=0.02)


def test_many_draws_are_worth_what_all_of_them_are():
    """Of 320 000 independent draws as many, where a part of 80 000 would be worth a quarter.

    To within 10 %, twenty times the spread of such estimates over seeds.
    """
    draws = np.random.default_rng(1).standard_normal((8, 40_000, 1))
    outcome = dataclasses.replace(outcome_of(draws), evaluations=1000)
    bulk, tail, _ = metrics.effective(outcome)
    assert bulk == pytest.approx(320_000, rel=0.1)
    assert tail == pytest.approx(320_000, rel=0.1)


def test_the_worst_of_many_coordinates_is_found_where_there_are_many_draws():
    """One that moves every eighth draw only, among six: worth an eighth, to within 10 %."""
    draws = np.random.default_rng(2).standard_normal((8, 20_000, 6))
    draws[..., 4] = np.repeat(draws[:, ::8, 4], 8, axis=1)
    outcome = dataclasses.replace(outcome_of(draws), evaluations=1000)
    bulk, tail, _ = metrics.effective(outcome)
    assert bulk == pytest.approx(20_000, rel=0.1)
    assert tail == pytest.approx(20_000, rel=0.1)


def test_particles_have_no_effective_size_in_time():
    outcome = outcome_of(np.zeros((1, 50, 2)), is_chain=False)
    assert all(math.isnan(value) for value in metrics.effective(outcome))


def test_compilation_is_not_counted_as_work():
    with peers.clocked() as clock:
        jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x).T + 12.5)(jnp.ones((3, 3))).block_until_ready()
    assert clock.compiling > 0
    with peers.clocked() as clock:
        pass
    assert clock.compiling == 0
    assert not _outcome._OPEN


@pytest.mark.nightly
def test_the_runner_prints_a_line_for_each_seed(capsys):
    main(["double-well", "mala", "--seeds", "2", "--budget", "2000"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:4] == ["problem", "method", "seed", "TV"]
    assert all(float(line.split()[3]) == pytest.approx(0.457, abs=0.01) for line in lines[1:])
    with pytest.raises(SystemExit, match="Did you mean"):
        main(["double-well", "mal"])
