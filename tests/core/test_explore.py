"""The search for modes: what it finds, what it takes for one, and what it says it spent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import binomial_range, hoeffding_bound
from tests.core import mixtures

from levymc import targets
from levymc.adapt import explore
from levymc.adapt._explore import (
    FLOOR,
    POLISHED,
    Atlas,
    Jumps,
    Mode,
    Modes,
    Places,
    _is_top,
    inverse_curvature,
    unseen_modes,
)
from levymc.adapt._ladder import begin, run
from levymc.adapt._reference import laplace, reference
from levymc.adapt._relax import TOP, relax, steps_of
from levymc.adapt._target import Target


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.often("0.001", "10000.0")
def test_all_modes_are_found_whatever_the_unit(scale):
    """Four modes, from the lightest, in thousandths and in ten thousands."""
    found = explore(
        lambda x: targets.four_modes(x / scale),
        jax.random.key(0),
        jnp.full((2, 2), 4.0) * scale,
        budget=6000,
    )
    assert found.num_modes == 4
    np.testing.assert_allclose(found.location, targets.FOUR_MODES_MEANS * scale, atol=0.05 * scale)
    masses = found.log_mass - 2 * np.log(scale)
    np.testing.assert_allclose(masses, np.log(targets.FOUR_MODES_WEIGHTS), atol=0.05)
    assert found.chance_of_another < 0.05
    assert found.times_found.sum() + found.num_lost == found.num_relaxations


@pytest.mark.parametrize(
    ("starts", "message"),
    [(3.0, "starts along the first axis"), (jnp.full((2, 2), -jnp.inf), "must be finite")],
)
def test_starts_that_are_none_are_refused(starts, message):
    with pytest.raises(ValueError, match=message):
        explore(targets.four_modes, jax.random.key(0), starts)


def test_without_a_mode_there_is_no_reference():
    nothing = Modes(np.zeros((0, 2)), np.zeros((0, 2, 2)), *np.zeros((3, 0)))
    with pytest.raises(ValueError, match="`modes` must hold a mode, got none"):
        reference(nothing)


def funnel(x):
    return -(x[0] ** 2) / 18 - jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) / 2 - x[0]


def test_a_funnel_has_few_modes():
    """Its ridge stops relaxations anywhere; without a look for dips there are dozens of them."""
    found = explore(funnel, jax.random.key(1), jnp.zeros((4, 3)), budget=10_000)
    assert 1 <= found.num_modes <= 3


def test_a_place_in_the_neck_of_a_funnel_is_no_top():
    """By curvatures with a floor nothing is to be gained there; by its own, ten nats and more."""
    place = np.array([-25.0, 0.0, 0.0])
    gradient, hessian = np.asarray(jax.grad(funnel)(place)), np.asarray(jax.hessian(funnel)(place))
    assert gradient @ inverse_curvature(hessian) @ gradient / 2 < POLISHED
    assert not _is_top(gradient, hessian)
    assert _is_top(0 * gradient, hessian)
    assert not _is_top(0 * gradient, -hessian)


def test_what_is_lower_than_a_dip_joins_two_modes():
    """Two humps of a normal mixture, whose dip is 0.1 and 1 nats deep."""

    def humps(half):
        return lambda x: jnp.logaddexp(-((x - half) ** 2) / 2, -((x + half) ** 2) / 2)[0]

    starts = jnp.array([[-3.0], [3.0]])
    assert explore(humps(1.25), jax.random.key(0), starts, budget=2000).num_modes == 1
    assert explore(humps(2.2), jax.random.key(0), starts, budget=2000).num_modes == 2


def corners(count, dimension=5):
    """Modes at corners of a cube."""
    places = np.array([[(one >> bit) & 1 for bit in range(dimension)] for one in range(count)])
    eye = np.eye(dimension)
    return [Mode(place.astype(float), 0.0, eye, eye, eye, 1) for place in places]


def test_sums_of_modes_are_where_others_should_be():
    """From three corners of a square to the fourth; of a cube, only whole numbers."""
    jumps = Jumps(jax.random.key(0))
    points, scales, volumes = jumps.from_sums(corners(4)[:3])
    assert {tuple(point[:2]) for point in points} == {(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)}
    np.testing.assert_array_equal(scales, 1.0)
    assert np.all(np.isnan(volumes))


def test_jumps_are_of_the_kind_that_finds_more():
    """One that has found 30 modes for what another found none is taken nine times in ten.

    Exact binomial tails at 1e-6 each; 400 batches show a change of the share by 0.08.
    """
    for better in (0, 1):
        jumps, modes = Jumps(jax.random.key(better)), corners(8)
        for kind in (0, 1):
            jumps.is_sum = bool(kind)
            jumps.learn(30 * (kind == better), 3000)
        taken = 0
        for _ in range(400):
            jumps.batch(modes, 1000)
            taken += jumps.is_sum == bool(better)
        low, high = binomial_range(400, 0.9, 2e-6)
        assert low <= taken <= high
    jumps = Jumps(jax.random.key(0))
    for _ in range(10):
        jumps.batch(corners(2), 1000)  # of two modes there are no such sums
        assert not jumps.is_sum


def test_modes_are_too_many_where_there_are_hundreds_more():
    """66 modes, most of them found once: of 30 twice, few are missing; of one, a thousand."""
    assert not with_hits(np.repeat([1, 2], [36, 30])).are_too_many
    assert with_hits(np.repeat([1, 2], [65, 1])).are_too_many
    assert unseen_modes(np.array([1, 1, 1, 2, 5])) == 4.5
    assert unseen_modes(np.array([1, 1, 1, 5])) == 3
    assert unseen_modes(np.array([7, 5, 1])) == 0


def two_widths(width, dimension):
    """A standard normal law and one of another width and as much mass, six deviations away."""
    away = 6.0 / np.sqrt(dimension)

    def logdensity(x):
        narrow = -jnp.sum((x - away) ** 2) / (2 * width**2) - dimension * jnp.log(width)
        return jnp.logaddexp(-jnp.sum(x**2) / 2, narrow)

    return logdensity


def after(num_relaxations, dimension):
    """One mode, after some relaxations."""
    return with_hits(np.array([1]))._replace(
        location=np.zeros((1, dimension)), num_relaxations=num_relaxations
    )


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.often("2")
def test_three_of_the_jumps_land_where_a_mode_of_the_stated_width_dominates(dimension):
    """Of 1000; of 20 times as many 60, between 30 and 120 (Poisson: 1e-5 below 30, 1e-11 above).

    A resolution that is half of it has a quarter of these, and an eighth in three dimensions.
    """
    width, eye = after(1000, dimension).resolution, np.eye(dimension)
    jumps, mode = Jumps(jax.random.key(0)), Mode(np.zeros(dimension), 0.0, eye, eye, eye, 1)
    points = np.concatenate([jumps.from_modes([mode], 16)[0] for _ in range(20_000 // 16)])
    own = -np.sum(points**2, axis=1) / 2
    apart = np.sum((points - 6 / np.sqrt(dimension)) ** 2, axis=1)
    assert 30 <= np.sum(-apart / (2 * width**2) - dimension * np.log(width) > own) <= 120


@pytest.mark.nightly
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_mode_of_the_stated_width_is_found(dimension):
    """With three hits expected, in 95 % of all searches; of 30, exact binomial tail at 1e-6.

    At a third of that width, the ratio of the volumes, it was found in 8 to 12 of 30.
    """
    width = after(800, dimension).resolution
    density, found = two_widths(width, dimension), 0
    for seed in range(30):
        starts = np.random.default_rng(seed).normal(size=(8, dimension))
        modes = explore(density, jax.random.key(seed), jnp.asarray(starts), budget=20_000)
        found += modes.num_modes == 2
    assert found >= binomial_range(30, 0.95, 2e-6)[0]


def with_hits(times):
    nothing = np.zeros(len(times))
    return Modes(nothing[:, None], nothing[:, None, None], nothing, nothing, times)


def test_the_chance_of_another_mode_is_that_of_good_and_turing():
    """Three of five modes were hit once, in ten hits."""
    modes = with_hits(np.array([1, 4, 1, 3, 1]))
    assert modes.chance_of_another == pytest.approx(0.3)
    assert not modes.are_too_many


def test_good_and_turing_are_right_on_average():
    """On a toy with known chances: unseen mass against f₁, over 400 searches of 60 hits.

    Their difference lies in [-1, 1] and has mean below 1/60: Hoeffding at 1e-8 allows 0.31.
    """
    rng, chances = np.random.default_rng(0), np.geomspace(1, 1e-3, 40)
    chances /= chances.sum()
    gaps = []
    for _ in range(400):
        times = rng.multinomial(60, chances)
        modes = with_hits(times[times > 0])
        gaps.append(modes.chance_of_another - chances[times == 0].sum())
    assert abs(np.mean(gaps)) < 1 / 60 + hoeffding_bound(400, 1e-8)


class Counted:
    """A density that counts how often it is computed, point by point."""

    def __init__(self):
        self.count = 0

    def _add(self, _):
        self.count += 1

    def __call__(self, x):
        jax.debug.callback(self._add, x[0])
        return mixtures.logdensity(x)

    def since(self, before):
        jax.effects_barrier()
        return self.count - before


def test_evaluations_are_counted_truthfully():
    """Of relaxations that take equally long, as the others wait; of values, and of a run."""
    counted = Counted()
    target = Target(counted, jnp.zeros(2, jnp.float32))
    atlas = Atlas(target)
    starts = np.tile([[7.0, -4.0]], (16, 1))
    found = relax(target, starts, steps_of(np.ones(16), starts.shape[1]), atlas._known())
    assert set(found.outcome.tolist()) == {TOP}
    assert counted.since(0) == target.evaluations == found.evaluations.sum()
    target.values(np.zeros((32, 2)))
    assert counted.since(0) == target.evaluations
    atlas.enter(found.point[0], found.value[0], found.gradient[0])
    prior = laplace(atlas.listed())
    ladder = begin(target, jax.random.key(0), prior)
    before, spent = counted.since(0), target.evaluations
    run(target, jax.random.key(1), ladder, 10)
    assert counted.since(before) == target.evaluations - spent


def test_directions_of_little_curvature_stay_eigenvectors():
    """A floor that made their variances equal would lose the axes of the widest coordinates."""
    turn, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))
    curvatures = np.array([1.0, 1e-3, 1e-6, 1e-7, 1e-8])
    variances, vectors = np.linalg.eigh(inverse_curvature(-turn * curvatures @ turn.T))
    np.testing.assert_allclose(np.abs(np.sum(vectors * turn, axis=0)), 1.0, atol=1e-6)
    assert 1 / FLOOR < variances[-1] / variances[0] < 1.3 / FLOOR
    flat = inverse_curvature(np.diag([-1.0, 0.0]))
    assert 1 / FLOOR < flat[1, 1] < 1.3 / FLOOR


def two_normal(distance):
    """The same normal law at 0 and at a distance along the first axis, equally heavy."""

    def logdensity(x):
        other = x - distance * jnp.eye(3)[0]
        return jnp.logaddexp(-jnp.sum(x**2) / 2, -jnp.sum(other**2) / 2)

    return logdensity


def test_a_known_mode_explains_where_it_dominates_and_nothing_else():
    """Far out, too, where in proportion the other mode differs little from it."""
    target = Target(two_normal(8.0), jnp.zeros(3))
    atlas = Atlas(target)
    atlas.relax(np.full((1, 3), 0.1), np.ones(1))
    points = np.array([[-3.0, 1, 2], [-100.0, 5, 5], [8.0, 0, 0], [300.0, 5, 5], [4.0, 0, 0]])
    found = atlas.explaining(points, *target.gradients(points))
    assert found.tolist() == [0, 0, -1, -1, -1]
    beyond = np.array([[np.inf, 0, 0], [1e300, 0, 0]])
    assert atlas.explaining(points[:2], np.full(2, np.nan), beyond).tolist() == [-1, -1]


def places(points):
    return Places(points, np.ones(len(points)), np.full(len(points), np.nan))


def test_what_is_explained_counts_as_relaxed_and_costs_one_evaluation():
    target = Target(two_normal(8.0), jnp.zeros(3))
    atlas = Atlas(target)
    atlas.relax(np.full((1, 3), 0.1), np.ones(1))
    before, points = target.evaluations, np.random.default_rng(0).normal(size=(50, 3)) - 3
    assert atlas.relax_unexplained(places(points)) == 0
    assert target.evaluations - before == 50
    assert atlas.modes[0].times_found == atlas.num_relaxations == 51
    share = atlas.relax_unexplained(places(np.vstack([points[:3], [[7.0, 0, 0]]])))
    assert (share, len(atlas.modes), atlas.num_relaxations) == (0.25, 2, 55)


@pytest.mark.parametrize(
    ("unexplained", "left", "size"), [(1, 900, 16), (0, 900, 256), (0, 99, 99)]
)
def test_batches_are_larger_where_modes_explain_much_and_end_with_the_budget(
    unexplained, left, size
):
    jumps = Jumps(jax.random.key(0))
    jumps.unexplained = unexplained
    points, scales, volumes = jumps.batch(corners(2), left)
    assert len(points) == len(scales) == len(volumes) == size
