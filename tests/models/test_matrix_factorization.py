"""Matrix factorisation: gradients, curvature, predictions, and how it is kept stable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import hoeffding_bound

import levymc
from levymc.models import matrix_factorization

NUM_USERS, NUM_ITEMS, NUM_RATINGS = 6, 5, 40
KEY = jax.random.key(3)


def some_ratings(num_users=NUM_USERS, num_items=NUM_ITEMS, count=NUM_RATINGS, seed=0):
    generator = np.random.default_rng(seed)
    users = generator.integers(num_users, size=count)
    items = generator.integers(num_items, size=count)
    return users, items, generator.normal(3.0, 1.0, size=count)


RATINGS = some_ratings()
SINGLES = jax.tree.map(lambda leaf: leaf[:, None], RATINGS)
MODELS = {
    "plain": {},
    "all options": {"biases": True, "center": 3.5, "noise_precision": 2.0},
}


def model_of(name, **options):
    return matrix_factorization(NUM_USERS, NUM_ITEMS, rank=3, **MODELS[name], **options)


@pytest.fixture(params=MODELS)
def model(request):
    return model_of(request.param)


@pytest.fixture
def position(model):
    return model.init(KEY, scale=0.7, dtype=jnp.float64)


def leaves_close(one, other, **tolerance):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_the_log_joint_is_that_of_the_model():
    model = model_of("all options")
    position = model.init(KEY, scale=0.7, dtype=jnp.float64)
    users, items, values = RATINGS
    a, b, c, d = (np.asarray(position[k]) for k in ("users", "items", "user_biases", "item_biases"))
    mean = np.array(
        [3.5 + c[u] + d[i] + np.dot(a[u], b[i]) for u, i in zip(users, items, strict=True)]
    )
    expected = -np.sum((values - mean) ** 2) - sum(np.sum(x**2) for x in (a, b, c, d)) / 2
    np.testing.assert_allclose(model.logdensity(position, RATINGS), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(position, users, items), mean, rtol=1e-12)


def test_the_gradient_over_all_ratings_is_that_of_the_log_joint(model, position):
    """And so is the mean over the minibatches of one rating: any that are drawn are unbiased."""
    estimate = model.grad_estimator(NUM_RATINGS)

    @jax.jit
    def three(position):
        each = jax.vmap(estimate, in_axes=(None, 0))(position, SINGLES)
        mean = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), each)
        return jax.grad(model.logdensity)(position, RATINGS), estimate(position, RATINGS), mean

    exact, of_all, mean = three(position)
    leaves_close(of_all, exact, rtol=1e-10)
    leaves_close(mean, exact, rtol=1e-9, atol=1e-9)


def test_the_gradient_of_drawn_minibatches_is_unbiased():
    """Batches of `levymc.batches`: the mean over 20 000, divided by a bound on each, within
    Hoeffding's bound at 1e-9 for each of 33 entries: false alarms 4e-8, detects 7 % of the bound.
    """
    model, num_batches = model_of("plain"), 20_000
    position = model.init(KEY, scale=0.7, dtype=jnp.float64)
    estimate = model.grad_estimator(NUM_RATINGS)
    source = levymc.batches(tuple(map(jnp.asarray, RATINGS)), 4)
    draw = jax.jit(jax.vmap(lambda key: estimate(position, source.draw(key))))
    drawn = draw(jax.random.split(jax.random.key(0, impl="rbg"), num_batches))
    exact = jax.jit(jax.grad(model.logdensity))(position, RATINGS)
    each = jax.jit(jax.vmap(estimate, in_axes=(None, 0)))(position, SINGLES)
    for name in exact:
        true = np.asarray(exact[name])
        most = np.max(np.abs(each[name] - true), axis=0)  # of a batch's error as well
        error = np.abs(np.mean(drawn[name], axis=0) - true) / most
        assert np.max(error) < hoeffding_bound(num_batches, 1e-9)


def test_the_curvature_of_a_row_bounds_its_hessian_and_is_its_trace(model, position):
    found = jax.jit(model.row_curvature(NUM_RATINGS))(position, RATINGS)
    assert found["users"].shape == (NUM_USERS, 1)
    assert found["items"].shape == (NUM_ITEMS, 1)

    def of_row(row):
        moved = position | {"users": position["users"].at[2].set(row[:3])}
        if "user_biases" in position:
            moved |= {"user_biases": position["user_biases"].at[2].set(row[3])}
        return -model.logdensity(moved, RATINGS)

    bias = [position["user_biases"][2][None]] if "user_biases" in position else []
    row = jnp.concatenate([position["users"][2], *bias])
    hessian = np.asarray(jax.jit(jax.hessian(of_row))(row))
    expected = 1 + np.trace(hessian) - len(row)
    np.testing.assert_allclose(found["users"][2, 0], expected, rtol=1e-10)
    assert np.linalg.eigvalsh(hessian)[-1] <= expected * (1 + 1e-12)


def test_row_preconditioners_follow_the_counts(model, position):
    users, items, _ = RATINGS
    precision = 2.0 if "user_biases" in position else 1.0
    steps = model.row_preconditioner(users, items, s2=0.3, c=7.0)
    counts = np.bincount(items, minlength=NUM_ITEMS)
    np.testing.assert_allclose(steps["items"][:, 0], 1 / (1 + precision * 0.3 * (counts + 7)))
    assert set(steps) == set(position)


@pytest.mark.parametrize("number", [NUM_USERS, -1])
def test_numbers_of_no_row_are_not_taken_for_others(model, position, number):
    """Such as those of ids from 1, or of what was missing: JAX would take the last row."""
    ratings = jnp.array([0, number]), jnp.array([0, 1]), jnp.array([3.0, 4.0])
    predicted = jax.jit(model.predict)(position, *ratings[:2])
    np.testing.assert_array_equal(np.isnan(predicted), [False, True])
    assert np.isnan(jax.jit(model.logdensity)(position, ratings))
    slopes = jax.jit(model.grad_estimator(2))(position, ratings)
    assert np.isnan(slopes["items"][1]).all()


def test_columns_of_zeros_are_harmless():
    model = model_of("plain")
    position = model.init(KEY, dtype=jnp.float64)
    padded = jax.tree.map(lambda leaf: jnp.pad(leaf, ((0, 0), (0, 5))), position)
    users, items, _ = RATINGS
    np.testing.assert_array_equal(
        model.predict(padded, users, items), model.predict(position, users, items)
    )
    wide = model.grad_estimator(NUM_RATINGS)(padded, RATINGS)
    np.testing.assert_array_equal(wide["users"][:, 3:], 0)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_dtype_that_comes_in_goes_out(dtype):
    model = model_of("all options")
    position = jax.eval_shape(lambda: model.init(KEY, dtype=dtype))
    functions = (model.grad_estimator(NUM_RATINGS), model.row_curvature(NUM_RATINGS))
    for function in (*functions, model.logdensity):
        shapes = jax.eval_shape(function, position, RATINGS)
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(shapes))


def test_equal_models_have_equal_functions():
    """So that a program which was compiled with one's is found again for the other."""
    one, other = model_of("all options"), model_of("all options")
    assert one == other
    assert hash(one) == hash(other)
    assert one != model_of("plain")
    assert one.predict == other.predict
    assert one.grad_estimator(NUM_RATINGS) == other.grad_estimator(np.int32(NUM_RATINGS))
    assert one.row_curvature(NUM_RATINGS) == other.row_curvature(NUM_RATINGS)
    assert one.grad_estimator(NUM_RATINGS) != one.grad_estimator(NUM_RATINGS + 1)


