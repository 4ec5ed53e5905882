"""Posteriors of PyMC models of everyday use, beside PyMC's own NUTS where NUTS is right."""

import itertools

import jax
import numpy as np
import pytest
from tests.interop import pymc_models
from tests.interop.pymc_models import from_value, greatest_difference

import levymc
from levymc.interop.pymc import sample

pm = pytest.importorskip("pymc")

# Under a normal law 6 standard errors are passed with probability 2e-9; fewer than 200 numbers are
# compared in any of these tests, so that false alarms are rarer than 1e-6, as far as effective
# sample sizes and the normal law hold.  With 1000 effective draws on either side, a mean that is
# wrong by 0.27 posterior standard deviations is seen, or a probability by 0.13.
MOST = 6.0

pytestmark = [
    # PyTensor warns where it has no BLAS, which none of these models is slow without.
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
    pytest.mark.nightly,
]


def by_nuts(model, **more):
    """PyMC's own NUTS, unless another is named, by name, with axes (chain, draw, …)."""
    given = {"draws": 1500, "tune": 1000, "chains": 4, "cores": 1, "random_seed": 1}
    given |= {"nuts_sampler": "pymc", "progressbar": False, "compute_convergence_checks": False}
    with model:
        found = pm.sample(**given | more)
    return {str(name): found.posterior[name].values for name in found.posterior.data_vars}


def compare(model, ours, **more):
    theirs = by_nuts(model, **more)
    assert set(theirs) == set(ours.posterior)
    for name, draws in theirs.items():
        assert greatest_difference(ours.posterior[name], draws) < MOST, name


def test_eight_schools():
    model = pymc_models.eight_schools()
    ours = sample(model, jax.random.key(0), budget=150_000, progress=False)
    compare(model, ours, target_accept=0.95)
    assert ours.to_arviz().posterior["theta"].dims == ("chain", "draw", "school")


def test_hierarchical_logistic_regression():
    model = pymc_models.hierarchical_logistic()
    ours = sample(model, jax.random.key(0), budget=150_000, progress=False)
    compare(model, ours, target_accept=0.95)


# PyMC's own NUTS, which Numba compiles from version 6 on, calls back for JAX's density.
@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
def test_robust_regression_with_stable_noise_of_unknown_alpha():
    model = pymc_models.robust_regression()
    ours = sample(model, jax.random.key(0), budget=100_000, progress=False)
    compare(model, ours)


# PyMC 6 takes them otherwise, PyMC 5 only so.
@pytest.mark.filterwarnings("ignore:`nuts_sampler_kwargs` is deprecated:FutureWarning")
def test_lotka_volterra():
    """Through a scan of PyTensor's, over which PyMC's own NUTS takes more than half an hour."""
    model = pymc_models.lotka_volterra()
    ours = sample(model, jax.random.key(0), budget=100_000, progress=False)
    together = {"chain_method": "vectorized"}
    compare(model, ours, nuts_sampler="numpyro", nuts_sampler_kwargs=together, target_accept=0.9)
    assert ours.to_arviz().posterior["rates"].dims == ("chain", "draw", "rate")


def test_a_horseshoe_is_right_or_flagged():
    """Its funnels are hard, for NUTS, too; its scales may have no means, its coefficients do."""
    model = pymc_models.horseshoe()
    ours = sample(model, jax.random.key(0), budget=100_000, progress=False)
    if not ours.is_flagged:
        theirs = by_nuts(model, target_accept=0.97)
        for name in ("beta", "scale"):
            assert greatest_difference(ours.posterior[name], theirs[name]) < MOST, name


@pytest.mark.parametrize("num_components", [2, 3])
def test_labels_of_a_mixture_are_exchanged(num_components):
    """All k! orders of the means have the same probability, which no chain of NUTS sees.

    What does not depend on labels, the sorted means above all, NUTS has right.
    """
    model = pymc_models.mixture(40 * num_components, num_components)
    ours = sample(model, jax.random.key(0), budget=200_000, progress=False)
    means = ours.posterior["mean"]
    orders = np.argsort(means, axis=-1)
    permutations = list(itertools.permutations(range(num_components)))
    for order in permutations:
        assert from_value(np.all(orders == order, axis=-1), 1 / len(permutations)) < MOST
    # Beside these there may be a mode of no weight, with all data in one component.
    assert ours.modes.weight[: len(permutations)].sum() > 0.99
    theirs = by_nuts(model)
    assert greatest_difference(np.sort(means), np.sort(theirs["mean"])) < MOST
    assert greatest_difference(ours.posterior["sigma"], theirs["sigma"]) < MOST


def test_pymc_goes_on_from_the_draws():
    """Pointwise likelihoods and predictions, which PyMC computes from ArviZ's groups."""
    model = pymc_models.conjugate()
    data = sample(model, jax.random.key(0), budget=6000, progress=False).to_arviz()
    with model:
        found = pm.compute_log_likelihood(data, progressbar=False)
        predicted = pm.sample_posterior_predictive(data, progressbar=False, random_seed=1)
    assert found.log_likelihood["y"].dims == ("chain", "draw", "number")
    assert predicted.posterior_predictive["y"].shape == found.log_likelihood["y"].shape


def test_a_store_goes_on_and_notices_other_data(tmp_path):
    model = pymc_models.conjugate()
    given = {"budget": 6000, "progress": False, "store": tmp_path / "run"}
    first, again = (sample(model, jax.random.key(0), **given).posterior for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    with model:
        pm.set_data({"numbers": np.array([0.5, 1.0, 3.001])})
    with pytest.raises(levymc.run.StoreError, match="density"):
        sample(model, jax.random.key(0), **given)
