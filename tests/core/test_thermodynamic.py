"""The evidence along power posteriors, against closed forms.

Standard errors are over independent chains, and differences from the truth are compared with the
quantile of their t law: the false-alarm rate is at most 1e-6 for each test, as far as a chain's
mean over hundreds of draws is normal.  A shift of twice the bound is seen nearly always; tests say
how large the bound may be.
"""

import functools
import math

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import levymc
from levymc import adapt
from levymc.adapt import _thermodynamic

FALSE_ALARM = 1e-6
KEY = jax.random.key(3)
NUM_CHAINS = 32
RANDOM = np.random.default_rng(11)
LOG_2_PI = math.log(2 * math.pi)


def quantile(num_chains=NUM_CHAINS, num_tests=1):
    return stats.t(num_chains - 1).isf(FALSE_ALARM / 2 / num_tests)


class Mean:
    """N numbers of N(x, 1), x of N(0, 1)."""

    data = RANDOM.normal(0.7, 1.0, 200)
    size = len(data)

    @staticmethod
    def logprior(x):
        return -x * x / 2 + 3.0  # a constant of the prior is of no consequence

    @staticmethod
    def of_one(x, y):
        return -((y - x) ** 2 + LOG_2_PI) / 2

    @classmethod
    def whole(cls, x):
        return jnp.sum(cls.of_one(x, jnp.asarray(cls.data, jnp.result_type(x))))

    @classmethod
    def truth(cls):
        total = cls.data.sum()
        rest = cls.data @ cls.data - total**2 / (1 + cls.size)
        return -(cls.size * LOG_2_PI + math.log(1 + cls.size) + rest) / 2

    @classmethod
    def sgld_means(cls, betas, steps, batch_size):
        """E_β[log L] of the law of SGLD with minibatches, whose mean and variance are known."""
        rate, spread = 1 + betas * cls.size, cls.data.var() / batch_size
        mean = betas * cls.data.sum() / rate
        noise = 2 * steps + (steps * betas * cls.size) ** 2 * spread
        variance = noise / (1 - (1 - steps * rate) ** 2)
        squares = np.sum((cls.data - mean[:, None]) ** 2, axis=1) + cls.size * variance
        return -(cls.size * LOG_2_PI + squares) / 2


def in_units(steps):
    return lambda beta: steps / (1 + beta * Mean.size)


class Regression:
    """y of N(X w, 1) with five coefficients of N(0, 1)."""

    design = RANDOM.normal(size=(60, 5))
    y = design @ RANDOM.normal(size=5) + RANDOM.normal(size=60)

    @classmethod
    def truth(cls):
        return stats.multivariate_normal(
            np.zeros(60), np.eye(60) + cls.design @ cls.design.T
        ).logpdf(cls.y)

    @classmethod
    def loglikelihoods(cls, betas, shape, random):
        """log L at independent draws of each power posterior."""
        found = []
        for beta in betas:
            covariance = np.linalg.inv(np.eye(5) + beta * cls.design.T @ cls.design)
            center = beta * covariance @ cls.design.T @ cls.y
            w = center + random.normal(size=(*shape, 5)) @ np.linalg.cholesky(covariance).T
            quadratic = np.sum(w @ (cls.design.T @ cls.design) * w, axis=-1)
            squares = cls.y @ cls.y - 2 * w @ (cls.design.T @ cls.y) + quadratic
            found.append(-(squares + 60 * LOG_2_PI) / 2)
        return np.stack(found)

    @staticmethod
    def logprior(w):
        return -jnp.sum(w**2) / 2

    @classmethod
    def whole(cls, w):
        residuals = jnp.asarray(cls.y, w.dtype) - jnp.asarray(cls.design, w.dtype) @ w
        return -(jnp.sum(residuals**2) + 60 * LOG_2_PI) / 2


