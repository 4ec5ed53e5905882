"""Log densities in plain NumPy: what they may be, that they are sampled rightly, refusals."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

import levymc
from levymc.adapt._auto import slopes_at
from levymc.adapt._target import Target
from levymc.interop.numpy import as_logdensity

KEY = jax.random.key(0)
WELL = np.poly1d([-5.0, -1.0, 1.02, 5.0], r=True) / 10
LEFT_MASS = 0.543


def well(x):
    """The paper's double well, with an if that JAX cannot trace."""
    if abs(x) > 50:
        return -np.inf
    return -WELL(x) - 0.5


def well_slope(x):
    return -WELL.deriv()(x)


def correlated(position):
    """Of a pytree; the vector depends on the number."""
    u, v = position["u"], position["v"]
    return stats.norm.logpdf(u) + np.sum(stats.norm.logpdf(v, u))


def correlated_slope(position):
    u, v = position["u"], position["v"]
    return {"u": -u + np.sum(v - u), "v": u - v}


@pytest.mark.parametrize(("dtype", "is_vectorized"), [(np.float32, False), (np.float64, True)])
def test_values_gradients_and_curvatures_are_the_function_s(dtype, is_vectorized):
    def function(x):
        return -np.sum(x**4, axis=-1)

    def traced(x):
        return -jnp.sum(x**4)

    logdensity_fn = as_logdensity(function, gradient=lambda x: -4 * x**3, vectorized=is_vectorized)
    points = jnp.asarray(np.linspace(-1, 2, 12).reshape(2, 2, 3), dtype)
    tolerance = {np.float32: 2e-2, np.float64: 1e-6}[dtype]
    for transformed in (lambda f: f, jax.grad, lambda f: jax.jit(jax.hessian(f))):
        found = jax.jit(jax.vmap(jax.vmap(transformed(logdensity_fn))))(points)
        expected = jax.jit(jax.vmap(jax.vmap(transformed(traced))))(points)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        one = transformed(logdensity_fn)(points[0, 1])
        np.testing.assert_allclose(one, expected[0, 1], rtol=tolerance, atol=tolerance)


def test_curvature_along_one_coordinate_does_not_depend_on_the_size_of_others():
    """A year and a rate: with a step of the year's size the curvature in the rate is 6 % off."""

    def function(x, numbers=np):
        return -(((x[0] - 2000) / 10) ** 2) - numbers.cosh(50 * x[1])

    def gradient(x):
        return np.array([-(x[0] - 2000) / 50, -50 * np.sinh(50 * x[1])])

    logdensity_fn = as_logdensity(function, gradient=gradient)
    at = jnp.array([2000.0, 0.01])
    expected = jax.hessian(lambda x: function(x, jnp))(at)
    np.testing.assert_allclose(jax.jit(jax.hessian(logdensity_fn))(at), expected, 1e-6, 1e-6)


def test_positions_may_be_pytrees():
    logdensity_fn = as_logdensity(correlated, gradient=correlated_slope)
    position = {"u": jnp.asarray(0.5), "v": jnp.asarray([1.0, -2.0, 0.0])}
    assert float(logdensity_fn(position)) == pytest.approx(correlated(position))
    slope = jax.grad(logdensity_fn)(position)
    expected = correlated_slope(jax.tree.map(np.asarray, position))
    np.testing.assert_allclose(slope["u"], expected["u"])
    np.testing.assert_allclose(slope["v"], expected["v"])
    starts = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), position)
    run = levymc.sample(levymc.mafla(logdensity_fn, 0.1), KEY, starts, 50, progress=False)
    assert run.positions["v"].shape == (4, 50, 3)
    assert np.ptp(run.positions["v"]) > 0


def test_chains_are_those_of_the_same_density_in_jax():
    """One density, two ways to compute it, the same keys."""
    runs = []
    for logdensity_fn in (as_logdensity(lambda x: -x * x / 2), lambda x: -x * x / 2):
        walk = levymc.levy_walk(logdensity_fn, 1.0)
        runs.append(levymc.sample(walk, KEY, jnp.zeros(3), 200, progress=False))
    np.testing.assert_allclose(runs[0].positions, runs[1].positions, rtol=1e-12)


def test_a_call_is_one_for_all_chains():
    sizes = []

    def noting(x):
        sizes.append(len(x))
        return -x * x / 2

    walk = levymc.levy_walk(as_logdensity(noting, vectorized=True), 1.0)
    levymc.sample(walk, KEY, jnp.zeros(5), 10, progress=False)
    assert set(sizes) <= {1, 5}
    assert sizes.count(5) >= 10


def test_whether_there_is_a_gradient_is_found_out():
    at = jnp.asarray(-3.6)
    starts = np.full((4, 1), -3.6)
    for gradient, expected in ((None, False), (well_slope, True)):
        target = Target(as_logdensity(well, gradient=gradient), at)
        assert slopes_at(target, starts).is_usable is expected


def test_a_gradient_that_is_missing_is_asked_for():
    logdensity_fn = as_logdensity(well)
    with pytest.raises(TypeError, match=r"^`gradient` of .* must be given .* levymc.levy_walk, or"):
        jax.grad(logdensity_fn)(1.0)
    with pytest.raises(TypeError, match="`gradient` of"):
        levymc.sample(levymc.mafla(logdensity_fn, 0.1), KEY, jnp.zeros(2), 5, progress=False)


