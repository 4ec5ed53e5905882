"""Riesz derivatives: coefficients, convergence order, semigroup, and three independent routes.

References are mpmath (coefficients, confluent hypergeometric functions) and exact trigonometric
identities; nothing here is compared with a stored output of the library.
"""

import functools

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.special

from levymc import riesz

NEGATIVE_ORDERS = (-0.9, -0.8, -0.5, -0.3, -0.1)
POSITIVE_ORDERS = (0.3, 0.8, 1.0, 1.5, 1.9)
ALPHAS = (1.2, 1.5, 1.7, 1.9)


# --- references ---------------------------------------------------------------------------------


@functools.cache
def gamma_form(gamma: float, k: int) -> float:
    """g_{γ,k} from the paper's quotient of Gamma functions, in 40 digits."""
    with mp.workdps(40):
        order = mp.mpf(gamma)
        both = mp.rgamma(order / 2 - k + 1) * mp.rgamma(order / 2 + k + 1)
        return float((-1) ** k * mp.gamma(order + 1) * both)


def tail_constant(gamma: float) -> float:
    """lim g_k k^{1+γ}."""
    return -np.sin(np.pi * gamma / 2) * scipy.special.gamma(gamma + 1) / np.pi


# Compiled as a whole: one program for each number of points, not one for each operation.
@jax.jit
def bell(x):
    return jnp.exp(-x * x / 2)


@jax.jit
def bell_slope(x):
    return -x * bell(x)


@jax.jit
def sech(x):
    return 1 / jnp.cosh(x)


def riesz_of_bell(x, gamma: float) -> np.ndarray:
    """D^γ exp(−x²/2) = 2^{γ/2} Γ((γ+1)/2)/√π ₁F₁((γ+1)/2; 1/2; −x²/2), valid for γ > −1."""
    with mp.workdps(30):
        order = mp.mpf(gamma)
        factor = 2 ** (order / 2) * mp.gamma((order + 1) / 2) / mp.sqrt(mp.pi)
        values = [
            factor * mp.hyp1f1((order + 1) / 2, 0.5, -(mp.mpf(point) ** 2) / 2)
            for point in np.ravel(x).tolist()
        ]
    return np.array([float(value) for value in values]).reshape(np.shape(x))


def potential_slope_of_bell(x, alpha: float) -> np.ndarray:
    """∂ I^{2−α} exp(−x²/2) = −(2^{α/2}/√π) Γ((α+1)/2) x ₁F₁((α+1)/2; 3/2; −x²/2)."""
    with mp.workdps(30):
        order = mp.mpf(alpha)
        factor = -(2 ** (order / 2)) * mp.gamma((order + 1) / 2) / mp.sqrt(mp.pi)
        values = [
            factor * point * mp.hyp1f1((order + 1) / 2, 1.5, -(mp.mpf(point) ** 2) / 2)
            for point in np.ravel(x).tolist()
        ]
    return np.array([float(value) for value in values]).reshape(np.shape(x))


# --- coefficients -------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", NEGATIVE_ORDERS + POSITIVE_ORDERS)
def test_coefficients_match_the_gamma_form(gamma):
    coefficients = np.asarray(riesz.coefficients(gamma, 1000))
    chosen = [*range(60), 99, 170, 171, 172, 300, 500, 1000]
    expected = np.array([gamma_form(gamma, k) for k in chosen])
    assert coefficients.shape == (1001,)
    np.testing.assert_allclose(coefficients[chosen], expected, rtol=1e-13)


@pytest.mark.parametrize("gamma", [-0.9, -0.3, 0.8, 1.9])
def test_coefficients_survive_a_hundred_thousand_terms(gamma):
    coefficients = np.asarray(riesz.coefficients(gamma, 100_000))
    assert coefficients.shape == (100_001,)
    assert np.all(np.isfinite(coefficients))
    # Each step of the recursion rounds once: the random walk of 1e5 roundings is below 1e-13,
    # and even roundings that all agree stay below 3e-11.
    for k in (10_000, 100_000):
        np.testing.assert_allclose(coefficients[k], gamma_form(gamma, k), rtol=3e-11)


