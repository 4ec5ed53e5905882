"""Targets and data of the runs that `levymc.diagnostics.check` is measured on."""

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc import targets

ROWS = 500
COEFFICIENTS = np.array([1.0, -0.5, 0.25])


def gumbel(x):
    return -x - jnp.exp(-x)


def logistic_law(x):
    return -x - 2 * jax.nn.softplus(-x)


def gaussian(mean, std):
    """Independent coordinates."""
    return lambda x: -jnp.sum(((x - jnp.asarray(mean)) / jnp.asarray(std)) ** 2) / 2


def chained(dimension, correlation):
    """A normal law of unit variances, with correlations that fall along the coordinates."""
    place = np.arange(dimension)
    covariance = correlation ** np.abs(place[:, None] - place)
    precision = jnp.asarray(np.linalg.inv(covariance))
    return lambda x: -x @ precision @ x / 2


def beta(x):
    """Beta(2, 3), on (0, 1)."""
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    return jnp.where(inside, jnp.log(safe) + 2 * jnp.log1p(-safe), -jnp.inf)


def exponential(x):
    return jnp.where(x >= 0, -x, -jnp.inf)


def uniform(x):
    """On (-1, 2)."""
    return jnp.where((x > -1) & (x < 2), 0.0 * x, -jnp.inf)


def two_modes(distance, std):
    return targets.gaussian_mixture([0.5, 0.5], [-distance, distance], std)


def funnel(x):
    """Neal's: the first coordinate is the log variance of the others."""
    return -(x[0] ** 2) / 18 - jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) / 2 - (len(x) - 1) * x[0] / 2


class Regression:
    """Linear regression with unit noise: data, gradients of minibatches, and the posterior."""

    def __init__(self, rows=ROWS):
        random = np.random.default_rng(77)
        inputs = random.normal(size=(rows, len(COEFFICIENTS)))
        outputs = inputs @ COEFFICIENTS + random.normal(size=rows)
        self.data = (jnp.asarray(inputs), jnp.asarray(outputs))
        self.gradient = levymc.grad_estimator(self.logprior, self.loglikelihood, rows)
        fitted = np.linalg.lstsq(inputs, outputs, rcond=None)[0]
        self.starts = jnp.broadcast_to(jnp.asarray(fitted), (4, len(COEFFICIENTS)))

    @staticmethod
    def logprior(w):
        return -jnp.sum(w * w) / 2

    @staticmethod
    def loglikelihood(w, row):
        return -((row[1] - row[0] @ w) ** 2) / 2

    def logdensity(self, w):
        inputs, outputs = self.data
        return self.logprior(w) - jnp.sum((outputs - inputs @ w) ** 2) / 2

    def scaled(self, factor):
        """A gradient whose likelihood counts `factor` times."""

        def logdensity(w, batch):
            terms = jax.vmap(self.loglikelihood, (None, 0))(w, batch)
            return self.logprior(w) + factor * ROWS * jnp.mean(terms)

        return jax.grad(logdensity)


class Classification(Regression):
    """Logistic regression with two coefficients."""

    def __init__(self, rows):
        random = np.random.default_rng(78)
        inputs = random.normal(size=(rows, 2))
        labels = random.random(rows) < 1 / (1 + np.exp(-inputs @ [1.0, -0.5]))
        self.data = (jnp.asarray(inputs), jnp.asarray(labels, float))
        self.gradient = levymc.grad_estimator(self.logprior, self.loglikelihood, rows)
        self.starts = jnp.zeros((4, 2))

    @staticmethod
    def loglikelihood(w, row):
        score = row[0] @ w
        return row[1] * score - jax.nn.softplus(score)

    def logdensity(self, w):
        scores = self.data[0] @ w
        return self.logprior(w) + jnp.sum(self.data[1] * scores - jax.nn.softplus(scores))