def test_predictions_are_averaged_on_the_way():
    """Observed every third step, against the same from stored draws."""
    model = model_of("plain")
    users, items, values = (jnp.asarray(leaf) for leaf in RATINGS)
    algorithm = levymc.sgfla(
        model.grad_estimator(NUM_RATINGS), levymc.schedules.polynomial(0.01, 0.51), 1.7
    )
    observe = {
        "ratings": levymc.observe.predictive(
            lambda position: model.predict(position, users[:7], items[:7]),
            noise_variance=1.0,
            level=0.8,
        )
    }
    starts = jax.tree.map(lambda leaf: leaf[None], model.init(KEY, dtype=jnp.float32))
    result = levymc.sample(
        algorithm,
        jax.random.key(4, impl="rbg"),  # compiles in a third of the time
        starts,
        40,
        minibatches=levymc.batches((users, items, values), 8),
        observe=observe,
        observe_every=3,
        keep=True,
        progress=False,
    )
    draws = jax.tree.map(lambda leaf: leaf[0], result.positions)
    predict = jax.jit(jax.vmap(lambda position: model.predict(position, users[:7], items[:7])))
    shown = np.asarray(predict(draws))[2::3]
    weights = result.weights[0, 2::3]
    mean = np.average(shown, axis=0, weights=weights)
    variance = np.average((shown - mean) ** 2, axis=0, weights=weights)
    found = result.observed["ratings"]
    np.testing.assert_allclose(found["mean"][0], mean, rtol=2e-5)
    np.testing.assert_allclose(found["deviation"][0], np.sqrt(variance), rtol=2e-5)
    half = 1.2815515655446004 * np.sqrt(variance + 1.0)
    np.testing.assert_allclose(found["high"][0], mean + half, rtol=2e-5)
    np.testing.assert_allclose(found["low"][0], mean - half, rtol=2e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: matrix_factorization(0, 3), ("num_users", "0")),
        (lambda: matrix_factorization(2, 3, rank=1.5), ("rank", "1.5")),
        (lambda: matrix_factorization(2, 3, noise_precision=0.0), ("noise_precision", "0.0")),
        (lambda: matrix_factorization(2, 3, center=np.nan), ("center", "nan")),
        (lambda: matrix_factorization(2, 3).grad_estimator(0), ("data_size", "0")),
        (lambda: matrix_factorization(2, 3).init(KEY, scale=0.0), ("scale", "0.0")),
        (lambda: levymc.observe.predictive(lambda x: x, level=1.0), ("level", "1.0")),
        (
            lambda: levymc.observe.predictive(lambda x: x, noise_variance=-1.0),
            ("noise_variance", "-1.0"),
        ),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
