"""The Gibbs sampler of matrix factorisation, by its kernel and in JAX alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.models.kernels import has_native, needs_native

import levymc

NUM_USERS, NUM_ITEMS, RANK = 6, 5, 2
FALSE_ALARM = 1e-7


@pytest.fixture(scope="module")
def ratings():
    generator = np.random.default_rng(0)
    pairs = generator.permutation(NUM_USERS * NUM_ITEMS)[:20]
    return pairs // NUM_ITEMS, pairs % NUM_ITEMS, generator.integers(1, 6, 20) / 2


@pytest.fixture(params=["native", "jax"])
def backend(request):
    if request.param == "native" and not has_native():
        pytest.skip("there are no kernels here")
    return request.param


def start(rank=RANK):
    key_users, key_items = jax.random.split(jax.random.key(1))
    return {
        "users": jax.random.normal(key_users, (NUM_USERS, rank), jnp.float32),
        "items": jax.random.normal(key_items, (NUM_ITEMS, rank), jnp.float32),
    }


def conditional(ratings, user, items, center, precision):
    """Mean and covariance of a user's row, by hand."""
    users, rated, values = ratings
    mine = users == user
    partners = items[rated[mine]]
    lambda_ = np.eye(items.shape[1]) + precision * partners.T @ partners
    covariance = np.linalg.inv(lambda_)
    return covariance @ (precision * partners.T @ (values[mine] - center)), covariance


def test_means_are_the_conditional_ones(ratings, backend):
    """With no spread a sweep is a step of alternating least squares."""
    model = levymc.models.gibbs_factorization(
        *ratings, NUM_USERS, NUM_ITEMS, rank=RANK, center=1.5, noise_precision=2.0, spread=0.0,
        backend=backend,
    )  # fmt: skip
    state = model.algorithm.init(start())
    moved, _ = jax.jit(model.algorithm.step)(jax.random.key(0), state, model.data)
    users, items = (np.asarray(moved.position[name])[:, :RANK] for name in ("users", "items"))
    for user in range(NUM_USERS):
        mean, _ = conditional(ratings, user, np.asarray(start()["items"], float), 1.5, 2.0)
        np.testing.assert_allclose(users[user], mean, rtol=2e-4, atol=2e-5)
    turned = ratings[1], ratings[0], ratings[2]
    for item in range(NUM_ITEMS):
        mean, _ = conditional(turned, item, users.astype(float), 1.5, 2.0)
        np.testing.assert_allclose(items[item], mean, rtol=2e-4, atol=2e-5)


def test_draws_have_the_conditional_law(ratings, backend):
    """Each user's first coordinate over 4000 sweeps from one place, by its distribution function.

    False-alarm rate 1e-7 a user by the Dvoretzky–Kiefer–Wolfowitz bound; a mean off by 0.12 of a
    standard deviation, or one wrong by 15 %, is seen.
    """
    model = levymc.models.gibbs_factorization(
        *ratings, NUM_USERS, NUM_ITEMS, rank=RANK, backend=backend
    )
    state, count = model.algorithm.init(start()), 4000
    keys = jax.random.split(jax.random.key(2), count)
    step = jax.jit(lambda key: model.algorithm.step(key, state, model.data)[0].position["users"])
    draws = np.asarray(jax.lax.map(step, keys), float)
    limit = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * count))
    for user in range(NUM_USERS):
        mean, covariance = conditional(ratings, user, np.asarray(start()["items"], float), 0.0, 1.0)
        whitened = (draws[:, user, :RANK] - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
        for column in range(RANK):
            assert stats.kstest(whitened[:, column], "norm").statistic < limit
    assert np.all(draws[:, :, RANK:] == 0)


def test_frozen_columns_stay_and_are_conditioned_on(ratings, backend):
    """Biases: without spread the other columns solve the equations given the ones.

    All columns start away from zero, so that what is conditioned on matters.
    """
    model = levymc.models.gibbs_factorization(
        *ratings, NUM_USERS, NUM_ITEMS, rank=1, biases=True, spread=0.0, backend=backend
    )
    begin = jax.tree.map(lambda table: jnp.pad(table, ((0, 0), (0, 13))), start(3))
    state = model.algorithm.init(begin)
    moved, _ = jax.jit(model.algorithm.step)(jax.random.key(0), state, model.data)
    before = np.asarray(state.position["items"], float)[:, :3]
    users, items = (np.asarray(moved.position[name], float)[:, :3] for name in ("users", "items"))
    assert np.all(users[:, 2] == 1)
    assert np.all(items[:, 1] == 1)
    assert np.abs(before[:, 2]).min() > 0.01
    by_user, by_item, values = ratings
    check_solved(users, before, by_user, by_item, values, free=[0, 1], frozen=2)
    check_solved(items, users, by_item, by_user, values, free=[0, 2], frozen=1)


def check_solved(rows, others, row_of, other_of, values, *, free, frozen):
    """Each row's free columns are the means given the frozen one, which is 1."""
    for row, found in enumerate(rows):
        partners, rated = others[other_of[row_of == row]], values[row_of == row]
        moving = partners[:, free]
        right = moving.T @ (rated - partners[:, frozen])
        wanted = np.linalg.solve(np.eye(2) + moving.T @ moving, right)
        np.testing.assert_allclose(found[free], wanted, rtol=2e-4, atol=2e-5)


@needs_native
def test_threads_change_nothing_and_wide_rows_work():
    generator = np.random.default_rng(3)
    users, items = generator.integers(0, 300, 4000), generator.integers(0, 90, 4000)
    values = generator.integers(0, 5, 4000)
    begin = {"users": jnp.ones((300, 20), "float32"), "items": jnp.ones((90, 20), "float32")}
    found = []
    for threads in (1, 3):
        model = levymc.models.gibbs_factorization(
            users, items, values, 300, 90, rank=20, num_threads=threads, backend="native"
        )
        state, _ = model.algorithm.step(jax.random.key(0), model.algorithm.init(begin), model.data)
        found.append(np.asarray(state.position["users"]))
    assert found[0].shape == (300, 32)
    np.testing.assert_array_equal(*found)


def test_sample_runs_it(ratings):
    model = levymc.models.gibbs_factorization(*ratings, NUM_USERS, NUM_ITEMS, rank=RANK)
    starts = jax.tree.map(lambda leaf: leaf[None], start())
    result = levymc.sample(
        model.algorithm, jax.random.key(0), starts, 5, minibatches=levymc.whole(model.data),
        progress=False,
    )  # fmt: skip
    assert result.positions["items"].shape == (1, 5, NUM_ITEMS, 16)
    np.testing.assert_array_equal(result.weights, np.ones((1, 5)))


def test_algorithms_built_alike_share_a_program(ratings):
    one, other, another = (
        levymc.models.gibbs_factorization(
            *ratings, NUM_USERS, NUM_ITEMS, rank=rank, backend="jax"
        ).algorithm
        for rank in (2, 2, 3)
    )
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert jax.tree.structure(one) != jax.tree.structure(another)
    precise = levymc.models.gibbs_factorization(
        *ratings, NUM_USERS, NUM_ITEMS, rank=2, noise_precision=9.0, backend="jax"
    ).algorithm
    assert jax.tree.structure(one) == jax.tree.structure(precise)


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [("rank", 62, "at most 61"), ("spread", 1.5, "spread"), ("noise_precision", -1.0, "positive")],
)
def test_bad_arguments(ratings, argument, value, words):
    with pytest.raises(ValueError, match=words):
        levymc.models.gibbs_factorization(*ratings, NUM_USERS, NUM_ITEMS, **{argument: value})
