"""SG-FLA and SGLD as Optax transformations: their step, their law, and inside Optax's wrappers.

Statistical bounds: false-alarm rate at most 1e-8 each, five of them in the file.
"""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.bounds import distance_to, dkw_bound

import levymc

optax = pytest.importorskip("optax")

FALSE_ALARM = 1e-8
KEY = jax.random.key(3)
ETA, ALPHA, NUM_DATA = 0.2, 1.7, 50
EULER = levymc.integrators.euler()
PARAMS = {"w": jnp.array([[1.0, -2.0], [0.5, 3.0]], jnp.float32), "b": jnp.float32(0.25)}
SLOPES = jax.tree.map(lambda leaf: leaf / 100, PARAMS)


def sgfla(step_size=ETA, alpha=ALPHA, *, key=KEY, **options):
    return levymc.optax.sgfla(step_size, alpha, key=key, **({"integrator": EULER} | options))


def one_step(transformation, slopes=SLOPES, params=PARAMS):
    return transformation.update(slopes, transformation.init(params), params)


def sgfla_step(slopes=SLOPES, params=PARAMS, alpha=ALPHA, **options):
    """The step of levymc.sgfla, as it should be."""
    algorithm = levymc.sgfla(
        lambda position, gradient: jax.tree.map(lambda g: -NUM_DATA * g, gradient),
        ETA,
        alpha,
        **({"integrator": EULER} | options),
    )
    state, _ = algorithm.step(jax.random.fold_in(KEY, 0), algorithm.init(params), slopes)
    return state.position


def assert_trees_close(found, expected, rtol=2e-6):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrator": None},
        {"integrator": levymc.integrators.tamed(0.1, componentwise=False)},
        {"noise": levymc.noises.isotropic()},
        {"noise": levymc.noises.truncated(2.0)},
        {"preconditioner": {"w": np.array([[0.5], [2.0]]), "b": 3.0}},
        {"alpha": {"w": 1.5, "b": 2.0}},
    ],
    ids=str,
)
def test_a_step_is_that_of_sgfla(options):
    """Downhill on the loss, times the number of data."""
    update, state = one_step(sgfla(num_data=NUM_DATA, **options))
    assert_trees_close(optax.apply_updates(PARAMS, update), sgfla_step(**options))
    assert (int(state.count), int(state.num_divergent)) == (1, 0)


def test_the_drift_goes_down_the_loss():
    """Noise apart, that is -η c_α N g; at α = 2 the number c_α is one."""
    still = one_step(sgfla(), jax.tree.map(jnp.zeros_like, SLOPES))[0]
    moved = one_step(sgfla(num_data=NUM_DATA))[0]
    c_alpha = math.gamma(ALPHA - 1) / math.gamma(ALPHA / 2) ** 2
    expected = jax.tree.map(lambda s, g: s - ETA * c_alpha * NUM_DATA * g, still, SLOPES)
    assert_trees_close(moved, expected)


def test_sgld_is_sgfla_at_two():
    langevin = levymc.optax.sgld(ETA, key=KEY, num_data=NUM_DATA, preconditioner=2.0)
    same = sgfla(alpha=2.0, num_data=NUM_DATA, preconditioner=2.0)
    assert_trees_close(one_step(langevin)[0], one_step(same)[0])


def chains(transformation, num_chains, num_steps, dtype):
    """Final positions of chains on the loss x²/2 that start at zero, each a coordinate."""
    start = jnp.zeros(num_chains, dtype)

    def step(_, carry):
        x, state = carry
        update, state = transformation.update(x, state)
        return optax.apply_updates(x, update), state

    run = jax.jit(lambda x: jax.lax.fori_loop(0, num_steps, step, (x, transformation.init(x))))
    return np.asarray(run(start)[0])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.often("1.5-float64", "2.0-float32")
def test_law_of_the_euler_chain(alpha, dtype):
    """On a quadratic loss it is known exactly, SαS with scale (η(1-|a|^{αn})/(1-|a|^α))^{1/α}.

    DKW, false-alarm rate 1e-8.  Detects an error of 8 % in the scale, which moves the distribution
    function by more than 0.014, twice the bound for 200 000 draws.
    """
    num_steps, curvature = 6, NUM_DATA / 20
    count, eta = 200_000, 0.3
    draws = chains(
        sgfla(eta, alpha, num_data=curvature), num_chains=count, num_steps=num_steps, dtype=dtype
    )
    assert draws.dtype == dtype
    c_alpha = math.gamma(alpha - 1) / math.gamma(alpha / 2) ** 2
    power = abs(1 - eta * c_alpha * curvature) ** alpha
    scale = (eta * (1 - power**num_steps) / (1 - power)) ** (1 / alpha)
    off = distance_to(
        draws.astype(float), lambda x: np.asarray(levymc.stable.cdf(x / scale, alpha))
    )
    assert off < dkw_bound(count, FALSE_ALARM)


