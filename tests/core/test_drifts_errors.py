"""What the drifts refuse, when, and in which words: the argument, its value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc import drifts

NAN = float("nan")


def normal(x):
    return -x * x / 2


def vector_normal(x):
    """A target that forgot to add up its coordinates."""
    return -x * x / 2


def as_is(drift):
    return drift


def under_jit(drift):
    return jax.jit(lambda position: drift(position))


def in_logarithm(drift):
    return drift.signed_log


BUILDERS = {
    "leading_term": lambda alpha: drifts.leading_term(normal, alpha),
    "centered_difference": lambda alpha: drifts.centered_difference(
        normal, alpha, spacing=0.1, num_terms=10
    ),
    "quadrature": lambda alpha: drifts.quadrature(normal, alpha, radius=10.0),
    "gaussian": drifts.gaussian,
    "gaussian_mixture": lambda alpha: drifts.gaussian_mixture(
        alpha, jnp.array([0.5, 0.5]), jnp.array([-1.0, 1.0]), jnp.array([1.0, 1.0])
    ),
    "stable_target": drifts.stable_target,
}
FROM_DENSITY = {
    "leading_term": lambda density: drifts.leading_term(density, 1.6),
    "centered_difference": lambda density: drifts.centered_difference(
        density, 1.6, spacing=0.1, num_terms=10
    ),
    "quadrature": lambda density: drifts.quadrature(density, 1.6, radius=10.0),
    "quadrature_own_radius": lambda density: drifts.quadrature(density, 1.6),
    "quadrature_to_infinity": lambda density: drifts.quadrature(density, 1.6, radius=jnp.inf),
}

every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
every_density_builder = pytest.mark.parametrize(
    "build", FROM_DENSITY.values(), ids=FROM_DENSITY.keys()
)


# --- alpha --------------------------------------------------------------------------------------


@every_builder
@pytest.mark.parametrize("alpha", [1.0, 0.7, 0.0, -1.5, 2.0000001, 2.5, NAN, float("inf")])
def test_alpha_outside_the_range(build, alpha):
    with pytest.raises(ValueError, match=r"`alpha`.*\(1, 2\].*" + str(alpha)):
        build(alpha)


@every_builder
def test_one_alpha_among_many(build):
    with pytest.raises(ValueError, match=r"`alpha`.*0\.5"):
        build(jnp.array([1.5, 0.5, 2.0]))


def test_one_alpha_in_a_tree():
    with pytest.raises(ValueError, match=r"`alpha`.*3\.0"):
        drifts.leading_term(lambda p: normal(p["a"]) + normal(p["b"]), {"a": 1.5, "b": 3.0})


@every_builder
@pytest.mark.parametrize("alpha", ["1.5", None, 1.5 + 0j])
def test_alpha_that_is_no_real_number(build, alpha):
    with pytest.raises((TypeError, ValueError), match="`alpha`"):
        build(alpha)


@every_builder
def test_alpha_two_and_numpy_scalars_are_welcome(build):
    for alpha in (2, 2.0, np.float64(1.5), np.float32(1.5), jnp.asarray(1.5)):
        assert np.isfinite(build(alpha)(jnp.asarray(0.4)))


@pytest.mark.parametrize("name", ["leading_term", "quadrature", "gaussian"])
def test_alpha_of_another_structure_than_the_position(name):
    drift = BUILDERS[name]({"a": 1.5, "b": 1.6})
    with pytest.raises((TypeError, ValueError), match="`alpha`"):
        drift(jnp.asarray(0.3))


def test_alpha_of_another_shape_than_the_position():
    drift = drifts.gaussian(jnp.array([1.5, 1.6, 1.7]))
    with pytest.raises((TypeError, ValueError), match="`alpha`"):
        drift(jnp.array([0.1, 0.2]))


# --- the other arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("spacing", [0.0, -0.06, NAN, float("inf")])
def test_spacing(spacing):
    with pytest.raises(ValueError, match="`spacing`.*" + str(spacing)):
        drifts.centered_difference(normal, 1.6, spacing=spacing, num_terms=10)


@pytest.mark.parametrize("num_terms", [0, -3])
def test_num_terms(num_terms):
    with pytest.raises(ValueError, match="`num_terms`.*" + str(num_terms)):
        drifts.centered_difference(normal, 1.6, spacing=0.1, num_terms=num_terms)


@pytest.mark.parametrize("num_nodes", [0, -3])
def test_num_nodes(num_nodes):
    with pytest.raises(ValueError, match="`num_nodes`.*" + str(num_nodes)):
        drifts.quadrature(normal, 1.6, radius=10.0, num_nodes=num_nodes)


@pytest.mark.parametrize("size", [2.5, NAN, "12"])
def test_sizes_that_are_no_integers(size):
    with pytest.raises((TypeError, ValueError), match="`num_terms`"):
        drifts.centered_difference(normal, 1.6, spacing=0.1, num_terms=size)
    with pytest.raises((TypeError, ValueError), match="`num_nodes`"):
        drifts.quadrature(normal, 1.6, radius=10.0, num_nodes=size)


@pytest.mark.parametrize("radius", [0.0, -2.0, NAN, -float("inf")])
def test_radius(radius):
    with pytest.raises(ValueError, match="`radius`.*" + str(radius)):
        drifts.quadrature(normal, 1.6, radius=radius)


@pytest.mark.parametrize("scale", [0.0, -1.5, NAN])
def test_scale(scale):
    with pytest.raises(ValueError, match="`scale`.*" + str(scale)):
        drifts.quadrature(normal, 1.6, radius=jnp.inf, scale=scale)
    with pytest.raises(ValueError, match="`scale`.*" + str(scale)):
        drifts.stable_target(1.6, scale=scale)


def test_center():
    with pytest.raises(ValueError, match=r"`center`.*nan"):
        drifts.quadrature(normal, 1.6, radius=jnp.inf, center=NAN)


@pytest.mark.parametrize("std", [0.0, -1.0, NAN])
def test_std(std):
    with pytest.raises(ValueError, match="`std`.*" + str(std)):
        drifts.gaussian(1.6, std=std)


def test_mean():
    with pytest.raises(ValueError, match=r"`mean`.*nan"):
        drifts.gaussian(1.6, mean=NAN)


@pytest.mark.parametrize(
    ("name", "weights", "means", "stds"),
    [
        ("weights", [0.5, -0.5], [0.0, 1.0], [1.0, 1.0]),
        ("weights", [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]),
        ("weights", [0.5, NAN], [0.0, 1.0], [1.0, 1.0]),
        ("means", [0.5, 0.5], [0.0, NAN], [1.0, 1.0]),
        ("stds", [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]),
        ("stds", [0.5, 0.5], [0.0, 1.0], [1.0, NAN]),
    ],
)
def test_mixture_parameters(name, weights, means, stds):
    with pytest.raises(ValueError, match=f"`{name}`"):
        drifts.gaussian_mixture(1.6, jnp.array(weights), jnp.array(means), jnp.array(stds))


def test_mixture_shapes_that_do_not_match():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        drifts.gaussian_mixture(1.6, jnp.ones(2) / 2, jnp.zeros(3), jnp.ones(3))


# --- logdensity_fn and positions, at the first call ---------------------------------------------


@every_density_builder
@pytest.mark.parametrize("wrap", [as_is, under_jit, in_logarithm])
def test_a_logdensity_that_returns_a_vector(build, wrap):
    drift = wrap(build(vector_normal))
    with pytest.raises((TypeError, ValueError), match=r"`logdensity_fn`.*\(3,\)") as caught:
        drift(jnp.array([0.1, 0.2, 0.3]))
    # The remedy: sum over the coordinates.
    assert "sum" in str(caught.value)


@every_density_builder
def test_a_logdensity_that_returns_one_element(build):
    drift = build(lambda x: normal(x)[None])
    with pytest.raises((TypeError, ValueError), match=r"`logdensity_fn`.*\(1,\)"):
        drift(jnp.asarray(0.1))


@every_density_builder
def test_a_logdensity_that_is_no_function(build):
    # The words are JAX's own, or the type checker's.
    with pytest.raises(TypeError, match=r"callable|logdensity_fn"):
        build(3.0)(jnp.asarray(0.1))


@every_density_builder
@pytest.mark.parametrize("position", [jnp.arange(3), jnp.asarray(1), 1, {"a": jnp.arange(2)}])
def test_integer_positions_given_a_density(build, position):
    drift = build(lambda p: sum(jnp.sum(normal(leaf)) for leaf in jax.tree.leaves(p)) * 1.0)
    with pytest.raises(TypeError, match=r"position.*int"):
        drift(position)
    with pytest.raises(TypeError, match=r"position.*int"):
        jax.jit(lambda p: drift(p))(position)


@every_builder
def test_integer_positions(build):
    with pytest.raises(TypeError, match=r"position.*int"):
        build(1.6)(jnp.asarray(2))


@every_builder
def test_complex_positions(build):
    with pytest.raises(TypeError, match=r"position.*complex"):
        build(1.6)(jnp.asarray(2.0 + 1j))


def test_a_position_that_does_not_fit_the_mixture():
    drift = drifts.gaussian_mixture(1.6, jnp.ones(2) / 2, jnp.zeros((2, 3)), jnp.ones((2, 3)))
    with pytest.raises((TypeError, ValueError), match=r"\(2,\)"):
        drift(jnp.zeros(2))
