"""Wrong arguments that random use of `levymc.sample` found: refused in words, or made to work."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import integrators, noises


def normal(position):
    return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)) / 2


def slope(position, minibatch):
    return -position + 0 * jnp.mean(minibatch)


def sample(algorithm, starts=None, num_steps=6, **options):
    starts = jnp.zeros(2, jnp.float32) if starts is None else starts
    return levymc.sample(algorithm, jax.random.key(0), starts, num_steps, progress=False, **options)


@pytest.mark.parametrize("wrong", ["euler", integrators.euler, integrators.tamed, 0.5, 0])
@pytest.mark.parametrize("build", [levymc.ula, levymc.fla, levymc.mafla, levymc.sgld])
def test_what_is_no_integrator_is_refused(build, wrong):
    with pytest.raises(TypeError, match=r"`integrator` must .*, got .*tamed\(cap\)"):
        build(slope if build is levymc.sgld else normal, 0.1, integrator=wrong)


def test_a_function_may_be_an_integrator():
    """Before, it could be stepped by, but not sampled."""

    def half(drift, position, step_size, here=None):
        slope = (here or drift.evaluate(position)).value()
        return integrators.Move(step_size * slope / 2, jnp.zeros_like(step_size))

    result = sample(levymc.ula(normal, 0.2, integrator=half))
    same = sample(levymc.fla(normal, 0.2, 2.0, integrator=half))
    assert np.array_equal(result.positions, same.positions)


@pytest.mark.parametrize("wrong", [None, "normal", lambda: 0.0])
def test_what_is_no_log_density_is_refused(wrong):
    with pytest.raises(TypeError, match=r"`logdensity_fn` must .*, got .*\. "):
        sample(levymc.levy_walk(wrong, 0.1))


@pytest.mark.parametrize("build", [levymc.fla, levymc.flmc, levymc.mafla, levymc.levy_walk])
@pytest.mark.parametrize("wrong", [lambda x: "1", lambda x: None, lambda x: object()])
def test_a_log_density_that_returns_no_number_is_refused(build, wrong):
    with pytest.raises(TypeError, match=r"`logdensity_fn` must .*, got .*\. "):
        sample(build(wrong, 0.1))


def test_several_step_sizes_are_refused():
    for wrong in (np.full(2, 0.1), jnp.full(1, 0.1), {"a": 0.1}):
        with pytest.raises(TypeError, match=r"`step_size` must be one number.*preconditioner"):
            levymc.ula(normal, wrong)


def test_a_step_size_that_vanishes_in_the_positions_precision_is_refused():
    """Before, all weights were zero, and no step was made."""
    for step_size in (1e-60, lambda n: 1e-60 * n):
        with pytest.raises(ValueError, match=r"positive and finite.*got 0\.0 at step 1 in float32"):
            sample(levymc.ula(normal, step_size))
    wide = sample(levymc.ula(normal, 1e-60), jnp.ones(2, jnp.float64))
    assert np.all(wide.weights > 0)


@pytest.mark.parametrize("wrong", [{"a": 1.5}, np.full(2, 1.5), [1.5, 1.6]])
def test_one_alpha_only_is_refused_where_there_must_be_one(wrong):
    with pytest.raises(TypeError, match="`alpha` must be one number"):
        levymc.levy_walk(normal, 1.0, wrong)
    with pytest.raises(TypeError, match=r"`alpha` must be one number.*independent"):
        levymc.fla(normal, 0.1, wrong, noise=noises.isotropic())


@pytest.mark.parametrize(
    "starts", [np.zeros((2, 0)), {"a": np.zeros((2, 0)), "b": np.zeros((2, 0, 3))}]
)
def test_a_position_without_coordinates_is_refused(starts):
    with pytest.raises(ValueError, match="`initial_positions` must have at least one coordinate"):
        sample(levymc.levy_walk(normal, 1.0), starts)


@pytest.mark.parametrize(
    "algorithm",
    [
        levymc.fla(normal, 0.1, 1.5),
        levymc.mafla(normal, 0.1, integrator=integrators.split()),
        levymc.levy_walk(normal, 1.0, coordinatewise=False),
    ],
    ids=["fla", "mafla", "levy_walk"],
)
@pytest.mark.often("fla", "levy_walk")
def test_a_leaf_may_be_empty_beside_others(algorithm):
    """Before, the largest of no numbers was asked for."""
    starts = {"a": np.zeros((2, 0), np.float32), "b": np.zeros(2, np.float32)}
    result = sample(algorithm, starts)
    assert result.positions["a"].shape == (2, 6, 0)
    assert np.all(np.isfinite(result.positions["b"]))


@pytest.mark.parametrize(
    "wrong", [lambda x: "x", lambda x: None, lambda x: [object()], lambda x: jax.random.key(0)]
)
def test_what_is_kept_must_be_arrays(wrong):
    with pytest.raises(TypeError, match=r"`keep` must return a pytree of arrays.*keep=False"):
        sample(levymc.levy_walk(normal, 1.0), keep=wrong)


def test_minibatches_that_are_no_numbers_are_refused():
    algorithm = levymc.sgld(lambda x, batch: -x + 0 * jnp.mean(batch), 0.1)
    for wrong in ("data", ["a", "b"], lambda n: [object()]):
        with pytest.raises(TypeError, match="`minibatches` must give pytrees of numbers"):
            sample(algorithm, minibatches=wrong)


def test_minibatches_of_keys_are_refused():
    """Before, a bare TypeError of NumPy."""
    algorithm = levymc.sgld(lambda x, batch: -x, 0.1)
    with pytest.raises(TypeError, match=r"`minibatches` .* a random key.* jax\.random\.key_data"):
        sample(algorithm, minibatches=lambda n: {"key": jax.random.key(n)})


@pytest.mark.parametrize("build", [levymc.sgld, levymc.sgfla])
def test_a_log_density_in_place_of_an_estimator_is_refused(build):
    """Before, Python said how many arguments it was given, in the middle of a run."""
    message = r"`{}` must be a function of 2 arguments, got .*\(position, minibatch\)"
    with pytest.raises(TypeError, match=message.format("grad_estimator")):
        build(normal, 0.1)
    with pytest.raises(TypeError, match=message.format("curvature")):
        build(slope, 0.1, curvature=normal)


def test_a_step_with_and_without_a_minibatch_is_refused_where_it_must_be():
    """Before, one was passed over in silence; of the other Python said what was missing."""
    key, start = jax.random.key(0), jnp.zeros(2)
    for build in (levymc.ula, levymc.flmc, levymc.mafla, levymc.levy_walk):
        algorithm = build(normal, 0.1)
        with pytest.raises(TypeError, match=r"takes no minibatch, got 1\. .*levymc\.sgld"):
            algorithm.step(key, algorithm.init(start), np.zeros(4))
    algorithm = levymc.sgld(slope, 0.1)
    with pytest.raises(TypeError, match=r"must be given a minibatch, got 0 .*step\(key, state, m"):
        algorithm.step(key, algorithm.init(start))


def test_minibatches_that_end_before_the_first_draw_are_refused():
    """Before, that was taken for Ctrl-C."""
    algorithm = levymc.sgld(lambda x, batch: -x + 0 * jnp.mean(batch), 0.1)
    with (
        pytest.warns(UserWarning, match="ended after 2 of 6 steps"),
        pytest.raises(ValueError, match="`minibatches` must last until the first draw, got 2"),
    ):
        sample(algorithm, minibatches=[np.ones(3)] * 2, thin=3)


@pytest.mark.parametrize("wrong", [lambda x: jnp.zeros(7), lambda x: None, lambda x: {"a": x}])
def test_a_drift_unlike_the_position_is_refused(wrong):
    for algorithm in (
        levymc.flmc(normal, 0.1, drift=wrong),
        levymc.mafla(normal, 0.1, drift=wrong, preconditioner=2.0),
    ):
        with pytest.raises(TypeError, match="`drift` must return a pytree like the position"):
            sample(algorithm)
    algorithm = levymc.sgfla(lambda x, batch: wrong(x), 0.1)
    with pytest.raises(TypeError, match="`grad_estimator` must return a pytree like the position"):
        sample(algorithm, minibatches=levymc.whole(np.ones(3)))


@pytest.mark.parametrize("wrong", [lambda: 0.1, lambda n: "0.1", lambda n: None])
def test_what_is_no_schedule_is_refused(wrong):
    with pytest.raises(TypeError, match=r"`step_size` must .*, got .*\. Give"):
        levymc.fla(normal, wrong)


@pytest.mark.parametrize("wrong", [{"a": object()}, ["f4"], np.array(["a"]), np.zeros(2, object)])
def test_starts_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(TypeError, match=r"`initial_positions.* must be of floating type, got"):
        sample(levymc.levy_walk(normal, 1.0), wrong)


@pytest.mark.parametrize("radius", [6.0, np.inf])
def test_a_drift_of_a_given_radius_takes_sixteen_bits(radius):
    """Before, a KeyError."""
    drift = levymc.drifts.quadrature(normal, 1.5, radius=radius)
    found = drift(jnp.asarray(1.0, jnp.bfloat16))
    assert found.dtype == jnp.bfloat16
    assert abs(float(found) + 0.94) < 0.1


def test_quantiles_of_sixteen_bits_are_finite():
    """Before, infinite: the bins were of the positions' precision."""
    observer = levymc.observe.quantiles([0.1, 0.5])
    position = jnp.asarray([-3.0, 40.0], jnp.float16)

    @jax.jit
    def after_one(position):
        summary = observer.update(observer.init(position), position, jnp.float16(0.1))
        return observer.finish(summary)

    found = np.asarray(after_one(position))
    assert np.allclose(found, [[-3, -3], [40, 40]], rtol=0.03)


@pytest.mark.parametrize("radius", [None, 6.0])
def test_exact_drifts_take_an_alpha_for_each_coordinate_of_a_matrix(radius):
    """Before, JAX's error: the rules of several α were taken for one; also beside an empty leaf."""
    alpha, position = np.array([[1.3, 1.5], [1.7, 1.9]]), jnp.ones((2, 2), jnp.float32)
    found = levymc.drifts.quadrature(normal, alpha, radius=radius)(position)
    for place in np.ndindex(2, 2):
        one = levymc.drifts.quadrature(normal, float(alpha[place]), radius=radius)
        assert np.allclose(found[place], one(jnp.float32(1.0)), rtol=1e-3)
    with pytest.raises(ValueError, match="`alpha` must broadcast"):
        levymc.drifts.quadrature(normal, np.full((7, 7), 1.5), radius=radius)(position)