def test_noise_of_sgld_has_variance_two_eta():
    """χ² on 200 000 draws, false-alarm rate 1e-8; detects an error of 4 % in the variance."""
    count = 200_000
    draws = chains(levymc.optax.sgld(ETA, key=KEY), count, 1, jnp.float64)
    low, high = stats.chi2(count).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < np.sum(draws**2) / (2 * ETA) < high


def sizes(step_size, num_steps=3):
    """The step sizes that are used, seen in the drift of a constant gradient."""
    big = jnp.float64(1e12)
    transformation = sgfla(step_size, 2.0)
    state, found = transformation.init(big), []
    for _ in range(num_steps):
        update, state = transformation.update(big, state)
        found.append(float(-update / big))
    return found


def test_schedules_count_as_they_do_at_home():
    """Optax's from zero, ours from one."""
    theirs = optax.polynomial_schedule(0.4, 0.1, 1, 3)
    np.testing.assert_allclose(sizes(theirs), [theirs(n) for n in (0, 1, 2)], rtol=1e-6)
    ours = levymc.schedules.polynomial(0.5, 0.6)
    np.testing.assert_allclose(sizes(ours), [ours(n) for n in (1, 2, 3)], rtol=1e-6)


def test_steps_have_noise_of_their_own_and_can_be_repeated():
    transformation = sgfla()
    first, state = one_step(transformation)
    second, _ = transformation.update(SLOPES, state)
    again, _ = one_step(sgfla())
    assert not np.allclose(first["w"], second["w"])
    assert_trees_close(first, again, rtol=0)


def test_chains_have_the_keys_of_their_states():
    keys = jax.random.split(KEY, 3)
    states = jax.jit(jax.vmap(lambda key: sgfla(key=key).init(PARAMS)))(keys)
    many, _ = jax.jit(jax.vmap(sgfla().update, in_axes=(None, 0)))(SLOPES, states)
    assert len(np.unique(many["b"])) == 3
    alone, _ = one_step(sgfla(key=keys[1]))
    assert_trees_close(jax.tree.map(lambda leaf: leaf[1], many), alone)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_dtypes_are_kept_and_a_loop_is_traced_once(dtype):
    params = jax.tree.map(lambda leaf: leaf.astype(dtype), PARAMS)
    transformation, traces = sgfla(), []

    @jax.jit
    def step(params, state):
        traces.append(None)
        update, state = transformation.update(params, state, params)
        return optax.apply_updates(params, update), update, state

    state = transformation.init(params)
    for _ in range(3):
        params, update, state = step(params, state)
    assert len(traces) == 1
    assert {leaf.dtype for leaf in jax.tree.leaves(update)} == {jnp.dtype(dtype)}
    assert int(state.count) == 3


def test_after_weight_decay_in_a_chain():
    """It is a prior: part of the gradient, scaled with it."""
    chained = optax.chain(optax.add_decayed_weights(0.3), sgfla(num_data=NUM_DATA))
    slopes = jax.tree.map(lambda g, p: g + 0.3 * p, SLOPES, PARAMS)
    assert_trees_close(one_step(chained)[0], one_step(sgfla(num_data=NUM_DATA), slopes)[0])


def test_hyperparameters_are_injected_and_changed():
    """The same program for another step size and α."""
    made = optax.inject_hyperparams(levymc.optax.sgfla, static_args=("integrator",))(
        ETA, ALPHA, key=KEY, num_data=NUM_DATA, integrator=EULER
    )
    traces = []

    @jax.jit
    def update(slopes, state, params):
        traces.append(None)
        return made.update(slopes, state, params)

    state = made.init(PARAMS)
    assert {"step_size", "alpha"} <= set(state.hyperparams)
    for eta, alpha in [(ETA, ALPHA), (0.05, 1.4)]:
        hyperparams = state.hyperparams | {
            "step_size": jnp.float32(eta),
            "alpha": jnp.float32(alpha),
        }
        found, after = update(SLOPES, state._replace(hyperparams=hyperparams), PARAMS)
        direct = jax.jit(lambda e, a: one_step(sgfla(e, a, num_data=NUM_DATA))[0])
        assert_trees_close(found, direct(jnp.float32(eta), jnp.float32(alpha)), rtol=1e-5)
    assert len(traces) == 1
    assert int(after.inner_state.count) == 1


def test_an_injected_schedule_counts_from_zero():
    step_size = optax.linear_schedule(0.5, 0.1, 4)
    made = optax.inject_hyperparams(levymc.optax.sgld)(step_size, key=KEY)
    state, found = made.init(PARAMS), []
    for _ in range(2):
        _, state = made.update(SLOPES, state, PARAMS)
        found.append(float(state.hyperparams["step_size"]))
    np.testing.assert_allclose(found, [0.5, 0.4], rtol=1e-6)


