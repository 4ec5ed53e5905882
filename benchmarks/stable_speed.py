"""Speed of the stable law's draws and density, as ratios to JAX, SciPy and GSL."""

import statistics
import time
from collections.abc import Iterator

import gsl
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from bars import Bar, interleaved_seconds, missing, ratio, show

from levymc import stable

DRAWS = 10**6
POINTS = 10**5
PAIRS = 10**4
ALPHA = 1.7


def naive_chambers_mallows_stuck(key, alpha, shape):
    """The textbook's formula, as most JAX users would write it."""
    key_angle, key_exponential = jax.random.split(key)
    angle = jax.random.uniform(key_angle, shape, minval=-jnp.pi / 2, maxval=jnp.pi / 2)
    waiting = jax.random.exponential(key_exponential, shape)
    tilted = (jnp.cos((1 - alpha) * angle) / waiting) ** ((1 - alpha) / alpha)
    return jnp.sin(alpha * angle) / jnp.cos(angle) ** (1 / alpha) * tilted


def draws() -> Iterator[Bar]:
    key, shape = jax.random.key(0), (DRAWS,)
    normal = jax.jit(lambda key: jax.random.normal(key, shape, jnp.float32))
    fixed = jax.jit(lambda key: stable.sample(key, ALPHA, shape, dtype=jnp.float32))
    traced = jax.jit(lambda key, alpha: stable.sample(key, alpha, shape, dtype=jnp.float32))
    naive = jax.jit(lambda key: naive_chambers_mallows_stuck(key, jnp.float32(ALPHA), shape))
    times = interleaved_seconds(
        {
            "normal": lambda: normal(key),
            "fixed": lambda: fixed(key),
            "traced": lambda: traced(key, jnp.float32(ALPHA)),
            "naive": lambda: naive(key),
        }
    )
    nanoseconds = 1e9 * statistics.median(times["normal"]) / DRAWS
    yield Bar("jax.random.normal, float32, 10⁶ draws", nanoseconds, "ns a draw")
    yield Bar("sample, fixed α = 1.7 / normal", ratio(times, "fixed", "normal"), "×", 1.2)
    yield Bar("sample, traced α = 1.7 / normal", ratio(times, "traced", "normal"), "×", 1.5)
    yield Bar("naive JAX formula / normal", ratio(times, "naive", "normal"), "×")
    generator = np.random.default_rng(0)
    draw = scipy.stats.levy_stable.rvs
    scipy_times = interleaved_seconds(
        {
            "scipy": lambda: draw(ALPHA, 0.0, size=DRAWS, random_state=generator),
            "fixed": lambda: fixed(key),
            "traced": lambda: traced(key, jnp.float32(ALPHA)),
        },
        rounds=7,
    )
    yield Bar("SciPy rvs / sample, fixed α", ratio(scipy_times, "scipy", "fixed"), "×", 6.0, True)
    yield Bar("SciPy rvs / sample, traced α", ratio(scipy_times, "scipy", "traced"), "×")
    wide_normal = jax.jit(lambda key: jax.random.normal(key, shape, jnp.float64))
    wide_fixed = jax.jit(lambda key: stable.sample(key, ALPHA, shape, dtype=jnp.float64))
    wide_traced = jax.jit(lambda key, alpha: stable.sample(key, alpha, shape, dtype=jnp.float64))
    wide = interleaved_seconds(
        {
            "normal": lambda: wide_normal(key),
            "fixed": lambda: wide_fixed(key),
            "traced": lambda: wide_traced(key, jnp.float64(ALPHA)),
        }
    )
    yield Bar("sample, float64, fixed α / normal", ratio(wide, "fixed", "normal"), "×", 1.5)
    yield Bar("sample, float64, traced α / normal", ratio(wide, "traced", "normal"), "×", 1.5)
    peer, subject = gsl.sampler(ALPHA, DRAWS), "GSL gsl_ran_levy / sample, fixed α"
    if peer is None:
        yield missing(subject, "GSL or a C compiler is not installed")
        return
    pair = interleaved_seconds({"gsl": peer, "fixed": lambda: fixed(key)}, rounds=11)
    yield Bar(subject, ratio(pair, "gsl", "fixed"), "×")


def law() -> list[Bar]:
    """Nanoseconds a point of 10⁵ float64 points; SciPy's density on 200 of them."""
    x = jnp.asarray(np.random.default_rng(1).standard_cauchy(POINTS))
    p = jnp.asarray(np.random.default_rng(2).uniform(size=POINTS))
    compiled = {
        name: (jax.jit(lambda v, function=function: function(v, ALPHA)), p if name == "ppf" else x)
        for name in ("logpdf", "pdf", "cdf", "sf", "score", "ppf")
        for function in (getattr(stable, name),)
    }
    times = interleaved_seconds(
        {name: lambda pair=pair: pair[0](pair[1]) for name, pair in compiled.items()}
    )
    few = np.asarray(x[:200])
    start = time.perf_counter()
    scipy.stats.levy_stable.pdf(few, ALPHA, 0.0)
    scipy_seconds = (time.perf_counter() - start) / few.size
    bars = [Bar("SciPy levy_stable.pdf", 1e9 * scipy_seconds, "ns a point")]
    for name, seconds in times.items():
        own = statistics.median(seconds) / POINTS
        bars.append(Bar(f"{name}, float64, 10⁵ points", 1e9 * own, "ns a point"))
        bars.append(Bar(f"SciPy pdf / {name}", scipy_seconds / own, "×", 1000.0, True))
    return bars


def pairs() -> Iterator[Bar]:
    """Pairs of a point and an α of their own: mapped over, against one call with arrays."""
    generator = np.random.default_rng(3)
    x = jnp.asarray(generator.standard_cauchy(PAIRS))
    p = jnp.asarray(generator.uniform(size=PAIRS))
    alpha = jnp.asarray(generator.uniform(0.6, 2.0, PAIRS))
    for name in ("logpdf", "cdf", "sf", "score", "ppf"):
        function, points = getattr(stable, name), p if name == "ppf" else x
        yield _pair_bar(name, function, jax.vmap(function), points, alpha)
    slopes = jax.grad(lambda x, alpha: jnp.sum(stable.logpdf(x, alpha)), argnums=(0, 1))
    yield _pair_bar("slopes of logpdf", slopes, jax.vmap(slopes), x, alpha)


def _pair_bar(name, of_arrays, mapped, points, alpha) -> Bar:
    roads = {"mapped": jax.jit(mapped), "arrays": jax.jit(of_arrays)}
    times = interleaved_seconds(
        {road: lambda run=run: run(points, alpha) for road, run in roads.items()}, rounds=7
    )
    return Bar(f"jax.vmap of {name} / one call", ratio(times, "mapped", "arrays"), "×", 3.0)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for measure in (draws, law, pairs):
        show(measure())
