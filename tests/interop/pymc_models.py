"""PyMC models of everyday use, and how far two samples of one law may be apart."""

import arviz
import numpy as np
import pytest
from tests.interop import hudson_bay, regressions

import levymc

pm = pytest.importorskip("pymc")
pytensor = pytest.importorskip("pytensor")

EIGHT_SCHOOLS = {
    "effect": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "error": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def conjugate():
    """A beta and a normal prior, each with its conjugate likelihood: posterior and evidence known.

    Seven of ten, a priori Beta(2, 3); three numbers about x, a priori N(0, 2²), with errors of 1.
    """
    with pm.Model(coords={"number": ["a", "b", "c"], "way": ["there", "back"]}) as model:
        rate = pm.Beta("rate", 2.0, 3.0)
        pm.Binomial("hits", 10, rate, observed=7)
        x = pm.Normal("x", 0.0, 2.0)
        numbers = pm.Data("numbers", np.array([0.5, 1.0, 3.0]), dims="number")
        pm.Normal("y", x, 1.0, observed=numbers, dims="number")
        pm.Deterministic("both", pm.math.stack([x, rate]), dims="way")
    return model


def eight_schools():
    """Not centred, so that NUTS is right about it."""
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        shift = pm.Normal("shift", 0.0, 1.0, dims="school")
        theta = pm.Deterministic("theta", mu + tau * shift, dims="school")
        pm.Normal("effect", theta, EIGHT_SCHOOLS["error"], observed=EIGHT_SCHOOLS["effect"])
    return model


def hierarchical_logistic(num_groups=6, num_each=40):
    """Slopes of groups, around a common one."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(num_groups), num_each)
    predictor = rng.normal(size=len(group))
    slopes = 1.0 + 0.7 * rng.normal(size=num_groups)
    outcome = rng.random(len(group)) < 1 / (1 + np.exp(-slopes[group] * predictor + 0.5))
    with pm.Model(coords={"group": range(num_groups)}) as model:
        intercept = pm.Normal("intercept", 0.0, 2.0)
        slope = pm.Normal("slope", 0.0, 2.0)
        spread = pm.HalfNormal("spread", 1.0)
        own = pm.Normal("own", 0.0, 1.0, dims="group")
        logit = intercept + (slope + spread * own[group]) * predictor
        pm.Bernoulli("outcome", logit_p=logit, observed=outcome)
    return model


def mixture(num_data=60, num_components=2):
    """Components that are alike but for their names: k! modes of the same weight."""
    rng = np.random.default_rng(2)
    centers = 4.0 * np.arange(num_components)
    y = rng.normal(centers[rng.integers(num_components, size=num_data)], 1.0)
    with pm.Model(coords={"component": range(num_components)}) as model:
        weight = pm.Dirichlet("weight", np.full(num_components, 4.0), dims="component")
        mean = pm.Normal("mean", 2.0, 5.0, dims="component")
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.NormalMixture("y", weight, mean, sigma, observed=y)
    return model


def horseshoe():
    """Regression with few large coefficients."""
    x, y = regressions.sparse()
    with pm.Model(coords={"feature": range(x.shape[1])}) as model:
        tau = pm.HalfCauchy("tau", 0.3)
        lam = pm.HalfCauchy("lam", 1.0, dims="feature")
        z = pm.Normal("z", 0.0, 1.0, dims="feature")
        beta = pm.Deterministic("beta", z * lam * tau, dims="feature")
        scale = pm.HalfNormal("scale", 1.0)
        pm.Normal("y", x @ beta, scale, observed=y)
    return model


def robust_regression():
    """Stable noise of unknown α, whose density JAX computes for PyTensor, too."""
    x, y = regressions.with_stable_noise()
    logpdf = pytensor.wrap_jax(levymc.stable.logpdf)
    with pm.Model() as model:
        alpha = pm.Uniform("alpha", 1.0, 2.0)
        slope = pm.Normal("slope", 0.0, 5.0)
        intercept = pm.Normal("intercept", 0.0, 5.0)
        scale = pm.HalfNormal("scale", 2.0)
        pm.CustomDist(
            "y",
            alpha,
            intercept + slope * x,
            scale,
            logp=lambda value, alpha, loc, scale: logpdf(value - loc, alpha, scale),
            observed=y,
        )
    return model


def lotka_volterra():
    """Hares and lynxes, where the observed are off by a factor."""
    tensor = pytensor.tensor

    def slope(logs, rates):
        hares, lynxes = tensor.exp(logs[0]), tensor.exp(logs[1])
        return tensor.stack([rates[0] - rates[1] * lynxes, rates[3] * hares - rates[2]])

    def next_year(logs, rates):
        return hudson_bay.year_later(logs, lambda logs: slope(logs, rates))

    with pm.Model(coords={"animal": ["hare", "lynx"], "rate": list("abcd")}) as model:
        rates = pm.LogNormal("rates", hudson_bay.LOG_RATES, 0.5, dims="rate")
        first = pm.LogNormal("first", np.log(10.0), 1.0, dims="animal")
        scale = pm.LogNormal("scale", -1.0, 1.0, dims="animal")
        later = pytensor.scan(
            next_year,
            outputs_info=[tensor.log(first)],
            non_sequences=[rates],
            n_steps=len(hudson_bay.PELTS) - 1,
            return_updates=False,
        )
        expected = tensor.concatenate([tensor.log(first)[None], later])
        pm.LogNormal("pelts", expected, scale, observed=hudson_bay.PELTS)
    return model


def greatest_difference(ours, theirs):
    """Of means and of shares below quantiles, for every coordinate, in standard errors.

    ours, theirs: draws of one variable, with axes (chain, draw, …).
    """
    pairs = zip(_columns(ours), _columns(theirs), strict=True)
    return max(_difference(*pair) for pair in pairs)


def _difference(ours, theirs):
    marks = np.quantile(theirs, LEVELS)
    differences = [standardised(ours, theirs)]
    differences += [standardised(ours < mark, theirs < mark) for mark in marks]
    return max(differences)


def standardised(ours, theirs):
    """|difference of means| over its standard error, from the effective sample sizes."""
    found = [np.asarray(draws, float) for draws in (ours, theirs)]
    errors = [draws.var() / float(arviz.ess(draws, method="mean")) for draws in found]
    return abs(found[0].mean() - found[1].mean()) / np.sqrt(sum(errors))


def from_value(draws, value):
    """|mean - value| over its standard error."""
    draws = np.asarray(draws, float)
    return abs(draws.mean() - value) / np.sqrt(draws.var() / float(arviz.ess(draws, method="mean")))


def _columns(draws):
    return list(np.moveaxis(np.asarray(draws).reshape(*draws.shape[:2], -1), -1, 0))
