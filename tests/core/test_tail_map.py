"""The map of the tails: its Jacobian, its inverse, the laws it makes, and how it is fitted.

Statistical bounds: false-alarm rate at most 1e-8 each, about 10 of them in the file.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import dkw_bound

from levymc import adapt
from levymc.adapt import TailMap
from levymc.adapt._single import KINDS_IN_WORDS
from levymc.adapt._tail_map import KINDS, fit

FALSE_ALARM = 1e-8
RANDOM = np.random.default_rng(7)


def axes(size):
    """Neither along coordinates nor orthogonal nor symmetric, with determinant ±1."""
    found = np.eye(size)[::-1] + 0.4 * np.tri(size)
    return found / abs(np.linalg.det(found)) ** (1 / size)


def some_map(size=3, *, radial=0.05, is_turned=True):
    """With all its parts, no two coordinates alike."""
    ramp = np.linspace(0, 1, size)
    factor = np.eye(size) + 0.3 * np.tril(np.ones((size, size)), -1)
    return TailMap(
        location=5 * ramp - 1,
        scale=10.0 ** (ramp - 0.5),
        upper=0.9 * ramp,
        lower=0.5 - 0.4 * ramp,
        skew=0.9 - 1.8 * ramp,
        shift=0.3 * ramp,
        factor=factor,
        radial=np.asarray(radial),
        turn=axes(size) if is_turned else np.eye(size),
    )


@pytest.mark.parametrize("radial", [0.0, 0.1])
def test_the_jacobian_is_that_of_the_map(radial):
    used = some_map(radial=radial)
    points = RANDOM.normal(size=(50, 3))
    jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda w: used.forward(w)[0])))(points)
    _, expected = np.linalg.slogdet(jacobian)
    _, found = jax.jit(jax.vmap(used.forward))(points)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.often("float32-True", "float64-False")
def test_the_inverse_is_one_to_rounding(dtype, is_turned):
    """Near the middle and far out, where positions are beyond 1e5 scales.

    Turned, the rounding of the largest coordinate is felt by all: it hides a small w, and beyond
    1e8 scales of float32 all others.
    """
    used, epsilon = some_map(is_turned=is_turned), float(jnp.finfo(dtype).eps)
    points = np.concatenate([RANDOM.normal(size=(200, 3)) * size for size in (1e-3, 1.0, 1.5)])
    w = jnp.asarray(points, dtype)
    forward = jax.jit(jax.vmap(used.forward))
    x, _ = forward(w)
    back = jax.jit(jax.vmap(used.inverse))(x)
    assert back.dtype == x.dtype == dtype
    again, _ = forward(back)
    sizes = np.abs(x) + np.abs(used.location) + used.scale
    assert np.max(np.abs(x)) > 1e5
    if is_turned:
        sizes = np.max(sizes, axis=1, keepdims=True)
        sizes = np.where(sizes < 1e7, sizes, np.inf)
    # An error of w in the last place is one of x in the last places, as many as its tail is steep.
    assert np.max(np.abs(again - x) / sizes) < 500 * epsilon
    if not is_turned:
        np.testing.assert_allclose(back, w, rtol=100 * epsilon, atol=30 * epsilon)


def test_the_host_and_jax_agree():
    used = some_map()
    w = RANDOM.normal(size=(20, 3))
    for ours, theirs in zip(used.on_host(w), jax.vmap(used.forward)(w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    x, _ = used.on_host(w)
    np.testing.assert_allclose(used.on_host_inverse(x), w, rtol=1e-12, atol=1e-13)


def test_the_middle_is_where_the_inverse_is_zero():
    used = adapt.identity(2)
    assert np.all(used.on_host_inverse(np.zeros((1, 2))) == 0)
    x, log_jacobian = used.forward(jnp.asarray([0.5, -2.0]))
    np.testing.assert_array_equal(x, [0.5, -2.0])
    assert log_jacobian == 0


def test_all_kinds_have_one_structure():
    """So that one compiled program serves them."""
    draws = RANDOM.standard_cauchy((4, 200, 2))
    kinds = ("linear", "coordinatewise", "elliptical", "turned")
    fitted = [adapt.tail_map(draws, kinds=(kind,)) for kind in kinds]
    assert [one.kind for one in fitted] == list(kinds)
    maps = [adapt.identity(2), *(one.map for one in fitted)]
    assert len({jax.tree.structure(one) for one in maps}) == 1
    assert len({tuple(np.shape(leaf) for leaf in jax.tree.leaves(one)) for one in maps}) == 1


def student(size, degrees, correlation=0.0):
    def draw(count):
        mixing = np.sqrt(RANDOM.chisquare(degrees, (count, 1)) / degrees)
        covariance = np.full((size, size), correlation) + (1 - correlation) * np.eye(size)
        return RANDOM.multivariate_normal(np.zeros(size), covariance, count) / mixing

    return draw


LAWS = {
    "Cauchy": (lambda n: RANDOM.standard_cauchy((n, 2)), "coordinatewise", 3.0),
    "t(1.5), scales": (
        lambda n: RANDOM.standard_t(1.5, (n, 2)) * np.array([1e-3, 1e3]),
        "coordinatewise",
        1.0,
    ),
    "t(2), correlated": (student(2, 2, 0.9), "elliptical", 0.5),
    "Cauchy, turned": (lambda n: RANDOM.standard_cauchy((n, 2)) @ axes(2).T, "turned", 3.0),
    "t(1.5), turned": (
        lambda n: (RANDOM.standard_t(1.5, (n, 2)) * np.array([1e-2, 1e2])) @ axes(2).T,
        "turned",
        1.0,
    ),
    "exponential": (lambda n: RANDOM.exponential(size=(n, 2)), "coordinatewise", 0.3),
    "normal": (lambda n: RANDOM.normal(size=(n, 2)) * np.array([1e-3, 1e3]), "linear", 0.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_fit_makes_a_law_normal(name):
    """Fresh draws, mapped back, are normal to 0.06 in each coordinate's distribution function.

    20000 draws: a false alarm has probability 1e-8 (DKW), for a fit that is right to 0.04.  What a
    fit without tails, skew or scale gives is off by more than 0.1 for the first four.
    """
    draw, kind, gain = LAWS[name]
    fitted = adapt.tail_map(draw(4000).reshape(4, 1000, 2))
    assert fitted.kind == kind
    assert fitted.gain >= gain
    scores = fitted.map.on_host_inverse(draw(20_000))
    for column in scores.T:
        assert stats.kstest(column, "norm").statistic < dkw_bound(20_000, FALSE_ALARM) + 0.038


def test_axes_are_found_the_better_the_further_draws_are_out():
    """Of Cauchy laws, 2000 draws tell them to 0.04: where an axis ends, at a distance of 1.

    Of 200 seeds the median is 0.003, the worst 0.012.  Axes that any rotation would serve as well,
    such as those of a scatter, are off by 0.4.
    """
    size = 5
    mixed = RANDOM.standard_cauchy((4, 500, size)) @ axes(size).T
    fitted = adapt.tail_map(mixed)
    assert fitted.kind == "turned"
    np.testing.assert_allclose(abs(np.linalg.det(fitted.map.turn)), 1, rtol=1e-9)
    shares = np.abs(np.linalg.solve(fitted.map.turn, axes(size)))
    assert np.max(np.sort(shares, axis=1)[:, -2] / np.max(shares, axis=1)) < 0.04
    assert set(np.argmax(shares, axis=1)) == set(range(size))


def test_tails_are_mapped_along_the_axes_of_a_covariance_that_is_given():
    """Cauchy laws of scales 1e-2 to 1e2 along axes of their own: draws alone do not tell those."""
    turn = axes(6)
    turn, _ = np.linalg.qr(turn)
    scales = np.geomspace(1e-2, 1e2, 6)
    flat = np.random.default_rng(8).standard_cauchy((1000, 6)) * scales @ turn.T
    fitted = fit(flat, covariance=turn * scales**2 @ turn.T)
    assert fitted.kind == "principal"
    found = fitted.map.turn / np.linalg.norm(fitted.map.turn, axis=0)
    np.testing.assert_allclose(np.abs(np.sum(found * turn, axis=0)), 1.0, atol=1e-9)
    assert fit(flat).gain < fitted.gain


def test_a_covariance_that_tells_more_than_few_draws_has_a_kind_of_its_own():
    """No "given" map, which is one that was never fitted to draws."""
    turn, scales = np.linalg.qr(axes(12))[0], np.geomspace(1e-3, 1e3, 12)
    flat = np.random.default_rng(10).standard_normal((30, 12)) * scales @ turn.T
    assert fit(flat, covariance=turn * scales**2 @ turn.T).kind == "curvature"
    assert set(KINDS_IN_WORDS) == {"given", "curvature", "principal", *KINDS}


def test_a_covariance_whose_axes_are_wrong_is_not_followed():
    draws = np.random.default_rng(9).standard_cauchy((1000, 4))
    turn, _ = np.linalg.qr(axes(4))
    assert fit(draws, covariance=turn * np.arange(1.0, 5) @ turn.T).kind == "coordinatewise"


def test_axes_are_not_turned_for_nothing():
    """Where coordinates are independent, or the law is elliptical, the simpler map is kept."""
    assert adapt.tail_map(RANDOM.standard_cauchy((4, 250, 8))).kind == "coordinatewise"
    assert adapt.tail_map(student(8, 2, 0.5)(1000).reshape(4, 250, 8)).kind == "elliptical"


def test_few_draws_give_a_map_all_the_same():
    """Fewer than coordinates, and coordinates that never move."""
    draws = RANDOM.normal(size=(4, 5, 40))
    draws[..., 3] = 2.0
    for kinds in (("linear",), ("coordinatewise",), ("linear", "elliptical"), ("turned",)):
        used = adapt.tail_map(draws, kinds=kinds).map
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(used))
        assert np.all(np.isfinite(used.on_host_inverse(draws.reshape(20, 40))))


def test_positions_may_be_a_tree():
    draws = {"b": RANDOM.normal(size=(2, 300)), "a": RANDOM.standard_cauchy((2, 300, 2, 1))}
    fitted = adapt.tail_map(draws)
    assert fitted.map.location.shape == (3,)
    assert np.all(fitted.map.upper[:2] > 0.3)
    assert fitted.map.upper[2] < 0.2


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.ones(5), "chains and draws"),
        (np.ones((2, 3)), "at least 8"),
        (np.full((4, 10), np.nan), "finite"),
        (np.ones((4, 10), int), "floating"),
    ],
)
def test_bad_draws_are_refused(draws, message):
    with pytest.raises((ValueError, TypeError), match=message):
        adapt.tail_map(draws)