def test_exact_draws_give_the_evidence_of_a_regression_both_ways():
    """To a bound below 0.15, of a log evidence near −100; and three standard errors are three.

    The latter in 20 repetitions: how many are outside is binomial, at the rate of the t law.
    """
    truth, random = Regression.truth(), np.random.default_rng(0)
    betas = (np.arange(31) / 30) ** 5
    draws = Regression.loglikelihoods(betas, (NUM_CHAINS, 1000), random)
    found = adapt.path_evidence(betas, draws)
    assert abs(found.value - truth) < quantile() * found.standard_error + 5e-3  # and of the rule
    stones = found.stepping_stones - truth
    assert abs(stones) < quantile() * found.stepping_stones_error
    assert quantile() * max(found.standard_error, found.stepping_stones_error) < 0.15
    assert found.warnings == ()
    outside = 0
    for part in np.split(draws, 10, axis=2):
        for chains in np.split(part, 2, axis=1):  # sixteen chains: t beyond 3 at a rate of 0.009
            each = adapt.path_evidence(betas, chains)
            outside += abs(each.value - truth) > 3 * each.standard_error + 5e-3
    assert outside <= stats.binom(20, 2 * stats.t(15).sf(3)).isf(FALSE_ALARM)


def test_the_noise_of_estimates_is_taken_from_the_variances():
    """A noise of variance 3000 β² moves the corrected rule by more than twice the bound."""
    truth, random = Regression.truth(), np.random.default_rng(4)
    betas = (np.arange(31) / 30) ** 5
    draws = Regression.loglikelihoods(betas, (NUM_CHAINS, 1000), random)
    noises = np.broadcast_to(3000 * betas[:, None, None] ** 2, draws.shape)
    estimates = draws + np.sqrt(noises) * random.normal(size=draws.shape)
    found = adapt.path_evidence(betas, estimates, noises)
    bound = quantile() * found.standard_error + 5e-3
    assert abs(found.value - truth) < bound
    assert math.isnan(found.stepping_stones)
    assert abs(adapt.path_evidence(betas, estimates).value - truth) > 2 * bound


def test_the_rule_is_better_with_its_correction_and_says_how_good():
    """Noise is a fifth of the error of the plain rule at most: 64 chains of 1000 draws."""
    betas = (np.arange(17) / 16) ** 5
    truth, random = Regression.truth(), np.random.default_rng(1)
    found = adapt.path_evidence(betas, Regression.loglikelihoods(betas, (64, 1000), random))
    assert abs(found.trapezoid - truth) > 5 * abs(found.value - truth)
    assert found.discretisation_error < 0.3 * abs(found.trapezoid - truth)
    coarse = (np.arange(5) / 4) ** 5
    few = adapt.path_evidence(coarse, Regression.loglikelihoods(coarse, (64, 1000), random))
    assert any("Take more rungs" in note for note in few.warnings)
    assert 0.1 < few.discretisation_error / abs(few.value - truth) < 10


def jumping_mafla(logdensity_fn, step_size):
    """Whose jumps ask a density that holds β, which is mapped."""
    steps = levymc.mafla(logdensity_fn, step_size)
    return levymc.jumping(steps, logdensity_fn, 5, scale=step_size**0.5)


