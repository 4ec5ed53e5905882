"""The belief network's functions, against formulas in numpy and against enumeration.

Statistical tests: two, each with a false-alarm rate of at most 1e-7.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import hoeffding_bound
from tests.models import small_networks as small

import levymc

VISIBLE, HIDDEN = 20, 4
FALSE_ALARM = 1e-7


@pytest.fixture(scope="module")
def model():
    return levymc.models.sbn(VISIBLE, HIDDEN)


def positions_and_images(dtype, seed=0):
    position, images = small.make(VISIBLE, HIDDEN, seed)
    return jax.tree.map(jnp.asarray, small.in_dtype(position, dtype)), images


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("prior_scale", [1.0, 0.3])
@pytest.mark.often("1.0-float32", "0.3-float64")
def test_gradient_is_that_of_prior_and_scaled_likelihood(dtype, prior_scale):
    """From 7 images of 70, for three of which the hidden units are all off."""
    model = levymc.models.sbn(VISIBLE, HIDDEN, prior_scale=prior_scale)
    position, images = positions_and_images(dtype)
    hidden = np.random.default_rng(1).integers(0, 2, (7, HIDDEN)).astype(np.uint8)
    hidden[:3] = 0

    def logdensity(x):
        return model.logprior(x) + 70 / 7 * jnp.sum(model.logjoint(x, images, hidden))

    expected = jax.jit(jax.grad(logdensity))(position)
    found = model.grad_estimator(70)(position, {"images": images, "hidden": hidden})
    assert found.keys() == position.keys()
    for name, leaf in found.items():
        assert leaf.dtype == dtype
        rounding = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(leaf, expected[name], rtol=rounding, atol=10 * rounding)


def test_grey_images_have_neither_likelihood_nor_gradient(model):
    """Such as MNIST's pixels as they are, from 0 to 255."""
    position, images = positions_and_images("float32")
    greys = np.asarray(images) * 255.0
    for estimate in (
        lambda: model.exact_loglikelihood(position, greys),
        lambda: levymc.models.annealed_loglikelihood(
            model, jax.random.key(0), position, greys, base_rate=0.5
        ),
    ):
        with pytest.raises(ValueError, match=r"`images` must be 0 or 1, got 255.0"):
            estimate()
    minibatch = {"images": greys, "hidden": np.zeros((len(greys), HIDDEN), np.uint8)}
    found = jax.jit(model.grad_estimator(70))(position, minibatch)
    assert np.isnan(found["visible_bias"]).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logjoint_is_the_formula_s(model, dtype):
    position, images = positions_and_images(dtype)
    hidden = small.states(HIDDEN)[:7]
    expected = [
        small.logjoint(position, image, units) for image, units in zip(images, hidden, strict=True)
    ]
    found = model.logjoint(position, images, hidden)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_logprior_is_normal_up_to_a_constant():
    model = levymc.models.sbn(VISIBLE, HIDDEN, prior_scale=0.5)
    position, _ = positions_and_images("float64")
    squares = sum(float(np.sum(np.square(leaf))) for leaf in position.values())
    assert float(model.logprior(position)) == pytest.approx(-squares / 0.5)


