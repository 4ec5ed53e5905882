"""Drifts against 25-digit references, closed forms, the paper's table, and their own contract.

``tests/data/drift_oracle.json`` comes from ``tools/drift_oracle.py``, which goes by the gradient of
the density and tanh-sinh where the library goes by the density and Gauss–Jacobi.  Relative errors
are relative to |b| with no floor; the stored positions keep a distance of 1e-3 from the roots of b
and come as near as 2e-3 on purpose.

Nearly all the time goes into compiling.  A drift is an input of a compiled program, so that drifts
that differ in numbers only (α, radius, spacing) share one: targets stand at module level, their
parameters are inputs too, and all positions go through in rows of ``POINTS``.
"""

import dataclasses
import functools
import json
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.special

from levymc import drifts, riesz, stable

ALPHAS = (1.2, 1.5, 1.7, 1.9)
ORACLE = json.loads((Path(__file__).parent / "data" / "drift_oracle.json").read_text())


# --- targets ------------------------------------------------------------------------------------


def double_well(x, constant=0.0):
    return constant - ((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)


def double_well_slope(x):
    """In NumPy."""
    return np.polyval(-np.polyder(np.poly([-5, -1, 1.02, 5]) / 10), x)


def normal(x, mean=0.0, std=1.0):
    unit = (x - mean) / std
    return -unit * unit / 2


def student_two(x, center=0.0, scale=1.0):
    return -1.5 * jnp.log1p(((x - center) / scale) ** 2 / 2)


def mixture(x):
    weights, means, stds = (jnp.array(part, dtype=x.dtype) for part in mixture_parameters())
    terms = jnp.log(weights / stds) - ((x - means) / stds) ** 2 / 2
    return jax.scipy.special.logsumexp(terms)


def plane_mixture(x):
    weights, means, stds = (jnp.array(part, dtype=x.dtype) for part in plane_parameters())
    squares = ((x[None, :] - means) / stds) ** 2
    terms = jnp.log(weights) - jnp.sum(jnp.log(stds) + squares / 2, axis=1)
    return jax.scipy.special.logsumexp(terms)


def mixture_parameters():
    return parameters("mixture")


def plane_parameters():
    return parameters("plane")


def parameters(name: str):
    section = ORACLE["parameters"][name]
    return tuple(np.array(section[key], dtype=float) for key in ("weights", "means", "stds"))


# --- references ---------------------------------------------------------------------------------


def reference(section: str, alpha: float):
    """Positions and drifts of one section of the oracle, as doubles."""
    rows = ORACLE[section][str(alpha)]
    return np.array(rows["x"], dtype=float), np.array(rows["drift"], dtype=float)


def log_reference(section: str, alpha: float):
    rows = ORACLE[section][str(alpha)]
    return tuple(np.array(rows[key], dtype=float) for key in ("x", "sign", "log_size"))


@functools.cache
def normal_drift(x: float, alpha: float) -> float:
    """−(2^{α/2}/√π) Γ((α+1)/2) x ₁F₁((2−α)/2; 3/2; x²/2) in 30 digits."""
    with mp.workdps(30):
        order, point = mp.mpf(alpha), mp.mpf(x)
        factor = 2 ** (order / 2) / mp.sqrt(mp.pi) * mp.gamma((order + 1) / 2)
        return float(-factor * point * mp.hyp1f1((2 - order) / 2, 1.5, point**2 / 2))


def scaled_normal_drift(x: float, alpha: float, mean: float, std: float) -> float:
    """Stretching a target by s multiplies its drift by s^{1−α}."""
    return std ** (1 - alpha) * normal_drift((x - mean) / std, alpha)


def worst(computed, exact) -> float:
    """Largest error relative to |b|; a NaN counts as infinite."""
    ratio = np.abs(np.asarray(computed) - exact) / np.abs(exact)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


POINTS = 64  # positions of one row


@jax.jit
def evaluated(drift, position, parameters=()):
    """A drift and its signed logarithm at one position."""
    if parameters:
        target = drift.logdensity_fn
        drift = dataclasses.replace(drift, logdensity_fn=lambda x: target(x, *parameters))
    return drift(position), drift.signed_log(position)


evaluated_row = jax.jit(jax.vmap(evaluated, in_axes=(None, 0, None)))


def value_and_size(drift, positions, *parameters):
    """A drift and its signed logarithm at each of many positions."""
    positions = np.asarray(positions)
    rows = -(-len(positions) // POINTS)
    padded = np.resize(positions, (rows, POINTS, *positions.shape[1:]))
    parts = [evaluated_row(drift, row, parameters) for row in padded]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(positions)], *parts)


def over(drift, positions, *parameters):
    """A drift at each of many positions, given the parameters of its target."""
    return value_and_size(drift, positions, *parameters)[0]


def size_over(drift, positions):
    """The signed logarithm of a drift at each of many positions."""
    return value_and_size(drift, positions)[1]


def gradient_over(target, positions):
    """The gradient of a log density at each of many positions, by JAX alone."""
    return np.asarray(jitted_gradients(target, np.resize(positions, POINTS)))[: len(positions)]


