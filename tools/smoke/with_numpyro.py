"""A NumPyro model in two lines."""

import jax
import numpyro
import numpyro.distributions as dist

import levymc


def model(y):
    mean = numpyro.sample("mean", dist.Normal(0.0, 3.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


fit = levymc.interop.numpyro.sample(model, jax.random.key(0), 2.0, budget=20_000)
assert abs(float(fit.to_arviz().posterior["mean"].mean()) - 1.8) < 0.3
