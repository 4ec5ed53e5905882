"""What `check` sees of steps, of start and end, of weights and of the algorithm's name."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter
from tests.bounds import binomial_range

import levymc
from levymc import diagnostics
from levymc.algorithms import Info
from levymc.diagnostics import _increments, _trend, check

ETA = 0.1


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@jax.jit
def normal(x):
    return -jnp.sum(x**2) / 2


def made(positions, *, algorithm="ula", is_exact=False, weights=None, **info):
    shape = positions.shape[:2]
    rate = 0.4 if is_exact else 1.0
    values = {
        "step_size": ETA,
        "is_divergent": False,
        "largest_jump": np.sqrt(2 * ETA) * np.abs(noise(*shape, seed=9)),
        "taming": 0.0,
        "acceptance_rate": rate,
    }
    leaves = {name: np.broadcast_to(value, shape) for name, value in (values | info).items()}
    return levymc.Result(
        positions,
        np.ones(shape) if weights is None else np.broadcast_to(weights, shape),
        Info(**leaves),
        steps=np.arange(1, shape[1] + 1),
        algorithm=algorithm,
        is_exact=is_exact,
    )


def euler(pulls, num_draws=5000, seed=0, noise_factor=1.0):
    """Euler's chains on normal laws of variance η/h, a coordinate for each pull h."""
    scaled = np.sqrt(2 * ETA) * noise_factor * noise(len(pulls), 4, num_draws + 200, seed=seed)
    chains = [
        lfilter([1.0], [1.0, h - 1.0], one, axis=1) for h, one in zip(pulls, scaled, strict=True)
    ]
    return np.moveaxis(np.stack(chains), 0, 2)[:, 200:]


# The size of a step


@pytest.mark.parametrize("pull", [0.05, 0.2, 0.6, 1.5])
def test_a_step_beside_the_width_of_the_target(pull):
    report = check(made(euler([pull])[..., 0]))
    assert ("step too large" in report.kinds) == (pull > 0.5), str(report)


def test_the_pull_is_found_in_any_direction():
    """A narrow direction among ten, not along a coordinate; in one coordinate it is diluted."""
    chains = euler([0.8] + [0.1] * 9)
    turn = np.linalg.qr(noise(10, 10, seed=3))[0]
    pull = _increments.strongest_pull(np.moveaxis(chains @ turn, 2, 0))
    assert pull.share == pytest.approx(0.8, abs=pull.error)
    assert pull.error < 0.2
    assert _increments.strongest_pull(np.zeros((2, 4, 100))) is None


def test_noise_of_minibatches_larger_than_the_noise():
    assert check(made(euler([0.05])[..., 0]))
    report = check(made(euler([0.05], noise_factor=1.5)[..., 0], algorithm="sgld"))
    assert "step too large" in report.kinds
    assert "the noise of the minibatches" in str(report)


def test_a_thinned_run():
    def thinned(pull):
        draws = euler([pull], 40_000)[:, ::10, 0]
        largest = np.abs(noise(4, 4000, 10, seed=9)).max(axis=2) * np.sqrt(2 * ETA)
        result = made(draws, largest_jump=largest)
        return check(dataclasses.replace(result, steps=10 * np.arange(1, 4001)))

    assert thinned(0.1)
    assert "The run is thinned" in str(thinned(0.1))
    assert "The noise of one step is" in str(thinned(0.9))


def test_draws_that_do_not_fit_the_slopes():
    """Of N(0, 1): right ones, those with a variance of 1.5, and those of .6."""
    for variance, how in ((1.0, ""), (1.5, "too wide"), (0.6, "too narrow")):
        chains = np.sqrt(variance * 0.1 / (2 * ETA)) * euler([0.1])[..., 0] * np.sqrt(1.9)
        result = dataclasses.replace(made(chains), steps=np.zeros(0, int))
        report = check(result, normal)
        assert ("wrong width" in report.kinds) == bool(how), str(report)
        assert how in str(report)


# Start and end


def test_chains_that_all_drift():
    """By half a standard deviation: R-hat is 1.008, as they do so together."""
    still = noise(4, 4000)
    assert check(made(still, is_exact=True))
    moving = still + np.linspace(-0.25, 0.25, 4000)
    assert check(made(moving, is_exact=True)).kinds == ("drifting",)
    growing = still * np.linspace(0.8, 1.2, 4000)
    report = check(made(growing, is_exact=True))
    assert report.kinds == ("drifting",)
    assert "The spread of x changes" in str(report)