@functools.partial(jax.jit, static_argnums=0)
def jitted_gradients(target, positions):
    return jax.vmap(jax.grad(target))(positions)


@functools.cache
def by_traced_alpha(build):
    """Drift and signed logarithm where α is an input: of many α at many positions, by vmap."""
    return jax.jit(jax.vmap(lambda a, x: jax.vmap(lambda y: evaluated(build(a), y))(x), (0, None)))


# Every way to build a drift for a standard normal; α stays open.
BUILDERS = {
    "leading_term": lambda alpha: drifts.leading_term(normal, alpha),
    "centered_difference": lambda alpha: drifts.centered_difference(
        normal, alpha, spacing=0.1, num_terms=120
    ),
    "quadrature": lambda alpha: drifts.quadrature(normal, alpha, radius=13.0),
    "quadrature_own_radius": lambda alpha: drifts.quadrature(normal, alpha),
    "quadrature_to_infinity": lambda alpha: drifts.quadrature(normal, alpha, radius=jnp.inf),
    "gaussian": lambda alpha: drifts.gaussian(alpha),
    "gaussian_mixture": lambda alpha: drifts.gaussian_mixture(
        alpha, jnp.array([0.25, 0.75]), jnp.array([0.0, 0.0]), jnp.array([1.0, 1.0])
    ),
    "stable_target": lambda alpha: drifts.stable_target(alpha),
}
FROM_DENSITY = {
    "leading_term": drifts.leading_term,
    "centered_difference": functools.partial(
        drifts.centered_difference, spacing=0.06, num_terms=170
    ),
    "quadrature": functools.partial(drifts.quadrature, radius=12.0),
    "quadrature_own_radius": drifts.quadrature,
}

every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
every_density_builder = pytest.mark.parametrize(
    "build", FROM_DENSITY.values(), ids=FROM_DENSITY.keys()
)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


# --- accuracy: quadrature -----------------------------------------------------------------------


@pytest.mark.parametrize("radius", [11.0, 12.0, 13.0, None])
@every_alpha
def test_quadrature_on_the_double_well(alpha, radius):
    positions, exact = reference("double_well", alpha)
    drift = drifts.quadrature(double_well, alpha, radius=radius, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-8


@every_alpha
def test_quadrature_within_130_evaluations(alpha):
    """1e-6 from at most 130 evaluations, and of the density only.

    The radius is the least that serves all of [−5, 5]: from x = −5 the far well ends at 5.2.
    """
    positions, exact = reference("double_well", alpha)
    drift = drifts.quadrature(double_well, alpha, radius=10.2, num_nodes=64)
    assert drift.evaluations.density <= 130
    assert drift.evaluations.gradient == 0
    assert worst(over(drift, positions), exact) <= 1e-6


@every_alpha
def test_centered_difference_spends_more_and_gets_less(alpha):
    """341 gradients at the paper's setting: an error of some 1e-3 where the drift is not small."""
    positions, exact = reference("double_well", alpha)
    drift = drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170)
    assert drift.evaluations.gradient == 341
    error = np.abs(over(drift, positions) - exact) / np.abs(exact)
    assert 1e-4 < np.median(error) < 3e-3


