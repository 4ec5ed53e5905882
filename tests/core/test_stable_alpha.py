"""Derivatives of the stable law in α, against 60-digit differences of tools/stable_oracle.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc import stable

# α, x, d/dα logpdf, d/dα sf: central differences of the oracle with a step of 1e-10; at α = 2
# one-sided ones of fourth order with a step of 1e-6.
REFERENCE = np.array(
    [
        (0.6, 0.0, -2.171571067259477, 0.0),
        (0.6, 0.9, 1.5217361064823949, -0.03972753665561925),
        (0.6, 20.0, -1.2277968278429683, -0.18837143381827764),
        (0.6, 1e8, -17.15315757193843, -0.00011438635159998224),
        (1.0, 0.0, -0.42278433509846713, 0.0),
        (1.0, 0.9, 0.7155271877615402, -0.00943957235393135),
        (1.0, 3.5, -0.05518383306000365, -0.12611687236236246),
        (1.0, 1e8, -17.997896377437968, -6.04721823863373e-08),
        (1.5, 0.0, -0.08078470409484957, 0.0),
        (1.5, 0.9, 0.2056006889797993, -0.0034821490682181684),
        (1.5, 5.0, -1.7222000314000503, -0.057635215466087845),
        (1.5, 20.0, -3.846366188055144, -0.010267550432042217),
        (1.9, 0.9, 0.10141247235529562, -0.005146504210970983),
        (1.9, 20.0, -12.05400148083361, -0.002064321130156846),
        (1.9999, 5.0, -25.477455057258076, -0.027663885648419897),
        (1.9999, 1e8, -10017.497853660763, -5.018022196828e-17),
        (2.0, 0.0, -0.00912249349464413, 0.0),
        (2.0, 3.5, -1.0792825880164025, -0.05334987307349203),
        (2.0, 5.0, -25.543113299422707, -0.027659742214736924),
    ]
)


def along_alpha(function, alpha, x):
    return jax.jit(jax.vmap(jax.grad(lambda a, y: function(y, a))))(alpha, x)


@pytest.mark.parametrize(("dtype", "bar"), [("float64", 1e-9), ("float32", 1e-5)])
@pytest.mark.parametrize(("name", "column"), [("logpdf", 2), ("sf", 3)])
@pytest.mark.often("logpdf-2-float64-1e-09", "sf-3-float32-1e-05")
def test_derivative_in_alpha_matches_the_oracle(name, column, dtype, bar):
    """In float32 where α is exact there: near 2 its rounding alone changes 2 - α by more."""
    rows = REFERENCE
    if dtype == "float32":
        rows = rows[(rows[:, 0] * 2) % 1 == 0]
    alpha, x = rows[:, 0].astype(dtype), rows[:, 1].astype(dtype)
    found = along_alpha(getattr(stable, name), alpha, x)
    assert found.dtype == dtype
    expected = rows[:, column]
    smallest = 1e-3 if name == "logpdf" else 0.0  # logpdf's changes sign, beside numbers of 1
    np.testing.assert_array_less(
        np.abs(found - expected), bar * (np.abs(expected) + smallest) + 1e-30
    )


def test_at_two_the_derivative_is_the_limit_from_below():
    """Not zero, as it is for the normal law alone, nor NaN far out, where it overflows."""
    x = jnp.array([0.5, 3.0, 7.0, 1e3, 1e8])
    limit = along_alpha(stable.logpdf, jnp.full(5, 2.0), x)
    below = along_alpha(stable.logpdf, jnp.full(5, 2 - 1e-15), x)
    np.testing.assert_allclose(limit[:3], below[:3], rtol=1e-6)
    assert np.all(np.isneginf(limit[3:]))


def test_second_derivatives_in_alpha_and_x():
    """Against central differences, as maximisers and Laplace's method want them."""

    def value(point):
        return stable.logpdf(point[0], point[1])

    curvature, gradient, step = jax.jit(jax.hessian(value)), jax.jit(jax.grad(value)), 1e-5
    for point in ((0.4, 1.3), (3.0, 1.7), (9.0, 1.2)):
        at = jnp.array(point)
        rows = [
            (gradient(at + step * unit) - gradient(at - step * unit)) / (2 * step)
            for unit in jnp.eye(2)
        ]
        np.testing.assert_allclose(curvature(at), jnp.stack(rows), rtol=1e-6, atol=1e-7)
