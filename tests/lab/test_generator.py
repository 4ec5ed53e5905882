"""The discretised generator: its matrices on a Gaussian, its laws where they are known."""

import jax
import numpy as np
import pytest
import scipy.special
from tests.lab.sinc_matrices import fractional_gradient, fractional_laplacian

from levymc import drifts, stable
from levymc_lab.paper import _double_well as well
from levymc_lab.paper._generator import spacing, stationary_density


def exact_drift(grid, alpha):
    drift = drifts.quadrature(well.target, alpha, radius=lambda x: abs(x) + 6.0, num_nodes=128)
    return np.asarray(jax.jit(jax.vmap(drift))(grid))


def distance(one, other, grid):
    """Total variation."""
    return np.abs(one - other).sum() * spacing(grid) / 2


@pytest.mark.parametrize("alpha", [1.2, 1.7, 2.0])
def test_the_matrices_are_exact_on_a_gaussian(alpha):
    """-(-Δ)^{α/2} e^{-x²/2} = -2^{α/2} Γ((α+1)/2)/√π ₁F₁((α+1)/2; 1/2; -x²/2)."""
    grid = np.linspace(-12, 12, 161)
    bell = np.exp(-(grid**2) / 2)
    scale = 2 ** (alpha / 2) * scipy.special.gamma((alpha + 1) / 2) / np.sqrt(np.pi)
    exact = -scale * scipy.special.hyp1f1((alpha + 1) / 2, 0.5, -(grid**2) / 2)
    np.testing.assert_allclose(fractional_laplacian(grid, alpha) @ bell, exact, atol=1e-12)
    slope = bell * np.asarray(jax.vmap(drifts.gaussian(alpha))(grid))
    np.testing.assert_allclose(fractional_gradient(grid, alpha) @ bell, slope, atol=1e-12)


def test_the_double_well_is_stationary_under_the_exact_drift():
    """Its flux bπ decays slowly: only the fractional gradient of π itself can be compared."""
    grid, alpha = np.linspace(-6, 6, 401), 1.7
    density = well.density(grid)
    flux = exact_drift(grid, alpha) * density
    assert np.abs(fractional_gradient(grid, alpha) @ density - flux).max() < 1e-8


@pytest.mark.parametrize("alpha", [1.3, 1.7, 1.9])
def test_a_linear_drift_has_a_stable_law(alpha):
    """Of scale α^{-1/α}; the tails beyond the grid, of mass 30^{-α}, are put on its ends."""
    grid = np.linspace(-30, 30, 601)
    found = stationary_density(-grid, grid, alpha)
    scale = alpha ** (-1 / alpha)
    exact = np.asarray(stable.pdf(grid / scale, alpha)) / scale
    assert distance(found, exact, grid) < 0.5 * 30**-alpha + 3e-4
    assert found.min() >= 0


def test_the_exact_drift_has_the_double_well():
    alpha, errors = 1.6, []
    for count in (301, 601):
        grid = np.linspace(-6, 6, count)
        found = stationary_density(exact_drift(grid, alpha), grid, alpha)
        errors.append(distance(found, well.density(grid), grid))
    assert errors[1] < 5e-4
    assert errors[1] < errors[0] / 2


def test_the_ends_of_the_grid_do_not_matter():
    """Where the drift is as large as there, in the end infinite."""
    alpha, narrow, wide = 1.7, np.linspace(-6, 6, 301), np.linspace(-8, 8, 401)
    found = stationary_density(exact_drift(wide, alpha), wide, alpha)
    values = exact_drift(narrow, alpha).copy()
    values[[0, -1]] = np.inf, -np.inf
    inner = stationary_density(values, narrow, alpha)
    np.testing.assert_allclose(found[50:-50], inner, atol=1e-9)
