"""Log densities that are finite where their gradient is not: they are kept, and it is said.

Statistical bounds: false-alarm rate at most 1e-8 each, 7 of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import dkw_bound
from tests.core import mixtures

import levymc
from levymc import adapt, diagnostics, drifts, integrators
from levymc.adapt._auto import without_slope
from levymc.adapt._explore import Modes
from levymc.adapt._ladder import NUM_SYSTEMS

FALSE_ALARM = 1e-8
MANY = 10_000
GRID = np.linspace(-12.0, 12.0, 400_001)


def tilted(x):
    """With a NaN gradient below zero."""
    x = jnp.sum(x)
    return -x * x / 2 + jnp.where(x > 0, 0.5 * jnp.sqrt(x), 0.0)


def two_hills(x):
    """A hill on each side; the gradient is NaN below zero."""
    x = jnp.sum(x)
    hills = jnp.logaddexp(-((x - 4) ** 2) / 2, -((x + 4) ** 2) / 2)
    return hills + jnp.where(x > 0, 0.1 * jnp.sqrt(x), 0.0)


def distribution_of(logdensity_fn):
    """The distribution function on the grid."""
    mass = np.exp(np.asarray(jax.vmap(logdensity_fn)(jnp.asarray(GRID, jnp.float32)), float))
    return np.cumsum(mass) / mass.sum()


def exact_draws(logdensity_fn, count):
    uniforms = (np.arange(count) + np.random.default_rng(5).random(count)) / count
    return np.interp(uniforms, distribution_of(logdensity_fn), GRID).astype(np.float32)


def distance(draws, logdensity_fn):
    """The largest difference of distribution functions."""
    places = np.interp(np.sort(draws), GRID, distribution_of(logdensity_fn))
    return np.max(np.abs(places - (np.arange(len(draws)) + 0.5) / len(draws)))


def reference_at(mean):
    modes = Modes(np.array([[mean]]), np.ones((1, 1, 1)), np.zeros(1), np.zeros(1), np.ones(1, int))
    return adapt.reference(modes)


def exact_drift(position):
    """In the form of drifts that overflow."""
    slope = jax.grad(tilted)(position)
    return drifts.SignedLog(jnp.sign(slope), jnp.log(jnp.abs(slope)))


KERNELS = {
    "mafla": lambda: levymc.mafla(tilted, 0.5),
    "mafla, split": lambda: levymc.mafla(tilted, 0.5, integrator=integrators.split()),
    "mafla, into it": lambda: levymc.mafla(
        tilted,
        0.5,
        drift=lambda x: jnp.where(x > 0, -2.0, jnp.nan).astype(x.dtype),
        integrator=integrators.split(),
    ),
    "mafla, logarithms": lambda: levymc.mafla(tilted, 0.5, drift=exact_drift),
    "tempered": lambda: adapt.tempered(tilted, reference_at(0.7), betas=(1.0,), step_size=1.5),
    "nuts": lambda: adapt.nuts(tilted, 0.7, max_num_doublings=4),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_law_is_kept_where_there_is_no_gradient(kernel):
    """By Dvoretzky, Kiefer and Wolfowitz; .031 of the mass at a wrong place would be seen.

    Chains begin with the law, and end with it.  Were points without a gradient refused, the chains
    of 40 % of the starts would be, or stay on the other side.
    """
    if kernel == "nuts":
        pytest.importorskip("blackjax")
    starts = exact_draws(tilted, MANY)
    if kernel == "tempered":
        starts = starts[:, None].astype(float)
    run = levymc.sample(KERNELS[kernel](), jax.random.key(1), starts, 12, progress=False)
    ends = np.asarray(run.positions)[:, -1].reshape(-1)
    assert distance(ends, tilted) < dkw_bound(MANY, FALSE_ALARM)
    assert np.mean(np.sign(ends) != np.sign(starts.reshape(-1))) > 0.1
    assert np.mean(ends != starts.reshape(-1)) > 0.9
    if kernel == "tempered":
        np.testing.assert_array_equal(run.info.is_rough[:, -1], ends < 0)


def test_a_search_counts_where_it_could_not_climb():
    modes = adapt.explore(two_hills, jax.random.key(0), jnp.full((4,), 4.0), budget=2000)
    assert modes.num_modes == 1
    assert 0 < modes.num_rough <= modes.num_lost
    (reason,) = without_slope(modes)
    assert "of the draws" not in reason
    assert "jnp.where(x > 0, x, 1.0)" in reason
    assert "50.0% of the draws" in without_slope(modes, 0.5)[0]
    assert not without_slope(modes._replace(num_rough=0))
    ordinary = adapt.explore(mixtures.logdensity, jax.random.key(0), jnp.zeros((4, 2)), budget=2000)
    assert ordinary.num_rough == 0


def test_auto_keeps_all_of_a_mode_whose_gradient_ends_beside_it():
    """The mass below zero, .395, to .1: of some 8000 draws worth 400 that is four standard errors.

    It ended with an error about the starts before.
    """
    starts = jnp.linspace(0.7, 2.0, NUM_SYSTEMS)
    run = levymc.auto(tilted, jax.random.key(0), starts, budget=8000, progress=False)
    assert abs(np.mean(run.positions < 0) - 0.395) < 0.1
    assert "gradient is not" in " ".join(run.warnings)
    assert "refused, as is right" not in str(diagnostics.check(run))


@pytest.mark.nightly
def test_auto_keeps_a_mode_that_nothing_climbs_to():
    """It had no draw below zero, and no warning."""
    starts = 4 + jnp.arange(4) * 0.1
    run = levymc.auto(two_hills, jax.random.key(0), starts, budget=10_000, progress=False)
    assert 0.2 < np.mean(run.positions < 0) < 0.7
    assert "gradient is not" in " ".join(run.warnings)
