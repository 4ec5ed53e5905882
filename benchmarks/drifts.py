"""Accuracy of the drifts against the mpmath oracle, what it costs, and the paper's Table 1."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, interleaved_seconds

from levymc import drifts, stable, theory

ORACLE = Path(__file__).parents[1] / "tests/core/data/drift_oracle.json"
PUBLISHED_TABLE_1 = {1.5: 19.31, 1.6: 14.12, 1.7: 12.72, 1.8: 8.64, 1.9: 7.03}


def double_well(x):
    return -((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)


def student(x):
    return -1.5 * jnp.log1p(x * x / 2)


def worst_error(target: str, logdensity, make, alphas) -> float:
    """Over the oracle's points and the given α."""
    oracle = json.loads(ORACLE.read_text())[target]
    worst = 0.0
    for alpha in alphas:
        rows = oracle[f"{alpha:g}"]
        x, exact = (np.array([float(v) for v in rows[key]]) for key in ("x", "drift"))
        found = np.asarray(jax.jit(jax.vmap(make(logdensity, alpha)))(jnp.asarray(x)))
        kept = exact != 0
        worst = max(worst, float(np.max(np.abs(found[kept] / exact[kept] - 1))))
    return worst


def quadrature(**options):
    return lambda logdensity, alpha: drifts.quadrature(logdensity, alpha, **options)


def reach(x):
    """The double well lives on [-5.7, 5.7], up to 2e-16 of its height."""
    return jnp.abs(x) + 5.7


def differences(logdensity, alpha):
    """The paper's h and K."""
    return drifts.centered_difference(logdensity, alpha, spacing=0.06, num_terms=170)


def accuracy() -> Iterator[Bar]:
    alphas = (1.2, 1.5, 1.7, 1.9)
    on_double_well = [
        ("96 nodes, R = 11", quadrature(radius=11.0), 1e-8),
        ("panels, as explored", quadrature(), 1e-8),
        ("64 nodes, R = 11", quadrature(radius=11.0, num_nodes=64), None),
        ("64 nodes (129 densities), R = |x| + 5.7", quadrature(radius=reach, num_nodes=64), 1e-6),
        ("b̃ of 341 gradients", differences, None),
        ("b̂", drifts.leading_term, None),
    ]
    on_student = [
        ("96 nodes, R = ∞", quadrature(radius=jnp.inf), 1e-6),
        ("panels, as explored", quadrature(), 1e-6),
    ]
    for name, make, top in on_double_well:
        worst = worst_error("double_well", double_well, make, alphas)
        yield Bar(f"double well, {name}", worst, "", top)
    for name, make, top in on_student:
        yield Bar(
            f"Student-t(2), {name}", worst_error("student_two", student, make, alphas), "", top
        )
    yield stable_target(alphas)
    yield gaussian(alphas)


def stable_target(alphas) -> Bar:
    x = jnp.linspace(-50, 50, 500)
    worst = 0.0
    for alpha in alphas:
        target = lambda y, alpha=alpha: stable.logpdf(y, alpha)  # noqa: E731
        found = jax.jit(jax.vmap(drifts.quadrature(target, alpha, radius=jnp.inf)))(x)
        worst = max(worst, float(jnp.max(jnp.abs(found / drifts.stable_target(alpha)(x) - 1))))
    return Bar("SαS target, 96 nodes, R = ∞, |x| ≤ 50", worst, "", 1e-8)


def gaussian(alphas) -> Bar:
    x = jnp.linspace(-6, 6, 500)
    worst = 0.0
    for alpha in alphas:
        found = jax.jit(jax.vmap(drifts.quadrature(lambda y: -y * y / 2, alpha, radius=14.0)))(x)
        exact = jax.vmap(drifts.gaussian(alpha))(x)
        worst = max(worst, float(jnp.max(jnp.abs(found / exact - 1))))
    return Bar("N(0, 1), 96 nodes, against ₁F₁, |x| ≤ 6", worst, "", 1e-8)


def kappa(alpha: float) -> float:
    """κ̂(α) of the paper, on its 201 points."""
    return theory.kappa_hat(double_well, alpha, np.linspace(-5, 5, 201))


def table_1() -> Iterator[Bar]:
    for alpha, published in PUBLISHED_TABLE_1.items():
        yield Bar(f"|κ̂({alpha}) - {published}| of Table 1", abs(kappa(alpha) - published), "", 0.01)
    yield from apart(1.5)


def apart(alpha: float) -> Iterator[Bar]:
    """What κ̂ hides: how far b̂ is from b on the same points, both ways."""
    points = jnp.linspace(-5, 5, 201)
    exact = jax.vmap(drifts.quadrature(double_well, alpha, radius=reach))(points)
    leading = jax.vmap(drifts.leading_term(double_well, alpha))(points)
    ratio = np.abs(np.asarray(leading / exact))
    for name, values in (("|b̂/b|", ratio), ("|b/b̂|", 1 / ratio)):
        worst = int(np.argmax(values))
        place = float(points[worst])
        yield Bar(f"{name} at α = {alpha}, most of 201 points, x = {place:.3g}", values[worst], "")


def vectorised() -> list[Bar]:
    """1000 positions × 10 coordinates × 96 nodes of a cheap density, in one call."""
    x = jax.random.normal(jax.random.key(0), (1000, 10), jnp.float32)
    drift = drifts.quadrature(lambda y: -jnp.sum(y * y) / 2, 1.5, radius=12.0)
    compiled = jax.jit(jax.vmap(drift))
    times = interleaved_seconds({"drift": lambda: compiled(x)}, rounds=11)
    seconds = statistics.median(times["drift"])
    evaluations = 1000 * 10 * 2 * 96
    return [
        Bar("1000 × 10 × 96 nodes, float32", 1e3 * seconds, "ms"),
        Bar("  of it a density of 10 coordinates", 1e9 * seconds / evaluations, "ns"),
    ]
