r"""How fast the law of Euler's chain comes close to that of the diffusion as the step η goes down.

Run: python benchmarks/euler_rate.py

The target is SαS(1), whose exact drift -x/α is linear.  Both chains have a stationary law whose
characteristic function is known, so that nothing is simulated:

- stable noise, the step of `levymc.flmc`: the law is SαS of scale (η/(1 - (1 - η/α)^α))^{1/α};
- Pareto noise instead, density α/(2|z|^{1+α}) for |z| > 1, scaled to the same limit: the
  characteristic function is a product over the steps, summed by Euler and Maclaurin.

Wasserstein-1 is the integral of |F_η - F|; the weak error is that of cos x.  Slopes are fitted in
log η.  [chen2023] proves η^{1-ε} for stable noise and η^{2/α-1}, sharp, for Pareto's.

A third chain has a drift that is not linear, -x/α - sin(x)/2.  There steps of η and η/2 are driven
by the same noise: the mean distance of the two chains bounds the Wasserstein-1 of their laws.
"""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, show

from levymc import stable

ALPHAS = (1.3, 1.5, 1.8)
STABLE_STEPS = 2.0 ** -np.arange(4, 11)
PARETO_STEPS = 10.0 ** -np.arange(6.0, 13.0)  # η^{2/α-1} is small for tiny η only
FREQUENCIES, FREQUENCY_WEIGHTS = np.polynomial.legendre.leggauss(400)
PLACES = np.linspace(0.0, 60.0, 1501)
SERIES = 40  # terms, for arguments up to 5
COUPLED_STEPS = 2.0 ** -np.arange(3, 7)
CHAINS, TIME = 20_000, 6.0


def fitted(steps, errors) -> float:
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def stationary_scale(eta, alpha: float):
    """Of Euler's chain with drift -x/α."""
    return (eta / (1 - (1 - eta / alpha) ** alpha)) ** (1 / alpha)


def mean_size(alpha: float) -> float:
    """E|ξ| of SαS(1)."""
    return 2 * math.gamma(1 - 1 / alpha) / math.pi


def stable_errors(alpha: float):
    """Wasserstein-1, which scales with the law, and the weak error of cos x."""
    scale = stationary_scale(STABLE_STEPS, alpha)
    weak = np.abs(np.exp(-(scale**alpha)) - math.exp(-1))
    return np.abs(scale - 1) * mean_size(alpha), weak


def pareto_constant(alpha: float) -> float:
    """c in E cos(ωZ) = 1 - c|ω|^α + O(ω²)."""
    return math.gamma(1 - alpha) * math.cos(math.pi * alpha / 2)


def pareto_excess(alpha: float, u):
    """E cos(uZ) - 1 by its power series, all of which converges."""
    total, term = np.zeros_like(u), -np.ones_like(u)
    for m in range(1, SERIES):
        term = -term * u * u / ((2 * m) * (2 * m - 1))
        total += alpha * term / (2 * m - alpha)
    return total - pareto_constant(alpha) * u**alpha


def log_characteristic(alpha: float, eta: float, frequency):
    """Of the stationary law with Pareto noise: Σ_j G(u a^j), G = log E cos(·Z), a = 1 - η/α."""
    u = (eta / pareto_constant(alpha)) ** (1 / alpha) * frequency
    decay = -math.log1p(-eta / alpha)
    # ∫ G(v) dv/v from 0 to u, with v = u t^{1/α}: dv/v = dt/(α t), and G(v)/t is bounded
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = ((nodes + 1) / 2) ** 4
    measure = weights / 2 * 4 * ((nodes + 1) / 2) ** 3
    values = np.log1p(pareto_excess(alpha, u[:, None] * t ** (1 / alpha)))
    integral = (values / (alpha * t)) @ measure
    first = np.log1p(pareto_excess(alpha, u))
    shift = 1e-4
    slope = (np.log1p(pareto_excess(alpha, u * (1 + shift))) - first) / shift
    return integral / decay + first / 2 + decay * slope / 12


def wasserstein(difference, frequency, weights) -> float:
    """From the difference of two even characteristic functions."""
    kernel = np.sin(np.outer(PLACES, frequency)) / (math.pi * frequency)
    gap = np.abs(kernel @ (difference * weights))
    return 2 * float(np.trapezoid(gap, PLACES))


def pareto_errors(alpha: float):
    end = 36 ** (1 / alpha)  # e^-36 is rounding
    frequency, weights = end * (FREQUENCIES + 1) / 2, end * FREQUENCY_WEIGHTS / 2
    exact = np.exp(-(frequency**alpha))
    found = [np.exp(log_characteristic(alpha, eta, frequency)) for eta in PARETO_STEPS]
    return np.array([wasserstein(law - exact, frequency, weights) for law in found])


def curved_drift(x, alpha: float):
    return -x / alpha - jnp.sin(x) / 2


@jax.jit
def _coupled(key, eta, alpha, pairs):
    """Chains of steps η and η/2 with the same noise, from 0."""

    def two_steps(i, chains):
        coarse, fine = chains
        noise = (eta / 2) ** (1 / alpha) * stable.sample(
            jax.random.fold_in(key, i), alpha, (2, CHAINS)
        )
        for part in noise:
            fine = fine + eta / 2 * curved_drift(fine, alpha) + part
        return coarse + eta * curved_drift(coarse, alpha) + noise.sum(axis=0), fine

    start = jnp.zeros(CHAINS)
    coarse, fine = jax.lax.fori_loop(0, pairs, two_steps, (start, start))
    return jnp.mean(jnp.abs(coarse - fine))


def coupled_errors(alpha: float):
    key = jax.random.key(0)
    return np.array([float(_coupled(key, eta, alpha, int(TIME / eta))) for eta in COUPLED_STEPS])


def rates() -> Iterator[Bar]:
    """Slopes, beside what they should be: bars are on their distance from it."""
    for alpha in ALPHAS:
        distance, weak = stable_errors(alpha)
        pareto = fitted(PARETO_STEPS, pareto_errors(alpha))
        linear, cosine = fitted(STABLE_STEPS, distance), fitted(STABLE_STEPS, weak)
        yield from (
            Bar(f"α = {alpha}: stable noise, slope of W1", linear, ""),
            Bar("  its distance from 1", abs(linear - 1), "", 0.05),
            Bar("  slope of the weak error of cos x", cosine, ""),
            Bar("  its distance from 1", abs(cosine - 1), "", 0.05),
            Bar(
                "  curved drift, slope of the coupled distance",
                fitted(COUPLED_STEPS, coupled_errors(alpha)),
                "",
                0.85,
                True,
            ),
            Bar("  Pareto noise, slope of W1", pareto, ""),
            Bar(
                f"  its distance from 2/α - 1 = {2 / alpha - 1:.3f}",
                abs(pareto - 2 / alpha + 1),
                "",
                0.05,
            ),
        )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    show(rates())