@every_alpha
def test_quadrature_to_infinity_on_student(alpha):
    positions, exact = reference("student_two", alpha)
    drift = drifts.quadrature(student_two, alpha, radius=jnp.inf, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-6


@every_alpha
def test_center_and_scale_move_the_nodes_with_the_target(alpha):
    positions, exact = reference("student_two", alpha)
    center, scale = 700.0, 30.0
    drift = drifts.quadrature(
        student_two, alpha, radius=jnp.inf, num_nodes=96, center=center, scale=scale
    )
    computed = over(drift, center + scale * positions, center, scale)
    assert worst(computed, scale ** (1 - alpha) * exact) <= 1e-6


@pytest.mark.parametrize("scale", [1.0, 3.0])
@every_alpha
def test_quadrature_is_linear_on_a_stable_target(alpha, scale):
    """The exact drift of SαS(s) under its own α is −x/(α s^α), whatever x."""
    positions = np.concatenate([np.linspace(-50, -0.5, 25), np.linspace(0.5, 50, 25)])
    drift = drifts.quadrature(stable.logpdf, alpha, radius=jnp.inf, num_nodes=96, scale=scale)
    computed = over(drift, positions, alpha, scale)
    assert worst(computed, -positions / (alpha * scale**alpha)) <= 1e-8


@pytest.mark.parametrize("radius", [14.0, None])
@every_alpha
def test_quadrature_on_the_normal(alpha, radius):
    positions, exact = reference("normal", alpha)
    drift = drifts.quadrature(normal, alpha, radius=radius, num_nodes=96)
    assert worst(over(drift, positions), exact) <= 1e-8


@pytest.mark.parametrize(
    ("mean", "std"), [(0.0, 1e-4), (0.0, 1e-2), (0.0, 1e2), (0.0, 1e5), (1e3, 1.0), (-50.0, 0.1)]
)
def test_own_radius_at_any_place_and_width(mean, std):
    """Without a word about where the target lies or how wide it is."""
    alpha, unit = 1.5, np.array([-4.0, -1.0, 0.5, 2.0, 4.0])
    positions = mean + std * unit
    exact = [scaled_normal_drift(x, alpha, mean, std) for x in positions.tolist()]
    target = jax.tree_util.Partial(normal, mean=mean, std=std)
    computed = over(drifts.quadrature(target, alpha), positions)
    assert worst(computed, np.array(exact)) <= 1e-8


@every_alpha
def test_quadrature_on_a_mixture(alpha):
    positions, exact = reference("mixture", alpha)
    for radius in (None, 16.0):
        drift = drifts.quadrature(mixture, alpha, radius=radius, num_nodes=96)
        assert worst(over(drift, positions), exact) <= 1e-7


@every_alpha
def test_quadrature_ignores_the_normalising_constant(alpha):
    positions, _ = reference("double_well", alpha)
    plain = over(drifts.quadrature(double_well, alpha, radius=11.0), positions)
    shifted = over(drifts.quadrature(double_well, alpha, radius=11.0), positions, 3.0)
    assert worst(shifted, plain) <= 1e-9


# --- accuracy: closed forms and the leading term ------------------------------------------------


@every_alpha
def test_gaussian(alpha):
    positions, exact = reference("normal", alpha)
    assert worst(over(drifts.gaussian(alpha), positions), exact) <= 1e-12
    mean, std = 2.0, 0.3
    moved = drifts.gaussian(alpha, mean=mean, std=std)
    stretched = std ** (1 - alpha) * exact
    assert worst(over(moved, mean + std * positions), stretched) <= 1e-11


@every_alpha
def test_gaussian_between_the_bulk_and_the_tail(alpha):
    """Where a power series has to hand over to an asymptotic one."""
    positions = np.array([6.5, 7.0, 7.25, 7.5, 7.7, 7.8, 8.0, 8.5, 9.0])
    exact = np.array([normal_drift(x, alpha) for x in positions.tolist()])
    assert worst(over(drifts.gaussian(alpha), positions), exact) <= 1e-11


@every_alpha
def test_gaussian_far_out(alpha):
    positions, sign, log_size = log_reference("normal_far", alpha)
    computed = size_over(drifts.gaussian(alpha), positions)
    np.testing.assert_array_equal(computed.sign, sign)
    np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-12)
    near = np.abs(positions) <= 20
    value = over(drifts.gaussian(alpha), positions[near])
    assert worst(value, sign[near] * np.exp(log_size[near])) <= 1e-11


@every_alpha
def test_gaussian_mixture(alpha):
    positions, exact = reference("mixture", alpha)
    drift = drifts.gaussian_mixture(alpha, *mixture_parameters())
    assert worst(over(drift, positions), exact) <= 1e-11


@every_alpha
def test_gaussian_mixture_in_the_plane(alpha):
    positions, exact = reference("plane_mixture", alpha)
    drift = drifts.gaussian_mixture(alpha, *plane_parameters())
    assert worst(over(drift, positions), exact) <= 1e-11
    by_quadrature = drifts.quadrature(plane_mixture, alpha, radius=14.0, num_nodes=96)
    values = over(by_quadrature, positions)
    assert worst(values, exact) <= 1e-7


@every_alpha
def test_gaussian_mixture_far_out(alpha):
    """Where every component has underflowed the drift still has a sign and a size."""
    drift = drifts.gaussian_mixture(alpha, *mixture_parameters())
    positions = np.array([-60.0, 60.0, 1e4])
    size = size_over(drift, positions)
    np.testing.assert_array_equal(size.sign, -np.sign(positions))
    assert np.all(np.isfinite(size.log_size))


def test_mixture_of_one_is_a_gaussian():
    x = np.linspace(-3, 4, 9)
    one = drifts.gaussian_mixture(1.6, jnp.array([1.0]), jnp.array([0.5]), jnp.array([0.8]))
    single = drifts.gaussian(1.6, mean=0.5, std=0.8)
    np.testing.assert_allclose(over(one, x), over(single, x), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.2, 7.0])
@every_alpha
def test_stable_target(alpha, scale):
    positions = np.array([-1e6, -3.0, 0.0, 0.1, 50.0])
    drift = drifts.stable_target(alpha, scale=scale)
    expected = -positions / (alpha * scale**alpha)
    np.testing.assert_allclose(over(drift, positions), expected, rtol=1e-14)


@every_alpha
def test_leading_term(alpha):
    positions = np.linspace(-5, 5, 21)
    constant = scipy.special.gamma(alpha - 1) / scipy.special.gamma(alpha / 2) ** 2
    expected = constant * gradient_over(double_well, positions)
    drift = drifts.leading_term(double_well, alpha)
    np.testing.assert_allclose(over(drift, positions), expected, rtol=1e-13)


# --- centred differences and the paper's table --------------------------------------------------


