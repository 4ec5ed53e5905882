"""The stable law against values computed to 25 digits by two formulas (tools/stable_oracle.py).

Bars, for alpha in [0.5, 2] and |x| from 0 to 1e8: relative error at most 1e-8 in float64 and 1e-5
in float32; for logpdf the error is divided by max(1, |logpdf|).

Nearly all the time goes into compiling, about a second for each function, dtype and shape.  So all
points go through programs for ``COUNT`` of them, and single points through one more.
"""

import functools
import json
from decimal import Decimal
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from levymc import stable
from levymc.stable import _tabulated

ORACLE = Path(__file__).parent / "data" / "stable_oracle.json"
BAR = {"float64": 1e-8, "float32": 1e-5}
DTYPES = ("float64", "float32")
COUNT = 4000  # the one size of all arrays of points


def of_one_size(function):
    """``function`` of any number of points, by its program for COUNT; they are repeated to fill it.

    The program for an array of α is another than that for one α.
    """

    def evaluate(x, alpha, scale=1.0):
        shape = np.broadcast_shapes(np.shape(x), np.shape(alpha))
        full = [np.resize(np.broadcast_to(part, shape), COUNT) for part in (x, alpha)]
        value = function(full[0], full[1] if np.ndim(alpha) else alpha, scale)
        return np.asarray(value)[: int(np.prod(shape))].reshape(shape)

    return evaluate


EVERY = {name: getattr(stable, name) for name in ("logpdf", "pdf", "cdf", "sf", "score", "ppf")}
logpdf, pdf, cdf, sf, score, ppf = map(of_one_size, EVERY.values())
LAW = {"logpdf": logpdf, "pdf": pdf, "cdf": cdf, "sf": sf, "score": score}
ALPHAS = (0.5, 0.6, 0.8, 0.95, 1.0, 1.05, 1.3, 1.5, 1.7, 1.9, 1.99, 1.9999, 2.0)


@functools.cache
def oracle_entries(dtype):
    return json.loads(ORACLE.read_text())[dtype]


def oracle(field, dtype):
    """One column of the oracle as float64; values below the double range become 0."""
    return np.array([float(entry[field]) for entry in oracle_entries(dtype)])


def oracle_arguments(dtype):
    """Exact in ``dtype``, so that no rounding of the arguments enters the comparison."""
    return tuple(oracle(field, dtype).astype(dtype) for field in ("x", "alpha"))


def errors(actual, expected, scale):
    """|error| / scale, where a value below the range of the dtype may be flushed towards 0."""
    smallest_normal = np.finfo(actual.dtype).tiny
    difference = np.abs(np.asarray(actual, np.float64) - expected)
    underflow = (np.abs(expected) < smallest_normal) & (difference <= smallest_normal)
    scale = np.where(scale == 0, 1.0, scale)
    return np.where(underflow, 0.0, difference / scale)


def assert_within(actual, expected, bar, x, alpha, *, scale=None):
    """Compare and, on failure, say where it is worst."""
    scale = np.abs(expected) if scale is None else scale
    found = errors(actual, expected, scale)
    # NaN counts as infinitely wrong.
    found = np.where(np.isnan(found), np.inf, found)
    worst = int(np.argmax(found))
    assert found[worst] <= bar, (
        f"error {found[worst]:.3g} > {bar:g} at alpha={alpha[worst]!r}, x={x[worst]!r}: "
        f"got {actual[worst]!r}, expected {expected[worst]!r}; "
        f"{np.sum(found > bar)} of {found.size} points fail"
    )


def random_arguments(seed, dtype="float64", largest=8.0, count=COUNT):
    """Exponents all over [0.5, 2] and crowded at 1 and 2; x of both signs over all scales."""
    generator = np.random.default_rng(seed)
    gap = 10.0 ** generator.uniform(-16, -0.5, count)
    alpha = np.select(
        [np.arange(count) % 4 == 0, np.arange(count) % 4 == 1, np.arange(count) % 4 == 2],
        [1 - gap, 1 + gap, 2 - gap],
        generator.uniform(0.5, 2.0, count),
    )
    x = generator.choice([-1.0, 1.0], count) * 10.0 ** generator.uniform(-9, largest, count)
    return x.astype(dtype), np.clip(alpha, 0.5, 2.0).astype(dtype)