def test_in_a_partition_of_the_parameters():
    """Some are sampled, some only trained; those alone get noise."""
    parts = {"sampled": sgfla(num_data=NUM_DATA), "trained": optax.sgd(0.5)}
    update, _ = one_step(optax.partition(parts, {"w": "sampled", "b": "trained"}))
    np.testing.assert_allclose(update["b"], -0.5 * SLOPES["b"], rtol=1e-6)
    alone, _ = one_step(sgfla(num_data=NUM_DATA), {"w": SLOPES["w"]}, {"w": PARAMS["w"]})
    assert_trees_close(update["w"], alone["w"])


def test_accumulated_minibatches_make_one_step():
    """Of their mean, with one draw of noise; the steps between them move nothing."""
    several = optax.MultiSteps(sgfla(num_data=NUM_DATA), 2)
    state = several.init(PARAMS)
    nothing, state = several.update(jax.tree.map(lambda g: 3 * g, SLOPES), state, PARAMS)
    update, state = several.update(jax.tree.map(lambda g: -g, SLOPES), state, PARAMS)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(nothing))
    assert_trees_close(update, one_step(sgfla(num_data=NUM_DATA))[0])
    assert int(state.inner_opt_state.count) == 1


def test_in_an_optimizer_of_flax():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    before = np.asarray(model.kernel[...])
    optimizer = nnx.Optimizer(model, sgfla(), wrt=nnx.Param)

    @nnx.jit
    def train_step(model, optimizer, x):
        slopes = nnx.grad(lambda m: jnp.mean(m(x) ** 2))(model)
        optimizer.update(model, slopes)

    seen = []
    for _ in range(2):
        train_step(model, optimizer, jnp.zeros((3, 2)))
        seen.append(np.asarray(model.kernel[...]))
    noise = seen[0] - before, seen[1] - seen[0]  # the loss is flat
    assert np.all(noise[0] != 0)
    assert not np.allclose(*noise)


@pytest.mark.nightly
def test_with_parameters_of_equinox():
    """Leaves that are no arrays are None, and stay so."""
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(2, 1, 4, 1, key=KEY)
    arrays = eqx.filter(model, eqx.is_inexact_array)
    transformation = sgfla()
    update, _ = transformation.update(arrays, transformation.init(arrays))
    moved = eqx.apply_updates(model, update)
    assert np.all(moved.layers[0].weight != model.layers[0].weight)


def test_a_step_that_is_not_finite_is_left_out_and_counted():
    transformation = sgfla()
    broken = SLOPES | {"b": jnp.float32(jnp.nan)}
    update, state = one_step(transformation, broken)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(update))
    assert (int(state.count), int(state.num_divergent)) == (1, 1)
    update, state = transformation.update(SLOPES, state)
    assert np.all(update["w"] != 0)
    assert int(state.num_divergent) == 1


def test_a_schedule_that_has_come_to_zero_makes_no_step():
    transformation = sgfla(optax.linear_schedule(0.1, 0.0, 1))
    state = transformation.init(PARAMS)
    for _ in range(2):
        update, state = transformation.update(SLOPES, state)
    assert not np.any(update["w"])
    assert int(state.num_divergent) == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 0.7}, ValueError, r"`alpha` must lie in \(1, 2\], got 0.7"),
        ({"step_size": -1.0}, ValueError, "`step_size` must be positive and finite, got -1.0"),
        ({"step_size": optax.linear_schedule(0.0, 1.0, 5)}, ValueError, "`step_size` .* got 0.0"),
        ({"key": 0}, TypeError, "`key` must be a JAX random key"),
        ({"num_data": 0}, ValueError, "`num_data` must be positive and finite, got 0"),
        ({"num_data": (3, 4)}, TypeError, "`num_data` must be one number"),
        ({"integrator": levymc.integrators.split()}, TypeError, r"`integrator` must be euler\(\)"),
        ({"noise": 1.0}, TypeError, "`noise` must be a kind of noise"),
        ({"preconditioner": 0.0}, ValueError, "`preconditioner` must be positive"),
        ({"preconditioner": lambda x: 1.0}, TypeError, "`preconditioner` must be fixed numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # not functions by their address
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        sgfla(**options)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"w": jnp.arange(3)}, TypeError, r"`params\['w'\]` must be of floating type, got int"),
        ({}, ValueError, "`params` must have at least one coordinate"),
    ],
)
def test_parameters_that_cannot_be_sampled_are_refused(params, error, message):
    with pytest.raises(error, match=message):
        sgfla().init(params)


def test_a_missing_optax_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"levymc\[optax\]"):
        levymc.optax.sgld(0.1, key=KEY)