def test_false_alarms_of_the_comparison():
    """300 autoregressive runs; a rate of 1 %, ten times that stated, is seen."""
    alarms = 0
    for seed in range(300):
        steps = noise(4, 700, seed=seed)
        values = lfilter([1.0], [1.0, -0.6], steps, axis=1)[:, 100:]
        found = _trend.shifts(values)
        alarms += any(_trend.is_shift(shift, len(found)) for shift in found)
    assert alarms <= binomial_range(300, 2e-3, 1e-4)[1]


def test_long_run_variance_of_an_autoregression():
    """1/(1 - a)²; the estimate is off by 5 % or so at 40 000 draws."""
    values = lfilter([1.0], [1.0, -0.8], noise(4, 10_000), axis=1)
    assert _trend.long_run_variance(values) == pytest.approx(25, rel=0.2)


# Weights


def test_weights_reach_rhat_and_effective_draws():
    """Of independent draws N (Σ w)²/Σ w² are effective; a start of little weight is not seen."""
    draws, weights = noise(4, 4000), np.linspace(0.02, 1.98, 4000) ** 2
    result = made(draws, weights=weights)
    share = weights / weights.sum()
    kish = 4 / np.sum(share**2)
    assert diagnostics.ess(result)["x"] == pytest.approx(kish, rel=0.15)
    assert diagnostics.ess(draws)["x"] > 1.5 * kish
    draws = draws.copy()
    draws[0, :400] += 5
    assert diagnostics.rhat(draws)["x"] > 1.01
    assert diagnostics.rhat(made(draws, weights=weights))["x"] < 1.01


def test_equal_weights_change_nothing():
    draws = noise(4, 200)
    result = made(draws, weights=0.3)
    for statistic in (diagnostics.rhat, diagnostics.ess):
        assert statistic(result) == statistic(draws)


# What made the run


def test_an_exact_algorithm_may_refuse():
    refused = np.arange(8000).reshape(4, 2000) % 1000 == 0
    report = check(
        made(noise(4, 2000), algorithm="mafla", is_exact=True, is_divergent=refused), normal
    )
    assert report, str(report)
    assert str(report).startswith("mafla, exact: nothing looks wrong.")
    assert "8 of 8000 draws had a proposal" in str(report)
    assert "refused, as is right" in str(report)


def test_the_info_of_another_library_from_a_store():
    """It comes back as a dictionary."""
    info = {"is_divergent": np.arange(8000).reshape(4, 2000) < 3}
    report = check(levymc.Result(noise(4, 2000), np.ones((4, 2000)), info, algorithm="nuts"))
    assert report.kinds == ("divergences",)
    assert str(report).startswith("nuts: 1 thing looks wrong.")


def test_steps_outside_the_support():
    outside = np.arange(8000).reshape(4, 2000) % 10 == 0
    report = check(made(euler([0.1], 2000)[..., 0], is_divergent=outside, is_outside=outside))
    assert "divergences" in report.kinds
    assert "outside the support" in str(report)
    assert "levymc.mafla or levymc.levy_walk" in str(report)


def test_the_headline_without_arviz(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    report = check(made(noise(4, 500), algorithm="mafla", is_exact=True))
    headline = str(report).splitlines()[0]
    expected = "nothing looks wrong; not looked at: R-hat and effective draws."
    assert headline == f"mafla, exact: {expected}"


def test_advice_names_the_option_that_helps():
    slow = lfilter([1.0], [1.0, -0.99], noise(4, 2000), axis=1)
    walk = {"algorithm": "levy_walk", "is_exact": True}
    both = np.stack([slow, slow + 0.1 * noise(4, 2000, seed=1)], axis=2)
    assert "`coordinatewise=False`" in str(check(made(both, **walk)))
    assert "another `scale`" in str(check(made(slow, **walk)))
    report = check(made(noise(4, 500), acceptance_rate=0.02, **walk))
    assert "a smaller `scale`" in str(report)


def test_a_run_without_positions():
    observed = levymc.Result(None, np.ones((4, 100)), None)
    with pytest.raises(ValueError, match="must have positions, got None"):
        check(observed)
