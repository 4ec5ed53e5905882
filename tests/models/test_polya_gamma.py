"""The Pólya–Gamma law, against its density summed and integrated by other means.

Keys are fixed, so a test that passes once passes always.  Each of the fewer than 200 checks would
fail on correct code for at most 1e-9 of the keys, 2e-7 for the file.  With 400 000 draws for each
tilt it is sure to see (with probability 1 - 1e-9)

=================================  ==========  ==============================================
check                              bound       smallest defect that is seen
=================================  ==========  ==============================================
distribution function (DKW)        5.2e-3      0.0104 in probability: 3 % of a standard deviation
Laplace transform (Hoeffding)      5.2e-3      0.0104
mean (Bernstein)                   0.011 sd    0.023 standard deviations
variance (Bernstein)               4.3-5.8 %   8.6-12 %
=================================  ==========  ==============================================
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import binomial_range, dkw_bound, hoeffding_bound

from levymc.models.sbn._polya_gamma import _exit_times, _series, polya_gamma

FALSE_ALARM = 1e-9
DRAWS = 400_000
# The proposals change at 2.76: one tilt on each side.
TILTS = (0.0, 1.0, 2.7, 2.8, 6.0, 40.0, 1e4)
DTYPES = ("float32", "float64")


def mean_of(tilt):
    return math.tanh(tilt / 2) / (2 * tilt) if tilt else 0.25


def variance_of(tilt):
    """(sinh z - z) / (4 z³ cosh²(z/2)), written for large z."""
    if not tilt:
        return 1 / 24
    decay = math.exp(-tilt)
    return (1 - decay**2 - 2 * tilt * decay) / (2 * tilt**3 * (1 + decay) ** 2)


def laplace(tilt, s):
    """E exp(-sω), from cosh x = exp(x) (1 + exp(-2x)) / 2."""
    high = math.sqrt((tilt**2 / 2 + s) / 2)
    low = tilt / 2
    return math.exp(low - high) * (1 + math.exp(-2 * low)) / (1 + math.exp(-2 * high))


def logdensity(omega, tilt):
    """By 30 terms of the alternating series, each where it converges fast."""
    x, drift, n = 4 * omega, tilt / 2, np.arange(30)[:, None]
    signed = (-1.0) ** n * (2 * n + 1)
    short = np.minimum(x, 1.0)
    by_images = (
        1.5 * np.log(2 / (np.pi * short))
        - 0.5 / short
        + np.log(np.sum(signed * np.exp(-2 * n * (n + 1) / short), 0))
    )
    long = np.maximum(x, 1.0)
    by_modes = -(np.pi**2) * long / 8 + np.log(
        np.sum(signed * np.exp(-n * (n + 1) * np.pi**2 * long / 2), 0)
    )
    log_cosh = drift + np.log1p(np.exp(-2 * drift)) - np.log(2)
    series = np.where(x < 1.0, by_images, by_modes) + np.log(np.pi / 2)
    return np.log(4) + log_cosh - drift**2 * x / 2 + series


@functools.cache
def oracle(tilt):
    """A grid, and what the density gives each of its points; beyond it lies less than 1e-17."""
    mean, deviation = mean_of(tilt), math.sqrt(variance_of(tilt))
    grid = np.linspace(max(mean - 9 * deviation, 1e-3 * mean), mean + 40 * deviation, 200_001)
    return grid, np.exp(logdensity(grid, tilt)) * (grid[1] - grid[0])


@functools.cache
def draws(dtype):
    found = polya_gamma(jax.random.key(11), repeated(TILTS, dtype))
    assert found.dtype == dtype
    return dict(zip(TILTS, np.asarray(found, np.float64), strict=True))


def repeated(tilts, dtype):
    """One shape for many tests, as compiling takes longer than drawing."""
    return jnp.tile(jnp.array(tilts, dtype)[:, None], (1, DRAWS))


def bernstein_bound(values, weights, count, largest):
    """Bound on the error of the mean of values in a range as wide as `largest`."""
    mean = np.sum(values * weights)
    variance = np.sum((values - mean) ** 2 * weights)
    level = math.log(2 / FALSE_ALARM)
    return math.sqrt(2 * variance * level / count) + largest * level / (3 * count)


@pytest.mark.parametrize("tilt", TILTS)
def test_oracle_has_the_known_moments(tilt):
    grid, weights = oracle(tilt)
    assert np.sum(weights) == pytest.approx(1, abs=1e-7)
    assert np.sum(grid * weights) == pytest.approx(mean_of(tilt), rel=1e-7)
    spread = np.sum((grid - mean_of(tilt)) ** 2 * weights)
    assert spread == pytest.approx(variance_of(tilt), rel=1e-5)
    assert np.sum(np.exp(-3 * grid) * weights) == pytest.approx(laplace(tilt, 3.0), rel=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.often(
    "0.0-float64",
    "1.0-float64",
    "2.7-float64",
    "2.8-float64",
    "6.0-float64",
    "40.0-float64",
    "10000.0-float64",
)
def test_distribution_function(tilt, dtype):
    grid, weights = oracle(tilt)
    found = np.searchsorted(np.sort(draws(dtype)[tilt]), grid, "right") / DRAWS
    expected = np.cumsum(weights) - weights / 2
    assert np.max(np.abs(found - expected)) <= dkw_bound(DRAWS, FALSE_ALARM) + 1e-4  # of the grid


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("multiple", [0.3, 1.0, 3.0, 30.0])
def test_laplace_transform(tilt, dtype, multiple):
    s = multiple / mean_of(tilt)
    found = np.mean(np.exp(-s * draws(dtype)[tilt]))
    # The values lie in [0, 1], an interval half as wide as that of the bound.
    assert abs(found - laplace(tilt, s)) <= hoeffding_bound(DRAWS, FALSE_ALARM) / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tilt", TILTS)
def test_mean_and_variance(tilt, dtype):
    """Bernstein's inequality, for draws within the grid: in 10^-11 of all cases one is not."""
    grid, weights = oracle(tilt)
    found, mean = draws(dtype)[tilt], mean_of(tilt)
    assert grid[0] <= found.min()
    assert found.max() <= grid[-1]
    bound = bernstein_bound(grid, weights, DRAWS, grid[-1] - grid[0])
    assert abs(found.mean() - mean) <= bound
    squares = (grid - mean) ** 2
    bound = bernstein_bound(squares, weights, DRAWS, squares.max())
    assert abs(np.mean((found - mean) ** 2) - variance_of(tilt)) <= bound


