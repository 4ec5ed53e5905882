"""Sweeps over the hidden units, in C++ and in JAX: their law, and each conditional of the kernel.

Networks have a large weight for each unit, by size: 0.5, where all weights are small; 9.99 and
10.01, on either side of the kernel's REACH; 15, 60 and 200, beyond it; and "far", where visible
biases are beyond ±75, so that the kernel makes all probabilities anew.  The drive, the part of the
log-odds that is given, is chosen such that units are undecided.

Statistical tests have a false-alarm rate of 1e-8 for each of 20 checks by the bound of
Dvoretzky, Kiefer and Wolfowitz over the 32 states in order: 2e-7 for the file.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import dkw_bound
from tests.models import small_networks as small
from tests.models.kernels import has_native, needs_native

import levymc
from levymc.models.sbn._gibbs import Sweeper, sweeper

VISIBLE, HIDDEN = 21, 5  # neither a multiple of 16 pixels nor one of 4 units
SIZES = (0.5, 9.99, 10.01, 15.0, 60.0, 200.0, "far")
COPIES = 100_003
FALSE_ALARM = 1e-8
KEY = jnp.array([0x243F6A88, 0x85A308D3], jnp.uint32)
BACKENDS = [pytest.param("native", marks=needs_native), "jax"]


def kernel(*arrays, num_sweeps, num_threads=1):
    sweeps = Sweeper("native", num_threads)
    return sweeps(*map(jnp.asarray, arrays), KEY, num_sweeps=num_sweeps)


@functools.cache
def network(size):
    """W and c; a large weight of each sign of unit j is at pixels j and j + 5, where c = -W/2.

    "dense": 133 pixels, all of whose weights are just within REACH, for the range of products.
    "return": 13 units that within a sweep bring a back from ±100, where exp(-|a|) was cut off.
    """
    rng = np.random.default_rng(4)
    if size == "dense":
        signs = np.stack([np.ones(133), -np.ones(133), *rng.choice([-1, 1], (3, 133))], axis=1)
        return (9.9 * signs).astype(np.float32), rng.normal(0, 20, 133).astype(np.float32)
    if size == "return":
        signs = np.where(np.arange(VISIBLE) % 2, 1, -1)
        weights = 9.9 * signs[:, None] * np.ones(13) + rng.normal(0, 0.03, (VISIBLE, 13))
        return weights.astype(np.float32), (-100.0 * signs).astype(np.float32)
    weights = 0.5 * rng.standard_normal((VISIBLE, HIDDEN))
    bias = rng.standard_normal(VISIBLE)
    units = np.arange(HIDDEN)
    large = 9.0 if size == "far" else size
    for first, sign in ((0, 1), (HIDDEN, -1)):
        weights[first + units, units] = sign * large
        bias[first + units] = -sign * large / 2
    if size == "far":
        bias[10:] = [76, -76, 84, -84, 95, -95, 150, -150, 300, -300, -74]
        weights[10:14] = 9 * rng.choice([-1, 1], (4, HIDDEN))
    return weights.astype(np.float32), bias.astype(np.float32)


def total(size, hidden):
    """Σ ζ(W h + c) in double precision."""
    weights, bias = network(size)
    return small.softplus(hidden @ weights.T.astype(float) + bias).sum(axis=-1)


@functools.cache
def law(size):
    """A drive for which no unit is decided, and the probabilities ∝ exp(drive · h - Σ ζ)."""
    every = small.states(HIDDEN)
    on, off = (np.where(np.eye(HIDDEN, dtype=bool)[:, None], b, every) for b in (1, 0))
    drive = np.mean(total(size, on) - total(size, off), axis=1).astype(np.float32)
    logs = every @ drive.astype(float) - total(size, every)
    return drive, np.exp(logs - np.logaddexp.reduce(logs))


def sweep_many(backend, size, hidden, num_sweeps, key=KEY):
    weights, bias = network(size)
    drive = np.tile(law(size)[0], (len(hidden), 1))
    run = jax.jit(functools.partial(Sweeper(backend), num_sweeps=num_sweeps))
    return run(weights, bias, drive, hidden, key)


def assert_law(hidden, probabilities):
    found = np.bincount(small.number_of(hidden), minlength=len(probabilities)) / len(hidden)
    error = np.abs(np.cumsum(found - probabilities)).max()
    assert error <= dkw_bound(len(hidden), FALSE_ALARM)


@pytest.mark.parametrize("size", SIZES)
def test_the_states_are_in_play(size):
    """Else frequencies would prove little."""
    assert law(size)[1].max() < 0.5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.often(
    "native-0.5",
    "native-9.99",
    "native-10.01",
    "native-15.0",
    "native-60.0",
    "native-200.0",
    "native-far",
    "jax-0.5",
    "jax-10.01",
    "jax-far",
)
def test_one_sweep_keeps_the_posterior(backend, size):
    """From exact draws.  Detects a sum of probabilities that one sweep moves by 0.02."""
    start = np.random.default_rng(1).choice(32, COPIES, p=law(size)[1])
    hidden = small.states(HIDDEN)[start].astype(np.uint8)
    found = sweep_many(backend, size, hidden, 1)
    assert found.hidden.dtype == jnp.uint8
    assert np.mean(np.any(np.asarray(found.hidden) != hidden, axis=1)) > 0.3
    assert_law(found.hidden, law(size)[1])
    for value, units in ((found.before, hidden), (found.after, found.hidden)):
        np.testing.assert_allclose(value, total(size, np.asarray(units)), rtol=2e-6, atol=2e-5)


@pytest.mark.parametrize(
    ("backend", "size"),
    [
        *(pytest.param("native", size, marks=needs_native) for size in (0.5, 10.01, "far")),
        *(pytest.param("jax", size, marks=pytest.mark.nightly) for size in (0.5, 10.01)),
        ("jax", "far"),
    ],
)
@pytest.mark.often("native-0.5", "native-10.01", "native-far")
def test_sweeps_from_far_find_the_posterior(backend, size):
    """30 sweeps from a state of small probability.  Detects a sum that is wrong by 0.02."""
    worst = small.states(HIDDEN)[np.argmin(law(size)[1])].astype(np.uint8)
    start = np.tile(worst, (COPIES // 4, 1))
    assert_law(sweep_many(backend, size, start, 30).hidden, law(size)[1])


def philox(counter, key):
    """Four words for each counter (Salmon et al. 2011), ten rounds; (n, 4) of uint64."""
    c = [np.asarray(part, np.uint64) for part in np.moveaxis(np.asarray(counter), -1, 0)]
    k, low, shift = [int(word) for word in key], np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (p1 >> shift) ^ c[1] ^ np.uint64(k[0]),
            p1 & low,
            (p0 >> shift) ^ c[3] ^ np.uint64(k[1]),
            p0 & low,
        ]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return np.stack(c, axis=-1)


def test_philox_gives_the_published_words():
    """Known answers of Random123, for the generator that the kernel's draws are compared with."""
    digits = [[0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]]
    assert philox([[0] * 4], (0, 0)).tolist() == [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]]
    assert philox(digits, (0xA4093822, 0x299F31D0)).tolist() == [
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    ]