KERNELS = {
    "mafla": (levymc.mafla, 1.0),
    "jumping": (jumping_mafla, 1.0),
    "levy_walk": (levymc.levy_walk, None),
    "blackjax": (blackjax.mala, 0.5),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.often("levy_walk")
def test_exact_samplers_give_the_evidence_from_full_gradients(name):
    """To a bound below 0.3; nothing is halved, and log L of the data is what they are given."""
    kernel, steps = KERNELS[name]
    step_size = in_units(steps) if steps else lambda beta: (1 + beta * Mean.size) ** -0.5
    found = adapt.thermodynamic_integration(
        Mean.logprior,
        Mean.whole,
        kernel,
        step_size,
        KEY,
        jnp.zeros(NUM_CHAINS),
        300,
        betas=16,
        progress=False,
    )
    assert abs(found.value - Mean.truth()) < quantile() * found.standard_error + 0.01
    stones = found.stepping_stones - Mean.truth()
    assert abs(stones) < quantile() * found.stepping_stones_error
    assert max(found.standard_error, found.stepping_stones_error) * quantile() < 1.0
    assert math.isnan(found.step_bias)
    if name == "blackjax":  # of which it is not known
        (note,) = found.warnings
        assert "not known whether mala is exact" in note
    else:
        assert found.warnings == ()


@pytest.mark.nightly
def test_a_regression_by_mafla_on_a_pytree():
    found = adapt.thermodynamic_integration(
        lambda tree: Regression.logprior(tree["w"]),
        lambda tree: Regression.whole(tree["w"]),
        levymc.mafla,
        lambda beta: 0.5 / (1 + 60 * beta),
        KEY,
        {"w": jnp.zeros((NUM_CHAINS, 5))},
        800,
        betas=30,
        progress=False,
    )
    assert abs(found.value - Regression.truth()) < quantile() * found.standard_error + 0.01
    assert quantile() * found.standard_error < 2.0


@functools.cache
def by_minibatches(batch_size=50, steps=0.1, **options):
    return adapt.thermodynamic_integration(
        Mean.logprior,
        Mean.of_one,
        levymc.sgld,
        in_units(steps),
        KEY,
        jnp.zeros(NUM_CHAINS),
        600,
        betas=8,
        data=Mean.data,
        batch_size=batch_size,
        progress=False,
        **options,
    )


@pytest.mark.nightly
def test_minibatches_give_the_curve_of_the_law_that_sgld_has():
    """At each rung, with the half steps, and how far these moved it.

    The means are known to 0.5 at β = 1.  An estimate from the minibatch that made the step would
    be off by N ηλ/|Ω| = 5 there.
    """
    found = by_minibatches(batch_size=4, steps=0.2)
    rates = 1 + found.betas * Mean.size
    wanted = Mean.sgld_means(found.betas, 0.1 / rates, 4)
    scores = (found.means - wanted) / found.standard_errors
    assert np.max(np.abs(scores)) < quantile(num_tests=len(scores))
    at_step = Mean.sgld_means(found.betas, 0.2 / rates, 4)
    moved = np.trapezoid(at_step - wanted, found.betas)
    assert abs(found.step_bias - moved) < quantile() * found.step_bias_error
    assert math.isnan(found.stepping_stones)


def test_the_evidence_by_minibatches_is_right_up_to_its_bias():
    """Extrapolated to steps of zero, within the bound; it is below 3 of a log evidence of −290."""
    found = by_minibatches()
    # 2 T(η/2) − T(η) has the variance 4 V(η/2) + V(η), of which the second holds one of each.
    error = math.hypot(math.sqrt(3) * found.standard_error, found.step_bias_error)
    assert abs(found.value - found.step_bias - Mean.truth()) < quantile() * error + 0.05
    assert quantile() * error < 3.0


def test_all_data_at_the_kept_draws_give_stepping_stones():
    found = by_minibatches(evaluates_all=True, thin=20)
    gap = found.stepping_stones - found.value
    bound = math.hypot(found.stepping_stones_error, found.standard_error)
    assert abs(gap) < quantile() * bound + 0.05


def integrate(**options):
    given = {
        "logprior_fn": Mean.logprior,
        "loglikelihood_fn": Mean.whole,
        "kernel": levymc.mafla,
        "step_size": in_units(1.0),
        "key": KEY,
        "initial_positions": jnp.zeros(4),
        "num_steps": 40,
        "betas": 4,
        "progress": False,
    }
    return adapt.thermodynamic_integration(**{**given, **options})


# L is zero on the half of the prior below zero, in the last with derivatives of NaN there.
HALVES = {
    "no derivative": lambda x: jnp.where(x > 0, 0.0, -jnp.inf),
    "derivative of NaN": lambda x: jnp.log(jnp.sqrt(x)),
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(
    "kernel",
    [levymc.mafla, levymc.levy_walk, levymc.ula, blackjax.mala],
    ids=["mafla", "levy_walk", "ula", "blackjax"],
)
@pytest.mark.often("mafla-derivative of NaN", "levy_walk-no derivative")
def test_a_likelihood_of_zero_on_a_part_of_the_prior_is_refused(kernel, half):
    """The draws of β = 0 are the prior's, and see it: it once gave log P(L > 0) too much.

    Half of 8 · 100 draws are there: that none is, has a probability below 1e-6 also if a chain's
    are three independent ones.
    """
    with pytest.raises(ValueError, match=r"`loglikelihoods` must be finite.*the prior reaches"):
        integrate(
            loglikelihood_fn=HALVES[half],
            kernel=kernel,
            step_size=1.0,
            initial_positions=jnp.ones(8),
            num_steps=100,
        )


def test_a_datum_that_excludes_a_part_of_the_prior_is_refused():
    """Half of the prior's draws are there, as above."""
    with pytest.raises(ValueError, match=r"`loglikelihoods` must be finite"):
        integrate(
            loglikelihood_fn=lambda x, y: jnp.log(jnp.sqrt(x)) * y,
            kernel=levymc.sgld,
            data=jnp.ones(10),
            batch_size=2,
            step_size=lambda beta: 0.5 / (1 + 10 * beta),
            initial_positions=jnp.ones(8),
            num_steps=100,
        )


def test_the_target_without_a_power_is_the_prior_to_all_derivatives():
    def target(beta, x):
        given = (levymc.mafla, Mean.logprior, HALVES["derivative of NaN"], 1.0, beta, 1.0)
        return _thermodynamic.Power(*given)._target()(x)

    betas, x = jnp.array([0.0, 0.25]), jnp.array([-1.0, 2.0])
    for function in (target, jax.grad(target, 1), jax.grad(jax.grad(target, 1), 1)):
        assert np.all(np.isfinite(jax.jit(jax.vmap(function))(betas, x)))
    slopes = jax.jit(jax.vmap(jax.grad(target, 1)))(betas, x)
    np.testing.assert_allclose(slopes, [1.0, -2 + 0.25 / 4])


def test_each_rung_begins_where_it_is_told():
    """Chains that hardly move are kept where they began: at 1 + β, in all rungs of both steps."""
    found = integrate(
        kernel=levymc.ula,
        step_size=1e-12,
        burn_in=0,
        initial_positions=lambda beta: jnp.full(4, 1.0 + beta),
    )
    wanted = [float(Mean.whole(jnp.asarray(1 + beta))) for beta in found.betas]
    np.testing.assert_allclose(found.means, wanted, rtol=1e-5)
    assert abs(found.step_bias) < 1e-3 * abs(found.value)


def test_a_law_of_its_own_is_flagged():
    found = integrate(kernel=levymc.fla, step_size=in_units(0.1))
    assert any("fla does not sample" in note for note in found.warnings)
    assert math.isfinite(found.step_bias)


LAWS = {
    "jumping fla": (
        levymc.jumping(levymc.fla(Mean.logprior, 0.1), Mean.logprior, 10, scale=1.0),
        True,
    ),
    "flmc with the drift of fla": (
        levymc.flmc(Mean.logprior, 0.1, drift=levymc.drifts.leading_term(Mean.logprior, 1.7)),
        True,
    ),
    "sgfla": (levymc.sgfla(lambda x, batch: -x, 0.1, {"a": 2.0, "b": 1.9}), True),
    "fla of 2": (levymc.fla(Mean.logprior, 0.1, 2.0), False),
    "sgfla of 2": (levymc.sgfla(lambda x, batch: -x, 0.1, 2.0), False),
    "sgld": (levymc.sgld(lambda x, batch: -x, 0.1), False),
    "ula": (levymc.ula(Mean.logprior, 0.1), False),
    "flmc": (levymc.flmc(Mean.logprior, 0.1), False),
    "mafla": (levymc.mafla(Mean.logprior, 0.1), False),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_of_its_own_is_known_by_alpha_and_drift(name):
    """Whatever the algorithm is called."""
    algorithm, has_own = LAWS[name]
    notes = " ".join(_thermodynamic._notes(algorithm, 0))
    assert ("does not sample p L^β" in notes) == has_own


def test_steps_that_were_not_made_are_counted_also_between_those_that_are_kept():
    """The prior ends at one: about one step in eight of 6400 leads outside."""
    given = {
        "logprior_fn": lambda x: jnp.where(jnp.abs(x) < 1, 0.0, -jnp.inf),
        "loglikelihood_fn": lambda x: -x * x / 2,
        "kernel": levymc.ula,
        "step_size": 0.1,
        "initial_positions": jnp.zeros(16),
    }

    def counted(**options):
        (note,) = [n for n in integrate(**given, **options).warnings if "were not made" in n]
        return int(note.split()[2])

    every, few = counted(num_steps=40), counted(num_steps=40, thin=10)
    assert every > 500
    # The same chains, but those of the nine steps before the first that is kept.
    assert 31 / 40 * every * 0.7 < few < every


def evidence(value, error, warnings=()):
    nothing = np.zeros(0)
    numbers = (value, error, value, 0.0, math.nan, math.nan)
    return adapt.PathEvidence(*numbers, nothing, nothing, nothing, nothing, warnings=warnings)


@pytest.mark.parametrize("num_chains", [2, 4, 8, 32])
def test_a_bias_is_told_from_noise(num_chains):
    """In 400 unbiased pairs a change is called a bias in at most one of twenty, up to 1e-6.

    Changes above one standard error, as it once was, are a half of them.
    """
    chains = np.random.default_rng(0).normal(size=(400, 2, num_chains))
    errors = chains.std(axis=2, ddof=1) / math.sqrt(num_chains)
    pairs = [
        [evidence(*one) for one in zip(*both, strict=True)]
        for both in zip(chains.mean(axis=2), errors, strict=True)
    ]
    found = [_thermodynamic._joined(pair, [], num_chains) for pair in pairs]
    biased = sum("bias may be left" in " ".join(one.warnings) for one in found)
    assert biased <= stats.binom(400, 0.05).isf(FALSE_ALARM)


def test_a_bias_is_seen_and_what_cannot_be_seen_is_said():
    (note,) = _thermodynamic._joined([evidence(1.0, 0.1), evidence(0.0, 0.1)], [], 32).warnings
    assert "Halving the steps changed it by -1 ± 0.14: about as much bias" in note
    assert _thermodynamic._joined([evidence(0.1, 0.1), evidence(0.0, 0.1)], [], 32).warnings == ()
    for num_chains, coarse in ((32, 0.5), (2, 0.1)):
        (note,) = _thermodynamic._joined(
            [evidence(0.4, coarse), evidence(0.0, 0.1)], [], num_chains
        ).warnings
        assert "does not tell whether there is a bias" in note


def test_the_change_is_what_the_second_halves_add():
    """log L that rises by 3 at every power from the first half of the draws to the second."""
    rising = np.repeat([1.0, 4.0], 50) + np.random.default_rng(0).normal(size=(9, 4, 100)) * 1e-6
    assert adapt.path_evidence(8, rising).change == pytest.approx(3.0, abs=1e-5)
    assert adapt.path_evidence(8, rising[:, :, ::-1]).change == pytest.approx(-3.0, abs=1e-5)


def test_chains_that_have_not_forgotten_their_start_are_flagged():
    found = integrate(initial_positions=jnp.full(8, 30.0), step_size=1e-5, burn_in=0)
    assert any("not forgotten" in note for note in found.warnings)


@pytest.mark.parametrize("num_chains", [2, 4, 8])
def test_few_chains_raise_no_false_alarms(num_chains):
    """Two tests at 1e-4 each flag at most three of 300 flat curves, but for a chance of 1e-6.

    Bounds of four standard errors flag 174 of them for two chains, 37 for four and 6 for eight.
    """
    random = np.random.default_rng(5)
    draws = random.normal(size=(300, 9, num_chains, 20))
    found = [" ".join(adapt.path_evidence(8, one).warnings) for one in draws]
    flagged = sum("not forgotten" in one or "only rise" in one for one in found)
    assert flagged <= stats.binom(300, 2e-4).isf(FALSE_ALARM)


@pytest.mark.parametrize(("num_chains", "bound"), [(2, 6400), (4, 28), (8, 7.9), (32, 4.5)])
def test_how_large_a_change_has_to_be_for_a_warning_is_as_documented(num_chains, bound):
    """Second halves that add 0.9 and 1.1 times as many of their standard errors."""
    spread = np.tile([-1.0, 1.0], num_chains // 2) * math.sqrt(
        1 - 1 / num_chains
    )  # 1/√C over chains
    for times, is_flagged in ((0.9, False), (1.1, True)):
        gains = times * bound / math.sqrt(num_chains) + spread
        draws = np.zeros((9, num_chains, 20))
        draws[:, :, 10:] = gains[:, None]
        found = adapt.path_evidence(8, draws)
        assert found.change == pytest.approx(times * bound / math.sqrt(num_chains))
        assert any("not forgotten" in note for note in found.warnings) == is_flagged


def test_a_curve_that_falls_and_a_stone_of_one_draw_are_flagged():
    random = np.random.default_rng(2)
    draws = random.normal(size=(5, 16, 50)) - np.arange(5)[:, None, None]
    assert any("it can only rise" in n for n in adapt.path_evidence(4, draws).warnings)
    draws = random.normal(size=(5, 4, 50)) * 100
    assert any("One draw carries" in n for n in adapt.path_evidence(4, draws).warnings)


def refused_late(*given, **options):
    raise AssertionError("The run was begun.")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"betas": [0.0, 0.5]}, "increase from 0 to 1"),
        ({"betas": 1}, "`betas` must be at least 2"),
        ({"betas": [0.0, 2.0, 1.0]}, "`betas` must lie in"),
        ({"num_steps": 3}, "`num_steps` must be at least 4"),
        ({"step_size": lambda beta: beta}, "`step_size` must be"),
        ({"batch_size": 5}, "`loglikelihood_fn`|`data` must be given"),
        ({"evaluates_all": True}, "`evaluates_all` must be False"),
        ({"data": Mean.data, "loglikelihood_fn": Mean.of_one, "batch_size": 1}, "at least 2"),
        ({"initial_positions": jnp.zeros(1)}, r"`initial_positions`.*two chains.*got .* \[1\]"),
        ({"initial_positions": 0.0}, r"`initial_positions`.*two chains.*got .* \[0\]"),
        ({"initial_positions": {}}, r"`initial_positions`.*two chains.*got .* \[\]"),
        (
            {"initial_positions": lambda beta: jnp.zeros(4 if beta else 5)},
            r"`initial_positions`.*at every β, got first axes of \[4, 5\]",
        ),
        ({"thin": 30}, "`thin` must keep at least two of the 40 steps, got 30, which keeps 1"),
        ({"loglikelihood_fn": Mean.of_one}, "`loglikelihood_fn` must"),
    ],
)
def test_bad_arguments_are_refused_before_a_step_is_made(options, words, monkeypatch):
    monkeypatch.setattr("levymc.adapt._thermodynamic.sample", refused_late)
    with pytest.raises((ValueError, TypeError), match=words):
        integrate(**options)


@pytest.mark.parametrize(
    ("noises", "words"),
    [
        (np.ones((5, 4)), r"`noise_variances` must have the shape \(5, 4, 50\).*got \(5, 4\)"),
        (np.full((5, 4, 50), np.nan), "`noise_variances` must be finite, got nan"),
        (np.full((5, 4, 50), -1.0), "`noise_variances` must not be negative, got -1"),
    ],
)
def test_bad_variances_are_refused(noises, words):
    with pytest.raises(ValueError, match=words):
        adapt.path_evidence(4, np.zeros((5, 4, 50)), noises)


def test_a_likelihood_of_zero_is_refused():
    values = np.zeros((5, 4, 50))
    values[0, 0, 0] = -np.inf
    with pytest.raises(ValueError, match=r"`loglikelihoods` must be finite, got -inf"):
        adapt.path_evidence(4, values)
