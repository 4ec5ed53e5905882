"""`stable.symmetric`: a law with fixed parameters, as SciPy has them, in NumPy and in JAX."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound

from levymc import stable

POINTS = np.array([-1e6, -30.0, -2.5, 0.0, 3.0, 3.7, 1e9])
LEVELS = np.array([1e-12, 0.01, 0.3, 0.5, 0.99])
FUNCTIONS = {"pdf": POINTS, "logpdf": POINTS, "cdf": POINTS, "sf": POINTS}
QUANTILES = {"ppf": LEVELS, "isf": LEVELS}


@pytest.mark.parametrize("name", [*FUNCTIONS, *QUANTILES])
@pytest.mark.parametrize(
    ("alpha", "peer"), [(1.0, stats.cauchy(3.0, 2.0)), (2.0, stats.norm(3.0, 2.0 * 2**0.5))]
)
def test_it_is_scipy_s_law_where_that_is_elementary(name, alpha, peer):
    points = {**FUNCTIONS, **QUANTILES}[name]
    if alpha == 2.0:
        points = np.clip(points, -40.0, 40.0)
    with np.errstate(all="ignore"):
        expected = getattr(peer, name)(points)
    found = getattr(stable.symmetric(alpha, 3.0, 2.0), name)(points)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("name", [*FUNCTIONS, *QUANTILES])
@pytest.mark.often("cdf", "sf", "ppf", "isf")
def test_numpy_and_jax_agree(name):
    """In NumPy it is another code path, with the same tables."""
    points = {**FUNCTIONS, **QUANTILES}[name]
    alphas = np.array([0.5, 0.9, 1.4, 1.8, 2.0])[:, None]
    law = stable.symmetric(alphas, np.array([3.0]), 2.0)
    of_numpy, of_jax = (getattr(law, name)(given) for given in (points, jnp.asarray(points)))
    assert isinstance(of_jax, jax.Array)
    assert of_numpy.shape == of_jax.shape == (5, points.size)
    np.testing.assert_allclose(of_numpy, of_jax, rtol=1e-10, atol=1e-300)


def test_numbers_and_dtypes_come_out_as_they_went_in():
    law = stable.symmetric(1.5, 3, 2)
    for name in (*FUNCTIONS, *QUANTILES):
        of = getattr(law, name)
        assert isinstance(of(0.5), float)
        assert of(np.float32([0.5])).dtype == np.float32
        assert of([0, 1]).dtype == np.float64
        assert of(jnp.asarray([0.5], jnp.float32)).dtype == jnp.float32
        assert of(jnp.asarray([0.5], jnp.bfloat16)).dtype == jnp.bfloat16


def test_double_precision_whatever_that_of_jax_is():
    script = (
        "import numpy as np; from levymc import stable; "
        "law = stable.symmetric(1.0, 3.0, 2.0); "
        "print(repr(float(law.pdf(4.0))), repr(float(law.isf(1e-20))), "
        "law.fit(np.random.default_rng(0).standard_cauchy(500)).is_converged)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    density, quantile, is_converged = done.stdout.split()
    assert float(density) == pytest.approx(stats.cauchy(3.0, 2.0).pdf(4.0), rel=1e-13)
    assert float(quantile) == pytest.approx(stats.cauchy(3.0, 2.0).isf(1e-20), rel=1e-13)
    assert is_converged == "True"


def test_the_upper_tail_has_its_own_quantiles():
    law = stable.symmetric(1.5, 0.0, 2.0)
    far = law.isf(1e-40)
    assert law.sf(far) == pytest.approx(1e-40, rel=1e-12)
    assert far == -law.ppf(1e-40)


def test_edges_of_quantiles():
    found = stable.symmetric(1.5, 3.0).ppf([0.0, 0.5, 1.0, -0.1, 1.1])
    np.testing.assert_array_equal(found, [-np.inf, 3.0, np.inf, np.nan, np.nan])


def test_moments_are_scipy_s():
    alphas = np.array([0.7, 1.0, 1.5, 2.0])
    law = stable.symmetric(alphas, 3.0, 2.0)
    np.testing.assert_array_equal(law.median(), np.full(4, 3.0))
    np.testing.assert_array_equal(law.mean(), [np.nan, np.nan, 3.0, 3.0])
    np.testing.assert_array_equal(law.var(), [np.inf, np.inf, np.inf, 8.0])
    np.testing.assert_array_equal(law.std(), [np.inf, np.inf, np.inf, 8.0**0.5])
    low, high = law.interval(0.9)
    np.testing.assert_allclose(law.cdf(high) - law.cdf(low), 0.9, rtol=1e-12)
    np.testing.assert_allclose(low + high, 6.0, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.8, 1.5, 2.0])
def test_draws_follow_the_law(alpha):
    """False alarm 1e-9 (DKW).  Detects a distance of the distribution functions of 0.021."""
    law = stable.symmetric(alpha, -1.0, 3.0)
    draws = law.rvs(100_000, random_state=0)
    assert isinstance(draws, np.ndarray)
    assert distance_to(draws, law.cdf) < dkw_bound(100_000, 1e-9)


def test_seeds_of_either_kind():
    law = stable.symmetric(np.array([1.2, 1.7]), 1.0, 2.0)
    assert law.rvs(random_state=0).shape == (2,)
    assert law.rvs((5, 2), random_state=0).shape == (5, 2)
    assert isinstance(stable.symmetric(1.5).rvs(random_state=0), float)
    np.testing.assert_array_equal(law.rvs(random_state=3), law.rvs(random_state=3))
    assert np.all(law.rvs() != law.rvs())
    generator, old = np.random.default_rng(0), np.random.RandomState(0)
    for state in (generator, old):
        assert np.all(law.rvs(random_state=state) != law.rvs(random_state=state))
    key = jax.random.key(1)
    draws = law.rvs((3, 2), key=key)
    assert isinstance(draws, jax.Array)
    expected = 1.0 + stable.sample(key, law.alpha, (3, 2), scale=2.0)
    np.testing.assert_array_equal(draws, expected)


@pytest.mark.parametrize("name", ["alpha", "loc", "scale"])
@pytest.mark.parametrize("size", [(), 1, (4, 1), 3])
def test_each_entry_has_a_draw_of_its_own(name, size):
    """Before, entries of different `loc` shared one."""
    law = stable.symmetric(**{"alpha": 1.5, name: np.full(3, 1.5)})
    draws = law.rvs(size, random_state=0)
    assert draws.shape == np.broadcast_shapes(np.empty(size).shape, (3,))
    assert len(np.unique(draws)) == draws.size


@pytest.mark.parametrize("name", ["alpha", "loc", "scale"])
def test_a_size_that_does_not_fit_is_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must broadcast against the shape"):
        stable.symmetric(**{"alpha": 1.5, name: np.full(3, 1.5)}).rvs(2)


def test_it_is_a_pytree_that_can_be_differentiated():
    def total(law):
        return jnp.sum(law.logpdf(jnp.asarray([0.5, 4.0])))

    def by_hand(alpha, loc, scale):
        return jnp.sum(stable.logpdf(jnp.asarray([0.5, 4.0]) - loc, alpha, scale))

    slope = jax.jit(jax.grad(total))(stable.symmetric(1.5, 3.0, 2.0))
    expected = jax.grad(by_hand, argnums=(0, 1, 2))(1.5, 3.0, 2.0)
    found = (slope.alpha, slope.loc, slope.scale)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    many = jax.vmap(lambda alpha: stable.symmetric(alpha).cdf(1.0))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(many, [0.75, stats.norm.cdf(1.0, scale=2**0.5)], rtol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stable.symmetric(0.3), r"`alpha` must lie in \[0.5, 2\], got 0.3. The law"),
        (lambda: stable.symmetric(1.5, np.nan), "`loc` must be finite, got nan. It is"),
        (lambda: stable.symmetric(1.5, 0, -1), "`scale` must be positive and finite, got -1. Give"),
        (lambda: stable.symmetric([1.1, 1.2], 0, [1, 1, 1]), r"`scale` must broadcast .* \(3,\)"),
        (lambda: stable.symmetric(1.5).pdf(np.nan), "`x` must be finite, got nan. Remove"),
        (lambda: stable.symmetric(1.5).interval(95), r"`confidence` must lie in \[0, 1\], got 95"),
        (lambda: stable.symmetric(1.5).rvs(-1), r"`size` must have no negative size, got -1"),
        (lambda: stable.symmetric(1.5).rvs(3, "seed"), "`random_state` must be a seed, got 'seed'"),
        (lambda: stable.symmetric(1.5).rvs(3, key=3), "`key` must be a JAX random key, got int 3"),
        (
            lambda: stable.symmetric(1.5).rvs(3, 0, key=jax.random.key(0)),
            "`random_state` must be None beside a `key`, got 0",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        make()