@functools.partial(jax.jit, static_argnums=0)
def jitted_gradient(name, x, alpha, scale):
    """Derivative in x at every point: each summand depends on its own x only."""
    return jax.grad(lambda x: jnp.sum(EVERY[name](x, alpha, scale)))(x)


def gradient(name, x, alpha, scale=1.0):
    dtype = np.asarray(x).dtype
    alpha, scale = np.asarray(alpha, dtype), np.asarray(scale, dtype)
    return of_one_size(functools.partial(jitted_gradient, name))(x, alpha, scale)


# --- Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_logpdf_matches_oracle(dtype):
    x, alpha = oracle_arguments(dtype)
    expected = oracle("log_pdf", dtype)
    scale = np.maximum(1.0, np.abs(expected))
    for sign in (1, -1):
        actual = logpdf(sign * x, alpha)
        assert actual.dtype == dtype
        assert_within(actual, expected, BAR[dtype], x, alpha, scale=scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["pdf", "sf"])
def test_pdf_and_sf_match_oracle(name, dtype):
    x, alpha = oracle_arguments(dtype)
    actual = LAW[name](x, alpha)
    assert actual.dtype == dtype
    assert_within(actual, oracle(name, dtype), BAR[dtype], x, alpha)


@pytest.mark.parametrize("dtype", DTYPES)
def test_score_matches_oracle(dtype):
    x, alpha = oracle_arguments(dtype)
    for sign in (1, -1):
        actual = score(sign * x, alpha)
        assert actual.dtype == dtype
        assert_within(actual, sign * oracle("score", dtype), BAR[dtype], x, alpha)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lower_tail_of_cdf_matches_oracle(dtype):
    """Relative accuracy of the small side: cdf(-x) = sf(x)."""
    x, alpha = oracle_arguments(dtype)
    actual = cdf(-x, alpha)
    assert actual.dtype == dtype
    assert_within(actual, oracle("sf", dtype), BAR[dtype], x, alpha)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_side_of_cdf_and_sf(dtype):
    x, alpha = oracle_arguments(dtype)
    expected = 1 - oracle("sf", dtype)
    assert_within(cdf(x, alpha), expected, BAR[dtype], x, alpha)
    assert_within(sf(-x, alpha), expected, BAR[dtype], x, alpha)


CLOSED_GRID = np.concatenate([[0.0], np.logspace(-8, 8, 400), [20.0, 31.9, 32.1]])


def cauchy(name, x):
    if name in ("cdf", "sf"):
        return np.arctan2(1.0, -x if name == "cdf" else x) / np.pi
    if name == "score":
        return -2 * x / (1 + x**2)
    logpdf = -np.log(np.pi) - np.log1p(x**2)
    return logpdf if name == "logpdf" else 1 / (np.pi * (1 + x**2))


@pytest.mark.parametrize("name", list(LAW))
def test_cauchy_closed_form(name):
    x = np.concatenate([-CLOSED_GRID[::-1], CLOSED_GRID])
    precision = 1e-12 if name == "score" else 1e-13  # the score is a quotient of two tables
    np.testing.assert_allclose(LAW[name](x, 1.0), cauchy(name, x), rtol=precision, atol=0)


def test_normal_closed_form():
    x = CLOSED_GRID
    np.testing.assert_allclose(logpdf(x, 2.0), -(x**2) / 4 - np.log(2 * np.sqrt(np.pi)), rtol=1e-13)
    np.testing.assert_allclose(score(x, 2.0), -x / 2, rtol=1e-13)
    # exp(-x^2/4) turns a rounding of its argument into 7e-17 x^2: 1e-13 is within reach to x = 30.
    near = x[x <= 30]
    np.testing.assert_allclose(
        pdf(near, 2.0), np.exp(-(near**2) / 4) / (2 * np.sqrt(np.pi)), rtol=1e-13
    )
    np.testing.assert_allclose(sf(near, 2.0), special.erfc(near / 2) / 2, rtol=1e-13)
    far = pdf(x[x > 60], 2.0)
    np.testing.assert_array_equal(far, 0.0)


def test_density_at_the_centre():
    alpha = np.linspace(0.5, 2.0, 301)
    np.testing.assert_allclose(
        pdf(np.zeros_like(alpha), alpha), special.gamma(1 + 1 / alpha) / np.pi, rtol=1e-12
    )
    np.testing.assert_array_equal(score(np.zeros_like(alpha), alpha), 0.0)
    np.testing.assert_allclose(sf(np.zeros_like(alpha), alpha), 0.5, rtol=1e-14)