@every_alpha
def test_centered_difference_is_the_sum_of_the_paper(alpha):
    """Against the sum in 34 digits with Gamma-function coefficients, up to U = 1e6."""
    positions, sign, log_size = log_reference("centered_difference", alpha)
    assert np.max(-double_well(positions)) > 9.9e5
    drift = drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170)
    computed = size_over(drift, positions)
    np.testing.assert_array_equal(computed.sign, sign)
    # exp(U(x) − U(x − kh)) inherits the rounding of U, 1e6 times 1e-16.
    np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-12, atol=1e-11)
    near = np.abs(positions) <= 5
    assert worst(over(drift, positions[near]), sign[near] * np.exp(log_size[near])) <= 1e-10


def partial_sums(alpha: float, positions: np.ndarray, num_terms: int, spacing: float) -> np.ndarray:
    """b̃ for every K = 1 … num_terms at once, in the shape (positions, num_terms)."""
    coefficients = np.asarray(riesz.coefficients(alpha - 2, num_terms))
    indices = np.arange(-num_terms, num_terms + 1)
    shifted = positions[:, None] - spacing * indices
    ratio = np.exp(double_well(shifted) - double_well(positions)[:, None])
    terms = coefficients[np.abs(indices)] * double_well_slope(shifted) * ratio
    pairs = terms[:, num_terms + 1 :] + terms[:, :num_terms][:, ::-1]
    return spacing ** (2 - alpha) * (terms[:, [num_terms]] + np.cumsum(pairs, axis=1))


@pytest.mark.parametrize("num_terms", [1, 15, 170])
def test_partial_sums_are_the_library_drift(num_terms):
    """The table below adds up terms of its own; here they are tied to the library."""
    positions = np.linspace(-5, 5, 201)
    sums = partial_sums(1.6, positions, 170, 0.06)[:, num_terms - 1]
    drift = drifts.centered_difference(double_well, 1.6, spacing=0.06, num_terms=num_terms)
    np.testing.assert_allclose(over(drift, positions), sums, rtol=1e-9)


@pytest.mark.parametrize(
    ("alpha", "published"), [(1.5, 19.31), (1.6, 14.12), (1.7, 12.72), (1.8, 8.65), (1.9, 7.03)]
)
def test_table_one_of_the_paper(alpha, published):
    """κ̂(α) over the 201 points −5:0.05:5, h = 0.06, K* = 170; 8.64 is printed for α = 1.8."""
    positions = np.linspace(-5, 5, 201)
    sums = partial_sums(alpha, positions, 170, 0.06)
    best = over(
        drifts.centered_difference(double_well, alpha, spacing=0.06, num_terms=170), positions
    )
    leading = over(drifts.leading_term(double_well, alpha), positions)
    errors = np.abs(sums - best[:, None])
    distance = np.abs(errors - np.abs(leading - best)[:, None])
    kappa = np.mean(1 + np.argmin(distance, axis=1))
    assert abs(kappa - published) <= 0.01


# --- α = 2 and its neighbourhood ----------------------------------------------------------------


@every_density_builder
def test_alpha_two_is_the_gradient_bit_for_bit(build):
    drift, gradient = build(double_well, 2.0), jax.grad(double_well)
    positions = np.concatenate([np.linspace(-5, 5, 41), [-40.0, -7.0, 7.0, 40.0]])
    np.testing.assert_array_equal(over(drift, positions), gradient_over(double_well, positions))
    np.testing.assert_array_equal(jax.vmap(drift)(positions), jax.vmap(gradient)(positions))
    one = jnp.asarray(1.1)
    np.testing.assert_array_equal(drift(one), gradient(one))


@functools.partial(jax.jit, static_argnums=0)
def over_double_well(build, alpha, positions):
    """A drift on the double well by the program for any α."""
    return jax.vmap(build(double_well, alpha))(positions)


@every_density_builder
def test_a_traced_alpha_two_is_the_gradient(build):
    positions = np.linspace(-5, 5, POINTS)
    gradients = gradient_over(double_well, positions)
    # Panels take no gradient: theirs is that of the interpolant, which rounding reaches.
    rtol = 1e-11 if build is drifts.quadrature else 1e-13
    np.testing.assert_allclose(over_double_well(build, 2.0, positions), gradients, rtol=rtol)


def test_alpha_two_of_the_closed_forms():
    x = np.linspace(-6, 6, 25)
    expected = -(x - 0.5) / 0.7**2
    gaussian = drifts.gaussian(2.0, mean=0.5, std=0.7)
    np.testing.assert_allclose(over(gaussian, x), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(over(drifts.stable_target(2.0, scale=3.0), x), -x / 18, rtol=1e-14)
    by_mixture = over(drifts.gaussian_mixture(2.0, *mixture_parameters()), x)
    np.testing.assert_allclose(by_mixture, gradient_over(mixture, x), rtol=1e-11, atol=1e-13)


GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)


LIMIT_POSITIONS = np.array([-3.0, -1.2, 0.4, 2.5])