def left_masses(result):
    """Of eight systems that are independent of each other."""
    assert result.num_chains == 8
    assert not result.warnings
    return np.mean(np.asarray(result.positions) < 0, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "gradient",
    [None, pytest.param(well_slope, marks=pytest.mark.nightly)],
    ids=["without", "with"],
)
def test_auto_samples_the_right_law(gradient):
    """The share of the left well, by the spread of eight independent systems, from starts that are
    all there.  False alarm below 1e-6: t of 7 degrees at 16.  Detects that a well is missing, or a
    share that is off by 0.25: the standard error is some 0.008."""
    logdensity_fn = as_logdensity(well, gradient=gradient)
    result = levymc.auto(logdensity_fn, KEY, jnp.full(4, -3.6), budget=6000, progress=False)
    shares = left_masses(result)
    error = np.std(shares, ddof=1) / 8**0.5
    assert abs(np.mean(shares) - LEFT_MASS) < stats.t.isf(5e-7, 7) * error
    assert error < 0.02
    assert ("without gradients" in result.report) is (gradient is None)


@pytest.mark.nightly
@pytest.mark.parametrize("gradient", [None, well_slope], ids=["without", "with"])
def test_the_whole_law_is_right(gradient):
    """Final states of 4000 walks or 4000 MAFLA chains from draws of the law: they must stay so.
    False alarm 1e-7 (DKW); detects a distance of the distribution functions of 0.092."""
    grid = np.linspace(-9, 9, 20_001)
    density = np.exp(-WELL(grid))
    cdf = np.cumsum(density) / density.sum()
    starts = np.interp(np.random.default_rng(0).uniform(size=4000), cdf, grid)
    logdensity_fn = as_logdensity(
        lambda x: -WELL(x), gradient=gradient and well_slope, vectorized=True
    )
    make = levymc.levy_walk if gradient is None else levymc.mafla
    algorithm = make(logdensity_fn, 1.0 if gradient is None else 0.05)
    run = levymc.sample(algorithm, KEY, jnp.asarray(starts), 50, thin=50, progress=False)
    final = np.sort(np.asarray(run.positions)[:, -1])
    distance = np.max(np.abs(np.interp(final, grid, cdf) - np.arange(1, 4001) / 4000))
    assert distance < dkw_bound(4000, 1e-7)
    assert np.mean(final != np.sort(starts)) > 0.9


@pytest.mark.parametrize(
    "function",
    [
        lambda x: float(np.linalg.norm(x)),
        lambda x: stats.norm.logpdf(x).sum(),
        lambda x: -x[0] if x[0] > 0 else x[0],
        lambda x: sum(-x[i] for i in range(int(x[0]))),
    ],
    ids=["float", "scipy", "if", "int"],
)
def test_what_cannot_be_traced_is_refused_with_the_remedy(function):
    message = r"^`logdensity_fn` must be a function that JAX can trace, got .*, which is not \("
    for call in (
        lambda: levymc.auto(function, KEY, jnp.ones((4, 2)), progress=False),
        lambda: levymc.levy_walk(function, 1.0).init(jnp.ones(2)),
        lambda: levymc.mafla(function, 1.0).init(jnp.ones(2)),
    ):
        with pytest.raises(TypeError, match=message) as caught:
            call()
        assert "levymc.interop.numpy.as_logdensity(function)" in str(caught.value)


def test_other_functions_are_not_told_of_densities():
    walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
    with pytest.raises(TypeError, match="`keep` must be a function that JAX can trace") as caught:
        levymc.sample(walk, KEY, jnp.ones(2), 5, keep=lambda x: np.sin(float(x)), progress=False)
    assert "as_logdensity" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": 3}, "`function` must be a function, got 3. Give"),
        ({"function": lambda: 0.0}, "`function` must be a function of 1 argument, got"),
        ({"function": well, "gradient": "none"}, "`gradient` must be a function, got 'none'. Give"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        as_logdensity(**options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": lambda x: x}, r"`function` must return .* \(\), got \(2,\). Return one"),
        (
            {"function": lambda x: np.sum(x), "vectorized": True},
            r"`function` must return .* \(3,\), got \(\). Return one",
        ),
        (
            {"function": lambda x: np.sum(x), "gradient": lambda x: 1.0},
            r"`gradient` must return .* \(2,\), got \(\). Return one",
        ),
    ],
)
def test_wrong_shapes_are_refused_when_they_are_seen(options, message):
    transformed = jax.grad if "gradient" in options else lambda function: function
    called = jax.jit(jax.vmap(transformed(as_logdensity(**options))))
    with pytest.raises(Exception, match=message):  # JAX's own, around ours
        jax.block_until_ready(called(jnp.ones((3, 2))))


def test_a_store_says_that_it_cannot_keep_python(tmp_path):
    walk = levymc.levy_walk(as_logdensity(well), 1.0)
    with pytest.raises(ValueError, match=r"`store` must be None .* Leave out callbacks to Python"):
        levymc.sample(walk, KEY, jnp.zeros(2), 5, store=tmp_path / "run", progress=False)


def test_many_large_positions_do_not_hang_and_single_precision_is_kept():
    """16 MB at once, in a process with JAX as it is by default."""
    script = (
        "import jax, jax.numpy as jnp, numpy as np; "
        "from levymc.interop.numpy import as_logdensity; "
        "fn = as_logdensity(lambda x: -np.sum(x * x, axis=-1), gradient=lambda x: -2 * x, "
        "vectorized=True); "
        "found = jax.jit(jax.vmap(jax.value_and_grad(fn)))(jnp.ones((2048, 2000))); "
        "print(found[0].dtype, found[1].dtype, float(found[0][0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["float32", "float32", "-2000.0"]
