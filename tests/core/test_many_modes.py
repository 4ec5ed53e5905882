"""Many modes: others that draws meet are noticed, and every draw is counted to its own."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import binomial_range

from levymc.adapt import _many
from levymc.adapt._bridge import Evidence
from levymc.adapt._explore import LOST_AT, Atlas, Modes
from levymc.adapt._ladder import Draws, begin
from levymc.adapt._many import (
    Basins,
    Monitor,
    Plan,
    basins_of,
    components_of,
    doubted,
    draw,
    unseen_mass,
    weights_of,
)
from levymc.adapt._outcome import FoundModes
from levymc.adapt._reference import laplace
from levymc.adapt._target import Target

PLACES = np.array([[-6.0, 0.0], [6.0, 0.0], [0.0, 8.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def three(x):
    squares = jnp.sum((x - PLACES.astype(x.dtype)) ** 2, axis=1)
    return jax.scipy.special.logsumexp(jnp.log(WEIGHTS.astype(x.dtype)) - squares / 2)


def known(*numbers):
    """An atlas of some of the modes, as exploration would have made it."""
    chosen = list(numbers)
    eye = np.tile(np.eye(2), (len(chosen), 1, 1))
    heights = np.log(WEIGHTS[chosen])
    masses = heights + np.log(2 * np.pi)
    hits = np.full(len(chosen), 5)
    return Modes(PLACES[chosen], eye, heights, masses, hits, 100, 0, 1000)


@pytest.fixture
def target():
    return Target(three, jnp.zeros(2, jnp.float32))


@pytest.fixture(scope="module")
def draws():
    """Exact ones, of eight systems, with the modes that they come from."""
    rng = np.random.default_rng(0)
    modes = rng.choice(3, (8, 500), p=WEIGHTS)
    return PLACES[modes] + rng.standard_normal((8, 500, 2)), modes


def looked_at(points):
    """Draws whose ratio to the reference is largest in the last mode."""
    return Draws(points, np.zeros(points.shape[:2]), points[..., 1])


def test_a_mode_that_a_draw_meets_is_found(target, draws):
    points, _ = draws
    monitor = Monitor(target, Atlas.of(target, known(0, 1)))
    assert monitor.finds_more(looked_at(points))
    assert monitor.atlas.listed().num_modes == 3
    assert not monitor.finds_more(looked_at(points))


def test_a_mode_that_outweighs_all_known_ones_is_new():
    """It makes the others negligible, so that fewer are listed than before."""
    target = Target(
        lambda x: jnp.logaddexp(-jnp.sum((x + 9) ** 2) / 2, 40 - jnp.sum((x - 9) ** 2) / 2),
        jnp.zeros(2),
    )
    atlas = Atlas(target)
    atlas.relax(np.full((1, 2), -8.0), np.ones(1))
    assert Monitor(target, atlas).finds_more(looked_at(np.full((8, 4, 2), 9.3)))
    assert atlas.listed().location.round(2).tolist() == [[9, 9]]


def test_a_look_at_draws_spends_what_it_may():
    """From points off a bent ridge, along which a climb takes more than ten evaluations."""
    target = Target(lambda x: -(x[0] ** 2) / 8 - 2 * (x[1] - x[0] ** 2 / 2) ** 2, jnp.zeros(2))
    monitor = Monitor(target, Atlas(target))
    monitor.atlas.relax(np.full((1, 2), 0.1), np.ones(1))
    points = np.linspace(-8, 8, 64).reshape(8, 4, 2)
    for most in (5, 200):
        before = target.evaluations
        monitor.finds_more(looked_at(points), most)
        assert 0 < target.evaluations - before <= most


@pytest.mark.parametrize(("rungs", "forgotten"), [(8, 10), (1, 0)])
def test_rungs_forget_where_they_began(monkeypatch, rungs, forgotten):
    """All begin where the target is: their first steps are made, counted, and not kept."""
    made = {}
    monkeypatch.setattr(_many, "run", lambda *given, **how: made.update(steps=given[3], **how))
    target = SimpleNamespace(evaluations=0, local=None)
    ladder = SimpleNamespace(
        betas=np.ones(rungs), cost=2.0 * rungs - 1, prior=SimpleNamespace(weights=np.ones(2))
    )
    draw(target, None, ladder, Plan(10_000, lambda *_: None, None, None, {}), "draws")
    assert made.get("burn_in", 0) == forgotten
    assert target.evaluations == forgotten * 8 * ladder.cost
    assert 0 <= 9800 - (made["steps"] + forgotten) * 8 * ladder.cost < 8 * ladder.cost


def test_nothing_new_is_found_among_modes_that_are_known(target, draws):
    points, _ = draws
    assert not Monitor(target, Atlas.of(target, known(0, 1, 2))).finds_more(looked_at(points))
    assert not Monitor(target, None).finds_more(looked_at(points))


def test_relaxations_tell_where_they_came_to(target):
    atlas = Atlas.of(target, known(0, 2))
    starts = np.concatenate([PLACES + 0.7, [[np.inf, 0.0]]])
    assert atlas.relax(starts, np.ones(4)).tolist() == [0, 2, 1, LOST_AT]


def test_draws_count_to_the_mode_they_climb_to_whatever_components_are_called(target, draws):
    """Labels of the components that are wrong change nothing; by themselves they would."""
    points, modes = draws
    exploration = known(0, 1, 2)
    ladder = begin(target, jax.random.key(0), laplace(exploration))
    ladder = ladder._replace(fit=ladder.fit._replace(mode=np.array([1, 2, 0])))
    monitor = Monitor(target, Atlas.of(target, exploration))
    plan = SimpleNamespace(budget=target.evaluations + 2000)
    before = target.evaluations
    basins = basins_of(target, ladder, monitor, plan, exploration, points)
    assert target.evaluations - before <= 2000
    weight, error = weights_of(components_of(ladder, points), basins)
    truth = np.array([(modes == number).mean() for number in range(3)])
    np.testing.assert_allclose(weight, truth, atol=2e-3)
    spread = np.array([(modes == number).mean(axis=1).std(ddof=1) for number in range(3)])
    np.testing.assert_allclose(error, spread / np.sqrt(8), rtol=0.1)
    wrong, _ = weights_of(components_of(ladder, points), Basins.as_made(ladder.fit, 3))
    assert np.abs(wrong - truth).max() > 0.1


def test_draws_of_modes_that_are_not_listed_are_counted(target, draws):
    """One of three is missing: the share of its draws, within the noise of 256 of them."""
    points, modes = draws
    exploration = known(0, 1)
    ladder = begin(target, jax.random.key(0), laplace(exploration))
    monitor = Monitor(target, Atlas.of(target, exploration))
    plan = SimpleNamespace(budget=target.evaluations + 10_000)
    unlisted = basins_of(target, ladder, monitor, plan, exploration, points).unlisted
    assert abs(unlisted - (modes == 2).mean()) < 0.1


def test_draws_are_relaxed_from_steps_as_short_as_the_narrowest_mode(target, draws, monkeypatch):
    """Along a ridge a mode is wide: a first step as long as its mean width may leave the basin."""
    points, _ = draws
    exploration = known(0, 1, 2)._replace(covariance=np.tile(np.diag([1e-4, 9.0]), (3, 1, 1)))
    atlas, seen = Atlas.of(target, exploration), []

    def relax(chosen, scales):
        seen.extend(scales)
        return np.zeros(len(chosen), int)

    monkeypatch.setattr(atlas, "relax", relax)
    plan = SimpleNamespace(budget=target.evaluations + 2000)
    ladder = begin(target, jax.random.key(0), laplace(known(0, 1, 2)))
    basins_of(target, ladder, Monitor(target, atlas), plan, exploration, points)
    np.testing.assert_allclose(seen, 0.01)


def test_a_component_that_holds_two_modes_is_shared_between_them_with_its_error():
    """Half of it each, judged by 100 draws: an error of a twentieth of the component's weight."""
    components = np.tile([0, 0, 1, 1], (8, 10))
    basins = Basins(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([100.0, 100.0]))
    weight, error = weights_of(components, basins)
    np.testing.assert_allclose(weight, [0.25, 0.75])
    np.testing.assert_allclose(error, 0.5 * np.sqrt(0.25 / 100))