@pytest.mark.parametrize("gamma", NEGATIVE_ORDERS + POSITIVE_ORDERS)
def test_coefficients_follow_their_tail(gamma):
    coefficients = np.asarray(riesz.coefficients(gamma, 3000))
    k = np.array([300, 1000, 3000])
    # The next term of the expansion is O(k^{-2}) with a constant below 1 for these orders.
    departure = np.abs(coefficients[k] * k ** (1.0 + gamma) / tail_constant(gamma) - 1)
    assert np.all(departure < 1.0 / k**2)


def test_coefficients_at_order_two_are_the_second_difference():
    np.testing.assert_array_equal(riesz.coefficients(2.0, 5), [2.0, -1.0, 0.0, 0.0, 0.0, 0.0])


def test_coefficients_at_order_zero_are_the_identity():
    np.testing.assert_array_equal(riesz.coefficients(0.0, 4), [1.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("gamma", [-0.7, -0.2, 0.6, 1.4])
@pytest.mark.parametrize("angle", [0.5, 1.5, np.pi])
def test_coefficients_generate_the_symbol(gamma, angle):
    """Σ g_k e^{ikz} = |2 sin(z/2)|^γ, the identity behind the whole scheme."""
    num_terms = 200_000
    coefficients = np.asarray(riesz.coefficients(gamma, num_terms))
    terms = 2 * coefficients * np.cos(angle * np.arange(num_terms + 1))
    terms[0] = coefficients[0]
    # The sum oscillates with the amplitude of its last term over 2 sin(z/2).
    remainder = 2 * abs(coefficients[-1]) / np.sin(angle / 2)
    expected = abs(2 * np.sin(angle / 2)) ** gamma
    assert abs(np.sum(terms) - expected) < remainder + 1e-11


@pytest.mark.parametrize("gamma", [-0.9, -0.5, -0.1])
def test_second_difference_of_coefficients_raises_the_order_by_two(gamma):
    """D² D^γ = D^{γ+2} holds between the coefficients themselves, without truncation."""
    low = np.asarray(riesz.coefficients(gamma, 400))
    high = np.asarray(riesz.coefficients(gamma + 2, 398))
    both_sides = np.concatenate([low[:0:-1], low])
    second = 2 * both_sides[1:-1] - both_sides[:-2] - both_sides[2:]
    centre = len(second) // 2
    np.testing.assert_allclose(second[centre : centre + 399], high, rtol=1e-9, atol=1e-15)


def test_coefficients_accept_a_traced_order():
    orders = jnp.array([-0.5, 0.0, 0.5, 2.0])
    batched = jax.vmap(lambda gamma: riesz.coefficients(gamma, 50))(orders)
    for order, row in zip(orders.tolist(), batched, strict=True):
        np.testing.assert_allclose(row, riesz.coefficients(order, 50), rtol=1e-12, atol=1e-15)


# --- centred differences: Theorem 2 -------------------------------------------------------------


def step_errors(gamma: float, x: float, spacings, reach: float = 20.0) -> np.ndarray:
    """Signed error on the bell curve for each spacing, with the truncation out of the way."""
    exact = riesz_of_bell(x, gamma)
    values = [
        riesz.centered_difference(bell, x, gamma, spacing=h, num_terms=round(reach / h))
        for h in spacings
    ]
    return np.array([float(value) for value in values]) - exact


@pytest.mark.parametrize("x", [0.3, 1.7])
@pytest.mark.parametrize("gamma", [-0.8, -0.5, -0.2, 0.5, 1.0, 1.5, 1.9, 2.0])
def test_error_falls_with_the_square_of_the_spacing(gamma, x):
    spacings = np.array([0.4, 0.2, 0.1, 0.05])
    errors = np.abs(step_errors(gamma, x, spacings))
    slope = np.polyfit(np.log(spacings), np.log(errors), 1)[0]
    assert abs(slope - 2) < 0.2


@pytest.mark.parametrize("gamma", [-0.8, -0.5, -0.2, 0.5, 1.0, 1.5, 2.0])
def test_error_has_the_constant_of_the_symbol(gamma):
    """|2 sin(z/2)|^γ = |z|^γ (1 − γ z²/24 + …), so the error is −γ h²/24 · D^{γ+2} f."""
    spacing = 0.05
    error = step_errors(gamma, 0.4, [spacing])[0]
    predicted = -gamma / 24 * spacing**2 * riesz_of_bell(0.4, gamma + 2)
    np.testing.assert_allclose(error, predicted, rtol=0.02)


@pytest.mark.parametrize("gamma", [-0.8, -0.5, -0.2])
def test_truncation_error_on_exponential_tails(gamma):
    """Lemma: the part left out is O(Γ(−γ, hK)), which is itself O(1/(hK))."""
    # Numbers of terms that other tests have, too: each is compiled anew.
    spacing, constant = 0.05, tail_constant(gamma)
    full = riesz.centered_difference(sech, 0.0, gamma, spacing=spacing, num_terms=400)
    for num_terms in (50, 100, 200):
        part = riesz.centered_difference(sech, 0.0, gamma, spacing=spacing, num_terms=num_terms)
        missing = float(full - part)
        # A sum over k > K is the integral from the midpoint K + 1/2, up to O(h²).
        lower = (num_terms + 0.5) * spacing
        integral, _ = scipy.integrate.quad(
            lambda u: u ** (-1 - gamma) / np.cosh(u), lower, lower + 40, epsrel=1e-10, epsabs=0
        )
        np.testing.assert_allclose(missing, 2 * constant * integral, rtol=0.01)
        # sech(u) ≤ 2 exp(−u), on both sides.
        reach = num_terms * spacing
        bound = 4 * constant * scipy.special.gamma(-gamma)
        bound *= scipy.special.gammaincc(-gamma, reach)
        assert 0 < missing < bound
        assert bound < 4 * constant / reach


def test_truncation_dominates_when_the_reach_is_short():
    """The U shape of the paper's Figure 3: at fixed K both a tiny and a large h are bad."""
    gamma, x = -0.4, 0.5
    exact = riesz_of_bell(x, gamma)
    errors = [
        abs(float(riesz.centered_difference(bell, x, gamma, spacing=h, num_terms=15)) - exact)
        for h in (0.01, 0.4, 2.0)
    ]
    assert errors[1] < 0.02 * errors[0]
    assert errors[1] < 0.1 * errors[2]


def test_order_two_is_minus_the_second_derivative():
    x, spacing = jnp.linspace(-3, 3, 13), 1e-3
    second = riesz.centered_difference(bell, x, 2.0, spacing=spacing, num_terms=3)
    expected = -(x**2 - 1) * jnp.exp(-(x**2) / 2)
    # h²/12 times the fourth derivative, which is at most 3, plus rounding of size 1e-16/h².
    np.testing.assert_allclose(second, expected, rtol=0, atol=3e-7)


def test_centered_difference_composes():
    """D^{-0.5} D^{1.2} = D^{0.7}, with one difference operator inside the other."""

    def inner(x):
        # Must find the bell from any place the outer operator goes to: 80 away, and its width.
        return riesz.centered_difference(bell, x, 1.2, spacing=0.05, num_terms=1800)

    outer = riesz.centered_difference(inner, 0.6, -0.5, spacing=0.05, num_terms=1600)
    # The inner function falls as |x|^{-2.2}; what lies beyond 80 contributes less than 1e-4.
    np.testing.assert_allclose(outer, riesz_of_bell(0.6, 0.7), rtol=0, atol=5e-4)


def test_centered_difference_is_elementwise():
    x = jnp.linspace(-2, 2, 6).reshape(2, 3)
    together = riesz.centered_difference(bell, x, -0.5, spacing=0.1, num_terms=100)
    assert together.shape == (2, 3)
    for index in np.ndindex(2, 3):
        alone = riesz.centered_difference(bell, x[index], -0.5, spacing=0.1, num_terms=100)
        assert jnp.shape(alone) == ()
        np.testing.assert_allclose(together[index], alone, rtol=1e-13)


def test_centered_difference_under_jit_and_traced_order():
    def evaluate(x, gamma):
        return riesz.centered_difference(bell, x, gamma, spacing=0.1, num_terms=100)

    x, orders = jnp.array([0.2, 1.3]), jnp.array([-0.6, 1.1])
    traced = jax.jit(jax.vmap(evaluate, in_axes=(None, 0)))(x, orders)
    for order, row in zip(orders.tolist(), traced, strict=True):
        np.testing.assert_allclose(row, evaluate(x, order), rtol=1e-12)


def test_centered_difference_keeps_float32():
    x = jnp.array([0.2, 1.3], dtype=jnp.float32)
    value = riesz.centered_difference(bell, x, -0.6, spacing=0.1, num_terms=100)
    assert value.dtype == jnp.float32
    exact = riesz.centered_difference(bell, x.astype(jnp.float64), -0.6, spacing=0.1, num_terms=100)
    np.testing.assert_allclose(value, exact, rtol=1e-5)


# --- Fourier reference --------------------------------------------------------------------------


def circle(size: int = 64):
    return jnp.arange(size) * (2 * jnp.pi / size), 2 * np.pi / size


@pytest.mark.parametrize("frequency", [1, 3, 10])
@pytest.mark.parametrize("gamma", [-0.9, -0.5, 0.0, 0.7, 1.0, 1.6, 2.0])
def test_fourier_derivative_has_trigonometric_eigenfunctions(gamma, frequency):
    x, spacing = circle()
    for wave in (jnp.cos(frequency * x), jnp.sin(frequency * x + 0.4)):
        derivative = riesz.fourier_derivative(wave, gamma, spacing=spacing)
        np.testing.assert_allclose(derivative, frequency**gamma * wave, rtol=0, atol=1e-12 * 10**2)
        assert derivative.shape == wave.shape


def test_fourier_derivative_knows_the_length_of_the_period():
    """Stretching the axis by s divides D^γ by s^γ."""
    x, spacing = circle()
    wave = jnp.sin(2 * x)
    stretched = riesz.fourier_derivative(wave, 1.3, spacing=5 * spacing)
    np.testing.assert_allclose(stretched, (2 / 5) ** 1.3 * wave, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("first", "second"), [(0.4, 0.9), (-0.6, 1.5), (-0.3, -0.4), (1.0, 1.0)])
def test_fourier_derivatives_compose(first, second):
    x, spacing = circle()
    values = jnp.sin(x) + 0.5 * jnp.cos(4 * x + 1) - 0.2 * jnp.sin(9 * x)
    inner = riesz.fourier_derivative(values, second, spacing=spacing)
    twice = riesz.fourier_derivative(inner, first, spacing=spacing)
    once = riesz.fourier_derivative(values, first + second, spacing=spacing)
    np.testing.assert_allclose(twice, once, rtol=0, atol=1e-11)


def test_fourier_derivative_of_order_two_is_minus_the_second_derivative():
    x, spacing = circle()
    values = jnp.exp(jnp.sin(x))
    expected = -(jnp.cos(x) ** 2 - jnp.sin(x)) * values
    computed = riesz.fourier_derivative(values, 2.0, spacing=spacing)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("size", [63, 64])
def test_fourier_derivative_with_odd_and_even_sizes(size):
    x, spacing = circle(size)
    wave = jnp.cos(5 * x)
    derivative = riesz.fourier_derivative(wave, 0.5, spacing=spacing)
    np.testing.assert_allclose(derivative, 5**0.5 * wave, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [int, jnp.float16])
@pytest.mark.parametrize("gamma", [-0.5, 0.5])
def test_fourier_derivative_of_other_numbers(dtype, gamma):
    """Before, the frequencies were rounded to integers with the values: all results were zero."""
    wave = jnp.array([0, 1, 0, -1] * 4)
    derivative = riesz.fourier_derivative(wave.astype(dtype), gamma, spacing=1.0)
    assert derivative.dtype == (jnp.float16 if dtype is jnp.float16 else jnp.result_type(float))
    np.testing.assert_allclose(derivative, (np.pi / 2) ** gamma * wave, rtol=1e-3, atol=1e-3)


def test_fourier_derivative_refuses_a_mean_for_negative_orders():
    x, spacing = circle()
    with pytest.raises(ValueError, match="mean"):
        riesz.fourier_derivative(1.0 + jnp.sin(x), -0.5, spacing=spacing)


def test_fourier_derivative_traces_at_negative_orders():
    x, spacing = circle()
    values = jnp.sin(3 * x)

    def evaluate(samples):
        return riesz.fourier_derivative(samples, -0.5, spacing=spacing)

    np.testing.assert_allclose(jax.jit(evaluate)(values), evaluate(values), rtol=0, atol=1e-14)
    assert np.all(np.isfinite(jax.jit(evaluate)(values + 1.0)))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_derivatives_in_sixteen_bits(dtype):
    """Before, off by up to a third: the k of a long sum are not among the numbers of sixteen."""
    x, digits = jnp.asarray(1.0, dtype), 2 * float(jnp.finfo(dtype).eps)

    def bell(u):
        return jnp.exp(-u * u / 2)

    found = riesz.derivative_of_potential(bell, x, 1.5, radius=12.0)
    assert found.dtype == dtype
    expected = riesz.derivative_of_potential(bell, 1.0, 1.5, radius=12.0)
    np.testing.assert_allclose(float(found), expected, rtol=digits)
    found = riesz.centered_difference(jax.grad(bell), x, -0.5, spacing=0.01, num_terms=3000)
    assert found.dtype == dtype
    np.testing.assert_allclose(float(found), expected, rtol=digits)


# --- Gauss–Jacobi -------------------------------------------------------------------------------


@pytest.mark.parametrize("num_nodes", [1, 2, 16, 64, 65, 96, 200])
@pytest.mark.parametrize("alpha", [1.05, *ALPHAS, 1.99])
def test_gauss_jacobi_integrates_powers(alpha, num_nodes):
    """∫ (2−α) u^{1−α} u^m = (2−α)/(2−α+m), exact up to m = 2n − 1."""
    nodes, weights = (np.asarray(part) for part in riesz.gauss_jacobi(alpha, num_nodes))
    assert nodes.shape == weights.shape == (num_nodes,)
    assert np.all((nodes > 0) & (nodes < 1))
    assert np.all(weights > 0)
    np.testing.assert_allclose(np.sum(weights), 1, rtol=1e-12)
    powers = np.unique(np.linspace(0, 2 * num_nodes - 1, 12).astype(int))
    moments = [np.sum(weights * nodes**power) for power in powers]
    np.testing.assert_allclose(moments, (2 - alpha) / (2 - alpha + powers), rtol=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gauss_jacobi_agrees_with_scipy(alpha):
    nodes, weights = (np.asarray(part) for part in riesz.gauss_jacobi(alpha, 48))
    roots, masses = scipy.special.roots_jacobi(48, 0.0, 1 - alpha)
    order = np.argsort(nodes)
    np.testing.assert_allclose(nodes[order], (roots + 1) / 2, rtol=1e-9)
    np.testing.assert_allclose(weights[order], masses / np.sum(masses), rtol=1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
def test_gauss_jacobi_towards_alpha_two(gap):
    """The weight gathers at 0: all moments vanish as 2 − α, at a relative accuracy worth having."""
    alpha = 2 - gap
    nodes, weights = (np.asarray(part) for part in riesz.gauss_jacobi(alpha, 64))
    assert np.all(np.isfinite(nodes))
    np.testing.assert_allclose(np.sum(weights), 1, rtol=1e-12)
    for power in (1, 2, 5, 20):
        exact = (2 - alpha) / (2 - alpha + power)
        np.testing.assert_allclose(np.sum(weights * nodes**power), exact, rtol=1e-9)


def test_gauss_jacobi_accepts_a_traced_alpha():
    alphas = jnp.array(ALPHAS)
    nodes, weights = jax.jit(jax.vmap(lambda alpha: riesz.gauss_jacobi(alpha, 64)))(alphas)
    for row, alpha in enumerate(ALPHAS):
        fixed_nodes, fixed_weights = riesz.gauss_jacobi(alpha, 64)
        np.testing.assert_allclose(nodes[row], fixed_nodes, rtol=1e-10)
        np.testing.assert_allclose(weights[row], fixed_weights, rtol=1e-10)


# --- the potential, and the three routes together -----------------------------------------------


@pytest.mark.parametrize("alpha", [1.05, *ALPHAS, 1.99])
def test_derivative_of_potential_on_a_bell_curve(alpha):
    x = np.linspace(-4, 4, 33)
    computed = riesz.derivative_of_potential(bell, jnp.asarray(x), alpha, radius=12.5, num_nodes=96)
    exact = potential_slope_of_bell(x, alpha)
    np.testing.assert_allclose(computed, exact, rtol=1e-10, atol=1e-11)


def test_derivative_of_potential_takes_scalars_and_any_shape():
    x = jnp.linspace(-1, 2, 6).reshape(3, 2)
    together = riesz.derivative_of_potential(bell, x, 1.5, radius=12.0, num_nodes=64)
    assert together.shape == (3, 2)
    alone = riesz.derivative_of_potential(bell, x[2, 1], 1.5, radius=12.0, num_nodes=64)
    assert jnp.shape(alone) == ()
    np.testing.assert_allclose(together[2, 1], alone, rtol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_three_routes_agree(alpha):
    """Differences and FFT of the gradient against the gradient-free quadrature."""
    x = jnp.array([-2.0, -0.5, 0.5, 1.0, 3.0])
    quadrature = riesz.derivative_of_potential(bell, x, alpha, radius=12.5, num_nodes=96)

    def difference(spacing: float):
        num_terms = round(16 / spacing)
        return riesz.centered_difference(
            bell_slope, x, alpha - 2, spacing=spacing, num_terms=num_terms
        )

    # One Richardson step removes the h² term and leaves h⁴ ≈ 6e-6 times a small constant.
    extrapolated = (4 * difference(0.025) - difference(0.05)) / 3
    np.testing.assert_allclose(extrapolated, quadrature, rtol=0, atol=1e-7)

    # Images at distance L disturb an odd function falling as |x|^{-α} by x L^{-α-1} ζ(α+1) …: with
    # L = 16384 that is 4e-9 at α = 1.2.
    spacing, size = 0.125, 2**17
    grid = (np.arange(size) - size // 2) * spacing
    spectral = riesz.fourier_derivative(-grid * np.exp(-(grid**2) / 2), alpha - 2, spacing=spacing)
    index = np.rint(np.asarray(x) / spacing).astype(int) + size // 2
    np.testing.assert_allclose(spectral[index], quadrature, rtol=0, atol=2e-8)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [-1.0, -1.5, 2.1, float("nan")])
def test_orders_outside_the_range_are_refused(gamma):
    with pytest.raises(ValueError, match=r"gamma.*" + str(gamma)):
        riesz.coefficients(gamma, 10)
    with pytest.raises(ValueError, match=r"gamma.*" + str(gamma)):
        riesz.centered_difference(bell, 0.5, gamma, spacing=0.1, num_terms=10)


@pytest.mark.parametrize("spacing", [0.0, -0.1, float("nan")])
def test_spacings_that_are_not_positive_are_refused(spacing):
    with pytest.raises(ValueError, match=r"spacing.*" + str(spacing)):
        riesz.centered_difference(bell, 0.5, 0.5, spacing=spacing, num_terms=10)
    with pytest.raises(ValueError, match=r"spacing.*" + str(spacing)):
        riesz.fourier_derivative(jnp.zeros(8), 0.5, spacing=spacing)


@pytest.mark.parametrize("alpha", [1.0, 2.5, float("nan")])
def test_alphas_outside_the_range_are_refused(alpha):
    with pytest.raises(ValueError, match=rf"alpha.*{alpha}.* 2 is plain Langevin"):
        riesz.gauss_jacobi(alpha, 8)
    with pytest.raises(ValueError, match=rf"alpha.*{alpha}.* 2 is plain Langevin"):
        riesz.derivative_of_potential(bell, 0.5, alpha, radius=5.0, num_nodes=8)


def test_sizes_that_are_not_positive_are_refused():
    with pytest.raises(ValueError, match=r"num_terms.*-1"):
        riesz.centered_difference(bell, 0.5, 0.5, spacing=0.1, num_terms=-1)
    with pytest.raises(ValueError, match=r"num_nodes.*0"):
        riesz.gauss_jacobi(1.5, 0)
    with pytest.raises(ValueError, match=r"radius.*-3"):
        riesz.derivative_of_potential(bell, 0.5, 1.5, radius=-3.0, num_nodes=8)