def departures(build) -> np.ndarray:
    """|b_α − ∇log φ| for α = 2 − gap, a row for each gap, by one program with α traced."""
    rows, _ = by_traced_alpha(build)(2.0 - np.array([0.0, *GAPS]), LIMIT_POSITIONS)
    return np.abs(np.asarray(rows[1:] - rows[0]))


LIMIT_BUILDERS = {
    name: build
    for name, build in BUILDERS.items()
    if name not in ("leading_term", "quadrature_to_infinity")
}


@pytest.mark.parametrize("build", LIMIT_BUILDERS.values(), ids=LIMIT_BUILDERS.keys())
def test_limit_at_alpha_two_is_smooth(build):
    """The departure is proportional to 2 − α, from 1e-3 down to the rounding."""
    rows = departures(build)
    rate = rows[3] / GAPS[3]
    for gap, row in zip(GAPS, rows, strict=True):
        # A square term, sized by the widest gap, and rounding: 1e-10 is far under any bar on b.
        square = 2 * rows[0] * (gap / GAPS[0]) ** 2
        assert np.all(np.abs(row - rate * gap) <= 1e-10 + 0.01 * rate * gap + square), gap


def test_limit_of_the_leading_term_is_of_second_order():
    """d/dα log c_α = ψ(α−1) − ψ(α/2) vanishes at 2, and c_α − 1 ≈ (π²/24) (2−α)² … (1 + 2−α)."""
    for gap, row in zip(GAPS, departures(BUILDERS["leading_term"]), strict=True):
        excess = row / np.abs(LIMIT_POSITIONS)
        assert np.all(np.abs(excess - np.pi**2 / 24 * gap**2) <= gap**3 + 5e-15), gap


def test_limit_at_alpha_two_has_the_exact_rate():
    """d/dα of the normal's drift at α = 2, from its closed form by a difference in 30 digits."""
    positions, gap = LIMIT_POSITIONS, 1e-6
    exact = np.array([(normal_drift(x, 2 - gap) - (-x)) / gap for x in positions.tolist()])
    for name in ("quadrature", "quadrature_own_radius", "gaussian"):
        computed = (over(BUILDERS[name](2 - gap), positions) + positions) / gap
        np.testing.assert_allclose(computed, exact, rtol=1e-4)


@pytest.mark.parametrize("name", ["quadrature", "quadrature_own_radius"])
def test_limit_at_alpha_two_on_the_double_well(name):
    """At the barrier b grows by e^17 a unit of 2 − α, and must still meet the gradient."""
    build, positions = FROM_DENSITY[name], np.array([-4.2, -3.0, -0.4, 0.6, 3.3])
    row_of = np.resize(positions, POINTS)

    at_two = over_double_well(build, 2.0, row_of)

    def departure_of_traced(gap):
        here = over_double_well(build, 2.0 - gap, row_of)
        return np.abs(np.asarray(here - at_two))[: len(positions)]

    rate = departure_of_traced(GAPS[3]) / GAPS[3]
    gradient = over(build(double_well, 2.0), positions)
    for gap in GAPS[2::2]:
        fixed = np.abs(over(build(double_well, 2.0 - gap), positions) - gradient)
        for departure in (departure_of_traced(gap), fixed):
            assert np.all(np.abs(departure - rate * gap) <= 0.02 * rate * gap + 1e-9), gap


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_quadrature_keeps_its_accuracy_next_to_alpha_two(gap):
    positions = np.array([-6.0, -4.0, -2.0, -0.5, 1.0, 3.0, 5.0])
    exact = np.array([normal_drift(x, 2 - gap) for x in positions.tolist()])
    for radius in (14.0, None):
        drift = drifts.quadrature(normal, 2 - gap, radius=radius)
        assert worst(over(drift, positions), exact) <= 1e-8


# --- sign and logarithm -------------------------------------------------------------------------


@every_builder
def test_signed_log_is_the_value(build):
    value, size = value_and_size(build(1.6), [-4.0, -1.0, 0.3, 2.0, 5.0])
    np.testing.assert_array_equal(size.sign, np.sign(value))
    np.testing.assert_allclose(size.sign * np.exp(size.log_size), value, rtol=1e-12)


@every_density_builder
@pytest.mark.parametrize("alpha", [1.2, 1.9])
def test_signed_log_is_finite_where_the_value_overflows(build, alpha):
    positions = np.array([-40.0, 40.0])
    value, size = value_and_size(build(double_well, alpha), positions)
    assert np.all(np.isfinite(size.log_size))
    np.testing.assert_array_equal(size.sign, -np.sign(positions))
    assert not np.any(np.isnan(value))


@pytest.mark.parametrize(
    ("num_nodes", "bar", "anchored"), [(96, 0.02, False), (96, 0.02, True), (320, 1e-8, True)]
)
def test_own_radius_reaches_the_wells_from_afar(num_nodes, bar, anchored):
    """At x = ±40 the drift is e^{250 000}; its logarithm is known to the rounding of U.

    Seen from there the wells, 0.3 wide, lie between nodes 0.7 apart if there are 96 of them, and b
    is good to two digits; with 320 the quadrature resolves them.
    """
    for alpha in ALPHAS:
        positions, sign, log_size = log_reference("double_well_far", alpha)
        drift = drifts.quadrature(double_well, alpha, num_nodes=num_nodes, anchored=anchored)
        computed = size_over(drift, positions)
        np.testing.assert_array_equal(computed.sign, sign)
        np.testing.assert_allclose(computed.log_size, log_size, rtol=1e-13, atol=bar)