def test_the_mass_of_modes_that_were_not_found_is_stated():
    """Of 256 modes of unequal weights, of which 600 relaxations miss a tenth, about 25.

    Twice the stated root mean square is exceeded in 0.9 % of 4000 trials.  Of 200 at most 16 may,
    exact binomial tail at 1e-6 for 2 %; with a third of the mass stated more than half do.
    """
    rng, count = np.random.default_rng(3), 200
    misses = 0
    for _ in range(count):
        weight = np.exp(rng.standard_normal(256) / 2)
        hits = rng.multinomial(600, np.full(256, 1 / 256))
        unseen = weight[hits == 0].sum() / weight[hits > 0].sum()
        seen = weight[hits > 0] / weight[hits > 0].sum()
        misses += unseen > 2 * unseen_mass(hits[hits > 0], seen)
    assert misses <= binomial_range(count, 0.02, 2e-6)[1]


def test_modes_that_were_not_found_widen_the_errors():
    weight, error = np.array([0.6, 0.3, 0.1]), np.full(3, 0.01)
    found = FoundModes(PLACES, weight, error, np.log(weight), np.array([9, 1, 1]))
    doubtful, evidence, share = doubted(found, Evidence(0.0, 0.01, 0))
    unseen = np.sqrt(0.2**2 + 0.05)  # one mode, like those found once
    assert share == pytest.approx(unseen / (1 + unseen))
    np.testing.assert_allclose(doubtful.standard_error, np.hypot(0.01, share * weight))
    assert evidence.standard_error == pytest.approx(np.hypot(0.01, np.log1p(unseen)))
    sure = found._replace(times_found=np.array([9, 5, 1]))
    doubtful, evidence, unseen = doubted(sure, Evidence(0.0, 0.01, 0))
    assert (unseen, evidence.standard_error) == (0.0, 0.01)
    np.testing.assert_allclose(doubtful.standard_error, error)


def test_more_may_be_unseen_than_was_found():
    """Sixty modes, each found once: by Chao's estimate some 1770 more."""
    weight = np.full(60, 1 / 60)
    found = FoundModes(PLACES, weight, 0 * weight, np.log(weight), np.ones(60, int))
    _, evidence, share = doubted(found, Evidence(0.0, 0.0, 0))
    assert share == pytest.approx(29.5 / 30.5, rel=1e-3)
    assert evidence.standard_error == pytest.approx(np.log(30.5), rel=1e-3)


def test_a_ladder_takes_hundreds_of_modes(target):
    """More than the components that it may split into."""
    count = 150
    places = np.random.default_rng(1).uniform(-50, 50, (count, 2))
    eye, zeros = np.tile(np.eye(2), (count, 1, 1)), np.zeros(count)
    modes = Modes(places, eye, zeros, zeros, np.full(count, 9), 2000, 0, 1000)
    ladder = begin(target, jax.random.key(0), laplace(modes))
    assert len(ladder.fit.weights) == count
    assert ladder.places > count
