"""The law of the draws: characteristic function, distribution function, tail.

Keys are fixed, so a test that passes once passes always.  Each of the fewer than 1000 checks in
this file would fail on correct code for at most 1e-9 of the keys: 1e-6 for the file as a whole.
What each kind is sure to see (with probability 1 - 1e-9), per check:

===================================  ========  =========  ====================================
check                                draws     bound      smallest defect that is seen
===================================  ========  =========  ====================================
characteristic function (Hoeffding)  10^6      6.5e-3     0.013 at a frequency: 2-5 % in scale
distribution function (DKW)          10^6      3.3e-3     0.0065 in probability: 4 % in scale
P(|X| > q) = 1e-4, exact binomial    4 * 10^7  3620-4392  tail 0.81 or 1.21 times the true one
P(|X| > q) = 1e-5, exact binomial    4 * 10^7  284...528  tail 0.48 or 1.70 times the true one
P(|X| > q) = 1e-6, exact binomial    4 * 10^7  8...84     tail cut off, or 3.9 times
P(X > q) = P(X < -q) = 5e-6          4 * 10^7  120...292  a side 0.32 or 2.04 times the true one
repeats beyond P(|X| > q) = 2e-4     4 * 10^7  5 %        tail quantised to 28 bits or fewer
joint characteristic function        5 * 10^5  9.3e-3     0.019: dependence between draws
isotropic, motion                    2 * 10^5  1.5e-2     0.03 at a frequency
===================================  ========  =========  ====================================

Wherever the number of draws does not matter it is ``DRAWS``: another one is compiled anew, which
takes longer than to draw a million.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import binomial_range, dkw_bound, hoeffding_bound

from levymc import stable

FALSE_ALARM = 1e-9
DRAWS = 10**6
ALPHAS = (0.8, 1.0, 1.05, 1.3, 1.5, 1.7, 1.9, 1.99, 2.0)
# Between them alpha is but another number in the same program, or table.
NIGHTLY_ALPHAS = (1.3, 1.7, 1.9)


def often_or_nightly(cases, nightly):
    """Cases for every run, and those that only complete the grid."""
    return [*cases, *(pytest.param(*case, marks=pytest.mark.nightly) for case in nightly)]


# All alpha for a fixed alpha in float32 and a traced one in float64; the other two, some.
CASES = often_or_nightly(
    [
        (alpha, mode, dtype)
        for mode, dtype in (("fixed", "float32"), ("traced", "float64"))
        for alpha in ALPHAS
        if alpha not in NIGHTLY_ALPHAS
    ]
    + [(1.3, "fixed", "float64"), (0.8, "traced", "float32"), (1.7, "traced", "float32")],
    [
        (alpha, mode, dtype)
        for mode, dtype in (("fixed", "float32"), ("traced", "float64"))
        for alpha in NIGHTLY_ALPHAS
    ]
    + [(alpha, "fixed", "float64") for alpha in (1.0, 1.9)]
    + [(alpha, "traced", "float32") for alpha in (1.05, 2.0)],
)
FREQUENCIES = (0.1, 0.6, 1.2, 2.5)


def key_of(*labels):
    """A key for each use, from its name: stable across runs and machines."""
    seed = functools.reduce(lambda total, byte: (total * 257 + byte) % 2**31, repr(labels).encode())
    return jax.random.key(seed)


def draw(key, alpha, mode, dtype):
    """Draws with alpha known when the function is built, or only when it runs."""
    if mode == "fixed":
        return stable.sample(key, alpha, (DRAWS,), dtype=jnp.dtype(dtype))
    return traced_draw(key, np.asarray(alpha, dtype), dtype)


TRACES = []


@functools.partial(jax.jit, static_argnames="dtype")
def traced_draw(key, alpha, dtype):
    TRACES.append(dtype)
    return stable.sample(key, alpha, (DRAWS,), dtype=jnp.dtype(dtype))


def traced_shape(alpha, *arguments, **options):
    """Shape and dtype of draws, which are not made."""
    return jax.eval_shape(
        lambda key: stable.sample(key, alpha, *arguments, **options), key_of("shape")
    )


def assert_characteristic_function(phase, expected):
    """E cos = expected and E sin = 0 for the phases omega X, within Hoeffding's bound."""
    phase = np.asarray(phase, np.float64)
    bound = hoeffding_bound(phase.size, FALSE_ALARM)
    assert abs(np.mean(np.cos(phase)) - expected) <= bound
    assert abs(np.mean(np.sin(phase))) <= bound