def uniforms(num_images, num_units, sweep):
    """Those that the kernel compares with probabilities, by image and unit."""
    first = np.arange(0, num_units, 4)
    image, unit = np.meshgrid(np.arange(num_images), first, indexing="ij")
    counter = np.stack([unit, image, np.full_like(unit, sweep), np.zeros_like(unit)], axis=-1)
    words = philox(counter, np.asarray(KEY)).reshape(num_images, -1)[:, :num_units]
    return (words.astype(float) + 0.5) / 2**32


@needs_native
@pytest.mark.parametrize("size", [*SIZES, "dense", "return"])
def test_each_unit_of_the_kernel_has_its_exact_odds(size):
    """Every draw of a sweep, predicted in double precision from the words that it is made of.

    Each image has a drive of its own, with which the log-odds of each unit, when its turn comes,
    are a normal number.  Draws whose uniform is as near to the probability as rounding goes are
    left out, with those after them.  Detects: odds that are off by 0.002 in one unit.
    """
    weights, bias = (array.astype(float) for array in network(size))
    count, units, rng = 2003, weights.shape[1], np.random.default_rng(5)
    start = rng.integers(0, 2, (count, units)).astype(np.uint8)
    if size == "return":  # from all off, to nearly all on
        start[:] = 0
    uniform, hidden = uniforms(count, units, 0), start.copy()
    drive, is_sure = np.zeros((count, units), np.float32), np.ones((count, units), bool)
    for j in range(units):
        rest = np.where(np.arange(units) == j, 0, hidden) @ weights.T + bias
        change = np.sum(small.softplus(rest + weights[:, j]) - small.softplus(rest), axis=1)
        drive[:, j] = change + rng.standard_normal(count) + (2 if size == "return" else 0)
        chance = 1 / (1 + np.exp(change - drive[:, j].astype(float)))
        hidden[:, j] = uniform[:, j] < chance
        is_sure[:, j:] &= (np.abs(uniform[:, j] - chance) > 2e-5 + 1e-7 * np.abs(drive[:, j]))[
            :, None
        ]
    assert is_sure.mean() > 0.99
    found = kernel(*network(size), drive, start, num_sweeps=1)
    np.testing.assert_array_equal(np.asarray(found.hidden)[is_sure], hidden[is_sure])


