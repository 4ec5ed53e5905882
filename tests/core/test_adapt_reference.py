"""The mixture that tempering starts from: it is normalised, and its draws follow it.

Statistical bounds: false-alarm rate at most 1e-8 each, 5 of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from tests.bounds import distance_to, dkw_bound
from tests.core import mixtures

from levymc.adapt import _reference
from levymc.adapt._reference import Fit, Reference, assemble, choose, log_t

FALSE_ALARM = 1e-8
COUNT = 100_000


def laws(reference):
    """Weight, mean, factor and degrees of all t laws that a mixture is made of, shells apart."""
    for number, log_weight in enumerate(np.asarray(reference.log_weights)):
        shell = float(reference.shells[number])
        mean, factor = (np.asarray(a[number]) for a in (reference.means, reference.factors))
        if np.exp(log_weight) > 0:
            yield np.exp(log_weight) * (1 - shell), mean, factor, float(reference.degrees[number])
            if shell:
                yield np.exp(log_weight) * shell, mean, np.sqrt(3.0) * factor, 5.0


def test_the_density_is_that_of_the_laws_it_is_made_of():
    """By SciPy's multivariate t, far out, too."""
    reference = mixtures.misfit(jnp.float64)
    points = np.random.default_rng(0).standard_cauchy((200, 2)) * 3
    found = jax.vmap(reference.logdensity)(points)
    wanted = sum(
        weight * stats.multivariate_t(mean, factor @ factor.T, df=degrees).pdf(points)
        for weight, mean, factor, degrees in laws(reference)
    )
    np.testing.assert_allclose(found, np.log(wanted), rtol=1e-9)
    assert sum(weight for weight, *_ in laws(reference)) == pytest.approx(1, abs=1e-12)


def test_the_density_integrates_to_one():
    """On a line that is bent into an interval, as its tails are heavy."""
    fit = Fit(
        np.array([0.2, 0.8]),
        np.array([[-1.0], [4.0]]),
        np.array([[[0.3]], [[2.0]]]),
        np.array([1.0, np.inf]),
        np.arange(2),
    )
    density = jax.jit(lambda u: jnp.exp(assemble(fit, float).logdensity(jnp.tan(u)[None])))
    bent = lambda u: float(density(u)) / np.cos(u) ** 2  # noqa: E731
    total, _ = integrate.quad(bent, -np.pi / 2, np.pi / 2, points=[-0.8, 1.33], limit=200)
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_draws_follow_the_density(dtype):
    """On two projections, on which a multivariate t is a t.

    DKW at 6e5 draws and 1e-8 detects 0.008 in the CDF, in float32: without shells it is off by
    0.012, without their spread by 0.011, with 3 degrees for infinitely many by 0.023.
    """
    reference = mixtures.misfit(dtype)
    count = 600_000 if dtype == jnp.float32 else COUNT
    keys = jax.random.split(jax.random.key(1), count)
    draws = np.asarray(jax.jit(jax.vmap(reference.sample))(keys))
    assert draws.dtype == dtype
    for direction in (np.array([1.0, 0.0]), np.array([0.6, -0.8])):

        def cdf(u, direction=direction):
            parts = [
                weight
                * stats.t(degrees).cdf((u - mean @ direction) / np.linalg.norm(direction @ factor))
                for weight, mean, factor, degrees in laws(reference)
            ]
            return sum(parts)

        assert distance_to(draws @ direction, cdf) < dkw_bound(count, FALSE_ALARM)


def test_radii_of_draws_follow_the_law_of_one_component():
    """|z|²/d of a t law is Fisher's F; of d coordinates that share one χ², unlike projections."""
    fit = Fit(np.ones(1), np.zeros((1, 5)), np.eye(5)[None], np.full(1, 3.0), np.zeros(1, int))
    whole = assemble(fit, jnp.float32)
    weights = jnp.where(whole.is_listed, 0.0, _reference.NO_WEIGHT)
    alone = Reference(
        weights, *(getattr(whole, n) for n in ("means", "factors", "inverses", "degrees")),
        0 * whole.shells, whole.is_listed,
    )  # fmt: skip
    draws = jax.jit(jax.vmap(alone.sample))(jax.random.split(jax.random.key(2), COUNT))
    squares = np.sum(np.asarray(draws, float) ** 2, axis=1) / 5
    assert distance_to(squares, stats.f(5, 3).cdf) < dkw_bound(COUNT, FALSE_ALARM)


def test_choose_inverts_the_distribution_function():
    shares = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    with np.errstate(divide="ignore"):
        logits = jnp.maximum(jnp.log(shares), _reference.NO_WEIGHT)
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    found = jax.vmap(choose, (None, 0))(logits + 3.0, uniforms)
    np.testing.assert_array_equal(np.bincount(found, minlength=6) / 10_000, shares)
    ends = jnp.array([0.0, 1 - 1e-16, 1.0])  # as close to 1 as rounding can come
    assert jax.vmap(choose, (None, 0))(logits, ends).tolist() == [1, 4, 4]


def test_the_host_computes_the_same_t_density():
    squares = np.geomspace(1e-6, 1e12, 50)
    for degrees in (1.0, 5.0, 30.0, np.inf):
        here = log_t(squares, np.full(50, degrees), 7, np)
        there = log_t(jnp.asarray(squares), jnp.full(50, degrees), 7)
        np.testing.assert_allclose(here, there, rtol=1e-12)