@pytest.mark.nightly
@pytest.mark.parametrize("tilt", [2.7, 2.8])
def test_where_proposals_meet(tilt):
    """Counts below four points by exact binomial tails; 11.2 million draws see 1.9e-3 or less."""
    same = repeated([tilt] * len(TILTS), "float32")
    found = np.concatenate([np.ravel(polya_gamma(jax.random.key(k), same)) for k in range(4)])
    grid, weights = oracle(tilt)
    for time in (0.15, 0.25, 0.5, 2.5):
        probability = np.interp(time / 4, grid, np.cumsum(weights) - weights / 2)
        fewest, most = binomial_range(found.size, probability, FALSE_ALARM)
        assert fewest <= np.count_nonzero(found <= time / 4) <= most


def test_series():
    q = np.linspace(0, np.exp(-4 / 2.5), 100)
    n = np.arange(30)[:, None]
    expected = np.sum((-1.0) ** n * (2 * n + 1) * q ** (n * (n + 1) / 2), 0)
    np.testing.assert_allclose(_series(jnp.asarray(q)), expected, rtol=1e-14)


def test_neighbours_are_independent():
    """E exp(-s(ω + ω')) = (E exp(-sω))², for lanes side by side and lanes far apart."""
    found = np.exp(-4 * draws("float32")[2.8])
    for step in (1, 2, DRAWS // 2):
        pairs = found[: DRAWS // 2] * np.roll(found, step)[: DRAWS // 2]
        # Every other pair shares a lane with its neighbour, so bound two sets of disjoint pairs.
        bound = hoeffding_bound(DRAWS // 4, FALSE_ALARM) / 2
        assert abs(pairs.mean() - laplace(2.8, 4.0) ** 2) <= bound


def test_law_where_the_rejected_are_more_than_places():
    """One in 15 is rejected, and one in 64 gets a place at a time; DKW, here of 100 000 draws."""
    drifts = jnp.full((100_000,), 2.75 / 2, jnp.float32)
    found = jax.jit(_exit_times, static_argnums=2)(jax.random.key(5), drifts, 1 / 64) / 4
    grid, weights = oracle(2.75)
    below = np.searchsorted(np.sort(np.ravel(found)), grid, "right") / found.size
    assert np.max(np.abs(below - np.cumsum(weights))) <= dkw_bound(found.size, FALSE_ALARM) + 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.often("float64")
def test_sign_of_the_tilt_does_not_matter(dtype):
    found = polya_gamma(jax.random.key(11), -repeated(TILTS, dtype))
    np.testing.assert_array_equal(found, list(draws(dtype).values()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.often("float32")
def test_extreme_tilts(dtype):
    """1/ω = 2|z| for large tilts, up to 20 deviations, √(2/|z|) each."""
    tilts = (-0.0, 1e-30, 30.0, 1e4, -1e4, 1e9, 1e30)
    found = np.asarray(polya_gamma(jax.random.key(0), repeated(tilts, dtype)), np.float64)
    assert np.all(np.isfinite(found))
    assert np.all(found > 0)
    for tilt, omega in zip(tilts[3:], found[3:], strict=True):
        assert np.all(np.abs(2 * abs(tilt) * omega - 1) < 20 * (2 / abs(tilt)) ** 0.5 + 1e-5)


def test_not_a_number_ends_the_loop():
    found = polya_gamma(jax.random.key(0), jnp.array([jnp.nan, 1.0, jnp.inf]))
    assert np.isnan(found[0])
    assert found[1] > 0
    assert found[2] == 0


@pytest.mark.parametrize("shape", [(), (0,)])
def test_any_shape(shape):
    assert polya_gamma(jax.random.key(0), jnp.ones(shape, "float32")).shape == shape
