"""The stable law as a NumPyro distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import distance_to, dkw_bound, hoeffding_bound

from levymc import stable

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

from levymc.interop.numpyro import SymmetricStable  # noqa: E402

KEY = jax.random.key(4)
POINTS = np.array([-30.0, -1.0, 0.0, 0.7, 3.0, 1e4])


def test_it_is_cauchy_at_one_and_normal_at_two():
    cauchy, normal = dist.Cauchy(1.0, 2.0), dist.Normal(1.0, 2.0 * np.sqrt(2.0))
    for law, known in ((1.0, cauchy), (2.0, normal)):
        ours = SymmetricStable(law, 1.0, 2.0)
        np.testing.assert_allclose(ours.log_prob(POINTS), known.log_prob(POINTS), rtol=1e-10)
        np.testing.assert_allclose(ours.cdf(POINTS), known.cdf(POINTS), rtol=1e-8, atol=1e-300)
        np.testing.assert_allclose(ours.icdf(0.9), known.icdf(0.9), rtol=1e-8)


def test_moments_are_those_that_exist():
    law = SymmetricStable(jnp.array([0.9, 1.5, 2.0]), 3.0, 0.5)
    np.testing.assert_array_equal(law.mean, [np.nan, 3.0, 3.0])
    np.testing.assert_array_equal(law.variance, [np.inf, np.inf, 0.5])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_prob_has_gradients_in_everything(dtype):
    """Against differences of the law in float64."""
    at = np.array([1.6, 0.4, 0.7])  # α, μ, σ
    bar = 1e-6 if dtype == "float64" else 1e-4
    found = jax.grad(lambda p: SymmetricStable(*p).log_prob(jnp.asarray(2.5, dtype)))(
        jnp.asarray(at, dtype)
    )
    assert found.dtype == dtype

    def value(p):
        return float(stable.logpdf(2.5 - p[1], p[0], p[2]))

    step = 1e-5
    for place, unit in enumerate(np.eye(3)):
        difference = (value(at + step * unit) - value(at - step * unit)) / (2 * step)
        np.testing.assert_allclose(found[place], difference, rtol=bar)


@pytest.mark.parametrize("alpha", [1.4, jnp.array(1.4)])
@pytest.mark.often("1.4")
def test_draws_follow_the_law(alpha):
    """DKW at a false-alarm rate of 1e-9: a distance of 0.015 would be seen."""
    law = SymmetricStable(alpha, 3.0, 0.5)
    draws = np.asarray(law.sample(KEY, (200_000,)), np.float64)
    assert distance_to(draws, lambda x: np.asarray(law.cdf(x))) < dkw_bound(len(draws), 1e-9)


def test_draws_are_differentiable_in_alpha():
    r"""d/dα E cos(ωX) = -|ω|^α log|ω| e^{-|ω|^α}, by the derivative of the draws.

    The derivative's terms -ω sin(ωX) dX/dα are cut at 20, which changes the mean by less than the
    bound; Hoeffding at 1e-9 on what is left.  A derivative of 0 would be off by 0.21.
    """
    omega, alpha, count = 2.0, 1.5, 400_000

    def draws(a):
        return SymmetricStable(a).sample(KEY, (count,))

    x, change = jax.jvp(draws, (jnp.array(alpha),), (jnp.array(1.0),))
    terms = np.clip(np.asarray(-omega * jnp.sin(omega * x) * change), -20, 20)
    exact = -(omega**alpha) * np.log(omega) * np.exp(-(omega**alpha))
    assert abs(terms.mean() - exact) < 20 * hoeffding_bound(count, 1e-9)


def test_it_broadcasts_expands_and_passes_through_jit():
    law = SymmetricStable(jnp.array([1.2, 1.8]), jnp.zeros((3, 1)), 1.0)
    assert law.batch_shape == (3, 2)
    assert law.sample(KEY, (4,)).shape == (4, 3, 2)
    assert law.expand((5, 3, 2)).to_event(1).log_prob(jnp.zeros((5, 3, 2))).shape == (5, 3)
    again = jax.jit(lambda law: law)(law)
    np.testing.assert_array_equal(again.alpha, law.alpha)
    raw = jax.random.PRNGKey(0)
    assert SymmetricStable(1.5).sample(raw).shape == ()


@pytest.mark.parametrize(
    ("arguments", "name"), [((2.5,), "alpha"), ((0.3,), "alpha"), ((1.5, 0.0, -1.0), "scale")]
)
def test_arguments_out_of_range_are_refused(arguments, name):
    with pytest.raises(ValueError, match=name):
        SymmetricStable(*arguments, validate_args=True)
    with pytest.raises(ValueError, match=f"`{name}` must"):
        SymmetricStable(*arguments, validate_args=False).log_prob(0.0)