def test_means_are_the_pixels_probabilities(model):
    position, _ = positions_and_images("float64")
    hidden = small.states(HIDDEN)
    logits = hidden @ np.asarray(position["weights"]).T + position["visible_bias"]
    np.testing.assert_allclose(model.means(position, hidden), 1 / (1 + np.exp(-logits)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_likelihood_is_the_sum_over_all_states(model, dtype):
    position, images = positions_and_images(dtype)
    expected = [small.loglikelihood(position, image) for image in images]
    found = model.exact_loglikelihood(position, images)
    assert (found.dtype, found.shape) == (dtype, (7,))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_exact_likelihood_adds_up_in_more_than_one_chunk():
    """2^11 states are two chunks."""
    position, images = small.make(3, 11, seed=2)
    found = levymc.models.sbn(3, 11).exact_loglikelihood(
        jax.tree.map(jnp.asarray, position), images
    )
    expected = [small.loglikelihood(position, image) for image in images]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_probabilities_of_all_images_add_up_to_one():
    model = levymc.models.sbn(5, 3)
    position, _ = small.make(5, 3, seed=1, scale=3.0)
    images = np.array(list(itertools.product((0, 1), repeat=5)))
    logs = model.exact_loglikelihood(jax.tree.map(jnp.asarray, position), images)
    assert float(np.exp(logs).sum()) == pytest.approx(1, abs=1e-12)


def test_simulated_units_and_pixels_have_their_rates(model):
    """P(h_j = 1) = σ(b_j), and P(h_j = 1, v_d = 1) by adding up, of 100 000 images.

    False alarm: 1e-7 in all, by Hoeffding's bound for each of the 4 + 80 rates and 20 of pixels.
    Detects: any of these probabilities off by 0.015, such as of pixels that do not see their units.
    """
    position, _ = positions_and_images("float64")
    count = 100_000
    images, hidden = model.simulate(jax.random.key(3), position, count)
    assert images.dtype == hidden.dtype == jnp.uint8
    v, h = np.asarray(images, float), np.asarray(hidden, float)
    every = small.states(HIDDEN)
    rates = 1 / (1 + np.exp(-np.asarray(position["hidden_bias"])))
    chances = np.prod(np.where(every == 1, rates, 1 - rates), axis=1)
    means = np.asarray(model.means(position, every))
    bound = hoeffding_bound(count, FALSE_ALARM / 104) / 2  # values lie in [0, 1], not [-1, 1]
    assert np.abs(h.mean(axis=0) - rates).max() < bound
    assert np.abs(v.mean(axis=0) - chances @ means).max() < bound
    assert np.abs(v.T @ h / count - means.T @ (every * chances[:, None])).max() < bound


def test_images_of_one_state_are_drawn_one_by_one(model):
    """Of 20 pixels with the rate 1/2 all 100 000 images could not be the same; nor their units."""
    position = jax.tree.map(jnp.zeros_like, positions_and_images("float32")[0])
    images, hidden = model.simulate(jax.random.key(0), position, 100_000)
    assert len(np.unique(np.asarray(images), axis=0)) > 80_000
    assert len(np.unique(np.asarray(hidden), axis=0)) == 16


def test_init_draws_weights_of_the_scale_and_takes_biases():
    """2000 · 10 weights; the deviation of their spread is 0.5 % of it, the bound eight such.

    False alarm: below 1e-12, by the χ² law of 20 000 squares.
    """
    model = levymc.models.sbn(2000, 10)
    bias = np.linspace(-3, 3, 2000)
    position = model.init(jax.random.key(0), scale=0.2, visible_bias=bias, dtype="float64")
    assert {name: leaf.shape for name, leaf in position.items()} == {
        "weights": (2000, 10),
        "hidden_bias": (10,),
        "visible_bias": (2000,),
    }
    assert float(np.std(position["weights"])) == pytest.approx(0.2, rel=0.04)
    assert not np.any(position["hidden_bias"])
    np.testing.assert_array_equal(position["visible_bias"], bias)
    assert not np.array_equal(
        position["weights"], model.init(jax.random.key(1), scale=0.2)["weights"]
    )


@pytest.mark.parametrize("dtype", [np.dtype("float32"), "float32", jnp.float32, jnp.float64])
def test_init_has_the_dtype_asked_for(model, dtype):
    position = model.init(jax.random.key(0), dtype=dtype)
    assert {leaf.dtype for leaf in position.values()} == {jnp.dtype(dtype)}
    assert not np.any(position["visible_bias"])


def test_equal_models_have_equal_functions(model):
    """So that a program which was compiled with one's is found again for the other."""
    other = levymc.models.sbn(np.int64(VISIBLE), HIDDEN, prior_scale=1)
    assert model == other
    assert hash(model) == hash(other)
    assert model.latents == other.latents
    assert model.grad_estimator(7) == other.grad_estimator(7)
    assert model != levymc.models.sbn(VISIBLE, HIDDEN, sweeps=2)
    assert model.sweeps == levymc.models.sbn(VISIBLE, HIDDEN, sweeps=2).sweeps


@pytest.mark.parametrize("with_memory", [False, True])
def test_latents_complete_a_minibatch(model, with_memory):
    """In a warm start the rows of the batch's images change, and no others."""
    position, images = positions_and_images("float32")
    memory = model.memory(30) if with_memory else None
    index = jnp.array([3, 29, 11, 3, 3, 0, 7])
    batch = {"images": images, "index": index, "label": jnp.arange(7)}
    complete, kept = jax.jit(model.latents)(jax.random.key(0), position, batch, memory)
    assert complete.keys() == {"images", "index", "label", "hidden"}
    assert (complete["hidden"].shape, complete["hidden"].dtype) == ((7, HIDDEN), jnp.uint8)
    if not with_memory:
        assert kept is None
        return
    assert (kept.shape, kept.dtype) == ((30, HIDDEN), jnp.uint8)
    untouched = np.setdiff1d(np.arange(30), index)
    assert not np.any(np.asarray(kept)[untouched])
    for place in np.unique(index):
        drawn = np.asarray(complete["hidden"])[np.asarray(index) == place]
        assert np.any(np.all(drawn == np.asarray(kept)[place], axis=1))


@pytest.mark.parametrize("backend", ["jax", None])
def test_a_warm_start_begins_from_memory(backend):
    """Units that cannot be left, as the log-odds are ±100, show where a sweep begins.

    Two units stand for each other: W_d1 = W_d2 = 400, c_d = -200, v_d = 1.  With one of them on,
    the other's log-odds are b + 400 - 400 = -100, and its own b + 400 - 200 = 100.
    """
    model = levymc.models.sbn(1, 2, sweeps=3, backend=backend)
    position = {
        "weights": jnp.full((1, 2), 400.0, jnp.float32),
        "hidden_bias": jnp.full(2, -100.0, jnp.float32),
        "visible_bias": jnp.full(1, -200.0, jnp.float32),
    }
    memory = jnp.array([[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], jnp.uint8)
    batch = {"images": jnp.ones((4, 1), jnp.uint8), "index": jnp.array([4, 1, 3, 0])}
    complete, kept = jax.jit(model.latents)(jax.random.key(0), position, batch, memory)
    np.testing.assert_array_equal(complete["hidden"], memory[batch["index"]])
    np.testing.assert_array_equal(kept, memory)


def test_warm_chains_through_a_run():
    """Two chains of `sample`, each with a memory of its own and a minibatch with duplicates."""
    model = levymc.models.sbn(VISIBLE, HIDDEN, sweeps=1)
    position, images = positions_and_images("float32")
    algorithm = levymc.augmented(
        levymc.sgld(model.grad_estimator(7), 1e-4), model.latents, model.memory(7)
    )
    run = levymc.sample(
        algorithm,
        jax.random.key(0),
        jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), position),
        20,
        minibatches=levymc.batches({"images": images, "index": np.arange(7)}, 5),
        progress=False,
    )
    assert run.positions["weights"].shape == (2, 20, VISIBLE, HIDDEN)
    assert run.positions["weights"].dtype == np.float32
    assert np.all(np.isfinite(run.positions["weights"]))
    assert not np.array_equal(run.positions["weights"][0], run.positions["weights"][1])


TOO_MANY = {
    "weights": jnp.zeros((2, 21)),
    "hidden_bias": jnp.zeros(21),
    "visible_bias": jnp.zeros(2),
}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: m.sbn(0, 3), ValueError, "`num_visible` must be at least 1, got 0. It is"),
        (lambda m: m.sbn(3, 2.5), TypeError, "`num_hidden` must be an integer, got 2.5. It is"),
        (lambda m: m.sbn(3, 2, sweeps=0), ValueError, "`sweeps` must be at least 1, got 0. It is"),
        (
            lambda m: m.sbn(3, 2, prior_scale=-1),
            ValueError,
            "`prior_scale` must be positive and finite, got -1. It is",
        ),
        (
            lambda m: m.sbn(3, 2, method="gibbs"),
            ValueError,
            "`method` must be 'collapsed' or 'polya-gamma', got 'gibbs'. 'collapsed' mixes",
        ),
        (
            lambda m: m.sbn(3, 2, num_threads=0),
            ValueError,
            "`num_threads` must be at least 1, got 0. 1 is",
        ),
        (lambda m: m.sbn(3, 2, backend="gpu"), ValueError, "`backend` must be one of .*got 'gpu'"),
        (
            lambda m: m.sbn(3, 2).init(jax.random.key(0), scale=0),
            ValueError,
            "`scale` must be positive and finite, got 0. At zero",
        ),
        (
            lambda m: m.sbn(3, 2).init(jax.random.key(0), visible_bias=np.array([0, -np.inf, 1])),
            ValueError,
            "`visible_bias` must be finite, got -inf at index 1. The logit",
        ),
        (lambda m: m.sbn(3, 2).init(0), TypeError, "`key` must be a JAX random key, got int 0"),
        (
            lambda m: m.sbn(2, 21).simulate(jax.random.key(0), TOO_MANY, 0),
            ValueError,
            "`count` must be at least 1, got 0. It is",
        ),
        (
            lambda m: m.sbn(3, 2).grad_estimator(0),
            ValueError,
            "`data_size` must be at least 1, got 0. It is",
        ),
        (
            lambda m: m.sbn(2, 21).exact_loglikelihood(TOO_MANY, jnp.zeros((1, 2))),
            ValueError,
            "at most 20 hidden units, got 21. .*annealed_loglikelihood",
        ),
    ],
)  # fmt: skip
def test_errors_name_argument_value_and_remedy(call, error, words):
    with pytest.raises(error, match=words):
        call(levymc.models)
