"""Models of real use: as NUTS where NUTS is right, and with the right mode weights where it is not.

Means and quantiles are compared within six standard errors of their difference, as ArviZ estimates
them: a false alarm has a probability of 2e-9 for each of some forty numbers a model.  With 1000
effective draws on either side a mean is seen that is off by 0.27 posterior standard deviations.
"""

import runpy
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

numpyro = pytest.importorskip("numpyro")
arviz = pytest.importorskip("arviz")

from tests.interop import hudson_bay, regressions  # noqa: E402
from tests.interop.numpyro_models import (  # noqa: E402
    SCHOOLS_ERROR,
    SCHOOLS_Y,
    eight_schools,
    hierarchical_data,
    hierarchical_logistic,
    horseshoe,
    lotka_volterra,
    mixture,
    mixture_by_labels,
    mixture_data,
    robust_regression,
)

from levymc.interop.numpyro import sample  # noqa: E402

KEY = jax.random.key(11)
EXAMPLE = Path(__file__).parents[2] / "examples" / "numpyro_mixture.py"
QUANTILES = (0.05, 0.5, 0.95)


def by_nuts(model, *args, num_samples=2000):
    mcmc = numpyro.infer.MCMC(
        # From the prior's middle: a chain that starts far out in Lotka and Volterra's stays there.
        numpyro.infer.NUTS(
            model, target_accept_prob=0.95, init_strategy=numpyro.infer.init_to_median()
        ),
        num_warmup=1000,
        num_samples=num_samples,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(12), *args)
    return {name: np.asarray(leaf) for name, leaf in mcmc.get_samples(True).items()}


def assert_same_law(ours, theirs, *, has_means=True):
    """Not the means where there may be none."""
    assert set(ours) == set(theirs)
    for name, draws in ours.items():
        for index in np.ndindex(draws.shape[2:]):
            place = (slice(None), slice(None), *index)
            one, other = np.asarray(draws[place], float), np.asarray(theirs[name][place], float)
            for level in QUANTILES:
                errors = [mcse(draws, method="quantile", prob=level) for draws in (one, other)]
                apart = abs(np.quantile(one, level) - np.quantile(other, level))
                assert apart < 6 * np.hypot(*errors), (name, index, level)
            if has_means:
                errors = [mcse(draws, method="mean") for draws in (one, other)]
                assert abs(one.mean() - other.mean()) < 6 * np.hypot(*errors), (name, index)


def mcse(draws, **of):
    return np.asarray(arviz.mcse(draws, **of)).item()  # of one number, or an array with it


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (eight_schools, (SCHOOLS_ERROR, SCHOOLS_Y)),
        (hierarchical_logistic, hierarchical_data()),
        (robust_regression, regressions.with_stable_noise()),
        (lotka_volterra, (hudson_bay.PELTS,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_means_and_quantiles_are_those_of_nuts(model, arguments):
    fit = sample(model, KEY, *arguments, budget=100_000, progress=False)
    assert_same_law(fit.posterior, by_nuts(model, *arguments))


@pytest.mark.nightly
def test_a_horseshoe_is_right_or_flagged():
    """Its funnels are hard; NUTS diverges on one in a hundred trajectories itself."""
    data = regressions.sparse()
    fit = sample(horseshoe, KEY, *data, budget=100_000, progress=False)
    if not fit.is_flagged:
        assert_same_law(fit.posterior, by_nuts(horseshoe, *data), has_means=False)


def assert_labels_are_alike(fit):
    """Both labellings have half of the draws, to 0.1; one that is missed has none.

    With few data there is a third mode, of a few draws in 10 000: one component for all.
    """
    np.testing.assert_allclose(fit.modes.weight[:2], 0.5, atol=0.1)
    is_ordered = fit.posterior["loc"][..., 0] < fit.posterior["loc"][..., 1]
    assert abs(is_ordered.mean() - 0.5) < 0.1


@pytest.mark.nightly
def test_labels_of_a_mixture_switch():
    """0.1 is more than six standard errors of the weights, which are 0.015 at this budget."""
    fit = sample(mixture, KEY, mixture_data(30), budget=8000, progress=False)
    assert_labels_are_alike(fit)


@pytest.mark.nightly
def test_labels_of_a_mixture_switch_where_they_are_summed_out():
    """And the two ways to write the model have the same evidence, to 0.1."""
    pytest.importorskip("funsor")
    y = mixture_data()
    summed = sample(mixture_by_labels, KEY, y, budget=40_000, progress=False)
    assert_labels_are_alike(summed)
    direct = sample(mixture, KEY, y, budget=40_000, progress=False)
    assert abs(summed.log_evidence.value - direct.log_evidence.value) < 0.1


@pytest.mark.nightly
def test_the_example_finds_six_labellings(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--small", "--out", str(picture)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert "6 found in" in said
    assert str(picture) in said
    assert picture.read_bytes().startswith(b"\x89PNG")
