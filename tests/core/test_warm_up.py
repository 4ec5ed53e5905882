"""Warm-ups: what they find, what they spend, and that what they leave can be run and kept.

What is random here is asserted with wide margins; each docstring says how wide.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

import levymc
from levymc import adapt
from levymc.adapt import _warm_up
from levymc.adapt._single import Warm, _kernel, _notes
from levymc.adapt._warm_up import advice

pytest.importorskip("blackjax")

KEY = jax.random.key(1)
WIDTHS = np.array([1e-2, 1e2], np.float32)
STARTS = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)


def scaled_cauchy(x):
    return -jnp.sum(jnp.log1p((x / jnp.asarray(WIDTHS, x.dtype)) ** 2))


def scaled_normal(x):
    return -jnp.sum((x / jnp.asarray(WIDTHS, x.dtype)) ** 2) / 2


def funnel(x):
    return -((x[0] / 3) ** 2) / 2 - x[1] ** 2 * jnp.exp(-x[0]) / 2 - x[0] / 2


@pytest.fixture(scope="module")
def cauchy():
    return adapt.one_mode(scaled_cauchy, KEY, STARTS, budget=60_000)


def test_heavy_tails_of_unknown_scale_are_found(cauchy):
    assert cauchy.facts["map"] == "coordinatewise"
    assert cauchy.facts["gain"] > 1
    scales = cauchy.algorithm.tail_map.scale
    np.testing.assert_array_less(np.abs(np.log(scales / WIDTHS)), np.log(3))
    assert 0.6 < cauchy.facts["acceptance_rate"] < 0.97
    assert 1 <= cauchy.cost < 15
    assert cauchy.notes == []


def test_it_is_frozen_and_of_the_right_law(cauchy):
    """DKW on every tenth draw, 1600 in all, as if they were independent: then 1e-8.

    They nearly are, as autocorrelations are gone after two or three steps.  A law that is off by
    0.16 anywhere is found.
    """
    assert cauchy.algorithm.gain == 0
    assert np.isinf(cauchy.algorithm.allowance)
    result = levymc.sample(cauchy.algorithm, KEY, cauchy.positions, 4000, progress=False)
    assert len(np.unique(result.info.step_size)) == 1
    draws = result.positions[:, ::10].reshape(-1, 2) / WIDTHS
    for column in draws.T:
        assert stats.kstest(column, "cauchy").statistic < dkw_bound(len(column), 1e-8)


@pytest.mark.nightly
def test_heavy_tails_along_other_axes_are_found():
    """DKW on every tenth draw, as above; a law that is off by 0.16 anywhere is found."""
    turn = np.array([[2, -2, 1], [1, 2, 2], [2, 1, -2]], np.float32) / 3
    starts = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def turned(x):
        return -jnp.sum(jnp.log1p((jnp.asarray(turn.T) @ x) ** 2))

    adapted = adapt.one_mode(turned, KEY, starts, budget=100_000)
    assert adapted.facts["map"] == "turned"
    assert adapted.facts["gain"] > 1
    assert adapted.cost < 10
    assert sum(adapted.evaluations.values()) <= 0.45 * 100_000
    result = levymc.sample(adapted.algorithm, KEY, adapted.positions, 4000, progress=False)
    for column in (result.positions[:, ::10].reshape(-1, 3) @ turn).T:
        assert stats.kstest(column, "cauchy").statistic < dkw_bound(len(column), 1e-8)


def test_it_spends_no_more_than_its_share(cauchy):
    assert set(cauchy.evaluations) >= {"pilot", "window 1", "window 4", "map", "plain metric"}
    assert cauchy.evaluations["pilot"] == 4 * (1 + 200 * 2)
    assert sum(cauchy.evaluations.values()) <= 0.45 * 60_000


def test_it_is_the_same_again(cauchy):
    again = adapt.one_mode(scaled_cauchy, KEY, STARTS, budget=60_000)
    assert again.facts == cauchy.facts
    assert again.evaluations == cauchy.evaluations
    np.testing.assert_array_equal(again.positions, cauchy.positions)


def test_it_can_be_made_again_from_arrays(cauchy):
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(cauchy.algorithm)]
    doublings = cauchy.facts["max_num_doublings"]
    like = adapt.nuts(scaled_cauchy, 1.0, adapt.identity(2), max_num_doublings=doublings)
    again = jax.tree.unflatten(jax.tree.structure(like), arrays)
    runs = [
        levymc.sample(one, KEY, cauchy.positions, 20, progress=False).positions
        for one in (again, cauchy.algorithm)
    ]
    np.testing.assert_array_equal(*runs)


@pytest.mark.nightly
def test_it_can_be_stored_and_resumed(cauchy, tmp_path):
    levymc.sample(
        cauchy.algorithm, KEY, cauchy.positions, 10, progress=False, store=tmp_path / "run"
    )
    resumed = levymc.resume(tmp_path / "run", num_steps=20, progress=False)
    whole = levymc.sample(cauchy.algorithm, KEY, cauchy.positions, 20, progress=False)
    np.testing.assert_array_equal(resumed.positions, whole.positions)


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [140, 300, 1000, 3000, 10_000])
def test_a_budget_is_never_exceeded(budget):
    """Also where the chains begin with a step that is far too short, and trajectories are long."""
    sampler = adapt.nuts(scaled_cauchy, 1e-3, max_num_doublings=5)
    adapted = adapt.warm_up(sampler, KEY, STARTS, budget=budget)
    assert 0 < sum(adapted.evaluations.values()) <= budget
    assert np.all(np.isfinite(adapted.positions))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(adapted.algorithm.tail_map))


def test_a_budget_without_room_is_refused():
    sampler = adapt.nuts(scaled_cauchy, 1.0, max_num_doublings=5)
    with pytest.raises(ValueError, match="room for a trajectory"):
        adapt.warm_up(sampler, KEY, STARTS, budget=100)


@pytest.mark.nightly
def test_a_funnel_is_recognised():
    """No map of ours straightens it: its tails are refused, or the advice is to reparametrise."""
    adapted = adapt.one_mode(funnel, KEY, STARTS, budget=60_000)
    assert any("funnel" in note for note in adapted.notes)


@pytest.mark.nightly
def test_what_draws_show_counts_beside_what_the_warm_up_saw():
    """A neck may be met late: of 4 × 500 draws 5 % diverge, of those of the warm-up none did."""
    rng = np.random.default_rng(0)
    seen = {"divergent": 0.0, "e_bfmi": 1.0, "at_most_doublings": 0.0, "max_num_doublings": 10}
    info = SimpleNamespace(
        is_divergent=rng.random((4, 500)) < 0.05,
        energy=rng.standard_normal((4, 500)),
        num_trajectory_expansions=np.full((4, 500), 3),
    )
    warm = Warm((), np.zeros(0), 1.0, seen, ["The plain metric is used."])
    first, second = _notes(warm, SimpleNamespace(info=info))
    assert first == "The plain metric is used."
    assert "trajectories diverge" in second
    bad = seen | {"divergent": 0.3}
    quiet = SimpleNamespace(info=SimpleNamespace(**{**vars(info), "is_divergent": np.zeros(4)}))
    (note,) = _notes(Warm((), np.zeros(0), 1.0, bad, advice(bad)), quiet)
    assert "30.0%" in note


def test_a_map_that_was_refused_is_told_and_no_reason_for_doubt(monkeypatch):
    monkeypatch.setattr(_warm_up, "_objection", lambda mapped, plain: "it was told to be")
    adapted = adapt.one_mode(scaled_cauchy, KEY, STARTS, budget=60_000)
    refused = adapted.facts["refused"]
    assert "was fitted and refused, as it was told to be" in refused
    assert refused in adapted.notes
    info = SimpleNamespace(
        is_divergent=np.zeros((4, 9), bool),
        energy=np.zeros((4, 9)),
        num_trajectory_expansions=np.zeros((4, 9), int),
    )
    warm = Warm((), np.zeros(0), adapted.cost, adapted.facts, adapted.notes)
    assert refused not in _notes(warm, SimpleNamespace(info=info))
    assert _kernel(warm).startswith("NUTS after a linear map, step size")
    assert _kernel(warm).endswith(f". {refused}")


def test_a_covariance_is_used():
    """With too little budget for a pilot, it is the first metric."""
    covariance = np.diag(WIDTHS.astype(float) ** 2)
    starts = STARTS * WIDTHS
    adapted = adapt.one_mode(scaled_normal, KEY, starts, budget=2000, covariance=covariance)
    assert adapted.evaluations["pilot"] == 0
    assert adapted.cost < 16
    assert sum(adapted.evaluations.values()) <= 900


ALPHAS = {1.8: 0.5, 1.2: 0.2, 2.0: 0.574}


@pytest.mark.nightly
@pytest.mark.parametrize("alpha", ALPHAS)
def test_mafla_is_tuned(alpha):
    """The acceptance over 500 steps of 4 chains, to 0.12: five standard errors or more."""
    begin = levymc.mafla(scaled_normal, 1e-4, alpha)
    adapted = adapt.warm_up(begin, KEY, STARTS * 0.01, budget=40_000)
    assert sum(adapted.evaluations.values()) <= 40_000
    result = levymc.sample(adapted.algorithm, KEY, adapted.positions, 500, progress=False)
    assert abs(np.mean(result.info.acceptance_rate) - ALPHAS[alpha]) < 0.12
    ratio = np.divide(*adapted.algorithm.how.preconditioner[::-1])
    assert abs(np.log(ratio) / alpha - np.log(1e4)) < np.log(4)


@pytest.mark.parametrize("coordinatewise", [True, False])
@pytest.mark.often("True")
def test_a_walk_is_tuned(coordinatewise):
    """As above; the scales follow the widths to a factor of four."""
    begin = levymc.levy_walk(scaled_normal, 1.0, coordinatewise=coordinatewise)
    adapted = adapt.warm_up(begin, KEY, STARTS * 0.01, budget=20_000)
    assert sum(adapted.evaluations.values()) <= 20_000
    result = levymc.sample(adapted.algorithm, KEY, adapted.positions, 2000, progress=False)
    assert abs(np.mean(result.info.acceptance_rate) - 0.3) < 0.1
    assert abs(np.log(np.divide(*adapted.algorithm.scale[::-1])) - np.log(1e4)) < np.log(4)


@pytest.mark.nightly
def test_positions_may_be_a_tree():
    begin = levymc.levy_walk(
        lambda p: -(p["a"] ** 2 + jnp.sum(p["b"] ** 2)) / 2, {"a": 1.0, "b": 9.0}
    )
    starts = {"a": jnp.zeros(3), "b": jnp.zeros((3, 2))}
    adapted = adapt.warm_up(begin, KEY, starts, budget=2000)
    assert jax.tree.map(np.shape, adapted.algorithm.scale) == {"a": (), "b": (2,)}
    assert jax.tree.map(np.shape, adapted.positions) == {"a": (3,), "b": (3, 2)}


def test_others_are_refused():
    with pytest.raises(TypeError, match="got fla"):
        adapt.warm_up(levymc.fla(scaled_normal, 0.1), KEY, STARTS, budget=1000)
    with pytest.raises(ValueError, match="at least"):
        adapt.warm_up(levymc.mafla(scaled_normal, 0.1), KEY, STARTS, budget=10)


@pytest.mark.parametrize(
    "density", [lambda x: -(x[0] ** 2) / 2, lambda x: jax.nn.log_sigmoid(x[0])]
)
def test_a_density_that_does_not_fall_is_refused_by_its_name(density):
    """It was said that draws, or starts, had to be finite."""
    starts = jnp.ones((4, 2), jnp.float32)
    with pytest.raises(ValueError, match="`logdensity_fn` must fall far out"):
        _warm_up.one_mode(density, jax.random.key(0), starts, budget=20_000)