def assert_distribution_function(draws, alpha, scale=1.0):
    """Empirical CDF on a grid of both signs over ten decades, within the DKW bound."""
    half = np.concatenate([np.geomspace(1e-5, 0.1, 50), np.geomspace(0.11, 1e5, 400)]) * scale
    grid = np.concatenate([-half[::-1], [0.0], half])
    empirical = np.searchsorted(np.sort(np.asarray(draws, np.float64)), grid, "right") / draws.size
    expected = np.asarray(stable.cdf(grid, alpha, scale))
    assert np.max(np.abs(empirical - expected)) <= dkw_bound(draws.size, FALSE_ALARM)


# --- The law of single draws --------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "mode", "dtype"), CASES)
@pytest.mark.often(
    "0.8-fixed-float32",
    "1.0-fixed-float32",
    "2.0-fixed-float32",
    "1.3-fixed-float64",
    "0.8-traced-float32",
    "0.8-traced-float64",
    "1.05-traced-float64",
)
def test_law_of_draws(alpha, mode, dtype):
    draws = draw(key_of("law", alpha, mode, dtype), alpha, mode, dtype)
    assert draws.dtype == dtype
    assert np.isfinite(draws).all()
    for frequency in FREQUENCIES:
        expected = np.exp(-(frequency**alpha))
        assert_characteristic_function(frequency * np.asarray(draws, np.float64), expected)
    assert_distribution_function(draws, alpha)


@pytest.mark.parametrize("mode", ["fixed", "traced"])
@pytest.mark.parametrize("alpha", [0.3, 0.5])
@pytest.mark.often("0.3-fixed", "0.5-traced")
def test_law_of_draws_for_small_alpha(alpha, mode):
    draws = draw(key_of("small", alpha, mode), alpha, mode, "float64")
    for frequency in (1e-4, 1e-2, 0.3, 3.0):
        expected = np.exp(-(frequency**alpha))
        assert_characteristic_function(frequency * np.asarray(draws), expected)


def test_alpha_array_draws_each_law():
    """Each column has its own alpha, one array for all."""
    alphas = np.array([0.8, 1.0, 1.5, 2.0])
    count = DRAWS // 2
    draws = stable.sample(key_of("array"), jnp.asarray(alphas), (count, 4), dtype=jnp.float64)
    assert draws.shape == (count, 4)
    for column, alpha in enumerate(alphas):
        for frequency in (0.3, 1.0, 2.0):
            expected = np.exp(-(frequency**alpha))
            assert_characteristic_function(frequency * np.asarray(draws[:, column]), expected)


