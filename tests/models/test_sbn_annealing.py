"""Annealed importance sampling of a belief network's likelihood, against enumeration.

Weights w lie between bounds that enumeration gives, Π_t min_h and max_h of f_t(h)/f_{t-1}(h), so
that Hoeffding's inequality holds for their mean.  Each of 7 such checks has a false-alarm rate of
1e-8.  Where logarithms are averaged, the rate is that of six standard errors of a normal mean,
2e-9: an assumption, for means of 20 000 bounded numbers.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import hoeffding_bound
from tests.models import small_networks as small
from tests.models.kernels import needs_native

import levymc
from levymc.models import Annealed, annealed_loglikelihood
from levymc_lab import data

VISIBLE, HIDDEN, T = 20, 4, 3
FALSE_ALARM = 1e-8
POSITION, IMAGES = small.make(VISIBLE, HIDDEN, seed=0, scale=0.5, count=1)
IMAGE = IMAGES[0]
BASE = np.linspace(0.3, 0.6, VISIBLE)


@pytest.fixture(scope="module")
def model():
    return levymc.models.sbn(VISIBLE, HIDDEN)


def position_in(dtype):
    return jax.tree.map(jnp.asarray, small.in_dtype(POSITION, dtype))


@functools.cache
def extremes():
    """Bounds on log w of `IMAGE`, by adding up the least and the most of each factor."""
    every = small.states(HIDDEN)
    own, base = every @ POSITION["weights"].T + POSITION["visible_bias"], np.log(BASE / (1 - BASE))
    logits = [beta * own + (1 - beta) * base for beta in np.linspace(0, 1, T + 1)]
    logs = np.array([(IMAGE * a - small.softplus(a)).sum(axis=1) for a in logits])
    steps = np.diff(logs, axis=0)
    return logs[0, 0] + steps.min(axis=1).sum(), logs[0, 0] + steps.max(axis=1).sum()


def copies(model, count, dtype, key=0, **how):
    """The logarithms of weights of one image, that many times."""
    found = annealed_loglikelihood(
        model, jax.random.key(key), position_in(dtype), IMAGES, base_rate=BASE, num_temperatures=T,
        num_particles=count, **how,
    )  # fmt: skip
    assert found.log_weights.dtype == found.loglikelihoods.dtype == dtype
    assert (found.log_weights.shape, found.loglikelihoods.shape) == ((count, 1), (1,))
    return found


def bound_of(low, high, count):
    """Hoeffding's for means of numbers in [low, high]."""
    return (high - low) / 2 * hoeffding_bound(count, FALSE_ALARM)


@pytest.fixture(scope="module")
def forward(model):
    return copies(model, 200_000, "float32")


def assert_unbiased(found, exact):
    logs = np.asarray(found.log_weights, float)[:, 0]
    low, high = (math.exp(end - exact) for end in extremes())
    assert low * 0.999 < np.exp(logs - exact).min()
    assert np.exp(logs - exact).max() < high * 1.001
    assert np.std(logs) > 0.1  # else there is nothing to be averaged
    assert abs(np.mean(np.exp(logs - exact)) - 1) < bound_of(low, high, len(logs))
    together = np.logaddexp.reduce(logs) - math.log(len(logs))
    assert float(found.loglikelihoods[0]) == pytest.approx(together, abs=1e-4)


def test_weights_have_the_likelihood_as_their_mean(forward):
    """Of 200 000 particles and three temperatures.  Detects a mean that is off by 5 %."""
    assert_unbiased(forward, small.loglikelihood(POSITION, IMAGE))


def test_weights_of_float64_do_too(model):
    """Of 50 000 particles; the sweeps are JAX's.  Detects a mean that is off by 10 %."""
    assert_unbiased(copies(model, 50_000, "float64", 1), small.loglikelihood(POSITION, IMAGE))


def test_the_bounds_are_sharp_enough():
    """What the two tests above say that they detect."""
    exact = small.loglikelihood(POSITION, IMAGE)
    low, high = (math.exp(end - exact) for end in extremes())
    assert bound_of(low, high, 200_000) < 0.025
    assert bound_of(low, high, 50_000) < 0.05


