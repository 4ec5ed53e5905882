"""A NumPyro model, and the two lines of README.md."""

import arviz
import jax
import numpyro
import numpyro.distributions as dist

import levymc


def model(y):
    mean = numpyro.sample("mean", dist.Normal(0.0, 3.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


data = 2.0

fit = levymc.interop.numpyro.sample(model, jax.random.key(0), data)
print(fit.report, arviz.summary(fit.to_arviz()))

assert not fit.is_flagged
assert abs(float(fit.to_arviz().posterior["mean"].mean()) - 1.8) < 0.3
