"""The mass that the jumps of a search meet, which no draw can be told of in another way."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import levymc
from levymc.adapt._bridge import Evidence
from levymc.adapt._explore import LARGEST_RADIUS, Atlas, Jumps, Mode
from levymc.adapt._met import NOTHING, log_volumes, met, more_than, together
from levymc.adapt._target import Target


@pytest.mark.parametrize("dimension", [1, 2, 30])
@pytest.mark.parametrize("distance", [0.3, 6.0, 900.0])
def test_the_density_of_a_jump_is_that_of_a_normal_law_of_log_uniform_width(dimension, distance):
    """Against the integral over log R, to 1e-7 in proportion."""

    def at(log_radius):
        radius = math.exp(log_radius)
        logs = dimension * stats.norm.logpdf(distance / math.sqrt(dimension), scale=radius)
        return math.exp(min(logs - peak, 700.0))

    grid = np.linspace(0, math.log(LARGEST_RADIUS), 4001)
    peak = max(
        dimension * stats.norm.logpdf(distance / math.sqrt(dimension), scale=math.exp(one))
        for one in grid
    )
    total = integrate.simpson([at(one) for one in grid], x=grid) / math.log(LARGEST_RADIUS)
    found = log_volumes(np.array([distance**2]), dimension, LARGEST_RADIUS)[0]
    assert found == pytest.approx(-(math.log(total) + peak), abs=1e-7)


def test_jumps_meet_the_mass_of_a_normal_law_from_any_mode():
    """False-alarm rate 1e-6 by Bernstein's inequality: weights are below M = 64, so that their
    variance is below M times their mean, which is one.  A mean that is off by two fifths is seen;
    a Jacobian that is forgotten takes away three eighths and is, too.
    """
    eye = np.eye(2)
    modes = [
        Mode(np.zeros(2), 0.0, eye, eye, eye, 1),
        Mode(np.ones(2), 0.0, 4 * eye, 2 * eye, eye / 2, 1),
    ]
    jumps, total, largest = Jumps(jax.random.key(0)), NOTHING, 64.0
    for _ in range(400):
        points, _, volumes = jumps.from_modes(modes, 256)
        logs = stats.multivariate_normal(np.zeros(2)).logpdf(points) + volumes
        assert np.nanmax(logs) < math.log(largest)
        total = together(total, met(logs[~np.isnan(volumes)]))
    mean = math.exp(total[1]) / total[0]
    share = math.log(2 / 1e-6) / total[0]
    assert abs(mean - 1) < math.sqrt(2 * largest * share) + 2 * largest * share / 3


def test_what_is_met_is_compared_with_what_was_drawn():
    seen = met(np.log(np.random.default_rng(0).gamma(2.0, 0.5, 400)))  # of mean one
    assert more_than(Evidence(0.0, 0.01, 0), seen) is None
    assert more_than(Evidence(2.0, 0.01, 0), seen) is None
    assert "by the jumps, -0.69 by the draws" in more_than(Evidence(math.log(0.5), 0.01, 0), seen)
    assert more_than(Evidence(math.log(0.5), 0.5, 0), seen) is None  # which may be by chance
    assert more_than(Evidence(math.nan, math.inf, 0), seen) is None
    assert more_than(Evidence(-9.0, 0.01, 0), NOTHING) is None
    one = met(np.array([5.0, *np.full(400, -np.inf)]))  # a single point proves nothing
    assert more_than(Evidence(-9.0, 0.01, 0), one) is None


def test_what_is_not_finite_has_no_weight():
    np.testing.assert_array_equal(met(np.array([np.nan, -np.inf])), [2, -np.inf, -np.inf])


def spike_in_slab(distance):
    """Half of the mass in N(0, 10² I), half in N(m, 0.1² I), m at a distance; three numbers."""
    top = jnp.array([distance, 0.0, 0.0])

    def logdensity(x):
        slab = -jnp.sum(x**2) / 200 - 3 * jnp.log(10.0)
        spike = -jnp.sum((x - top) ** 2) / 0.02 - 3 * jnp.log(0.1)
        return jnp.logaddexp(slab, spike) + jnp.log(0.5) - 1.5 * jnp.log(2 * jnp.pi)

    return logdensity, jnp.tile(top, (4, 1))


def test_a_wide_mode_around_a_narrow_one_is_a_mode_of_its_own():
    """From the narrow one; they were joined, as the narrow one is near in the wide one's metric."""
    logdensity, starts = spike_in_slab(3.0)
    found = levymc.adapt.explore(logdensity, jax.random.key(0), starts, budget=3000)
    assert found.num_modes == 2
    np.testing.assert_allclose(found.log_mass, math.log(0.5), atol=0.01)


def test_a_climb_into_a_narrow_mode_goes_on_within_a_wide_one():
    """Half a standard deviation of a known mode is near enough, unless log φ is higher there."""
    logdensity, _ = spike_in_slab(3.0)
    atlas = Atlas(Target(logdensity, jnp.zeros(3)))
    numbers = [atlas.relax(np.array([[x, 0.1, 0.0]]), np.ones(1))[0] for x in (0.2, 3.1, 1.0)]
    assert numbers == [0, 1, 0]
    np.testing.assert_allclose(atlas.modes[1].location, [3.0, 0.0, 0.0], atol=1e-3)


@pytest.mark.nightly
def test_a_wide_part_that_has_no_top_is_flagged_where_no_draw_goes_there():
    """Both around the same place: climbs see one mode, and its draws rarely leave it."""
    logdensity, starts = spike_in_slab(0.0)
    result = levymc.auto(logdensity, jax.random.key(0), starts, budget=20_000, progress=False)
    assert any("jumps of the search met more" in one for one in result.warnings)


def test_a_mode_with_heavy_tails_is_not_left_out_for_its_height():
    """t₂ in 30 dimensions, equally heavy: by height and curvature it seems e^-14 as heavy."""
    far = jnp.zeros(30).at[0].set(60.0)

    def logdensity(x):
        normal = -jnp.sum(x**2) / 2 - 15 * jnp.log(2 * jnp.pi)
        student = levymc.adapt._reference.log_t(jnp.sum((x - far) ** 2), jnp.asarray(2.0), 30)
        return jnp.logaddexp(normal, student)

    starts = jnp.stack([0 * far, far])
    found = levymc.adapt.explore(logdensity, jax.random.key(0), starts, budget=4000)
    assert found.num_modes == 2
    assert found.log_mass[1] - found.log_mass[0] < -13