def test_the_way_back_has_the_inverse_likelihood_as_its_mean(model):
    """E 1/w = 1/p(v) from exact draws of the units.  Detects a mean that is off by 15 %."""
    exact, count = small.loglikelihood(POSITION, IMAGE), 200_000
    chosen = np.random.default_rng(3).choice(16, count, p=small.posterior(POSITION, IMAGE))
    found = annealed_loglikelihood(
        model,
        jax.random.key(4),
        position_in("float32"),
        np.tile(IMAGE, (count, 1)),
        base_rate=BASE,
        num_temperatures=T,
        reverse_from=small.states(HIDDEN)[chosen],
    )
    inverse = np.exp(exact - np.asarray(found.loglikelihoods, float))
    low, high = (math.exp(exact - end) for end in reversed(extremes()))
    bound = bound_of(low, high, count)
    assert bound < 0.075
    assert np.std(inverse) > 0.1
    assert abs(np.mean(inverse) - 1) < bound


def test_the_weight_last_is_too_high(model):
    """By more than twice the bound for few temperatures: the mean of weights is not p(v)."""
    exact, count = small.loglikelihood(POSITION, IMAGE), 200_000
    logs = np.asarray(copies(model, count, "float32", weight_last=True).log_weights, float)
    low, high = (math.exp(end - exact) for end in extremes())
    assert np.mean(np.exp(logs - exact)) > 1 + 2 * bound_of(low, high, count)
    assert np.mean(logs) > exact  # its logarithm is no lower bound either


@pytest.fixture(scope="module")
def simulated(model):
    """Images of a network with larger weights, their units, and both estimates by T."""
    position, _ = small.make(VISIBLE, HIDDEN, seed=5, scale=1.0)
    position = jax.tree.map(jnp.asarray, small.in_dtype(position, "float32"))
    images, hidden = model.simulate(jax.random.key(0), position, 20_000)
    exact = np.asarray(model.exact_loglikelihood(position, images), float)
    rates = levymc.models.pixel_rates(images)
    errors = {}
    for count in (4, 20):
        for start in (None, hidden):
            found = annealed_loglikelihood(
                model, jax.random.key(1), position, images, base_rate=rates,
                num_temperatures=count, reverse_from=start,
            )  # fmt: skip
            which = "forward" if start is None else "reverse"
            errors[which, count] = np.asarray(found.loglikelihoods, float) - exact
    return errors


@pytest.mark.parametrize("count", [4, 20])
def test_the_truth_lies_between_both_ways(simulated, count):
    """By six standard errors on either side."""
    for which, sign in (("forward", -1), ("reverse", 1)):
        errors = simulated[which, count]
        assert sign * errors.mean() > 6 * errors.std() / math.sqrt(len(errors))


def test_more_temperatures_bring_both_ways_together(simulated):
    gaps = {
        count: np.mean(simulated["reverse", count] - simulated["forward", count])
        for count in (4, 20)
    }
    assert 0 < gaps[20] < gaps[4] / 2


def test_a_network_of_ten_units_on_made_pictures():
    """A unit for each digit: with 1000 temperatures within 0.3 of enumeration on average.

    No bound is known for these weights.  Over ten keys the mean over the 300 images was off by
    -0.10 with a standard deviation of 0.033: 0.3 is six such away, 1e-9 for a normal mean, which is
    assumed.  Of 20 images the deviation is 0.15, and one key in twelve missed.
    """
    greys, labels = data.synthetic_images(300, seed=1)
    images = data.binarize(greys, 1)
    logits = lambda rates: np.log(rates / (1 - rates))  # noqa: E731
    bias = logits(np.asarray(levymc.models.pixel_rates(images)))
    digits = [logits(np.asarray(levymc.models.pixel_rates(images[labels == n]))) for n in range(10)]
    position = {
        "weights": np.stack(digits, axis=1) - bias[:, None],
        "hidden_bias": np.full(10, -1.0),
        "visible_bias": bias,
    }
    position = jax.tree.map(jnp.asarray, small.in_dtype(position, "float32"))
    ten = levymc.models.sbn(784, 10)
    found = annealed_loglikelihood(
        ten,
        jax.random.key(0),
        position,
        images,
        base_rate=levymc.models.pixel_rates(images),
        num_temperatures=1000,
    )
    exact = ten.exact_loglikelihood(position, images)
    assert abs(found.mean - float(exact.mean())) < 0.3
    assert np.abs(np.asarray(found.loglikelihoods - exact)).max() < 10
    base = -float(jnp.mean(jnp.sum(jax.nn.softplus(jnp.where(images > 0, -bias, bias)), 1)))
    assert float(exact.mean()) > base + 5  # the units matter


