"""Data of regressions: that of NumPyro's and PyMC's models are the same."""

import numpy as np


def sparse():
    """Six predictors, of which two matter."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 6))
    return x, x @ np.array([1.5, 0.0, 0.0, -2.0, 0.0, 0.0]) + 0.7 * rng.normal(size=60)


def with_stable_noise(count=100):
    """Noise of α = 1.3 and scale 0.5, by Chambers, Mallows and Stuck."""
    rng = np.random.default_rng(2)
    x, alpha = np.linspace(-2.0, 2.0, count), 1.3
    angle, waiting = rng.uniform(-np.pi / 2, np.pi / 2, count), rng.exponential(size=count)
    noise = np.sin(alpha * angle) / np.cos(angle) ** (1 / alpha)
    noise *= (np.cos((1 - alpha) * angle) / waiting) ** ((1 - alpha) / alpha)
    return x, 1.0 + 2.0 * x + 0.5 * noise