@pytest.mark.parametrize("mode", ["fixed", "traced"])
def test_consecutive_draws_are_independent(mode):
    """Joint characteristic function of neighbours, and of draws half an array apart."""
    alpha = 1.5
    draws = np.asarray(draw(key_of("independent", mode), alpha, mode, "float32"), np.float64)
    pairs = ((draws[0::2], draws[1::2]), (draws[: DRAWS // 2], draws[DRAWS // 2 :]))
    for first, second in pairs:
        for omega, nu in ((1.0, 1.0), (1.0, -1.0), (0.3, 2.0)):
            expected = np.exp(-(abs(omega) ** alpha) - abs(nu) ** alpha)
            assert_characteristic_function(omega * first + nu * second, expected)


def test_scale_of_draws():
    key = key_of("scale")
    for alpha in (0.8, 1.0, 1.5, 2.0):
        unit = stable.sample(key, alpha, (DRAWS,), dtype=jnp.float64)
        scaled = stable.sample(key, alpha, (DRAWS,), scale=3.5, dtype=jnp.float64)
        np.testing.assert_allclose(scaled, 3.5 * np.asarray(unit), rtol=1e-14)
    each = stable.sample(key, 1.5, (5, 2), scale=jnp.array([1.0, 8.0]), dtype=jnp.float64)
    unit = stable.sample(key, 1.5, (5, 2), dtype=jnp.float64)
    np.testing.assert_allclose(each, np.asarray(unit) * [1.0, 8.0], rtol=1e-14)


# --- The tail -----------------------------------------------------------------------------------

TAIL_DRAWS = 40 * DRAWS
TAIL_CASES = often_or_nightly(
    [(1.05, "fixed"), (1.99, "fixed")],
    [
        *((alpha, "fixed") for alpha in (1.3, 1.5, 1.7, 1.9)),
        *((alpha, "traced") for alpha in (1.3, 1.7, 1.99)),
    ],
)


quantile = jax.jit(stable.ppf)


def two_sided_quantile(alpha, probability):
    return -float(quantile(probability / 2, alpha))


@functools.cache
def tail_draws(alpha, mode):
    """Float32 draws beyond the quantile P(|X| > q) = 2e-4, out of ``TAIL_DRAWS``."""
    threshold = two_sided_quantile(alpha, 2e-4)
    kept = []
    for key in jax.random.split(key_of("tail", alpha, mode), TAIL_DRAWS // DRAWS):
        draws = np.asarray(draw(key, alpha, mode, "float32"))
        kept.append(draws[np.abs(draws) > threshold])
    return np.concatenate(kept)


def assert_count(hits, probability):
    fewest, most = binomial_range(TAIL_DRAWS, probability, FALSE_ALARM)
    assert fewest <= np.sum(hits) <= most


@pytest.mark.parametrize(("alpha", "mode"), TAIL_CASES)
@pytest.mark.often("1.05-fixed")
def test_tail_probabilities(alpha, mode):
    draws = tail_draws(alpha, mode)
    for probability in (1e-4, 1e-5, 1e-6):
        assert_count(np.abs(draws) > two_sided_quantile(alpha, probability), probability)
    far = two_sided_quantile(alpha, 1e-5)
    assert_count(draws > far, 5e-6)
    assert_count(draws < -far, 5e-6)


@pytest.mark.parametrize(("alpha", "mode"), TAIL_CASES)
@pytest.mark.often("1.05-fixed")
def test_tail_is_not_quantised(alpha, mode):
    """A uniform variate of 24 bits reaches the tail beyond 2e-4 with 3400 values at most.

    8000 draws are kept there, so over half of them would be repeats; from 31 bits it is 1 %.
    """
    draws = tail_draws(alpha, mode)
    assert np.unique(draws).size >= 0.95 * draws.size


# --- Endpoints and small exponents --------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["fixed", "traced"])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3, 1 + 1e-6, 1.999999])
@pytest.mark.often(
    "0.01-fixed-float32",
    "0.01-traced-float64",
    "0.1-fixed-float32",
    "0.1-traced-float64",
    "0.3-fixed-float32",
    "0.3-traced-float64",
    "1.000001-fixed-float32",
    "1.000001-traced-float64",
    "1.999999-fixed-float32",
    "1.999999-traced-float64",
)
def test_never_nan(alpha, mode, dtype):
    draws = np.asarray(draw(key_of("nan", alpha, mode), alpha, mode, dtype))
    assert not np.isnan(draws).any()
    if alpha >= 0.3 and dtype == "float64":
        assert np.isfinite(draws).all()


@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_signs_are_even_for_very_small_alpha(alpha):
    """Magnitudes overflow or underflow there, but the law of the sign is still known."""
    draws = np.asarray(draw(key_of("sign", alpha), alpha, "traced", "float64"))
    balance = np.mean(np.sign(draws))
    assert abs(balance) <= hoeffding_bound(DRAWS, FALSE_ALARM)


# --- Keys, shapes, tracing ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.3, 1.5, 2.0])
@pytest.mark.often("0.3-float32", "0.3-float64", "2.0-float32", "2.0-float64")
def test_key_fixes_the_draws(alpha, dtype):
    key, other = jax.random.split(key_of("key"))
    first = np.asarray(draw(key, alpha, "fixed", dtype))
    np.testing.assert_array_equal(first, draw(key, alpha, "fixed", dtype))
    # In float32 a draw may be met again, once in millions.
    assert not np.any(first[:100] == np.asarray(draw(other, alpha, "fixed", dtype))[:100])


def assert_same_draws(first, second):
    """Compiled as a whole, XLA contracts products and sums that it rounds one by one otherwise.

    Of a thousand: among a million some lie so near to zero that they keep few digits.
    """
    rounding = {"float32": 1e-5, "float64": 1e-10}[str(first.dtype)]
    np.testing.assert_allclose(first[..., :1000], second[..., :1000], rtol=rounding)


# One of each way to draw, by table (float32), by transform (float64) and of normals; the others are
# other numbers in the same program.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "alpha",
    [0.8, *(pytest.param(alpha, marks=pytest.mark.nightly) for alpha in (1.0, 1.5)), 2.0],
)
def test_jit_does_not_change_the_draws(alpha, dtype):
    key = key_of("jit")
    compiled = jax.jit(lambda key: draw(key, alpha, "fixed", dtype))(key)
    assert_same_draws(compiled, draw(key, alpha, "fixed", dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.5, 2.0])
@pytest.mark.often("0.8-float32", "0.8-float64", "2.0-float32", "2.0-float64")
def test_jit_does_not_change_the_draws_of_an_array_alpha(alpha, dtype):
    """An array outside jit, a traced value inside: the same draws."""
    key, array = key_of("jit"), jnp.asarray(alpha, dtype)
    plain = stable.sample(key, array, (DRAWS,), dtype=jnp.dtype(dtype))
    assert_same_draws(traced_draw(key, array, dtype), plain)


def test_raw_keys_are_accepted():
    typed = jax.random.key(7)
    raw = jax.random.PRNGKey(7)

    @jax.jit
    def drawn(key):
        draws = [stable.sample(key, alpha, (100,)) for alpha in (0.8, 1.5, 2.0)]
        return (
            *draws,
            stable.sample_isotropic(key, 1.5, (100, 2)),
            stable.levy_motion(key, 1.5, TIMES),
        )

    jax.tree.map(np.testing.assert_array_equal, drawn(raw), drawn(typed))


@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shape_and_dtype(shape, dtype):
    for alpha in (1.5, jnp.asarray(1.5, dtype)):
        draws = traced_shape(alpha, shape, dtype=jnp.dtype(dtype))
        assert draws.shape == shape
        assert draws.dtype == dtype
    if shape == (0,):
        assert stable.sample(key_of("shape"), 1.5, shape, dtype=jnp.dtype(dtype)).shape == shape


@pytest.mark.parametrize("name", ["alpha", "scale"])
def test_isotropic_vectors_of_several_laws_differ(name):
    """Before, laws that `shape` did not ask for shared the numbers of one vector."""
    given = {"alpha": 1.5, name: np.full(3, 1.5)}
    draws = stable.sample_isotropic(key_of("several"), shape=(4, 1, 2), **given)
    assert draws.shape == (4, 3, 2)
    assert len(np.unique(draws)) == draws.size


def test_motions_are_at_zero_at_time_zero():
    """Before, NaN where the increment overflows: 1 % of them at this α in float32."""
    times = np.array([0.0, 1.0], np.float32)
    motions = stable.levy_motion(key_of("zero"), 0.05, times, (2000,))
    np.testing.assert_array_equal(motions[:, 0], 0.0)
    assert np.any(np.isinf(motions[:, 1]))
    assert not np.any(np.isnan(motions))


def test_default_dtype_follows_jax():
    assert stable.sample(key_of("dtype"), 1.5, (DRAWS,)).dtype == jnp.zeros(()).dtype
    assert traced_shape(1.5).dtype == jnp.zeros(()).dtype
    assert traced_shape(1.5).shape == ()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.often("float64")
def test_one_trace_serves_every_alpha(dtype):
    for alpha in (0.5, 1.0, 1.5, 2.0):
        assert np.isfinite(draw(key_of("trace"), alpha, "traced", dtype)).all()
    assert TRACES.count(dtype) == 1


def test_vmap_over_keys_and_alpha():
    keys = jax.random.split(key_of("vmap"), 4)
    alphas = np.array([0.8, 1.0, 1.5, 2.0])
    mapped = jax.vmap(lambda key, alpha: stable.sample(key, alpha, (DRAWS,)))(keys, alphas)
    each = [traced_draw(key, alpha, "float64") for key, alpha in zip(keys, alphas, strict=True)]
    assert_same_draws(mapped, np.stack(each))


# --- Isotropic vectors --------------------------------------------------------------------------

VECTORS = 2 * 10**5


def isotropic(key, alpha, dimension, scale=1.0):
    return np.asarray(
        stable.sample_isotropic(key, alpha, (VECTORS, dimension), scale=scale, dtype=jnp.float64)
    )


@pytest.mark.parametrize(
    ("alpha", "dimension"),
    [(1.7, 1), (0.8, 2), (1.0, 2), (1.7, 2), (2.0, 2), (1.0, 5), (1.3, 5), (1.7, 5)],
)
@pytest.mark.often("1.7-1", "0.8-2", "2.0-2", "1.0-5")
def test_isotropic_law(alpha, dimension):
    """Characteristic function along the axes, the diagonal and a slanted line; a marginal's CDF."""
    key, scale = key_of("isotropic", alpha, dimension), 0.5
    draws = isotropic(key, alpha, dimension, scale)
    assert draws.shape == (VECTORS, dimension)
    slanted = np.cos(1.0 + 2.0 * np.arange(dimension))
    for direction in (*np.eye(dimension)[[0, -1]], np.ones(dimension), slanted):
        unit = direction / np.linalg.norm(direction)
        for frequency in (0.4, 2.0, 4.0):
            expected = np.exp(-((scale * frequency) ** alpha))
            assert_characteristic_function(draws @ (frequency * unit), expected)
        assert_distribution_function(draws @ unit, alpha, scale)


def test_isotropic_coordinates_share_their_jumps():
    """Independent coordinates would give exp(-2) here; isotropic ones give exp(-2^{alpha/2})."""
    alpha = 1.2
    draws = isotropic(key_of("shared"), alpha, 2)
    assert_characteristic_function(np.sum(draws, axis=1), np.exp(-(2 ** (alpha / 2))))
    assert_characteristic_function(draws[:, 0] - draws[:, 1], np.exp(-(2 ** (alpha / 2))))


def test_isotropic_traced_alpha_and_dtype():
    traced = jax.jit(
        lambda key, alpha: stable.sample_isotropic(key, alpha, (VECTORS, 3), dtype=jnp.float32)
    )
    for alpha in (0.8, 1.5, 2.0):
        draws = np.asarray(traced(key_of("isotropic traced", alpha), alpha))
        assert draws.dtype == np.float32
        assert not np.isnan(draws).any()
        direction = np.array([0.6, -0.48, 0.64])
        assert_characteristic_function(draws @ direction, np.exp(-1.0))
    assert traced._cache_size() == 1


# --- Lévy motion --------------------------------------------------------------------------------

TIMES = np.array([0.0, 0.1, 0.15, 1.0, 3.7, 40.0])


def motions(key, alpha, times):
    return np.asarray(stable.levy_motion(key, alpha, times, (VECTORS,)))


@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.7, 2.0])
@pytest.mark.often("1.0", "1.7")
def test_motion_increments(alpha):
    """Each increment is SαS((t - s)^{1/alpha}); any two are independent; the start is 0."""
    motion = motions(key_of("motion", alpha), alpha, TIMES)
    assert motion.shape == (VECTORS, TIMES.size)
    np.testing.assert_array_equal(motion[:, 0], 0.0)
    steps = np.diff(TIMES)
    # In units of each increment's own scale.
    increments = np.diff(motion, axis=1) / steps ** (1 / alpha)
    for column in increments.T:
        for frequency in (0.3, 1.0, 2.0):
            assert_characteristic_function(frequency * column, np.exp(-(frequency**alpha)))
    for first in range(steps.size):
        for second in range(first):
            joint = increments[:, first] - 0.7 * increments[:, second]
            assert_characteristic_function(joint, np.exp(-1 - 0.7**alpha))


def test_motion_from_a_later_start():
    """The motion starts at 0 at time 0 even where time 0 is not asked for."""
    alpha, times = 1.5, np.array([2.0, 5.0, 6.0, 7.0, 9.0, 9.5])
    motion = motions(key_of("late"), alpha, times)
    for column, time in zip(motion.T, times, strict=True):
        assert_characteristic_function(column / time ** (1 / alpha), np.exp(-1.0))


@pytest.mark.parametrize("shape", [(), (2, 4)])
def test_motion_shapes(shape):
    times = np.linspace(0.0, 1.0, 7)

    def motion(key, times):
        return stable.levy_motion(key, 1.5, times, shape)

    # Times that are traced, and known ones.
    assert jax.eval_shape(motion, key_of("paths"), times).shape == (*shape, 7)
    assert jax.eval_shape(lambda key: motion(key, times), key_of("paths")).shape == (*shape, 7)
    if shape:
        first = motion(key_of("paths"), times)
        np.testing.assert_array_equal(first[..., 0], 0.0)
        np.testing.assert_array_equal(first, motion(key_of("paths"), times))


def test_motion_at_a_single_time():
    motion = stable.levy_motion(key_of("single"), 1.5, np.array([2.0]), (3,))
    assert motion.shape == (3, 1)
    assert np.all(motion != 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_motion_keeps_the_dtype_of_the_times(dtype):
    times = np.asarray([0.0, 0.5, 2.0], dtype)
    motion = jax.eval_shape(lambda key: stable.levy_motion(key, 1.5, times), key_of("dtype"))
    assert motion.dtype == dtype


@pytest.mark.parametrize("alpha", [2.5, 0.0, -1.0])
@pytest.mark.often("2.5", "-1.0")
def test_a_traced_alpha_outside_its_range_gives_nan(alpha):
    """No check can refuse it, and finite numbers of no law would be taken for draws."""
    key = jax.random.key(0)
    for draw_with in (
        lambda a: stable.sample(key, a, (3,)),
        lambda a: stable.sample_truncated(key, a, 3.0, (3,)),
        lambda a: stable.sample_isotropic(key, a, (3,)),
    ):
        assert np.all(np.isnan(jax.jit(draw_with)(alpha)))