def normal_pair(position):
    return normal(position["a"]) + jnp.sum(normal(position["b"]))


def test_signed_log_has_the_structure_of_the_position():
    position = {"a": jnp.asarray(0.3), "b": jnp.array([1.0, -2.0])}
    value, size = evaluated(drifts.quadrature(normal_pair, 1.5, radius=12.0), position)
    assert jax.tree.structure(size.sign) == jax.tree.structure(position)
    rebuilt = jax.tree.map(lambda sign, log: sign * jnp.exp(log), size.sign, size.log_size)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), rebuilt, value)


# --- positions: pytrees, dimensions, dtypes -----------------------------------------------------


def well_and_normals(position):
    return double_well(position["well"]) + jnp.sum(normal(position["rest"]))


@every_density_builder
def test_product_targets_split_into_coordinates(build):
    well, rest = np.asarray(0.8), np.array([[0.5, -1.0, 2.0], [-0.1, 0.0, 3.0]])
    for alpha in (1.4, 2.0):
        value, _ = evaluated(build(well_and_normals, alpha), {"well": well, "rest": rest})
        assert value["rest"].shape == rest.shape
        alone = over(build(double_well, alpha), well[None])[0]
        np.testing.assert_allclose(value["well"], alone, rtol=1e-9)
        alone = over(build(normal, alpha), rest.ravel()).reshape(rest.shape)
        np.testing.assert_allclose(value["rest"], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "stable_target"])
def test_closed_forms_act_coordinate_by_coordinate(name):
    drift = BUILDERS[name](1.7)
    position = {"a": np.asarray(0.3), "b": (np.array([[1.0], [-2.0]]),)}
    value, _ = evaluated(drift, position)
    assert jax.tree.structure(value) == jax.tree.structure(position)
    alone = over(drift, [0.3, 1.0, -2.0])
    np.testing.assert_allclose(value["a"], alone[0], rtol=1e-13)
    np.testing.assert_allclose(value["b"][0][:, 0], alone[1:], rtol=1e-13)


PRECISION = np.array([[2.0, 0.8, -0.3], [0.8, 1.5, 0.4], [-0.3, 0.4, 1.0]])
MEAN = np.array([0.5, -1.0, 2.0])


def correlated_normal(x):
    return -((x - MEAN) @ PRECISION @ (x - MEAN)) / 2


@pytest.mark.parametrize("radius", [12.0, None])
@every_alpha
def test_correlated_normal_through_its_conditionals(alpha, radius):
    """Along an axis the density is a conditional normal, whose drift is known."""
    position = np.array([1.0, 0.2, 0.7])
    expected = []
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        pull = PRECISION[axis, others] @ (position - MEAN)[others] / PRECISION[axis, axis]
        std = PRECISION[axis, axis] ** -0.5
        expected.append(scaled_normal_drift(position[axis], alpha, MEAN[axis] - pull, std))
    value, _ = evaluated(drifts.quadrature(correlated_normal, alpha, radius=radius), position)
    assert worst(value, np.array(expected)) <= 1e-8


@every_alpha
def test_correlated_normal_by_hand(alpha):
    """The same rule written out with scipy's nodes, one axis at a time."""
    position, radius = np.array([1.0, 0.2, 0.7]), 12.0
    roots, masses = scipy.special.roots_jacobi(96, 0.0, 1 - alpha)
    distance = radius * (roots + 1) / 2
    mass = masses * (radius / 2) ** (2 - alpha)
    order = 2 - alpha
    kernel = 2 * scipy.special.gamma(order) * np.cos(np.pi * order / 2)

    def ratios(shifts):
        here = correlated_normal(position)
        return np.exp([correlated_normal(position + shift) - here for shift in shifts])

    by_hand = []
    for axis in np.eye(3):
        forward, backward = (ratios(sign * distance[:, None] * axis) for sign in (1, -1))
        by_hand.append(np.sum(mass * (forward - backward) / distance) * (alpha - 1) / kernel)
    drift = drifts.quadrature(correlated_normal, alpha, radius=radius, num_nodes=96)
    # scipy's nodes cancel near u = 0 without protection: they are good to 1e-9 at α = 1.9.
    np.testing.assert_allclose(evaluated(drift, position)[0], by_hand, rtol=1e-7)


@every_builder
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_dtype_and_shape_are_kept(build, dtype):
    position = jax.ShapeDtypeStruct((), dtype)
    leaves = jax.tree.leaves(jax.eval_shape(evaluated, build(1.7), position))
    assert [(leaf.shape, leaf.dtype) for leaf in leaves] == [((), dtype)] * 3


