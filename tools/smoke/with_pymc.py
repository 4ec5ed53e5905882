"""A PyMC model, and the two lines of README.md."""

import arviz
import jax
import pymc as pm

import levymc

with pm.Model() as model:
    mean = pm.Normal("mean", 0.0, 3.0)
    pm.Normal("y", mean, 1.0, observed=2.0)

fit = levymc.interop.pymc.sample(model, jax.random.key(0))
print(fit.report, arviz.summary(fit.to_arviz()))

assert not fit.is_flagged
assert abs(float(fit.to_arviz().posterior["mean"].mean()) - 1.8) < 0.3
