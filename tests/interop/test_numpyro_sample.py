"""NumPyro's models by one call of `levymc.auto`: evidence, names, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.run import StoreError

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

from tests.interop.numpyro_models import conjugate, conjugate_log_evidence  # noqa: E402

from levymc.interop._evidence import Loose, with_meaning  # noqa: E402
from levymc.interop.numpyro import sample  # noqa: E402

KEY = jax.random.key(0)
Y = np.array([0.3, 2.4, 1.1, -0.8, 1.9])


@pytest.fixture(scope="module")
def fit():
    return sample(conjugate, KEY, Y, budget=4000, progress=False)


def test_evidence_is_the_marginal_likelihood(fit):
    """To 0.05: the error is a hundredth on a normal posterior; a constant forgotten is 0.9."""
    found = fit.log_evidence
    assert abs(found.value - conjugate_log_evidence(Y)) < 0.05
    assert found.standard_error < 0.05


def test_the_posterior_is_normal(fit):
    """Mean and standard deviation; 0.1 is more than six standard errors of 400 draws or more."""
    precision = 1 / 4 + len(Y) / 1.5**2
    draws = fit.posterior["mu"]
    assert draws.shape == (fit.result.num_chains, fit.result.num_draws)
    assert draws.size >= 400
    assert abs(draws.mean() - (1 / 4 + Y.sum() / 1.5**2) / precision) < 0.2 / np.sqrt(precision)
    assert abs(draws.std() * np.sqrt(precision) - 1) < 0.2


def test_arviz_has_the_names_and_the_log_density(fit):
    pytest.importorskip("arviz")
    data = fit.to_arviz()
    assert data.posterior["mu"].dims == ("chain", "draw")
    assert data.observed_data["y"].dims == ("data",)
    np.testing.assert_array_equal(data.observed_data["y"], Y)
    pieces = levymc.interop.numpyro.from_numpyro(conjugate, Y)
    lp = pieces.logdensity_fn({"mu": jnp.asarray(fit.posterior["mu"][1, 7])})
    np.testing.assert_allclose(data.sample_stats["lp"].values[1, 7], lp, rtol=1e-6)


def test_a_stored_call_goes_on_and_is_no_other(fit, tmp_path):
    pytest.importorskip("zarr")
    how = {"budget": 4000, "progress": False, "store": tmp_path / "run"}
    first = sample(conjugate, KEY, Y, **how)
    again = sample(conjugate, KEY, Y, **how)
    np.testing.assert_array_equal(first.posterior["mu"], fit.posterior["mu"])
    np.testing.assert_array_equal(again.posterior["mu"], first.posterior["mu"])
    with pytest.raises(StoreError, match="density"):
        sample(conjugate, KEY, Y + 1, **how)


def test_evidence_is_that_of_what_was_seen():
    """Where NumPyro imputes the rest, to 0.05: the error is a hundredth, as without it."""
    seen = np.array([True, False, True, True, False])

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(1.0, 2.0))
        with numpyro.plate("data", len(y)):
            numpyro.sample("y", dist.Normal(mu, 1.5), obs=y, obs_mask=seen)

    found = sample(model, KEY, Y, budget=4000, progress=False).log_evidence
    assert abs(found.value - conjugate_log_evidence(Y[seen])) < 0.05
    assert found.standard_error < 0.05


def test_a_factor_is_noted_beside_the_evidence():
    """A likelihood by a factor gives the same number as one by data."""

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(1.0, 2.0))
        numpyro.factor("fit", dist.Normal(mu, 1.5).log_prob(y))

    fit = sample(model, KEY, Y, budget=4000, progress=False)
    assert abs(fit.log_evidence.value - conjugate_log_evidence(Y)) < 0.05
    lines = fit.report.splitlines()
    place = lines.index("Log evidence:")
    assert lines[place + 1].endswith("given the modes found")
    assert lines[place + 2].startswith("  with 'fit' as a factor: the marginal likelihood if that")


def test_what_is_said_of_the_evidence(fit):
    scaled = with_meaning(fit.result, Loose(scaled=("y",)))
    assert scaled.log_evidence == fit.log_evidence
    assert "with the log likelihood of 'y' multiplied: not the marginal" in scaled.report
    none = with_meaning(fit.result, Loose(unnormalised=("a", "b"), factors=("c",)))
    assert np.isnan(none.log_evidence.value)
    assert "none, as the prior of 'a', 'b' does not integrate to one" in none.report
    assert "factor" not in none.report
    assert with_meaning(fit.result, Loose()) is fit.result
    assert with_meaning(none, Loose(factors=("c",))).report.count("Log evidence:") == 1


def test_improper_priors_have_no_evidence():
    def flat(y):
        mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    fit = sample(flat, KEY, Y, budget=4000, progress=False)
    assert np.isnan(fit.log_evidence.value)
    assert "none, as the prior of 'mu' is improper" in fit.report
    assert fit.report.count("Log evidence:") == 1
    assert abs(fit.posterior["mu"].mean() - Y.mean()) < 0.2 / np.sqrt(len(Y)) * 2