@needs_native
def test_later_sweeps_draw_new_words():
    """Three sweeps are as predicted, and as three calls of one sweep are not: words are new."""
    weights, bias = (array.astype(float) for array in network(0.5))
    hidden = np.zeros((203, HIDDEN), np.uint8)
    drive = np.tile(law(0.5)[0], (203, 1))
    found = kernel(*network(0.5), drive, hidden, num_sweeps=3)
    for sweep in range(3):
        uniform = uniforms(203, HIDDEN, sweep)
        for j in range(HIDDEN):
            rest = np.where(np.arange(HIDDEN) == j, 0, hidden) @ weights.T + bias
            change = np.sum(small.softplus(rest + weights[:, j]) - small.softplus(rest), axis=1)
            hidden[:, j] = uniform[:, j] * (1 + np.exp(change - drive[:, j])) < 1
    agree = np.all(np.asarray(found.hidden) == hidden, axis=1)
    assert agree.mean() > 0.99  # but for uniforms that rounding decides


@needs_native
@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 4, 4), (17, 3, 2), (33, 9, 6), (784, 7, 5)])
def test_any_shape_has_its_sums(shape):
    """Pixels, units and images around the kernel's widths; weights far beyond its reach."""
    visible, hidden, images = shape
    rng = np.random.default_rng(visible)
    weights = rng.standard_normal((visible, hidden)) * rng.choice([0.3, 40], (visible, hidden))
    bias = 50 * rng.standard_normal(visible)
    weights, bias = weights.astype(np.float32), bias.astype(np.float32)
    start = rng.integers(0, 2, (images, hidden)).astype(np.uint8)
    drive = rng.standard_normal((images, hidden)).astype(np.float32)
    found = kernel(weights, bias, drive, start, num_sweeps=2)
    for value, units in ((found.before, start), (found.after, np.asarray(found.hidden))):
        logits = units @ weights.T.astype(float) + bias
        np.testing.assert_allclose(value, small.softplus(logits).sum(axis=1), rtol=3e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_sweeps_leave_the_units_and_give_the_sums(backend):
    hidden = small.states(HIDDEN).astype(np.uint8)
    found = sweep_many(backend, 15.0, hidden, 0)
    np.testing.assert_array_equal(found.hidden, hidden)
    np.testing.assert_array_equal(found.before, found.after)
    np.testing.assert_allclose(found.before, total(15.0, hidden), rtol=2e-6)


@needs_native
@pytest.mark.parametrize("num_images", [1, 6, 11, 203])
def test_threads_change_no_byte(num_images):
    """Also where there are fewer images than threads."""
    rng = np.random.default_rng(2)
    start = rng.integers(0, 2, (num_images, HIDDEN)).astype(np.uint8)
    drive = (law(15.0)[0] + rng.standard_normal((num_images, HIDDEN))).astype(np.float32)
    one, *others = (
        kernel(*network(15.0), drive, start, num_sweeps=3, num_threads=count) for count in (1, 3, 5)
    )
    for other in others:
        for left, right in zip(one, other, strict=True):
            assert np.asarray(left).tobytes() == np.asarray(right).tobytes()
    if num_images > 100:
        assert len(np.unique(np.asarray(one.hidden), axis=0)) > 8


# Through the model, with images.

POSITION, IMAGES = small.make(VISIBLE, HIDDEN, seed=6, scale=0.8, count=3)


def position_in(dtype):
    return jax.tree.map(jnp.asarray, small.in_dtype(POSITION, dtype))


@pytest.mark.parametrize(
    ("how", "dtype", "copies", "sweeps"),
    [
        pytest.param({"backend": "native"}, "float32", 30_000, 30, marks=needs_native),
        pytest.param({"backend": "jax"}, "float64", 30_000, 30, marks=pytest.mark.nightly),
        pytest.param({"method": "polya-gamma"}, "float32", 4_000, 60, marks=pytest.mark.nightly),
    ],
    ids=["native", "jax", "polya-gamma"],
)
def test_the_model_draws_hidden_units_given_each_image(how, dtype, copies, sweeps):
    """Two images side by side, from units that are all on.

    Detects: a sum of probabilities that is wrong by 0.04, or 0.1 with Pólya–Gamma variables.
    """
    model = levymc.models.sbn(VISIBLE, HIDDEN, **how)
    images = np.repeat(IMAGES[:2], copies, axis=0)
    start = np.ones((len(images), HIDDEN), bool)
    draw = jax.jit(functools.partial(model.gibbs, sweeps=sweeps))
    hidden = draw(jax.random.key(8), position_in(dtype), images, start)
    assert (hidden.dtype, hidden.shape) == (jnp.uint8, start.shape)
    for number in range(2):
        found = hidden[number * copies : (number + 1) * copies]
        assert_law(found, small.posterior(POSITION, IMAGES[number]))


@needs_native
def test_float64_is_swept_by_jax():
    """The kernel is for float32 alone: of float64 both backends draw the same units."""
    start = np.zeros((3, HIDDEN), np.uint8)
    drawn = {
        (backend, dtype): np.asarray(
            levymc.models.sbn(VISIBLE, HIDDEN, backend=backend).gibbs(
                jax.random.key(1), position_in(dtype), np.tile(IMAGES[:1], (3, 1)), start, sweeps=9
            )
        )
        for backend in ("native", "jax")
        for dtype in ("float32", "float64")
    }
    np.testing.assert_array_equal(drawn["native", "float64"], drawn["jax", "float64"])
    assert not np.array_equal(drawn["native", "float32"], drawn["jax", "float32"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_positions_side_by_side_are_as_one_by_one(backend):
    model = levymc.models.sbn(VISIBLE, HIDDEN, backend=backend)
    images, start = np.tile(IMAGES, (20, 1)), np.zeros((60, HIDDEN), np.uint8)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, -2 * leaf]), position_in("float32"))
    keys = jax.random.split(jax.random.key(2))
    draw = jax.jit(lambda key, position: model.gibbs(key, position, images, start))
    together = jax.jit(jax.vmap(draw))(keys, both)
    for number in range(2):
        alone = draw(keys[number], jax.tree.map(lambda leaf, n=number: leaf[n], both))
        np.testing.assert_array_equal(together[number], alone)
    assert not np.array_equal(together[0], together[1])


def test_sweeps_are_the_model_s_unless_given():
    """Pinned by equality: 2 sweeps by default are 2 sweeps when asked for, and not 1."""
    draws = [
        np.asarray(
            levymc.models.sbn(VISIBLE, HIDDEN, sweeps=default).gibbs(
                jax.random.key(3), position_in("float32"), np.tile(IMAGES, (30, 1)),
                np.zeros((90, HIDDEN), np.uint8), **given,
            )
        )
        for default, given in ((2, {}), (7, {"sweeps": 2}), (1, {}))
    ]  # fmt: skip
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    with pytest.raises(ValueError, match="`sweeps` must be at least 1, got 0"):
        levymc.models.sbn(VISIBLE, HIDDEN).gibbs(
            jax.random.key(3), position_in("float32"), IMAGES, np.zeros((3, HIDDEN)), sweeps=0
        )


def test_the_kernel_is_what_is_asked_for_where_it_is(monkeypatch):
    monkeypatch.delenv("LEVYMC_NATIVE", raising=False)
    assert sweeper("jax", 3) == Sweeper("jax")
    assert sweeper(None, 3) == (Sweeper("native", 3) if has_native() else Sweeper("jax"))