# --- Relations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetry_is_exact(dtype):
    x, alpha = random_arguments(1, dtype)
    for name, sign in (("logpdf", 1), ("pdf", 1), ("score", -1)):
        np.testing.assert_array_equal(LAW[name](-x, alpha), sign * LAW[name](x, alpha))
    np.testing.assert_array_equal(cdf(-x, alpha), sf(x, alpha))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cdf_and_sf_sum_to_one(dtype):
    x, alpha = random_arguments(2, dtype)
    total = cdf(x, alpha) + sf(x, alpha)
    np.testing.assert_allclose(total, 1.0, atol=4 * np.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cdf_is_monotone(alpha):
    """Strictly so in the small tail, at steps of 1 % over 16 decades and of 1e-6 anywhere."""
    generator = np.random.default_rng(3)
    largest = 50.0 if alpha == 2.0 else 1e8
    grid = np.geomspace(1e-8, largest, 4000)
    lower_tail = cdf(-grid, alpha)
    assert np.all(np.diff(lower_tail) <= 0)
    assert np.all(np.diff(lower_tail)[grid[1:] > 1e-6] < 0)
    assert np.all(np.diff(cdf(grid, alpha)) >= 0)
    point = np.exp(generator.uniform(np.log(1e-2), np.log(largest), 4000))
    assert np.all(cdf(-point * (1 + 1e-6), alpha) < cdf(-point, alpha))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(LAW))
