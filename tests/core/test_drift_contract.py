"""What every drift keeps to: any position, dtype and α, any transformation, and its stated cost."""

import functools
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from tests.core.drift_cases import (
    BUILDERS,
    GAPS,
    ORACLE,
    by_traced_alpha,
    double_well,
    evaluated,
    every_alpha,
    every_builder,
    every_density_builder,
    normal,
    normal_drift,
    normal_pair,
    over,
    plane_parameters,
    reference,
    scaled_normal_drift,
    value_and_size,
    worst,
)

from levymc import drifts

# --- positions: pytrees, dimensions, dtypes -----------------------------------------------------


def well_and_normals(position):
    return double_well(position["well"]) + jnp.sum(normal(position["rest"]))


@every_density_builder
@pytest.mark.often("leading_term", "quadrature_own_radius")
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
@pytest.mark.often(
    "leading_term", "centered_difference", "quadrature_own_radius", "gaussian_mixture"
)
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


# Operation by operation, each compiled by itself: hundreds where the quadrature finds its radius,
# whose code that asks whether a value is traced the test above takes both ways.
@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.often("quadrature", "gaussian")
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
