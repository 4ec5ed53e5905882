"""How long a ladder adapts: as long as a mixture may come to fit, and no longer."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from levymc.adapt import _ladder
from levymc.adapt._reference import Fit

BUDGET = 100_000


def prior(count=1, degrees=8.0):
    """Of modes one beside the other."""
    places = np.arange(2.0 * count).reshape(count, 2)
    eye = np.tile(np.eye(2), (count, 1, 1))
    return Fit(np.ones(count) / count, places, eye, np.full(count, degrees), np.arange(count))


@pytest.fixture
def rounds_of(monkeypatch):
    """The number of rounds in which fits of these harmonic acceptances are made."""

    def count(harmonics, given, **properties):
        made = iter(harmonics)
        ladder = SimpleNamespace(prior=given, cost=1.0, betas=np.ones(1), harmonic=0.0)
        monkeypatch.setattr(_ladder, "run", lambda *given, **named: None)
        monkeypatch.setattr(_ladder, "whole", lambda result: result)
        monkeypatch.setattr(_ladder, "draws_of", lambda *given: None)
        monkeypatch.setattr(
            _ladder,
            "_adapted",
            lambda *given: SimpleNamespace(**{**vars(ladder), "harmonic": next(made)}),
        )
        about = {"evaluations": 0, "has_gradient": True, "local": None, **properties}
        looks = []
        _ladder.rounds(
            SimpleNamespace(**about),
            jax.random.key(0),
            ladder,
            BUDGET,
            lambda *given: bool(looks.append(given)),
        )
        return len(looks)

    return count


@pytest.mark.parametrize(
    ("harmonics", "number"),
    [
        ([0.02, 0.17, 0.41, 0.50, 0.60], 5),  # a skew mode, of which a mixture is learned slowly
        ([0.10, 0.10, 0.34, 0.62, 0.65], 5),
        ([0.27, 0.43, 0.07], 3),  # a funnel
        ([0.05, 0.10, 0.25, 0.28], 4),
        ([0.02, 0.11, 0.27, 0.39, 0.45], 5),
        ([0.85, 0.85, 0.85], 3),  # settled
    ],
)
def test_one_mode_is_given_up_when_no_mixture_will_fit(rounds_of, harmonics, number):
    assert rounds_of(harmonics, prior()) == number


def test_what_nuts_cannot_take_over_is_not_given_up(rounds_of):
    poor = [0.01] * 5
    assert rounds_of(poor, prior(2)) == 5
    assert rounds_of(poor, prior(degrees=30.0)) == 5  # many modes in one
    assert rounds_of(poor, prior(), has_gradient=False) == 5
    assert rounds_of(poor, prior(), local=object()) == 5


def test_a_density_that_does_not_fall_is_refused():
    info = SimpleNamespace(logdensity=np.zeros((8, 4)), ratios=np.zeros((8, 4, 1)))
    target = SimpleNamespace(flattened=np.asarray)
    near, far = (SimpleNamespace(positions=np.full((8, 4, 2), x), info=info) for x in (1e6, 2e15))
    assert _ladder.draws_of(target, near).points.shape == (8, 4, 2)
    with pytest.raises(ValueError, match="`logdensity_fn` must fall far out, got one where draws"):
        _ladder.draws_of(target, far)


def test_jumps_along_an_axis_go_to_where_modes_are_known():
    """Though all draws are on one side: else nothing would ever be on the other."""
    rng = np.random.default_rng(0)
    draws = _ladder.Draws(rng.normal(-3, 0.1, (8, 40, 2)), np.zeros((8, 40)), np.zeros((8, 40)))
    corners = np.array([[-3.0, -3.0], [3.0, -3.0], [-3.0, 3.0], [3.0, 3.0]])
    about = {"basis": np.eye(2), "shape": 0.01 * np.eye(2), "known": corners}
    remembered = _ladder._remembering(LadderOf(**about), draws)
    assert remembered["values"].shape == (2, _ladder.NUM_VALUES)
    assert np.all(np.sum(remembered["values"] > 0, axis=1) == 2)


@pytest.mark.parametrize(("count", "is_changed"), [(1, True), (2, False)])
def test_one_mode_is_drawn_from_its_mixture_more_often_once_it_is_frozen(count, is_changed):
    learning = np.array([[[0.5, 0.5, 0.0, 0.0]]])
    about = {"prior": prior(count), "betas": np.ones(1), "chances": learning}
    made = _ladder.frozen(LadderOf(**about, has_axes=False, local_cost=0.0))
    if not is_changed:
        assert made.chances is learning
    else:
        np.testing.assert_allclose(made["chances"], [[[0.15, 0.85, 0.0, 0.0]]])


class LadderOf(SimpleNamespace):
    """As much of a ladder as is asked for; what is replaced in it is given back."""

    def _replace(self, **changes):
        return changes