@every_density_builder
def test_each_leaf_keeps_its_own_dtype(build):
    def logdensity(position):
        return normal(position["single"]).astype(jnp.float64) + normal(position["double"])

    position = {"single": jnp.asarray(0.5, jnp.float32), "double": jnp.asarray(0.5, jnp.float64)}
    value = jax.eval_shape(build(logdensity, 1.6), position)
    assert value["single"].dtype == jnp.float32
    assert value["double"].dtype == jnp.float64


FLOAT32_BARS = {"normal": 2e-5, "double_well": 2e-4}


# The two of the double well and the two of the normal take all ways: anchored or not, by α, and
# with a radius given or found.
@pytest.mark.parametrize(
    ("alpha", "target", "radius"),
    [
        (1.2, "double_well", 13.0),
        (1.9, "double_well", None),
        (1.9, "normal", 13.0),
        (1.2, "normal", None),
        pytest.param(1.2, "double_well", None, marks=pytest.mark.nightly),
        pytest.param(1.9, "double_well", 13.0, marks=pytest.mark.nightly),
        pytest.param(1.2, "normal", 13.0, marks=pytest.mark.nightly),
        pytest.param(1.9, "normal", None, marks=pytest.mark.nightly),
    ],
)
def test_float32_accuracy(alpha, target, radius):
    """Relative to |b|, 0.2 away from the roots: nearer, the rounding of x in float32 tells.

    U reaches 17 on the double well, and its rounding enters the drift as exp(U): 17 · 1.2e-7 · few.
    """
    positions, exact = reference(target, alpha)
    roots = np.array(ORACLE["double_well"][str(alpha)]["roots"] if target != "normal" else [0.0])
    away = np.min(np.abs(positions[:, None] - roots.astype(float)), axis=1) > 0.2
    # Quarters are exact in float32, so that both sides stand at the same place.
    away &= positions == positions.astype(np.float32)
    function = {"normal": normal, "double_well": double_well}[target]
    drift = drifts.quadrature(function, alpha, radius=radius)
    computed = over(drift, positions[away].astype(np.float32))
    assert computed.dtype == np.float32
    assert worst(computed.astype(float), exact[away]) <= FLOAT32_BARS[target]


# --- α by coordinate, traced α ------------------------------------------------------------------


@every_density_builder
def test_alpha_by_coordinate(build):
    alphas = {"a": 1.3, "b": jnp.array([1.6, 2.0])}
    position = {"a": np.asarray(-0.7), "b": np.array([1.1, 0.4])}
    value, _ = evaluated(build(normal_pair, alphas), position)
    alone = over(build(normal, 1.3), position["a"][None])[0]
    np.testing.assert_allclose(value["a"], alone, rtol=1e-10)
    for index, alpha in enumerate((1.6, 2.0)):
        alone = over(build(normal, alpha), position["b"][index][None])[0]
        np.testing.assert_allclose(value["b"][index], alone, rtol=1e-10)


@pytest.mark.parametrize("name", ["gaussian", "stable_target"])
def test_alpha_by_coordinate_of_the_closed_forms(name):
    alphas, position = jnp.array([1.2, 1.6, 2.0]), np.array([0.5, -1.0, 2.0])
    together, _ = evaluated(BUILDERS[name](alphas), position)
    for axis, alpha in enumerate(alphas.tolist()):
        alone = over(BUILDERS[name](alpha), position)[axis]
        np.testing.assert_allclose(together[axis], alone, rtol=1e-13)


def test_alpha_by_coordinate_of_the_mixture():
    alphas, position = jnp.array([1.3, 1.8]), np.array([0.5, -1.0])
    together, _ = evaluated(drifts.gaussian_mixture(alphas, *plane_parameters()), position)
    for axis, alpha in enumerate((1.3, 1.8)):
        alone = over(drifts.gaussian_mixture(alpha, *plane_parameters()), position[None])
        np.testing.assert_allclose(together[axis], alone[0, axis], rtol=1e-12)


@every_builder
def test_traced_alpha_under_vmap_is_the_loop(build):
    """Values and signed logarithms; of as many α and positions as for the limit at α = 2."""
    alphas, positions = [1.05, 1.55, 1.6, 2.0], np.array([-2.0, 0.3, 0.6, 3.0])
    values, sizes = by_traced_alpha(build)(np.resize(alphas, 1 + len(GAPS)), positions)
    for row, alpha in enumerate(alphas):
        value, size = value_and_size(build(alpha), positions)
        np.testing.assert_allclose(values[row], value, rtol=1e-9)
        np.testing.assert_array_equal(sizes.sign[row], size.sign)
        np.testing.assert_allclose(sizes.log_size[row], size.log_size, rtol=0, atol=1e-9)


# --- transformations ----------------------------------------------------------------------------


@every_builder
def test_jit_and_vmap_change_nothing(build):
    drift, positions = build(1.6), np.array([-3.0, 0.2, 4.0])
    # jax.jit refers to its function weakly and crashes the interpreter on one that forbids it.
    assert weakref.ref(drift)() is drift
    assert jax.eval_shape(jax.jit(drift), positions[1]).shape == ()
    loop = np.stack([drift(x) for x in positions])
    np.testing.assert_allclose(over(drift, positions), loop, rtol=1e-12)