def test_everything_is_finite_on_a_dense_random_grid(name, dtype):
    for seed in range(100, 150):
        x, alpha = random_arguments(seed, dtype)
        value = LAW[name](x, alpha)
        broken = ~np.isfinite(value)
        assert not broken.any(), f"{value[broken][:3]} at {x[broken][:3]}, {alpha[broken][:3]}"
        if name in ("pdf", "cdf", "sf"):
            assert np.all(value >= 0)
        if name == "score":
            assert np.all(value * np.sign(x) <= 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_finite_on_a_random_grid(dtype):
    x, alpha = random_arguments(5, dtype)
    for name in ("logpdf", "pdf", "cdf", "sf"):
        assert np.isfinite(gradient(name, x, alpha)).all(), name


@pytest.mark.parametrize("name", list(LAW))
def test_no_jump_where_alpha_meets_one_or_two(name):
    """The law is analytic in alpha at 1; from below 2 it moves by (2 - alpha) times a constant."""
    x = np.array([1e-6, 1e-3, 0.1, 0.7, 1.0, 1.5, 3.0, 5.0])
    for end, gap in ((1.0, 1e-11), (1.0, -1e-11), (2.0, -1e-13), (2.0, -(2.0**-52))):
        there = LAW[name](x, end)
        np.testing.assert_allclose(LAW[name](x, end + gap), there, rtol=1e-9, atol=1e-300)


def test_power_law_tail_survives_next_to_two():
    """Just below 2 the tail is (2 - alpha) x^{-3}, not Gaussian: alpha = 2 is a singular limit."""
    gap = 2.0**-40
    x = np.array([40.0, 1e3, 1e6])
    np.testing.assert_allclose(pdf(x, 2 - gap), gap * x**-3.0, rtol=2e-2)


@pytest.mark.parametrize("scale", [2.0**-10, 0.3, 7.0, 2.0**12])
def test_scale(scale):
    x, alpha = random_arguments(6, largest=4.0)
    z = x / scale
    bar = {"rtol": 1e-11, "atol": 0.0}
    np.testing.assert_allclose(pdf(x, alpha, scale), pdf(z, alpha) / scale, **bar)
    np.testing.assert_allclose(
        logpdf(x, alpha, scale), logpdf(z, alpha) - np.log(scale), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(cdf(x, alpha, scale), cdf(z, alpha), **bar)
    np.testing.assert_allclose(sf(x, alpha, scale), sf(z, alpha), **bar)
    np.testing.assert_allclose(score(x, alpha, scale), score(z, alpha) / scale, **bar)
    p = cdf(-np.abs(z), alpha)
    np.testing.assert_allclose(ppf(p, alpha, scale), scale * ppf(p, alpha), **bar)


# --- Quantiles ----------------------------------------------------------------------------------


def exact_quantiles(dtype):
    """Levels p exact in ``dtype`` with the exact x of sf(x) = p.

    The level is the oracle's sf rounded to ``dtype``; the rounding moves x by its size over the
    density, which decimal arithmetic keeps exactly.  Points where that is not a small correction
    (next to the median, and where p underflows) are left to the tests below.
    """
    rows = []
    for entry in oracle_entries(dtype):
        level = float(np.asarray(float(entry["sf"]), dtype))
        if level < np.finfo(dtype).tiny or float(entry["x"]) == 0:
            continue
        moved = (Decimal(entry["sf"]) - Decimal(level)) / Decimal(entry["pdf"])
        if abs(moved) < Decimal("1e-5") * Decimal(entry["x"]):
            rows.append((level, float(entry["alpha"]), float(Decimal(entry["x"]) + moved)))
    return np.array(rows).T


@pytest.mark.parametrize("dtype", DTYPES)
def test_ppf_matches_oracle(dtype):
    level, alpha, expected = exact_quantiles(dtype)
    assert level.size > 300
    actual = ppf(level.astype(dtype), alpha.astype(dtype))
    assert actual.dtype == dtype
    assert_within(actual, -expected, BAR[dtype], expected, alpha)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ppf_next_to_the_median(dtype):
    """x = (p - 1/2) / f(0) up to (p - 1/2)^2, with relative accuracy."""
    alpha = np.array(ALPHAS, dtype)
    centre = special.gamma(1 + 1 / alpha.astype(np.float64)) / np.pi
    for offset in (1e-10, -1e-10, 1e-15, -3e-7, 1e-6, -1e-6):
        level = np.asarray(0.5 + offset, dtype)
        exact_offset = float(level) - 0.5
        actual = ppf(np.full_like(alpha, level), alpha)
        if exact_offset == 0:
            np.testing.assert_array_equal(actual, 0.0)
            continue
        # The next term is x^2 f''(0) / (6 f(0)), worst at alpha = 0.5: 20 x^2 ~ 5e-11.
        assert_within(actual, exact_offset / centre, BAR[dtype], alpha, alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_ppf_inverts_cdf_in_the_tail(alpha):
    level = np.array([0.4, 0.1, 1e-2, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
    x = ppf(level, alpha)
    assert np.all(np.diff(x) < 0)
    np.testing.assert_allclose(cdf(x, alpha), level, rtol=1e-8)
    np.testing.assert_allclose(sf(-x, alpha), level, rtol=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ppf_inverts_cdf_at_random_points(dtype):
    x, alpha = random_arguments(7, dtype)
    x = -np.abs(x)
    level = cdf(x, alpha)
    back = ppf(level, alpha)
    density = pdf(x, alpha)
    kept = (level > 1e3 * np.finfo(dtype).tiny) & (np.abs(x) > 1e-2)
    x, alpha, level, back, density = (a[kept] for a in (x, alpha, level, back, density))
    # The level itself is rounded: dx/x = (dp/p) p / (x f).
    condition = level / (np.abs(x) * density)
    scale = np.abs(x) * np.maximum(1.0, condition)
    assert_within(back, x.astype(np.float64), 2 * BAR[dtype], x, alpha, scale=scale)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_ppf_is_antisymmetric_near_one(alpha):
    """1 - 2^-k is exact, so the upper quantile must match the lower one."""
    small = 2.0 ** -np.arange(1, 50)
    np.testing.assert_allclose(ppf(1 - small, alpha), -ppf(small, alpha), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ppf_edges(dtype):
    level = np.array([0.0, 0.5, 1.0, -0.1, 1.5, np.nan], dtype)
    actual = ppf(level, np.array(ALPHAS, dtype)[:, None])
    assert actual.dtype == dtype
    for row in actual:
        np.testing.assert_array_equal(row, [-np.inf, 0.0, np.inf, np.nan, np.nan, np.nan])


# --- Derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "field", "sign"),
    [("logpdf", "score", 1), ("cdf", "pdf", 1), ("sf", "pdf", -1), ("pdf", "slope", 1)],
)
def test_gradient_matches_oracle(name, field, sign, dtype):
    x, alpha = oracle_arguments(dtype)
    actual = gradient(name, x, alpha)
    assert actual.dtype == dtype
    assert_within(actual, sign * oracle(field, dtype), BAR[dtype], x, alpha)


@pytest.mark.parametrize("name", list(LAW))
def test_gradient_is_symmetric(name):
    x, alpha = random_arguments(8)
    parity = 1 if name in ("cdf", "sf", "score") else -1
    there, mirrored = gradient(name, x, alpha), gradient(name, -x, alpha)
    np.testing.assert_allclose(mirrored, parity * there, rtol=1e-12)


def test_gradient_through_ppf():
    alpha = np.array(ALPHAS)[:, None]
    level = np.array([1e-9, 1e-3, 0.2, 0.5, 0.7, 0.999]) + np.zeros_like(alpha)
    density = pdf(ppf(level, alpha), alpha)
    np.testing.assert_allclose(gradient("ppf", level, alpha), 1 / density, rtol=1e-8)


def test_gradient_of_score_is_the_second_derivative():
    """Against a central difference; a silent zero or a wrong curvature is far outside 1e-5."""
    alpha = np.array([0.6, 1.0, 1.3, 1.7, 1.99, 2.0])[:, None]
    x = np.array([-30.0, -3.0, -1.0, -0.8, 0.2, 1.0, 1.3, 2.7, 6.0, 11.0])  # 1: a panel begins
    step = 1e-5 * np.abs(x)
    difference = (score(x + step, alpha) - score(x - step, alpha)) / (2 * step)
    curvature = gradient("score", x, alpha)
    typical = np.abs(score(x, alpha) / x)
    assert np.all(np.abs(curvature - difference) <= 1e-5 * typical)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_under_a_scale(dtype):
    x = np.array([-9.0, -0.5, 0.25, 4.0, 300.0], dtype)
    alpha, scale = np.asarray(1.5, dtype), np.asarray(0.25, dtype)
    slope = gradient("logpdf", x, alpha, scale)
    np.testing.assert_allclose(slope, score(x, alpha, scale), rtol=BAR[dtype])


# sf(x) is cdf(-x) by the same code: in what follows, which is about code, one stands for both.
nightly_sf = pytest.param("sf", marks=pytest.mark.nightly)


@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", nightly_sf, "score"])
@pytest.mark.often("logpdf", "score")
def test_vmap_of_grad(name):
    x, alpha = random_arguments(10, count=64)
    mapped = jax.jit(jax.vmap(jax.grad(EVERY[name])))(x, alpha)
    np.testing.assert_allclose(mapped, gradient(name, x, alpha), rtol=1e-12)


# --- Behaviour as JAX functions -----------------------------------------------------------------

every_name = pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", nightly_sf, "score", "ppf"])
TRACES = []


@functools.partial(jax.jit, static_argnums=0)
def at_one_point(name, x, alpha, scale):
    """The program for single points, which keeps count of its traces."""
    TRACES.append((name, x.dtype))
    return EVERY[name](x, alpha, scale)


def some_arguments(name, dtype="float64", count=64):
    x, alpha = random_arguments(9, dtype, count=count)
    return (special.expit(x).astype(dtype), alpha) if name == "ppf" else (x, alpha)


def looped(name, x, alpha):
    points = zip(x, np.broadcast_to(alpha, x.shape), strict=True)
    return np.stack([at_one_point(name, *point, 1.0) for point in points])


# The functions are compiled in any case, so that values in float32 under jit are those of the
# oracle's tests; what jit adds, the checks of arguments that are traced, is the same for all types.
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.nightly)])
@every_name
@pytest.mark.often("logpdf-float64", "score-float64", "ppf-float64")
def test_jit_changes_nothing(name, dtype):
    """Also one trace serves every α."""
    x, alpha = some_arguments(name, dtype, 500)
    known = np.array([0.5, 0.9, 1.0, 1.0001, 1.7, 2.0], dtype)
    x, alpha = np.append(x, np.full_like(known, 0.25)), np.append(alpha, known)
    tolerance = 64 * np.finfo(dtype).eps
    evaluate = of_one_size(EVERY[name])
    np.testing.assert_allclose(looped(name, x, alpha), evaluate(x, alpha), rtol=tolerance)
    assert TRACES.count((name, dtype)) == 1


@every_name
@pytest.mark.often("logpdf", "ppf")
def test_vmap_over_alpha_equals_a_loop(name):
    x, alpha = some_arguments(name)
    mapped = jax.vmap(jax.jit(EVERY[name]))(x, alpha)
    np.testing.assert_allclose(mapped, looped(name, x, alpha), rtol=1e-12)


@every_name
def test_vmap_over_pairs_looks_up_no_table_for_each(name):
    """Nothing in the program is larger than what arrays need: a row of the table for each pair."""
    x, alpha = some_arguments(name)
    text = str(jax.make_jaxpr(jax.vmap(EVERY[name]))(x, alpha))
    assert f"[{x.size},{_tabulated.POSITION_COUNT}]" in text
    assert f"[{x.size},{_tabulated.NUM_PANELS}" not in text
    assert f"[{x.size},{_tabulated.ALPHA_COUNT},{_tabulated.NUM_PANELS}" not in text


@every_name
def test_vmap_over_x_sums_up_the_powers_of_its_alpha_once(name):
    """As MAFLA does: a row of the table for each x would take ten times as long."""
    x, alpha = some_arguments(name)
    text = str(jax.make_jaxpr(jax.vmap(EVERY[name], in_axes=(0, None)))(x, alpha[0]))
    assert f"[{x.size},{_tabulated.POSITION_COUNT}]" not in text


def test_vmap_of_vectors_of_x_over_alpha():
    """Some x for each alpha, few and many, and an axis of alpha beside that of the map."""
    x, alpha = random_arguments(11, count=4)
    for count in (3, 40):
        rows = x[:, None] * np.linspace(0.5, 2.0, count)
        expected = jax.jit(stable.logpdf)(rows, alpha[:, None])

        @jax.jit
        def all_mapped(rows, alpha):
            return (
                jax.vmap(stable.logpdf)(rows, alpha),
                jax.vmap(lambda a: stable.logpdf(rows, a[:, None]))(alpha[None])[0],
                jax.vmap(lambda r: stable.logpdf(r, alpha), in_axes=1, out_axes=1)(rows),
            )

        for mapped in all_mapped(rows, alpha):
            np.testing.assert_allclose(mapped, expected, rtol=1e-12)


@pytest.mark.nightly
def test_derivatives_of_higher_order_go_through_the_map():
    x, alpha = random_arguments(12, count=8)

    def mapped(function):
        return jax.jit(jax.vmap(function))(x, alpha)

    found = mapped(jax.grad(jax.grad(stable.logpdf)))
    np.testing.assert_allclose(found, mapped(jax.grad(stable.score)), rtol=1e-9)
    mixed = mapped(jax.grad(jax.grad(stable.logpdf, argnums=1)))
    other = mapped(jax.grad(stable.score, argnums=1))
    np.testing.assert_allclose(mixed, other, rtol=1e-5, atol=1e-7)


@every_name
@pytest.mark.often("logpdf", "ppf")
def test_arguments_broadcast(name):
    function = EVERY[name]
    x, alpha, scale = np.array([[0.1], [0.6], [0.9]]), np.array([0.7, 1.0, 1.6, 2.0]), 2.0
    value = np.asarray(function(x, alpha, scale))
    assert value.shape == (3, 4)
    assert jax.eval_shape(function, 0.3, 1.5).shape == ()
    for row, column in np.ndindex(3, 4):
        alone = at_one_point(name, x[row, 0], alpha[column], scale)
        np.testing.assert_allclose(value[row, column], alone, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(EVERY))
def test_dtype_in_is_dtype_out(name, dtype):
    x = jnp.asarray([0.1, 0.2, 0.9], dtype)
    for alpha in (1.5, jnp.asarray(1.5, dtype), jnp.asarray([0.5, 1.0, 2.0], dtype)):
        assert jax.eval_shape(EVERY[name], x, alpha).dtype == dtype
        known_alpha = functools.partial(EVERY[name], alpha=alpha)
        assert jax.eval_shape(known_alpha, x).dtype == dtype


@pytest.mark.parametrize("name", list(EVERY))
@pytest.mark.parametrize("dtype", [jnp.bfloat16])
def test_narrow_floats_come_back_narrow(name, dtype):
    alpha = np.full(COUNT, 1.5)
    value = EVERY[name](jnp.full(COUNT, 0.25, dtype), alpha)
    assert value.dtype == dtype
    wide = EVERY[name](np.full(COUNT, 0.25), alpha)
    np.testing.assert_allclose(value.astype(float), wide, rtol=1e-2)