def test_particles_of_several_images_are_averaged_image_by_image(model):
    images = np.stack([IMAGE, 1 - IMAGE, np.zeros_like(IMAGE)])
    found = annealed_loglikelihood(
        model, jax.random.key(0), position_in("float32"), images, base_rate=0.5,
        num_temperatures=50, num_particles=400,
    )  # fmt: skip
    assert found.log_weights.shape == (400, 3)
    exact = [small.loglikelihood(POSITION, image) for image in images]
    np.testing.assert_allclose(found.loglikelihoods, exact, atol=0.1)
    assert found.mean == pytest.approx(np.mean(found.loglikelihoods))


@needs_native
def test_threads_change_no_number(model):
    two = levymc.models.sbn(VISIBLE, HIDDEN, num_threads=2)
    one, other = (copies(m, 37, "float32").log_weights for m in (model, two))
    np.testing.assert_array_equal(one, other)


def test_standard_errors():
    logs = np.log([[1.0, 2.0, 4.0], [3.0, 2.0, 4.0]])
    found = Annealed(jnp.array([0.0, 1.0, 5.0]), jnp.asarray(logs))
    assert found.mean == pytest.approx(2)
    assert found.standard_error == pytest.approx(math.sqrt(7 / 3))
    np.testing.assert_allclose(found.particle_errors, [0.5, 0, 0])
    one = Annealed(jnp.zeros(1), jnp.zeros((1, 1)))
    assert one.standard_error == math.inf
    assert one.particle_errors is None


def test_standard_errors_of_the_way_back_are_of_the_inverse_weights():
    """Of three particles: of two, weights and their inverses vary alike."""
    logs = -np.log([[1.0], [2.0], [6.0]])
    found = Annealed(jnp.array([-math.log(3)]), jnp.asarray(logs), is_reverse=True)
    np.testing.assert_allclose(found.particle_errors, [math.sqrt(7 / 3) / 3])


def test_particle_errors_are_those_of_the_estimates(forward):
    """Sixty groups of particles scatter as one of them says, to a factor that is normally ±30 %."""
    groups = np.asarray(forward.log_weights, float)[:60_000].reshape(60, 1000)
    estimates = np.logaddexp.reduce(groups, axis=1) - math.log(1000)
    told = Annealed(jnp.zeros(1), jnp.asarray(groups[0][:, None])).particle_errors
    assert 0.5 < np.std(estimates) / told[0] < 2


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"base_rate": 1.0}, ValueError, r"`base_rate` must lie in \(0, 1\), got 1.0. .*pixel_rat"),
        ({"base_rate": math.nan}, ValueError, "`base_rate` must lie in .* got nan"),
        ({"base_rate": np.append(BASE[1:], 0)}, ValueError, "`base_rate` must lie in"),
        ({"num_temperatures": 0}, ValueError, "`num_temperatures` must be at least 1, got 0. 1000"),
        ({"num_particles": 1.5}, TypeError, "`num_particles` must be an integer, got 1.5. It is"),
        ({"key": 3}, TypeError, "`key` must be a JAX random key, got int 3. Make one"),
    ],
)
def test_errors_name_argument_value_and_remedy(model, changes, error, words):
    given = {"key": jax.random.key(0), "position": position_in("float32"), "images": IMAGES}
    with pytest.raises(error, match=words):
        annealed_loglikelihood(model, **{**given, "base_rate": 0.5, **changes})
