"""NumPyro models of real use, small; with the data that they are tested on."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from tests.interop import hudson_bay

from levymc.interop.numpyro import SymmetricStable

SCHOOLS_Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(error, y=None):
    """Not centred, as NUTS wants it."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(error)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, error), obs=y)


def conjugate(y):
    """A normal mean with a normal prior: all is known in closed form."""
    mu = numpyro.sample("mu", dist.Normal(1.0, 2.0))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1.5), obs=y)


def conjugate_log_evidence(y):
    covariance = 1.5**2 * np.eye(len(y)) + 4.0
    return float(dist.MultivariateNormal(1.0, jnp.asarray(covariance)).log_prob(y))


def mixture(y, num_components=2):
    """Labels may switch: as many modes as permutations, of equal weight."""
    weights = numpyro.sample("weights", dist.Dirichlet(2.0 * jnp.ones(num_components)))
    with numpyro.plate("component", num_components):
        loc = numpyro.sample("loc", dist.Normal(0.0, 5.0))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0))
    law = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", law, obs=y)


def mixture_by_labels(y, num_components=2):
    """The same model, with a discrete site for each point that has to be summed out."""
    weights = numpyro.sample("weights", dist.Dirichlet(2.0 * jnp.ones(num_components)))
    with numpyro.plate("component", num_components):
        loc = numpyro.sample("loc", dist.Normal(0.0, 5.0))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0))
    with numpyro.plate("data", len(y)):
        label = numpyro.sample("label", dist.Categorical(weights), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(loc[label], scale), obs=y)


def mixture_data(count=60):
    rng = np.random.default_rng(0)
    is_left = rng.random(count) < 0.35
    return np.where(is_left, rng.normal(-2.0, 0.8, count), rng.normal(3.0, 0.8, count))


def horseshoe(x, y):
    """Regression with few large coefficients."""
    count = x.shape[1]
    tau = numpyro.sample("tau", dist.HalfCauchy(0.3))
    with numpyro.plate("feature", count):
        lam = numpyro.sample("lam", dist.HalfCauchy(1.0))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        beta = numpyro.deterministic("beta", z * lam * tau)
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(x @ beta, scale), obs=y)


def hierarchical_logistic(group, x, y):
    """Intercepts of groups, not centred, and one slope."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    with numpyro.plate("group", int(group.max()) + 1):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        effect = numpyro.deterministic("effect", mu + tau * z)
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Bernoulli(logits=effect[group] + slope * x), obs=y)


def hierarchical_data():
    rng = np.random.default_rng(4)
    group, x = np.arange(120) % 6, rng.normal(size=120)
    effect = np.array([-1.0, 0.0, 0.5, 1.0, 0.2, -0.4])
    return group, x, rng.random(120) < 1 / (1 + np.exp(-effect[group] - 1.2 * x))


def robust_regression(x, y):
    """Stable noise of unknown α."""
    alpha = numpyro.sample("alpha", dist.Uniform(1.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", SymmetricStable(alpha, intercept + slope * x, scale), obs=y)


def lotka_volterra(pelts):
    """Hares and lynxes, where the observed are off by a factor."""
    rates = numpyro.sample("rates", dist.LogNormal(hudson_bay.LOG_RATES, 0.5).to_event(1))
    first = numpyro.sample("first", dist.LogNormal(jnp.log(10.0), jnp.ones(2)).to_event(1))
    scale = numpyro.sample("scale", dist.LogNormal(-1.0, jnp.ones(2)).to_event(1))

    def slope(logs):
        hares, lynxes = jnp.exp(logs)
        return jnp.stack([rates[0] - rates[1] * lynxes, rates[3] * hares - rates[2]])

    def next_year(logs, _):
        later = hudson_bay.year_later(logs, slope)
        return later, later

    _, later = jax.lax.scan(next_year, jnp.log(first), length=len(pelts) - 1)
    expected = jnp.concatenate([jnp.log(first)[None], later])
    numpyro.sample("pelts", dist.LogNormal(expected, scale).to_event(2), obs=pelts)


def subsampled(x, y, size):
    """Regression on minibatches of rows."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("rows", len(y), subsample_size=size) as rows:
        numpyro.sample("y", dist.Normal(slope * x[rows], scale), obs=y[rows])