# Operation by operation, each compiled by itself.  The quadrature that finds its radius has most
# of the code that asks whether a value is traced.
@pytest.mark.parametrize(
    "name",
    [
        name if name == "quadrature_own_radius" else pytest.param(name, marks=pytest.mark.nightly)
        for name in BUILDERS
    ],
)
def test_no_jit_changes_nothing(name):
    drift = BUILDERS[name](1.6)
    with jax.disable_jit():
        value = drift(jnp.asarray(0.2))
    np.testing.assert_allclose(value, over(drift, [0.2])[0], rtol=1e-12)


@every_density_builder
def test_one_trace_serves_every_call(build):
    traces = []

    def counted(x):
        traces.append(None)
        return normal(x)

    exact = build(counted, 1.6)
    drift = jax.jit(lambda position: exact(position))
    drift(jnp.asarray(0.5))
    first = len(traces)
    for x in (0.7, -30.0, 2.0):
        drift(jnp.asarray(x))
    assert len(traces) == first


@every_density_builder
def test_drift_inside_scan(build):
    drift = build(normal, 1.6)

    def move(x, _):
        return x + 0.01 * drift(x), x

    last, _ = jax.lax.scan(move, jnp.asarray(1.5), length=20)
    assert 0 < float(last) < 1.5


# --- what a drift costs -------------------------------------------------------------------------


def count_evaluations(build, dimensions: int) -> int:
    """How many times the log-density really runs for one drift in ``dimensions`` coordinates."""
    seen, is_built = [], []

    def counted(x):
        if is_built:  # exploration, once for all drifts, does not count
            # The position goes along, so that vmap calls back once for each of its rows.
            jax.debug.callback(lambda _: seen.append(None), x)
        return jnp.sum(normal(x))

    drift = build(counted, 1.6)
    is_built.append(True)
    jax.block_until_ready(jax.jit(lambda x: drift(x))(0.1 + 0.2 * jnp.arange(dimensions)))
    jax.effects_barrier()
    return len(seen)


@pytest.mark.parametrize("num_nodes", [8, 16])
def test_quadrature_states_its_cost(num_nodes):
    cost = drifts.quadrature(normal, 1.6, radius=12.0, num_nodes=num_nodes).evaluations
    assert 2 * num_nodes <= cost.density <= 2 * num_nodes + 1
    assert cost.gradient == 0


@pytest.mark.parametrize("radius", [12.0, None, jnp.inf])
def test_quadrature_keeps_to_its_cost(radius):
    """That of finding the nodes is in it."""
    cost = drifts.quadrature(normal, 1.6, radius=radius, num_nodes=12).evaluations
    assert cost.density >= 24
    build = functools.partial(drifts.quadrature, radius=radius, num_nodes=12)
    assert count_evaluations(build, 2) <= 2 * (cost.density + cost.gradient)


@pytest.mark.parametrize("num_terms", [1, 12])
def test_centered_difference_states_its_cost(num_terms):
    cost = drifts.centered_difference(normal, 1.6, spacing=0.06, num_terms=num_terms).evaluations
    assert cost.gradient == 2 * num_terms + 1
    build = functools.partial(drifts.centered_difference, spacing=0.06, num_terms=num_terms)
    assert count_evaluations(build, 2) <= 2 * (cost.density + cost.gradient)


def test_leading_term_and_closed_forms_state_their_cost():
    leading = drifts.leading_term(normal, 1.6).evaluations
    assert (leading.density, leading.gradient) == (0, 1)
    for name in ("gaussian", "gaussian_mixture", "stable_target"):
        cost = BUILDERS[name](1.6).evaluations
        assert (cost.density, cost.gradient) == (0, 0)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("radius", [12.0, None, jnp.inf])
def test_quadrature_needs_no_gradient(radius, dtype):
    """A density that cannot be differentiated serves as well as any; tracing would ask for it."""

    @jax.custom_jvp
    def stubborn(x):
        return normal(x)

    @stubborn.defjvp
    def refuse(primals, tangents):
        raise AssertionError("the quadrature asked for a gradient")

    drift = drifts.quadrature(stubborn, 1.6, radius=radius)
    assert drift.evaluations.gradient == 0
    jax.eval_shape(evaluated, drift, jax.ShapeDtypeStruct((), dtype))
    value = over(drifts.quadrature(normal, 1.6, radius=radius), [0.7])
    np.testing.assert_allclose(value, normal_drift(0.7, 1.6), rtol=1e-8)


@pytest.mark.parametrize("alpha", [2.5, 0.9])
def test_a_traced_alpha_outside_its_range_gives_nan(alpha):
    for build in (
        lambda a: drifts.leading_term(normal, a),
        lambda a: drifts.centered_difference(normal, a, spacing=0.1, num_terms=10),
    ):
        assert np.isnan(jax.jit(lambda a, build=build: build(a)(1.0))(alpha))
